//! The rate of a link, and the queue in front of it.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

use crate::text::{parse_quantity, write_quantity};
use crate::{ParseError, Rate};

/// The queue for packets that arrive faster than the link can send them. Parses and prints as
/// `100p` (packets), or `187500b` or `187.5kb` (bytes).
///
/// A queue holds the waiting packets, but not the one that is being sent. Sizes include the
/// overhead of the link. Both variants are drop-tail: a packet that finds no room is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Queue {
    /// Room for this many packets.
    Packets(u64),
    /// Room for this many bytes.
    Bytes(u64),
}

const UNITS: &[(&str, u64)] = &[("mb", 1_000_000), ("kb", 1_000), ("b", 1)];

impl Queue {
    fn has_room(self, waiting: Backlog, size: u64) -> bool {
        match self {
            Self::Packets(limit) => waiting.packets < limit,
            Self::Bytes(limit) => waiting.bytes.saturating_add(size) <= limit,
        }
    }
}

impl Default for Queue {
    /// 1000 packets.
    fn default() -> Self {
        Self::Packets(1000)
    }
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Packets(limit) => write!(f, "{limit}p"),
            Self::Bytes(limit) => write_quantity(f, limit, UNITS, "b"),
        }
    }
}

impl FromStr for Queue {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let units = &[UNITS, &[("p", 1)]].concat();
        let limit = parse_quantity("queue", text, units)?;
        let packets = text.ends_with(['p', 'P']);
        Ok(if packets { Self::Packets(limit) } else { Self::Bytes(limit) })
    }
}

/// The packets that wait in front of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Backlog {
    /// Number of waiting packets.
    pub packets: u64,
    /// Their size in bytes, including the overhead of the link.
    pub bytes: u64,
}

/// Sends packets one after another. Times are in nanoseconds and never decrease.
#[derive(Clone, Debug)]
pub(crate) struct Bottleneck {
    rate: Option<Rate>,
    queue: Queue,
    /// When the last accepted packet will have been sent: `free_at` nanoseconds plus `remainder` /
    /// rate of a nanosecond. Without the remainder, rounding would change the rate.
    free_at: u64,
    remainder: u64,
    /// When each waiting packet starts to be sent, and its size.
    waiting: VecDeque<(u64, u64)>,
    backlog: Backlog,
}

impl Bottleneck {
    pub(crate) fn new(rate: Option<Rate>, queue: Queue) -> Self {
        let (waiting, backlog) = (VecDeque::new(), Backlog::default());
        Self { rate, queue, free_at: 0, remainder: 0, waiting, backlog }
    }

    /// When a packet of `size` bytes that arrives now will have been sent; `None` if it is dropped.
    pub(crate) fn accept(&mut self, now: u64, size: u64) -> Option<u64> {
        let Some(rate) = self.rate else {
            return Some(now);
        };
        // Packets without size would fit into every queue, however long.
        let size = size.max(1);
        let backlog = self.backlog(now);
        if self.is_busy(now) {
            if !self.queue.has_room(backlog, size) {
                return None;
            }
            self.waiting.push_back((self.free_at, size));
            self.backlog.packets += 1;
            self.backlog.bytes = self.backlog.bytes.saturating_add(size);
        } else {
            self.free_at = now;
            self.remainder = 0;
        }
        let rate = u128::from(rate.bits_per_second());
        let work = u128::from(size) * 8 * 1_000_000_000 + u128::from(self.remainder);
        let time = u64::try_from(work / rate).unwrap_or(u64::MAX);
        self.free_at = self.free_at.saturating_add(time);
        self.remainder = (work % rate) as u64;
        Some(self.sent_at())
    }

    /// The packets that wait at `now`.
    pub(crate) fn backlog(&mut self, now: u64) -> Backlog {
        while let Some((_, size)) = self.waiting.pop_front_if(|(start, _)| *start <= now) {
            self.backlog.packets -= 1;
            self.backlog.bytes = self.backlog.bytes.saturating_sub(size);
        }
        self.backlog
    }

    fn is_busy(&self, now: u64) -> bool {
        now < self.sent_at()
    }

    /// The first whole nanosecond at which everything is sent.
    fn sent_at(&self) -> u64 {
        self.free_at.saturating_add(u64::from(self.remainder > 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(bits: u64) -> Option<Rate> {
        Rate::from_bits_per_second(bits)
    }

    #[test]
    fn queues_are_read_and_written() {
        for (text, queue, written) in [
            ("100p", Queue::Packets(100), "100p"),
            ("0p", Queue::Packets(0), "0p"),
            ("187500b", Queue::Bytes(187_500), "187500b"),
            ("187.5kB", Queue::Bytes(187_500), "187500b"),
            ("2MB", Queue::Bytes(2_000_000), "2mb"),
            ("0b", Queue::Bytes(0), "0b"),
        ] {
            assert_eq!(text.parse(), Ok(queue));
            assert_eq!(queue.to_string(), written);
            assert_eq!(written.parse(), Ok(queue));
        }
        let error = "100".parse::<Queue>().unwrap_err().to_string();
        assert_eq!(error, "queue `100`: expected a number and a unit (mb, kb, b, p)");
    }

    #[test]
    fn no_nanosecond_is_lost_over_a_million_packets() {
        // 8 bits at 3 bit/s take 2.67 s each.
        let mut link = Bottleneck::new(rate(3), Queue::Packets(u64::MAX));
        for n in 1..=1_000_000u128 {
            let exact = (n * 8 * 1_000_000_000).div_ceil(3);
            assert_eq!(link.accept(0, 1).map(u128::from), Some(exact));
        }
    }

    #[test]
    fn an_idle_link_sends_at_once_and_saves_nothing_up() {
        let mut link = Bottleneck::new(rate(8_000_000_000), Queue::Packets(0));
        assert_eq!(link.accept(0, 1000), Some(1000));
        assert_eq!(link.accept(999, 1000), None);
        assert_eq!(link.accept(1000, 1000), Some(2000));
        assert_eq!(link.accept(50_000, 1000), Some(51_000));
        assert_eq!(link.accept(50_001, 1000), None);
    }

    #[test]
    fn the_limit_in_bytes_counts_what_waits_and_not_what_is_being_sent() {
        let mut link = Bottleneck::new(rate(8_000_000_000), Queue::Bytes(2500));
        let accepted = |link: &mut Bottleneck, now, size| link.accept(now, size).is_some();
        assert!(accepted(&mut link, 0, 1000));
        assert!(accepted(&mut link, 0, 1000));
        assert!(accepted(&mut link, 0, 1000));
        assert!(!accepted(&mut link, 0, 501));
        assert!(accepted(&mut link, 0, 500));
        assert_eq!(link.backlog(0), Backlog { packets: 3, bytes: 2500 });
        assert!(!accepted(&mut link, 999, 1));
        assert_eq!(link.backlog(1000), Backlog { packets: 2, bytes: 1500 });
        assert!(accepted(&mut link, 1000, 1000));
        assert_eq!(link.backlog(1_000_000), Backlog::default());
    }

    #[test]
    fn empty_packets_do_not_wait_without_bound() {
        let mut link = Bottleneck::new(rate(1), Queue::Bytes(50));
        assert_eq!((0..1000).filter(|_| link.accept(0, 0).is_some()).count(), 51);
        assert_eq!(link.backlog(0), Backlog { packets: 50, bytes: 50 });
    }

    #[test]
    fn extremes_saturate() {
        let mut link = Bottleneck::new(rate(1), Queue::Bytes(u64::MAX));
        for _ in 0..3 {
            assert_eq!(link.accept(0, u64::MAX), Some(u64::MAX));
        }
        let mut link = Bottleneck::new(None, Queue::Packets(0));
        assert_eq!(link.accept(5, u64::MAX), Some(5));
    }
}
