//! Messages that servers send, and messages that they must not send.

use super::super::client_message::MAX_CUT_TEXT;
use super::super::test_encoder::{put, rectangle, update};
use super::super::{ClipboardMessage, MAX_CURSOR, MAX_FENCE, MAX_NAME, MAX_SCREENS};
use super::*;
use crate::MAX_PIXELS;
use proptest::collection::vec;
use proptest::prelude::*;

/// The result of decoding pieces of `size` bytes on a screen, and the bytes that are left.
fn run(
    bytes: &[u8],
    size: usize,
    screen: &mut Framebuffer,
) -> (Result<Vec<ServerEvent>, RfbError>, usize) {
    let (mut decoder, mut input) = (Decoder::default(), BytesMut::new());
    let mut events = Vec::new();
    for piece in bytes.chunks(size) {
        input.extend_from_slice(piece);
        loop {
            match decoder.next(&mut input, screen) {
                Ok(None) => break,
                Ok(Some(event)) => events.push(event),
                Err(error) => return (Err(error), input.len()),
            }
        }
    }
    (Ok(events), input.len())
}

/// As [`run`] on a screen of 40x30, with all sizes of pieces, which must not matter.
fn run_all(parts: &[&[u8]]) -> (Result<Vec<ServerEvent>, RfbError>, Framebuffer) {
    let bytes = parts.concat();
    let mut whole = Framebuffer::new(40, 30).unwrap();
    let (events, left) = run(&bytes, bytes.len(), &mut whole);
    assert!(events.is_err() || left == 0, "{left} bytes are left");
    for size in 1..bytes.len().min(100) {
        let mut screen = Framebuffer::new(40, 30).unwrap();
        let in_pieces = run(&bytes, size, &mut screen).0;
        assert_eq!(in_pieces, events, "pieces of {size} bytes");
        assert!(events.is_err() || screen == whole, "pieces of {size} bytes");
    }
    (events, whole)
}

fn events(parts: &[&[u8]]) -> Vec<ServerEvent> {
    run_all(parts).0.unwrap()
}

fn error(parts: &[&[u8]]) -> String {
    run_all(parts).0.unwrap_err().to_string()
}

const RED: &[u8] = &[0, 0, 255, 9];
const BLUE: &[u8] = &[255, 0, 0, 9];

#[test]
fn raw_pixels_are_blue_green_red() {
    let rect = Rect::new(39, 28, 1, 2);
    let (events, screen) =
        run_all(&[b"\0\0\0\x01\0\x27\0\x1c\0\x01\0\x02\0\0\0\0", RED, &[1, 2, 3, 4]]);
    assert_eq!(events.unwrap(), [ServerEvent::Painted(rect), ServerEvent::UpdateEnd]);
    assert_eq!(screen.rows(rect).collect::<Vec<_>>(), [[0x00ff_0000], [0x0003_0201]]);
}

#[test]
fn copies_follow_each_other() {
    let (events, screen) = run_all(&[
        &update(3),
        b"\0\0\0\0\0\x01\0\x01\0\0\0\0",
        RED,
        b"\0\x05\0\x06\0\x02\0\x01\0\0\0\x01\0\0\0\0",
        b"\0\x09\0\x09\0\x02\0\x01\0\0\0\x01\0\x05\0\x06",
    ]);
    let (a, b, c) = (Rect::new(0, 0, 2, 1), Rect::new(5, 6, 2, 1), Rect::new(9, 9, 2, 1));
    let copies = [ServerEvent::Copied { from: a, to: b }, ServerEvent::Copied { from: b, to: c }];
    assert_eq!(events.unwrap()[1..3], copies);
    assert_eq!(screen.pixel(9, 9), Some(0x00ff_0000));
    assert_eq!(screen.pixel(10, 9), Some(0));
}

#[test]
fn rre_is_a_background_with_subrectangles() {
    let rect = Rect::new(2, 3, 10, 10);
    let (events, screen) = run_all(&[
        &update(1),
        &rectangle(rect, encoding::RRE),
        &[0, 0, 0, 2],
        RED,
        BLUE,
        &[0, 1, 0, 2, 0, 3, 0, 1],
        RED,
        &[0, 2, 0, 2, 0, 1, 0, 1],
    ]);
    assert_eq!(events.unwrap(), [ServerEvent::Painted(rect), ServerEvent::UpdateEnd]);
    let row: Vec<_> = (2..8).map(|x| screen.pixel(x, 5).unwrap() & 255).collect();
    assert_eq!(row, [0, 255, 0, 255, 0, 0]);
}

#[test]
fn hextile_keeps_the_colours_of_the_tile_before() {
    let rect = Rect::new(1, 1, 33, 16);
    let (events, screen) = run_all(&[
        &update(1),
        &rectangle(rect, encoding::HEXTILE),
        // Red with a blue square, the same again, and a last tile of one column of blue pixels.
        &[2 | 4 | 8],
        RED,
        BLUE,
        &[1, 0x12, 0x11],
        &[8, 1, 0xff, 0x00],
        &[1],
        &BLUE.repeat(16),
    ]);
    assert_eq!(events.unwrap(), [ServerEvent::Painted(rect), ServerEvent::UpdateEnd]);
    let mut expected = Framebuffer::new(40, 30).unwrap();
    expected.fill(rect, 0x00ff_0000);
    for blue in [Rect::new(2, 3, 2, 2), Rect::new(32, 16, 1, 1), Rect::new(33, 1, 1, 16)] {
        expected.fill(blue, 255);
    }
    assert_eq!(screen, expected);
}

#[test]
fn a_cursor_has_a_mask_of_whole_bytes() {
    let events = events(&[
        &update(1),
        &rectangle(Rect::new(1, 7, 2, 2), encoding::CURSOR),
        &RED.repeat(4),
        &[0b0100_0000, 0b1011_1111],
    ]);
    let cursor = Cursor {
        width: 2,
        height: 2,
        hotspot_x: 1,
        hotspot_y: 1,
        pixels: vec![0x00ff_0000; 4],
        mask: vec![false, true, true, false],
    };
    assert_eq!(events, [ServerEvent::Cursor(cursor), ServerEvent::UpdateEnd]);
}

#[test]
fn sizes_and_layouts_and_names_are_told() {
    let screen = Screen { id: 3, rect: Rect::new(0, 0, 50, 20), flags: 0 };
    let mut layout = vec![1, 0, 0, 0];
    screen.write(&mut layout);
    let extended = |reason, status, width| {
        let rect = Rect::new(reason, status, width, 20);
        [rectangle(rect, encoding::EXTENDED_DESKTOP_SIZE), layout.clone()].concat()
    };
    let (events, shown) = run_all(&[
        &update(6),
        &rectangle(Rect::new(0, 0, 40, 30), encoding::DESKTOP_SIZE),
        &rectangle(Rect::new(0, 0, 45, 20), encoding::DESKTOP_SIZE),
        &extended(1, 3, 60),
        &extended(1, 0, 50),
        &extended(2, 9, 50),
        &rectangle(Rect::default(), encoding::DESKTOP_NAME),
        b"\0\0\0\x05na\xff\x07e",
    ]);
    let expected = [
        ServerEvent::Resized { width: 45, height: 20 },
        ServerEvent::ResizeResult { status: 3 },
        ServerEvent::Resized { width: 50, height: 20 },
        ServerEvent::ResizeResult { status: 0 },
        ServerEvent::Screens(vec![screen]),
        ServerEvent::Screens(vec![screen]),
        ServerEvent::Named("na\u{fffd}\u{fffd}e".into()),
        ServerEvent::UpdateEnd,
    ];
    assert_eq!(events.unwrap(), expected);
    assert_eq!(shown.bounds(), Rect::new(0, 0, 50, 20));
}

#[test]
fn other_messages_come_between_updates() {
    let map = [&[1, 0, 0, 9, 0, 2][..], &[7; 12]].concat();
    let empty = [1, 0, 0, 9, 0, 0];
    let extended_clipboard = b"\x03\0\0\0\xff\xff\xff\xfeab";
    let text = b"\x03\0\0\0\0\0\0\x03cut";
    let events = events(&[&map, &[2], extended_clipboard, &empty, text, &update(0)]);
    let cut = ServerEvent::CutText("cut".into());
    assert_eq!(events, [ServerEvent::Bell, cut, ServerEvent::UpdateEnd]);
}

#[test]
fn fences_and_the_end_of_unasked_updates_are_told() {
    let fence = b"\xf8\0\0\0\x80\0\0\x01\x03abc";
    let events = events(&[&[150], fence, &update(0)]);
    let fence = ServerEvent::Fence(Fence { flags: 0x8000_0001, payload: "abc".into() });
    assert_eq!(events, [ServerEvent::EndOfContinuousUpdates, fence, ServerEvent::UpdateEnd]);
}

#[test]
fn an_update_is_under_way_from_its_first_byte_to_its_end() {
    let pixel = [&rectangle(Rect::new(0, 0, 1, 1), encoding::RAW), RED].concat();
    let bytes = [&update(1)[..], &pixel, &[2]].concat();
    let (mut decoder, mut input) = (Decoder::new(), BytesMut::new());
    let mut screen = Framebuffer::new(40, 30).unwrap();
    let mut within = Vec::new();
    for byte in bytes {
        input.extend_from_slice(&[byte]);
        while decoder.next(&mut input, &mut screen).unwrap().is_some() {}
        within.push(decoder.is_in_update());
    }
    // The header has 4 bytes, the rectangle 16, and the bell 1.
    assert_eq!(within, [vec![false; 3], vec![true; 16], vec![false; 2]].concat());
}

#[test]
fn the_last_rectangle_ends_an_update_of_any_number() {
    let last = rectangle(Rect::default(), encoding::LAST_RECT);
    let pixel = [&rectangle(Rect::new(0, 0, 1, 1), encoding::RAW), RED].concat();
    let painted = ServerEvent::Painted(Rect::new(0, 0, 1, 1));
    let events = events(&[&update(0xffff), &pixel, &pixel, &last, &update(9), &last, &[2]]);
    let end = ServerEvent::UpdateEnd;
    assert_eq!(events, [painted.clone(), painted, end.clone(), end, ServerEvent::Bell]);
}

#[test]
fn empty_rectangles_paint_nothing() {
    for rect in [Rect::new(9, 9, 0, 65535), Rect::new(65535, 65535, 65535, 0)] {
        let copy = [rectangle(rect, encoding::COPY_RECT), vec![255; 4]].concat();
        let rre = [&rectangle(rect, encoding::RRE)[..], &[0; 4], RED].concat();
        let (raw, hextile) = (rectangle(rect, encoding::RAW), rectangle(rect, encoding::HEXTILE));
        let events = events(&[&update(4), &copy, &raw, &rre, &hextile]);
        assert_eq!(events, [ServerEvent::UpdateEnd]);
    }
}

#[test]
fn nothing_is_painted_outside_the_screen() {
    for rect in [
        Rect::new(40, 0, 1, 1),
        Rect::new(0, 29, 1, 2),
        Rect::new(65535, 65535, 65535, 65535),
        Rect::new(0, 0, 65535, 1),
    ] {
        for encoding in [encoding::RAW, encoding::COPY_RECT, encoding::RRE, encoding::HEXTILE] {
            let text = format!("a rectangle {rect} is outside the screen of 40x30");
            assert_eq!(error(&[&update(1), &rectangle(rect, encoding)]), text);
        }
    }
    let copy = rectangle(Rect::new(0, 0, 9, 9), encoding::COPY_RECT);
    let text = "a rectangle 9x9 at 32,0 is outside the screen of 40x30";
    assert_eq!(error(&[&update(1), &copy, &[0, 32, 0, 0]]), text);
}

#[test]
fn nothing_is_painted_outside_a_rectangle() {
    let rre = rectangle(Rect::new(0, 0, 9, 9), encoding::RRE);
    for part in [Rect::new(9, 0, 1, 1), Rect::new(0, 8, 1, 2), Rect::new(65535, 0, 65535, 1)] {
        let mut bytes = Vec::new();
        wire::put_rect(&mut bytes, part);
        let error = error(&[&update(1), &rre, &[0, 0, 0, 1], RED, RED, &bytes]);
        assert_eq!(error, format!("a subrectangle {part} is outside its rectangle of 9x9"));
    }
    let hextile = rectangle(Rect::new(0, 0, 20, 9), encoding::HEXTILE);
    let error = error(&[&update(1), &hextile, &[0], &[8, 1, 0x22, 0x17]]);
    let text = "a subrectangle 2x8 at 2,2 is outside its rectangle of 4x9";
    assert_eq!(error, text);
}

#[test]
fn subrectangles_that_only_cost_time_are_refused() {
    let rect = Rect::new(0, 0, 40, 30);
    let part = [RED, &[0, 0, 0, 0, 0, 40, 0, 30]].concat();
    let count = [0xff; 4];
    let header = [&update(1), &rectangle(rect, encoding::RRE), &count[..], RED].concat();
    let mut screen = Framebuffer::new(40, 30).unwrap();
    let some = [&header[..], &part.repeat(MAX_RRE_OVERDRAW)].concat();
    assert_eq!(run(&some, some.len(), &mut screen), (Ok(vec![]), 0));
    let more = [&header[..], &part.repeat(MAX_RRE_OVERDRAW + 1)].concat();
    assert_eq!(run(&more, 9, &mut screen).0, Err(RfbError::Overdraw(rect)));
}

#[test]
fn what_is_unknown_is_named() {
    assert_eq!(error(&[&[151]]), "unknown message type 151 from the server");
    let tight = rectangle(Rect::new(0, 0, 1, 1), 7);
    assert_eq!(error(&[&update(1), &tight]), "unknown encoding 7");
    let fence = rectangle(Rect::new(0, 0, 1, 1), encoding::FENCE);
    assert_eq!(error(&[&update(1), &fence]), "unknown encoding -312");
    let hextile = rectangle(Rect::new(0, 0, 1, 1), encoding::HEXTILE);
    assert_eq!(error(&[&update(1), &hextile, &[32]]), "unknown kind of Hextile tile 32");
}

/// The bytes of a text that is too long are dropped as they come.
#[test]
fn a_text_that_is_too_long_is_left_out() {
    let mut screen = Framebuffer::new(40, 30).unwrap();
    for sign in [1, -1] {
        let length = sign * (MAX_CUT_TEXT as i32 + 1);
        let text =
            [&[3, 0, 0, 0][..], &length.to_be_bytes(), &vec![b'x'; MAX_CUT_TEXT + 1]].concat();
        let (mut decoder, mut input) = (Decoder::new(), BytesMut::new());
        for piece in text.chunks(4096) {
            input.extend_from_slice(piece);
            assert_eq!(decoder.next(&mut input, &mut screen), Ok(None));
            assert!(input.len() < 8);
        }
        input.extend_from_slice(&[2]);
        assert_eq!(decoder.next(&mut input, &mut screen), Ok(Some(ServerEvent::Bell)));
    }
}

/// What a server says of keys and of its clipboard.
#[test]
fn words_about_keys_and_clipboards_are_events() {
    let keys = rectangle(Rect::default(), encoding::EXTENDED_KEYS);
    let request = b"\x03\0\0\0\xff\xff\xff\xfc\x02\0\0\x01";
    let expected = [
        ServerEvent::ExtendedKeys,
        ServerEvent::UpdateEnd,
        ServerEvent::Clipboard(ClipboardMessage::Request),
    ];
    assert_eq!(events(&[&update(1), &keys, request]), expected);
}

#[test]
fn what_is_too_large_is_refused_before_it_comes() {
    let too_large = |what: &str, length: usize, max: usize| {
        format!("{what} of length {length} is larger than {max}")
    };
    let cursor = rectangle(Rect::new(0, 0, 9, MAX_CURSOR as u16 + 1), encoding::CURSOR);
    let text = too_large("the height of a cursor", MAX_CURSOR + 1, MAX_CURSOR);
    assert_eq!(error(&[&update(1), &cursor]), text);
    let cursor = rectangle(Rect::new(0, 0, 65535, 1), encoding::CURSOR);
    let text = too_large("the width of a cursor", 65535, MAX_CURSOR);
    assert_eq!(error(&[&update(1), &cursor]), text);
    let name = rectangle(Rect::default(), encoding::DESKTOP_NAME);
    let text = too_large("the name of the desktop", 1 << 31, MAX_NAME);
    assert_eq!(error(&[&update(1), &name, &[128, 0, 0, 0]]), text);
    let layout = rectangle(Rect::default(), encoding::EXTENDED_DESKTOP_SIZE);
    let text = too_large("a list of screens", MAX_SCREENS + 1, MAX_SCREENS);
    assert_eq!(error(&[&update(1), &layout, &[MAX_SCREENS as u8 + 1]]), text);
    let text = too_large("the payload of a fence", MAX_FENCE + 1, MAX_FENCE);
    assert_eq!(error(&[&[248, 0, 0, 0, 0, 0, 0, 0, MAX_FENCE as u8 + 1]]), text);
    let size = rectangle(Rect::new(0, 0, 4097, 4096), encoding::DESKTOP_SIZE);
    let text = format!("a screen of 4097x4096 pixels is larger than {MAX_PIXELS} pixels");
    assert_eq!(error(&[&update(1), &size]), text);
}

#[test]
fn large_rectangles_are_not_buffered() {
    let mut screen = Framebuffer::new(2000, 500).unwrap();
    let (mut decoder, mut input) = (Decoder::new(), BytesMut::new());
    let rect = screen.bounds();
    input.extend_from_slice(&[update(1), rectangle(rect, encoding::RAW)].concat());
    let piece = [5; 1001];
    let mut painted = 0;
    while painted < 4 * rect.area() {
        assert_eq!(decoder.next(&mut input, &mut screen), Ok(None));
        assert!(input.len() < 4);
        let more = piece.len().min(4 * rect.area() - painted);
        input.extend_from_slice(&piece[..more]);
        painted += more;
    }
    let event = decoder.next(&mut input, &mut screen);
    assert_eq!(event, Ok(Some(ServerEvent::Painted(rect))));
}

/// A screen with runs of few colours, and noise in a corner.
fn any_screen() -> impl Strategy<Value = Framebuffer> {
    let fills = vec((0..70u16, 0..50u16, 1..40u16, 1..40u16, 0..4u32), 0..12);
    (1..70u16, 1..50u16, fills, any::<u32>(), 0..30u16).prop_map(|(w, h, fills, seed, noisy)| {
        let mut screen = Framebuffer::new(w, h).unwrap();
        for (x, y, width, height, colour) in fills {
            screen.fill(Rect::new(x, y, width, height), colour * 0x0040_2010);
        }
        for y in 0..noisy {
            for (x, pixel) in (0..).zip(screen.columns_mut(0, y, noisy)) {
                *pixel = seed.wrapping_mul(x * 31 + u32::from(y) * 17 + 1) >> 8;
            }
        }
        screen
    })
}

proptest! {
    #[test]
    fn every_encoding_paints_what_was_encoded(
        screen in any_screen(),
        place in any::<[u16; 4]>(),
        encodings in vec(prop_oneof![Just(encoding::RAW), Just(encoding::RRE), Just(encoding::HEXTILE)], 1..4),
        size in prop_oneof![1..50usize, Just(usize::MAX)],
    ) {
        let (x, y) = (place[0] % screen.width(), place[1] % screen.height());
        let rect = Rect::new(x, y, place[2] % (screen.width() - x) + 1, place[3] % (screen.height() - y) + 1);
        let mut bytes = update(encodings.len() as u16);
        let mut expected = Framebuffer::new(screen.width(), screen.height()).unwrap();
        expected.take(&screen, rect);
        for &encoding in &encodings {
            let mut one = update(1);
            put(&mut one, &screen, rect, encoding);
            let mut shown = Framebuffer::new(screen.width(), screen.height()).unwrap();
            let events = run(&one, size, &mut shown);
            prop_assert_eq!(events, (Ok(vec![ServerEvent::Painted(rect), ServerEvent::UpdateEnd]), 0));
            prop_assert_eq!(&shown, &expected);
            put(&mut bytes, &screen, rect, encoding);
        }
        let mut shown = Framebuffer::new(screen.width(), screen.height()).unwrap();
        prop_assert_eq!(run(&bytes, size, &mut shown).0.unwrap().len(), encodings.len() + 1);
        prop_assert_eq!(shown, expected);
    }

    #[test]
    fn no_bytes_make_the_decoder_panic(start in 0..4u8, bytes in vec(any::<u8>(), 0..300), size in 1..40usize) {
        let bytes = [&[start][..], &bytes].concat();
        let mut screen = Framebuffer::new(40, 30).unwrap();
        drop(run(&bytes, size, &mut screen));
    }
}
