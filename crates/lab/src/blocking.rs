//! Head-of-line blocking, as Marx 2020, section 3 derives it from what a client received.
//!
//! Over QUIC a stream's bytes wait for those before them on the same stream. Over TCP they would
//! wait for everything sent before them. What was lost shows at the client as a gap in a stream, so
//! TCP's order is taken to be that of arrival, with each gap in front of the frame that disclosed
//! it. A gap was really sent earlier than that, if other streams had their turns in between: this
//! reckons rather too little blocking for TCP.

use std::collections::{BTreeMap, VecDeque};

/// Bytes of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The stream.
    pub stream: u64,
    /// The offset of the first byte.
    pub start: u64,
    /// The offset behind the last byte.
    pub end: u64,
}

/// What a frame brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Bytes beyond all that its stream had.
    New,
    /// Bytes that were missing: sent again, if the network keeps the order.
    Retransmitted,
    /// Nothing.
    Duplicate,
}

/// What a transport handed to its application.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deliveries {
    /// Bytes that were handed over at once, each time. Large ones were held back.
    pub sizes: Vec<u64>,
    /// Bytes that were received some time before they were handed over.
    pub waited: u64,
}

impl Deliveries {
    /// Of `delivered` bytes `received` came just now, if they are among them.
    fn record(&mut self, delivered: u64, received: u64) {
        if delivered > 0 {
            self.sizes.push(delivered);
            self.waited += delivered.saturating_sub(received);
        }
    }

    /// The largest number of bytes handed over at once.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.sizes.iter().copied().max().unwrap_or(0)
    }

    /// All bytes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.sizes.iter().sum()
    }

    /// The share of bytes that waited, 0 to 1.
    #[must_use]
    pub fn waited_share(&self) -> f64 {
        if self.total() == 0 { 0.0 } else { self.waited as f64 / self.total() as f64 }
    }
}

/// One stream as received.
#[derive(Clone, Debug, Default)]
struct Stream {
    /// All before this was received.
    next: u64,
    /// What was received beyond: starts and ends, which neither overlap nor touch.
    beyond: BTreeMap<u64, u64>,
    /// Behind the last byte received.
    highest: u64,
}

impl Stream {
    /// Takes bytes; returns how many of them are new.
    fn insert(&mut self, start: u64, end: u64) -> u64 {
        let start = start.max(self.next);
        if start >= end {
            return 0;
        }
        self.highest = self.highest.max(end);
        let mut new = end - start;
        let (mut from, mut to) = (start, end);
        while let Some((&first, &last)) = self.beyond.range(..=to).next_back() {
            if last < from {
                break;
            }
            new -= last.min(end).saturating_sub(first.max(start));
            (from, to) = (from.min(first), to.max(last));
            self.beyond.remove(&first);
        }
        if from == self.next {
            self.next = to;
        } else {
            self.beyond.insert(from, to);
        }
        new
    }

    /// The first byte at `offset` or behind it that is missing.
    fn missing_from(&self, offset: u64) -> u64 {
        if offset < self.next {
            return self.next;
        }
        let range = self.beyond.range(..=offset).next_back();
        range.map_or(offset, |(_, end)| offset.max(*end))
    }
}

/// Follows what is received, and what QUIC and TCP hand over.
#[derive(Clone, Debug, Default)]
pub struct Blocking {
    streams: BTreeMap<u64, Stream>,
    /// What TCP has not handed over, in its order.
    held: VecDeque<Chunk>,
    gaps: u64,
    quic: Deliveries,
    tcp: Deliveries,
}

impl Blocking {
    /// A STREAM frame was received. An empty one is a duplicate.
    pub fn receive(&mut self, chunk: Chunk) -> Kind {
        let stream = self.streams.entry(chunk.stream).or_default();
        let (next, highest) = (stream.next, stream.highest);
        let new = stream.insert(chunk.start, chunk.end);
        if new == 0 {
            return Kind::Duplicate;
        }
        self.quic.record(stream.next - next, new);
        if chunk.start > highest {
            self.gaps += 1;
            self.held.push_back(Chunk { start: highest, end: chunk.start, ..chunk });
        }
        if chunk.end > highest {
            self.held.push_back(Chunk { start: chunk.start.max(highest), ..chunk });
        }
        let released = self.release();
        self.tcp.record(released, new);
        if chunk.start < highest { Kind::Retransmitted } else { Kind::New }
    }

    /// What TCP hands over now, up to the first byte that is missing.
    fn release(&mut self) -> u64 {
        let mut released = 0;
        while let Some(first) = self.held.front_mut() {
            let stream = self.streams.get(&first.stream);
            let until = stream.map_or(0, |s| s.missing_from(first.start)).min(first.end);
            released += until.saturating_sub(first.start);
            if until < first.end {
                first.start = first.start.max(until);
                break;
            }
            self.held.pop_front();
        }
        released
    }

    /// How many gaps there were.
    #[must_use]
    pub const fn gaps(&self) -> u64 {
        self.gaps
    }

    /// What QUIC handed over.
    #[must_use]
    pub const fn quic(&self) -> &Deliveries {
        &self.quic
    }

    /// What TCP would have handed over.
    #[must_use]
    pub const fn tcp(&self) -> &Deliveries {
        &self.tcp
    }

    /// The most that QUIC held back, in relation to the most that TCP would have; `None` without
    /// loss, where nothing was held back (section 3.3).
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        (self.gaps > 0).then(|| self.quic.max() as f64 / self.tcp.max().max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Receives packets of 10 bytes: streams by letters, packets of a stream counted from 0.
    fn receive(packets: &[(char, u64)]) -> (Blocking, Vec<Kind>) {
        let mut blocking = Blocking::default();
        let kinds = packets.iter().map(|&(letter, n)| {
            let (stream, start) = (u64::from(u32::from(letter)), 10 * n);
            blocking.receive(Chunk { stream, start, end: start + 10 })
        });
        let kinds = kinds.collect();
        (blocking, kinds)
    }

    #[test]
    fn turns_block_a_third_of_what_tcp_blocks() {
        // Sent A0 B0 C0 A1 B1 C1 A2 B2 C2; A1 is lost and comes last.
        let order =
            [('A', 0), ('B', 0), ('C', 0), ('B', 1), ('C', 1), ('A', 2), ('B', 2), ('C', 2)];
        let (mut blocking, kinds) = receive(&order);
        assert!(kinds.iter().all(|kind| *kind == Kind::New));
        assert_eq!(blocking.quic().sizes, [10; 7]);
        // The gap shows with A2: what comes from there on waits for it.
        assert_eq!(blocking.tcp().sizes, [10; 5]);
        let a = u64::from(u32::from('A'));
        let kind = blocking.receive(Chunk { stream: a, start: 10, end: 20 });
        assert_eq!(kind, Kind::Retransmitted);
        assert_eq!(blocking.quic().sizes, [10, 10, 10, 10, 10, 10, 10, 20]);
        assert_eq!(blocking.tcp().sizes, [10, 10, 10, 10, 10, 40]);
        assert_eq!((blocking.quic().waited, blocking.tcp().waited), (10, 30));
        assert_eq!((blocking.quic().total(), blocking.tcp().total()), (90, 90));
        assert_eq!((blocking.gaps(), blocking.ratio()), (1, Some(0.5)));
    }

    #[test]
    fn one_stream_after_the_other_blocks_as_tcp_does() {
        let (blocking, _) = receive(&[('A', 0), ('A', 2), ('A', 3), ('A', 1), ('B', 0)]);
        assert_eq!(blocking.quic().sizes, [10, 30, 10]);
        assert_eq!(blocking.tcp(), blocking.quic());
        assert_eq!(blocking.ratio(), Some(1.0));
    }

    #[test]
    fn a_filled_gap_releases_what_is_before_the_next() {
        // A0 and B0 are lost; their gaps show one after the other, and are filled in that order.
        let (blocking, kinds) =
            receive(&[('A', 1), ('C', 0), ('B', 1), ('C', 1), ('A', 0), ('B', 0)]);
        assert_eq!(blocking.quic().sizes, [10, 10, 20, 20]);
        assert_eq!(blocking.tcp().sizes, [30, 30]);
        assert_eq!(kinds[4..], [Kind::Retransmitted; 2]);
        // The other way round the second one releases everything.
        let (blocking, _) = receive(&[('A', 1), ('C', 0), ('B', 1), ('C', 1), ('B', 0), ('A', 0)]);
        assert_eq!(blocking.quic().sizes, [10, 10, 20, 20]);
        assert_eq!(blocking.tcp().sizes, [60]);
    }

    #[test]
    fn a_gap_of_several_packets_is_filled_bit_by_bit() {
        let (blocking, _) = receive(&[('A', 3), ('A', 1), ('A', 0), ('A', 0), ('A', 2)]);
        assert_eq!(blocking.quic().sizes, [20, 20]);
        assert_eq!(blocking.tcp(), blocking.quic());
        assert_eq!(blocking.gaps(), 1);
    }

    #[test]
    fn overlaps_count_once() {
        let mut blocking = Blocking::default();
        let mut receive = |start, end| blocking.receive(Chunk { stream: 0, start, end });
        assert_eq!(receive(0, 0), Kind::Duplicate);
        assert_eq!(receive(5, 10), Kind::New);
        assert_eq!(receive(15, 20), Kind::New);
        assert_eq!(receive(5, 10), Kind::Duplicate);
        assert_eq!(receive(8, 16), Kind::Retransmitted);
        assert_eq!(receive(0, 25), Kind::Retransmitted);
        assert_eq!(receive(0, 25), Kind::Duplicate);
        assert_eq!((blocking.quic().sizes.as_slice(), blocking.quic().waited), (&[25][..], 15));
        assert_eq!(blocking.tcp(), blocking.quic());
    }

    #[test]
    fn without_loss_there_is_no_ratio() {
        let (blocking, _) = receive(&[('A', 0), ('B', 0)]);
        assert_eq!(blocking.ratio(), None);
        assert_eq!(blocking.quic().waited_share(), 0.0);
    }
}
