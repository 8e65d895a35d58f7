//! Whether the queue of the path was empty when a packet passed it.

use crate::arithmetic::nanos;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// A time in nanoseconds. The gauge computes with these at each acknowledgement, because a [`Duration`] takes
/// several times as long to add and to divide.
pub(super) type Nanos = u64;

/// Samples that are kept to judge lost packets by their neighbours.
const MAX_SAMPLES: usize = 128;
/// For how long the extremes of round-trip times and rates are remembered: twice this at most.
pub(super) const MEMORY: Duration = Duration::from_secs(10);
/// Round-trip times that exceed the minimum by up to this share of it still mean an empty queue.
const NOISE_DIVISOR: u64 = 32;
/// So do round-trip times that exceed the minimum by up to this, which is less than two full packets take at
/// 100 Mbit/s.
const NOISE: Nanos = 200_000;
/// Packets that an application sends now and then meet at most other packets of the same message. The time
/// that these take is no queue either: two full packets at 10 Mbit/s.
const CLUMP_NOISE: Nanos = 2_000_000;
/// Round-trip times in this lowest part of the range that was seen lately mean an empty queue, too.
const RANGE_DIVISOR: u64 = 4;
/// Packets that an application sends now and then, within this share of the minimum, wait for each
/// other if the link is slower than the sender. Only the shortest of their round-trip times tells how long
/// the queue was. A sender that fills the window meets its own queue at any time.
const CLUMP_DIVISOR: u64 = 32;
/// How many changes are remembered between filling the window and not.
const MAX_CHANGES: usize = 32;
/// The queue stands if the median of the latest samples is above this share of the range, in percent.
/// An empty queue leaves most samples near the bottom, a full one near the top.
const STANDING_PERCENT: u64 = 65;
/// With fewer samples nothing is known of a queue.
const MIN_SAMPLES: usize = 8;
/// How many samples lie between two looks at their median.
const MEDIAN_INTERVAL: usize = 16;

/// The extreme of a value over the last [`MEMORY`] to twice that.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Extreme<T> {
    current: Option<(T, Instant)>,
    previous: Option<T>,
}

impl<T: Copy + PartialOrd> Extreme<T> {
    /// Adds a value. `better` tells whether its first argument is the more extreme one.
    pub(super) fn update(&mut self, now: Instant, value: T, better: impl Fn(T, T) -> bool) {
        match &mut self.current {
            Some((best, since)) if now.saturating_duration_since(*since) < MEMORY => {
                if better(value, *best) {
                    *best = value;
                }
            }
            current => {
                self.previous = current.map(|(best, _)| best);
                *current = Some((value, now));
            }
        }
    }

    /// The extreme, if there is any value.
    pub(super) fn get(&self, better: impl Fn(T, T) -> bool) -> Option<T> {
        let current = self.current.map(|(best, _)| best);
        match (current, self.previous) {
            (Some(a), Some(b)) => Some(if better(a, b) { a } else { b }),
            (a, b) => a.or(b),
        }
    }
}

/// The evidence about the queue in the acknowledgement of a packet.
#[derive(Debug, Clone, Copy)]
struct Sample {
    sent: Instant,
    rtt: Nanos,
    /// Whether the packet found the queue empty, if that is known.
    empty: Option<bool>,
}

/// Packets that were sent at nearly the same time, such as the packets of a message.
#[derive(Debug, Clone, Copy)]
struct Clump {
    begun: Instant,
    /// The shortest round-trip time of its packets so far.
    least: Nanos,
}

/// Judges the queue by round-trip times.
///
/// A queue that drops packets is full, however short it is: packets that pass it at that time have
/// round-trip times near the top of the range. So the range tells which times count as near the minimum.
///
/// A flow that joins a queue which others keep full never sees it empty: the whole range belongs to a full
/// queue. Such a queue shows in the place of the samples within the range.
#[derive(Debug, Default)]
pub(super) struct QueueGauge {
    min: Extreme<Nanos>,
    max: Extreme<Nanos>,
    clump: Option<Clump>,
    /// Since when packets are sent by an application that does not fill the window, or that does.
    limited: VecDeque<(Instant, bool)>,
    /// The newest round-trip time.
    latest: Option<Nanos>,
    /// In the order in which the packets were sent.
    samples: VecDeque<Sample>,
    /// How many samples there were in all.
    count: usize,
    /// Whether the queue stands, or too little is known.
    standing: bool,
}

impl QueueGauge {
    /// Adds the round-trip time of a packet that was sent at `sent`, without the acknowledgement
    /// delay. `marked` if the network reported congestion with it. Returns whether the queue was
    /// empty, if that is known.
    pub(super) fn on_rtt(
        &mut self,
        now: Instant,
        sent: Instant,
        rtt: Duration,
        marked: bool,
    ) -> Option<bool> {
        let rtt = nanos(rtt);
        self.min.update(now, rtt, |a, b| a < b);
        let limited = self.was_limited(sent);
        let rtt = if limited { self.of_clump(sent, rtt) } else { rtt };
        // A single late packet does not make a range.
        let latest = self.latest.replace(rtt).unwrap_or(rtt);
        self.max.update(now, rtt.min(latest), |a, b| a > b);
        let (min, range) = self.range(rtt);
        let share = min / NOISE_DIVISOR;
        let noise = if limited { share.max(CLUMP_NOISE) } else { NOISE };
        let near = min.saturating_add((range / RANGE_DIVISOR).max(share).max(noise));
        self.look_at_median(min, range, noise);
        let filled = rtt > near || marked;
        let empty = (filled || !self.standing).then_some(!filled);
        if self.samples.back().is_none_or(|newest| newest.sent <= sent) {
            if self.samples.len() == MAX_SAMPLES {
                self.samples.pop_front();
            }
            self.samples.push_back(Sample { sent, rtt, empty });
        }
        empty
    }

    /// Handles a packet that is sent; `limited` if the application does not fill the window.
    #[inline]
    pub(super) fn on_sent(&mut self, now: Instant, limited: bool) {
        if self.limited.back().is_some_and(|(_, before)| *before == limited) {
            return;
        }
        if self.limited.len() == MAX_CHANGES {
            self.limited.pop_front();
        }
        self.limited.push_back((now, limited));
    }

    /// Whether the application did not fill the window when a packet was sent at `sent`.
    fn was_limited(&self, sent: Instant) -> bool {
        let newest = self.limited.iter().rev().find(|(since, _)| *since <= sent);
        newest.is_some_and(|(_, limited)| *limited)
    }

    /// The shortest round-trip time lately; `rtt` if none is known.
    pub(super) fn least(&self, rtt: Nanos) -> Nanos {
        self.min.get(|a, b| a < b).unwrap_or(rtt)
    }

    /// The newest round-trip time, without waits for packets of the same clump.
    pub(super) fn latest(&self) -> Option<Duration> {
        self.latest.map(Duration::from_nanos)
    }

    /// The shortest round-trip time of the clump to which the packet belongs.
    fn of_clump(&mut self, sent: Instant, rtt: Nanos) -> Nanos {
        let length = self.min.get(|a, b| a < b).unwrap_or(rtt) / CLUMP_DIVISOR;
        let same = |clump: &Clump| {
            sent.checked_duration_since(clump.begun).is_some_and(|after| nanos(after) <= length)
        };
        let clump = match self.clump.filter(same) {
            Some(Clump { begun, least }) => Clump { begun, least: least.min(rtt) },
            None => Clump { begun: sent, least: rtt },
        };
        self.clump = Some(clump);
        clump.least
    }

    /// The minimum and how far the maximum is above it.
    fn range(&self, rtt: Nanos) -> (Nanos, Nanos) {
        let min = self.min.get(|a, b| a < b).unwrap_or(rtt);
        let max = self.max.get(|a, b| a > b).unwrap_or(rtt);
        (min, max.saturating_sub(min))
    }

    /// Finds out now and then whether the queue stands.
    fn look_at_median(&mut self, min: Nanos, range: Nanos, noise: Nanos) {
        let due = self.count.is_multiple_of(MEDIAN_INTERVAL) || self.count < MEDIAN_INTERVAL;
        self.count = self.count.wrapping_add(1);
        if !due {
            return;
        }
        if self.samples.len() < MIN_SAMPLES {
            self.standing = true;
            return;
        }
        let mut rtts = [0; MAX_SAMPLES];
        let rtts = rtts.get_mut(..self.samples.len()).unwrap_or_default();
        rtts.iter_mut().zip(&self.samples).for_each(|(to, sample)| *to = sample.rtt);
        let (_, median, _) = rtts.select_nth_unstable(rtts.len() / 2);
        let above = (range.saturating_mul(STANDING_PERCENT) / 100).max(noise);
        self.standing = *median > min.saturating_add(above);
    }

    /// Whether a packet that was sent at `sent` and lost found the queue empty: the samples before
    /// and after it say so both. `None` if that is not known.
    pub(super) fn was_empty(&self, sent: Instant) -> Option<bool> {
        let after = self.samples.partition_point(|sample| sample.sent < sent);
        let next = self.samples.get(after)?.empty;
        let before = after.checked_sub(1).and_then(|i| self.samples.get(i));
        match (before.map_or(next, |sample| sample.empty), next) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (before, next) => before.and(next),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Judges a packet every 10 ms: some with round-trip times of 100 ms, and then packets with these
    /// round-trip times. Returns also when the first packet of the latter is sent.
    fn gauge(rtts: &[u32]) -> (QueueGauge, Instant, Vec<Option<bool>>) {
        let (start, mut gauge) = (Instant::now(), QueueGauge::default());
        let known = [100; MEDIAN_INTERVAL];
        let judged = known.iter().chain(rtts).zip(0..).map(|(&rtt, i)| {
            let sent = start + 10 * MS * i;
            gauge.on_rtt(sent + MS * rtt, sent, MS * rtt, false)
        });
        let mut judged: Vec<_> = judged.collect();
        judged.drain(..MEDIAN_INTERVAL);
        (gauge, start + 10 * MS * MEDIAN_INTERVAL as u32, judged)
    }

    #[test]
    fn near_the_minimum_the_queue_is_empty() {
        let (_, _, judged) = gauge(&[100, 102, 110, 120, 140, 112, 101]);
        assert_eq!(judged, [true, true, false, false, false, false, true].map(Some));
        // A short queue.
        let (_, _, judged) = gauge(&[100, 110, 110, 100, 109, 103, 107]);
        assert_eq!(judged, [true, false, false, true, false, true, false].map(Some));
    }

    #[test]
    fn a_queue_that_others_keep_full_is_not_empty() {
        let (start, mut gauge) = (Instant::now(), QueueGauge::default());
        // The path takes 100 ms, which no packet ever sees alone, and the queue most of another 100.
        let rtts = [195, 199, 200, 198, 200, 193, 199, 200, 199, 200];
        let judged = (0..100).map(|i| {
            let sent = start + 10 * MS * i;
            let rtt = MS * rtts[i as usize % rtts.len()];
            gauge.on_rtt(sent + rtt, sent, rtt, false)
        });
        assert_eq!(judged.filter(|empty| *empty == Some(true)).count(), 0);
    }

    #[test]
    fn a_packet_that_is_late_alone_makes_no_range() {
        let (gauge, ..) = gauge(&[100, 500, 100, 110, 110]);
        assert_eq!(gauge.range(nanos(MS)), (nanos(100 * MS), nanos(10 * MS)));
    }

    #[test]
    fn a_marked_packet_met_a_queue() {
        let (mut gauge, start, judged) = gauge(&[100]);
        assert_eq!(judged, [Some(true)]);
        let marked = gauge.on_rtt(start + 200 * MS, start + 100 * MS, 100 * MS, true);
        assert_eq!(marked, Some(false));
    }

    #[test]
    fn a_lost_packet_is_judged_by_its_neighbours() {
        let (gauge, start, _) = gauge(&[100, 100, 150, 150, 100, 100]);
        let at = |ms: u32| gauge.was_empty(start + MS * ms);
        assert_eq!(at(5), Some(true));
        assert_eq!(at(15), Some(false), "it was full soon after");
        assert_eq!(at(25), Some(false));
        assert_eq!(at(35), Some(false), "it was full just before");
        assert_eq!(at(45), Some(true));
        assert_eq!(at(55), None, "nothing sent later was acknowledged");
    }

    #[test]
    fn packets_of_a_clump_wait_only_for_each_other() {
        let (start, mut gauge) = (Instant::now(), QueueGauge::default());
        // Five packets at a time, of which each waits 2 ms for the packet before it.
        for i in 0..100 {
            let sent = start + 16 * MS * (i / 5);
            gauge.on_sent(sent, true);
            let rtt = MS * (100 + 2 * (i % 5));
            let empty = gauge.on_rtt(sent + rtt, sent, rtt, false);
            assert_eq!(empty, (i >= MIN_SAMPLES as u32).then_some(true), "{i}");
        }
        assert_eq!(gauge.was_empty(start + 200 * MS), Some(true));
        // Packets that follow each other more slowly show the queue that they make.
        let sent = |i: u32| start + 400 * MS + 5 * MS * i;
        for (i, rtt) in (0..).zip([100, 110, 120]) {
            let empty = gauge.on_rtt(sent(i) + MS * rtt, sent(i), MS * rtt, false);
            assert_eq!(empty, Some(rtt < 110));
        }
        assert_eq!(gauge.was_empty(sent(1) + MS), Some(false));
    }

    #[test]
    fn the_range_forgets_an_old_path() {
        let (mut gauge, start, _) = gauge(&[20, 20, 20]);
        let mut sent = start + 30 * MS;
        let mut judged = Vec::new();
        for _ in 0..3_000 {
            sent += 10 * MS;
            judged.push(gauge.on_rtt(sent + 90 * MS, sent, 90 * MS, false));
            assert!(gauge.samples.len() <= MAX_SAMPLES);
        }
        assert_eq!((judged[0], judged[2_999]), (Some(false), Some(true)));
    }
}
