//! TLS 1.3 with rustls, using the AEADs of the configured crypto provider. Sessions that go over to another
//! version than they were started with use the AEADs of `ring`, or of AWS-LC without it, from then on.
//!
//! 0-RTT is disabled unless it is asked for: configurations are taken by value so that neither end
//! offers it by mistake.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
#[cfg(all(feature = "aws-lc-rs", not(feature = "ring")))]
pub(super) use rustls::crypto::aws_lc_rs as backend;
#[cfg(feature = "ring")]
pub(super) use rustls::crypto::ring as backend;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::quic;
use rustls::server::{ProducesTickets, ServerSessionMemoryCache, StoresServerSessions};
use rustls::{CipherSuite, KeyLog, SupportedCipherSuite};

use super::client_hello::{self, ExtensionSearch, TRANSPORT_PARAMETERS};
use super::conversion::{Conversion, SecretLog};
use super::finished::{FinishedSession, NextPhase};
use super::session_version::{ByVersion, OfVersion};
use super::ticket_filter::TicketFilter;
use super::traffic_secret::SuiteAlgorithms;
use super::{
    ClientCryptoConfig, DirectionalKeys, ExportError, HeaderKey, KeyChange, Keys, MASK_LEN,
    PacketKey, PacketKeys, ProtectionError, SAMPLE_LEN, ServerCryptoConfig, Session,
    SessionVersions, StartError, TAG_LEN, check_level, check_version, check_versions,
};
use crate::error::{TransportError, TransportErrorCode};
use crate::ids::{ConnectionId, Side, SpaceId};
use crate::wire::transport_parameters::TransportParameters;
use crate::wire::version::Version;

/// Sessions that a server remembers so that they can be resumed with 0-RTT, each once. The oldest are
/// forgotten first.
pub const MAX_EARLY_SESSIONS: usize = 4096;

/// The TLS alert for malformed messages, which rustls may report without an alert (RFC 8446 section
/// 6.2).
const DECODE_ERROR: u8 = 50;

/// The TLS alert for a message without an extension that must be there.
const MISSING_EXTENSION: u8 = 109;

/// The TLS alert for a client with which the server shares no application protocol.
const NO_APPLICATION_PROTOCOL: u8 = 120;

/// A TLS configuration that cannot be used for QUIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The configuration has no application protocol, but QUIC requires one (RFC 9001 section 8.1).
    #[error("no application protocol (ALPN) is configured")]
    NoApplicationProtocol,
    /// The configured provider has no cipher suite of TLS 1.3 that can protect QUIC packets.
    #[error("the crypto provider has no cipher suite for QUIC")]
    NoCipherSuite,
}

/// A client's TLS configuration.
#[derive(Clone)]
pub struct RustlsClientConfig {
    /// Each remembers its own sessions: they are good for one version (RFC 9369 section 5).
    tls: ByVersion<Arc<rustls::ClientConfig>>,
    initial: quic::Suite,
}

impl RustlsClientConfig {
    /// Wraps a TLS configuration, and disables 0-RTT in it. Its `resumption` applies to version 1; sessions
    /// of version 2 are remembered in memory, unless [`with_resumption_2`](Self::with_resumption_2) says
    /// otherwise.
    ///
    /// # Errors
    /// `tls` has no ALPN protocols, or no cipher suite for QUIC.
    pub fn new(mut tls: rustls::ClientConfig) -> Result<Self, ConfigError> {
        tls.enable_early_data = false;
        let initial = check_config(&tls.alpn_protocols, &tls.crypto_provider().cipher_suites)?;
        let tls = ByVersion::new(|version| {
            let mut tls = tls.clone();
            match version {
                Version::V1 => {}
                Version::V2 => tls.resumption = Resumption::default(),
            }
            Arc::new(tls)
        });
        Ok(Self { tls, initial })
    }

    /// Sets how sessions of version 2 are resumed. The store must not be the one of version 1: a ticket is
    /// good for one version (RFC 9369 section 5).
    #[must_use]
    pub fn with_resumption_2(mut self, resumption: Resumption) -> Self {
        Arc::make_mut(self.tls.get_mut(Version::V2)).resumption = resumption;
        self
    }

    /// Tells `log` the secrets of connections, so that others can decrypt what they recorded.
    #[must_use]
    pub fn with_key_log(mut self, log: &Arc<dyn KeyLog>) -> Self {
        for version in Version::ALL {
            Arc::make_mut(self.tls.get_mut(version)).key_log = log.clone();
        }
        self
    }

    /// Asks servers for 0-RTT when a session is resumed (RFC 9001 section 4.6). This requires that
    /// exactly one application protocol is configured: the client has to know the server's choice in advance.
    /// A ticket is used for one connection only.
    #[must_use]
    pub fn with_early_data(mut self) -> Self {
        for version in Version::ALL {
            let tls = Arc::make_mut(self.tls.get_mut(version));
            tls.enable_early_data = tls.alpn_protocols.len() == 1;
        }
        self
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
        versions: SessionVersions,
        server_name: &str,
        transport_parameters: Vec<u8>,
    ) -> Result<Box<dyn Session>, StartError> {
        let (original, negotiated) = check_versions(versions)?;
        let name = ServerName::try_from(server_name)
            .map_err(|_| StartError::InvalidServerName(server_name.to_owned()))?
            .to_owned();
        let mut tls = Arc::clone(self.tls.get(original));
        let conversion = (negotiated != Some(original)).then(|| {
            let tls = Arc::make_mut(&mut tls);
            let log = Arc::new(SecretLog::new(tls.key_log.clone()));
            tls.key_log = log.clone();
            Conversion::new(log, Side::Client, negotiated)
        });
        let (version, parameters) = (quic_version(original), transport_parameters);
        let tls = quic::ClientConnection::new(tls, version, name, parameters)
            .map_err(|error| StartError::Tls(error.to_string()))?;
        let server_name = Some(server_name.to_owned());
        Ok(Box::new(RustlsSession::new(tls.into(), server_name, conversion)))
    }

    fn initial_keys(&self, version: u32, dcid: &ConnectionId) -> Result<Keys, StartError> {
        Ok(initial_keys(&self.initial, check_version(version)?, dcid, Side::Client))
    }
}

/// A server's TLS configuration.
#[derive(Clone)]
pub struct RustlsServerConfig {
    /// Each knows its own sessions only.
    tls: ByVersion<Arc<rustls::ServerConfig>>,
    initial: quic::Suite,
    /// If 0-RTT is accepted: the sessions for it.
    early: Option<Arc<Mutex<EarlySessions>>>,
    /// Whether sessions stay able to export keying material.
    exporter: bool,
}

/// The sessions that may be resumed with 0-RTT. All were started under the same limits: a server must not
/// accept 0-RTT data that was sent under other limits (RFC 9000 section 7.4.1), so sessions of earlier limits
/// are forgotten.
#[derive(Default)]
struct EarlySessions {
    limits: Option<TransportParameters>,
    /// The configurations that remember them.
    tls: Option<ByVersion<Arc<rustls::ServerConfig>>>,
}

/// Restricts the tickets and stored sessions of `tls` to `version`.
fn set_sessions(
    tls: &mut rustls::ServerConfig,
    version: Version,
    ticketer: Arc<dyn ProducesTickets>,
    storage: Arc<dyn StoresServerSessions>,
) {
    tls.ticketer = Arc::new(OfVersion::new(version, ticketer));
    tls.session_storage = Arc::new(OfVersion::new(version, storage));
}

impl RustlsServerConfig {
    /// Wraps a TLS configuration, and disables 0-RTT in it.
    ///
    /// # Errors
    /// It has no ALPN protocols, or no cipher suite for QUIC.
    pub fn new(mut tls: rustls::ServerConfig) -> Result<Self, ConfigError> {
        tls.max_early_data_size = 0;
        let initial = check_config(&tls.alpn_protocols, &tls.crypto_provider().cipher_suites)?;
        let (ticketer, storage) = (tls.ticketer.clone(), tls.session_storage.clone());
        let tls = ByVersion::new(|version| {
            let mut tls = tls.clone();
            set_sessions(&mut tls, version, ticketer.clone(), storage.clone());
            Arc::new(tls)
        });
        Ok(Self { tls, initial, early: None, exporter: false })
    }

    /// Uses tickets that need no storage, unless 0-RTT is accepted.
    #[must_use]
    pub fn with_ticketer(mut self, ticketer: &Arc<dyn ProducesTickets>) -> Self {
        for version in Version::ALL {
            let of_version = OfVersion::new(version, ticketer.clone());
            Arc::make_mut(self.tls.get_mut(version)).ticketer = Arc::new(of_version);
        }
        self
    }

    /// Tells `log` the secrets of connections, so that others can decrypt what they recorded.
    #[must_use]
    pub fn with_key_log(mut self, log: &Arc<dyn KeyLog>) -> Self {
        for version in Version::ALL {
            Arc::make_mut(self.tls.get_mut(version)).key_log = log.clone();
        }
        self
    }

    /// Accepts 0-RTT (RFC 9001 section 4.6). Sessions are then stored, at most
    /// [`MAX_EARLY_SESSIONS`], and each ticket is good for one connection, so that a first flight
    /// which somebody sends again is not accepted twice (RFC 8446 section 8.1). The configuration's
    /// `ticketer` is not used then: its tickets could be used more than once.
    #[must_use]
    pub fn with_early_data(mut self) -> Self {
        for version in Version::ALL {
            Arc::make_mut(self.tls.get_mut(version)).max_early_data_size = u32::MAX;
        }
        self.early = Some(Arc::default());
        self
    }

    /// Lets connections export keying material ([`Session::export_keying_material`]). TLS must be kept for
    /// that for as long as a connection lasts, which takes some 4 kB of each. Without this, a
    /// connection lets TLS go when the handshake is over.
    #[must_use]
    pub fn with_exporter(mut self) -> Self {
        self.exporter = true;
        self
    }

    /// The configuration for a session of `version` with these parameters.
    fn tls(&self, version: Version, parameters: &[u8]) -> Arc<rustls::ServerConfig> {
        let Some(early) = &self.early else { return self.tls.get(version).clone() };
        let limits = TransportParameters::decode(parameters, Side::Server);
        let limits = limits.ok().map(|parameters| parameters.remembered());
        let mut early = early.lock().unwrap_or_else(PoisonError::into_inner);
        if early.limits != limits {
            *early = EarlySessions { limits, tls: None };
        }
        let tls = early.tls.get_or_insert_with(|| {
            let storage = ServerSessionMemoryCache::new(MAX_EARLY_SESSIONS);
            ByVersion::new(|version| {
                let mut tls = (**self.tls.get(version)).clone();
                set_sessions(&mut tls, version, Arc::new(NoTickets), storage.clone());
                Arc::new(tls)
            })
        });
        tls.get(version).clone()
    }
}

/// Produces no tickets, so that sessions are stored.
#[derive(Debug)]
struct NoTickets;

impl ProducesTickets for NoTickets {
    fn enabled(&self) -> bool {
        false
    }

    fn lifetime(&self) -> u32 {
        0
    }

    fn encrypt(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn decrypt(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
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
        versions: SessionVersions,
        transport_parameters: Vec<u8>,
    ) -> Result<Box<dyn Session>, StartError> {
        let (original, negotiated) = check_versions(versions)?;
        let mut tls = self.tls(original, &transport_parameters);
        let conversion = (negotiated != Some(original)).then(|| {
            let tls = Arc::make_mut(&mut tls);
            // A ticket would be good for the version that the client did not begin with (RFC 9369
            // section 5).
            tls.send_tls13_tickets = 0;
            let log = Arc::new(SecretLog::new(tls.key_log.clone()));
            tls.key_log = log.clone();
            Conversion::new(log, Side::Server, negotiated)
        });
        let (version, parameters) = (quic_version(original), transport_parameters);
        let tls = quic::ServerConnection::new(tls, version, parameters)
            .map_err(|error| StartError::Tls(error.to_string()))?;
        let session = RustlsSession::new(tls.into(), None, conversion);
        Ok(Box::new(RustlsSession { exporter: self.exporter, ..session }))
    }

    fn client_parameters<'a>(&self, handshake: &'a [u8]) -> Option<&'a [u8]> {
        client_hello::transport_parameters(handshake)
    }

    fn refusal(&self, handshake: &[u8]) -> Option<TransportErrorCode> {
        // Both versions have the same protocols.
        let known = &self.tls.get(Version::V1).alpn_protocols;
        let ours = |protocol: &[u8]| known.iter().any(|ours| ours == protocol);
        let shared = client_hello::protocols(handshake)?.any(ours);
        (!shared).then_some(TransportErrorCode::crypto(NO_APPLICATION_PROTOCOL))
    }

    fn initial_keys(&self, version: u32, dcid: &ConnectionId) -> Result<Keys, StartError> {
        Ok(initial_keys(&self.initial, check_version(version)?, dcid, Side::Server))
    }
}

/// The version, whose number is part of the input from which rustls derives keys.
const fn quic_version(version: Version) -> quic::Version {
    match version {
        Version::V1 => quic::Version::V1,
        Version::V2 => quic::Version::V2,
    }
}

/// The algorithms of the library that this crate is built with: ring, or AWS-LC where there is no ring.
#[must_use]
pub fn provider() -> CryptoProvider {
    backend::default_provider()
}

fn check_config(
    alpn: &[Vec<u8>],
    suites: &[SupportedCipherSuite],
) -> Result<quic::Suite, ConfigError> {
    if alpn.is_empty() {
        return Err(ConfigError::NoApplicationProtocol);
    }
    if !suites.iter().any(|suite| suite.tls13().is_some_and(|suite| suite.quic.is_some())) {
        return Err(ConfigError::NoCipherSuite);
    }
    // Initial packets are protected with this suite even if the application permits only others.
    let fallback = backend::cipher_suite::TLS13_AES_128_GCM_SHA256;
    suites
        .iter()
        .filter(|suite| suite.suite() == CipherSuite::TLS13_AES_128_GCM_SHA256)
        .chain(std::iter::once(&fallback))
        .find_map(|suite| suite.tls13()?.quic_suite())
        .ok_or(ConfigError::NoCipherSuite)
}

/// The Initial keys, as `side` uses them, between a client and the server to which it sent its
/// first Initial packet with the destination `dcid` (RFC 9001 section 5.2). `suite` must be
/// TLS_AES_128_GCM_SHA256.
pub fn initial_keys(
    suite: &quic::Suite,
    version: Version,
    dcid: &ConnectionId,
    side: Side,
) -> Keys {
    let side = match side {
        Side::Client => rustls::Side::Client,
        Side::Server => rustls::Side::Server,
    };
    suite.keys(dcid.as_slice(), side, quic_version(version)).into()
}

/// One end of one TLS handshake.
struct RustlsSession {
    tls: quic::Connection,
    /// On a client, the server name that it connects to.
    server_name: Option<String>,
    has_handshake_keys: bool,
    /// On a server, looks for the transport parameters in the ClientHello. rustls also accepts parameters
    /// under the extension number of QUIC's drafts, which version 1 must not (RFC 9001 section 8.2).
    parameters: ExtensionSearch,
    /// The traffic secrets of the key phase after the last one handed out.
    secrets: Option<quic::Secrets>,
    /// Derives the keys of another version than `tls` has, if the session goes over to another version or
    /// still may.
    conversion: Option<Conversion>,
    /// On a client that has gone over: tickets are good for the version that it did not begin with
    /// (RFC 9369 section 5).
    tickets: TicketFilter,
    /// Whether TLS is kept after the handshake, because keying material may be exported.
    exporter: bool,
}

impl RustlsSession {
    fn new(
        tls: quic::Connection,
        server_name: Option<String>,
        conversion: Option<Conversion>,
    ) -> Self {
        Self {
            tls,
            server_name,
            has_handshake_keys: false,
            parameters: ExtensionSearch::new(TRANSPORT_PARAMETERS),
            secrets: None,
            conversion,
            tickets: TicketFilter::default(),
            exporter: true,
        }
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

    /// Checks that the ClientHello has transport parameters, once it was read.
    fn check_parameters(&self) -> Result<(), TransportError> {
        let is_server = matches!(self.tls, quic::Connection::Server(_));
        if is_server && self.tls.quic_transport_parameters().is_some() && !self.parameters.found() {
            let code = TransportErrorCode::crypto(MISSING_EXTENSION);
            return Err(TransportError::new(code, "no transport parameters in the ClientHello"));
        }
        Ok(())
    }

    /// Checks that keys of another version can be derived if that is wanted.
    fn check_suite(&self) -> Result<(), TransportError> {
        let converts = self.conversion.as_ref().is_some_and(Conversion::is_wanted);
        let suite = self.tls.negotiated_cipher_suite().filter(|_| converts);
        if suite.is_some_and(|suite| SuiteAlgorithms::of(suite.suite()).is_none()) {
            let code = TransportErrorCode::INTERNAL_ERROR;
            return Err(TransportError::new(
                code,
                "cipher suite unknown for the negotiated version",
            ));
        }
        Ok(())
    }

    /// The keys that `derive` makes of the secrets if the session goes over to another version. Then it
    /// succeeds, because the cipher suite is known.
    fn converted<T>(
        &mut self,
        derive: impl FnOnce(&mut Conversion, CipherSuite) -> Option<T>,
    ) -> Option<T> {
        let suite = self.tls.negotiated_cipher_suite()?.suite();
        derive(self.conversion.as_mut()?, suite)
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
    fn set_version(&mut self, version: Version) {
        if let Some(conversion) = &mut self.conversion {
            conversion.set_version(version);
        }
    }

    fn read_handshake(&mut self, level: SpaceId, data: &[u8]) -> Result<(), TransportError> {
        if data.is_empty() {
            return Ok(());
        }
        check_level(self.read_level(), level)?;
        if level == SpaceId::Initial {
            self.parameters.read(data);
        }
        let is_client = matches!(self.tls, quic::Connection::Client(_));
        let read = if level == SpaceId::Data && is_client && self.conversion.is_some() {
            self.tls.read_hs(&self.tickets.pass(data))
        } else {
            self.tls.read_hs(data)
        };
        read.map_err(|error| self.error(&error))?;
        self.check_suite()?;
        self.check_parameters()
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<KeyChange> {
        Some(match self.tls.write_hs(out)? {
            quic::KeyChange::Handshake { keys } => {
                self.has_handshake_keys = true;
                // Now that the server has spoken, the version is settled.
                self.conversion = self.conversion.take().filter(Conversion::is_wanted);
                let converted =
                    self.converted(|conversion, suite| conversion.handshake_keys(suite));
                KeyChange::Handshake(converted.unwrap_or_else(|| keys.into()))
            }
            quic::KeyChange::OneRtt { keys, next } => {
                let converted = self.converted(Conversion::one_rtt_keys);
                self.secrets = converted.is_none().then_some(next);
                KeyChange::OneRtt(converted.unwrap_or_else(|| keys.into()))
            }
        })
    }

    fn transport_parameters(&self) -> Option<&[u8]> {
        // Until the server's parameters arrive, rustls gives a client that resumes a session the parameters
        // of the previous session.
        if matches!(self.tls, quic::Connection::Client(_)) && self.tls.is_handshaking() {
            return None;
        }
        self.tls.quic_transport_parameters()
    }

    fn early_keys(&self) -> Option<DirectionalKeys> {
        self.tls.zero_rtt_keys().map(Into::into)
    }

    fn early_parameters(&self) -> Option<&[u8]> {
        let is_early = self.tls.is_handshaking() && self.tls.zero_rtt_keys().is_some();
        match &self.tls {
            quic::Connection::Client(tls) if is_early => tls.quic_transport_parameters(),
            quic::Connection::Client(_) | quic::Connection::Server(_) => None,
        }
    }

    fn is_early_data_accepted(&self) -> bool {
        match &self.tls {
            quic::Connection::Client(tls) => tls.is_early_data_accepted(),
            quic::Connection::Server(tls) => tls.zero_rtt_keys().is_some(),
        }
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

    fn next_1rtt_keys(&self) -> Option<PacketKeys> {
        match &self.conversion {
            Some(conversion) => conversion.next_packet_keys(),
            None => Some(self.secrets.clone()?.next_packet_keys().into()),
        }
    }

    fn enter_next_phase(&mut self) {
        match &mut self.conversion {
            Some(conversion) => conversion.enter_next_phase(),
            None => drop(self.secrets.as_mut().map(quic::Secrets::next_packet_keys)),
        }
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: Option<&[u8]>,
    ) -> Result<(), ExportError> {
        match self.tls.export_keying_material(output, label, context) {
            Ok(_) => Ok(()),
            Err(_) => Err(ExportError::Unavailable),
        }
    }

    fn finish(&mut self) -> Option<Box<dyn Session>> {
        if self.exporter || self.tls.is_handshaking() {
            return None;
        }
        let next = match self.conversion.take() {
            Some(conversion) => NextPhase::Converted(Box::new(conversion)),
            None => NextPhase::Same(self.secrets.take()?),
        };
        Some(Box::new(FinishedSession {
            alpn: self.alpn().map(Into::into),
            peer_certificates: self.peer_certificates().map(Into::into),
            server_name: self.server_name().map(Into::into),
            next,
        }))
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
        // rustls applies masks without exposing them, but a mask applied to zeros shows itself. Here it is
        // applied to the first byte of a short header with four bytes of packet number, all of them zero.
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
