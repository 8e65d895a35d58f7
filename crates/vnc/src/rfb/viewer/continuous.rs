//! Updates that a viewer does not ask for one by one, and the fences of both sides.

use super::super::Fence;
use super::super::server_message::{write_end_of_continuous_updates, write_fence};
use super::support::Support;
use crate::rect::Rect;
use bytes::Bytes;

/// Updates that a viewer is sent unasked before it has answered the fence behind the first of them: at 60 a
/// second, half a second of them.
pub const MAX_UNDER_WAY: u32 = 32;

/// The updates that a viewer is sent unasked, and how many it has taken.
#[derive(Debug, Default)]
pub(super) struct Continuous {
    /// The part of the screen of which the viewer wants updates; `None` if it wants none.
    area: Option<Rect>,
    /// Updates with a fence behind them. The fence has this number.
    sent: u32,
    /// The number of the newest fence that was answered.
    answered: u32,
    /// The viewer's fence whose answer waits for the next message.
    synchronizing: Option<Fence>,
    /// Whether the viewer was told that fences are supported.
    told_fences: bool,
    /// Whether the viewer was told that unasked updates are supported.
    told_updates: bool,
}

impl Continuous {
    /// Whether updates are sent unasked.
    pub(super) fn is_on(&self) -> bool {
        self.area.is_some()
    }

    /// The part of the screen for which an update may be sent unasked now. A viewer that answers fences gets
    /// no more updates than it takes.
    pub(super) fn area(&self, support: Support) -> Option<Rect> {
        let under_way = self.sent.wrapping_sub(self.answered);
        self.area.filter(|_| !support.fence || under_way < MAX_UNDER_WAY)
    }

    /// Writes the fence behind an update that was sent unasked.
    pub(super) fn update_sent(&mut self, support: Support, out: &mut Vec<u8>) {
        if support.fence {
            self.sent = self.sent.wrapping_add(1);
            let payload = Bytes::copy_from_slice(&self.sent.to_be_bytes());
            write_fence(&Fence { flags: Fence::REQUEST | Fence::BLOCK_BEFORE, payload }, out);
        }
    }

    /// Tells a viewer once that the extensions are supported which it asks about by listing their encodings.
    pub(super) fn introduce(&mut self, support: Support, out: &mut Vec<u8>) {
        if support.fence && !std::mem::replace(&mut self.told_fences, true) {
            write_fence(&Fence { flags: Fence::REQUEST, payload: Bytes::new() }, out);
        }
        if support.continuous_updates && !std::mem::replace(&mut self.told_updates, true) {
            write_end_of_continuous_updates(out);
        }
    }

    /// Answers the fence whose answer waits for the next message, if there is one.
    pub(super) fn before_message(&mut self, out: &mut Vec<u8>) {
        if let Some(answer) = self.synchronizing.take() {
            write_fence(&answer, out);
        }
    }

    /// Deals with a fence or an answer. Messages before the fence have taken effect, and none behind it has.
    pub(super) fn on_fence(&mut self, fence: &Fence, out: &mut Vec<u8>) {
        match fence.answer() {
            Some(answer) if answer.flags & Fence::SYNC_NEXT != 0 => {
                self.synchronizing = Some(answer);
            }
            Some(answer) => write_fence(&answer, out),
            None => self.on_answer(&fence.payload),
        }
    }

    fn on_answer(&mut self, payload: &[u8]) {
        // The fence that told that there are fences has no number.
        let Ok(number) = payload.try_into().map(u32::from_be_bytes) else { return };
        // An answer to a fence that was not sent does not count.
        if self.sent.wrapping_sub(number) < self.sent.wrapping_sub(self.answered) {
            self.answered = number;
        }
    }

    /// Deals with an EnableContinuousUpdates.
    pub(super) fn enable(&mut self, area: Option<Rect>, out: &mut Vec<u8>) {
        self.area = area;
        if area.is_none() {
            write_end_of_continuous_updates(out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{ClientMessage, PixelFormat, ServerEvent, encoding};
    use super::super::Viewer;
    use super::super::tests::{decode, tell};
    use super::*;
    use crate::framebuffer::Framebuffer;

    const ALL: Rect = Rect::new(0, 0, 40, 30);
    const SPOT: Rect = Rect::new(3, 4, 5, 6);

    fn enable(enable: bool, rect: Rect) -> ClientMessage {
        ClientMessage::EnableContinuousUpdates { enable, rect }
    }

    fn fence(flags: u32, payload: &[u8]) -> ClientMessage {
        ClientMessage::Fence(Fence { flags, payload: Bytes::copy_from_slice(payload) })
    }

    /// The events of a viewer with a screen of 40x30.
    fn understood(bytes: &[u8]) -> Vec<ServerEvent> {
        decode(bytes, &mut Framebuffer::new(40, 30).unwrap())
    }

    /// A viewer that has listed these encodings, wants updates unasked, and has got the first.
    fn viewer(encodings: &[i32]) -> (Viewer, Framebuffer) {
        let (mut viewer, screen) = (Viewer::new(40, 30), Framebuffer::new(40, 30).unwrap());
        tell(&mut viewer, &ClientMessage::SetEncodings(encodings.to_vec()));
        tell(&mut viewer, &enable(true, ALL));
        assert!(!next(&mut viewer, &screen).is_empty());
        (viewer, screen)
    }

    fn next(viewer: &mut Viewer, screen: &Framebuffer) -> Vec<ServerEvent> {
        let mut out = Vec::new();
        viewer.update(screen, &mut out);
        understood(&out)
    }

    /// How many updates follow many changes if the viewer sends no message.
    fn updates(viewer: &mut Viewer, screen: &Framebuffer) -> u32 {
        let mut updates = 0;
        for _ in 0..3 * MAX_UNDER_WAY {
            viewer.painted(SPOT);
            updates += u32::from(!next(viewer, screen).is_empty());
        }
        updates
    }

    #[test]
    fn a_viewer_that_lists_the_extensions_is_told_once_that_they_are_supported() {
        let mut viewer = Viewer::new(40, 30);
        let list = |encodings: &[i32]| ClientMessage::SetEncodings(encodings.to_vec());
        assert!(tell(&mut viewer, &list(&encoding::WANTED)).is_empty());
        let told = tell(&mut viewer, &list(&encoding::CONTINUOUS));
        assert_eq!(told, [248, 0, 0, 0, 128, 0, 0, 0, 0, 150]);
        assert!(tell(&mut viewer, &list(&encoding::CONTINUOUS)).is_empty());
    }

    #[test]
    fn updates_come_unasked_where_and_while_the_viewer_wants_them() {
        let (mut viewer, screen) = viewer(&encoding::CONTINUOUS);
        tell(&mut viewer, &enable(true, Rect::new(0, 0, 10, 10)));
        viewer.painted(Rect::new(8, 8, 5, 5));
        let events = next(&mut viewer, &screen);
        let payload = Bytes::from_static(&[0, 0, 0, 2]);
        let behind = Fence { flags: Fence::REQUEST | Fence::BLOCK_BEFORE, payload };
        let painted = ServerEvent::Painted(Rect::new(8, 8, 2, 2));
        assert_eq!(events, [painted, ServerEvent::UpdateEnd, ServerEvent::Fence(behind)]);
        // Changes outside the part are not to be asked for, unless the pixels were lost.
        let ask = |incremental| ClientMessage::UpdateRequest { incremental, rect: ALL };
        tell(&mut viewer, &ask(true));
        assert!(!viewer.wants());
        tell(&mut viewer, &ask(false));
        assert!(next(&mut viewer, &screen).contains(&ServerEvent::Painted(ALL)));
        // After the viewer has ended it, updates must be asked for as before.
        assert_eq!(tell(&mut viewer, &enable(false, ALL)), [150]);
        assert_eq!(tell(&mut viewer, &enable(false, ALL)), [150]);
        viewer.painted(SPOT);
        assert!(!viewer.wants());
        tell(&mut viewer, &ask(true));
        let events = next(&mut viewer, &screen);
        assert_eq!(events, [ServerEvent::Painted(SPOT), ServerEvent::UpdateEnd]);
    }

    #[test]
    fn a_viewer_that_was_not_told_of_unasked_updates_gets_none() {
        let mut viewer = Viewer::new(40, 30);
        tell(&mut viewer, &ClientMessage::SetEncodings(encoding::WANTED.to_vec()));
        assert_eq!(tell(&mut viewer, &enable(true, ALL)), [150]);
        assert!(!viewer.wants());
    }

    #[test]
    fn many_updates_are_under_way_at_once_but_no_more_than_the_bound() {
        let (mut viewer, screen) = viewer(&encoding::CONTINUOUS);
        // The first update is under way.
        assert_eq!(updates(&mut viewer, &screen), MAX_UNDER_WAY - 1);
        tell(&mut viewer, &fence(1, &10_u32.to_be_bytes()));
        assert_eq!(updates(&mut viewer, &screen), 10);
        // Answers to fences that were not sent, were answered, or have no number change nothing.
        for number in [10, 9, 0, MAX_UNDER_WAY + 11, u32::MAX] {
            tell(&mut viewer, &fence(1, &number.to_be_bytes()));
        }
        tell(&mut viewer, &fence(1, b""));
        assert_eq!(updates(&mut viewer, &screen), 0);
        // Lost pixels are sent all the same.
        tell(&mut viewer, &ClientMessage::UpdateRequest { incremental: false, rect: SPOT });
        assert_eq!(updates(&mut viewer, &screen), 1);
    }

    #[test]
    fn a_viewer_without_fences_gets_what_its_connection_carries() {
        let (mut viewer, screen) = viewer(&[encoding::CONTINUOUS_UPDATES]);
        assert_eq!(updates(&mut viewer, &screen), 3 * MAX_UNDER_WAY);
    }

    #[test]
    fn a_new_size_comes_before_the_pixels_that_are_in_it() {
        let encodings = [&encoding::CONTINUOUS[..], &[encoding::DESKTOP_SIZE]].concat();
        let (mut viewer, mut screen) = viewer(&encodings);
        screen.resize(20, 60).unwrap();
        viewer.resized(20, 60).unwrap();
        let size = ServerEvent::Resized { width: 20, height: 60 };
        assert_eq!(next(&mut viewer, &screen)[..2], [size, ServerEvent::UpdateEnd]);
        let mut out = Vec::new();
        viewer.update(&screen, &mut out);
        let mut shown = Framebuffer::new(20, 60).unwrap();
        // Until the viewer names another part.
        assert_eq!(decode(&out, &mut shown)[0], ServerEvent::Painted(Rect::new(0, 0, 20, 30)));
        assert!(!viewer.wants());
        tell(&mut viewer, &enable(true, Rect::new(0, 0, 20, 60)));
        assert!(viewer.wants());
    }

    #[test]
    fn fences_are_answered_before_what_is_behind_them() {
        let mut viewer = Viewer::new(40, 30);
        let answer = |flags, payload: &[u8]| {
            vec![ServerEvent::Fence(Fence { flags, payload: Bytes::copy_from_slice(payload) })]
        };
        let told = tell(&mut viewer, &fence(Fence::REQUEST | 3 | 1 << 9, b"now"));
        assert_eq!(understood(&told), answer(3, b"now"));
        // The answer comes before all that the next message affects, and behind all that it does not affect.
        assert!(tell(&mut viewer, &fence(Fence::REQUEST | Fence::SYNC_NEXT, b"then")).is_empty());
        let told = tell(&mut viewer, &ClientMessage::SetPixelFormat(PixelFormat::RGB32));
        assert_eq!(understood(&told), answer(Fence::SYNC_NEXT, b"then"));
        assert!(tell(&mut viewer, &ClientMessage::SetPixelFormat(PixelFormat::RGB32)).is_empty());
    }
}
