//! Reports acknowledged and lost packets to congestion control.

use super::{Path, Sized};
use crate::congestion::{Acked, Lost, Packet, PacketState, Sent};
use crate::ecn::EcnCounts;
use crate::error::TransportError;
use crate::ids::SpaceId;
use crate::recovery::loss::LostPacket;
use crate::recovery::pto::{PtoContext, Timeout};
use crate::recovery::sent::SentPacket;
use crate::recovery::token::{has_repair, is_mtu_probe};
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// Packets that were acknowledged or lost, to be passed to the owners of their frames.
#[derive(Debug, Default)]
pub struct Settled {
    /// Newly acknowledged, oldest first.
    pub acked: Vec<SentPacket<PacketState>>,
    /// Acknowledged after they had been declared lost.
    pub late: Vec<LostPacket<PacketState>>,
    /// Declared lost, oldest first.
    pub lost: Vec<SentPacket<PacketState>>,
    reports: Reports,
}

/// What congestion control is told of these packets, once an ACK frame is fully processed.
#[derive(Debug, Default)]
struct Reports {
    acked: Vec<Acked>,
    refuted: Vec<Lost>,
    lost: Vec<Lost>,
}

fn report(space: SpaceId, packet: &SentPacket<PacketState>) -> Packet {
    let SentPacket { pn, size, time, cc, .. } = *packet;
    Packet::new(&Sent::new(space, pn, size.into()), time, cc)
}

fn sized(packet: &SentPacket<PacketState>) -> Sized {
    Sized { pn: packet.pn, size: packet.size }
}

impl Path {
    /// Handles an ACK frame. Appends the acknowledged packets to `settled.acked` and `settled.late`. Once all
    /// frames of its packet are processed, pass `settled` to [`detect_lost`](Self::detect_lost) and
    /// [`conclude`](Self::conclude).
    ///
    /// # Errors
    /// The frame acknowledges a packet that was never sent.
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
        let Settled { acked, late, reports, .. } = settled;
        let outcome = self.recovery.on_ack_received(now, space, ranges, delay, acked, late)?;
        // Frames may be reordered; only the newest counts (RFC 9000 section 13.4.2.1).
        let mut marked = false;
        if outcome.largest_raised && space == SpaceId::Data {
            marked = self.on_ecn_counts(now, ecn, acked);
        }
        let recovery = &self.recovery;
        let counts = |packet: &&SentPacket<_>| {
            recovery.is_on_path(space, packet.pn) && !packet.is_mtu_probe()
        };
        if space == SpaceId::Data {
            self.mtu.on_acked(acked.iter().filter(counts).map(sized));
        }
        for packet in acked.iter().filter(counts) {
            self.loss.on_packet(false);
            if packet.in_flight {
                reports.acked.push(report(space, packet));
            }
        }
        // Congestion control was never told of the loss of packets that were not in flight.
        for packet in late.iter().filter(|packet| self.recovery.is_on_path(space, packet.pn)) {
            if is_mtu_probe(&packet.tokens) {
                continue;
            }
            self.loss.on_refuted();
            if !packet.in_flight {
                continue;
            }
            let LostPacket { pn, size, time, cc, .. } = *packet;
            let sent = Sent::new(space, pn, size.into());
            reports.refuted.push(Packet::new(&sent, time, cc));
        }
        if space == SpaceId::Data {
            self.await_acks(now);
            let rtt = outcome.rtt_sample.map(|sample| sample.saturating_sub(delay));
            self.estimate_floor(now, rtt, marked, settled);
        }
        Ok(())
    }

    /// Handles the ECN counts of the newest ACK frame, which acknowledges `acked`; returns whether
    /// they tell of congestion.
    fn on_ecn_counts(
        &mut self,
        now: Instant,
        counts: Option<EcnCounts>,
        acked: &[SentPacket<PacketState>],
    ) -> bool {
        let on_path = |packet: &&SentPacket<_>| self.recovery.is_on_path(SpaceId::Data, packet.pn);
        let newest = acked.iter().rev().find(on_path).map(|packet| packet.time);
        let marked = acked.iter().filter(on_path).filter(|packet| packet.ect0).count() as u64;
        let ce = self.marks.on_ack(marked, counts, &mut self.ecn);
        if let Some(sent) = newest.filter(|_| ce > 0) {
            let in_flight = self.recovery.bytes_in_flight();
            self.congestion.on_ecn_ce(now, sent, ce, in_flight);
        }
        ce > 0
    }

    /// Tells the estimator of the loss floor the packets that an ACK frame acknowledges.
    fn estimate_floor(
        &mut self,
        now: Instant,
        rtt: Option<Duration>,
        marked: bool,
        settled: &Settled,
    ) {
        let newest = settled.acked.last().map(|packet| packet.time);
        let empty = match (newest, rtt) {
            (Some(sent), Some(rtt)) => self.floor.on_rtt(now, sent, rtt, marked),
            _ => None,
        };
        let counts = |pn, in_flight| in_flight && self.recovery.is_on_path(SpaceId::Data, pn);
        for packet in settled.acked.iter().filter(|packet| counts(packet.pn, packet.in_flight)) {
            if has_repair(&packet.tokens) {
                self.floor.on_repair(packet.time, false);
            }
            self.floor.on_acked(now, packet.pn, packet.time, packet.size.into(), empty);
        }
        for packet in settled.late.iter().filter(|packet| counts(packet.pn, packet.in_flight)) {
            self.floor.on_refuted(now, packet.time);
        }
    }

    /// Appends packets that are now lost to `settled.lost`; returns whether the losses establish
    /// persistent congestion.
    pub fn detect_lost(&mut self, now: Instant, space: SpaceId, settled: &mut Settled) -> bool {
        self.recovery.detect_lost(now, space, &mut settled.lost)
    }

    /// Handles the expiry of the loss detection timer; appends packets that are now lost to
    /// `settled.lost`.
    pub fn on_timeout(
        &mut self,
        now: Instant,
        context: PtoContext,
        settled: &mut Settled,
    ) -> Timeout {
        let timeout = self.recovery.on_timeout(now, context, &mut settled.lost);
        match timeout {
            Timeout::Probe { .. } => self.ecn.on_probe_timeout(),
            Timeout::Loss { .. } | Timeout::Early => {}
        }
        timeout
    }

    /// Reports the packets in `settled.lost` to congestion control.
    pub fn on_lost(
        &mut self,
        now: Instant,
        space: SpaceId,
        settled: &mut Settled,
        persistent_congestion: bool,
    ) {
        if persistent_congestion {
            self.ecn.on_persistent_congestion();
        }
        let recovery = &self.recovery;
        let counts = |packet: &&SentPacket<_>| {
            recovery.is_on_path(space, packet.pn) && !packet.is_mtu_probe()
        };
        if space == SpaceId::Data {
            self.mtu.on_lost(settled.lost.iter().filter(counts).map(sized));
        }
        let reports = &mut settled.reports.lost;
        for packet in settled.lost.iter().filter(counts) {
            self.loss.on_packet(true);
            self.ecn.on_lost(packet.ect0.into());
            if !packet.in_flight {
                continue;
            }
            reports.push(report(space, packet));
            if space == SpaceId::Data {
                if has_repair(&packet.tokens) {
                    self.floor.on_repair(packet.time, true);
                }
                let joined = self.floor.on_lost(packet.pn, packet.time);
                self.runs.on_lost(joined);
            }
        }
        if self.floor.update(now) {
            self.congestion.on_loss_floor(&self.floor.get());
        }
        if !reports.is_empty() {
            let in_flight = self.recovery.bytes_in_flight();
            self.congestion.on_packets_lost(now, reports, persistent_congestion, in_flight);
            reports.clear();
        }
    }

    /// Handles a path MTU probe that arrived; returns whether the datagram size has changed.
    pub fn on_mtu_probe_acked(&mut self, now: Instant, pn: u64) -> bool {
        let changed = self.mtu.on_probe_acked(now, pn);
        if changed {
            self.on_mtu_changed();
        }
        changed
    }

    /// Falls back to smaller datagrams if larger ones alone are lost; returns whether it did. Call this
    /// once all losses and acknowledgements at a time are known.
    pub fn check_mtu(&mut self) -> bool {
        let changed = self.mtu.check();
        if changed {
            self.on_mtu_changed();
        }
        changed
    }

    fn on_mtu_changed(&mut self) {
        self.congestion.on_mtu_changed(self.mtu.size());
        self.pacer.on_mtu_changed(self.mtu.size());
    }

    /// Reports spurious losses and acknowledgements to congestion control, after losses (RFC 9002
    /// appendix A.7).
    pub fn conclude(&mut self, now: Instant, settled: &mut Settled) {
        let Reports { acked, refuted, .. } = &mut settled.reports;
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
