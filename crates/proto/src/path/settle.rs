//! What congestion control is told of packets that were acknowledged or lost.

use super::Path;
use crate::congestion::{Acked, Lost, Packet, PacketState};
use crate::ecn::EcnCounts;
use crate::error::TransportError;
use crate::ids::SpaceId;
use crate::recovery::loss::LostPacket;
use crate::recovery::pto::{PtoContext, Timeout};
use crate::recovery::sent::SentPacket;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// Packets that were acknowledged or lost, for the owners of their frames.
#[derive(Debug, Default)]
pub struct Settled {
    /// Newly acknowledged, oldest first.
    pub acked: Vec<SentPacket<PacketState>>,
    /// Acknowledged after they had been declared lost.
    pub late: Vec<LostPacket<PacketState>>,
    /// Declared lost, oldest first.
    pub lost: Vec<SentPacket<PacketState>>,
}

/// What is to be reported to congestion control when an ACK frame was processed to its end.
#[derive(Debug, Default)]
pub(super) struct Reports {
    acked: Vec<Acked>,
    refuted: Vec<Lost>,
    lost: Vec<Lost>,
}

fn report(space: SpaceId, packet: &SentPacket<PacketState>) -> Packet {
    let SentPacket { pn, size, time, cc, .. } = *packet;
    Packet { space, pn, bytes: size.into(), sent: time, state: cc }
}

impl Path {
    /// An ACK frame came. What it acknowledges goes to the end of `settled.acked` and
    /// `settled.late`; [`detect_lost`](Self::detect_lost) and [`conclude`](Self::conclude) are to
    /// follow when all frames of its packet were processed.
    ///
    /// # Errors
    /// It acknowledges what was never sent.
    pub fn on_ack<R>(
        &mut self,
        now: Instant,
        space: SpaceId,
        ranges: R,
        delay: Duration,
        ecn: Option<EcnCounts>,
        settled: &mut Settled,
    ) -> Result<(), TransportError>
    where
        R: Iterator<Item = RangeInclusive<u64>> + Clone,
    {
        let Settled { acked, late, .. } = settled;
        let outcome = self.recovery.on_ack_received(now, space, ranges, delay, acked, late)?;
        // Frames may come out of order; only the newest counts (RFC 9000 section 13.4.2.1).
        if outcome.largest_raised && space == SpaceId::Data {
            self.ecn_reported = ecn.unwrap_or(self.ecn_reported);
        }
        for packet in &*acked {
            self.loss.on_packet(false);
            if packet.in_flight {
                self.reports.acked.push(report(space, packet));
            }
        }
        // Of others that were lost congestion control never heard.
        for packet in late.iter().filter(|packet| packet.in_flight) {
            let LostPacket { pn, size, time, cc, .. } = *packet;
            self.reports.refuted.push(Packet {
                space,
                pn,
                bytes: size.into(),
                sent: time,
                state: cc,
            });
        }
        Ok(())
    }

    /// Moves what is lost by now to the end of `settled.lost`; returns whether the losses establish
    /// persistent congestion.
    pub fn detect_lost(&mut self, now: Instant, space: SpaceId, settled: &mut Settled) -> bool {
        self.recovery.detect_lost(now, space, &mut settled.lost)
    }

    /// Acts on the expiry of the loss detection timer; packets that are lost by now go to the end of
    /// `settled.lost`.
    pub fn on_timeout(
        &mut self,
        now: Instant,
        context: PtoContext,
        settled: &mut Settled,
    ) -> Timeout {
        self.recovery.on_timeout(now, context, &mut settled.lost)
    }

    /// Tells congestion control of packets that were declared lost.
    pub fn on_lost(
        &mut self,
        now: Instant,
        space: SpaceId,
        lost: &[SentPacket<PacketState>],
        persistent_congestion: bool,
    ) {
        let reports = &mut self.reports.lost;
        reports.extend(lost.iter().filter(|p| p.in_flight).map(|packet| report(space, packet)));
        lost.iter().for_each(|_| self.loss.on_packet(true));
        if !reports.is_empty() {
            let in_flight = self.recovery.bytes_in_flight();
            self.congestion.on_packets_lost(now, reports, persistent_congestion, in_flight);
            reports.clear();
        }
    }

    /// Tells congestion control of what was acknowledged, after what was lost (RFC 9002 appendix
    /// A.7).
    pub fn conclude(&mut self, now: Instant) {
        let Reports { acked, refuted, .. } = &mut self.reports;
        if !refuted.is_empty() {
            self.congestion.on_spurious_loss(now, refuted);
            refuted.clear();
        }
        if !acked.is_empty() {
            let (rtt, in_flight) = (self.recovery.rtt(), self.recovery.bytes_in_flight());
            self.congestion.on_packets_acked(now, acked, rtt, in_flight, self.app_limited);
            acked.clear();
        }
        self.update_pacer(now);
    }
}
