//! Loss recovery (RFC 9002): which packets arrived, which were lost, and when to probe.
//!
//! [`Recovery`] is the sending side, for all three packet number spaces. [`ack::AckTracker`] is the
//! receiving side, one per space. Neither decides about lost data: the owners of a packet's tokens do.

pub mod ack;
pub mod by_space;
pub mod loss;
pub mod pto;
pub mod reordering;
pub mod sent;
pub mod token;

#[cfg(test)]
mod tests;

use crate::error::{TransportError, TransportErrorCode};
use crate::ids::{Side, SpaceId};
use crate::rtt::RttEstimator;
use by_space::{BySpace, Unused};
use loss::{LossRun, LostPacket, LostPackets};
use reordering::{MAX_PACKET_THRESHOLD, Reordering};
use sent::{SentPacket, SentPackets, Skipped};
use std::collections::{VecDeque, vec_deque};
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// The changes that an ACK frame made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AckOutcome {
    /// Whether it acknowledged an outstanding packet.
    pub newly_acked: bool,
    /// Whether any of the newly acknowledged packets was ack-eliciting.
    pub ack_eliciting: bool,
    /// Whether its largest packet number exceeds the numbers in all earlier ACK frames. Only then are its ECN
    /// counts meaningful (RFC 9000 section 13.4.2.1).
    pub largest_raised: bool,
    /// The round-trip time sample that it provided (RFC 9002 section 5.1), including the
    /// acknowledgement delay.
    pub rtt_sample: Option<Duration>,
}

/// One packet number space.
#[derive(Debug)]
struct Space<C> {
    sent: SentPackets<C>,
    skipped: Skipped,
    lost: LostPackets<C>,
    run: LossRun,
    largest_acked: Option<u64>,
    /// When the newest acknowledged packet was sent.
    newest_acked: Option<Instant>,
    /// When the oldest outstanding packet below the largest acknowledged one counts as lost.
    loss_time: Option<Instant>,
    /// Since when the probe timeout runs: usually since the last packet that it covers was sent.
    last_ack_eliciting: Option<Instant>,
    /// When the last packet that the probe timeout covers and that carries more than redundancy was sent.
    last_data: Option<Instant>,
    /// How many outstanding packets are covered by the probe timeout.
    probed: usize,
}

impl<C: 'static> Unused for Space<C> {
    const UNUSED: &'static Self = &Self::new();

    fn unused() -> Self {
        Self::new()
    }
}

impl<C> Space<C> {
    const fn new() -> Self {
        Self {
            sent: SentPackets::new(),
            skipped: Skipped::new(),
            lost: LostPackets::new(),
            run: LossRun::new(),
            largest_acked: None,
            newest_acked: None,
            loss_time: None,
            last_ack_eliciting: None,
            last_data: None,
            probed: 0,
        }
    }

    /// Rejects acknowledgements of packets that were never sent (RFC 9000 section 13.1).
    fn validate(
        &self,
        largest: u64,
        ranges: impl Iterator<Item = RangeInclusive<u64>>,
    ) -> Result<(), TransportError> {
        let reason = if largest >= self.sent.next_pn() {
            "acknowledgement of a packet that was not sent yet"
        } else if self.skipped.intersects(ranges) {
            "acknowledgement of a skipped packet number"
        } else {
            return Ok(());
        };
        Err(TransportError::new(TransportErrorCode::PROTOCOL_VIOLATION, reason))
    }
}

/// The sending side of loss recovery. `C` is the congestion controller's state for each packet.
#[derive(Debug)]
pub struct Recovery<C> {
    side: Side,
    spaces: BySpace<Space<C>>,
    /// When the newest acknowledged packet of the spaces that are forgotten was sent.
    newest_forgotten: Option<Instant>,
    rtt: RttEstimator,
    reordering: Reordering,
    max_ack_delay: Duration,
    bytes_in_flight: u64,
    /// The first packet number of the Data space that was sent on the present path.
    path_start: u64,
    pto_count: u32,
    /// When the probe timeout last expired since the last acknowledgement.
    last_pto: Option<Instant>,
    /// When an ack-eliciting packet was last sent, or packets were last acknowledged or discarded.
    last_activity: Option<Instant>,
    handshake_acked: bool,
    handshake_confirmed: bool,
}

impl<C: Copy + 'static> Recovery<C> {
    /// `initial_rtt` is assumed until the first sample.
    pub fn new(side: Side, initial_rtt: Duration) -> Self {
        Self {
            side,
            spaces: BySpace::new(Space::new()),
            newest_forgotten: None,
            rtt: RttEstimator::new(initial_rtt),
            reordering: Reordering::default(),
            max_ack_delay: Duration::ZERO,
            bytes_in_flight: 0,
            path_start: 0,
            pto_count: 0,
            last_pto: None,
            last_activity: None,
            handshake_acked: false,
            handshake_confirmed: false,
        }
    }

    /// The longest time for which the peer delays an acknowledgement in the Data space.
    pub fn max_ack_delay(&self) -> Duration {
        self.max_ack_delay
    }

    /// A packet counts as lost if it is this far below the largest acknowledged one.
    pub fn packet_threshold(&self) -> u64 {
        self.reordering.packet_threshold()
    }

    /// Sets how long the peer may delay an acknowledgement in the Data space.
    pub fn set_max_ack_delay(&mut self, max_ack_delay: Duration) {
        self.max_ack_delay = max_ack_delay;
    }

    /// Handles confirmation of the handshake (RFC 9001 section 4.1.2): from now on the Data space
    /// has a probe timeout.
    pub fn on_handshake_confirmed(&mut self) {
        self.handshake_confirmed = true;
    }

    /// The round-trip time of the path.
    pub fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// Goes over to a path with this round-trip time (RFC 9000 section 9.4): the measured reordering is
    /// forgotten, and packets sent before no longer count as in flight. They tell nothing about this path,
    /// but their data is still acknowledged or lost. Returns the round-trip time of the path that it leaves.
    pub fn change_path(&mut self, rtt: RttEstimator) -> RttEstimator {
        self.reordering = Reordering::default();
        self.path_start = self.spaces[SpaceId::Data].sent.next_pn();
        self.bytes_in_flight = 0;
        self.reset_backoff();
        std::mem::replace(&mut self.rtt, rtt)
    }

    /// Whether this packet was sent on the present path.
    pub fn is_on_path(&self, space: SpaceId, pn: u64) -> bool {
        space != SpaceId::Data || pn >= self.path_start
    }

    /// Starts probing anew, because the peer has turned up elsewhere.
    pub fn reset_backoff(&mut self) {
        self.pto_count = 0;
        self.last_pto = None;
    }

    /// Bytes in flight in all spaces.
    pub fn bytes_in_flight(&self) -> u64 {
        self.bytes_in_flight
    }

    /// How many ack-eliciting packets of the space are in flight.
    pub fn ack_eliciting_in_flight(&self, space: SpaceId) -> usize {
        self.spaces[space].probed
    }

    /// Whether an ack-eliciting packet of the space is in flight.
    #[cfg(test)]
    pub fn has_ack_eliciting_in_flight(&self, space: SpaceId) -> bool {
        self.ack_eliciting_in_flight(space) > 0
    }

    /// The largest packet number of the space acknowledged by the peer.
    pub fn largest_acked(&self, space: SpaceId) -> Option<u64> {
        self.spaces[space].largest_acked
    }

    /// The number from which the encoding of the next packet number must cover the distance (RFC
    /// 9000 section 17.1). Usually this is the largest acknowledged number. On a path that reorders it is
    /// lower: when many later packets arrive first, a number with too few bytes is decoded to a wrong one,
    /// and the packet is lost.
    pub fn decoded_from(&self, space: SpaceId) -> Option<u64> {
        let largest = self.largest_acked(space)?;
        let overtaken = if self.reordering.is_seen() { MAX_PACKET_THRESHOLD } else { 0 };
        Some(largest.saturating_sub(overtaken))
    }

    /// The outstanding packets of a space, oldest first. A probe may repeat their data.
    pub fn sent(&self, space: SpaceId) -> vec_deque::Iter<'_, SentPacket<C>> {
        self.spaces[space].sent.iter()
    }

    /// Records a packet that is being sent. Packet numbers between the space's last packet and this
    /// one are skipped: acknowledging one of them is an error by the peer.
    pub fn on_packet_sent(&mut self, space: SpaceId, packet: SentPacket<C>) {
        let time = packet.time;
        if packet.is_probed() {
            self.spaces[space].last_data = Some(time);
        }
        self.record(space, packet, time);
    }

    /// Records a packet that is being sent and carries only redundancy. Like a probe, the packet asks for an
    /// acknowledgement, so it puts the next probe off. But redundancy may go on for ever, so it puts off the
    /// probe for other packets in flight by no more than one probe timeout.
    pub fn on_redundancy_sent(&mut self, space: SpaceId, packet: SentPacket<C>) {
        let state = &self.spaces[space];
        let oldest = state.sent.front().filter(|_| state.probed > 0).map(|oldest| oldest.time);
        let latest = oldest.max(state.last_data.filter(|_| oldest.is_some()));
        let latest = latest.and_then(|time| time.checked_add(self.pto(space)));
        let since = latest.map_or(packet.time, |latest| packet.time.min(latest));
        self.record(space, packet, since);
    }

    /// Records a packet that is being sent. `since` is when its probe timeout begins.
    fn record(&mut self, space: SpaceId, packet: SentPacket<C>, since: Instant) {
        let state = &mut self.spaces[space];
        state.skipped.push(state.sent.next_pn()..packet.pn);
        if packet.in_flight {
            self.bytes_in_flight += u64::from(packet.size);
        }
        if packet.is_probed() {
            state.probed += 1;
            state.last_ack_eliciting = state.last_ack_eliciting.max(Some(since));
            self.last_activity = Some(packet.time);
        }
        state.sent.insert(packet);
    }

    /// Handles an ACK frame of the space. `ranges` are descending and disjoint; `ack_delay` is a
    /// duration, capped as required by RFC 9002 section 5.3. Appends newly acknowledged packets to
    /// `acked`, oldest first, and late acknowledged packets that were declared lost to `late`.
    ///
    /// Does not detect losses yet, because other frames of the same packet may tell of more packets that
    /// arrived. Call [`Self::detect_lost`] after them, before the next ACK frame.
    ///
    /// # Errors
    /// PROTOCOL_VIOLATION if a packet number was never sent or was skipped. Nothing changes then.
    pub fn on_ack_received<R>(
        &mut self,
        now: Instant,
        space: SpaceId,
        ranges: R,
        ack_delay: Duration,
        acked: &mut Vec<SentPacket<C>>,
        late: &mut Vec<LostPacket<C>>,
    ) -> Result<AckOutcome, TransportError>
    where
        R: Iterator<Item = RangeInclusive<u64>> + Clone,
    {
        let Some(largest) = ranges.clone().next().map(|range| *range.end()) else {
            return Ok(AckOutcome::default());
        };
        let retention = self.pto(space).saturating_mul(loss::LOST_RETENTION);
        let state = &mut self.spaces[space];
        state.validate(largest, ranges.clone())?;
        let before = state.largest_acked;
        let largest_raised = before.is_none_or(|old| old < largest);
        if largest_raised {
            state.largest_acked = Some(largest);
        }
        state.lost.expire(now, retention);
        let first_late = late.len();
        state.lost.take_acked(ranges.clone(), late);
        for lost in &late[first_late..] {
            state.run.on_late_ack(lost.pn);
            state.newest_acked = state.newest_acked.max(Some(lost.time));
        }
        let start = if space == SpaceId::Data { self.path_start } else { 0 };
        let first_acked = acked.len();
        state.sent.take_acked(ranges, acked);
        let newly = &acked[first_acked..];
        let was_lost = late[first_late..].iter().filter(|lost| lost.pn >= start);
        let was_lost = was_lost.map(|lost| lost.time);
        let overtaken = newly.iter().take_while(|packet| Some(packet.pn) < before);
        let overtaken = overtaken.filter(|packet| packet.pn >= start);
        let overtaken = overtaken.map(|packet| packet.time).chain(was_lost);
        if let Some(oldest) = overtaken.min() {
            self.reordering.on_overtaken(loss::lateness(now, oldest, &self.rtt));
        }
        let Some(newest) = newly.last() else {
            return Ok(AckOutcome { largest_raised, ..AckOutcome::default() });
        };
        state.newest_acked = state.newest_acked.max(Some(newest.time));
        let ack_eliciting = newly.iter().any(|packet| packet.ack_eliciting);
        let sample = (newest.pn == largest && newest.pn >= start && ack_eliciting)
            .then(|| now.saturating_duration_since(newest.time));
        for packet in newly {
            self.remove_from_flight(space, packet);
        }
        if let Some(sample) = sample {
            // A delay longer than the sample is not believed at all.
            let ack_delay = if ack_delay > sample { Duration::ZERO } else { ack_delay };
            self.rtt.update(now, sample, ack_delay);
        }
        self.last_activity = self.last_activity.max(Some(now));
        self.handshake_acked |= space == SpaceId::Handshake;
        if self.peer_validated_address() {
            // Before that, the acknowledgement of an Initial does not show that the server can
            // proceed (RFC 9002 section 6.2.1).
            self.reset_backoff();
        }
        Ok(AckOutcome { newly_acked: true, ack_eliciting, largest_raised, rtt_sample: sample })
    }

    /// Appends packets of the space that are now lost to `lost`, oldest first, and sets the loss
    /// timer for the next (RFC 9002 section 6.1). Once the path has reordered packets, time alone decides,
    /// and it allows for as much reordering as was seen. Some of the lost packets may not have been in
    /// flight. Returns whether the losses establish persistent congestion (section 7.6).
    pub fn detect_lost(
        &mut self,
        now: Instant,
        space: SpaceId,
        lost: &mut Vec<SentPacket<C>>,
    ) -> bool {
        let delay = self.reordering.loss_delay(&self.rtt);
        let threshold = self.reordering.packet_threshold();
        let lasting = self.pto(SpaceId::Data).saturating_mul(loss::PERSISTENT_CONGESTION_THRESHOLD);
        let others = self.spaces.in_use().iter().filter(|id| **id != space);
        let others = others.filter_map(|id| self.spaces[*id].newest_acked);
        let others = others.max().max(self.newest_forgotten);
        let Some(state) = self.spaces.get_mut(space) else { return false };
        state.loss_time = None;
        let Some(largest) = state.largest_acked else {
            return false;
        };
        let first = lost.len();
        let mut persistent = false;
        while let Some(oldest) = state.sent.front().filter(|oldest| oldest.pn <= largest) {
            let deadline = oldest.time.checked_add(delay);
            if largest - oldest.pn < threshold && deadline.is_none_or(|at| at > now) {
                // All packets after it were sent later.
                state.loss_time = deadline;
                break;
            }
            let Some(packet) = state.sent.pop_front() else {
                break;
            };
            state.lost.push(now, &packet);
            self.reordering.on_lost(now, packet.time);
            let span = state.run.on_lost(&packet, &state.skipped, self.rtt.first_sample());
            if let Some((start, end)) = span {
                let acked_elsewhere = others.is_some_and(|newest| newest >= start);
                if end.saturating_duration_since(start) > lasting && !acked_elsewhere {
                    persistent = true;
                    state.run.restart();
                }
            }
            lost.push(packet);
        }
        for packet in &lost[first..] {
            self.remove_from_flight(space, packet);
        }
        persistent
    }

    /// Discards the outstanding packets of a space without counting them as lost: its keys are
    /// discarded (RFC 9002 section 6.4), a Retry arrived for the Initial space (section 6.3), or
    /// the server rejected the 0-RTT packets of the Data space. Resets the backoff and the space's
    /// timers, but not its packet numbers.
    pub fn discard_space(&mut self, now: Instant, space: SpaceId) -> VecDeque<SentPacket<C>> {
        self.reset_backoff();
        self.last_activity = self.last_activity.max(Some(now));
        let Some(state) = self.spaces.get_mut(space) else { return VecDeque::new() };
        state.probed = 0;
        state.last_ack_eliciting = None;
        state.last_data = None;
        state.loss_time = None;
        state.lost.clear();
        state.run.restart();
        let in_flight = state.sent.iter().filter(|packet| packet.in_flight);
        let bytes: u64 = in_flight.map(|packet| u64::from(packet.size)).sum();
        self.bytes_in_flight = self.bytes_in_flight.saturating_sub(bytes);
        state.sent.take()
    }

    /// Forgets a space of the handshake that was [discarded](Self::discard_space) and is no longer used.
    pub fn forget_space(&mut self, space: SpaceId) {
        self.newest_forgotten = self.newest_forgotten.max(self.spaces[space].newest_acked);
        self.spaces.forget(space);
    }

    /// Gives back the memory for more packets than are outstanding.
    pub fn shrink(&mut self) {
        self.spaces[SpaceId::Data].sent.shrink();
    }

    /// Whether the peer is known to have validated our address (RFC 9002 section 6.2.2.1). Clients
    /// do not validate addresses, so for a server this is always true.
    fn peer_validated_address(&self) -> bool {
        self.side.is_server() || self.handshake_acked || self.handshake_confirmed
    }

    fn remove_from_flight(&mut self, space: SpaceId, packet: &SentPacket<C>) {
        if packet.in_flight && self.is_on_path(space, packet.pn) {
            self.bytes_in_flight = self.bytes_in_flight.saturating_sub(u64::from(packet.size));
        }
        if packet.is_probed() {
            let probed = &mut self.spaces[space].probed;
            *probed = probed.saturating_sub(1);
        }
    }
}
