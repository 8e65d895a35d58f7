//! How a server answers a client's first Initial: it lets the client in, sends a Retry or a refusal, or
//! says nothing.

use super::half_open::{Admission, Limits, MAX_HANDSHAKES_PER_ADDRESS, Network};
use super::incoming::Incoming;
use super::token::TokenVerdict;
use super::{DatagramEvent, Endpoint, Entry, MIN_INITIAL_DCID};
use crate::connection;
use crate::crypto::{Keys, TAG_LEN, retry};
use crate::error::{TransportError, TransportErrorCode};
use crate::ids::ConnectionId;
use crate::wire::frame::{Carrier, Close, Frame, FrameIter};
use crate::wire::packet::{LongHeader, LongType, ProtectedPacket, TruncatedNumber, encode_retry};
use crate::wire::version::Version;
use std::net::SocketAddr;
use std::time::Instant;

/// The contents of a client's first Initial that a stateless answer needs.
#[derive(Debug, Clone, Copy)]
pub struct Opener {
    pub(super) remote: SocketAddr,
    pub(super) version: Version,
    /// The destination that it chose, or that a Retry chose for it.
    pub(super) dcid: ConnectionId,
    pub(super) scid: ConnectionId,
    /// Whether it answers a Retry already.
    pub(super) retried: bool,
}

impl Endpoint {
    /// Answers an Initial packet that belongs to no connection.
    pub(super) fn on_initial(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        packet: &ProtectedPacket,
        datagram: &[u8],
    ) -> DatagramEvent {
        let Some(server) = self.server.clone() else { return DatagramEvent::Drop };
        if packet.dcid.len() < MIN_INITIAL_DCID {
            return DatagramEvent::Drop;
        }
        let token = datagram.get(packet.token.clone()).unwrap_or_default();
        let version = packet.version.unwrap_or(Version::V1);
        let verdict = match token {
            // Most clients have no token, and need not wait for the tokens of others.
            [] => TokenVerdict::Unknown,
            _ => self.common.tokens().judge(now, version, remote, &packet.dcid, token),
        };
        let retried = matches!(verdict, TokenVerdict::Retried { .. });
        let opener = Opener { remote, version, dcid: packet.dcid, scid: packet.scid, retried };
        let validated = verdict != TokenVerdict::Unknown;
        self.half_open.age(now);
        let refusal = match verdict {
            TokenVerdict::Invalid => Some(TransportErrorCode::INVALID_TOKEN),
            TokenVerdict::Unknown | TokenVerdict::Known | TokenVerdict::Retried { .. } => {
                let network = Network::from(remote.ip());
                let is_shut = self.is_full()
                    || !self.accepting
                    || self.common.offenders().is_shut_out(now, network);
                is_shut.then_some(TransportErrorCode::CONNECTION_REFUSED)
            }
        };
        let admission = match refusal {
            None => self.admission(now, remote, validated),
            Some(_) => Admission::Admit,
        };
        match admission {
            Admission::Retry => return respond(self.retry_packet(now, &opener)),
            Admission::Wait => return DatagramEvent::Drop,
            Admission::Admit | Admission::Displace(_) => {}
        }
        // A packet that cannot be opened would leave behind a connection without a peer.
        let keys = server.crypto.initial_keys(version.number(), &packet.dcid).ok();
        let opened = keys.and_then(|keys| {
            connection::open_first(&keys, packet, datagram).map(|payload| (keys, payload))
        });
        let Some((keys, payload)) = opened else { return DatagramEvent::Drop };
        let refusal = refusal.or_else(|| server.crypto.refusal(&start_of_handshake(&payload)));
        if let Some(code) = refusal {
            if !validated {
                self.half_open.refused();
            }
            return respond(stateless_close(&keys, &opener, self.new_cid(), code));
        }
        if let Admission::Displace(rank) = admission {
            self.give_up(rank);
        }
        // A forged token must not displace a used one.
        if validated {
            self.common.tokens().consume(token);
        }
        self.let_in(now, opener, verdict)
    }

    fn admission(&self, now: Instant, remote: SocketAddr, validated: bool) -> Admission {
        let limits = Limits {
            max: self.share.part(self.config.max_handshakes),
            per_network: self.share.part(MAX_HANDSHAKES_PER_ADDRESS),
            retry_above: self.config.retry_above.map(|above| self.share.part(above)),
        };
        self.half_open.decide(now, Network::from(remote.ip()), validated, limits)
    }

    /// Keeps a client that was let in until the application has decided about it.
    fn let_in(&mut self, now: Instant, opener: Opener, verdict: TokenVerdict) -> DatagramEvent {
        let validated = verdict != TokenVerdict::Unknown;
        let original_dcid = match verdict {
            TokenVerdict::Retried { original_dcid } => original_dcid,
            TokenVerdict::Known | TokenVerdict::Unknown | TokenVerdict::Invalid => opener.dcid,
        };
        let handle = self.register(Entry::new(&[opener.dcid]));
        let rank = self.half_open.insert(now, handle, Network::from(opener.remote.ip()), validated);
        if let Some(entry) = self.connections.get_mut(handle.0) {
            entry.half_open = Some(rank);
            entry.undecided = true;
        }
        DatagramEvent::NewConnection(Incoming { handle, rank, opener, original_dcid, validated })
    }

    pub(super) fn retry_packet(&mut self, now: Instant, opener: &Opener) -> Option<Vec<u8>> {
        let scid = self.new_cid();
        let Opener { version, remote, dcid, .. } = opener;
        let token = self.common.tokens().for_retry(now, *version, *remote, &scid, dcid)?;
        let mut out = Vec::new();
        encode_retry(opener.version, opener.scid, scid, &token, &mut out);
        let tag = retry::integrity_tag(opener.version, &opener.dcid, &out)?;
        out.extend_from_slice(&tag);
        Some(out)
    }
}

/// The CRYPTO bytes of a packet from the first one on, as far as they have no gap. The connection finds
/// errors in its frames.
fn start_of_handshake(payload: &[u8]) -> Vec<u8> {
    let frames = FrameIter::new(payload, Carrier::Initial).map_while(Result::ok);
    let mut pieces: Vec<(u64, &[u8])> = frames
        .filter_map(|frame| match frame {
            Frame::Crypto { offset, data } => Some((offset, data)),
            _ => None,
        })
        .collect();
    pieces.sort_unstable_by_key(|(offset, _)| *offset);
    let mut handshake = Vec::new();
    for (offset, data) in pieces {
        let known = (handshake.len() as u64).checked_sub(offset);
        let Some(known) = known.and_then(|known| usize::try_from(known).ok()) else { break };
        handshake.extend_from_slice(data.get(known..).unwrap_or_default());
    }
    handshake
}

fn respond(answer: Option<Vec<u8>>) -> DatagramEvent {
    answer.map_or(DatagramEvent::Drop, DatagramEvent::Respond)
}

/// An Initial packet with a CONNECTION_CLOSE, for a client that gets no connection (RFC 9000 section
/// 10.2.3). It is much shorter than the client's datagram, so it cannot be used for amplification.
pub(super) fn stateless_close(
    keys: &Keys,
    opener: &Opener,
    scid: ConnectionId,
    code: TransportErrorCode,
) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let ty = LongType::Initial { token: &[] };
    let header = LongHeader { version: opener.version, ty, dcid: opener.scid, scid };
    let layout = header.encode(TruncatedNumber::with_size(0, 4), &mut out);
    let TransportError { code, frame, .. } = TransportError::new(code, "");
    Close::Transport { code, frame, reason: b"" }.encode_within(usize::MAX, &mut out);
    out.resize(out.len() + TAG_LEN, 0);
    layout.finish(0, &mut out).ok()?;
    keys.local.protect(0, &mut out, layout.number, layout.payload - layout.number).ok()?;
    Some(out)
}
