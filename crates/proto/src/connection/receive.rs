//! How a packet comes in: datagram, header, AEAD, frames.

use super::key_update::OpeningKeys;
use super::timer::Timer;
use super::{Connection, EndpointEvent, Event, LifeStage};
use crate::connection::Offence;
use crate::crypto::{DirectionalKeys, Keys, PacketKey};
use crate::ecn::EcnCodepoint;
use crate::error::{ConnectionError, TransportError, TransportErrorCode};
use crate::ids::MIN_UDP_PAYLOAD;
use crate::ids::{ConnectionId, SpaceId};
use crate::observe::Observation;
use crate::path::cids::NewCid;
use crate::reset::ResetToken;
use crate::wire::frame::{Carrier, Close, Frame, FrameIter, FrameKind, after_padding};
use crate::wire::packet::{
    Coalesced, DecodedPacket, PacketType, ProtectedPacket, UnprotectedHeader,
};
use std::net::SocketAddr;
use std::time::Instant;

/// The most packets that are kept until their keys are available.
pub(super) const MAX_UNDECRYPTABLE: usize = 10;
/// The most bytes of packets that are kept until their keys are available.
pub(super) const MAX_UNDECRYPTABLE_BYTES: usize = 20 * 1024;

/// A packet that arrived before its keys were available.
#[derive(Debug)]
struct EarlyPacket {
    ty: PacketType,
    ecn: Option<EcnCodepoint>,
    bytes: Vec<u8>,
}

/// Packets that arrived before their keys were available.
#[derive(Debug, Default)]
pub struct EarlyPackets {
    packets: Vec<EarlyPacket>,
    pub(super) bytes: usize,
}

impl EarlyPackets {
    fn push(&mut self, ty: PacketType, ecn: Option<EcnCodepoint>, packet: &[u8]) {
        let fits = self.packets.len() < MAX_UNDECRYPTABLE
            && self.bytes + packet.len() <= MAX_UNDECRYPTABLE_BYTES;
        if fits {
            self.bytes += packet.len();
            self.packets.push(EarlyPacket { ty, ecn, bytes: packet.to_vec() });
        }
    }

    /// Takes the first packet whose type is `ready`.
    fn take(&mut self, ready: impl Fn(PacketType) -> bool) -> Option<EarlyPacket> {
        let index = self.packets.iter().position(|packet| ready(packet.ty))?;
        let packet = self.packets.remove(index);
        self.bytes -= packet.bytes.len();
        Some(packet)
    }

    /// How many packets are waiting.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }
}

/// Where a datagram came from, and how.
#[derive(Debug, Clone, Copy)]
pub struct DatagramOrigin {
    pub remote: SocketAddr,
    pub ecn: Option<EcnCodepoint>,
    /// Its size in bytes.
    pub size: usize,
}

/// Facts about a packet that its frames tell.
#[derive(Debug, Clone, Copy)]
struct PacketSummary {
    /// Whether it must be acknowledged.
    ack_eliciting: bool,
    /// Whether it carries more than proof that the peer is alive.
    speaks: bool,
    /// Whether it only probes a path (RFC 9000 section 9.1).
    probing: bool,
}

/// A packet whose protection has been removed.
struct Opened<'a> {
    carrier: Carrier,
    pn: u64,
    phase: OpeningKeys,
    payload: &'a [u8],
    /// Whether the reserved bits are valid.
    reserved: Result<(), TransportError>,
}

fn violation(reason: &'static str) -> TransportError {
    TransportError::new(TransportErrorCode::PROTOCOL_VIOLATION, reason)
}

impl Connection {
    /// Processes a UDP datagram received from `remote`, decrypting it in place.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        ecn: Option<EcnCodepoint>,
        datagram: &mut [u8],
    ) {
        if self.state >= LifeStage::Draining || !self.may_come_from(remote) {
            return;
        }
        if self.is_reset(datagram) {
            self.on_stateless_reset(now);
            return;
        }
        let arrival = DatagramOrigin { remote, ecn, size: datagram.len() };
        self.stats.received.datagrams += 1;
        self.stats.received.bytes += datagram.len() as u64;
        if remote == self.path.remote {
            self.path.address.on_received(datagram.len());
        }
        self.handle_packets(now, &arrival, datagram);
        while let Some(mut early) = self.take_early() {
            let arrival = DatagramOrigin { ecn: early.ecn, ..arrival };
            self.handle_packets(now, &arrival, &mut early.bytes);
        }
        if self.is_closed() {
            self.early = EarlyPackets::default();
            return;
        }
        self.egress.release_overdue(&mut self.streams, now);
        self.update_loss_timer(now);
    }

    fn take_early(&mut self) -> Option<EarlyPacket> {
        let mut early = std::mem::take(&mut self.early);
        // Packets that will never be readable are taken as well, and dropped when they are processed.
        let taken = early.take(|ty| self.can_open(ty) || !self.may_wait(ty));
        self.early = early;
        taken
    }

    /// Whether packets of this type can be processed now. 1-RTT packets cannot until the handshake is
    /// complete (RFC 9001 section 5.7).
    fn can_open(&self, ty: PacketType) -> bool {
        match ty {
            PacketType::OneRtt if !self.handshake.complete => false,
            PacketType::ZeroRtt => self.zero_rtt.opener().is_some(),
            PacketType::Initial | PacketType::Handshake | PacketType::OneRtt => {
                self.spaces[ty.space()].keys.is_some()
            }
        }
    }

    /// Whether a packet of this type that cannot be opened now may be opened later.
    fn may_wait(&self, ty: PacketType) -> bool {
        match ty {
            PacketType::Initial => false,
            PacketType::ZeroRtt => self.awaits_0rtt_keys(),
            PacketType::Handshake | PacketType::OneRtt => self.state == LifeStage::Handshaking,
        }
    }

    fn handle_packets(&mut self, now: Instant, arrival: &DatagramOrigin, datagram: &mut [u8]) {
        let mut packets = Coalesced::new(self.header_rules);
        while let Some(Ok(packet)) = packets.next(datagram) {
            if !self.is_of_our_version(&packet) {
                continue;
            }
            match packet {
                DecodedPacket::Protected(packet) => {
                    self.handle_packet(now, arrival, &packet, datagram);
                }
                DecodedPacket::Retry(packet) => self.on_retry(now, &packet, datagram),
                DecodedPacket::VersionNegotiation(packet) => {
                    self.on_version_negotiation(now, &packet, datagram);
                }
            }
            if self.state >= LifeStage::Draining {
                return;
            }
        }
    }

    fn handle_packet(
        &mut self,
        now: Instant,
        arrival: &DatagramOrigin,
        packet: &ProtectedPacket,
        datagram: &mut [u8],
    ) {
        let space = packet.ty.space();
        if !self.can_open(packet.ty) {
            if self.may_wait(packet.ty) {
                self.early.push(packet.ty, arrival.ecn, &datagram[packet.start..packet.end]);
            }
            return;
        }
        let is_small = datagram.len() < usize::from(MIN_UDP_PAYLOAD);
        if is_small && space == SpaceId::Initial && self.side.is_server() {
            // RFC 9000 section 14.1.
            return;
        }
        if packet.ty == PacketType::Initial {
            self.prepare_to_open(packet.version);
        }
        let Some(opened) = self.remove_protection(packet, datagram) else {
            self.on_undecryptable(now, space);
            return;
        };
        if packet.ty == PacketType::OneRtt
            && let Err(error) = self.on_opened(now, opened.phase, opened.pn)
        {
            self.find_fault(now, error);
            return;
        }
        if self.state == LifeStage::Closing {
            self.close.on_received();
            self.handle_while_closing(now, &opened);
            return;
        }
        if packet.ty.is_long() && !self.is_from_peer(space, packet.scid) {
            return;
        }
        if packet.ty == PacketType::Initial {
            self.follow_version(packet.version);
        }
        if let Err(error) = self.on_packet(now, arrival, packet, &opened) {
            self.find_fault(now, error);
        }
    }

    /// Closes the connection because of an error in a packet of the peer's.
    fn find_fault(&mut self, now: Instant, error: TransportError) {
        if error.code != TransportErrorCode::INTERNAL_ERROR {
            self.blame(now, Offence::Connection);
        }
        self.fail(now, error);
    }

    /// Removes header protection and packet protection.
    fn remove_protection<'a>(
        &mut self,
        packet: &ProtectedPacket,
        datagram: &'a mut [u8],
    ) -> Option<Opened<'a>> {
        let largest = self.spaces[packet.ty.space()].acks.largest();
        let (header, pn) = unprotect(self.opener(packet)?, largest, packet, datagram)?;
        // A failed attempt destroys the payload, so the right key must be chosen up front.
        let phase = match packet.ty {
            PacketType::OneRtt => self.key_phases.of(header.key_phase, pn),
            PacketType::Initial | PacketType::ZeroRtt | PacketType::Handshake => {
                OpeningKeys::Current
            }
        };
        if phase == OpeningKeys::Next {
            self.key_phases.derive_next(&*self.handshake.session);
        }
        let key = self.key_phases.opener(phase, &*self.opener(packet)?.packet);
        let payload = open(key, &header, pn, datagram).filter(|_| self.key_phases.opens(phase))?;
        let reserved = header.check_reserved();
        Some(Opened { carrier: packet.ty.carrier(), pn, phase, payload, reserved })
    }

    /// The keys of the level and version of `packet`. `None` if this end does not have them.
    fn opener(&self, packet: &ProtectedPacket) -> Option<&DirectionalKeys> {
        match packet.ty {
            PacketType::ZeroRtt => self.zero_rtt.opener(),
            PacketType::Initial => self.initial_opener(packet.version),
            PacketType::Handshake | PacketType::OneRtt => {
                Some(&self.spaces[packet.ty.space()].keys.as_ref()?.remote)
            }
        }
    }

    fn on_packet(
        &mut self,
        now: Instant,
        arrival: &DatagramOrigin,
        packet: &ProtectedPacket,
        opened: &Opened<'_>,
    ) -> Result<(), TransportError> {
        let space = packet.ty.space();
        let &Opened { pn, phase, payload, ref reserved, .. } = opened;
        reserved.clone()?;
        if payload.is_empty() {
            return Err(violation("packet without frames"));
        }
        if self.spaces[space].acks.is_duplicate(pn) {
            return Ok(());
        }
        self.stats.received.packets += 1;
        let size = packet.end - packet.start;
        let early = packet.ty == PacketType::ZeroRtt;
        self.observe(now, &Observation::PacketReceived { space, early, pn, size, payload });
        if space == SpaceId::Handshake && self.side.is_server() {
            self.on_address_validated();
            self.discard_space(now, SpaceId::Initial);
        }
        self.silence.on_received();
        self.reset_idle_timer(now);
        let newest = self.spaces[space].acks.largest().is_none_or(|largest| pn > largest);
        let contents = self.on_frames(now, arrival, packet, phase, payload)?;
        if self.is_closed() {
            return Ok(());
        }
        if contents.speaks && self.silence.end() {
            self.reset_keep_alive(now);
        }
        if newest && !contents.probing {
            self.follow(now, arrival, packet.dcid)?;
        }
        // The packet may have been the last of its space.
        if let Some(space) = self.spaces.get_mut(space) {
            space.acks.on_packet_received(now, pn, contents.ack_eliciting, arrival.ecn);
        }
        self.timers.set(Timer::AckDelay, self.spaces[SpaceId::Data].acks.timeout());
        self.release_idle_memory(now);
        if self.egress.awaits_messages() {
            self.tend_messages(now);
        }
        Ok(())
    }

    /// Whether the source identifier is the peer's. The peer's first packet sets the identifier; later
    /// packets with another identifier are discarded (RFC 9000 section 7.2).
    fn is_from_peer(&mut self, space: SpaceId, scid: ConnectionId) -> bool {
        if self.handshake.peer_scid.is_none() && space == SpaceId::Initial {
            self.handshake.peer_scid = Some(scid);
            self.path.remote_cids.set_handshake_cid(scid);
        }
        self.handshake.peer_scid == Some(scid)
    }

    /// Processes the frames of a packet.
    fn on_frames(
        &mut self,
        now: Instant,
        arrival: &DatagramOrigin,
        packet: &ProtectedPacket,
        phase: OpeningKeys,
        payload: &[u8],
    ) -> Result<PacketSummary, TransportError> {
        let space = packet.ty.space();
        let mut contents = PacketSummary { ack_eliciting: false, speaks: false, probing: true };
        let mut acked = false;
        let mut crypto = false;
        for frame in FrameIter::new(after_padding(payload), packet.ty.carrier()) {
            let frame = frame?;
            let info = frame.kind().info();
            contents.ack_eliciting |= info.ack_eliciting;
            contents.speaks |= info.ack_eliciting && frame.kind() != FrameKind::Ping;
            contents.probing &= info.probing;
            match frame {
                Frame::Ack(ack) => {
                    if acked {
                        self.finish_ack(now, space);
                    }
                    self.key_phases.check_ack(phase, &ack)?;
                    self.on_ack(now, space, &ack).map_err(|e| e.in_frame(info.first_type))?;
                    acked = true;
                }
                Frame::Crypto { offset, data } => {
                    // A server says nothing to TLS before it has chosen (RFC 9369 section 4.1).
                    self.negotiation.close();
                    let stream = &mut self.spaces[space].crypto;
                    stream.receive(offset, data).map_err(|e| e.in_frame(info.first_type))?;
                    crypto = true;
                }
                Frame::Close(close) => {
                    self.on_close_frame(now, close_reason(&close));
                    return Ok(contents);
                }
                Frame::PathChallenge(data) => self.on_challenge(arrival, packet.dcid, data),
                _ => self
                    .on_frame(now, &frame, &packet.dcid)
                    .map_err(|e| e.in_frame(info.first_type))?,
            }
            if let (PacketType::ZeroRtt, Frame::Stream(stream)) = (packet.ty, &frame) {
                self.streams.set_early(stream.id);
            }
        }
        if crypto {
            self.on_crypto_data(now, space)?;
        }
        if acked {
            // After all frames: data that a SYMBOL_ACK in the same packet reports as recovered is
            // not retransmitted.
            self.finish_ack(now, space);
        }
        Ok(contents)
    }

    /// Processes a frame that is only allowed in 1-RTT packets.
    pub(super) fn on_frame(
        &mut self,
        now: Instant,
        frame: &Frame<'_>,
        dcid: &ConnectionId,
    ) -> Result<(), TransportError> {
        match *frame {
            Frame::SourceSymbol(source) => {
                let symbol = source.symbol;
                if self.ingress.decoders.on_source(now, symbol, source.frames)? {
                    self.on_protected_frames(source.frames)?;
                }
                if self.ingress.decoders.has_recovered(symbol.session) {
                    self.take_recovered(now, symbol.session)?;
                }
                Ok(())
            }
            Frame::Repair(repair) => {
                self.ingress.decoders.on_repair(now, &repair.header, repair.payload)?;
                self.take_recovered(now, repair.header.session)
            }
            Frame::SymbolWindow(window) => {
                self.ingress.decoders.on_window(now, window.session, window.lower_bound)
            }
            Frame::SymbolAck(ack) => {
                let count = self.egress.on_symbol_ack(
                    &mut self.streams,
                    now,
                    &ack,
                    &self.path.view(now),
                )?;
                if count > 0 {
                    let session = ack.session;
                    self.observe(now, &Observation::SymbolsRecoveredByPeer { session, count });
                }
                Ok(())
            }
            Frame::NewConnectionId(new) => {
                let cid =
                    NewCid { seq: new.sequence, cid: new.id, token: ResetToken(new.reset_token) };
                self.path.remote_cids.on_new_cid(cid, new.retire_prior_to)?;
                self.update_capacity();
                Ok(())
            }
            Frame::RetireConnectionId(sequence) => {
                if let Some(retired) = self.identity.cids.on_retire(sequence, dcid)? {
                    self.endpoint_events.push_back(EndpointEvent::RemoveCid(retired));
                    self.issue_cids();
                }
                Ok(())
            }
            Frame::AckFrequency(request) => self.on_ack_frequency(&request),
            Frame::ImmediateAck => self.on_immediate_ack(),
            Frame::PathResponse(data) => self.on_path_response(now, data),
            Frame::HandshakeDone if self.side.is_client() => {
                if !self.handshake.complete {
                    return Err(violation("HANDSHAKE_DONE before the handshake was done"));
                }
                self.confirm_handshake(now);
                Ok(())
            }
            Frame::NewToken(token) if self.side.is_client() => {
                self.on_new_token(token);
                Ok(())
            }
            Frame::HandshakeDone | Frame::NewToken(_) if self.side.is_server() => {
                Err(violation("frame that only servers send"))
            }
            Frame::StopSending { id, code } => {
                let path = self.path.view(now);
                self.egress.received_stop_sending(&mut self.streams, now, id, code, &path)
            }
            _ => self.on_data_frame(frame),
        }
    }

    /// Processes a frame that belongs to streams or datagrams.
    fn on_data_frame(&mut self, frame: &Frame<'_>) -> Result<(), TransportError> {
        match *frame {
            Frame::Stream(s) => self.streams.received(s.id, s.offset, s.data, s.fin),
            Frame::Datagram(data) => self.on_datagram_frame(data),
            Frame::ResetStream { id, code, final_size } => {
                self.streams.received_reset(id, code, final_size)
            }
            Frame::ResetStreamAt { .. } if !self.extensions.reset_stream_at => {
                Err(violation("RESET_STREAM_AT was not negotiated"))
            }
            Frame::ResetStreamAt { id, code, final_size, reliable_size } => {
                self.streams.received_reset_at(id, code, final_size, reliable_size)
            }
            Frame::MaxData(max) => {
                self.streams.received_max_data(max);
                Ok(())
            }
            Frame::MaxStreamData { id, max } => self.streams.received_max_stream_data(id, max),
            Frame::MaxStreams { dir, max } => self.streams.received_max_streams(dir, max),
            Frame::StreamDataBlocked { id, .. } => self.streams.received_stream_data_blocked(id),
            Frame::StreamsBlocked { dir, limit } => {
                self.streams.received_streams_blocked(dir, limit)
            }
            // Windows grow as the application reads, not as the peer asks.
            _ => Ok(()),
        }
    }

    fn on_datagram_frame(&mut self, data: &[u8]) -> Result<(), TransportError> {
        if self.ingress.on_datagram(data)? {
            self.events.push_back(Event::DatagramReceived);
        }
        Ok(())
    }

    /// Processes the frames of a source symbol: complete ones, and only of two kinds.
    fn on_protected_frames(&mut self, frames: &[u8]) -> Result<(), TransportError> {
        for frame in FrameIter::new(frames, Carrier::SourceSymbol) {
            let frame = frame?;
            self.on_data_frame(&frame).map_err(|e| e.in_frame(frame.kind().info().first_type))?;
        }
        Ok(())
    }

    /// Processes the recovered source symbols of a session as if they had arrived.
    fn take_recovered(&mut self, now: Instant, session: u16) -> Result<(), TransportError> {
        let mut frames = std::mem::take(&mut self.ingress.recovered);
        let mut result = Ok(());
        while let Some(recovered) = self.ingress.decoders.pop_recovered(session, &mut frames) {
            let id = recovered.symbol.id;
            self.observe(now, &Observation::SymbolRecovered { session, id, frames: &frames });
            result = result.and_then(|()| self.on_protected_frames(&frames));
            if self.config.stop_recovered.is_some() {
                self.stop_recovered(&frames);
            }
            // Tell the sender at once: it may be about to retransmit the data.
            self.spaces[SpaceId::Data].acks.set_immediate();
        }
        self.ingress.recovered = frames;
        result
    }

    /// Stops the streams that recovered frames have made complete.
    fn stop_recovered(&mut self, frames: &[u8]) {
        for frame in FrameIter::new(frames, Carrier::SourceSymbol).map_while(Result::ok) {
            if let Frame::Stream(stream) = frame {
                self.streams.recovered(stream.id);
            }
        }
    }

    /// Processes a packet after this end has closed: only the peer's own close still matters.
    fn handle_while_closing(&mut self, now: Instant, opened: &Opened<'_>) {
        let mut frames = FrameIter::new(opened.payload, opened.carrier).map_while(Result::ok);
        if let Some(Frame::Close(close)) = frames.find(|f| matches!(f, Frame::Close(_))) {
            self.on_close_frame(now, close_reason(&close));
        }
    }
}

/// Removes header protection; returns the header and the full packet number.
fn unprotect(
    keys: &DirectionalKeys,
    largest: Option<u64>,
    packet: &ProtectedPacket,
    datagram: &mut [u8],
) -> Option<(UnprotectedHeader, u64)> {
    let whole = datagram.get_mut(packet.start..packet.end)?;
    keys.header.unprotect(whole, packet.number - packet.start).ok()?;
    let header = packet.unprotected(datagram).ok()?;
    let pn = header.number.expand(largest.map_or(0, |largest| largest + 1));
    Some((header, pn))
}

/// Removes packet protection in place; returns the frames.
fn open<'a>(
    key: &dyn PacketKey,
    header: &UnprotectedHeader,
    pn: u64,
    datagram: &'a mut [u8],
) -> Option<&'a [u8]> {
    let (before, payload) = datagram.split_at_mut_checked(header.payload.start)?;
    let payload = payload.get_mut(..header.payload.len())?;
    let len = key.open(pn, before.get(header.header.clone())?, payload).ok()?;
    payload.get(..len)
}

/// The frames of the first packet of `datagram`, if that was sealed with `keys`. Decrypts a copy.
pub fn open_first(keys: &Keys, packet: &ProtectedPacket, datagram: &[u8]) -> Option<Vec<u8>> {
    let mut copy = datagram.get(..packet.end)?.to_vec();
    let (header, pn) = unprotect(&keys.remote, None, packet, &mut copy)?;
    let length = open(&*keys.remote.packet, &header, pn, &mut copy)?.len();
    copy.truncate(header.payload.start + length);
    copy.drain(..header.payload.start);
    Some(copy)
}

fn close_reason(close: &Close<'_>) -> ConnectionError {
    match *close {
        Close::Transport { code, frame, reason } => ConnectionError::ClosedByPeer(TransportError {
            code,
            frame: frame.filter(|f| *f != 0),
            reason: String::from_utf8_lossy(reason).into_owned().into(),
        }),
        Close::Application { code, reason } => {
            ConnectionError::ApplicationClosed { code, reason: reason.to_vec() }
        }
    }
}
