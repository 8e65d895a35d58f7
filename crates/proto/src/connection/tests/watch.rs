//! What an end of a pair observes.

use super::pair::Pair;
use crate::wire_format::{Carrier, Frame, FrameIter};
use crate::{Observation, Observer, Side, SpaceId};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// What was found in the observations so far.
pub(super) type Found<T> = Arc<Mutex<Vec<T>>>;

struct Watch<T, F> {
    found: Found<T>,
    pick: F,
}

impl<T: Send, F: FnMut(&Observation<'_>, &mut Vec<T>) + Send> Observer for Watch<T, F> {
    fn observe(&mut self, _: Instant, observation: &Observation<'_>) {
        (self.pick)(observation, &mut self.found.lock().unwrap());
    }
}

impl Pair {
    /// Observes an end from now on, and keeps what `pick` adds.
    pub(super) fn watch<T: Send + 'static>(
        &mut self,
        side: Side,
        pick: impl FnMut(&Observation<'_>, &mut Vec<T>) + Send + 'static,
    ) -> Found<T> {
        let (now, found) = (self.now, Found::default());
        let watch = Watch { found: Arc::clone(&found), pick };
        self.end(side).conn().set_observer(now, Box::new(watch));
        found
    }

    /// Observes the frames of the 1-RTT packets that an end receives, and keeps what `pick` makes of them.
    pub(super) fn watch_frames<T: Send + 'static>(
        &mut self,
        side: Side,
        pick: impl Fn(&Frame<'_>) -> Option<T> + Send + 'static,
    ) -> Found<T> {
        self.watch(side, move |observation, found| {
            if let Observation::PacketReceived { space: SpaceId::Data, payload, .. } = observation {
                let frames = FrameIter::new(payload, Carrier::OneRtt).flatten();
                found.extend(frames.filter_map(|frame| pick(&frame)));
            }
        })
    }
}
