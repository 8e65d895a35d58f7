//! How much the path reorders, and how long a packet is therefore awaited after later ones were
//! acknowledged (RFC 8985 section 6.2 and RFC 9002 section 6.1, adapted to each other).
//!
//! A path shows that it reorders when a packet is acknowledged after a packet with a higher number. Packet
//! numbers are never reused, so each of these acknowledgements also tells how late its packet was, whether it
//! had been declared lost or not. TCP learns from a DSACK only that a segment was late, which is why RFC 8985
//! widens its window step by step. Here the window is the largest lateness of the last 16 recoveries, the
//! number for which RFC 8985 keeps its step.

use super::loss::{PACKET_THRESHOLD, loss_delay};
use crate::rtt::RttEstimator;
use std::time::{Duration, Instant};

/// The packet threshold on a path that reorders. Time decides there which packets are lost; this
/// only bounds how many packets below the largest acknowledged one an ACK frame can make us visit.
/// At 1 Gbit/s it allows for reordering by 50 ms.
pub const MAX_PACKET_THRESHOLD: u64 = 4096;
/// For how many recoveries the lateness of a packet is remembered (RFC 8985 section 6.2).
pub const RECOVERIES_REMEMBERED: usize = 16;

/// The measured reordering of a path.
#[derive(Debug, Default)]
pub struct Reordering {
    /// The largest lateness since each of the newest recoveries began, in a ring; `None` if no
    /// packet was overtaken. Empty until a packet is lost or overtaken.
    seen: Vec<Option<Duration>>,
    /// The place of the newest recovery in `seen`.
    newest: usize,
    /// The largest of `seen`.
    largest: Option<Duration>,
    /// When the newest recovery began.
    recovery_start: Option<Instant>,
}

impl Reordering {
    /// Handles the acknowledgement of a packet that later packets overtook: it came `lateness` after the
    /// round-trip time.
    pub fn on_overtaken(&mut self, lateness: Duration) {
        let newest = self.newest;
        let newest = &mut self.seen()[newest];
        *newest = (*newest).max(Some(lateness));
        let lateness = *newest;
        self.largest = self.largest.max(lateness);
    }

    /// Handles the loss of a packet sent at `sent`. If it was sent after the newest recovery began,
    /// it begins another.
    pub fn on_lost(&mut self, now: Instant, sent: Instant) {
        if self.recovery_start.is_some_and(|start| sent <= start) {
            return;
        }
        self.recovery_start = Some(now);
        self.newest = (self.newest + 1) % RECOVERIES_REMEMBERED;
        let newest = self.newest;
        self.seen()[newest] = None;
        self.largest = self.seen.iter().copied().max().flatten();
    }

    fn seen(&mut self) -> &mut [Option<Duration>] {
        if self.seen.is_empty() {
            self.seen = vec![None; RECOVERIES_REMEMBERED];
        }
        &mut self.seen
    }

    /// Whether packets were overtaken lately.
    pub fn is_seen(&self) -> bool {
        self.largest.is_some()
    }

    /// A packet counts as lost if it is this far below the largest acknowledged one.
    pub fn packet_threshold(&self) -> u64 {
        if self.is_seen() { MAX_PACKET_THRESHOLD } else { PACKET_THRESHOLD }
    }

    /// The reordering window: how much longer than without reordering a packet is awaited.
    ///
    /// It is at most one smoothed round-trip time (RFC 8985 section 6.2), so that a peer that
    /// acknowledges late on purpose delays the detection of losses by no more than that.
    pub fn window(&self, rtt: &RttEstimator) -> Duration {
        self.largest.unwrap_or_default().min(max_window(rtt))
    }

    /// How long after sending a packet counts as lost if a later one was acknowledged.
    pub fn loss_delay(&self, rtt: &RttEstimator) -> Duration {
        loss_delay(rtt).saturating_add(self.window(rtt))
    }
}

/// The bound of the reordering window.
pub fn max_window(rtt: &RttEstimator) -> Duration {
    rtt.smoothed()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn rtt() -> RttEstimator {
        let mut rtt = RttEstimator::default();
        rtt.update(Instant::now(), 100 * MS, Duration::ZERO);
        rtt
    }

    /// Recoveries that follow each other begin with packets sent after the previous one began.
    fn recover(reordering: &mut Reordering, start: Instant, recoveries: std::ops::Range<u32>) {
        for i in recoveries {
            reordering.on_lost(start + (2 * i + 1) * MS, start + 2 * i * MS);
        }
    }

    #[test]
    fn the_window_is_the_largest_lateness_up_to_a_round_trip() {
        let (rtt, mut reordering) = (rtt(), Reordering::default());
        assert_eq!((reordering.window(&rtt), reordering.packet_threshold()), (Duration::ZERO, 3));
        assert_eq!(reordering.loss_delay(&rtt), loss_delay(&rtt));
        for (lateness, window) in [(0, 0), (10, 10), (5, 10), (40, 40), (100, 100), (101, 100)] {
            reordering.on_overtaken(lateness * MS);
            assert_eq!(reordering.window(&rtt), window * MS);
            assert_eq!(reordering.packet_threshold(), MAX_PACKET_THRESHOLD);
            assert_eq!(reordering.loss_delay(&rtt), loss_delay(&rtt) + window * MS);
        }
        reordering.on_overtaken(Duration::MAX);
        assert_eq!(reordering.window(&rtt), max_window(&rtt));
    }

    #[test]
    fn lateness_is_forgotten_after_recoveries_without_as_much() {
        let (rtt, mut reordering, t) = (rtt(), Reordering::default(), Instant::now());
        let last = RECOVERIES_REMEMBERED as u32 - 1;
        reordering.on_overtaken(40 * MS);
        recover(&mut reordering, t, 0..last);
        assert_eq!(reordering.window(&rtt), 40 * MS);
        reordering.on_overtaken(40 * MS);
        recover(&mut reordering, t, 100..100 + last);
        assert_eq!(reordering.window(&rtt), 40 * MS, "seen again in time");
        reordering.on_overtaken(10 * MS);
        recover(&mut reordering, t, 200..201);
        assert_eq!(reordering.window(&rtt), 10 * MS, "what was seen since");
        recover(&mut reordering, t, 300..300 + last);
        assert!(!reordering.is_seen());
        assert_eq!((reordering.window(&rtt), reordering.packet_threshold()), (Duration::ZERO, 3));
    }

    #[test]
    fn losses_of_one_flight_are_one_recovery() {
        let (rtt, mut reordering, t) = (rtt(), Reordering::default(), Instant::now());
        reordering.on_overtaken(40 * MS);
        for i in 0..160 {
            reordering.on_lost(t + 200 * MS + i * MS, t + i * MS / 2);
        }
        assert_eq!(reordering.window(&rtt), 40 * MS);
    }
}
