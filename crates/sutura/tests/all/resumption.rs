//! Sessions that outlast the server.

use crate::common::{certificate, localhost};
use rustls::Error;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use sutura::{
    ClientConfig, Endpoint, EndpointConfig, ServerConfig, ServerTrust, ShownIdentity, TicketKey,
    Version,
};

const PROTOCOL: &[u8] = b"resume";

/// Counts the certificates that are verified. Resumed sessions have none.
#[derive(Debug)]
struct Counting {
    verifier: Arc<WebPkiServerVerifier>,
    certificates: AtomicUsize,
}

impl ServerTrust for Counting {
    fn check(&self, shown: &ShownIdentity<'_>) -> Result<(), Error> {
        let ShownIdentity { certificate, intermediates, name, ocsp, now } = *shown;
        self.certificates.fetch_add(1, Ordering::Relaxed);
        self.verifier.verify_server_cert(certificate, intermediates, name, ocsp, now).map(drop)
    }
}

/// How many certificates a client verifies when it connects to servers that are started one after the other,
/// configured by `configure`, in these versions of QUIC.
async fn verified(
    versions: [Version; 3],
    configure: impl Fn(ServerConfig) -> ServerConfig,
) -> usize {
    let (certificate, key) = certificate();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let provider = Arc::new(sutura_proto::crypto::rustls::provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider);
    let verifier = Counting { verifier: verifier.build().unwrap(), certificates: 0.into() };
    let verifier = Arc::new(verifier);
    let config = ClientConfig::with_trust(verifier.clone(), &[PROTOCOL]).unwrap();
    for version in versions {
        let limits = EndpointConfig::default().with_versions(vec![version]);
        let mut client = Endpoint::bind(limits, None, localhost()).unwrap();
        client.set_default_client_config(config.clone());
        let chain = vec![certificate.clone()];
        let config = ServerConfig::with_single_cert(chain, key.clone_key(), &[PROTOCOL]).unwrap();
        let server = Endpoint::server(configure(config), localhost()).unwrap();
        let address = server.local_addr().unwrap();
        let accept = tokio::spawn(async move {
            let connection = server.accept().await.unwrap().await.unwrap();
            let mut stream = connection.open_uni().await.unwrap();
            stream.write_all(b"the tickets come before this").await.unwrap();
            stream.finish().unwrap();
            connection.closed().await;
        });
        let connection = client.connect(address, "localhost").unwrap().await.unwrap();
        connection.accept_uni().await.unwrap().read_to_end(100).await.unwrap();
        connection.close(0, b"");
        accept.await.unwrap();
    }
    verifier.certificates.load(Ordering::Relaxed)
}

#[tokio::test]
async fn sessions_are_resumed_with_a_server_of_the_same_key() {
    let key = |config: ServerConfig| config.ticket_key(TicketKey::new(&[3; 32]));
    for version in Version::ALL {
        assert_eq!(verified([version; 3], key).await, 1, "{version:?}");
    }
}

#[tokio::test]
async fn a_session_is_resumed_in_its_version_alone() {
    let key = |config: ServerConfig| config.ticket_key(TicketKey::new(&[3; 32]));
    assert_eq!(verified([Version::V1, Version::V2, Version::V1], key).await, 2);
    assert_eq!(verified([Version::V2, Version::V1, Version::V2], key).await, 2);
}

#[tokio::test]
async fn sessions_end_with_a_server_that_has_no_key_or_remembers_them() {
    let versions = [Version::V1; 3];
    assert_eq!(verified(versions, |config| config).await, 3);
    let both = |config: ServerConfig| config.ticket_key(TicketKey::new(&[3; 32])).early_data();
    assert_eq!(verified(versions, both).await, 3);
}
