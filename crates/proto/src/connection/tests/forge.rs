//! Packets that an end of a pair would never send.

use super::pair::Pair;
use crate::recovery::sent::SentPacket;
use crate::wire::packet::{LongHeader, LongType, ShortHeader, TruncatedNumber};
use crate::wire_format::{Frame, NewConnectionId};
use crate::{ConnectionId, MAX_CID_SIZE, Side, SpaceId, TransportErrorCode};
use std::time::Instant;

pub(super) fn encoded(frame: &Frame<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    frame.encode(&mut out);
    out
}

/// A PING and padding for the sample.
pub(super) const PING: [u8; 4] = [1, 0, 0, 0];

/// An identifier like those of endpoints.
pub(super) fn cid(byte: u8) -> ConnectionId {
    ConnectionId::new(&[byte; 8]).unwrap()
}

/// A NEW_CONNECTION_ID frame with an identifier that is like no other.
pub(super) fn new_id(sequence: u64, retire_prior_to: u64) -> Frame<'static> {
    let id = ConnectionId::new(&(0x5555_0000_0000_0000 + sequence).to_be_bytes()).unwrap();
    let reset_token = [sequence as u8; 16];
    Frame::NewConnectionId(NewConnectionId { sequence, retire_prior_to, id, reset_token })
}

/// An identifier longer than those of endpoints, which replaces all others.
pub(super) fn long_id() -> Frame<'static> {
    let id = ConnectionId::new(&[7; MAX_CID_SIZE]).unwrap();
    let (sequence, retire_prior_to, reset_token) = (9, 9, [1; 16]);
    Frame::NewConnectionId(NewConnectionId { sequence, retire_prior_to, id, reset_token })
}

/// Frames that are padded to the least size of datagrams with Initial packets.
pub(super) fn padded(frames: &[u8]) -> Vec<u8> {
    let mut payload = frames.to_vec();
    payload.resize(1200, 0);
    payload
}

/// A packet without frames of interest.
pub(super) fn empty<C: Default>(pn: u64, time: Instant) -> SentPacket<C> {
    SentPacket {
        pn,
        time,
        size: 100,
        ack_eliciting: false,
        in_flight: false,
        ect0: false,
        cc: Default::default(),
        tokens: Default::default(),
    }
}

/// How a forged packet differs from a proper one.
#[derive(Default, Clone, Copy)]
pub(super) struct Forgery {
    pub(super) dcid: Option<ConnectionId>,
    pub(super) scid: Option<ConnectionId>,
    /// Bits of the first byte to set.
    pub(super) bits: u8,
    /// Bits of the first byte to clear.
    pub(super) cleared: u8,
    /// The Key Phase bit of a 1-RTT packet.
    pub(super) phase: bool,
    /// How far its packet number is above the next one, which it leaves unused then.
    pub(super) ahead: u64,
}

impl Pair {
    /// Forges a packet from `from` with this payload.
    pub(super) fn forge(
        &mut self,
        from: Side,
        space: SpaceId,
        payload: &[u8],
        forgery: Forgery,
    ) -> Vec<u8> {
        let now = self.now;
        let connection = self.end(from).conn();
        let pn = connection.spaces[space].peek_pn() + forgery.ahead;
        let dcid = forgery.dcid.unwrap_or(connection.path.remote_cids.active());
        let scid = forgery.scid.unwrap_or(connection.handshake.local_cid);
        let number = TruncatedNumber::with_size(pn, 4);
        let mut out = Vec::new();
        let layout = match space {
            SpaceId::Data if connection.is_sending_0rtt() => {
                let (version, ty) = (connection.negotiation.original, LongType::ZeroRtt);
                LongHeader { version, ty, dcid, scid }.encode(number, &mut out)
            }
            SpaceId::Data => {
                ShortHeader { dcid, spin: false, key_phase: forgery.phase }.encode(number, &mut out)
            }
            _ => {
                let ty = match space {
                    SpaceId::Initial => LongType::Initial { token: &[] },
                    _ => LongType::Handshake,
                };
                let version = connection.version;
                LongHeader { version, ty, dcid, scid }.encode(number, &mut out)
            }
        };
        out[0] = (out[0] | forgery.bits) & !forgery.cleared;
        out.extend_from_slice(payload);
        out.extend_from_slice(&[0; 16]);
        layout.finish(0, &mut out).unwrap();
        let keys = connection.sealer(space).expect("no keys");
        keys.protect(pn, &mut out, layout.number, layout.payload - layout.number).unwrap();
        if forgery.ahead > 0 {
            return out;
        }
        connection.spaces[space].take_pn(false, &mut connection.rng);
        connection.path.recovery.on_packet_sent(space, empty(pn, now));
        out
    }

    /// Forges a packet and delivers it to the other end at once.
    pub(super) fn inject_packet(
        &mut self,
        from: Side,
        space: SpaceId,
        payload: &[u8],
        forgery: Forgery,
    ) {
        let datagram = self.forge(from, space, payload, forgery);
        self.receive(from.peer(), datagram);
    }

    /// Forges a 1-RTT or 0-RTT packet with these frames.
    pub(super) fn packet(&mut self, from: Side, frames: &[Frame<'_>]) -> Vec<u8> {
        let payload = frames.iter().flat_map(encoded).collect::<Vec<_>>();
        self.forge(from, SpaceId::Data, &payload, Forgery::default())
    }

    /// Injects 1-RTT or 0-RTT frames that `from` would never send.
    pub(super) fn inject(&mut self, from: Side, frames: &[Frame<'_>]) {
        let datagram = self.packet(from, frames);
        self.receive(from.peer(), datagram);
    }

    /// How the server takes a 1-RTT frame.
    pub(super) fn verdict(&mut self, frame: &Frame<'_>) -> Result<(), TransportErrorCode> {
        self.server.conn().inject_frame(frame).map_err(|error| error.code)
    }
}
