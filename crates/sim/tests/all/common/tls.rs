//! Certificates and TLS settings for both implementations.

use std::sync::{Arc, OnceLock};

use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sutura_proto::crypto::rustls::{RustlsClientConfig, RustlsServerConfig};
use sutura_proto::{ClientConfig, ServerConfig, TransportConfig};

pub const NAME: &str = "server.example";
const ALPN: &[u8] = b"perf";

struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

fn identity() -> &'static Identity {
    static IDENTITY: OnceLock<Identity> = OnceLock::new();
    IDENTITY.get_or_init(|| {
        let made = rcgen::generate_simple_self_signed([NAME.to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        Identity { certificate: made.cert.der().clone(), key }
    })
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

pub fn client() -> rustls::ClientConfig {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(identity().certificate.clone()).unwrap();
    let mut config = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![ALPN.to_vec()];
    config
}

pub fn server() -> rustls::ServerConfig {
    let Identity { certificate, key } = identity();
    let mut config = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key.clone_key())
        .unwrap();
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.max_early_data_size = u32::MAX;
    config
}

/// A client of ours.
pub fn our_client(transport: &TransportConfig) -> ClientConfig {
    let crypto = Arc::new(RustlsClientConfig::new(client()).unwrap());
    ClientConfig::new(crypto, Arc::new(transport.clone()))
}

/// A server of ours.
pub fn our_server(transport: &TransportConfig) -> Arc<ServerConfig> {
    let crypto = Arc::new(RustlsServerConfig::new(server()).unwrap());
    Arc::new(ServerConfig::new(crypto, Arc::new(transport.clone())))
}

/// How quinn's ends are set: without packets that test the size of the path.
fn their_transport() -> Arc<quinn_proto::TransportConfig> {
    let mut config = quinn_proto::TransportConfig::default();
    config.mtu_discovery_config(None);
    Arc::new(config)
}

/// A client of quinn.
pub fn their_client() -> quinn_proto::ClientConfig {
    let crypto = QuicClientConfig::try_from(client()).unwrap();
    let mut config = quinn_proto::ClientConfig::new(Arc::new(crypto));
    config.transport_config(their_transport());
    config
}

/// A server of quinn.
pub fn their_server() -> Arc<quinn_proto::ServerConfig> {
    let crypto = QuicServerConfig::try_from(server()).unwrap();
    let mut config = quinn_proto::ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(their_transport());
    Arc::new(config)
}
