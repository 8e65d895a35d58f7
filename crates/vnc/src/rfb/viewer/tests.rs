//! Messages that viewers are sent.

use super::super::pixel_format::tests::COMMON;
use super::super::{Decoder, Screen, ServerEvent, encoding};
use super::*;
use bytes::BytesMut;
use proptest::collection::vec;
use proptest::prelude::*;

const ALL: [i32; 9] = encoding::WANTED;

/// A viewer that listed encodings and was sent a screen of 40x30 already.
fn viewer(encodings: &[i32]) -> (Viewer, Framebuffer) {
    let (mut viewer, screen) = (Viewer::new(40, 30), Framebuffer::new(40, 30).unwrap());
    tell(&mut viewer, &ClientMessage::SetEncodings(encodings.to_vec()));
    ask(&mut viewer);
    assert!(!next(&mut viewer, &screen).is_empty());
    (viewer, screen)
}

/// The viewer's immediate answer to a message.
pub(super) fn tell(viewer: &mut Viewer, message: &ClientMessage) -> Vec<u8> {
    let mut out = Vec::new();
    viewer.on_message(message, &mut out).unwrap();
    out
}

fn request(viewer: &mut Viewer, incremental: bool, rect: Rect) {
    tell(viewer, &ClientMessage::UpdateRequest { incremental, rect });
}

/// Asks for all that is new.
fn ask(viewer: &mut Viewer) {
    let rect = viewer.bounds;
    request(viewer, true, rect);
}

fn next(viewer: &mut Viewer, screen: &Framebuffer) -> Vec<u8> {
    let mut out = Vec::new();
    let wanted = viewer.wants();
    viewer.update(screen, &mut out);
    assert_eq!(wanted, !out.is_empty());
    assert!(!wanted || !viewer.wants(), "an answered request wants nothing more");
    out
}

/// Asks for an update and returns it.
fn update(viewer: &mut Viewer, screen: &Framebuffer) -> Vec<u8> {
    ask(viewer);
    next(viewer, screen)
}

/// The events that a decoder makes of an update.
pub(super) fn decode(bytes: &[u8], screen: &mut Framebuffer) -> Vec<ServerEvent> {
    let (mut decoder, mut input) = (Decoder::new(), BytesMut::from(bytes));
    let mut events = Vec::new();
    while let Some(event) = decoder.next(&mut input, screen).unwrap() {
        events.push(event);
    }
    assert!(input.is_empty());
    events
}

/// The events of new changes, without the end of the update.
fn news(viewer: &mut Viewer, screen: &Framebuffer) -> Vec<ServerEvent> {
    let mut shown = Framebuffer::new(40, 30).unwrap();
    let mut events = decode(&update(viewer, screen), &mut shown);
    assert_eq!(events.pop().unwrap_or(ServerEvent::UpdateEnd), ServerEvent::UpdateEnd);
    events
}

#[test]
fn raw_pixels_are_those_of_the_rfc() {
    let (mut viewer, mut screen) = viewer(&[]);
    screen.fill(Rect::new(1, 2, 1, 1), 0x0001_0203);
    viewer.painted(Rect::new(1, 2, 2, 1));
    let out = update(&mut viewer, &screen);
    assert_eq!(out, b"\0\0\0\x01\0\x01\0\x02\0\x02\0\x01\0\0\0\0\x03\x02\x01\0\0\0\0\0");
    assert!(update(&mut viewer, &screen).is_empty());
}

#[test]
fn a_viewer_is_told_once_that_it_may_send_extended_keys() {
    let (mut plain, screen) = viewer(&[]);
    plain.take_extended_keys();
    assert_eq!(news(&mut plain, &screen), []);
    // It lists them later.
    let extended = ClientMessage::SetEncodings(vec![encoding::EXTENDED_KEYS]);
    tell(&mut plain, &extended);
    assert_eq!(news(&mut plain, &screen), [ServerEvent::ExtendedKeys]);
    tell(&mut plain, &extended);
    assert_eq!(news(&mut plain, &screen), []);
    let (mut early, _) = viewer(&[encoding::EXTENDED_KEYS]);
    assert_eq!(news(&mut early, &screen), []);
    early.take_extended_keys();
    assert_eq!(news(&mut early, &screen), [ServerEvent::ExtendedKeys]);
}

#[test]
fn one_colour_takes_few_bytes() {
    let rect = Rect::new(0, 0, 40, 30);
    let (mut rre, screen) = viewer(&[encoding::RRE, encoding::HEXTILE]);
    rre.painted(rect);
    assert_eq!(update(&mut rre, &screen).len(), 4 + 12 + 8);
    let (mut hextile, _) = viewer(&[encoding::HEXTILE]);
    hextile.painted(rect);
    let out = update(&mut hextile, &screen);
    assert_eq!(out.len(), 4 + 12 + 5 + 5);
    let mut shown = Framebuffer::new(40, 30).unwrap();
    shown.fill(rect, 77);
    decode(&out, &mut shown);
    assert_eq!(shown, screen);
    hextile.painted(rect);
    let mut screen = screen;
    screen.fill(Rect::new(39, 29, 1, 1), 1);
    assert_eq!(update(&mut hextile, &screen).len(), 4 + 12 + 4 * 1200);
}

#[test]
fn nothing_comes_without_a_request() {
    let (mut viewer, screen) = (Viewer::new(40, 30), Framebuffer::new(40, 30).unwrap());
    assert!(next(&mut viewer, &screen).is_empty());
    request(&mut viewer, true, Rect::new(0, 0, 10, 10));
    assert!(viewer.wants());
    assert_eq!(next(&mut viewer, &screen)[4..12], [0, 0, 0, 0, 0, 10, 0, 10]);
    viewer.painted(Rect::new(0, 0, 5, 5));
    assert!(!viewer.wants());
    request(&mut viewer, true, Rect::new(20, 20, 3, 3));
    assert_eq!(next(&mut viewer, &screen)[4..12], [0, 20, 0, 20, 0, 3, 0, 3]);
    request(&mut viewer, true, Rect::new(20, 20, 3, 3));
    assert!(next(&mut viewer, &screen).is_empty());
    request(&mut viewer, false, Rect::new(20, 20, 3, 3));
    assert!(!next(&mut viewer, &screen).is_empty());
}

#[test]
fn requests_outside_the_screen_get_what_is_inside() {
    let (mut viewer, screen) = viewer(&[]);
    request(&mut viewer, false, Rect::new(38, 29, 65535, 65535));
    assert_eq!(next(&mut viewer, &screen)[..12], [0, 0, 0, 1, 0, 38, 0, 29, 0, 2, 0, 1]);
    request(&mut viewer, false, Rect::new(65535, 65535, 65535, 65535));
    assert!(!viewer.wants());
}

#[test]
fn copies_are_sent_only_of_what_the_viewer_has() {
    let (a, b, c) = (Rect::new(0, 0, 5, 5), Rect::new(10, 0, 5, 5), Rect::new(20, 0, 5, 5));
    let (mut viewer, screen) = viewer(&ALL);
    viewer.copied(a, b);
    viewer.copied(b, c);
    viewer.copied(a, Rect::default());
    let copies = [(a, b), (b, c)].map(|(from, to)| ServerEvent::Copied { from, to });
    assert_eq!(news(&mut viewer, &screen), copies);
    viewer.painted(Rect::new(4, 4, 1, 1));
    viewer.copied(a, b);
    viewer.copied(c, Rect::new(36, 0, 5, 5));
    let events = news(&mut viewer, &screen);
    assert_eq!(events.len(), 3, "{events:?}");
    assert!(events.iter().all(|event| matches!(event, ServerEvent::Painted(_))));
    viewer.copied(a, b);
    tell(&mut viewer, &ClientMessage::SetEncodings(vec![]));
    assert_eq!(news(&mut viewer, &screen), [ServerEvent::Painted(b)]);
    viewer.copied(a, b);
    assert_eq!(news(&mut viewer, &screen), [ServerEvent::Painted(b)]);
}

#[test]
fn copies_are_not_made_where_nothing_was_asked_for() {
    let (a, b, c) = (Rect::new(0, 0, 5, 5), Rect::new(10, 0, 5, 5), Rect::new(20, 0, 5, 5));
    let (mut viewer, screen) = viewer(&ALL);
    viewer.copied(a, b);
    viewer.copied(b, c);
    request(&mut viewer, true, Rect::new(20, 0, 20, 20));
    let mut shown = Framebuffer::new(40, 30).unwrap();
    let events = decode(&next(&mut viewer, &screen), &mut shown);
    assert_eq!(events, [ServerEvent::Painted(c), ServerEvent::UpdateEnd]);
    assert_eq!(news(&mut viewer, &screen), [ServerEvent::Painted(b)]);
    viewer.copied(a, b);
    request(&mut viewer, false, Rect::new(30, 20, 1, 1));
    let mut events = decode(&next(&mut viewer, &screen), &mut shown);
    assert!(matches!(events.remove(0), ServerEvent::Screens(_)), "the layout is alone");
    let painted = [b, Rect::new(30, 20, 1, 1)].map(ServerEvent::Painted);
    assert_eq!(news(&mut viewer, &screen), painted);
}

#[test]
fn a_flood_of_copies_and_rectangles_keeps_the_bounds() {
    let (mut viewer, screen) = viewer(&ALL);
    for at in 0..5_000u16 {
        viewer.copied(Rect::new(0, 0, 1, 1), Rect::new(at % 20 * 2, at % 15 * 2, 1, 1));
        viewer.painted(Rect::new(at % 20 * 2 + 1, at % 15 * 2 + 1, 1, 1));
        viewer.named("a name");
        viewer.resize_result(at);
        ask(&mut viewer);
        assert!(viewer.copies.len() <= MAX_COPIES);
    }
    assert_eq!(viewer.copies.len(), MAX_COPIES);
    next(&mut viewer, &screen);
    let events = news(&mut viewer, &screen);
    assert!(events.len() <= 1 + MAX_COPIES + MAX_DIRTY, "{}", events.len());
}

#[test]
fn the_pointer_is_sent_to_viewers_that_draw_it() {
    let (mut viewer, screen) = viewer(&[]);
    let cursor =
        Cursor { width: 1, height: 1, pixels: vec![5], mask: vec![true], ..Cursor::default() };
    viewer.cursor(Some(cursor.clone()));
    assert!(!viewer.draws_cursor());
    assert!(news(&mut viewer, &screen).is_empty());
    tell(&mut viewer, &ClientMessage::SetEncodings(ALL.to_vec()));
    assert!(viewer.draws_cursor());
    assert_eq!(news(&mut viewer, &screen), [ServerEvent::Cursor(cursor.clone())]);
    viewer.cursor(Some(cursor));
    assert!(news(&mut viewer, &screen).is_empty());
    viewer.cursor(None);
    assert_eq!(news(&mut viewer, &screen), [ServerEvent::Cursor(Cursor::default())]);
}

#[test]
fn the_name_is_sent_to_viewers_that_show_it() {
    let (mut viewer, screen) = viewer(&[]);
    viewer.named("new");
    assert!(news(&mut viewer, &screen).is_empty());
    tell(&mut viewer, &ClientMessage::SetEncodings(ALL.to_vec()));
    assert_eq!(news(&mut viewer, &screen), [ServerEvent::Named("new".into())]);
    assert!(news(&mut viewer, &screen).is_empty());
}

#[test]
fn a_new_size_is_sent_alone_and_then_the_screen() {
    let layout = vec![Screen { id: 0, rect: Rect::new(0, 0, 50, 20), flags: 0 }];
    let resized = ServerEvent::Resized { width: 50, height: 20 };
    for (encoding, expected) in [
        (encoding::DESKTOP_SIZE, vec![resized.clone()]),
        (encoding::EXTENDED_DESKTOP_SIZE, vec![resized.clone(), ServerEvent::Screens(layout)]),
    ] {
        let (mut viewer, mut screen) = viewer(&[encoding, encoding::COPY_RECT]);
        viewer.copied(Rect::new(0, 0, 5, 5), Rect::new(35, 25, 5, 5));
        ask(&mut viewer);
        screen.resize(50, 20).unwrap();
        viewer.resized(50, 20).unwrap();
        viewer.resized(50, 20).unwrap();
        let mut shown = Framebuffer::new(40, 30).unwrap();
        let events = decode(&next(&mut viewer, &screen), &mut shown);
        assert_eq!(events, [expected, vec![ServerEvent::UpdateEnd]].concat());
        let events = decode(&update(&mut viewer, &screen), &mut shown);
        assert_eq!(events, [ServerEvent::Painted(screen.bounds()), ServerEvent::UpdateEnd]);
    }
}

#[test]
fn viewers_that_know_no_new_sizes_are_told_apart() {
    let (mut plain, _) = viewer(&[encoding::COPY_RECT]);
    assert_eq!(plain.resized(40, 30), Ok(()));
    let error = plain.resized(40, 31).unwrap_err();
    assert_eq!(error, RfbError::CannotResize);
    let text = "the viewer does not support that the screen changes its size";
    assert_eq!(error.to_string(), text);
    // Before the viewer lists its encodings, it may still support new sizes.
    let rect = Rect::new(0, 0, 9, 9);
    let asks = ClientMessage::UpdateRequest { incremental: true, rect };
    let early = || {
        let mut viewer = Viewer::new(40, 30);
        viewer.resized(9, 9).unwrap();
        viewer
    };
    assert_eq!(early().on_message(&asks, &mut Vec::new()), Err(RfbError::CannotResize));
    let supports = |encodings: &[i32]| ClientMessage::SetEncodings(encodings.to_vec());
    assert_eq!(early().on_message(&supports(&[0]), &mut Vec::new()), Err(RfbError::CannotResize));
    let mut able = early();
    tell(&mut able, &supports(&[encoding::DESKTOP_SIZE]));
    tell(&mut able, &asks);
    assert!(able.wants());
    let error = able.on_message(&supports(&[0]), &mut Vec::new());
    assert_eq!(error, Err(RfbError::CannotResize));
    let mut waiting = Viewer::new(40, 30);
    tell(&mut waiting, &asks);
    assert_eq!(waiting.resized(9, 9), Err(RfbError::CannotResize));
}

#[test]
fn the_result_of_a_new_size_is_sent_to_those_who_asked() {
    let (mut viewer, screen) = viewer(&ALL);
    viewer.resize_result(4);
    assert_eq!(news(&mut viewer, &screen), [ServerEvent::ResizeResult { status: 4 }]);
    viewer.resize_result(0);
    viewer.resized(20, 20).unwrap();
    let events = news(&mut viewer, &screen);
    let resized = ServerEvent::Resized { width: 20, height: 20 };
    assert_eq!(events[..2], [resized.clone(), ServerEvent::ResizeResult { status: 0 }]);
    viewer.resize_result(1);
    viewer.resized(40, 20).unwrap();
    let events = news(&mut viewer, &screen);
    let resized = ServerEvent::Resized { width: 40, height: 20 };
    assert_eq!(events[..2], [ServerEvent::ResizeResult { status: 1 }, resized]);
    viewer.resize_result(1);
    tell(&mut viewer, &ClientMessage::SetEncodings(vec![encoding::DESKTOP_SIZE]));
    viewer.resize_result(1);
    assert!(!news(&mut viewer, &screen).iter().any(|e| matches!(e, ServerEvent::Resized { .. })));
}

#[test]
fn whoever_asks_for_everything_is_sent_the_layout() {
    let (mut viewer, screen) = viewer(&ALL);
    let rect = Rect::new(0, 0, 40, 30);
    request(&mut viewer, false, rect);
    let layout = ServerEvent::Screens(vec![Screen { id: 0, rect, flags: 0 }]);
    assert_eq!(news(&mut viewer, &screen), [layout]);
    assert_eq!(news(&mut viewer, &screen), [ServerEvent::Painted(rect)]);
}

#[test]
fn other_formats_have_other_bytes() {
    for (bytes, expected) in COMMON.iter().zip([4, 4, 2, 2, 1, 1]) {
        let (mut viewer, mut screen) = viewer(&[]);
        let format = PixelFormat::parse(bytes).unwrap();
        tell(&mut viewer, &ClientMessage::SetPixelFormat(format));
        screen.fill(Rect::new(0, 0, 1, 1), 0x00ff_8033);
        viewer.painted(Rect::new(0, 0, 2, 1));
        let mut out = update(&mut viewer, &screen);
        if !format.is_true_colour() {
            let map = out.drain(..6 + 256 * 6).collect::<Vec<_>>();
            assert_eq!(map[..18], [1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 36, 36, 0, 0, 0, 0]);
            assert_eq!(map[map.len() - 6..], [255; 6]);
        }
        assert_eq!(out.len(), 16 + 2 * expected, "{format:?}");
        viewer.painted(Rect::new(0, 0, 2, 1));
        assert_eq!(update(&mut viewer, &screen), out, "the colour map comes once");
    }
}

#[test]
fn a_screen_of_another_size_than_was_told_is_cut() {
    let (mut viewer, _) = viewer(&[]);
    viewer.painted(Rect::new(0, 0, 40, 30));
    let small = Framebuffer::new(2, 2).unwrap();
    assert_eq!(update(&mut viewer, &small).len(), 4 + 12 + 16);
    viewer.painted(Rect::new(10, 10, 1, 1));
    assert_eq!(update(&mut viewer, &small), [0; 4]);
}

#[derive(Debug, Clone)]
enum Action {
    Fill(Rect, u32),
    Copy(Rect, Rect),
    Resize(u16, u16),
    Request(bool, Rect),
    Encodings(Vec<i32>),
    Update,
}

fn any_rect() -> impl Strategy<Value = Rect> {
    (0..40u16, 0..40u16, 0..30u16, 0..30u16).prop_map(|(x, y, w, h)| Rect::new(x, y, w, h))
}

fn any_action() -> impl Strategy<Value = Action> {
    let encodings = vec(prop::sample::select(ALL.to_vec()), 0..9)
        .prop_map(|some| [some, vec![encoding::DESKTOP_SIZE]].concat());
    let copy = (any_rect(), 0..40u16, 0..40u16)
        .prop_map(|(from, x, y)| Action::Copy(from, Rect { x, y, ..from }));
    prop_oneof![
        4 => (any_rect(), 0..9u32).prop_map(|(rect, pixel)| Action::Fill(rect, pixel)),
        6 => copy,
        1 => (1..50u16, 1..50u16).prop_map(|(width, height)| Action::Resize(width, height)),
        1 => (any::<bool>(), any_rect()).prop_map(|(incremental, rect)| Action::Request(incremental, rect)),
        1 => encodings.prop_map(Action::Encodings),
        2 => Just(Action::Update),
    ]
}

/// The screen, the viewer that is to show it, and the screen that it shows.
struct Bench {
    screen: Framebuffer,
    viewer: Viewer,
    shown: Framebuffer,
}

impl Bench {
    fn act(&mut self, action: Action) {
        let Self { screen, viewer, .. } = self;
        match action {
            Action::Fill(rect, pixel) => {
                screen.fill(rect, pixel);
                viewer.painted(rect);
            }
            Action::Copy(from, to) => {
                if screen.bounds().contains(from) && screen.bounds().contains(to) {
                    screen.copy(from, to);
                    viewer.copied(from, to);
                }
            }
            Action::Resize(width, height) => {
                screen.resize(width, height).unwrap();
                viewer.resized(width, height).unwrap();
            }
            Action::Request(incremental, rect) => {
                if !incremental {
                    // A viewer may ask because it lost its picture of the part.
                    self.shown.fill(rect, 0x00bad);
                }
                request(viewer, incremental, rect);
                self.update();
            }
            Action::Encodings(encodings) => {
                tell(viewer, &ClientMessage::SetEncodings(encodings));
            }
            Action::Update => {
                ask(viewer);
                self.update();
            }
        }
    }

    fn update(&mut self) {
        decode(&next(&mut self.viewer, &self.screen), &mut self.shown);
    }
}

proptest! {
    #[test]
    fn the_viewer_shows_the_screen_in_the_end(actions in vec(any_action(), 1..60)) {
        let mut bench = Bench {
            screen: Framebuffer::new(40, 30).unwrap(),
            viewer: Viewer::new(40, 30),
            shown: Framebuffer::new(40, 30).unwrap(),
        };
        bench.act(Action::Encodings(ALL.to_vec()));
        bench.act(Action::Update);
        for action in actions {
            bench.act(action);
        }
        // One update for the size and one for the pixels.
        bench.act(Action::Update);
        bench.act(Action::Update);
        prop_assert_eq!(bench.shown, bench.screen);
        prop_assert!(!bench.viewer.wants());
        ask(&mut bench.viewer);
        prop_assert!(!bench.viewer.wants());
    }
}
