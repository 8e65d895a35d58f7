//! Two endpoints, one of them quinn's, and the link between them.

use std::net::SocketAddr;
use std::sync::Arc;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sutura::{Endpoint, ServerConfig};
use sutura_relay::Relay;

use crate::common::{certificate, local_client, localhost, trusting};

/// One endpoint of this project and one of quinn. One is a server whose certificate the other
/// trusts.
pub struct Peers {
    pub ours: Endpoint,
    pub theirs: quinn::Endpoint,
    /// The address of the server as the client sees it.
    pub address: SocketAddr,
    /// The relay between them, if there is one.
    pub relay: Option<Relay>,
}

impl Peers {
    /// A server of this project and a client of quinn. `link` configures the link between them, if
    /// any.
    pub fn we_serve(protocol: &[u8], link: Option<&str>) -> Self {
        let (certificate, key) = certificate();
        let config = ServerConfig::with_single_cert(vec![certificate.clone()], key, &[protocol]);
        let ours = Endpoint::server(config.unwrap().early_data(), localhost()).unwrap();
        let mut theirs = quinn::Endpoint::client(localhost()).unwrap();
        theirs.set_default_client_config(quinn_client_config(certificate, protocol));
        let (address, relay) = between(ours.local_addr().unwrap(), link);
        Self { ours, theirs, address, relay }
    }

    /// A server of quinn and a client of this project.
    pub fn they_serve(protocol: &[u8], link: Option<&str>) -> Self {
        Self::they_serve_as(protocol, link, quinn::EndpointConfig::default())
    }

    /// A server of quinn with a configured endpoint, and a client of this project.
    pub fn they_serve_as(
        protocol: &[u8],
        link: Option<&str>,
        endpoint: quinn::EndpointConfig,
    ) -> Self {
        let (certificate, key) = certificate();
        let config = quinn_server_config(certificate.clone(), key, protocol);
        let socket = std::net::UdpSocket::bind(localhost()).unwrap();
        let runtime = Arc::new(quinn::TokioRuntime);
        let theirs = quinn::Endpoint::new(endpoint, Some(config), socket, runtime).unwrap();
        let ours = local_client(trusting(certificate, protocol).early_data());
        let (address, relay) = between(theirs.local_addr().unwrap(), link);
        Self { ours, theirs, address, relay }
    }

    /// Connects our client to quinn's server.
    pub async fn we_connect(&self) -> sutura::Connection {
        self.ours.connect(self.address, "localhost").unwrap().await.unwrap()
    }

    /// Connects our client to quinn's server, which accepts: both ends of the connection.
    pub async fn meet(&self) -> (sutura::Connection, quinn::Connection) {
        let server = self.theirs.clone();
        let accept = tokio::spawn(async move { server.accept().await.unwrap().await.unwrap() });
        (self.we_connect().await, accept.await.unwrap())
    }

    /// Connects quinn's client to our server.
    pub async fn they_connect(&self) -> quinn::Connection {
        self.theirs.connect(self.address, "localhost").unwrap().await.unwrap()
    }
}

fn between(server: SocketAddr, link: Option<&str>) -> (SocketAddr, Option<Relay>) {
    let Some(link) = link else { return (server, None) };
    let config = sutura_relay::Config::new(localhost(), server).link(&link.parse().unwrap());
    let relay = Relay::start(&config.seed(1)).unwrap();
    (relay.local_addr(), Some(relay))
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

pub fn quinn_client_config(
    trusted: CertificateDer<'static>,
    protocol: &[u8],
) -> quinn::ClientConfig {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(trusted).unwrap();
    let mut tls = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![protocol.to_vec()];
    tls.enable_early_data = true;
    quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()))
}

fn quinn_server_config(
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
    protocol: &[u8],
) -> quinn::ServerConfig {
    let mut tls = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    tls.alpn_protocols = vec![protocol.to_vec()];
    tls.max_early_data_size = u32::MAX;
    quinn::ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls).unwrap()))
}
