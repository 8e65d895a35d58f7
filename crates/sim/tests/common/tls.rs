//! Certificates and TLS settings for both implementations.

use std::sync::{Arc, OnceLock};

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
    ClientConfig { crypto, transport: Arc::new(transport.clone()) }
}

/// A server of ours.
pub fn our_server(transport: &TransportConfig) -> Arc<ServerConfig> {
    let crypto = Arc::new(RustlsServerConfig::new(server()).unwrap());
    Arc::new(ServerConfig { crypto, transport: Arc::new(transport.clone()) })
}
