//! The outcomes of sent packets: tells the owner of each frame whether it was acknowledged or lost.

use super::timer::Timer;
use super::{Connection, LifeStage, SpaceId};
use crate::egress::PacketOutcome;
use crate::error::TransportError;
use crate::fec::redundancy::PathView;
use crate::observe::Observation;
use crate::path::Settled;
use crate::recovery::pto::{PtoContext, Timeout};
use crate::recovery::token::Token;
use crate::wire::frame::AckFrame;
use smallvec::SmallVec;
use std::time::{Duration, Instant};

/// The exponent that scales the ACK delays reported by this end (the default).
pub const ACK_DELAY_EXPONENT: u32 = 3;

impl Connection {
    /// Handles an ACK frame.
    pub(super) fn on_ack(
        &mut self,
        now: Instant,
        space: SpaceId,
        ack: &AckFrame<'_>,
    ) -> Result<(), TransportError> {
        let delay = self.decode_ack_delay(space, ack.delay);
        let mut settled = self.settled.take().unwrap_or_default();
        let ranges = ack.ranges().map(|r| r.start..=r.end - 1);
        let outcome = self.path.on_ack(now, space, ranges, delay, ack.ecn, &mut settled);
        let path = self.path.view(now);
        self.stats.spurious_losses += settled.late.len() as u64;
        for packet in settled.late.drain(..) {
            for token in &packet.tokens {
                self.on_token(now, space, token, PacketOutcome::Late, &path);
            }
        }
        for packet in settled.acked.drain(..) {
            for token in &packet.tokens {
                self.on_token(now, space, token, PacketOutcome::Acked, &path);
            }
        }
        self.egress.tell_arrived(&self.streams, now, &path);
        self.settled = Some(settled);
        outcome
    }

    /// Detects losses after an ACK frame, once all frames of its packet were processed: data that a
    /// SYMBOL_ACK in the same packet reports as recovered is not retransmitted.
    pub(super) fn finish_ack(&mut self, now: Instant, space: SpaceId) {
        let mut settled = self.settled.take().unwrap_or_default();
        let persistent = self.path.detect_lost(now, space, &mut settled);
        self.on_lost(now, space, &mut settled, persistent);
        self.path.conclude(now, &mut settled);
        self.settled = Some(settled);
        if space == SpaceId::Data {
            self.update_ack_rate();
        }
        if self.path.check_mtu() {
            self.stats.black_holes += 1;
            self.update_capacity();
        }
        self.observe_metrics(now);
    }

    /// Decodes an ACK delay, whose unit the peer chose. Once the handshake is confirmed, it is
    /// capped at the maximum that the peer announced (RFC 9002 section 5.3).
    fn decode_ack_delay(&self, space: SpaceId, raw: u64) -> Duration {
        if space != SpaceId::Data {
            return Duration::ZERO;
        }
        let exponent = u32::from(self.peer.ack_delay_exponent);
        let micros = raw.checked_shl(exponent).filter(|v| v >> exponent == raw);
        let delay = Duration::from_micros(micros.unwrap_or(u64::MAX));
        let promised = self.path.recovery.max_ack_delay();
        if self.handshake.confirmed { delay.min(promised) } else { delay }
    }

    /// Tells everyone involved that packets were declared lost.
    fn on_lost(&mut self, now: Instant, space: SpaceId, settled: &mut Settled, persistent: bool) {
        self.path.on_lost(now, space, settled, persistent);
        let path = self.path.view(now);
        for packet in settled.lost.drain(..) {
            if packet.is_mtu_probe() {
                self.stats.mtu_probes_lost += 1;
            } else {
                self.stats.packets_lost += 1;
                self.stats.bytes_lost += u64::from(packet.size);
            }
            let size = packet.size.into();
            self.observe(now, &Observation::PacketLost { space, pn: packet.pn, size });
            for token in &packet.tokens {
                self.on_token(now, space, token, PacketOutcome::Lost(packet.time), &path);
            }
        }
        // The peer cannot acknowledge 1-RTT packets before it has this data, so a window full of
        // them would never open. One packet may be sent when recovery begins (RFC 9002 section
        // 7.3.2).
        if space != SpaceId::Data
            && let Some(s) = self.spaces.get_mut(space)
            && s.crypto.has_output()
        {
            s.probes = s.probes.max(1);
        }
    }

    /// Tells the owner of a frame the outcome of its packet.
    pub(super) fn on_token(
        &mut self,
        now: Instant,
        space: SpaceId,
        token: &Token,
        outcome: PacketOutcome,
        path: &PathView,
    ) {
        let arrived = match outcome {
            PacketOutcome::Acked | PacketOutcome::Late => true,
            PacketOutcome::Lost(_) => false,
        };
        let s = &mut self.spaces[space];
        match *token {
            Token::Ack { largest } if arrived => s.acks.on_ack_acked(largest),
            Token::Crypto { offset, len } => {
                let range = offset..offset + u64::from(len);
                if arrived { s.crypto.on_acked(range) } else { s.crypto.on_lost(range) }
            }
            Token::Stream(frame) => {
                self.egress.on_stream_frame(&mut self.streams, now, &frame, outcome, path);
            }
            Token::Control(control) if arrived => self.streams.control_acked(control),
            Token::Control(control) => self.streams.control_lost(control),
            Token::Datagram { id, symbol } => {
                self.egress.on_datagram(&self.streams, now, id, symbol, outcome, path);
            }
            Token::Repair { session, first, end } => {
                let span = first..end;
                self.egress.on_repair(&self.streams, now, session, span, outcome, path);
            }
            Token::AckFrequency(sequence) => self.on_ack_request_settled(sequence, arrived),
            Token::HandshakeDone => self.handshake.done_due = !arrived,
            Token::NewTokenFrame => self.handshake.new_token.due = !arrived,
            Token::NewConnectionId(seq) if arrived => self.identity.cids.on_announcement_acked(seq),
            Token::NewConnectionId(seq) => self.identity.cids.on_announcement_lost(seq),
            Token::RetireConnectionId(seq) if arrived => {
                self.path.remote_cids.on_retirement_acked(seq);
            }
            Token::RetireConnectionId(seq) => self.path.remote_cids.on_retirement_lost(seq),
            Token::MtuProbe(pn) if arrived => {
                if self.path.on_mtu_probe_acked(now, pn) {
                    self.update_capacity();
                }
            }
            Token::MtuProbe(pn) => self.path.mtu.on_probe_lost(now, pn),
            // Not repeated: either a newer one replaces it, or nothing depends on it.
            Token::Ack { .. } | Token::SymbolWindow(_) => {}
        }
    }

    fn pto_context(&self) -> PtoContext {
        PtoContext {
            handshake_keys: self.spaces[SpaceId::Handshake].keys.is_some(),
            amplification_limited: self.path.address.is_blocked(),
        }
    }

    /// Gives up deadlines that the path cannot meet any more, and starts messages that waited.
    pub(super) fn tend_messages(&mut self, now: Instant) {
        let min_rtt = self.path.recovery.rtt().min();
        self.egress.tend(&mut self.streams, now, min_rtt, self.path.delay());
    }

    pub(super) fn update_loss_timer(&mut self, now: Instant) {
        if self.is_closed() {
            return;
        }
        let context = self.pto_context();
        self.timers.set(Timer::LossDetection, self.path.recovery.timeout(context));
        self.timers.set(Timer::Redundancy, self.egress.timeout(now));
    }

    pub(super) fn on_loss_timer(&mut self, now: Instant) {
        let context = self.pto_context();
        let mut settled = self.settled.take().unwrap_or_default();
        match self.path.on_timeout(now, context, &mut settled) {
            Timeout::Loss { space, persistent_congestion } => {
                self.on_lost(now, space, &mut settled, persistent_congestion);
            }
            Timeout::Probe { space, count } => {
                self.stats.probe_timeouts += 1;
                self.probe(now, space, count);
            }
            Timeout::Early => {}
        }
        self.settled = Some(settled);
        self.egress.release_overdue(&mut self.streams, now);
        self.path.update_pacer(now);
        self.observe_metrics(now);
        self.update_loss_timer(now);
    }

    /// Sends probes: packets that find out whether any packet arrives at all. They carry the oldest
    /// unacknowledged data, which helps at once if it was lost, but that data does not count as lost.
    fn probe(&mut self, now: Instant, space: SpaceId, count: u8) {
        if space == SpaceId::Data {
            self.probe_data(now, count);
            return;
        }
        self.probe_handshake(space, count);
        if self.may_have_moved_early() {
            self.probe_data(now, count);
        }
    }

    /// Probes in both spaces of the handshake (RFC 9002 section 6.2.4): neither must starve because the
    /// window is full of lost data of the other.
    fn probe_handshake(&mut self, space: SpaceId, count: u8) {
        self.spaces[space].probes = count;
        for id in [SpaceId::Initial, SpaceId::Handshake] {
            let Some(s) = self.spaces.get_mut(id).filter(|s| s.keys.is_some()) else { continue };
            s.crypto.resend_unacked();
            if s.crypto.has_output() {
                s.probes = count;
            }
        }
    }

    /// Whether the server may have confirmed the handshake without this client's knowledge, because the
    /// client's address has changed since. The server has discarded the keys of the handshake then, and only
    /// a 1-RTT packet tells it where the client is.
    fn may_have_moved_early(&self) -> bool {
        let confirmable = self.state == LifeStage::Established && !self.handshake.confirmed;
        self.side.is_client() && confirmable && self.path.recovery.pto_count() > 1
    }

    fn probe_data(&mut self, now: Instant, count: u8) {
        let space = SpaceId::Data;
        self.spaces[space].probes = count;
        let path = self.path.view(now);
        let oldest = self.path.recovery.sent(space).filter(|p| p.is_probed()).take(count.into());
        let sent = oldest.flat_map(|p| p.tokens.iter().map(|token| (p.time, *token)));
        let sent: SmallVec<[(Instant, Token); 4]> = sent.collect();
        for (time, token) in sent {
            match token {
                Token::Stream(frame) => self.egress.probe(&mut self.streams, &frame),
                Token::Repair { session, first, end } => {
                    self.egress.probe_repair(&mut self.streams, session, first..end);
                }
                // Stays in flight and is never sent again.
                Token::Datagram { .. } | Token::SymbolWindow(_) | Token::MtuProbe(_) => {}
                Token::Ack { .. }
                | Token::Crypto { .. }
                | Token::Control(_)
                | Token::HandshakeDone
                | Token::NewTokenFrame
                | Token::AckFrequency(_)
                | Token::NewConnectionId(_)
                | Token::RetireConnectionId(_) => {
                    self.on_token(now, space, &token, PacketOutcome::Lost(time), &path);
                }
            }
        }
    }
}
