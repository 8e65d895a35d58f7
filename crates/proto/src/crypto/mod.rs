//! Packet protection and the handshake (RFC 9001), behind traits.
//!
//! A connection uses a [`Session`], which consumes and produces CRYPTO bytes and provides [`Keys`].
//! [`rustls`] is TLS 1.3. `null`, with the feature `testing`, is for simulations: its messages
//! and packets have the same shape, but nothing is secret.

mod client_hello;
mod conversion;
mod finished;
#[cfg(feature = "testing")]
pub mod null;
pub mod retry;
pub mod rustls;
mod session_version;
#[cfg(test)]
pub(crate) mod tests;
mod ticket_filter;
mod traffic_secret;

use std::fmt;
use std::sync::Arc;

use ::rustls::pki_types::CertificateDer;

use crate::error::{TransportError, TransportErrorCode};
use crate::ids::{ConnectionId, SpaceId};
use crate::wire::version::Version;

/// Number of bytes that sealing adds to a packet: the tag length of all AEADs in QUIC v1 (RFC 9001
/// section 5.3).
pub const TAG_LEN: usize = 16;

/// Size of the ciphertext sample from which a header protection mask is derived (RFC 9001 section
/// 5.4.2).
pub const SAMPLE_LEN: usize = 16;

/// Offset of the sample from the packet number, which is assumed to be four bytes long.
pub const SAMPLE_OFFSET: usize = 4;

/// Size of a header protection mask: one byte for the first byte, four for the packet number.
pub const MASK_LEN: usize = 5;

/// A packet could not be protected or unprotected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtectionError {
    /// The packet has no room for a tag, or ends before its header protection sample does.
    #[error("packet too short to be protected")]
    TooShort,
    /// The AEAD failed to seal the packet.
    #[error("sealing failed")]
    Seal,
    /// The tag does not match: the packet was damaged or forged, or belongs to another key.
    #[error("packet authentication failed")]
    Open,
    /// The header protection cipher rejected the sample.
    #[error("header protection failed")]
    Mask,
}

/// Seals or opens the payload of packets, in one direction and one key phase (RFC 9001
/// section 5.3).
pub trait PacketKey: Send + Sync {
    /// Encrypts all but the last [`tag_len`](Self::tag_len) bytes of `payload` in place, and overwrites the
    /// last bytes with the tag. `header` is the whole header including the packet number, before header
    /// protection. `pn` is the full packet number.
    ///
    /// # Errors
    /// `payload` has no room for a tag, or the AEAD fails.
    fn seal(&self, pn: u64, header: &[u8], payload: &mut [u8]) -> Result<(), ProtectionError>;

    /// Authenticates and decrypts `payload` in place, and returns the length of the plaintext at
    /// its start. `payload` must end with the tag. `header` is the header after header protection
    /// was removed.
    ///
    /// # Errors
    /// Authentication fails, or `payload` is shorter than a tag. The contents of `payload` are then
    /// unspecified, so it cannot be tried again with another key.
    fn open(&self, pn: u64, header: &[u8], payload: &mut [u8]) -> Result<usize, ProtectionError>;

    /// Number of bytes that [`seal`](Self::seal) adds.
    fn tag_len(&self) -> usize {
        TAG_LEN
    }

    /// Number of packets that may be sealed with this key (RFC 9001 section 6.6).
    fn confidentiality_limit(&self) -> u64;

    /// Number of packets that may fail to open, over all keys of the connection, before the
    /// connection must be closed (RFC 9001 section 6.6).
    fn integrity_limit(&self) -> u64;
}

/// Hides or reveals the packet number and the low bits of the first byte, in one direction. Stays
/// the same across key updates (RFC 9001 section 5.4).
pub trait HeaderKey: Send + Sync {
    /// The mask for a sample. Only the low five bits of its first byte are used.
    ///
    /// # Errors
    /// The cipher fails, which does not happen for a sample of this length.
    fn mask(&self, sample: &[u8; SAMPLE_LEN]) -> Result<[u8; MASK_LEN], ProtectionError>;

    /// Protects the header of a sealed packet whose packet number starts at `pn_offset`.
    ///
    /// # Errors
    /// The packet ends before the sample does: packet number and payload together must have at
    /// least four bytes.
    fn protect(&self, packet: &mut [u8], pn_offset: usize) -> Result<(), ProtectionError> {
        let mask = self.mask(sample(packet, pn_offset)?)?;
        let first = packet.first_mut().ok_or(ProtectionError::TooShort)?;
        let pn_len = packet_number_length(*first);
        *first ^= mask[0] & protected_bits(*first);
        mask_packet_number(packet, pn_offset, pn_len, &mask)
    }

    /// Reverses [`protect`](Self::protect) on a received packet; returns the length of the packet
    /// number, 1 to 4. The reserved bits must not be interpreted before the packet was opened.
    ///
    /// # Errors
    /// The packet ends before the sample does. It is not modified then.
    fn unprotect(&self, packet: &mut [u8], pn_offset: usize) -> Result<usize, ProtectionError> {
        let mask = self.mask(sample(packet, pn_offset)?)?;
        let first = packet.first_mut().ok_or(ProtectionError::TooShort)?;
        *first ^= mask[0] & protected_bits(*first);
        let pn_len = packet_number_length(*first);
        mask_packet_number(packet, pn_offset, pn_len, &mask)?;
        Ok(pn_len)
    }
}

fn sample(packet: &[u8], pn_offset: usize) -> Result<&[u8; SAMPLE_LEN], ProtectionError> {
    pn_offset
        .checked_add(SAMPLE_OFFSET)
        .and_then(|start| packet.get(start..)?.first_chunk())
        .ok_or(ProtectionError::TooShort)
}

/// Long headers protect four bits of the first byte, short headers five (RFC 9001 section 5.4.1).
const fn protected_bits(first: u8) -> u8 {
    if first & 0x80 == 0 { 0x1f } else { 0x0f }
}

fn packet_number_length(first: u8) -> usize {
    usize::from(first & 0x03) + 1
}

fn mask_packet_number(
    packet: &mut [u8],
    pn_offset: usize,
    pn_len: usize,
    mask: &[u8; MASK_LEN],
) -> Result<(), ProtectionError> {
    let pn = packet.get_mut(pn_offset..).ok_or(ProtectionError::TooShort)?;
    for (byte, mask) in pn.iter_mut().zip(&mask[1..]).take(pn_len) {
        *byte ^= mask;
    }
    Ok(())
}

/// The keys for one direction of one encryption level.
pub struct DirectionalKeys {
    /// Header protection.
    pub header: Box<dyn HeaderKey>,
    /// Payload protection.
    pub packet: Box<dyn PacketKey>,
}

impl DirectionalKeys {
    /// Makes a packet ready to send: seals it, then protects its header. `packet` consists of
    /// header, payload and [`TAG_LEN`] bytes of space. The header ends with the packet number,
    /// which is at `pn_offset` and has `pn_len` bytes.
    ///
    /// # Errors
    /// The packet is too short (see [`HeaderKey::protect`]), or the AEAD fails.
    pub fn protect(
        &self,
        pn: u64,
        packet: &mut [u8],
        pn_offset: usize,
        pn_len: usize,
    ) -> Result<(), ProtectionError> {
        let (header, payload) =
            packet.split_at_mut_checked(pn_offset + pn_len).ok_or(ProtectionError::TooShort)?;
        self.packet.seal(pn, header, payload)?;
        self.header.protect(packet, pn_offset)
    }
}

impl fmt::Debug for DirectionalKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectionalKeys").finish_non_exhaustive()
    }
}

/// The keys of one encryption level.
#[derive(Debug)]
pub struct Keys {
    /// For packets sent by this end.
    pub local: DirectionalKeys,
    /// For packets sent by the peer.
    pub remote: DirectionalKeys,
}

/// The packet keys of one 1-RTT key phase; the header keys do not change (RFC 9001 section 6).
pub struct PacketKeys {
    /// For packets sent by this end.
    pub local: Box<dyn PacketKey>,
    /// For packets sent by the peer.
    pub remote: Box<dyn PacketKey>,
}

impl fmt::Debug for PacketKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PacketKeys").finish_non_exhaustive()
    }
}

/// New keys from the handshake. CRYPTO bytes written after this belong to the new level.
#[derive(Debug)]
pub enum KeyChange {
    /// The keys of the Handshake level.
    Handshake(Keys),
    /// The keys of the 1-RTT level, in the first key phase. A server gets them before the
    /// handshake is complete and must not open packets with them until then (RFC 9001 section 5.7).
    OneRtt(Keys),
}

/// The session could not produce keying material.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The handshake is not complete, or the length is out of range.
    #[error("no keying material: the handshake is not complete, or the length is out of range")]
    Unavailable,
    /// This is a server whose configuration does not ask to keep what keying material is made of.
    #[error("no keying material: the server's configuration does not ask for it")]
    NotKept,
}

/// One end of a handshake.
pub trait Session: Send {
    /// Goes over to `version` on a client that learns, before it has Handshake keys, that the server has
    /// chosen that version (RFC 9368 section 2.3): all keys after the 0-RTT keys are of this version. The
    /// session must have been started without [`SessionVersions::negotiated`].
    fn set_version(&mut self, version: Version);

    /// Processes CRYPTO bytes of a level, which must be in order and without gaps. `SpaceId`
    /// specifies the level: Initial, Handshake, or Data for 1-RTT. Call
    /// [`write_handshake`](Self::write_handshake) afterwards.
    ///
    /// # Errors
    /// The peer's message is malformed, unexpected or unacceptable (the code is 0x100 plus the TLS
    /// alert, RFC 9001 section 4.8), or does not belong to `level` (PROTOCOL_VIOLATION, section
    /// 4.1.3). The session cannot be used afterwards.
    fn read_handshake(&mut self, level: SpaceId, data: &[u8]) -> Result<(), TransportError>;

    /// Appends CRYPTO bytes of the current sending level to `out`. If keys are returned, the bytes
    /// belong to the level before them, and there may be more for the next level: call it again
    /// until it returns `None`. That call may append bytes as well.
    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<KeyChange>;

    /// The peer's encoded transport parameters, once received. On a server, they arrive with the
    /// ClientHello and are not authenticated yet; on a client, they are available when the
    /// handshake is complete (RFC 9001 section 8.2).
    fn transport_parameters(&self) -> Option<&[u8]>;

    /// The key of 0-RTT packets: on a client for sealing them, if it resumes a session whose server
    /// permits 0-RTT, and on a server for opening them, once it has read a ClientHello and accepts
    /// them. `None` if there is no 0-RTT (RFC 9001 section 4.6).
    fn early_keys(&self) -> Option<DirectionalKeys>;

    /// On a client: the encoded transport parameters that the server had in the session that is being
    /// resumed, if [`early_keys`](Self::early_keys) are available and the handshake is in progress.
    fn early_parameters(&self) -> Option<&[u8]>;

    /// Whether the server accepts 0-RTT packets. On a client, known when the handshake is complete.
    fn is_early_data_accepted(&self) -> bool;

    /// Whether the handshake is still in progress (RFC 9001 section 4.1.1).
    fn is_handshaking(&self) -> bool;

    /// The negotiated application protocol, once known.
    fn alpn(&self) -> Option<&[u8]>;

    /// The peer's certificate chain, once received. The peer's own certificate is first.
    fn peer_certificates(&self) -> Option<&[CertificateDer<'static>]>;

    /// The server name that the client requested. On a server, available once the ClientHello was
    /// read, if that contains one.
    fn server_name(&self) -> Option<&str>;

    /// The packet keys of the next key phase, which is the second one until
    /// [`enter_next_phase`](Self::enter_next_phase) is called. `None` while there are no 1-RTT keys.
    fn next_1rtt_keys(&self) -> Option<PacketKeys>;

    /// Enters the next key phase: the keys of [`next_1rtt_keys`](Self::next_1rtt_keys) are in use, and those of
    /// the phase after it are the next ones.
    fn enter_next_phase(&mut self);

    /// Fills `output` with keying material bound to this session (RFC 5705, RFC 8446 section 7.5).
    ///
    /// # Errors
    /// The handshake is not complete, the length of `output` is zero or too large, or the session was
    /// [finished](Self::finish).
    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: Option<&[u8]>,
    ) -> Result<(), ExportError>;

    /// Called once, on a server, when the handshake is confirmed and
    /// [`write_handshake`](Self::write_handshake) has no more to say: a smaller session that takes this one's
    /// place, if there is one. It knows what this one knows of the client, goes on with its
    /// [keys](Self::next_1rtt_keys), and accepts no CRYPTO bytes.
    fn finish(&mut self) -> Option<Box<dyn Session>> {
        None
    }
}

/// A session could not be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The QUIC version is not supported.
    #[error("unsupported QUIC version {0:#x}")]
    UnsupportedVersion(u32),
    /// The name is neither a DNS name nor an IP address.
    #[error("invalid server name {0:?}")]
    InvalidServerName(String),
    /// The TLS configuration cannot be used.
    #[error("TLS configuration: {0}")]
    Tls(String),
}

/// The versions of QUIC that a session is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionVersions {
    /// The version of the client's first packets, and so of 0-RTT.
    pub original: u32,
    /// The version of all other packets, if it is known from the start.
    pub negotiated: Option<u32>,
}

impl SessionVersions {
    /// A version that stays.
    #[must_use]
    pub const fn fixed(version: u32) -> Self {
        Self { original: version, negotiated: Some(version) }
    }
}

/// Starts client sessions.
pub trait ClientCryptoConfig: Send + Sync + fmt::Debug {
    /// Starts a session for one connection to `server_name`. `transport_parameters` is the encoded
    /// extension.
    ///
    /// # Errors
    /// The version is not supported, the name is invalid, or the configuration is unusable.
    fn start_session(
        &self,
        versions: SessionVersions,
        server_name: &str,
        transport_parameters: Vec<u8>,
    ) -> Result<Box<dyn Session>, StartError>;

    /// A client's Initial keys. `dcid` is the destination connection ID of its first Initial
    /// packet, or of the first one after a Retry (RFC 9001 section 5.2).
    ///
    /// # Errors
    /// The version is not supported.
    fn initial_keys(&self, version: u32, dcid: &ConnectionId) -> Result<Keys, StartError>;
}

/// Starts server sessions.
pub trait ServerCryptoConfig: Send + Sync + fmt::Debug {
    /// Starts a session for one connection. `transport_parameters` is the encoded extension.
    ///
    /// # Errors
    /// The version is not supported, or the configuration is unusable.
    fn start_session(
        &self,
        versions: SessionVersions,
        transport_parameters: Vec<u8>,
    ) -> Result<Box<dyn Session>, StartError>;

    /// The encoded transport parameters in the ClientHello at the start of `handshake`, which must contain
    /// the whole message. The message is not processed. `None` if there are no parameters; a session reports
    /// the error then.
    fn client_parameters<'a>(&self, handshake: &'a [u8]) -> Option<&'a [u8]>;

    /// The error with which a session would refuse the ClientHello at the start of `handshake`, if the
    /// message is complete and the error shows without a session. `None` otherwise: a session judges the
    /// message.
    fn refusal(&self, _handshake: &[u8]) -> Option<TransportErrorCode> {
        None
    }

    /// A server's Initial keys for a client whose first Initial packet has the destination `dcid`
    /// (RFC 9001 section 5.2).
    ///
    /// # Errors
    /// The version is not supported.
    fn initial_keys(&self, version: u32, dcid: &ConnectionId) -> Result<Keys, StartError>;
}

/// A client's crypto configuration, shared by its connections.
pub type ClientCrypto = Arc<dyn ClientCryptoConfig>;

/// A server's crypto configuration, shared by its connections.
pub type ServerCrypto = Arc<dyn ServerCryptoConfig>;

fn check_version(version: u32) -> Result<Version, StartError> {
    Version::from_number(version).ok_or(StartError::UnsupportedVersion(version))
}

/// The original version, and the negotiated one if it is known.
fn check_versions(versions: SessionVersions) -> Result<(Version, Option<Version>), StartError> {
    let SessionVersions { original, negotiated } = versions;
    Ok((check_version(original)?, negotiated.map(check_version).transpose()?))
}

/// Checks that CRYPTO bytes came in packets of the level that the handshake has reached (RFC 9001
/// section 4.1.3).
fn check_level(expected: SpaceId, level: SpaceId) -> Result<(), TransportError> {
    if level == expected {
        return Ok(());
    }
    Err(TransportError::new(
        TransportErrorCode::PROTOCOL_VIOLATION,
        "handshake message in a packet of the wrong level",
    ))
}
