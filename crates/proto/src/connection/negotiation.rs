//! Compatible version negotiation: a server goes over to another version within the handshake (RFC
//! 9368 section 2.3, RFC 9369 section 4.1).
//!
//! The server chooses when it has the whole ClientHello, and from then on sends packets of the
//! negotiated version only. The client goes over with the first Initial packet of another version
//! that it can open. Packet numbers go on. Until then Initial packets are of the original version,
//! and 0-RTT packets are always.

use super::Connection;
use crate::config::Extensions;
use crate::crypto::{DirectionalKeys, Keys, ServerCrypto, SessionVersions, StartError};
use crate::error::{TransportError, TransportErrorCode};
use crate::ids::{ConnectionId, Side, SpaceId};
use crate::version;
use crate::wire::packet::{DecodedPacket, PacketType};
use crate::wire::transport_parameters::{TransportParameters, VersionInformation};
use crate::wire::version::Version;

/// Type and length of a handshake message (RFC 8446 section 4).
const MESSAGE_HEADER: usize = 4;
/// The longest message that is kept until it is complete. TLS refuses longer ones.
pub const MAX_CLIENT_HELLO: usize = MESSAGE_HEADER + 0xffff;

/// The state of version negotiation, besides the connection's version itself.
#[derive(Debug)]
pub struct Negotiation {
    /// The version of the client's first packets, of 0-RTT and of Retry.
    pub original: Version,
    /// Whether this is a client whose server may still choose another version.
    open: bool,
    /// The Initial keys of another version than the connection's: on a server the keys of the original
    /// version, on a client the keys of the version to which it may go over.
    other: Option<Box<(Version, Keys)>>,
    /// The ClientHello that a server waits for if it may choose another version.
    hello: Option<Box<AwaitedHello>>,
}

impl Negotiation {
    /// A connection that stays with the version.
    const fn fixed(original: Version) -> Self {
        Self { original, open: false, other: None, hello: None }
    }

    /// A client that supports these versions.
    pub fn client(original: Version, ours: &[Version], extensions: Extensions) -> Self {
        let other = |ours: &Version| *ours != original && original.is_compatible_with(*ours);
        let open = extensions.version_information && ours.iter().any(other);
        Self { open, ..Self::fixed(original) }
    }

    /// A server that supports these versions, best first.
    pub fn server(
        original: Version,
        ours: &[Version],
        extensions: Extensions,
        hello: AwaitedHello,
    ) -> Self {
        let mut better = version::better(original, ours);
        let may_change = extensions.version_information && better.next().is_some();
        Self { hello: may_change.then(|| Box::new(hello)), ..Self::fixed(original) }
    }

    /// For which versions a client's session must be prepared.
    pub const fn session_versions(&self) -> SessionVersions {
        let original = self.original.number();
        SessionVersions { original, negotiated: if self.open { None } else { Some(original) } }
    }

    /// Handles that the version of a client cannot change any more.
    pub fn close(&mut self) {
        if self.open {
            (self.open, self.other) = (false, None);
        }
    }

    /// Drops the Initial keys of another version than the connection's.
    pub fn forget_keys(&mut self) {
        self.other = None;
    }

    /// How many bytes of an incomplete ClientHello are kept.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.hello.as_ref().map_or(0, |hello| hello.bytes.len())
    }
}

/// A ClientHello that decides about the version, and the state needed to process it.
#[derive(Debug)]
pub struct AwaitedHello {
    crypto: ServerCrypto,
    /// The destination of the Initial packets from which their keys are derived.
    initial_dcid: ConnectionId,
    /// The part of it that has arrived.
    bytes: Vec<u8>,
}

impl AwaitedHello {
    /// Nothing has arrived.
    pub const fn new(crypto: ServerCrypto, initial_dcid: ConnectionId) -> Self {
        Self { crypto, initial_dcid, bytes: Vec::new() }
    }

    /// Whether it is complete, or will not be kept until it is.
    fn is_complete(&self) -> bool {
        let Some(&[_, high, middle, low]) = self.bytes.first_chunk() else { return false };
        let length = u32::from_be_bytes([0, high, middle, low]) as usize;
        let size = MESSAGE_HEADER + length;
        self.bytes.len() >= size || size > MAX_CLIENT_HELLO
    }

    /// The version information of the client. Malformed parameters are left to TLS and the connection to
    /// find.
    fn version_information(&self) -> Option<VersionInformation> {
        let parameters = self.crypto.client_parameters(&self.bytes)?;
        TransportParameters::decode(parameters, Side::Client).ok()?.version_information
    }
}

fn unusable(error: &StartError) -> TransportError {
    TransportError::new(TransportErrorCode::INTERNAL_ERROR, error.to_string())
}

impl Connection {
    /// Passes CRYPTO bytes to TLS. A server that may choose another version keeps the ClientHello
    /// until it is complete.
    pub(super) fn read_handshake(
        &mut self,
        space: SpaceId,
        data: &[u8],
    ) -> Result<(), TransportError> {
        let Some(hello) = &mut self.negotiation.hello else {
            return self.handshake.session.read_handshake(space, data);
        };
        hello.bytes.extend_from_slice(data);
        if !hello.is_complete() {
            return Ok(());
        }
        let Some(hello) = self.negotiation.hello.take() else { return Ok(()) };
        let information = hello.version_information();
        let chosen = version::negotiate(self.version, &self.versions, information.as_ref());
        if chosen != self.version {
            self.convert(&hello, chosen)?;
        }
        self.handshake.session.read_handshake(space, &hello.bytes)
    }

    /// Goes over to `chosen` on a server that has not answered yet.
    fn convert(&mut self, hello: &AwaitedHello, chosen: Version) -> Result<(), TransportError> {
        let original = self.version;
        let information = VersionInformation::new(chosen, &self.versions);
        let parameters = self.handshake.local.announce_versions(self.side, Some(information));
        let (crypto, number) = (&hello.crypto, chosen.number());
        let versions = SessionVersions { original: original.number(), negotiated: Some(number) };
        self.handshake.session =
            crypto.start_session(versions, parameters).map_err(|error| unusable(&error))?;
        let keys =
            crypto.initial_keys(number, &hello.initial_dcid).map_err(|error| unusable(&error))?;
        let before = self.spaces[SpaceId::Initial].keys.replace(keys);
        self.negotiation.other = before.map(|keys| Box::new((original, keys)));
        self.version = chosen;
        // The server would take the token as issued for a version with which the client does not begin (RFC
        // 9369 section 5).
        self.handshake.new_token.token = None;
        Ok(())
    }

    /// Whether a packet has a version that is allowed at present. Other packets are dropped.
    pub(super) fn is_of_our_version(&self, packet: &DecodedPacket) -> bool {
        let Some(version) = packet.version() else { return true };
        let DecodedPacket::Protected(packet) = packet else { return version == self.version };
        match packet.ty {
            PacketType::ZeroRtt => version == self.negotiation.original,
            PacketType::Initial => {
                let other = self.negotiation.other.as_deref();
                version == self.version
                    || other.is_some_and(|(other, _)| version == *other)
                    || self.may_become(version)
            }
            PacketType::Handshake => version == self.version || self.may_become(version),
            PacketType::OneRtt => true,
        }
    }

    /// Whether this is a client whose server may have chosen `version`.
    fn may_become(&self, version: Version) -> bool {
        let original = self.negotiation.original;
        self.negotiation.open
            && original.is_compatible_with(version)
            && self.versions.contains(&version)
    }

    /// The keys that open Initial packets of `version`.
    pub(super) fn initial_opener(&self, version: Option<Version>) -> Option<&DirectionalKeys> {
        let keys = match self.negotiation.other.as_deref() {
            Some((other, keys)) if version == Some(*other) => keys,
            _ if version == Some(self.version) => self.spaces[SpaceId::Initial].keys.as_ref()?,
            _ => return None,
        };
        Some(&keys.remote)
    }

    /// Derives, on a client, the keys of an Initial packet with which its server may have gone over
    /// to `version`. They are kept, so that forged packets cost this once.
    pub(super) fn prepare_to_open(&mut self, version: Option<Version>) {
        let Some(version) = version.filter(|version| *version != self.version) else { return };
        let known = self.negotiation.other.as_deref().is_some_and(|(other, _)| version == *other);
        let retry = &self.handshake.retry;
        let Some(crypto) = retry.crypto.as_ref().filter(|_| !known && self.may_become(version))
        else {
            return;
        };
        let dcid = retry.source.unwrap_or(self.handshake.original_dcid);
        let keys = crypto.initial_keys(version.number(), &dcid).ok();
        self.negotiation.other = keys.map(|keys| Box::new((version, keys)));
    }

    /// Follows, on a client, a server that has sent a packet of `version` which could be opened.
    pub(super) fn follow_version(&mut self, version: Option<Version>) {
        let Some(version) = version.filter(|version| *version != self.version) else { return };
        if !self.may_become(version) {
            return;
        }
        if let Some((_, keys)) = self.negotiation.other.take().map(|other| *other) {
            self.spaces[SpaceId::Initial].keys = Some(keys);
            self.handshake.session.set_version(version);
            self.version = version;
            self.negotiation.close();
        }
    }
}
