//! Endpoints on loopback.

use std::time::Duration;

use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use sutura::http::ALPN;
use sutura::{ClientConfig, Endpoint, ServerConfig, TransportConfig};
use sutura_webtransport::{Connect, Server, Session};

/// When a test counts as hanging. Nothing takes this long on any machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// Fails if `test` hangs.
pub async fn within<F: Future>(test: F) -> F::Output {
    tokio::time::timeout(PATIENCE, test).await.expect("it should have ended long ago")
}

/// A server and a client that trusts it, and the server's URL.
pub fn endpoints(transport: &TransportConfig) -> (Endpoint, Endpoint, String) {
    let signed = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(signed.signing_key.serialize_der());
    let certificate = CertificateDer::from(signed.cert);
    let chain = vec![certificate.clone()];
    let config = ServerConfig::with_single_cert(chain, key.into(), &[ALPN]).unwrap();
    let config = config.transport(transport.clone());
    let server = Endpoint::server(config, ([127, 0, 0, 1], 0).into()).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).unwrap();
    let config = ClientConfig::with_root_certificates(roots, &[ALPN]).unwrap();
    let mut client = Endpoint::client(([127, 0, 0, 1], 0).into()).unwrap();
    client.set_default_client_config(config.transport(transport.clone()));
    let url = format!("https://localhost:{}/room?name=a", server.local_addr().unwrap().port());
    (server, client, url)
}

/// What keeps a session going: the endpoints of server and client, and the server of the connection.
pub type Ends = (Endpoint, Endpoint, Server);

/// The client's and the server's end of a session that speaks `protocol`.
pub async fn session(protocol: Option<&str>) -> (Session, Session, Ends) {
    let (server, client, url) = endpoints(&TransportConfig::default());
    let accept = async {
        let mut requests = Server::new(server.accept().await.unwrap().await.unwrap());
        let request = requests.accept().await.unwrap().unwrap();
        let accepted = match protocol {
            Some(protocol) => request.ok_with(protocol).await.unwrap(),
            None => request.ok().await.unwrap(),
        };
        (accepted, requests)
    };
    let mut connect = Connect::new(&url).unwrap();
    if let Some(protocol) = protocol {
        connect = connect.protocol("another").protocol(protocol);
    }
    let (begun, (accepted, requests)) = tokio::join!(connect.connect(&client), accept);
    (begun.unwrap(), accepted, (server, client, requests))
}
