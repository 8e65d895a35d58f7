//! What a server may answer to a client's first packet instead of continuing the handshake: Retry
//! (RFC 9000 section 8.1.2) and Version Negotiation (section 6).

use super::{Connection, State};
use crate::crypto::{ClientCrypto, retry};
use crate::error::ConnectionError;
use crate::ids::{ConnectionId, SpaceId};
use crate::wire::packet::{RetryPacket, VERSION_1, VersionNegotiationPacket};
use std::time::Instant;

/// A longer token would leave too little room in an Initial packet for the handshake.
pub const MAX_TOKEN: usize = 768;

/// What a client needs to follow a Retry, and what it remembers of one.
#[derive(Debug, Default)]
pub struct RetryState {
    /// Derives Initial keys again. `None` on a server.
    pub crypto: Option<ClientCrypto>,
    /// The source identifier of the Retry that was followed.
    pub source: Option<ConnectionId>,
    /// The token that every Initial carries: of an earlier connection, or of the Retry.
    pub token: Vec<u8>,
}

impl Connection {
    /// Whether no packet of the server was processed yet. Both packets are valid only until then;
    /// later ones are late copies or forged (RFC 9000 sections 6.2 and 17.2.5.2).
    fn awaits_first_answer(&self) -> bool {
        self.side.is_client()
            && self.state == State::Handshaking
            && self.handshake.peer_scid.is_none()
            && self.handshake.retry.source.is_none()
    }

    /// Starts over with the identifier and token of the server's Retry.
    pub(super) fn on_retry(&mut self, now: Instant, packet: &RetryPacket, datagram: &[u8]) {
        let token = datagram.get(packet.token.clone()).unwrap_or_default();
        let whole = datagram.get(packet.start..packet.tag.end).unwrap_or_default();
        let original = self.handshake.original_dcid;
        let is_ours = self.awaits_first_answer()
            && packet.dcid == self.handshake.local_cid
            && packet.scid != original
            && token.len() <= MAX_TOKEN
            && retry::is_authentic(&original, whole);
        let Some(crypto) = self.handshake.retry.crypto.as_ref().filter(|_| is_ours) else { return };
        let Ok(keys) = crypto.initial_keys(VERSION_1, &packet.scid) else { return };
        self.handshake.retry.source = Some(packet.scid);
        self.handshake.retry.token = token.to_vec();
        self.path.remote_cids.set_handshake_cid(packet.scid);
        // The same handshake message is sent again with higher packet numbers (RFC 9000 section
        // 17.2.5.3). The earlier packets stay unacknowledged, but that is no sign of congestion.
        self.path.discard_space(now, SpaceId::Initial);
        let space = &mut self.spaces[SpaceId::Initial as usize];
        space.keys = Some(keys);
        space.probes = 0;
        space.ping = false;
        space.crypto.resend_unacked();
    }

    /// Gives up unless the server supports our version.
    pub(super) fn on_version_negotiation(
        &mut self,
        now: Instant,
        packet: &VersionNegotiationPacket,
        datagram: &[u8],
    ) {
        let is_ours = self.awaits_first_answer()
            && packet.dcid == self.handshake.local_cid
            && packet.scid == self.handshake.original_dcid;
        if is_ours && !packet.versions(datagram).any(|version| version == VERSION_1) {
            self.lost(now, ConnectionError::VersionMismatch);
            self.drained(now);
        }
    }
}
