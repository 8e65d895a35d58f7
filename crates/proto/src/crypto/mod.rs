//! Packet protection and the handshake (RFC 9001), behind traits.
//!
//! The connection knows a [`Session`], which takes and produces CRYPTO bytes and hands out
//! [`Keys`]. [`rustls`] is TLS 1.3; [`null`] has messages and packets of the same shape for
//! simulations, and keeps nothing secret.

pub mod null;
pub mod retry;
pub mod rustls;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use ::rustls::pki_types::CertificateDer;

use crate::error::{TransportError, TransportErrorCode};
use crate::ids::{ConnectionId, SpaceId};
use crate::wire::packet::VERSION_1;

/// Bytes that sealing adds to a packet. The tags of all AEADs of QUIC v1 have this length
/// (RFC 9001 section 5.3).
pub const TAG_LEN: usize = 16;

/// Bytes of ciphertext from which a header protection mask is made (RFC 9001 section 5.4.2).
pub const SAMPLE_LEN: usize = 16;

/// Where the sample begins, counted from the packet number: as if that were four bytes long.
pub const SAMPLE_OFFSET: usize = 4;

/// Bytes of a header protection mask: one for the first byte, four for the packet number.
pub const MASK_LEN: usize = 5;

/// A packet could not be protected or unprotected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProtectionError {
    /// The packet has no room for a tag, or ends before its header protection sample does.
    #[error("packet too short to be protected")]
    TooShort,
    /// The AEAD would not seal.
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
    /// Encrypts all but the last [`tag_len`](Self::tag_len) bytes of `payload` in place and writes
    /// the tag over those. `header` is the whole header up to and with the packet number, not yet
    /// header-protected; `pn` the full packet number.
    ///
    /// # Errors
    /// `payload` has no room for a tag, or the AEAD fails.
    fn seal(&self, pn: u64, header: &[u8], payload: &mut [u8]) -> Result<(), ProtectionError>;

    /// Checks and decrypts `payload`, which ends in the tag, in place; returns how many bytes of
    /// plaintext stand at its start now. `header` is the header without its protection.
    ///
    /// # Errors
    /// Authentication fails, or `payload` is shorter than a tag. What `payload` holds then is
    /// unspecified: it cannot be tried again with another key.
    fn open(&self, pn: u64, header: &[u8], payload: &mut [u8]) -> Result<usize, ProtectionError>;

    /// Bytes that [`seal`](Self::seal) adds.
    fn tag_len(&self) -> usize {
        TAG_LEN
    }

    /// How many packets may be sealed with this key (RFC 9001 section 6.6).
    fn confidentiality_limit(&self) -> u64;

    /// How many packets may fail to open, over all keys of the connection, before it must end
    /// (RFC 9001 section 6.6).
    fn integrity_limit(&self) -> u64;
}

/// Hides or reveals the packet number and the low bits of the first byte, in one direction. Lives
/// through key updates (RFC 9001 section 5.4).
pub trait HeaderKey: Send + Sync {
    /// The mask that belongs to a sample. Of the first byte only the low five bits mean something.
    ///
    /// # Errors
    /// The cipher fails, which none does for a sample of this length.
    fn mask(&self, sample: &[u8; SAMPLE_LEN]) -> Result<[u8; MASK_LEN], ProtectionError>;

    /// Protects the header of a sealed packet whose packet number begins at `pn_offset`.
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
    /// number, 1 to 4. Reserved bits mean nothing before the packet has been opened.
    ///
    /// # Errors
    /// The packet ends before the sample does; it is unchanged then.
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

/// Long headers hide four bits of the first byte and short ones five (RFC 9001 section 5.4.1).
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

/// The keys of one direction of one encryption level.
pub struct DirectionalKeys {
    /// Header protection.
    pub header: Box<dyn HeaderKey>,
    /// Payload protection.
    pub packet: Box<dyn PacketKey>,
}

impl DirectionalKeys {
    /// Makes a packet ready to send: seals it, then protects its header. `packet` is header,
    /// payload and [`TAG_LEN`] bytes of room; the header ends with the packet number of `pn_len`
    /// bytes at `pn_offset`.
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
    /// For what is sent from here.
    pub local: DirectionalKeys,
    /// For what the peer sends.
    pub remote: DirectionalKeys,
}

/// The packet keys of one key phase of the 1-RTT level; the header keys stay as they were
/// (RFC 9001 section 6).
pub struct PacketKeys {
    /// For what is sent from here.
    pub local: Box<dyn PacketKey>,
    /// For what the peer sends.
    pub remote: Box<dyn PacketKey>,
}

impl fmt::Debug for PacketKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PacketKeys").finish_non_exhaustive()
    }
}

/// New keys from the handshake. CRYPTO bytes written afterwards belong to the new level.
#[derive(Debug)]
pub enum KeyChange {
    /// The keys of the Handshake level.
    Handshake(Keys),
    /// The keys of the 1-RTT level. A server gets them before the handshake is complete and must
    /// not open packets with them until then (RFC 9001 section 5.7).
    OneRtt {
        /// Of the first key phase.
        keys: Keys,
        /// Of the second, so that answering a key update takes no longer than any packet.
        next: PacketKeys,
    },
}

/// A session would not produce keying material.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no keying material: the handshake is not complete, or the length is out of range")]
pub struct ExportError;

/// One handshake, at one end.
pub trait Session: Send {
    /// Takes the next CRYPTO bytes of a level, in order and without gaps. `SpaceId` names the
    /// level: Initial, Handshake, or Data for 1-RTT. Call
    /// [`write_handshake`](Self::write_handshake) after it.
    ///
    /// # Errors
    /// The peer's message is malformed, unexpected or unacceptable (the code is 0x100 plus the TLS
    /// alert, RFC 9001 section 4.8), or belongs to another level than `level` (PROTOCOL_VIOLATION,
    /// section 4.1.3). The session cannot be used afterwards.
    fn read_handshake(&mut self, level: SpaceId, data: &[u8]) -> Result<(), TransportError>;

    /// Appends CRYPTO bytes of the current sending level to `out`. If keys are returned, the bytes
    /// come before the change of keys, and there may be more for the next level: call it again
    /// until it returns `None`, which may come with bytes too.
    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<KeyChange>;

    /// The peer's transport parameters as encoded, once they have arrived: at a server with the
    /// ClientHello, when they are not authentic yet; at a client when the handshake is complete
    /// (RFC 9001 section 8.2).
    fn transport_parameters(&self) -> Option<&[u8]>;

    /// Whether the handshake is not complete yet (RFC 9001 section 4.1.1).
    fn is_handshaking(&self) -> bool;

    /// The application protocol, once negotiated.
    fn alpn(&self) -> Option<&[u8]>;

    /// The peer's certificate chain, its own first, once received.
    fn peer_certificates(&self) -> Option<&[CertificateDer<'static>]>;

    /// The server's name as the client gave it; on a server, once the ClientHello has been read
    /// and if that had one.
    fn server_name(&self) -> Option<&str>;

    /// The packet keys of the next key phase: the first call gives those that follow
    /// [`KeyChange::OneRtt`]'s `next`. `None` while there are no 1-RTT keys.
    fn next_1rtt_keys(&mut self) -> Option<PacketKeys>;

    /// Fills `output` with keying material bound to this session (RFC 5705, RFC 8446 section 7.5).
    ///
    /// # Errors
    /// The handshake is not complete, or `output` is empty or too long.
    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: Option<&[u8]>,
    ) -> Result<(), ExportError>;
}

/// A session could not be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// There is no cryptography for this QUIC version.
    #[error("unsupported QUIC version {0:#x}")]
    UnsupportedVersion(u32),
    /// The name is neither a DNS name nor an IP address.
    #[error("invalid server name {0:?}")]
    InvalidServerName(String),
    /// The TLS configuration cannot be used.
    #[error("TLS configuration: {0}")]
    Tls(String),
}

/// Starts sessions of clients.
pub trait ClientCryptoConfig: Send + Sync + fmt::Debug {
    /// A session for one connection to `server_name`. `transport_parameters` is the encoded
    /// extension.
    ///
    /// # Errors
    /// The version is not spoken, the name is no name, or the configuration is unusable.
    fn start_session(
        &self,
        version: u32,
        server_name: &str,
        transport_parameters: Vec<u8>,
    ) -> Result<Box<dyn Session>, StartError>;

    /// A client's Initial keys. `dcid` is the destination connection ID of its first Initial
    /// packet, or of the first after a Retry (RFC 9001 section 5.2).
    ///
    /// # Errors
    /// The version is not spoken.
    fn initial_keys(&self, version: u32, dcid: &ConnectionId) -> Result<Keys, StartError>;
}

/// Starts sessions of servers.
pub trait ServerCryptoConfig: Send + Sync + fmt::Debug {
    /// A session for one connection. `transport_parameters` is the encoded extension.
    ///
    /// # Errors
    /// The version is not spoken, or the configuration is unusable.
    fn start_session(
        &self,
        version: u32,
        transport_parameters: Vec<u8>,
    ) -> Result<Box<dyn Session>, StartError>;

    /// A server's Initial keys for a client that sent its first Initial packet to `dcid`
    /// (RFC 9001 section 5.2).
    ///
    /// # Errors
    /// The version is not spoken.
    fn initial_keys(&self, version: u32, dcid: &ConnectionId) -> Result<Keys, StartError>;
}

/// A client's cryptography, shared by its connections.
pub type ClientCrypto = Arc<dyn ClientCryptoConfig>;

/// A server's cryptography, shared by its connections.
pub type ServerCrypto = Arc<dyn ServerCryptoConfig>;

fn check_version(version: u32) -> Result<(), StartError> {
    if version == VERSION_1 { Ok(()) } else { Err(StartError::UnsupportedVersion(version)) }
}

/// CRYPTO bytes must come in packets of the level that the handshake has reached (RFC 9001
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
