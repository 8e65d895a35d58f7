//! Configuration: certificates, keys and transport parameters.

use crate::tickets::TicketKey;
use crate::trust::{Everybody, Fingerprint, ServerTrust, certificate_verifier};
use rustls::client::WantsClientCert;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use std::io;
use std::sync::Arc;
use sutura_proto as proto;
use sutura_proto::crypto::rustls::{RustlsClientConfig, RustlsServerConfig};
pub use sutura_proto::{AckFrequencyConfig, EndpointConfig, Extensions, TokenKey, TransportConfig};

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The certificates, keys or roots cannot be used.
    #[error("TLS configuration: {0}")]
    Tls(#[from] rustls::Error),
    /// The TLS configuration cannot be used for QUIC.
    #[error("TLS configuration: {0}")]
    Quic(#[from] proto::crypto::rustls::ConfigError),
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(sutura_proto::crypto::rustls::provider())
}

/// How to accept connections.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    crypto: RustlsServerConfig,
    early_data: bool,
    /// Whether sessions must not be resumed, because clients are to show certificates.
    never_resumes: bool,
    transport: Arc<TransportConfig>,
}

impl ServerConfig {
    /// A server with this certificate chain and key, for these application protocols.
    ///
    /// # Errors
    /// The certificate or the key cannot be used.
    pub fn with_single_cert(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
        protocols: &[&[u8]],
    ) -> Result<Self, ConfigError> {
        let mut tls = rustls::ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        tls.alpn_protocols = protocols.iter().map(|p| p.to_vec()).collect();
        Self::with_tls(tls)
    }

    /// A server as that of [`with_single_cert`](Self::with_single_cert) that lets in only clients whose certificate
    /// leads to one of `authorities` and is meant for clients (RFC 5280 section 4.2.1.12). A certificate is checked
    /// with each connection, as sessions are never resumed. Clients show theirs if they are configured by
    /// [`ClientConfig::with_identity`].
    ///
    /// A client learns after its own side of the handshake that its certificate was refused (RFC 8446 section
    /// 4.4.2.4): its connection opens and then ends with the alert certificate_required or another one.
    ///
    /// # Errors
    /// The certificate or the key cannot be used, or there is no authority.
    pub fn with_client_authorities(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
        protocols: &[&[u8]],
        authorities: rustls::RootCertStore,
    ) -> Result<Self, ConfigError> {
        let clients = WebPkiClientVerifier::builder_with_provider(authorities.into(), provider())
            .build()
            .map_err(|e| rustls::Error::General(e.to_string()))?;
        let mut tls = rustls::ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_client_cert_verifier(clients)
            .with_single_cert(chain, key)?;
        tls.alpn_protocols = protocols.iter().map(|p| p.to_vec()).collect();
        tls.session_storage = Arc::new(NoServerSessionStorage {});
        tls.send_tls13_tickets = 0;
        Ok(Self { never_resumes: true, ..Self::with_tls(tls)? })
    }

    /// A server with a custom TLS configuration.
    ///
    /// # Errors
    /// It names no application protocol, or has no cipher suite for QUIC.
    pub fn with_tls(tls: rustls::ServerConfig) -> Result<Self, ConfigError> {
        let crypto = RustlsServerConfig::new(tls)?;
        Ok(Self { crypto, early_data: false, never_resumes: false, transport: Arc::default() })
    }

    /// Sets the transport parameters of every connection.
    #[must_use]
    pub fn transport(mut self, transport: TransportConfig) -> Self {
        self.transport = Arc::new(transport);
        self
    }

    /// Lets clients resume sessions also after this server was started again, or with another server of the
    /// same key, which saves the certificates. Without a key, a server remembers up to 256 sessions. The key
    /// has no effect together with [`early_data`](Self::early_data), which requires remembered sessions, nor with
    /// [`with_client_authorities`](Self::with_client_authorities).
    #[must_use]
    pub fn ticket_key(mut self, key: TicketKey) -> Self {
        if self.never_resumes {
            return self;
        }
        let ticketer: Arc<dyn rustls::server::ProducesTickets> = Arc::new(key);
        self.crypto = self.crypto.with_ticketer(&ticketer);
        self
    }

    /// Tells `log` the secrets of connections, so that programs such as Wireshark can decrypt what they recorded.
    /// Whoever reads the log can read the connections; nothing is logged by default.
    #[must_use]
    pub fn key_log(mut self, log: &Arc<dyn rustls::KeyLog>) -> Self {
        self.crypto = self.crypto.with_key_log(log);
        self
    }

    /// Accepts 0-RTT (RFC 9001 section 4.6), which is refused otherwise. Clients that were here before
    /// may then send data with their first packets. An application sees it before the handshake is
    /// complete only if it asks for that with [`Connecting::into_0rtt`](crate::Connecting::into_0rtt).
    ///
    /// A copy of a client's first packets is not accepted a second time by servers that share this
    /// configuration or a clone of it: they remember up to 4096 sessions and forget each when it is
    /// used. This has no effect with [`with_client_authorities`](Self::with_client_authorities).
    #[must_use]
    pub fn early_data(mut self) -> Self {
        if self.never_resumes {
            return self;
        }
        self.crypto = self.crypto.with_early_data();
        self.early_data = true;
        self
    }

    /// Lets connections export keying material
    /// ([`Connection::export_keying_material`](crate::Connection::export_keying_material)). TLS must be kept
    /// for that for as long as a connection lasts, which takes some 4 kB of each. Without this, a
    /// connection lets TLS go when the handshake is over. Clients can always export.
    #[must_use]
    pub fn exporter(mut self) -> Self {
        self.crypto = self.crypto.with_exporter();
        self
    }

    pub(crate) fn accepts_early_data(&self) -> bool {
        self.early_data
    }

    pub(crate) fn into_proto(self) -> proto::ServerConfig {
        proto::ServerConfig::new(Arc::new(self.crypto), self.transport)
    }
}

/// How to open connections.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    crypto: RustlsClientConfig,
    transport: Arc<TransportConfig>,
}

impl ClientConfig {
    /// A client that trusts these root certificates, for these application protocols.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn with_root_certificates(
        roots: rustls::RootCertStore,
        protocols: &[&[u8]],
    ) -> Result<Self, ConfigError> {
        let mut tls = rustls::ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_root_certificates(roots)
            .with_no_client_auth();
        tls.alpn_protocols = protocols.iter().map(|p| p.to_vec()).collect();
        Self::with_tls(tls)
    }

    /// A client that trusts exactly the certificate with this SHA-256 fingerprint, whatever its
    /// name and dates: for servers with a self-signed certificate.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn with_fingerprint(
        fingerprint: [u8; 32],
        protocols: &[&[u8]],
    ) -> Result<Self, ConfigError> {
        Self::with_trust(Arc::new(Fingerprint(fingerprint)), protocols)
    }

    /// A client that accepts any certificate, and so is open to attackers on the path. For tests.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn without_verification(protocols: &[&[u8]]) -> Result<Self, ConfigError> {
        Self::with_trust(Arc::new(Everybody), protocols)
    }

    /// A client that trusts the certificates that `trust` does.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn with_trust(
        trust: Arc<dyn ServerTrust>,
        protocols: &[&[u8]],
    ) -> Result<Self, ConfigError> {
        Self::trusting(trust, protocols, |tls| Ok(tls.with_no_client_auth()))
    }

    /// A client that trusts the certificates that `trust` does, and shows a certificate of its own to servers that
    /// want one ([`ServerConfig::with_client_authorities`]).
    ///
    /// # Errors
    /// The certificate or the key cannot be used.
    pub fn with_identity(
        trust: Arc<dyn ServerTrust>,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
        protocols: &[&[u8]],
    ) -> Result<Self, ConfigError> {
        Self::trusting(trust, protocols, |tls| tls.with_client_auth_cert(chain, key))
    }

    fn trusting(
        trust: Arc<dyn ServerTrust>,
        protocols: &[&[u8]],
        identified: impl FnOnce(
            rustls::ConfigBuilder<rustls::ClientConfig, WantsClientCert>,
        ) -> Result<rustls::ClientConfig, rustls::Error>,
    ) -> Result<Self, ConfigError> {
        let tls = rustls::ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(certificate_verifier(trust));
        let mut tls = identified(tls)?;
        tls.alpn_protocols = protocols.iter().map(|p| p.to_vec()).collect();
        Self::with_tls(tls)
    }

    /// A client with a custom TLS configuration. Its `resumption` applies to version 1; sessions of version 2
    /// are remembered in memory, unless [`resumption_2`](Self::resumption_2) says otherwise.
    ///
    /// # Errors
    /// `tls` names no application protocol, or has no cipher suite for QUIC.
    pub fn with_tls(tls: rustls::ClientConfig) -> Result<Self, ConfigError> {
        let crypto = RustlsClientConfig::new(tls)?;
        Ok(Self { crypto, transport: Arc::default() })
    }

    /// Sets the transport parameters of every connection.
    #[must_use]
    pub fn transport(mut self, transport: TransportConfig) -> Self {
        self.transport = Arc::new(transport);
        self
    }

    /// Sets how sessions of version 2 of QUIC are resumed. The store must not be the one of version 1: a
    /// ticket is good for one version (RFC 9369 section 5).
    #[must_use]
    pub fn resumption_2(mut self, resumption: rustls::client::Resumption) -> Self {
        self.crypto = self.crypto.with_resumption_2(resumption);
        self
    }

    /// Tells `log` the secrets of connections, so that programs such as Wireshark can decrypt what they recorded.
    /// Whoever reads the log can read the connections; nothing is logged by default.
    #[must_use]
    pub fn key_log(mut self, log: &Arc<dyn rustls::KeyLog>) -> Self {
        self.crypto = self.crypto.with_key_log(log);
        self
    }

    /// Asks servers for leave to send 0-RTT on the next connection, which
    /// [`Connecting::into_0rtt`](crate::Connecting::into_0rtt) makes use of. The configuration must
    /// have exactly one application protocol; it remembers the servers together with its clones.
    #[must_use]
    pub fn early_data(mut self) -> Self {
        self.crypto = self.crypto.with_early_data();
        self
    }

    pub(crate) fn into_proto(self) -> proto::ClientConfig {
        proto::ClientConfig::new(Arc::new(self.crypto), self.transport)
    }
}

/// Random bytes from the operating system.
pub(crate) fn random_seed() -> io::Result<[u8; 32]> {
    let mut seed = [0; 32];
    primitives::rand::SecureRandom::fill(&primitives::rand::SystemRandom::new(), &mut seed)
        .map_err(|_| io::Error::other("no randomness from the system"))?;
    Ok(seed)
}
