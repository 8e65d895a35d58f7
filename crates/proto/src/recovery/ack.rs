//! Tracks received packets and decides when to acknowledge them (RFC 9000 section 13.2).

use crate::ecn::{EcnCodepoint, EcnCounts};
use crate::ids::SpaceId;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// How many ranges of received packet numbers a space stores. The oldest are dropped first;
/// anything older than the oldest stored range counts as received (RFC 9000 section 13.2.3).
pub const USUAL_ACK_RANGES: usize = 64;
/// The same limit once a packet arrived after a later one.
///
/// A packet that arrives later than the oldest range is dropped, so this bounds how much reordering
/// is tolerated: a path of 200 Mbit/s that delays every third packet by 50 ms needs 200 ranges. An
/// ACK frame reports those of the newest that fit.
pub const MAX_ACK_RANGES: usize = 256;
/// How many ack-eliciting packets trigger an ACK frame (RFC 9000 section 13.2.2).
pub const ACK_ELICITING_THRESHOLD: u32 = 2;
/// After this many packets with an ACK frame but nothing ack-eliciting, one should carry a PING, so
/// that the peer acknowledges our acknowledgements (RFC 9000 section 13.2.4).
pub const MAX_ACK_ONLY: u32 = 1_000;
/// The same limit while the ACK frame is long, i.e. has at least [`LONG_ACK_RANGES`] ranges.
pub const MAX_LONG_ACK_ONLY: u32 = 32;
/// An ACK frame with at least this many ranges is long.
pub const LONG_ACK_RANGES: usize = 16;

/// The packet numbers received: a bounded number of ranges above a floor.
#[derive(Debug, Default)]
struct Received {
    /// Ascending and inclusive, neither overlapping nor adjacent: new packets go to the end.
    ranges: Vec<(u64, u64)>,
    /// Everything below this counts as received.
    floor: u64,
}

impl Received {
    fn contains(&self, pn: u64) -> bool {
        if pn < self.floor {
            return true;
        }
        let index = self.ranges.partition_point(|(_, end)| *end < pn);
        self.ranges.get(index).is_some_and(|(start, _)| *start <= pn)
    }

    /// Adds a number that is not contained yet, and keeps at most `limit` ranges.
    fn insert(&mut self, pn: u64, limit: usize) {
        let index = self.ranges.partition_point(|(_, end)| *end < pn);
        let joins_next =
            self.ranges.get(index).is_some_and(|(start, _)| start.checked_sub(1) == Some(pn));
        let joins_previous = index > 0 && self.ranges[index - 1].1.checked_add(1) == Some(pn);
        match (joins_previous, joins_next) {
            (true, true) => {
                self.ranges[index - 1].1 = self.ranges[index].1;
                self.ranges.remove(index);
            }
            (true, false) => self.ranges[index - 1].1 = pn,
            (false, true) => self.ranges[index].0 = pn,
            (false, false) => self.ranges.insert(index, (pn, pn)),
        }
        if self.ranges.len() > limit {
            self.ranges.remove(0);
        }
        if self.ranges.len() == limit {
            // A range below this would be dropped at once: its packets processed but never
            // reported.
            self.floor = self.ranges[0].0;
        }
    }

    /// Whether every number in `first..end` counts as received. `end` itself must have been
    /// received.
    fn contains_up_to(&self, first: u64, end: u64) -> bool {
        let index = self.ranges.partition_point(|(_, last)| *last < end);
        self.ranges.get(index).is_some_and(|(start, _)| *start <= first.max(self.floor))
    }

    fn remove_below(&mut self, floor: u64) {
        if floor <= self.floor {
            return;
        }
        self.floor = floor;
        let gone = self.ranges.partition_point(|(_, end)| *end < floor);
        self.ranges.drain(..gone);
        if let Some((start, _)) = self.ranges.first_mut() {
            *start = floor.max(*start);
        }
    }
}

/// The receiving side of acknowledgements in one space.
#[derive(Debug)]
pub struct AckTracker {
    space: SpaceId,
    /// Our own `max_ack_delay` transport parameter.
    max_ack_delay: Duration,
    received: Received,
    /// The largest packet number received and its time of arrival.
    largest: Option<(u64, Instant)>,
    largest_ack_eliciting: Option<u64>,
    /// The furthest below the largest number that a packet has arrived.
    reach: u64,
    ecn: EcnCounts,
    /// Ack-eliciting packets received since the last ACK frame was sent.
    ack_eliciting: u32,
    /// Whether any packet arrived since the last ACK frame was sent.
    unreported: bool,
    immediate: bool,
    deadline: Option<Instant>,
    /// Packets with an ACK frame sent since the last of them that was ack-eliciting.
    ack_only: u32,
}

impl AckTracker {
    /// `max_ack_delay` is the maximum delay of acknowledgements in the Data space that we announce
    /// to the peer.
    pub fn new(space: SpaceId, max_ack_delay: Duration) -> Self {
        Self {
            space,
            max_ack_delay,
            received: Received::default(),
            largest: None,
            largest_ack_eliciting: None,
            reach: 0,
            ecn: EcnCounts::default(),
            ack_eliciting: 0,
            unreported: false,
            immediate: false,
            deadline: None,
            ack_only: 0,
        }
    }

    /// Whether the packet must be dropped because it was already received, or is so old that it may
    /// have been (RFC 9000 section 12.3). Call this after the packet was opened.
    pub fn is_duplicate(&self, pn: u64) -> bool {
        self.received.contains(pn)
    }

    /// The largest packet number received, used to decode the next one.
    pub fn largest(&self) -> Option<u64> {
        self.largest.map(|(pn, _)| pn)
    }

    /// Records a packet whose frames were all processed. A duplicate changes nothing.
    pub fn on_packet_received(
        &mut self,
        now: Instant,
        pn: u64,
        ack_eliciting: bool,
        ecn: Option<EcnCodepoint>,
    ) {
        if self.received.contains(pn) {
            return;
        }
        match self.largest {
            Some((largest, _)) if pn < largest => self.reach = self.reach.max(largest - pn),
            Some(_) | None => self.largest = Some((pn, now)),
        }
        let limit = if self.reach == 0 { USUAL_ACK_RANGES } else { MAX_ACK_RANGES };
        self.received.insert(pn, limit);
        self.unreported = true;
        if let Some(mark) = ecn {
            self.ecn.add(mark);
        }
        if ack_eliciting {
            self.on_ack_eliciting(now, pn, ecn == Some(EcnCodepoint::Ce));
        }
    }

    fn on_ack_eliciting(&mut self, now: Instant, pn: u64, congestion: bool) {
        let in_order = match self.largest_ack_eliciting {
            Some(largest) => pn > largest && self.received.contains_up_to(largest + 1, pn),
            None => true,
        };
        self.largest_ack_eliciting = self.largest_ack_eliciting.max(Some(pn));
        self.ack_eliciting = self.ack_eliciting.saturating_add(1);
        // RFC 9000 section 13.2.1: handshakes must not wait, and reordering, loss and congestion
        // must be reported to the peer's recovery quickly.
        self.immediate |= self.space != SpaceId::Data
            || !in_order
            || congestion
            || self.ack_eliciting >= ACK_ELICITING_THRESHOLD;
        if self.deadline.is_none() {
            self.deadline = now.checked_add(self.max_ack_delay);
        }
    }

    /// Requests that the next ACK frame be sent at once.
    pub fn set_immediate(&mut self) {
        self.immediate = true;
        self.unreported = true;
    }

    /// Whether an ACK frame must be sent now, in a packet of its own if necessary. Packets that are
    /// not ack-eliciting never make it due by themselves.
    pub fn is_due(&self, now: Instant) -> bool {
        self.immediate || self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// When [`Self::is_due`] becomes true by itself; `None` if it already is or will not.
    pub fn timeout(&self) -> Option<Instant> {
        self.deadline.filter(|_| !self.immediate)
    }

    /// Whether an ACK frame would tell the peer anything new, so that it is worth adding to a
    /// packet that is sent anyway.
    pub fn has_news(&self) -> bool {
        self.unreported
    }

    /// The ranges to report, descending, at most [`MAX_ACK_RANGES`]; the first contains
    /// [`Self::largest`]. Empty only before the first packet.
    pub fn ranges(
        &self,
    ) -> impl DoubleEndedIterator<Item = RangeInclusive<u64>> + ExactSizeIterator + Clone + '_ {
        self.received.ranges.iter().rev().map(|(start, end)| *start..=*end)
    }

    /// Time since the packet with the largest number arrived: the ACK Delay field before scaling.
    pub fn ack_delay(&self, now: Instant) -> Duration {
        self.largest.map_or(Duration::ZERO, |(_, came)| now.saturating_duration_since(came))
    }

    /// ECN counts of all packets received.
    pub fn ecn(&self) -> EcnCounts {
        self.ecn
    }

    /// Whether a packet that carries our ACK frame and nothing ack-eliciting should also carry a
    /// PING. One rule bounds how long ranges are kept, the other how many bytes they cost on a
    /// lossy path. Either asks for a PING in at most one of 32 packets, so two ends never keep each
    /// other awake.
    pub fn wants_ping(&self) -> bool {
        let long = self.received.ranges.len() >= LONG_ACK_RANGES;
        self.ack_only >= if long { MAX_LONG_ACK_ONLY } else { MAX_ACK_ONLY }
    }

    /// Records that an ACK frame was written into a packet.
    pub fn on_ack_sent(&mut self, ack_eliciting: bool) {
        self.ack_eliciting = 0;
        self.unreported = false;
        self.immediate = false;
        self.deadline = None;
        self.ack_only = if ack_eliciting { 0 } else { self.ack_only.saturating_add(1) };
    }

    /// Handles the acknowledgement of our ACK frame whose largest packet number was `largest`: what
    /// it reported need not be repeated (RFC 9000 section 13.2.4), except for the largest number of
    /// all.
    ///
    /// Whatever is forgotten counts as received, and what arrives of it is dropped. On a path that
    /// reorders, gaps are therefore kept until twice as many packets have passed as ever before one
    /// was filled.
    pub fn on_ack_acked(&mut self, largest: u64) {
        if let Some((newest, _)) = self.largest {
            let reported = newest.min(largest.saturating_add(1));
            self.received.remove_below(reported.saturating_sub(self.reach.saturating_mul(2)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const MS: Duration = Duration::from_millis(1);
    const DELAY: Duration = Duration::from_millis(25);

    fn tracker(space: SpaceId) -> (AckTracker, Instant) {
        (AckTracker::new(space, DELAY), Instant::now())
    }

    fn ranges(tracker: &AckTracker) -> Vec<(u64, u64)> {
        tracker.ranges().map(|range| (*range.start(), *range.end())).collect()
    }

    #[test]
    fn handshake_packets_are_acknowledged_at_once() {
        for space in [SpaceId::Initial, SpaceId::Handshake] {
            let (mut acks, now) = tracker(space);
            acks.on_packet_received(now, 0, true, None);
            assert!(acks.is_due(now));
            acks.on_ack_sent(false);
            assert!(!acks.is_due(now + 10 * DELAY));
        }
    }

    #[test]
    fn every_second_ack_eliciting_packet_is_acknowledged() {
        let (mut acks, now) = tracker(SpaceId::Data);
        for pn in 0..10 {
            acks.on_packet_received(now, pn, true, None);
            assert_eq!(acks.is_due(now), pn % 2 == 1);
            if acks.is_due(now) {
                assert_eq!(acks.timeout(), None);
                acks.on_ack_sent(false);
            }
        }
        assert_eq!(ranges(&acks), [(0, 9)]);
    }

    #[test]
    fn a_single_packet_waits_for_max_ack_delay_since_it_came() {
        let (mut acks, now) = tracker(SpaceId::Data);
        acks.on_packet_received(now, 0, true, None);
        acks.on_packet_received(now + 5 * MS, 1, false, None);
        assert_eq!(acks.timeout(), Some(now + DELAY));
        assert!(!acks.is_due(now + DELAY - MS));
        assert!(acks.is_due(now + DELAY));
        assert_eq!(acks.ack_delay(now + DELAY), DELAY - 5 * MS);
        acks.on_ack_sent(false);
        assert_eq!(acks.timeout(), None);
    }

    #[test]
    fn packets_that_elicit_nothing_are_never_answered() {
        for space in SpaceId::ALL {
            let (mut acks, now) = tracker(space);
            for pn in [0, 1, 7, 3, 5] {
                acks.on_packet_received(now, pn, false, Some(EcnCodepoint::Ce));
            }
            assert!(!acks.is_due(now + 100 * DELAY));
            assert_eq!(acks.timeout(), None);
            assert!(acks.has_news());
        }
    }

    #[test]
    fn gap_reordering_and_congestion_are_reported_at_once() {
        let (mut acks, now) = tracker(SpaceId::Data);
        acks.on_packet_received(now, 0, true, None);
        acks.on_ack_sent(false);
        acks.on_packet_received(now, 2, true, None);
        assert!(acks.is_due(now), "1 is missing");
        acks.on_ack_sent(false);
        acks.on_packet_received(now, 3, true, None);
        assert!(!acks.is_due(now), "1 is missing still, but that is no news");
        acks.on_ack_sent(false);
        acks.on_packet_received(now, 1, true, None);
        assert!(acks.is_due(now), "older than 3");
        acks.on_ack_sent(false);
        acks.on_packet_received(now, 4, false, None);
        acks.on_packet_received(now, 5, true, None);
        assert!(!acks.is_due(now), "4 did come");
        acks.on_ack_sent(false);
        acks.on_packet_received(now, 6, true, Some(EcnCodepoint::Ce));
        assert!(acks.is_due(now), "congestion");
    }

    #[test]
    fn pruned_packets_are_no_gap() {
        let (mut acks, now) = tracker(SpaceId::Data);
        acks.on_packet_received(now, 0, true, None);
        (1..5).for_each(|pn| acks.on_packet_received(now, pn, false, None));
        acks.on_ack_sent(true);
        acks.on_ack_acked(4);
        acks.on_packet_received(now, 5, true, None);
        assert!(!acks.is_due(now));
    }

    #[test]
    fn duplicates_change_nothing() {
        let (mut acks, now) = tracker(SpaceId::Data);
        acks.on_packet_received(now, 0, true, Some(EcnCodepoint::Ect0));
        acks.on_ack_sent(false);
        for _ in 0..5 {
            assert!(acks.is_duplicate(0));
            acks.on_packet_received(now + MS, 0, true, Some(EcnCodepoint::Ce));
        }
        assert_eq!(acks.ecn(), EcnCounts { ect0: 1, ect1: 0, ce: 0 });
        assert!(!acks.has_news() && !acks.is_due(now + DELAY));
        assert_eq!(acks.ack_delay(now + 2 * MS), 2 * MS);
    }

    #[test]
    fn marks_are_counted() {
        let (mut acks, now) = tracker(SpaceId::Data);
        for (pn, bits) in [0b10, 0b10, 0b01, 0b11, 0b00, 0b10].into_iter().enumerate() {
            acks.on_packet_received(now, pn as u64, true, EcnCodepoint::from_bits(bits));
        }
        assert_eq!(acks.ecn(), EcnCounts { ect0: 3, ect1: 1, ce: 1 });
    }

    #[test]
    fn acknowledged_acknowledgements_are_pruned_but_for_the_largest() {
        let (mut acks, now) = tracker(SpaceId::Data);
        for pn in [0, 1, 3, 4, 8, 9] {
            acks.on_packet_received(now, pn, true, None);
        }
        acks.on_ack_acked(3);
        assert_eq!(ranges(&acks), [(8, 9), (4, 4)]);
        assert!(acks.is_duplicate(2) && acks.is_duplicate(3));
        assert!(!acks.is_duplicate(5));
        acks.on_ack_acked(1);
        assert_eq!(ranges(&acks), [(8, 9), (4, 4)]);
        acks.on_ack_acked(9);
        assert_eq!(ranges(&acks), [(9, 9)]);
        acks.on_ack_acked(u64::MAX);
        assert_eq!((ranges(&acks), acks.largest()), (vec![(9, 9)], Some(9)));
    }

    #[test]
    fn gaps_are_kept_as_long_as_they_may_be_filled() {
        let (mut acks, now) = tracker(SpaceId::Data);
        for pn in (0..100).chain(110..200) {
            acks.on_packet_received(now, pn, true, None);
        }
        // The first that arrives late, 90 numbers below the largest.
        acks.on_packet_received(now, 109, true, None);
        acks.on_ack_acked(199);
        assert!(!acks.is_duplicate(105), "180 numbers are kept");
        (200..300).for_each(|pn| acks.on_packet_received(now, pn, true, None));
        acks.on_ack_acked(299);
        assert!(acks.is_duplicate(105));
        assert_eq!(ranges(&acks), [(119, 299)]);
    }

    #[test]
    fn flood_of_gaps_drops_the_oldest_ranges() {
        let (mut acks, now) = tracker(SpaceId::Data);
        for pn in (0..100_000).step_by(2) {
            acks.on_packet_received(now, pn, true, None);
            assert!(acks.ranges().len() <= USUAL_ACK_RANGES);
        }
        assert_eq!(acks.ranges().next(), Some(99_998..=99_998));
        let floor = *acks.ranges().next_back().unwrap().start();
        assert_eq!(floor, 100_000 - 2 * USUAL_ACK_RANGES as u64);
        assert!(acks.is_duplicate(floor - 1) && !acks.is_duplicate(floor + 1));
        assert_eq!(acks.received.ranges.capacity(), USUAL_ACK_RANGES * 2);
        // The other way round, too: only the newest ranges are kept.
        let (mut acks, now) = tracker(SpaceId::Data);
        for pn in (0..1_000).rev().step_by(2) {
            acks.on_packet_received(now, pn, true, None);
        }
        assert_eq!(acks.ranges().len(), MAX_ACK_RANGES);
        assert_eq!(acks.largest(), Some(999));
    }

    #[test]
    fn extreme_packet_numbers_are_safe() {
        let (mut acks, now) = tracker(SpaceId::Data);
        for pn in [u64::MAX - 1, u64::MAX, 0, 1] {
            acks.on_packet_received(now, pn, true, None);
        }
        assert_eq!(ranges(&acks), [(u64::MAX - 1, u64::MAX), (0, 1)]);
    }

    #[test]
    fn now_and_then_our_acknowledgements_ask_for_one() {
        let (mut acks, now) = tracker(SpaceId::Data);
        let mut pn = 0;
        let mut pings = 0;
        for _ in 0..5 * (MAX_ACK_ONLY + 1) {
            acks.on_packet_received(now, pn, true, None);
            pn += 1;
            pings += u32::from(acks.wants_ping());
            acks.on_ack_sent(acks.wants_ping());
        }
        assert_eq!(pings, 5);
        // A long ACK frame asks for a PING earlier.
        for i in 0..LONG_ACK_RANGES as u32 + MAX_LONG_ACK_ONLY {
            pn += 2;
            acks.on_packet_received(now, pn, true, None);
            assert_eq!(acks.wants_ping(), i >= MAX_LONG_ACK_ONLY, "{i}");
            acks.on_ack_sent(false);
        }
        acks.on_ack_acked(pn);
        assert!(!acks.wants_ping());
    }

    proptest! {
        #[test]
        fn behaves_like_a_set(
            ops in prop::collection::vec((0..5_u8, 0..400_u64), 1..400),
        ) {
            let (mut acks, now) = tracker(SpaceId::Data);
            let mut model = BTreeSet::new();
            for (op, pn) in ops {
                let mut fresh = None;
                if op == 0 {
                    acks.on_ack_acked(pn / 4);
                } else {
                    let oldest = acks.ranges().next_back().map_or(0, |range| *range.start());
                    let duplicate = acks.is_duplicate(pn);
                    if model.contains(&pn) {
                        prop_assert!(duplicate);
                    } else if duplicate {
                        prop_assert!(pn < oldest);
                    } else {
                        fresh = Some(pn);
                    }
                    acks.on_packet_received(now, pn, true, None);
                    if !duplicate {
                        model.insert(pn);
                        prop_assert!(acks.is_duplicate(pn));
                    }
                }
                let ranges = ranges(&acks);
                prop_assert!(ranges.len() <= MAX_ACK_RANGES);
                // Descending, with at least one number missing between ranges.
                prop_assert!(ranges.windows(2).all(|pair| pair[1].1 + 1 < pair[0].0));
                prop_assert_eq!(ranges.first().map(|range| range.1), model.last().copied());
                if let Some((oldest, _)) = ranges.last() {
                    // Every accepted packet is in the next ACK frame.
                    prop_assert!(fresh.is_none_or(|pn| pn >= *oldest));
                    let reported: Vec<_> = ranges.iter().rev().flat_map(|r| r.0..=r.1).collect();
                    let expected: Vec<_> = model.range(oldest..).copied().collect();
                    prop_assert_eq!(reported, expected);
                }
            }
        }
    }
}
