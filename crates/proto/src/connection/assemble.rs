//! The packet assembler: fills the packet that is being built.
//!
//! Control frames that no policy decides about go first: acknowledgements, handshake, path,
//! identifiers and flow control. The [`egress`](crate::egress) then fills the rest, slot by slot.

use super::Connection;
use super::transmit::OpenPacket;
use crate::ecn::EcnCounts;
use crate::egress::{MIN_ROOM, Next, Slot};
use crate::fec::redundancy::PathView;
use crate::ids::SpaceId;
use crate::recovery::token::Token;
use crate::wire::coding::VARINT_MAX;
use crate::wire::frame::{Frame, NewConnectionId, crypto_capacity, encode_ack, encode_crypto};
use std::time::Instant;

impl Connection {
    /// Appends frames to `packet` until the buffer is `end` bytes long. `first` is whether this
    /// datagram's size is not yet fixed by a batch. Returns whether there is anything to send.
    pub(super) fn write_frames(
        &mut self,
        now: Instant,
        packet: &mut OpenPacket,
        first: bool,
        end: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        let space = packet.space;
        let start = out.len();
        let path = self.path.view(now);
        let next = self.look(now, packet, end, out, &path);
        let control = self.wants_control(now, space);
        let is_idle = next == Next::Nothing;
        if is_idle && space == SpaceId::Data {
            self.egress.rest(&self.streams, now, &path);
        }
        let wants = !is_idle || control;
        let ack_due = self.spaces[space].acks.is_due(now);
        if !wants && !ack_due {
            if space == SpaceId::Data && first {
                self.path.on_idle();
            }
            return false;
        }
        let may_send = wants && self.may_send(now, packet, end);
        if next.is_idle() && !control && first {
            // The application has nothing to send, even if redundancy is held back.
            self.path.on_idle();
        }
        if !ack_due && !may_send {
            return false;
        }
        // An optional acknowledgement must not displace data that cannot be split.
        let whole = if may_send && !ack_due { self.egress.whole_size(&next) } else { 0 };
        self.write_ack(now, packet, end.saturating_sub(whole), out);
        packet.frames_start = out.len();
        if may_send {
            self.write_crypto(packet, end, out);
            if space == SpaceId::Data {
                self.write_control(now, packet, end, out);
                // Frames written above have used up some of the room.
                let next = Some(next).filter(|_| out.len() == start);
                self.write_egress(now, packet, next, end, out, &path);
            }
            if !packet.has_frames(out) && self.wants_ping(now, space) {
                Frame::Ping.encode(out);
            }
        }
        if packet.has_frames(out) {
            packet.ack_eliciting = true;
            packet.in_flight = true;
            let s = &mut self.spaces[space];
            s.ping = false;
            s.probes = s.probes.saturating_sub(1);
            packet.pad |= space == SpaceId::Initial;
            return true;
        }
        packet.pad |= space == SpaceId::Initial && self.side.is_client();
        // Never send an optional acknowledgement alone: two ends would acknowledge each other
        // forever.
        ack_due && out.len() > start
    }

    /// The next choice of the egress for the packet.
    fn look(
        &self,
        now: Instant,
        packet: &OpenPacket,
        end: usize,
        out: &[u8],
        path: &PathView,
    ) -> Next {
        if packet.space != SpaceId::Data {
            return Next::Nothing;
        }
        let room = end.saturating_sub(out.len());
        self.egress
            .look(&self.streams, &Slot { now, room, padding: 0, stream: packet.stream, path })
    }

    fn may_send(&mut self, now: Instant, packet: &OpenPacket, end: usize) -> bool {
        let size = end + super::transmit::TAG_SIZE - packet.datagram;
        self.spaces[packet.space].probes > 0 || self.may_send_data(now, size)
    }

    fn wants_ping(&self, now: Instant, space: SpaceId) -> bool {
        let s = &self.spaces[space];
        s.ping || s.probes > 0 || (s.acks.wants_ping() && s.acks.is_due(now))
    }

    /// Whether there are ack-eliciting frames to send in `space` that no policy decides about.
    pub(super) fn wants_control(&self, now: Instant, space: SpaceId) -> bool {
        if self.wants_ping(now, space) || self.spaces[space].crypto.has_output() {
            return true;
        }
        space == SpaceId::Data
            && (self.handshake.done_due
                || self.ack_frequency.is_due()
                || self.handshake.new_token.due
                || self.identity.cids.next_announcement().is_some()
                || self.path.remote_cids.next_retirement().is_some()
                || self.streams.wants_control())
    }

    /// Appends an ACK frame if it would report new packets, and a report of recovered symbols.
    fn write_ack(&mut self, now: Instant, packet: &mut OpenPacket, end: usize, out: &mut Vec<u8>) {
        let s = &mut self.spaces[packet.space];
        let Some(largest) = s.acks.largest().filter(|_| s.acks.has_news()) else { return };
        let delay = u64::try_from(s.acks.ack_delay(now).as_micros()).unwrap_or(u64::MAX)
            >> super::outcome::ACK_DELAY_EXPONENT;
        let ranges = s.acks.ranges().map(|r| *r.start()..*r.end() + 1);
        let room = end.saturating_sub(out.len());
        let ecn = Some(s.acks.ecn()).filter(|counts| *counts != EcnCounts::default());
        if encode_ack(ranges, delay.min(VARINT_MAX), ecn.as_ref(), room, out).is_some() {
            packet.tokens.push(Token::Ack { largest });
            packet.has_ack = true;
            s.ping |= s.acks.wants_ping();
        }
        if packet.space == SpaceId::Data {
            // Behind the ACK: the peer then takes the symbols that the report adds as recovered, not as
            // arrived.
            self.ingress.decoders.write_symbol_acks(out, end.saturating_sub(out.len()));
        }
    }

    fn write_crypto(&mut self, packet: &mut OpenPacket, end: usize, out: &mut Vec<u8>) {
        let s = &mut self.spaces[packet.space];
        // Each probe repeats the handshake, also if the previous probe has just done so: a server cannot
        // begin with a packet that has none of it (RFC 9000 section 17.2.2).
        if s.probes > 0 && packet.space != SpaceId::Data && !s.crypto.has_output() {
            s.crypto.resend_unacked();
        }
        let crypto = &mut s.crypto;
        while let Some(next) = crypto.next_range(1) {
            let room = end.saturating_sub(out.len());
            let Some(capacity) = crypto_capacity(next.start, room).filter(|c| *c > 0) else {
                break;
            };
            let Some(range) = crypto.next_range(capacity) else { break };
            let (offset, len) = (range.start, (range.end - range.start) as u32);
            encode_crypto(offset, crypto.send(range), out);
            packet.tokens.push(Token::Crypto { offset, len });
        }
    }

    /// Fills the packet with frames that the egress chooses, slot by slot. `first` is the choice for the
    /// first slot if it was already looked up and is still valid.
    fn write_egress(
        &mut self,
        now: Instant,
        packet: &mut OpenPacket,
        first: Option<Next>,
        end: usize,
        out: &mut Vec<u8>,
        path: &PathView,
    ) {
        let mut asked = first;
        while end.saturating_sub(out.len()) >= MIN_ROOM {
            let padding = if packet.is_blank(out) { packet.padding } else { 0 };
            let slot = Slot { now, room: end - out.len(), padding, stream: packet.stream, path };
            let next = asked.take().unwrap_or_else(|| self.egress.look(&self.streams, &slot));
            debug_assert_eq!(
                next,
                self.egress.look(&self.streams, &slot),
                "a question changes nothing"
            );
            let alone = !packet.has_frames(out);
            let wrote =
                self.egress.commit(&mut self.streams, &next, &slot, out, &mut packet.tokens);
            packet.stream = wrote.stream.or(packet.stream);
            packet.redundant = wrote.idle && alone;
            if !wrote.more {
                return;
            }
        }
    }

    fn write_control(
        &mut self,
        now: Instant,
        packet: &mut OpenPacket,
        end: usize,
        out: &mut Vec<u8>,
    ) {
        let room = |out: &Vec<u8>| end.saturating_sub(out.len());
        if self.handshake.done_due && room(out) > 0 {
            self.handshake.done_due = false;
            Frame::HandshakeDone.encode(out);
            packet.tokens.push(Token::HandshakeDone);
        }
        if let Some(token) = self.write_ack_frequency(room(out), out) {
            packet.tokens.push(token);
        }
        if self.handshake.new_token.write(room(out), out) {
            packet.tokens.push(Token::NewTokenFrame);
        }
        while let Some(new) = self.identity.cids.next_announcement() {
            let frame = Frame::NewConnectionId(NewConnectionId {
                sequence: new.seq,
                retire_prior_to: new.retire_prior_to,
                id: new.cid,
                reset_token: new.token.0,
            });
            if frame.size() > room(out) {
                break;
            }
            frame.encode(out);
            self.identity.cids.on_announced(new.seq);
            packet.tokens.push(Token::NewConnectionId(new.seq));
        }
        while let Some(seq) = self.path.remote_cids.next_retirement() {
            let frame = Frame::RetireConnectionId(seq);
            if frame.size() > room(out) {
                break;
            }
            frame.encode(out);
            self.path.remote_cids.on_retirement_sent(seq);
            packet.tokens.push(Token::RetireConnectionId(seq));
        }
        let rtt = self.path.recovery.rtt().smoothed();
        let left = room(out);
        self.streams.write_control(now, rtt, out, left, &mut packet.tokens);
        let left = room(out);
        self.egress.write_windows(out, left, &mut packet.tokens);
    }
}
