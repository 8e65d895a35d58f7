//! Sent packets that are neither acknowledged nor lost yet, and packet numbers that were never
//! used.

use super::token::{self, Tokens};
use crate::work;
use std::collections::VecDeque;
use std::collections::vec_deque;
use std::ops::{Range, RangeInclusive};
use std::time::Instant;

/// How many packets that are not in flight (ACK only) a space remembers. Only acknowledgements remove such
/// packets, and a peer need not acknowledge them. So the oldest are dropped, at the latest when there are
/// twice as many as this.
pub const MAX_NOT_IN_FLIGHT: usize = 256;
/// How many runs of deliberately skipped packet numbers a space remembers; older ones are dropped
/// first.
pub const MAX_SKIPPED: usize = 32;

/// A sent packet, as it is remembered. `C` is the congestion controller's state for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentPacket<C> {
    /// Its packet number.
    pub pn: u64,
    /// When it was sent.
    pub time: Instant,
    /// Its size in bytes within the UDP payload.
    pub size: u16,
    /// Whether the peer must acknowledge it in time (RFC 9002 section 2).
    pub ack_eliciting: bool,
    /// Whether it counts towards the bytes in flight (RFC 9002 section 2).
    pub in_flight: bool,
    /// Whether it was sent with the ECT(0) mark.
    pub ect0: bool,
    /// The congestion controller's state when it was sent.
    pub cc: C,
    /// The tokens of its frames.
    pub tokens: Tokens,
}

impl<C> SentPacket<C> {
    /// Whether the packet only finds out whether the path carries packets of its size, so that its loss is no
    /// sign of congestion (RFC 9000 section 14.4).
    pub fn is_mtu_probe(&self) -> bool {
        token::is_mtu_probe(&self.tokens)
    }

    /// Whether it is covered by the probe timeout.
    pub fn is_probed(&self) -> bool {
        self.ack_eliciting && self.in_flight
    }
}

/// The outstanding packets of one space, in the order of their numbers.
///
/// They are stored in a queue without holes, so memory depends on how many are outstanding and not
/// on the span of their numbers, which a peer that acknowledges nothing can stretch. After each ACK, any
/// packet three numbers older than the largest acknowledged is lost, so removals happen within a few places
/// of the front, and each packet is moved O(1) times in its life. On a path that reorders, the packets that
/// others overtook are visited as well; their number is bounded by
/// [`MAX_PACKET_THRESHOLD`](super::reordering::MAX_PACKET_THRESHOLD).
#[derive(Debug)]
pub struct SentPackets<C> {
    packets: VecDeque<SentPacket<C>>,
    /// One past the largest packet number ever sent.
    next: u64,
    not_in_flight: usize,
}

impl<C> Default for SentPackets<C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<C> SentPackets<C> {
    /// No packet was sent.
    pub const fn new() -> Self {
        Self { packets: VecDeque::new(), next: 0, not_in_flight: 0 }
    }

    /// Adds the newest packet. Its number must be larger than all earlier numbers; otherwise this end has a
    /// bug, and the packet is not tracked.
    pub fn insert(&mut self, packet: SentPacket<C>) {
        debug_assert!(packet.pn >= self.next, "packet number used twice");
        if packet.pn < self.next {
            return;
        }
        if self.packets.capacity() == 0 && self.next > 0 {
            // Usually the last acknowledgement, which is all that an idle connection remembers.
            self.packets.reserve_exact(1);
        }
        self.next = packet.pn + 1;
        self.not_in_flight += usize::from(!packet.in_flight);
        self.packets.push_back(packet);
        if self.not_in_flight >= 2 * MAX_NOT_IN_FLIGHT {
            self.forget_not_in_flight();
        }
    }

    /// One past the largest packet number ever sent: the smallest number that may be sent next.
    pub fn next_pn(&self) -> u64 {
        self.next
    }

    /// The outstanding packet with this number.
    #[cfg(test)]
    pub fn get(&self, pn: u64) -> Option<&SentPacket<C>> {
        let first = self.packets.front()?.pn;
        // Without gaps, the packet's index is its distance from the first.
        let guess = usize::try_from(pn.checked_sub(first)?).ok();
        if let Some(packet) = guess.and_then(|i| self.packets.get(i)).filter(|p| p.pn == pn) {
            return Some(packet);
        }
        let index = self.packets.binary_search_by_key(&pn, |p| p.pn).ok()?;
        self.packets.get(index)
    }

    /// The oldest outstanding packet.
    pub fn front(&self) -> Option<&SentPacket<C>> {
        self.packets.front()
    }

    /// Removes the oldest outstanding packet.
    pub fn pop_front(&mut self) -> Option<SentPacket<C>> {
        let packet = self.packets.pop_front()?;
        self.not_in_flight -= usize::from(!packet.in_flight);
        Some(packet)
    }

    /// The outstanding packets, oldest first.
    pub fn iter(&self) -> vec_deque::Iter<'_, SentPacket<C>> {
        self.packets.iter()
    }

    /// How many packets are outstanding.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Moves the packets whose numbers are in `ranges` (descending, disjoint) to the end of
    /// `acked`, oldest first.
    ///
    /// Visits packets that we sent, from the newest that is acknowledged to the oldest, so that neither the
    /// width of a range matters nor how often a peer repeats an acknowledgement.
    pub fn take_acked(
        &mut self,
        mut ranges: impl Iterator<Item = RangeInclusive<u64>> + Clone,
        acked: &mut Vec<SentPacket<C>>,
    ) {
        let within = self.acked_by(ranges.clone());
        let Some(mut range) = ranges.next().filter(|_| !within.is_empty()) else {
            return;
        };
        work::steps(within.len());
        let old_len = acked.len();
        // Of the packets below `upper`, those from `kept` on stay in the queue, as do all below `lower`.
        let upper = within.end;
        let (mut kept, mut lower) = (upper, upper);
        'packets: while lower > within.start {
            let pn = self.packets[lower - 1].pn;
            while pn < *range.start() {
                match ranges.next() {
                    Some(next) => range = next,
                    None => break 'packets,
                }
            }
            lower -= 1;
            if pn > *range.end() {
                kept -= 1;
                self.packets.swap(lower, kept);
            }
        }
        acked.extend(self.packets.drain(lower..kept));
        let newly = &mut acked[old_len..];
        if kept < upper {
            // The removed packets are out of order, because the packets that stay were swapped with some of
            // them.
            newly.sort_unstable_by_key(|p| p.pn);
        }
        self.not_in_flight -= newly.iter().filter(|p| !p.in_flight).count();
    }

    /// The places from the oldest to the newest packet in `ranges` (descending, disjoint); empty if
    /// none is outstanding.
    fn acked_by(&self, ranges: impl Iterator<Item = RangeInclusive<u64>>) -> Range<usize> {
        let (Some(first), Some(last)) = (self.packets.front(), self.packets.back()) else {
            return 0..0;
        };
        let mut within = 0..0;
        let reached = ranges.take_while(|range| *range.end() >= first.pn);
        for range in reached.filter(|range| *range.start() <= last.pn) {
            let start = self.packets.partition_point(|p| p.pn < *range.start());
            let end = self.packets.partition_point(|p| p.pn <= *range.end());
            if start < end {
                within = start..within.end.max(end);
            }
        }
        within
    }

    /// Removes everything. The next packet number does not change.
    pub fn take(&mut self) -> VecDeque<SentPacket<C>> {
        self.not_in_flight = 0;
        std::mem::take(&mut self.packets)
    }

    /// Gives back the memory for more packets than are outstanding.
    pub fn shrink(&mut self) {
        self.packets.shrink_to_fit();
    }

    fn forget_not_in_flight(&mut self) {
        let mut excess = self.not_in_flight.saturating_sub(MAX_NOT_IN_FLIGHT);
        self.not_in_flight -= excess;
        self.packets.retain(|p| {
            let forget = excess > 0 && !p.in_flight;
            excess -= usize::from(forget);
            !forget
        });
    }
}

/// Packet numbers below the largest sent that were never used. An honest peer never acknowledges such a
/// number, so they expose a peer that acknowledges packets which it did not receive (RFC 9000 section 21.4).
#[derive(Debug, Default)]
pub struct Skipped {
    /// Ascending.
    runs: VecDeque<Range<u64>>,
}

impl Skipped {
    /// All numbers were used.
    pub const fn new() -> Self {
        Self { runs: VecDeque::new() }
    }

    /// Records that no packet will have a number in `run`, which is above all earlier runs.
    pub fn push(&mut self, run: Range<u64>) {
        if run.is_empty() {
            return;
        }
        if self.runs.len() == MAX_SKIPPED {
            self.runs.pop_front();
        }
        self.runs.push_back(run);
    }

    /// Whether any number in `ranges` (descending) was skipped.
    pub fn intersects(&self, ranges: impl Iterator<Item = RangeInclusive<u64>>) -> bool {
        let Some(oldest) = self.runs.front().map(|run| run.start) else {
            return false;
        };
        ranges.take_while(|range| *range.end() >= oldest).any(|range| {
            let next = self.runs.partition_point(|run| run.end <= *range.start());
            self.runs.get(next).is_some_and(|run| run.start <= *range.end())
        })
    }

    /// Whether all of `gap` was skipped. True of an empty gap.
    pub fn covers(&self, gap: Range<u64>) -> bool {
        let next = self.runs.partition_point(|run| run.end <= gap.start);
        let run = self.runs.get(next);
        gap.is_empty() || run.is_some_and(|run| run.start <= gap.start && gap.end <= run.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::tests::ranges_below;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn packet(pn: u64, in_flight: bool) -> SentPacket<()> {
        SentPacket {
            pn,
            time: Instant::now(),
            size: 100,
            ack_eliciting: in_flight,
            in_flight,
            ect0: false,
            cc: (),
            tokens: Tokens::new(),
        }
    }

    fn numbers(packets: &[SentPacket<()>]) -> Vec<u64> {
        packets.iter().map(|p| p.pn).collect()
    }

    #[test]
    fn finds_packets_across_gaps() {
        let mut sent = SentPackets::default();
        for pn in [0, 1, 5, 1 << 40, (1 << 40) + 1] {
            sent.insert(packet(pn, true));
        }
        for pn in [0, 1, 5, 1 << 40, (1 << 40) + 1] {
            assert_eq!(sent.get(pn).map(|p| p.pn), Some(pn));
        }
        assert!([2, 4, 6, (1 << 40) + 2, u64::MAX].iter().all(|pn| sent.get(*pn).is_none()));
        assert_eq!(sent.next_pn(), (1 << 40) + 2);
    }

    #[test]
    fn takes_acked_packets_in_order_and_keeps_the_others_in_order() {
        let mut sent = SentPackets::default();
        (0..12).for_each(|pn| sent.insert(packet(pn, true)));
        let mut acked = Vec::new();
        sent.take_acked([8..=9, 5..=6, 2..=3].into_iter(), &mut acked);
        assert_eq!(numbers(&acked), [2, 3, 5, 6, 8, 9]);
        let left: Vec<_> = sent.iter().map(|p| p.pn).collect();
        assert_eq!(left, [0, 1, 4, 7, 10, 11]);
    }

    #[test]
    fn acknowledging_the_whole_number_space_is_cheap() {
        let mut sent = SentPackets::default();
        (0..4).for_each(|pn| sent.insert(packet(pn, true)));
        let mut acked = Vec::new();
        sent.take_acked(std::iter::once(0..=(1 << 62) - 1), &mut acked);
        assert_eq!(numbers(&acked), [0, 1, 2, 3]);
        assert_eq!(sent.next_pn(), 4);
    }

    #[test]
    fn flood_of_unacknowledged_acks_is_bounded() {
        let mut sent = SentPackets::default();
        // A packet in flight at the front that is never acknowledged must not keep the rest.
        sent.insert(packet(0, true));
        for pn in 1..20_000 {
            sent.insert(packet(pn, pn % 5_000 == 0));
            assert!(sent.len() < 2 * MAX_NOT_IN_FLIGHT + 5);
        }
        let in_flight: Vec<_> = sent.iter().filter(|p| p.in_flight).map(|p| p.pn).collect();
        assert_eq!(in_flight, [0, 5_000, 10_000, 15_000]);
        assert_eq!(sent.iter().next_back().map(|p| p.pn), Some(19_999));
        assert!(sent.packets.capacity() <= 4 * MAX_NOT_IN_FLIGHT);
    }

    #[test]
    fn skipped_numbers_are_bounded_and_found() {
        let mut skipped = Skipped::default();
        skipped.push(3..3);
        assert!(!skipped.intersects(std::iter::once(0..=u64::MAX)));
        for i in 0..1_000 {
            skipped.push(10 * i..10 * i + 2);
        }
        assert_eq!(skipped.runs.len(), MAX_SKIPPED);
        assert!(skipped.intersects([9_992..=9_995, 9_985..=9_990].into_iter()));
        assert!(skipped.intersects([9_995..=9_999, 9_981..=9_989].into_iter()));
        assert!(!skipped.intersects([9_992..=9_999, 9_982..=9_989].into_iter()));
        assert!(skipped.covers(9_990..9_992) && skipped.covers(9_991..9_992));
        assert!(!skipped.covers(9_990..9_993) && !skipped.covers(9_989..9_991));
        assert!(skipped.covers(7..7));
    }

    #[derive(Debug, Clone)]
    enum Op {
        Send { skip: u64, in_flight: bool },
        Ack(Vec<(u64, u64)>),
        PopFront,
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            6 => (prop_oneof![4 => Just(0), 1 => 1..4_u64], any::<bool>())
                .prop_map(|(skip, in_flight)| Op::Send { skip, in_flight }),
            2 => prop::collection::vec((0..6_u64, 0..6_u64), 1..6).prop_map(Op::Ack),
            1 => Just(Op::PopFront),
        ]
    }

    proptest! {
        #[test]
        fn behaves_like_a_map(ops in prop::collection::vec(op(), 1..200)) {
            let mut sent = SentPackets::default();
            let mut model = BTreeMap::new();
            for op in ops {
                match op {
                    Op::Send { skip, in_flight } => {
                        let pn = sent.next_pn() + skip;
                        sent.insert(packet(pn, in_flight));
                        model.insert(pn, in_flight);
                    }
                    Op::Ack(steps) => {
                        let ranges = ranges_below(sent.next_pn() + 3, &steps);
                        let mut acked = vec![packet(u64::MAX, true)];
                        sent.take_acked(ranges.iter().cloned(), &mut acked);
                        let covered = |pn: &u64| ranges.iter().any(|r| r.contains(pn));
                        let expected: Vec<_> = model.keys().copied().filter(covered).collect();
                        prop_assert_eq!(&numbers(&acked)[1..], &expected[..]);
                        model.retain(|pn, _| !covered(pn));
                    }
                    Op::PopFront => prop_assert_eq!(
                        sent.pop_front().map(|p| p.pn),
                        model.pop_first().map(|(pn, _)| pn)
                    ),
                }
                prop_assert!(sent.iter().map(|p| p.pn).eq(model.keys().copied()));
                prop_assert!(model.keys().all(|pn| sent.get(*pn).is_some_and(|p| p.pn == *pn)));
                let not_in_flight = model.values().filter(|in_flight| !**in_flight).count();
                prop_assert_eq!(sent.not_in_flight, not_in_flight);
            }
        }
    }
}
