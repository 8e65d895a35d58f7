//! Tracks received packets and decides when to acknowledge them (RFC 9000 section 13.2,
//! draft-ietf-quic-ack-frequency-11).

use crate::ecn::{EcnCodepoint, EcnCounts};
use crate::ids::SpaceId;
use crate::work;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// How many ranges of received packet numbers a space stores. The oldest are dropped first;
/// packets older than the oldest stored range count as received (RFC 9000 section 13.2.3).
pub const USUAL_ACK_RANGES: usize = 64;
/// The same limit once a packet arrived after a later one.
///
/// A packet that arrives later than the oldest range is dropped, so this bounds how much reordering
/// is tolerated: a path of 200 Mbit/s that delays every third packet by 50 ms needs 200 ranges. An ACK frame
/// reports as many of the newest ranges as fit.
pub const MAX_ACK_RANGES: usize = 256;
/// How many ack-eliciting packets may arrive before one triggers an ACK frame, unless the peer asks for
/// another number (RFC 9000 section 13.2.2).
pub const USUAL_TOLERATED: u64 = 1;
/// How far packets may be out of order before that triggers an ACK frame, unless the peer asks for another
/// distance: not at all (RFC 9000 section 13.2.1).
pub const USUAL_REORDERING: u64 = 1;
/// After this many packets with an ACK frame but nothing ack-eliciting, one should carry a PING, so
/// that the peer acknowledges our acknowledgements (RFC 9000 section 13.2.4).
pub const MAX_ACK_ONLY: u32 = 1_000;
/// The same limit while the ACK frame is long, i.e. has at least [`LONG_ACK_RANGES`] ranges.
pub const MAX_LONG_ACK_ONLY: u32 = 32;
/// An ACK frame with at least this many ranges is long.
pub const LONG_ACK_RANGES: usize = 16;

/// How often packets of the Data space are acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckRate {
    /// How many ack-eliciting packets may arrive before one triggers an ACK frame: the Ack-Eliciting
    /// Threshold.
    pub tolerated: u64,
    /// How long an ACK frame may be delayed.
    pub max_delay: Duration,
    /// An ACK frame is triggered when a packet is missing that is this far below the largest
    /// ack-eliciting one: the Reordering Threshold. 0 if order does not matter.
    pub reordering: u64,
}

impl AckRate {
    /// The rate that RFC 9000 recommends, with this `max_ack_delay`.
    pub const fn usual(max_delay: Duration) -> Self {
        Self { tolerated: USUAL_TOLERATED, max_delay, reordering: USUAL_REORDERING }
    }
}

/// The packet numbers received: a bounded number of ranges above a floor.
#[derive(Debug, Default)]
struct Received {
    /// Ascending and inclusive, neither overlapping nor adjacent: new packets go to the end.
    ranges: Vec<(u64, u64)>,
    /// All packets below this count as received.
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
            (false, false) => {
                work::steps(self.ranges.len() - index);
                self.ranges.insert(index, (pn, pn));
            }
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

    /// The lowest number in `first..end` that does not count as received.
    fn first_missing(&self, first: u64, end: u64) -> Option<u64> {
        let first = first.max(self.floor);
        let index = self.ranges.partition_point(|(_, last)| *last < first);
        let missing = match self.ranges.get(index) {
            Some((start, last)) if *start <= first => last.saturating_add(1),
            Some(_) | None => first,
        };
        (missing < end).then_some(missing)
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
    rate: AckRate,
    /// Whether the peer asked for that rate.
    requested: bool,
    received: Received,
    /// The largest packet number received and its time of arrival.
    largest: Option<(u64, Instant)>,
    largest_ack_eliciting: Option<u64>,
    /// The largest number in the last ACK frame sent.
    reported: Option<u64>,
    /// Whether the packet that came last was marked as having met congestion.
    congested: bool,
    /// The furthest below the largest number that a packet has arrived.
    reach: u64,
    ecn: EcnCounts,
    /// Ack-eliciting packets received since the last ACK frame was sent.
    ack_eliciting: u64,
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
    pub const fn new(space: SpaceId, max_ack_delay: Duration) -> Self {
        Self {
            space,
            rate: AckRate::usual(max_ack_delay),
            requested: false,
            received: Received { ranges: Vec::new(), floor: 0 },
            largest: None,
            largest_ack_eliciting: None,
            reported: None,
            congested: false,
            reach: 0,
            ecn: EcnCounts { ect0: 0, ect1: 0, ce: 0 },
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
        let congested = ecn == Some(EcnCodepoint::Ce);
        // A peer that asked for few ACK frames gets none for each of many marks (section 6.4 of the draft).
        let told = std::mem::replace(&mut self.congested, congested);
        let few = self.requested && self.rate.tolerated > USUAL_TOLERATED;
        if ack_eliciting {
            self.on_ack_eliciting(now, pn, congested && !(few && told));
        }
    }

    /// How often packets are acknowledged.
    #[cfg(test)]
    pub fn rate(&self) -> AckRate {
        self.rate
    }

    /// Acknowledges as the peer asks for.
    pub fn set_rate(&mut self, rate: AckRate) {
        self.rate = rate;
        self.requested = true;
    }

    fn on_ack_eliciting(&mut self, now: Instant, pn: u64, congestion: bool) {
        let disordered = self.is_disordered(pn);
        self.largest_ack_eliciting = self.largest_ack_eliciting.max(Some(pn));
        self.ack_eliciting = self.ack_eliciting.saturating_add(1);
        // RFC 9000 section 13.2.1: handshakes must not wait, and reordering, loss and congestion
        // must be reported to the peer's recovery quickly.
        self.immediate |= self.space != SpaceId::Data
            || disordered
            || congestion
            || self.ack_eliciting > self.rate.tolerated;
        if self.deadline.is_none() {
            self.deadline = now.checked_add(self.rate.max_delay);
        }
    }

    /// Whether the ack-eliciting packet `pn`, which was just received, shows so much disorder that the
    /// peer must learn of it at once.
    fn is_disordered(&self, pn: u64) -> bool {
        match (self.rate.reordering, self.largest_ack_eliciting) {
            (0, _) | (USUAL_REORDERING, None) => false,
            (USUAL_REORDERING, Some(largest)) => {
                pn < largest || !self.received.contains_up_to(largest + 1, pn)
            }
            (threshold, largest) => {
                let newest = largest.map_or(pn, |largest| largest.max(pn));
                // Numbers further below the last report counted as missing at that time (section 6.2 of the
                // draft).
                let first = self.reported.map_or(0, |at| (at + 1).saturating_sub(threshold));
                let missing = self.received.first_missing(first, newest);
                missing.is_some_and(|missing| newest - missing >= threshold)
            }
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

    /// Whether an ACK frame would tell the peer news, so that it is worth adding to a packet that is sent
    /// anyway.
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
    /// PING. `MAX_ACK_ONLY` bounds how long ranges are kept, `MAX_LONG_ACK_ONLY` how many bytes they cost
    /// on a lossy path. Either asks for a PING in at most one of 32 packets, so two ends never keep each
    /// other awake.
    pub fn wants_ping(&self) -> bool {
        let long = self.received.ranges.len() >= LONG_ACK_RANGES;
        self.ack_only >= if long { MAX_LONG_ACK_ONLY } else { MAX_ACK_ONLY }
    }

    /// Records that an ACK frame was written into a packet.
    pub fn on_ack_sent(&mut self, ack_eliciting: bool) {
        self.reported = self.largest();
        self.ack_eliciting = 0;
        self.unreported = false;
        self.immediate = false;
        self.deadline = None;
        self.ack_only = if ack_eliciting { 0 } else { self.ack_only.saturating_add(1) };
    }

    /// Handles the acknowledgement of our ACK frame whose largest packet number was `largest`: its ranges
    /// need not be repeated (RFC 9000 section 13.2.4), except for the largest number of all.
    ///
    /// Forgotten numbers count as received, and packets that still arrive with them are dropped. On a path
    /// that reorders, gaps are therefore kept until twice as many packets have passed as ever passed before a
    /// gap was filled.
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

    /// These packets arrive, which elicit acknowledgements.
    fn receive(acks: &mut AckTracker, now: Instant, pns: impl IntoIterator<Item = u64>) {
        pns.into_iter().for_each(|pn| acks.on_packet_received(now, pn, true, None));
    }

    fn ranges(tracker: &AckTracker) -> Vec<(u64, u64)> {
        tracker.ranges().map(|range| (*range.start(), *range.end())).collect()
    }

    #[test]
    fn handshake_packets_are_acknowledged_at_once() {
        for space in [SpaceId::Initial, SpaceId::Handshake] {
            let (mut acks, now) = tracker(space);
            receive(&mut acks, now, [0]);
            assert!(acks.is_due(now));
            acks.on_ack_sent(false);
            assert!(!acks.is_due(now + 10 * DELAY));
        }
    }

    #[test]
    fn every_second_ack_eliciting_packet_is_acknowledged() {
        let (mut acks, now) = tracker(SpaceId::Data);
        for pn in 0..10 {
            receive(&mut acks, now, [pn]);
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
        receive(&mut acks, now, [0]);
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
        receive(&mut acks, now, [0]);
        acks.on_ack_sent(false);
        receive(&mut acks, now, [2]);
        assert!(acks.is_due(now), "1 is missing");
        acks.on_ack_sent(false);
        receive(&mut acks, now, [3]);
        assert!(!acks.is_due(now), "1 is missing still, but that is no news");
        acks.on_ack_sent(false);
        receive(&mut acks, now, [1]);
        assert!(acks.is_due(now), "older than 3");
        acks.on_ack_sent(false);
        acks.on_packet_received(now, 4, false, None);
        receive(&mut acks, now, [5]);
        assert!(!acks.is_due(now), "4 did come");
        acks.on_ack_sent(false);
        acks.on_packet_received(now, 6, true, Some(EcnCodepoint::Ce));
        assert!(acks.is_due(now), "congestion");
    }

    fn asked(tolerated: u64, reordering: u64) -> (AckTracker, Instant) {
        let (mut acks, now) = tracker(SpaceId::Data);
        acks.set_rate(AckRate { tolerated, max_delay: 4 * DELAY, reordering });
        (acks, now)
    }

    #[test]
    fn a_peer_gets_the_rate_that_it_asks_for() {
        for tolerated in [0, 1, 2, 10] {
            let (mut acks, now) = asked(tolerated, 1);
            for pn in 0..100 {
                receive(&mut acks, now, [pn]);
                assert_eq!(acks.is_due(now), (pn + 1) % (tolerated + 1) == 0, "{pn} {tolerated}");
                if acks.is_due(now) {
                    acks.on_ack_sent(false);
                }
            }
        }
        let (mut acks, now) = asked(10, 1);
        receive(&mut acks, now, [0]);
        assert_eq!(acks.timeout(), Some(now + 4 * DELAY));
    }

    #[test]
    fn disorder_is_reported_when_it_is_as_large_as_asked_for() {
        // The examples of section 6.2.1 of the draft: packets, and those that an ACK frame follows.
        for (reordering, arrivals, reported) in [
            (3, &[0, 1, 3, 4, 5, 8, 9, 10][..], &[5, 9, 10][..]),
            (5, &[0, 1, 3, 5, 6, 7, 8, 9], &[7, 9]),
            (0, &[0, 9, 3], &[]),
            (1, &[0, 1, 3, 4, 2], &[3, 2]),
        ] {
            let (mut acks, now) = asked(100, reordering);
            for pn in arrivals {
                receive(&mut acks, now, [*pn]);
                assert_eq!(acks.is_due(now), reported.contains(pn), "{pn}, threshold {reordering}");
                if acks.is_due(now) {
                    acks.on_ack_sent(false);
                }
            }
        }
    }

    #[test]
    fn of_marks_in_a_row_only_the_first_is_reported_at_once_if_few_reports_are_wanted() {
        for (tolerated, again) in [(1, true), (10, false)] {
            let (mut acks, now) = asked(tolerated, 1);
            for (pn, (ce, due)) in
                [(true, true), (true, again), (false, false), (true, true)].into_iter().enumerate()
            {
                let mark = if ce { EcnCodepoint::Ce } else { EcnCodepoint::Ect0 };
                acks.on_packet_received(now, pn as u64, true, Some(mark));
                assert_eq!(acks.is_due(now), due, "{pn} {tolerated}");
                acks.on_ack_sent(false);
            }
        }
    }

    #[test]
    fn pruned_packets_are_no_gap() {
        let (mut acks, now) = tracker(SpaceId::Data);
        receive(&mut acks, now, [0]);
        (1..5).for_each(|pn| acks.on_packet_received(now, pn, false, None));
        acks.on_ack_sent(true);
        acks.on_ack_acked(4);
        receive(&mut acks, now, [5]);
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
        receive(&mut acks, now, [0, 1, 3, 4, 8, 9]);
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
        receive(&mut acks, now, (0..100).chain(110..200));
        // The first that arrives late, 90 numbers below the largest.
        receive(&mut acks, now, [109]);
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
            receive(&mut acks, now, [pn]);
            assert!(acks.ranges().len() <= USUAL_ACK_RANGES);
        }
        assert_eq!(acks.ranges().next(), Some(99_998..=99_998));
        let floor = *acks.ranges().next_back().unwrap().start();
        assert_eq!(floor, 100_000 - 2 * USUAL_ACK_RANGES as u64);
        assert!(acks.is_duplicate(floor - 1) && !acks.is_duplicate(floor + 1));
        assert_eq!(acks.received.ranges.capacity(), USUAL_ACK_RANGES * 2);
        // The other way round, too: only the newest ranges are kept.
        let (mut acks, now) = tracker(SpaceId::Data);
        receive(&mut acks, now, (0..1_000).rev().step_by(2));
        assert_eq!(acks.ranges().len(), MAX_ACK_RANGES);
        assert_eq!(acks.largest(), Some(999));
    }

    #[test]
    fn extreme_packet_numbers_are_safe() {
        let (mut acks, now) = tracker(SpaceId::Data);
        receive(&mut acks, now, [u64::MAX - 1, u64::MAX, 0, 1]);
        assert_eq!(ranges(&acks), [(u64::MAX - 1, u64::MAX), (0, 1)]);
    }

    #[test]
    fn now_and_then_our_acknowledgements_ask_for_one() {
        let (mut acks, now) = tracker(SpaceId::Data);
        let mut pn = 0;
        let mut pings = 0;
        for _ in 0..5 * (MAX_ACK_ONLY + 1) {
            receive(&mut acks, now, [pn]);
            pn += 1;
            pings += u32::from(acks.wants_ping());
            acks.on_ack_sent(acks.wants_ping());
        }
        assert_eq!(pings, 5);
        // A long ACK frame asks for a PING earlier.
        for i in 0..LONG_ACK_RANGES as u32 + MAX_LONG_ACK_ONLY {
            pn += 2;
            receive(&mut acks, now, [pn]);
            assert_eq!(acks.wants_ping(), i >= MAX_LONG_ACK_ONLY, "{i}");
            acks.on_ack_sent(false);
        }
        acks.on_ack_acked(pn);
        assert!(!acks.wants_ping());
    }

    proptest! {
        #[test]
        fn the_first_missing_number_is_that_of_a_set(
            numbers in proptest::collection::vec(0..60u64, 0..60),
            first in 0..60u64,
            end in 0..60u64,
        ) {
            let mut received = Received::default();
            let mut model = BTreeSet::new();
            for pn in numbers {
                if model.insert(pn) {
                    received.insert(pn, 100);
                }
            }
            let expected = (first..end).find(|pn| !model.contains(pn));
            proptest::prop_assert_eq!(received.first_missing(first, end), expected);
        }

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
                    receive(&mut acks, now, [pn]);
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
