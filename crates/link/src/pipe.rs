//! A link together with the packets in transit.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::{Delivery, Fate, Link, LinkConfig};

/// A packet that comes out of a [`Pipe`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Arrival<T> {
    /// The arrival time, since the link came up.
    pub at: Duration,
    /// The payload that was sent.
    pub payload: T,
    /// Whether it is marked with ECN-CE, if it is ECN-capable.
    pub marked: bool,
    /// If it is damaged, the seed for [`corrupt`](crate::corrupt()).
    pub corrupt: Option<u64>,
}

/// A [`Link`] and the packets in transit on it, in order of arrival. Packets that arrive at the
/// same time are in the order in which they were sent.
///
/// `T` is a packet, or any value that identifies a packet. It is cloned when the link duplicates the packet,
/// and dropped when the link drops it.
#[derive(Clone, Debug)]
pub struct Pipe<T> {
    link: Link,
    /// The packets by arrival time and sequence number.
    pending: BTreeMap<(Duration, u64), Arrival<T>>,
    sequence: u64,
}

impl<T> Pipe<T> {
    /// Maximum number of packets in transit, so that a link without a rate, or with a very long
    /// delay, does not use up all memory. Further packets are dropped and counted as overflow.
    pub const MAX_PENDING: usize = 1 << 17;

    /// An empty pipe over a link that comes up at time zero.
    #[must_use]
    pub fn new(config: &LinkConfig, seed: u64) -> Self {
        Self { link: Link::new(config, seed), pending: BTreeMap::new(), sequence: 0 }
    }

    /// Sends a packet of `size` bytes; see [`Link::send`]. [`pop`](Self::pop) returns it as often
    /// as it arrives.
    pub fn send(&mut self, now: Duration, size: usize, payload: T) -> Fate
    where
        T: Clone,
    {
        let room = Self::MAX_PENDING.saturating_sub(self.pending.len());
        let fate = self.link.send_within(now, size, room);
        if let Fate::Delivered(deliveries) = fate {
            if let Some(copy) = deliveries.copy {
                self.push(deliveries.original, payload.clone());
                self.push(copy, payload);
            } else {
                self.push(deliveries.original, payload);
            }
        }
        fate
    }

    /// When the next packet arrives; `None` if none is in transit.
    #[must_use]
    pub fn next_time(&self) -> Option<Duration> {
        self.pending.first_key_value().map(|(&(at, _), _)| at)
    }

    /// Takes out the next packet that has arrived by `now`.
    pub fn pop(&mut self, now: Duration) -> Option<Arrival<T>> {
        if self.next_time()? > now {
            return None;
        }
        self.pending.pop_first().map(|(_, arrival)| arrival)
    }

    /// Number of packets in transit, or arrived but not taken out.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// Whether the pipe is empty: no packet is in transit or waits to be taken out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// The link, for its statistics.
    #[must_use]
    pub const fn link(&self) -> &Link {
        &self.link
    }

    fn push(&mut self, Delivery { at, marked, corrupt, .. }: Delivery, payload: T) {
        self.pending.insert((at, self.sequence), Arrival { at, payload, marked, corrupt });
        self.sequence += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DropCause;

    const MS: Duration = Duration::from_millis(1);

    fn pipe<T>(config: &str) -> Pipe<T> {
        Pipe::new(&config.parse().unwrap(), 1)
    }

    #[test]
    fn packets_come_out_when_they_arrive_and_not_before() {
        let mut pipe = pipe("delay=50ms");
        assert_eq!((pipe.next_time(), pipe.pop(100 * MS)), (None, None));
        pipe.send(MS, 100, 'a');
        pipe.send(2 * MS, 100, 'b');
        assert_eq!((pipe.len(), pipe.next_time()), (2, Some(51 * MS)));
        assert_eq!(pipe.pop(51 * MS - Duration::from_nanos(1)), None);
        let arrival = Arrival { at: 51 * MS, payload: 'a', marked: false, corrupt: None };
        assert_eq!(pipe.pop(51 * MS), Some(arrival));
        assert_eq!(pipe.pop(51 * MS), None);
        // However late an arrival is taken out, it has its true time.
        let arrival = Arrival { at: 52 * MS, payload: 'b', marked: false, corrupt: None };
        assert_eq!(pipe.pop(900 * MS), Some(arrival));
        assert!(pipe.is_empty());
    }

    #[test]
    fn packets_that_arrive_together_keep_their_order() {
        let mut pipe = pipe("delay=5ms");
        for n in 0..1000 {
            pipe.send(MS, 100, n);
        }
        let out: Vec<i32> = std::iter::from_fn(|| pipe.pop(6 * MS)).map(|a| a.payload).collect();
        assert_eq!(out, (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn a_duplicate_comes_out_twice_and_a_lost_packet_never() {
        let mut twice = pipe("duplicate=1");
        twice.send(MS, 100, "packet");
        let out: Vec<_> = std::iter::from_fn(|| twice.pop(MS)).map(|a| a.payload).collect();
        assert_eq!(out, ["packet"; 2]);
        let mut never = pipe("loss=bern:1");
        assert_eq!(never.send(MS, 100, ()), Fate::Dropped(DropCause::Loss));
        assert!(never.is_empty());
        assert_eq!(never.link().stats().lost, 1);
    }

    #[test]
    fn a_flood_into_a_link_without_limits_is_bounded() {
        let mut pipe = pipe("delay=3600s duplicate=1");
        let limit = Pipe::<()>::MAX_PENDING;
        for _ in 0..limit {
            pipe.send(MS, 100, ());
        }
        assert_eq!(pipe.len(), limit);
        let stats = *pipe.link().stats();
        assert_eq!(stats.sent + stats.duplicated, stats.overflow + stats.delivered);
        assert_eq!(stats.delivered, limit as u64);
        assert_eq!(pipe.send(MS, 100, ()), Fate::Dropped(DropCause::Overflow));
        // After packets were taken out, there is room again.
        while pipe.pop(4000 * 1000 * MS).is_some() {}
        assert!(matches!(pipe.send(4000 * 1000 * MS, 100, ()), Fate::Delivered(_)));
    }
}
