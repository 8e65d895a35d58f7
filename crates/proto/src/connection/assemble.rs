//! The packet assembler: asks everyone, in order, for what goes into the packet being built.
//!
//! First what must go (acknowledgements, handshake, path and flow control), then lost data if the
//! retransmission order puts it first, then what the redundancy policy wants: a repair symbol, or
//! data of the stream that the scheduler names.

use super::Connection;
use super::transmit::OpenPacket;
use crate::config::MIN_UDP_PAYLOAD;
use crate::ecn::EcnCounts;
use crate::fec::SymbolRef;
use crate::ids::SpaceId;
use crate::recovery::token::{StreamToken, Token};
use crate::streams::{Length, Pending};
use crate::wire::coding::VARINT_MAX;
use crate::wire::frame::{
    Frame, NewConnectionId, crypto_capacity, datagram_capacity, encode_ack, encode_crypto,
    encode_datagram,
};
use std::time::Instant;

/// A STREAM frame is not worth starting with less room than this.
const MIN_STREAM_ROOM: usize = 24;

impl Connection {
    /// Appends frames to `packet` until the buffer is `end` bytes long. `first` if no batch has
    /// set the datagram's size. Returns whether there is anything to send.
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
        let wants = self.wants_to_send(now, space);
        let ack_due = self.spaces[space as usize].acks.is_due(now);
        if !wants && !ack_due {
            self.app_limited |= space == SpaceId::Data && first;
            return false;
        }
        let may_send = wants && self.may_send(now, packet, end);
        if !ack_due && !may_send {
            return false;
        }
        // An acknowledgement that need not go now must not keep a coded symbol from going.
        let symbol = if may_send && !ack_due { self.next_symbol_size(now, space) } else { 0 };
        self.write_ack(now, packet, end.saturating_sub(symbol), out);
        packet.frames_start = out.len();
        if may_send {
            self.write_crypto(packet, end, out);
            if space == SpaceId::Data {
                self.write_data(now, packet, first, end, out);
            }
            if !packet.has_frames(out) && self.wants_ping(now, space) {
                Frame::Ping.encode(out);
            }
        }
        if packet.has_frames(out) {
            packet.ack_eliciting = true;
            packet.in_flight = true;
            let s = &mut self.spaces[space as usize];
            s.ping = false;
            s.probes = s.probes.saturating_sub(1);
            packet.pad |= space == SpaceId::Initial;
            return true;
        }
        self.app_limited |= space == SpaceId::Data && first && may_send;
        packet.pad |= space == SpaceId::Initial && self.side.is_client();
        // Acknowledgements never go alone before their time: two ends would answer each other's.
        ack_due && out.len() > start
    }

    fn may_send(&mut self, now: Instant, packet: &OpenPacket, end: usize) -> bool {
        let size = end + super::transmit::TAG_SIZE - packet.datagram;
        self.spaces[packet.space as usize].probes > 0 || self.may_send_data(now, size)
    }

    fn wants_ping(&self, now: Instant, space: SpaceId) -> bool {
        let s = &self.spaces[space as usize];
        s.ping || s.probes > 0 || (s.acks.wants_ping() && s.acks.is_due(now))
    }

    /// Whether there is anything ack-eliciting to send in `space`, if the window lets it.
    fn wants_to_send(&mut self, now: Instant, space: SpaceId) -> bool {
        if self.wants_ping(now, space) || self.spaces[space as usize].crypto.has_output() {
            return true;
        }
        if space != SpaceId::Data {
            return false;
        }
        self.settle_released();
        self.handshake.done_due
            || self.path.response_due.is_some()
            || self.local_cids.next_announcement().is_some()
            || self.remote_cids.next_retirement().is_some()
            || self.streams.wants_control()
            || self.streams.wants_data()
            || !self.datagrams_out.is_empty()
            || self.wants_repair(now).is_some()
    }

    /// Bytes of the frame that would carry a source symbol again, or a repair symbol, if one is to
    /// be sent next; 0 otherwise. It asks in the order in which [`write_data`](Self::write_data)
    /// does: what has room only for a smaller one than comes first would stay empty.
    fn next_symbol_size(&mut self, now: Instant, space: SpaceId) -> usize {
        if space != SpaceId::Data {
            return 0;
        }
        let lost = self.streams.poll_retransmission().and_then(|next| self.resend_size(&next));
        lost.or_else(|| self.wants_repair(now).map(|(_, size)| size))
            .or_else(|| {
                let next = self.streams.poll_new(MIN_UDP_PAYLOAD.into())?;
                self.resend_size(&next)
            })
            .unwrap_or(0)
    }

    fn resend_size(&self, next: &Pending) -> Option<usize> {
        self.fec_out.resend_size(next.symbol()?)
    }

    fn wants_repair(&mut self, now: Instant) -> Option<(u16, usize)> {
        if !self.fec_out.is_enabled() {
            return None;
        }
        while let Some(flushed) = self.streams.drain_flushed() {
            if let Some(session) = self.streams.session(flushed.id) {
                self.fec_out.on_flushed(now, session, flushed.fin, self.recovery.rtt());
            }
        }
        let streams = &self.streams;
        let blocked = streams.is_connection_blocked();
        self.fec_out
            .poll_repair(now, self.recovery.rtt(), |id| !blocked && streams.has_sendable(id))
    }

    /// Appends an ACK frame if it would tell anything new, and what the decoders recovered.
    fn write_ack(&mut self, now: Instant, packet: &mut OpenPacket, end: usize, out: &mut Vec<u8>) {
        let s = &mut self.spaces[packet.space as usize];
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
            // Behind the ACK, so that what is news in it is what was recovered.
            self.fec_in.write_symbol_acks(out, end.saturating_sub(out.len()));
        }
    }

    fn write_crypto(&mut self, packet: &mut OpenPacket, end: usize, out: &mut Vec<u8>) {
        let crypto = &mut self.spaces[packet.space as usize].crypto;
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

    fn write_data(
        &mut self,
        now: Instant,
        packet: &mut OpenPacket,
        first: bool,
        end: usize,
        out: &mut Vec<u8>,
    ) {
        self.write_control(now, packet, first, end, out);
        while out.len() + MIN_STREAM_ROOM <= end {
            let Some(next) = self.streams.poll_retransmission() else { break };
            if !self.write_next(now, &next, packet, first, end, out) {
                return;
            }
        }
        self.write_datagrams(packet, end, out);
        if let Some((session, size)) = self.wants_repair(now) {
            if out.len() + size <= end {
                self.write_repair(now, session, packet, out);
                return;
            }
            // It does not fit here. If that is because of what stands before it, or of the
            // batch's size, the next datagram is its own.
            if !first || packet.has_room_for(size, end) {
                return;
            }
        }
        while out.len() + MIN_STREAM_ROOM <= end {
            let Some(next) = self.streams.poll_new(end - out.len()) else { return };
            if !self.write_next(now, &next, packet, first, end, out) {
                return;
            }
        }
    }

    fn write_control(
        &mut self,
        now: Instant,
        packet: &mut OpenPacket,
        first: bool,
        end: usize,
        out: &mut Vec<u8>,
    ) {
        let room = |out: &Vec<u8>| end.saturating_sub(out.len());
        if self.handshake.done_due && room(out) > 0 {
            self.handshake.done_due = false;
            Frame::HandshakeDone.encode(out);
            packet.tokens.push(Token::HandshakeDone);
        }
        // The datagram must not be smaller than a path has to carry (RFC 9000 section 8.2.2), which
        // one in the middle of a batch may be.
        if first
            && room(out) >= 9
            && let Some(data) = self.path.response_due.take()
        {
            Frame::PathResponse(data).encode(out);
            packet.pad = true;
        }
        while let Some(new) = self.local_cids.next_announcement() {
            let frame = Frame::NewConnectionId(NewConnectionId {
                sequence: new.seq,
                retire_prior_to: 0,
                id: new.cid,
                reset_token: new.token.0,
            });
            if frame.size() > room(out) {
                break;
            }
            frame.encode(out);
            self.local_cids.on_announced(new.seq);
            packet.tokens.push(Token::NewConnectionId(new.seq));
        }
        while let Some(seq) = self.remote_cids.next_retirement() {
            let frame = Frame::RetireConnectionId(seq);
            if frame.size() > room(out) {
                break;
            }
            frame.encode(out);
            self.remote_cids.on_retirement_sent(seq);
            packet.tokens.push(Token::RetireConnectionId(seq));
        }
        let rtt = self.recovery.rtt().smoothed();
        let left = room(out);
        self.streams.write_control(now, rtt, out, left, &mut packet.tokens);
        if self.fec_out.is_enabled() {
            let left = room(out);
            let windows = self.fec_out.write_windows(out, left);
            packet.tokens.extend(windows);
        }
    }

    /// Appends what the streams' order named. Returns whether another frame may follow.
    fn write_next(
        &mut self,
        now: Instant,
        next: &Pending,
        packet: &mut OpenPacket,
        first: bool,
        end: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        if self.is_crowded(packet, next) {
            return false;
        }
        let before = out.len();
        let more = match next.symbol() {
            Some(symbol) => self.write_resend(next, symbol, packet, first, end, out),
            None => self.write_stream(now, next, packet, end, out),
        };
        if out.len() > before && !next.goes_along {
            packet.stream = Some(next.id);
        }
        more
    }

    /// Whether the packet carries bytes of another stream already, and should not carry `next`'s
    /// too.
    fn is_crowded(&self, packet: &OpenPacket, next: &Pending) -> bool {
        let other = packet.stream.is_some_and(|stream| stream != next.id);
        other && !next.goes_along && !self.config.mix_streams
    }

    /// Sends a lost source symbol again, byte for byte, so that it fills the same place in the
    /// peer's decoder. Returns whether another frame may follow.
    fn write_resend(
        &mut self,
        next: &Pending,
        symbol: SymbolRef,
        packet: &mut OpenPacket,
        first: bool,
        end: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        let Some(size) = self.fec_out.resend_size(symbol) else {
            // It left the window while it waited.
            self.streams.skip_symbol(next);
            return true;
        };
        if out.len() + size <= end {
            let frames = self.fec_out.write_resend(symbol, out);
            self.streams.wrote_symbol(next, &frames);
            let bytes: u64 = frames.iter().map(|f| u64::from(f.len)).sum();
            self.stats.stream_bytes_retransmitted += bytes;
            packet.tokens.extend(frames.into_iter().map(Token::Stream));
            return false;
        }
        if !first || packet.has_room_for(size, end) {
            // The next datagram is its own.
            return false;
        }
        // Not even a whole datagram has room: the peer's identifier has grown.
        self.streams.skip_symbol(next);
        self.fec_out.orphan(symbol);
        self.settle_released();
        true
    }

    fn write_repair(
        &mut self,
        now: Instant,
        session: u16,
        packet: &mut OpenPacket,
        out: &mut Vec<u8>,
    ) {
        let alone = !packet.has_frames(out);
        let rtt = self.recovery.rtt();
        let start = out.len();
        if let Some(token) = self.fec_out.write_repair(now, session, rtt, out) {
            // Redundancy is paid for by those whom it protects.
            let streams = &mut self.streams;
            self.fec_out.share_repair(session, out.len() - start, |id, n| streams.charge(id, n));
            packet.redundant = alone;
            packet.tokens.push(token);
        }
    }

    fn write_datagrams(&mut self, packet: &mut OpenPacket, end: usize, out: &mut Vec<u8>) {
        while let Some(size) = self.datagrams_out.peek_size() {
            let room = end.saturating_sub(out.len());
            if datagram_capacity(room, true).is_none_or(|c| c < size) {
                return;
            }
            let Some(data) = self.datagrams_out.pop() else { return };
            encode_datagram(&data, true, out);
            packet.tokens.push(Token::Datagram { symbol: None });
        }
    }

    /// Appends a STREAM frame, as a source symbol if its stream is protected. Returns whether
    /// another frame may follow.
    fn write_stream(
        &mut self,
        now: Instant,
        next: &Pending,
        packet: &mut OpenPacket,
        end: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        let room = end - out.len();
        match self.session_of(next.id, next.protection) {
            Some(session) => {
                self.write_symbol(now, session, next, packet, room, out);
                false
            }
            None => {
                let before = out.len();
                let Some(token) = self.streams.write_stream(next, out, room, Length::Explicit)
                else {
                    return false;
                };
                packet.tokens.push(Token::Stream(token));
                out.len() > before
            }
        }
    }

    /// Appends a SOURCE_SYMBOL with one STREAM frame; it reaches to the end of the packet.
    fn write_symbol(
        &mut self,
        now: Instant,
        session: u16,
        next: &Pending,
        packet: &mut OpenPacket,
        room: usize,
        out: &mut Vec<u8>,
    ) {
        let room = self.fec_out.symbol_room(session, room);
        if room < MIN_STREAM_ROOM {
            return;
        }
        let before = out.len();
        self.fec_out.write_symbol_header(session, out);
        let start = out.len();
        let Some(token) = self.streams.write_stream(next, out, room, Length::ToEnd) else {
            out.truncate(before);
            return;
        };
        let rtt = self.recovery.rtt();
        let symbol = self.fec_out.commit_symbol(now, session, &out[start..], &[token], rtt);
        self.settle_released();
        packet.tokens.push(Token::Stream(StreamToken { symbol, ..token }));
    }
}
