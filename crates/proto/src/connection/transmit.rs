//! How a packet goes out: batches of datagrams, coalesced packets, padding, protection.

use super::batch::Alignment;
use super::timer::Timer;
use super::{Connection, LifeStage};
use crate::congestion::PacketState;
use crate::crypto::DirectionalKeys;
use crate::ecn::EcnCodepoint;
use crate::ids::MIN_UDP_PAYLOAD;
use crate::ids::{ConnectionId, SpaceId, StreamId};
use crate::observe::Observation;
use crate::path::Gate;
use crate::recovery::sent::SentPacket;
use crate::recovery::token::Tokens;
use crate::wire::packet::{Layout, LongHeader, LongType, ShortHeader, TruncatedNumber};
use std::net::SocketAddr;
use std::time::Instant;

/// Bytes of the tag that every AEAD of QUIC v1 appends.
pub const TAG_SIZE: usize = 16;
/// The least room worth filling with another coalesced packet: a long header, a tag and a frame.
const MIN_PACKET_ROOM: usize = 80;
/// A datagram that is shorter than the others of its batch by no more than this is padded, because a shorter
/// datagram ends the batch. Source and repair symbols differ that much.
const SEGMENT_PADDING: usize = 16;

/// One or more datagrams to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transmit {
    /// Where to send them.
    pub destination: SocketAddr,
    /// The ECN mark to set.
    pub ecn: Option<EcnCodepoint>,
    /// How many bytes were appended to the buffer.
    pub size: usize,
    /// If the bytes are several datagrams, the size of each; only the last may be shorter. `None`
    /// for a single datagram.
    pub segment_size: Option<usize>,
    /// Whether there may be more to send now. If not, the next call returns `None`, unless something happens
    /// to the connection before.
    pub more: bool,
}

impl Transmit {
    sutura_schedule::setters! {
        with_ecn: ecn = Option<EcnCodepoint>,
        with_segment_size: segment_size = Option<usize>,
    }

    /// One datagram of `size` bytes without an ECN mark.
    #[must_use]
    pub const fn new(destination: SocketAddr, size: usize) -> Self {
        Self { destination, ecn: None, size, segment_size: None, more: true }
    }
}

/// A packet that is being built at the end of the buffer.
pub(super) struct OpenPacket {
    /// Where the packet's datagram starts in the buffer.
    pub(super) datagram: usize,
    pub(super) space: SpaceId,
    pub(super) pn: u64,
    layout: Layout,
    /// Where the frames after the acknowledgements start.
    pub(super) frames_start: usize,
    pub(super) has_ack: bool,
    pub(super) tokens: Tokens,
    pub(super) ack_eliciting: bool,
    /// Whether it counts against the congestion window.
    pub(super) in_flight: bool,
    /// Whether it carries only redundancy, so that it does not show that the application has data
    /// to send.
    pub(super) redundant: bool,
    /// If the packet may be padded to the size of its batch, the most bytes that this takes; otherwise 0.
    pub(super) padding: usize,
    /// Whether the whole datagram must be padded.
    pub(super) pad: bool,
    /// Whether it is a 0-RTT packet.
    pub(super) early: bool,
    /// Whether its datagram is marked with ECT(0).
    pub(super) ect0: bool,
    /// The stream whose data it carries. `None` if its data may share a packet with any stream.
    pub(super) stream: Option<StreamId>,
}

impl OpenPacket {
    /// Whether no frame has been written.
    pub(super) fn is_blank(&self, out: &[u8]) -> bool {
        out.len() == self.layout.payload
    }

    /// Whether frames other than acknowledgements have been written.
    pub(super) fn has_frames(&self, out: &[u8]) -> bool {
        out.len() > self.frames_start
    }

    /// Pads the packet, the last one in `out`, until that is `end` bytes long.
    pub(super) fn pad_to(&mut self, end: usize, out: &mut Vec<u8>) {
        // Padding goes first, because the last frame may extend to the end of the packet.
        let (at, before) = (self.layout.payload, out.len());
        if before >= end {
            return;
        }
        let missing = end - before;
        out.resize(end, 0);
        out.copy_within(at..before, at + missing);
        out[at..at + missing].fill(0);
        // Padding counts as in flight (RFC 9002 section 2).
        self.in_flight = true;
    }
}

impl Connection {
    /// The ECN mark of the next datagrams. There is none before the handshake is confirmed: until then
    /// they may contain packets of any space.
    pub(super) fn mark(&self) -> Option<EcnCodepoint> {
        self.path.ecn_mark().filter(|_| self.handshake.confirmed)
    }

    /// How long the next datagram may be. Probes have a size that arrives even where the path has
    /// become a black hole for others.
    pub(super) fn datagram_size(&self) -> usize {
        let probes = self.spaces.in_use().iter().any(|id| self.spaces[*id].probes > 0);
        let mtu = &self.path.mtu;
        usize::from(if probes { mtu.safe_size() } else { mtu.size() })
    }

    /// Appends one datagram of at most `limit` bytes, which fits in its batch as `alignment` asks.
    pub(super) fn build_datagram(
        &mut self,
        now: Instant,
        limit: usize,
        alignment: Alignment,
        out: &mut Vec<u8>,
    ) -> bool {
        let first = !alignment.bounds;
        let closing = self.state == LifeStage::Closing && self.close.due;
        if !closing && (self.is_closed() || self.path.address.is_blocked()) {
            return false;
        }
        let allowance = usize::try_from(self.path.address.allowance()).unwrap_or(usize::MAX);
        let limit = limit.min(allowance);
        let begin = out.len();
        let mut open: Option<OpenPacket> = None;
        let mut pad = false;
        for &space in self.spaces.in_use() {
            if self.sealer(space).is_none() || (closing && self.is_early(space)) {
                continue;
            }
            if space == SpaceId::Initial && !first && limit < usize::from(MIN_UDP_PAYLOAD) {
                // An Initial must be padded, and there is no room for that.
                continue;
            }
            let reserve = if open.is_some() { TAG_SIZE } else { 0 };
            if out.len() - begin + reserve + MIN_PACKET_ROOM > limit {
                break;
            }
            let end = out.len();
            // Leave room for the tag of the previous packet, which is sealed once it is known
            // whether another packet follows it.
            out.resize(end + reserve, 0);
            let dcid = self.path.remote_cids.active();
            let mut packet = self.start_packet(space, dcid, begin, out);
            packet.padding = if first { 0 } else { SEGMENT_PADDING };
            let frames_end = begin + limit - TAG_SIZE;
            let wrote = if closing {
                packet.pad = space == SpaceId::Initial;
                self.write_close(space, frames_end.saturating_sub(out.len()), out);
                true
            } else {
                self.write_frames(now, &mut packet, first, frames_end, out)
            };
            if !wrote {
                out.truncate(end);
                continue;
            }
            pad |= packet.pad;
            // The header protection sample is 16 bytes long and starts 4 bytes after the start of
            // the packet number (RFC 9001 section 5.4.2).
            let shortest = packet.layout.number + 4;
            if out.len() < shortest {
                out.resize(shortest, 0);
            }
            if let Some(before) = open.replace(packet) {
                self.seal(now, before, end, out);
            }
        }
        let Some(mut last) = open else { return false };
        if pad {
            last.pad_to(begin + usize::from(MIN_UDP_PAYLOAD).min(limit) - TAG_SIZE, out);
        }
        let level = begin + limit.min(alignment.size as usize).saturating_sub(TAG_SIZE);
        if last.in_flight && out.len() + SEGMENT_PADDING >= level {
            last.pad_to(level, out);
        }
        let end = out.len();
        out.resize(end + TAG_SIZE, 0);
        self.seal(now, last, end, out);
        if closing {
            self.on_close_sent(now);
        }
        true
    }

    /// A server has 1-RTT keys before the handshake is complete and may send with them. A client
    /// has none until then.
    pub(super) fn may_send_in(&self, space: SpaceId) -> bool {
        space != SpaceId::Data || self.handshake.complete || self.side.is_server()
    }

    /// Whether packets of this space are 0-RTT packets at present.
    fn is_early(&self, space: SpaceId) -> bool {
        space == SpaceId::Data && self.is_sending_0rtt()
    }

    /// The keys that seal packets of this space, if any may be sent.
    pub(super) fn sealer(&self, space: SpaceId) -> Option<&DirectionalKeys> {
        if self.is_early(space) {
            return self.zero_rtt.sealer();
        }
        let keys = self.spaces[space].keys.as_ref().filter(|_| self.may_send_in(space))?;
        Some(&keys.local)
    }

    /// Starts a packet with its header; frames may follow.
    pub(super) fn start_packet(
        &self,
        space: SpaceId,
        dcid: ConnectionId,
        datagram: usize,
        out: &mut Vec<u8>,
    ) -> OpenPacket {
        let pn = self.spaces[space].peek_pn();
        let number = TruncatedNumber::new(pn, self.path.recovery.decoded_from(space));
        let ty = match space {
            SpaceId::Initial => Some(LongType::Initial { token: &self.handshake.retry.token }),
            SpaceId::Handshake => Some(LongType::Handshake),
            SpaceId::Data => self.is_sending_0rtt().then_some(LongType::ZeroRtt),
        };
        let version = if self.is_early(space) { self.negotiation.original } else { self.version };
        let layout = match ty {
            Some(ty) => {
                LongHeader { version, ty, dcid, scid: self.handshake.local_cid }.encode(number, out)
            }
            None => ShortHeader { dcid, spin: false, key_phase: self.key_phases.bit }
                .encode(number, out),
        };
        OpenPacket {
            datagram,
            space,
            pn,
            layout,
            frames_start: layout.payload,
            has_ack: false,
            tokens: Tokens::new(),
            ack_eliciting: false,
            in_flight: false,
            redundant: false,
            padding: 0,
            pad: false,
            early: self.is_early(space),
            ect0: self.mark().is_some(),
            stream: None,
        }
    }

    /// Protects the packet whose payload ends at `end`; `out` has room for the tag after that.
    pub(super) fn seal(&mut self, now: Instant, packet: OpenPacket, end: usize, out: &mut [u8]) {
        let Layout { start, number, payload } = packet.layout;
        let OpenPacket { space, pn, early, .. } = packet;
        let size = end + TAG_SIZE - start;
        self.observe(
            now,
            &Observation::PacketSent { space, early, pn, size, payload: &out[payload..end] },
        );
        let whole = &mut out[..end + TAG_SIZE];
        // The length cannot fail for a packet that fits in a datagram, and sealing cannot fail for a packet
        // that has a tag and a sample.
        let length = packet.layout.finish(0, whole);
        debug_assert!(length.is_ok());
        if self.greases_fixed_bit() && self.rng.coin() {
            packet.layout.clear_fixed_bit(whole);
        }
        if space == SpaceId::Data && !early {
            self.key_phases.on_sealed();
        }
        if let Some(keys) = self.sealer(space) {
            let sealed = keys.protect(pn, &mut whole[start..], number - start, payload - number);
            debug_assert!(sealed.is_ok());
        }
        self.on_packet_sent(now, packet, size);
    }

    /// Whether the fixed bit of sent packets is chosen at random: this end may, and the peer has said on
    /// this very connection that it ignores the bit (RFC 9287 section 3.1).
    fn greases_fixed_bit(&self) -> bool {
        self.extensions.grease_quic_bit
            && self.handshake.peer_parameters_known
            && self.peer.grease_quic_bit
    }

    fn on_packet_sent(&mut self, now: Instant, packet: OpenPacket, size: usize) {
        let space = packet.space;
        let skip = space == SpaceId::Data && self.handshake.confirmed;
        let pn = self.spaces[space].take_pn(skip, &mut self.rng);
        debug_assert_eq!(pn, packet.pn);
        self.stats.sent.packets += 1;
        if packet.has_ack {
            let acks = &mut self.spaces[space].acks;
            acks.on_ack_sent(packet.ack_eliciting);
            if space == SpaceId::Data {
                self.key_phases.on_ack_sent();
                self.ingress.decoders.on_symbol_acks_sent();
                self.timers.set(Timer::AckDelay, acks.timeout());
            }
        }
        if packet.ack_eliciting && self.silence.on_sent() {
            self.reset_idle_timer(now);
        }
        let sent = SentPacket {
            pn,
            time: now,
            size: u16::try_from(size).unwrap_or(u16::MAX),
            ack_eliciting: packet.ack_eliciting,
            in_flight: packet.in_flight,
            ect0: packet.ect0,
            tokens: packet.tokens,
            cc: PacketState::default(),
        };
        self.path.on_packet_sent(now, space, sent, packet.redundant);
        if space == SpaceId::Handshake && self.side.is_client() {
            self.discard_space(now, SpaceId::Initial);
        }
    }

    /// Whether the path allows sending a datagram of `size` bytes now. If only the pacer forbids
    /// it, sets its timer.
    pub(super) fn may_send_data(&mut self, now: Instant, size: usize) -> bool {
        let gate = self.path.gate(now, size);
        let wait = match gate {
            Gate::Open | Gate::Window => None,
            Gate::Pacing(at) => Some(at),
        };
        self.timers.set(Timer::Pacing, wait);
        if gate != Gate::Open {
            self.path.on_held_back(gate);
        }
        gate == Gate::Open
    }
}
