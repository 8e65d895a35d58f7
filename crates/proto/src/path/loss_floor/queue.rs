//! Whether the queue of the path was empty when a packet passed it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Samples that are kept to judge lost packets by their neighbours.
const MAX_SAMPLES: usize = 128;
/// For how long the extremes of round-trip times and rates are remembered: twice this at most.
pub(super) const MEMORY: Duration = Duration::from_secs(10);
/// Round-trip times that exceed the minimum by this share of it are still those of an empty queue.
const NOISE_DIVISOR: u32 = 32;
/// So are those that exceed it by this, which is less than what two full packets take at 100 Mbit/s.
const NOISE: Duration = Duration::from_micros(200);
/// And those in the lowest part of the range that was seen lately.
const RANGE_DIVISOR: u32 = 4;

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

/// Judges the queue by round-trip times.
///
/// A queue that drops packets is full, however short it is: packets that pass it at that time have
/// round-trip times near the top of the range. So the range says what near the minimum means.
#[derive(Debug, Default)]
pub(super) struct QueueGauge {
    min: Extreme<Duration>,
    max: Extreme<Duration>,
    /// When packets were sent, ascending, and whether they found the queue empty.
    samples: VecDeque<(Instant, bool)>,
}

impl QueueGauge {
    /// Adds the round-trip time of a packet that was sent at `sent`, without the acknowledgement
    /// delay. `marked` if the network reported congestion with it. Returns whether the queue was
    /// empty.
    pub(super) fn on_rtt(
        &mut self,
        now: Instant,
        sent: Instant,
        rtt: Duration,
        marked: bool,
    ) -> bool {
        self.min.update(now, rtt, |a, b| a < b);
        self.max.update(now, rtt, |a, b| a > b);
        let min = self.min.get(|a, b| a < b).unwrap_or(rtt);
        let max = self.max.get(|a, b| a > b).unwrap_or(rtt);
        let range = max.saturating_sub(min) / RANGE_DIVISOR;
        let near = min + range.max(min / NOISE_DIVISOR).max(NOISE);
        let empty = rtt <= near && !marked;
        if self.samples.back().is_none_or(|&(newest, _)| newest <= sent) {
            if self.samples.len() == MAX_SAMPLES {
                self.samples.pop_front();
            }
            self.samples.push_back((sent, empty));
        }
        empty
    }

    /// Whether a packet that was sent at `sent` and lost found the queue empty: the samples before
    /// and after it say so both. `None` if there is none after it.
    pub(super) fn was_empty(&self, sent: Instant) -> Option<bool> {
        let after = self.samples.partition_point(|&(at, _)| at < sent);
        let next = self.samples.get(after)?.1;
        let before = after.checked_sub(1).and_then(|i| self.samples.get(i));
        Some(next && before.is_none_or(|&(_, empty)| empty))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// A packet every 10 ms, whose round-trip times are these.
    fn gauge(rtts: &[u32]) -> (QueueGauge, Instant, Vec<bool>) {
        let (start, mut gauge) = (Instant::now(), QueueGauge::default());
        let judged = rtts.iter().zip(0..).map(|(&rtt, i)| {
            let sent = start + 10 * MS * i;
            gauge.on_rtt(sent + MS * rtt, sent, MS * rtt, false)
        });
        let judged = judged.collect();
        (gauge, start, judged)
    }

    #[test]
    fn near_the_minimum_the_queue_is_empty() {
        let (_, _, judged) = gauge(&[100, 102, 110, 120, 140, 112, 101]);
        assert_eq!(judged, [true, true, false, false, false, false, true]);
        // A short queue.
        let (_, _, judged) = gauge(&[100, 110, 100, 109, 103, 107]);
        assert_eq!(judged, [true, false, true, false, true, false]);
    }

    #[test]
    fn a_marked_packet_met_a_queue() {
        let (mut gauge, start, _) = gauge(&[100]);
        assert!(!gauge.on_rtt(start + 200 * MS, start + 100 * MS, 100 * MS, true));
    }

    #[test]
    fn a_lost_packet_is_judged_by_its_neighbours() {
        let (gauge, start, _) = gauge(&[100, 100, 150, 150, 100]);
        let at = |ms: u32| gauge.was_empty(start + MS * ms);
        assert_eq!(at(5), Some(true));
        assert_eq!(at(15), Some(false), "it was full soon after");
        assert_eq!(at(25), Some(false));
        assert_eq!(at(35), Some(false), "it was full just before");
        assert_eq!(at(45), None, "nothing sent later was acknowledged");
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
        assert!(!judged[0] && judged[2_999]);
    }
}
