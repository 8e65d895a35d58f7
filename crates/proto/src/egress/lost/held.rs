//! Bare data held back by the loss reaction.

use crate::recovery::token::StreamToken;
use crate::work;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// The most frames of bare data that are held back at once; further frames are sent again immediately.
pub const MAX_HELD_FRAMES: usize = 1024;
/// How many held frames are looked at after each packet, in turn, to see whether they have arrived.
const SWEEP: usize = 4;

/// Lost frames that wait for their release time or a late acknowledgement. The work for each packet does not
/// depend on the number of frames.
#[derive(Debug, Default)]
pub struct HeldFrames {
    /// By number, in the order in which they were lost.
    frames: BTreeMap<u64, (Instant, StreamToken)>,
    /// The time at which each frame is released.
    due: BTreeSet<(Instant, u64)>,
    /// The number of the next frame.
    next: u64,
    /// The first frame of the next sweep.
    swept: u64,
}

impl HeldFrames {
    /// Holds a frame; returns false if there is no room for it.
    pub fn hold(&mut self, until: Instant, frame: StreamToken) -> bool {
        let fits = self.frames.len() < MAX_HELD_FRAMES;
        if fits {
            self.frames.insert(self.next, (until, frame));
            self.due.insert((until, self.next));
            self.next += 1;
        }
        fits
    }

    /// Looks at the next few frames and forgets those that are no longer `wanted`. Later calls look at the
    /// remaining frames.
    pub fn sweep(&mut self, wanted: impl Fn(&StreamToken) -> bool) {
        let mut few = [None; SWEEP];
        let all = self.frames.range(self.swept..).chain(self.frames.range(..self.swept));
        for (slot, (number, (until, frame))) in few.iter_mut().zip(all) {
            work::steps(1);
            *slot = Some((*until, *number, wanted(frame)));
        }
        for (until, number, wanted) in few.into_iter().flatten() {
            self.swept = number + 1;
            if !wanted {
                self.frames.remove(&number);
                self.due.remove(&(until, number));
            }
        }
    }

    /// When the next frame is released.
    pub fn next(&self) -> Option<Instant> {
        self.due.first().map(|(until, _)| *until)
    }

    /// Takes the frames that are due, in the order in which they were lost.
    pub fn take_due(&mut self, now: Instant) -> impl Iterator<Item = StreamToken> + use<> {
        let mut due = BTreeMap::new();
        while let Some((_, number)) = self.due.first().copied().filter(|(until, _)| *until <= now) {
            work::steps(1);
            self.due.pop_first();
            due.extend(self.frames.remove(&number).map(|(_, frame)| (number, frame)));
        }
        due.into_values()
    }

    /// Whether no frame is held.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// How many frames are held.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.frames.len()
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
    fn what_arrived_is_forgotten_after_some_packets_and_each_looks_at_few() {
        let now = Instant::now();
        let mut held = HeldFrames::default();
        (0..1000).for_each(|offset| assert!(held.hold(now, frame(offset))));
        work::take_steps();
        held.sweep(|_| true);
        assert_eq!((work::take_steps(), held.len()), (SWEEP as u64, 1000));
        for _ in 0..1000 / SWEEP {
            held.sweep(|frame| frame.offset % 3 == 0);
        }
        assert_eq!(held.len(), 334);
        assert!(held.take_due(now).map(|frame| frame.offset).eq((0..1000).step_by(3)));
        assert!(held.is_empty() && held.next().is_none());
        held.sweep(|_| false);
    }

    #[test]
    fn a_flood_of_losses_is_not_all_held() {
        let now = Instant::now();
        let mut held = HeldFrames::default();
        let taken = (0..10_000).filter(|offset| held.hold(now, frame(*offset))).count();
        assert_eq!(taken, MAX_HELD_FRAMES);
    }
}
