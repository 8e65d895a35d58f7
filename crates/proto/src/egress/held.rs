//! Bare data held back by the loss reaction.

use crate::recovery::token::StreamToken;
use std::time::Instant;

/// The most frames of bare data that are held back at once; any more are sent again immediately.
pub const MAX_HELD_FRAMES: usize = 1024;

/// Lost frames that wait for their release time or a late acknowledgement.
#[derive(Debug, Default)]
pub struct HeldFrames(Vec<(Instant, StreamToken)>);

impl HeldFrames {
    /// Holds a frame; returns false if there is no room for it.
    pub fn hold(&mut self, until: Instant, frame: StreamToken) -> bool {
        let fits = self.0.len() < MAX_HELD_FRAMES;
        if fits {
            self.0.push((until, frame));
        }
        fits
    }

    /// Forgets the frames that are not `wanted` any more.
    pub fn retain(&mut self, wanted: impl Fn(&StreamToken) -> bool) {
        self.0.retain(|(_, frame)| wanted(frame));
    }

    /// When the next frame is released.
    pub fn next(&self) -> Option<Instant> {
        self.0.iter().map(|(until, _)| *until).min()
    }

    /// Takes the frames that are due, in the order in which they were lost.
    pub fn take_due(&mut self, now: Instant) -> impl Iterator<Item = StreamToken> + use<> {
        let (due, wait): (Vec<_>, Vec<_>) = self.0.drain(..).partition(|(until, _)| *until <= now);
        self.0 = wait;
        due.into_iter().map(|(_, frame)| frame)
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::StreamId;
    use std::time::Duration;

    fn frame(offset: u64) -> StreamToken {
        StreamToken { id: StreamId(3), offset, len: 1, fin: false, symbol: None }
    }

    #[test]
    fn frames_are_let_go_when_their_time_comes_in_the_order_of_loss() {
        let now = Instant::now();
        let at = |ms| now + Duration::from_millis(ms);
        let mut held = HeldFrames::default();
        for (until, offset) in [(20, 0), (10, 1), (30, 2), (20, 3)] {
            assert!(held.hold(at(until), frame(offset)));
        }
        assert_eq!(held.next(), Some(at(10)));
        let due: Vec<_> = held.take_due(at(20)).map(|frame| frame.offset).collect();
        assert_eq!(due, [0, 1, 3]);
        assert_eq!((held.next(), held.is_empty()), (Some(at(30)), false));
        assert_eq!(held.take_due(at(30)).count(), 1);
        assert!(held.is_empty());
    }

    #[test]
    fn a_flood_of_losses_is_not_all_held() {
        let now = Instant::now();
        let mut held = HeldFrames::default();
        let taken = (0..10_000).filter(|offset| held.hold(now, frame(*offset))).count();
        assert_eq!(taken, MAX_HELD_FRAMES);
    }
}
