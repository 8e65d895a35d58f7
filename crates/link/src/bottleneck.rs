//! The queue in front of a link.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

use crate::ParseError;
use crate::codel::Codel;
use crate::line::{Line, work};
use crate::red::Red;
use crate::text::{BYTE_UNITS, BytesText, parse_quantity};

/// The queue for packets that arrive faster than the link can send them. Parses and prints as
/// `100p` (packets), `187500b` or `187.5kb` (bytes), `policer:30kb`, `codel:200kb` or `red:60kb`.
///
/// A queue holds the waiting packets, but not the one that is being sent. Sizes include the
/// overhead of the link. A packet that finds no room is dropped; managed queues drop others before that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Queue {
    /// Room for this many packets.
    Packets(u64),
    /// Room for this many bytes.
    Bytes(u64),
    /// No queue, but a token bucket of this many bytes, full at first, that fills at the rate of the
    /// link: a policer. A packet passes at once if there are tokens for all of it, and is dropped
    /// otherwise.
    Policer(u64),
    /// Room for this many bytes, and controlled delay (CoDel, RFC 8289) with its usual 5 and 100 ms.
    Codel(u64),
    /// Room for this many bytes, and random early detection (RED): drops begin when a sixth of the room is
    /// taken on average, and reach 10 % of packets at half of it.
    Red(u64),
}

const POLICER: &str = "policer:";
const CODEL: &str = "codel:";
const RED: &str = "red:";

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
            Self::Bytes(limit) => write!(f, "{}", BytesText(limit)),
            Self::Policer(depth) => write!(f, "{POLICER}{}", BytesText(depth)),
            Self::Codel(limit) => write!(f, "{CODEL}{}", BytesText(limit)),
            Self::Red(limit) => write!(f, "{RED}{}", BytesText(limit)),
        }
    }
}

impl FromStr for Queue {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let sized = |prefix: &str| {
            let size = text.strip_prefix(prefix)?;
            Some(parse_quantity("queue", size, BYTE_UNITS))
        };
        if let Some(depth) = sized(POLICER) {
            return depth.map(Self::Policer);
        }
        if let Some(limit) = sized(CODEL) {
            return limit.map(Self::Codel);
        }
        if let Some(limit) = sized(RED) {
            return limit.map(Self::Red);
        }
        let units = &[BYTE_UNITS, &[("p", 1)]].concat();
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
    /// The size of the waiting packets in bytes, including the overhead of the link.
    pub bytes: u64,
}

/// How a packet passes the queue. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passage {
    /// How long it waits before it begins to be sent.
    pub(crate) queued: u64,
    /// When the packet has been sent.
    pub(crate) sent_at: u64,
}

/// Sends packets one after another. Times are in nanoseconds and never decrease.
#[derive(Clone, Debug)]
pub(crate) struct Bottleneck {
    line: Line,
    queue: Queue,
    codel: Codel,
    red: Red,
    /// When each waiting packet starts to be sent, and its size.
    waiting: VecDeque<(u64, u64)>,
    backlog: Backlog,
}

impl Bottleneck {
    /// `seed` is that of the link.
    pub(crate) fn new(line: Line, queue: Queue, seed: u64) -> Self {
        let (waiting, backlog) = (VecDeque::new(), Backlog::default());
        Self { line, queue, codel: Codel::default(), red: Red::new(seed), waiting, backlog }
    }

    /// How a packet of `size` bytes that arrives now passes; `None` if it is dropped.
    pub(crate) fn accept(&mut self, now: u64, size: u64) -> Option<Passage> {
        // Packets without size would fit into every queue, however long.
        let size = size.max(1);
        let Some(sends) = self.line.time_of(now, size) else {
            return Some(Passage { queued: 0, sent_at: now });
        };
        let busy = now < self.line.sent_at();
        let idle = now.saturating_sub(self.line.sent_at()) / sends.max(1);
        let begins = self.line.begins(now);
        let waiting = self.backlog(now);
        let (waits, admitted) = match self.queue {
            Queue::Packets(limit) => (busy, !busy || waiting.packets < limit),
            Queue::Bytes(limit) | Queue::Codel(limit) | Queue::Red(limit) => {
                (busy, !busy || waiting.bytes.saturating_add(size) <= limit)
            }
            Queue::Policer(depth) => (false, self.line.work_left(now) + work(size) <= work(depth)),
        };
        let early = match self.queue {
            Queue::Red(limit) => self.red.drops(waiting.bytes, limit, idle),
            _ => false,
        };
        if !admitted || early {
            return None;
        }
        if waits {
            self.waiting.push_back((begins, size));
            self.backlog.packets += 1;
            self.backlog.bytes = self.backlog.bytes.saturating_add(size);
        }
        if matches!(self.queue, Queue::Codel(_)) && self.codel.drops(begins, begins - now, sends) {
            return None;
        }
        self.line.send(now, size);
        Some(match self.queue {
            Queue::Policer(_) => Passage { queued: 0, sent_at: now },
            _ => Passage { queued: begins - now, sent_at: self.line.sent_at() },
        })
    }

    /// The packets that wait at `now`.
    pub(crate) fn backlog(&mut self, now: u64) -> Backlog {
        while let Some((_, size)) = self.waiting.pop_front_if(|(start, _)| *start <= now) {
            self.backlog.packets -= 1;
            self.backlog.bytes = self.backlog.bytes.saturating_sub(size);
        }
        self.backlog
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::step::Course;
    use crate::{Rate, Step};

    fn bottleneck(bits: u64, steps: &[&str], queue: Queue) -> Bottleneck {
        let steps: Vec<Step> = steps.iter().map(|step| step.parse().unwrap()).collect();
        let rate = Course::new(Rate::from_bits_per_second(bits), &steps, |s| s.rate.map(Some));
        Bottleneck::new(Line::new(None, rate), queue, 1)
    }

    fn sent_at(link: &mut Bottleneck, now: u64, size: u64) -> Option<u64> {
        link.accept(now, size).map(|passage| passage.sent_at)
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
            ("policer:0.5mb", Queue::Policer(500_000), "policer:500kb"),
            ("codel:1.5kb", Queue::Codel(1500), "codel:1500b"),
            ("red:60kb", Queue::Red(60_000), "red:60kb"),
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
        let mut link = bottleneck(3, &[], Queue::Packets(u64::MAX));
        for n in 1..=1_000_000u128 {
            let exact = (n * 8 * 1_000_000_000).div_ceil(3);
            assert_eq!(sent_at(&mut link, 0, 1).map(u128::from), Some(exact));
        }
    }

    #[test]
    fn an_idle_link_sends_at_once_and_saves_nothing_up() {
        let mut link = bottleneck(8_000_000_000, &[], Queue::Packets(0));
        assert_eq!(sent_at(&mut link, 0, 1000), Some(1000));
        assert_eq!(sent_at(&mut link, 999, 1000), None);
        assert_eq!(sent_at(&mut link, 1000, 1000), Some(2000));
        assert_eq!(sent_at(&mut link, 50_000, 1000), Some(51_000));
        assert_eq!(sent_at(&mut link, 50_001, 1000), None);
    }

    #[test]
    fn the_limit_in_bytes_counts_what_waits_and_not_what_is_being_sent() {
        let mut link = bottleneck(8_000_000_000, &[], Queue::Bytes(2500));
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
        let mut link = bottleneck(1, &[], Queue::Bytes(50));
        assert_eq!((0..1000).filter(|_| link.accept(0, 0).is_some()).count(), 51);
        assert_eq!(link.backlog(0), Backlog { packets: 50, bytes: 50 });
    }

    #[test]
    fn a_packet_waits_until_those_before_it_are_sent() {
        let mut link = bottleneck(8_000_000_000, &[], Queue::Packets(9));
        let queued = |link: &mut Bottleneck, now| link.accept(now, 1000).map(|p| p.queued);
        assert_eq!(
            [0, 0, 500, 9000].map(|now| queued(&mut link, now)),
            [0, 1000, 1500, 0].map(Some)
        );
        let mut policer = bottleneck(8_000_000_000, &[], Queue::Policer(5000));
        assert_eq!([0, 0, 500].map(|now| queued(&mut policer, now)), [Some(0); 3]);
    }

    #[test]
    fn the_rate_changes_for_what_waits_and_for_what_is_being_sent() {
        // A byte a nanosecond, then half as many, then four times as many.
        let steps = ["1500ns,rate=4gbit", "3500ns,rate=16gbit"];
        let mut link = bottleneck(8_000_000_000, &steps, Queue::Packets(9));
        // The second packet is half sent when the rate falls, and the third when it rises.
        let expected = [1000, 2500, 3750, 4250].map(Some);
        assert_eq!([0, 0, 0, 0].map(|now| sent_at(&mut link, now, 1000)), expected);
        assert_eq!(sent_at(&mut link, 9000, 1000), Some(9500));
    }

    #[test]
    fn no_nanosecond_is_lost_at_a_change_of_rate() {
        // 3 bit/s for a second and two thirds, which is five bits, then 5 bit/s.
        let mut link = bottleneck(3, &["1666666667ns,rate=5bit"], Queue::Packets(u64::MAX));
        // One byte: 5 bits and 1e-9 are sent before the change, the rest takes 3 / 5 s.
        assert_eq!(sent_at(&mut link, 0, 1), Some(2_266_666_667));
        for n in 2..=1000 {
            let exact = 2_266_666_667 + (n - 1) * 1_600_000_000;
            assert!(sent_at(&mut link, 0, 1).is_some_and(|at| at.abs_diff(exact) <= 1));
        }
    }

    #[test]
    fn a_policer_passes_what_its_bucket_holds_and_drops_the_rest() {
        let mut policer = bottleneck(8_000_000_000, &[], Queue::Policer(2500));
        let passed = [0, 0, 0, 499, 500, 1499, 1500].map(|now| sent_at(&mut policer, now, 1000));
        assert_eq!(passed, [Some(0), Some(0), None, None, Some(500), None, Some(1500)]);
        // A long silence fills the bucket, but not beyond its brim.
        let passed = [0; 3].map(|_| sent_at(&mut policer, 1_000_000, 1000).is_some());
        assert_eq!(passed, [true, true, false]);
        assert_eq!(policer.backlog(1_000_000), Backlog::default());
        assert_eq!(sent_at(&mut policer, 9_000_000, 2501), None);
    }

    #[test]
    fn a_policer_fills_at_the_rate_of_the_time() {
        let mut policer = bottleneck(8_000_000_000, &["1us,rate=4gbit"], Queue::Policer(1000));
        let passed = [0, 999, 1000, 2999, 3000].map(|now| sent_at(&mut policer, now, 1000));
        assert_eq!(passed, [Some(0), None, Some(1000), None, Some(3000)]);
    }

    /// How long the last of 20,000 packets of 1000 bytes waits, in milliseconds, if one comes every 0.98 ms and
    /// the link takes a millisecond for each; and how many of them pass.
    fn overloaded(queue: &str) -> (u64, usize) {
        let mut link = bottleneck(8_000_000, &[], queue.parse().unwrap());
        let passed = (0..20_000).filter_map(|n| link.accept(n * 980_000, 1000));
        let waits: Vec<u64> = passed.map(|passage| passage.queued / 1_000_000).collect();
        (waits.last().copied().unwrap_or_default(), waits.len())
    }

    #[test]
    fn managed_queues_stay_shorter_than_their_room() {
        let [tail, codel, red] = ["100kb", "codel:100kb", "red:100kb"].map(overloaded);
        assert!((95..=100).contains(&tail.0), "{tail:?}");
        assert!(codel.0 < 60 && red.0 < 60, "{codel:?} {red:?}");
        // What passes is what the link carries, whatever the queue.
        for (_, passed) in [tail, codel, red] {
            assert!((19_500..19_800).contains(&passed), "{passed}");
        }
    }

    #[test]
    fn what_is_dropped_at_the_head_takes_no_time_on_the_link() {
        let mut link = bottleneck(8_000_000, &[], Queue::Codel(u64::MAX));
        let sent: Vec<u64> = (0..500).filter_map(|_| sent_at(&mut link, 0, 1000)).collect();
        assert!(sent.len() < 500);
        assert!(sent.iter().zip(1..).all(|(at, n)| *at == n * 1_000_000), "{sent:?}");
    }

    #[test]
    fn extremes_saturate() {
        let mut link = bottleneck(1, &[], Queue::Bytes(u64::MAX));
        for _ in 0..3 {
            assert_eq!(sent_at(&mut link, 0, u64::MAX), Some(u64::MAX));
        }
        let line = Line::new(None, Course::new(None, &[], |_| None));
        let mut link = Bottleneck::new(line, Queue::Packets(0), 1);
        assert_eq!(sent_at(&mut link, 5, u64::MAX), Some(5));
    }
}
