//! Decides when packets are lost, when losses are persistent congestion, and which losses were
//! spurious (RFC 9002 sections 6.1 and 7.6).

use super::reordering::MAX_PACKET_THRESHOLD;
use super::sent::{SentPacket, Skipped};
use super::token::Tokens;
use crate::rtt::{GRANULARITY, RttEstimator};
use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// A packet is lost if it is this far below the largest acknowledged one (RFC 9002 section 6.1.1).
pub const PACKET_THRESHOLD: u64 = 3;
/// Persistent congestion lasts longer than this many probe timeouts (RFC 9002 section 7.6.1).
pub const PERSISTENT_CONGESTION_THRESHOLD: u32 = 3;
/// How many lost packets a space remembers to recognise late acknowledgements; the oldest are
/// dropped first.
///
/// This is as many as the packet threshold of a path that reorders leaves unsettled, so that none of
/// them is taken for a loss for good only because there were many.
pub const MAX_LOST_REMEMBERED: usize = MAX_PACKET_THRESHOLD as usize;
/// Memory for this many lost packets is kept when none is remembered.
const FEW_LOST: usize = 64;
/// For how many probe timeouts the acknowledgement of a lost packet is awaited. RFC 9000 section
/// 10.2 expects everything still in transit to arrive within that time.
pub const LOST_RETENTION: u32 = 3;

/// How long after sending a packet counts as lost if a later one was acknowledged, on a path that
/// does not reorder: 9/8 of the round-trip time (RFC 9002 section 6.1.2).
pub fn loss_delay(rtt: &RttEstimator) -> Duration {
    let rtt = awaited(rtt);
    rtt.saturating_add(rtt / 8).max(GRANULARITY)
}

/// By how much the acknowledgement at `now` of a packet sent at `sent` is later than expected. Measured
/// against the same round-trip time as [`loss_delay`], whose eighth remains as a margin.
pub fn lateness(now: Instant, sent: Instant, rtt: &RttEstimator) -> Duration {
    now.saturating_duration_since(sent).saturating_sub(awaited(rtt))
}

/// The round-trip time within which an acknowledgement is expected.
fn awaited(rtt: &RttEstimator) -> Duration {
    rtt.latest().max(rtt.smoothed())
}

/// A run of lost packets with nothing acknowledged among them, within one space.
///
/// Losses of a space are declared in the order of packet numbers, and all packets older than a lost packet
/// were acknowledged or declared lost before it. So no packet between two lost ones was acknowledged if and
/// only if all numbers between them were lost or never sent. A run continues across calls.
#[derive(Debug, Default)]
pub struct LossRun {
    /// One past the run's last packet number.
    next: u64,
    /// The first ack-eliciting packet sent after the first round-trip time sample.
    start: Option<(u64, Instant)>,
}

impl LossRun {
    /// No packet was lost.
    pub const fn new() -> Self {
        Self { next: 0, start: None }
    }

    /// Adds a lost packet. If it counts towards persistent congestion and is not the run's first
    /// that does, returns the times at which the first and this one were sent.
    pub fn on_lost<C>(
        &mut self,
        packet: &SentPacket<C>,
        skipped: &Skipped,
        first_rtt_sample: Option<Instant>,
    ) -> Option<(Instant, Instant)> {
        if !skipped.covers(self.next..packet.pn) {
            self.start = None;
        }
        self.next = packet.pn.saturating_add(1);
        if !packet.ack_eliciting || first_rtt_sample.is_none_or(|sample| packet.time <= sample) {
            return None;
        }
        match self.start {
            Some((_, start)) => Some((start, packet.time)),
            None => {
                self.start = Some((packet.pn, packet.time));
                None
            }
        }
    }

    /// Handles the late acknowledgement of a packet that was declared lost.
    pub fn on_late_ack(&mut self, pn: u64) {
        if self.start.is_some_and(|(first, _)| first <= pn) {
            self.start = None;
        }
    }

    /// Starts over once persistent congestion is established: the next must last as long again.
    pub fn restart(&mut self) {
        self.start = None;
    }
}

/// A lost packet, which is remembered until it can no longer be acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostPacket<C> {
    /// Its packet number.
    pub pn: u64,
    /// When it was sent.
    pub time: Instant,
    /// When it was declared lost.
    pub declared: Instant,
    /// Its size in bytes within the UDP payload.
    pub size: u16,
    /// Whether it counted towards the bytes in flight.
    pub in_flight: bool,
    /// The congestion controller's state when it was sent.
    pub cc: C,
    /// The tokens of its frames.
    pub tokens: Tokens,
}

/// The latest losses of a space, to recognise by late acknowledgements which were only reordering.
#[derive(Debug)]
pub struct LostPackets<C> {
    /// Sorted by packet number and by time of declaration.
    packets: VecDeque<LostPacket<C>>,
}

impl<C> LostPackets<C> {
    /// No packet was lost.
    pub const fn new() -> Self {
        Self { packets: VecDeque::new() }
    }
}

impl<C: Copy> LostPackets<C> {
    /// Adds a packet that was just declared lost.
    pub fn push(&mut self, now: Instant, packet: &SentPacket<C>) {
        if self.packets.len() == MAX_LOST_REMEMBERED {
            self.packets.pop_front();
        }
        self.packets.push_back(LostPacket {
            pn: packet.pn,
            time: packet.time,
            declared: now,
            size: packet.size,
            in_flight: packet.in_flight,
            cc: packet.cc,
            tokens: packet.tokens.clone(),
        });
    }

    /// Removes packets that were declared lost longer than `retention` ago. Once none is left, the
    /// memory that a burst of losses took is given back.
    pub fn expire(&mut self, now: Instant, retention: Duration) {
        let old = |lost: &LostPacket<C>| now.saturating_duration_since(lost.declared) > retention;
        while self.packets.front().is_some_and(old) {
            self.packets.pop_front();
        }
        if self.packets.is_empty() {
            self.packets.shrink_to(FEW_LOST);
        }
    }

    /// Moves the packets whose numbers are in `ranges` (descending) to `late`.
    pub fn take_acked(
        &mut self,
        ranges: impl Iterator<Item = RangeInclusive<u64>>,
        late: &mut Vec<LostPacket<C>>,
    ) {
        let Some(oldest) = self.packets.front().map(|lost| lost.pn) else {
            return;
        };
        for range in ranges.take_while(|range| *range.end() >= oldest) {
            let first = self.packets.partition_point(|lost| lost.pn < *range.start());
            let end = self.packets.partition_point(|lost| lost.pn <= *range.end());
            if first < end {
                late.extend(self.packets.drain(first..end));
            }
        }
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.packets.clear();
    }
}
