//! The packets with which a server may answer a client's first packet instead of continuing the handshake:
//! Retry (RFC 9000 section 8.1.2) and Version Negotiation (section 6).

use super::negotiation::Negotiation;
use super::{Connection, LifeStage};
use crate::crypto::{ClientCrypto, retry};
use crate::error::ConnectionError;
use crate::error::TransportError;
use crate::ids::{ConnectionId, Side, SpaceId};
use crate::version;
use crate::wire::packet::{RetryPacket, VersionNegotiationPacket};
use crate::wire::transport_parameters::{TransportParameters, VersionInformation};
use crate::wire::version::Version;
use std::time::Instant;

/// A longer token would leave too little room in an Initial packet for the handshake.
pub const MAX_TOKEN: usize = 768;

/// The state that a client needs to follow a Retry, and remembers of the Retry that it followed.
#[derive(Debug, Default)]
pub struct RetryState {
    /// Derives Initial keys again. `None` on a server.
    pub crypto: Option<ClientCrypto>,
    /// The source identifier of the Retry that was followed.
    pub source: Option<ConnectionId>,
    /// The token that every Initial carries: of an earlier connection, or of the Retry.
    pub token: Vec<u8>,
    /// The name of the server that the client asks for.
    pub server_name: String,
    /// Whether the server did not support the version of the first packets.
    pub negotiated: bool,
}

impl Connection {
    /// Whether no packet of the server was processed yet. Retry and Version Negotiation are valid only until
    /// then; later ones are late copies or forged (RFC 9000 sections 6.2 and 17.2.5.2).
    fn awaits_first_answer(&self) -> bool {
        self.side.is_client()
            && self.state == LifeStage::Handshaking
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
            && retry::is_authentic(self.version, &original, whole);
        let Some(crypto) = self.handshake.retry.crypto.as_ref().filter(|_| is_ours) else { return };
        let Ok(keys) = crypto.initial_keys(self.version.number(), &packet.scid) else { return };
        self.negotiation.forget_keys();
        self.handshake.retry.source = Some(packet.scid);
        self.handshake.retry.token = token.to_vec();
        self.path.remote_cids.set_handshake_cid(packet.scid);
        // The same handshake message is sent again with higher packet numbers (RFC 9000 section
        // 17.2.5.3). The earlier packets stay unacknowledged, but that is no sign of congestion.
        self.path.discard_space(now, SpaceId::Initial);
        let space = &mut self.spaces[SpaceId::Initial];
        space.keys = Some(keys);
        space.probes = 0;
        space.ping = false;
        space.crypto.resend_unacked();
        self.resend_0rtt(now);
    }

    /// Goes over to the best version that the server supports, once, or gives up. A packet that names our
    /// version is no answer to ours (RFC 9000 section 6.2).
    pub(super) fn on_version_negotiation(
        &mut self,
        now: Instant,
        packet: &VersionNegotiationPacket,
        datagram: &[u8],
    ) {
        let is_ours = self.awaits_first_answer()
            && !self.handshake.retry.negotiated
            && packet.dcid == self.handshake.local_cid
            && packet.scid == self.handshake.original_dcid;
        let present = self.version.number();
        if !is_ours || packet.versions(datagram).any(|version| version == present) {
            return;
        }
        let next = version::choose(&self.versions, packet.versions(datagram));
        if next.and_then(|version| self.start_over(now, version)).is_none() {
            self.lost(now, ConnectionError::VersionMismatch);
            self.drained(now);
        }
    }

    /// Begins the handshake of another version. `None` if that is not possible.
    fn start_over(&mut self, now: Instant, version: Version) -> Option<()> {
        let crypto = self.handshake.retry.crypto.clone()?;
        let information = self
            .extensions
            .version_information
            .then(|| VersionInformation::new(version, &self.versions));
        let parameters = self.handshake.local.announce_versions(self.side, information);
        let (number, server_name) = (version.number(), &self.handshake.retry.server_name);
        let keys = crypto.initial_keys(number, &self.handshake.original_dcid).ok()?;
        let negotiation = Negotiation::client(version, &self.versions, self.extensions);
        let versions = negotiation.session_versions();
        self.handshake.session = crypto.start_session(versions, server_name, parameters).ok()?;
        self.abandon_0rtt(now);
        self.version = version;
        self.negotiation = negotiation;
        self.handshake.retry.negotiated = true;
        // Tokens are good for one version (RFC 9369 section 5).
        self.handshake.retry.token.clear();
        self.path.discard_space(now, SpaceId::Initial);
        let space = &mut self.spaces[SpaceId::Initial];
        space.keys = Some(keys);
        space.probes = 0;
        space.ping = false;
        space.crypto = Default::default();
        self.drive_handshake(now).ok()
    }

    /// Checks the peer's version information.
    pub(super) fn check_version(&self, peer: &TransportParameters) -> Result<(), TransportError> {
        if !self.extensions.version_information {
            return Ok(());
        }
        let information = peer.version_information.as_ref();
        let original = self.negotiation.original;
        match self.side {
            Side::Server => version::check_chosen(original, original, information),
            Side::Client => {
                version::check_chosen(self.version, original, information)?;
                if self.handshake.retry.negotiated {
                    version::check_downgrade(original, &self.versions, information)?;
                }
                Ok(())
            }
        }
    }
}
