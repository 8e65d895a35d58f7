//! Which stream sends next: the stream that has sent the fewest bytes.

use crate::tally::Tally;
use std::collections::{BTreeMap, BTreeSet};
use sutura::policy::{Grant, Scheduler, SchedulerFactory, StreamKey};
use sutura::{Priority, Urgency};

/// Of the most urgent streams, the stream that has sent the fewest bytes goes first. So a short stream is
/// done early, even beside long streams.
#[derive(Debug, Clone, Default)]
pub struct LeastSentFirst {
    /// Bytes for which streams were charged.
    pub charged: Tally,
}

impl SchedulerFactory for LeastSentFirst {
    fn name(&self) -> &str {
        "least-sent-first"
    }

    fn build(&self) -> Box<dyn Scheduler> {
        let charged = self.charged.clone();
        Box::new(Streams { all: BTreeMap::new(), active: BTreeSet::new(), charged })
    }
}

/// The streams of a connection.
#[derive(Debug)]
struct Streams {
    all: BTreeMap<StreamKey, Stream>,
    /// The active streams; the first goes next.
    active: BTreeSet<Rank>,
    charged: Tally,
}

/// The streams that carry the protocol have the smallest urgency, `Urgency::CONTROL`, and so go before all
/// other streams. The key makes the order of streams with equal rank the same every time.
type Rank = (Urgency, u64, StreamKey);

#[derive(Debug, Default)]
struct Stream {
    urgency: Urgency,
    sent: u64,
    active: bool,
}

impl Stream {
    fn rank(&self, key: StreamKey) -> Rank {
        (self.urgency, self.sent, key)
    }
}

impl Streams {
    /// Changes a stream and moves it to its new place in the order. A stream that was not inserted is
    /// ignored.
    fn change(&mut self, key: StreamKey, change: impl FnOnce(&mut Stream)) {
        let Some(stream) = self.all.get_mut(&key) else { return };
        self.active.remove(&stream.rank(key));
        change(stream);
        if stream.active {
            self.active.insert(stream.rank(key));
        }
    }
}

impl Scheduler for Streams {
    fn insert(&mut self, key: StreamKey, priority: Priority) {
        self.all.entry(key).or_default();
        self.reprioritize(key, priority);
    }

    fn remove(&mut self, key: StreamKey) {
        self.deactivate(key);
        self.all.remove(&key);
    }

    fn reprioritize(&mut self, key: StreamKey, priority: Priority) {
        self.change(key, |stream| stream.urgency = priority.urgency);
    }

    fn activate(&mut self, key: StreamKey) {
        self.change(key, |stream| stream.active = true);
    }

    fn deactivate(&mut self, key: StreamKey) {
        self.change(key, |stream| stream.active = false);
    }

    // A pure query: the order changes only when the bytes are charged.
    fn next(&self, room: usize) -> Option<Grant> {
        let (_, _, stream) = *self.active.first()?;
        (room > 0).then_some(Grant { stream, bytes: room })
    }

    fn charge(&mut self, key: StreamKey, bytes: usize) {
        self.charged.add(bytes as u64);
        self.change(key, |stream| stream.sent = stream.sent.saturating_add(bytes as u64));
    }

    fn is_empty(&self) -> bool {
        self.active.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_contract() {
        sutura::conformance::scheduler(&LeastSentFirst::default());
    }

    #[test]
    fn a_short_stream_overtakes_a_long_one() {
        let mut scheduler = LeastSentFirst::default().build();
        let next = |scheduler: &dyn Scheduler| scheduler.next(1200).map(|grant| grant.stream);
        scheduler.insert(0, Priority::default());
        scheduler.activate(0);
        scheduler.charge(0, 5000);
        scheduler.insert(4, Priority::default());
        scheduler.activate(4);
        assert_eq!(next(&*scheduler), Some(4));
        scheduler.charge(4, 6000);
        assert_eq!(next(&*scheduler), Some(0));
    }
}
