//! TLS 1.3 with rustls, using the AEADs of the configured crypto provider.
//!
//! 0-RTT is disabled: configurations are taken by value so that neither end can offer it.

use std::fmt;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::quic;
use rustls::{CipherSuite, SupportedCipherSuite};

use super::{
    ClientCryptoConfig, DirectionalKeys, ExportError, HeaderKey, KeyChange, Keys, MASK_LEN,
    PacketKey, PacketKeys, ProtectionError, SAMPLE_LEN, ServerCryptoConfig, Session, StartError,
    TAG_LEN, check_level, check_version,
};
use crate::error::{TransportError, TransportErrorCode};
use crate::ids::{ConnectionId, Side, SpaceId};

/// The TLS alert for malformed messages, which rustls may report without an alert (RFC 8446 section
/// 6.2).
const DECODE_ERROR: u8 = 50;

/// A TLS configuration that cannot be used for QUIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// It has no application protocol, but QUIC requires one (RFC 9001 section 8.1).
    #[error("no application protocol (ALPN) is configured")]
    NoApplicationProtocol,
    /// Its provider lacks TLS_AES_128_GCM_SHA256, which protects Initial packets.
    #[error("the crypto provider has no TLS_AES_128_GCM_SHA256 for Initial packets")]
    NoInitialCipherSuite,
}

/// A client's TLS configuration.
#[derive(Clone)]
pub struct RustlsClientConfig {
    tls: Arc<rustls::ClientConfig>,
    initial: quic::Suite,
}

impl RustlsClientConfig {
    /// Wraps a TLS configuration, and disables 0-RTT in it.
    ///
    /// # Errors
    /// It has no ALPN protocols, or no cipher suite for Initial packets.
    pub fn new(mut tls: rustls::ClientConfig) -> Result<Self, ConfigError> {
        tls.enable_early_data = false;
        let initial = check_config(&tls.alpn_protocols, &tls.crypto_provider().cipher_suites)?;
        Ok(Self { tls: Arc::new(tls), initial })
    }
}

impl fmt::Debug for RustlsClientConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RustlsClientConfig").finish_non_exhaustive()
    }
}

impl ClientCryptoConfig for RustlsClientConfig {
    fn start_session(
        &self,
        version: u32,
        server_name: &str,
        transport_parameters: Vec<u8>,
    ) -> Result<Box<dyn Session>, StartError> {
        check_version(version)?;
        let name = ServerName::try_from(server_name)
            .map_err(|_| StartError::InvalidServerName(server_name.to_owned()))?
            .to_owned();
        let tls = quic::ClientConnection::new(
            Arc::clone(&self.tls),
            quic::Version::V1,
            name,
            transport_parameters,
        )
        .map_err(|error| StartError::Tls(error.to_string()))?;
        Ok(Box::new(RustlsSession::new(tls.into(), Some(server_name.to_owned()))))
    }

    fn initial_keys(&self, version: u32, dcid: &ConnectionId) -> Result<Keys, StartError> {
        check_version(version)?;
        Ok(initial_keys(&self.initial, dcid, Side::Client))
    }
}

/// A server's TLS configuration.
#[derive(Clone)]
pub struct RustlsServerConfig {
    tls: Arc<rustls::ServerConfig>,
    initial: quic::Suite,
}

impl RustlsServerConfig {
    /// Wraps a TLS configuration, and disables 0-RTT in it.
    ///
    /// # Errors
    /// It has no ALPN protocols, or no cipher suite for Initial packets.
    pub fn new(mut tls: rustls::ServerConfig) -> Result<Self, ConfigError> {
        tls.max_early_data_size = 0;
        let initial = check_config(&tls.alpn_protocols, &tls.crypto_provider().cipher_suites)?;
        Ok(Self { tls: Arc::new(tls), initial })
    }
}

impl fmt::Debug for RustlsServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RustlsServerConfig").finish_non_exhaustive()
    }
}

impl ServerCryptoConfig for RustlsServerConfig {
    fn start_session(
        &self,
        version: u32,
        transport_parameters: Vec<u8>,
    ) -> Result<Box<dyn Session>, StartError> {
        check_version(version)?;
        let tls = quic::ServerConnection::new(
            Arc::clone(&self.tls),
            quic::Version::V1,
            transport_parameters,
        )
        .map_err(|error| StartError::Tls(error.to_string()))?;
        Ok(Box::new(RustlsSession::new(tls.into(), None)))
    }

    fn initial_keys(&self, version: u32, dcid: &ConnectionId) -> Result<Keys, StartError> {
        check_version(version)?;
        Ok(initial_keys(&self.initial, dcid, Side::Server))
    }
}

fn check_config(
    alpn: &[Vec<u8>],
    suites: &[SupportedCipherSuite],
) -> Result<quic::Suite, ConfigError> {
    if alpn.is_empty() {
        return Err(ConfigError::NoApplicationProtocol);
    }
    suites
        .iter()
        .filter(|suite| suite.suite() == CipherSuite::TLS13_AES_128_GCM_SHA256)
        .find_map(|suite| suite.tls13()?.quic_suite())
        .ok_or(ConfigError::NoInitialCipherSuite)
}

/// The Initial keys, as `side` uses them, between a client and the server to which it sent its
/// first Initial packet with the destination `dcid` (RFC 9001 section 5.2). `suite` must be
/// TLS_AES_128_GCM_SHA256.
pub fn initial_keys(suite: &quic::Suite, dcid: &ConnectionId, side: Side) -> Keys {
    let side = match side {
        Side::Client => rustls::Side::Client,
        Side::Server => rustls::Side::Server,
    };
    suite.keys(dcid.as_slice(), side, quic::Version::V1).into()
}

/// One end of one TLS handshake.
struct RustlsSession {
    tls: quic::Connection,
    /// On a client, the server name that it connects to.
    server_name: Option<String>,
    has_handshake_keys: bool,
    /// The traffic secrets of the key phase after the last one handed out.
    secrets: Option<quic::Secrets>,
}

impl RustlsSession {
    const fn new(tls: quic::Connection, server_name: Option<String>) -> Self {
        Self { tls, server_name, has_handshake_keys: false, secrets: None }
    }

    fn read_level(&self) -> SpaceId {
        if !self.has_handshake_keys {
            SpaceId::Initial
        } else if self.tls.is_handshaking() {
            SpaceId::Handshake
        } else {
            SpaceId::Data
        }
    }

    fn error(&self, error: &rustls::Error) -> TransportError {
        let code = match (self.tls.alert(), error) {
            (Some(alert), _) => TransportErrorCode::crypto(alert.into()),
            (None, rustls::Error::InvalidMessage(_)) => TransportErrorCode::crypto(DECODE_ERROR),
            (None, _) => TransportErrorCode::PROTOCOL_VIOLATION,
        };
        TransportError::new(code, error.to_string())
    }
}

impl Session for RustlsSession {
    fn read_handshake(&mut self, level: SpaceId, data: &[u8]) -> Result<(), TransportError> {
        if data.is_empty() {
            return Ok(());
        }
        check_level(self.read_level(), level)?;
        self.tls.read_hs(data).map_err(|error| self.error(&error))
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<KeyChange> {
        Some(match self.tls.write_hs(out)? {
            quic::KeyChange::Handshake { keys } => {
                self.has_handshake_keys = true;
                KeyChange::Handshake(keys.into())
            }
            quic::KeyChange::OneRtt { keys, mut next } => {
                let second = next.next_packet_keys().into();
                self.secrets = Some(next);
                KeyChange::OneRtt { keys: keys.into(), next: second }
            }
        })
    }

    fn transport_parameters(&self) -> Option<&[u8]> {
        // Until the server's parameters arrive, a client that resumes a session is given those of
        // the previous session.
        if matches!(self.tls, quic::Connection::Client(_)) && self.tls.is_handshaking() {
            return None;
        }
        self.tls.quic_transport_parameters()
    }

    fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    fn alpn(&self) -> Option<&[u8]> {
        self.tls.alpn_protocol()
    }

    fn peer_certificates(&self) -> Option<&[CertificateDer<'static>]> {
        self.tls.peer_certificates()
    }

    fn server_name(&self) -> Option<&str> {
        match &self.tls {
            quic::Connection::Client(_) => self.server_name.as_deref(),
            quic::Connection::Server(tls) => tls.server_name(),
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<PacketKeys> {
        Some(self.secrets.as_mut()?.next_packet_keys().into())
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: Option<&[u8]>,
    ) -> Result<(), ExportError> {
        match self.tls.export_keying_material(output, label, context) {
            Ok(_) => Ok(()),
            Err(_) => Err(ExportError),
        }
    }
}

/// A packet key of rustls.
pub struct RustlsPacketKey(pub Box<dyn quic::PacketKey>);

impl PacketKey for RustlsPacketKey {
    fn seal(&self, pn: u64, header: &[u8], payload: &mut [u8]) -> Result<(), ProtectionError> {
        let (plain, tag) =
            payload.split_last_chunk_mut::<TAG_LEN>().ok_or(ProtectionError::TooShort)?;
        let sealed =
            self.0.encrypt_in_place(pn, header, plain).map_err(|_| ProtectionError::Seal)?;
        *tag = sealed.as_ref().try_into().map_err(|_| ProtectionError::Seal)?;
        Ok(())
    }

    fn open(&self, pn: u64, header: &[u8], payload: &mut [u8]) -> Result<usize, ProtectionError> {
        if payload.len() < TAG_LEN {
            return Err(ProtectionError::TooShort);
        }
        let plain =
            self.0.decrypt_in_place(pn, header, payload).map_err(|_| ProtectionError::Open)?;
        Ok(plain.len())
    }

    fn confidentiality_limit(&self) -> u64 {
        self.0.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.0.integrity_limit()
    }
}

/// A header protection key of rustls.
pub struct RustlsHeaderKey(pub Box<dyn quic::HeaderProtectionKey>);

impl HeaderKey for RustlsHeaderKey {
    fn mask(&self, sample: &[u8; SAMPLE_LEN]) -> Result<[u8; MASK_LEN], ProtectionError> {
        // rustls applies masks without exposing them. But applying one to zeros shows it: here to
        // the first byte of a short header with four bytes of packet number, all of them zero.
        const FIRST: u8 = 0x03;
        let (mut first, mut pn) = (FIRST, [0; MASK_LEN - 1]);
        self.0.encrypt_in_place(sample, &mut first, &mut pn).map_err(|_| ProtectionError::Mask)?;
        let [a, b, c, d] = pn;
        Ok([first ^ FIRST, a, b, c, d])
    }
}

impl From<quic::DirectionalKeys> for DirectionalKeys {
    fn from(keys: quic::DirectionalKeys) -> Self {
        Self {
            header: Box::new(RustlsHeaderKey(keys.header)),
            packet: Box::new(RustlsPacketKey(keys.packet)),
        }
    }
}

impl From<quic::Keys> for Keys {
    fn from(keys: quic::Keys) -> Self {
        Self { local: keys.local.into(), remote: keys.remote.into() }
    }
}

impl From<quic::PacketKeySet> for PacketKeys {
    fn from(keys: quic::PacketKeySet) -> Self {
        Self {
            local: Box::new(RustlsPacketKey(keys.local)),
            remote: Box::new(RustlsPacketKey(keys.remote)),
        }
    }
}
