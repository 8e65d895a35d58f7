//! What every implementation must do here, and the protocol: an 8-byte big-endian length as the
//! request on a new bidirectional stream, as many zero bytes as the response
//! (draft-banks-quic-performance).

use crate::Error;
use crate::job::Settings;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::net::SocketAddr;
use std::time::Duration;
use sutura_benches::tls::{ALPN, aes_128_gcm};

/// Bytes that a peer may send on a stream before the application read any.
pub const STREAM_WINDOW: u32 = 4 << 20;
/// Bytes that a peer may send on all streams before the application read any.
pub const CONNECTION_WINDOW: u32 = 8 << 20;
/// Longer than any idle measurement.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(300);

/// An implementation of QUIC.
pub trait Stack {
    type Endpoint;
    type Connection;

    /// A server on a port of its own choice.
    fn server(settings: &Settings) -> Result<(Self::Endpoint, SocketAddr), Error>;

    /// Serves for ever.
    async fn serve(endpoint: Self::Endpoint) -> Result<(), Error>;

    fn client(settings: &Settings) -> Result<Self::Endpoint, Error>;

    async fn connect(
        endpoint: &Self::Endpoint,
        server: SocketAddr,
    ) -> Result<Self::Connection, Error>;

    /// Asks for `bytes` bytes and returns how many came.
    async fn download(connection: &Self::Connection, bytes: u64) -> Result<u64, Error>;
}

pub fn server_tls(settings: &Settings) -> Result<rustls::ServerConfig, Error> {
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(settings.key.clone()));
    let mut tls = rustls::ServerConfig::builder_with_provider(aes_128_gcm())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![CertificateDer::from(settings.certificate.clone())], key)?;
    tls.alpn_protocols = vec![ALPN.to_vec()];
    tls.max_early_data_size = 0;
    Ok(tls)
}

pub fn client_tls(settings: &Settings) -> Result<rustls::ClientConfig, Error> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from(settings.certificate.clone()))?;
    let mut tls = rustls::ClientConfig::builder_with_provider(aes_128_gcm())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![ALPN.to_vec()];
    Ok(tls)
}
