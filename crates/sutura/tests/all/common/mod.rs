//! Endpoints with temporary certificates, and the services on them.

pub mod http;
pub mod memory;

use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::net::SocketAddr;
use std::time::Duration;
use sutura::{
    ClientConfig, Connection, Endpoint, Protection, RecvStream, SendStream, ServerConfig,
    TransportConfig,
};

/// When a test counts as hanging. Nothing takes this long on any machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// A self-signed certificate for `localhost`.
pub fn certificate() -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
    let signed = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(signed.signing_key.serialize_der());
    (signed.cert.into(), key.into())
}

pub fn localhost() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

/// The configuration of a client that trusts this certificate alone.
pub fn trusting(certificate: CertificateDer<'static>, protocol: &[u8]) -> ClientConfig {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).unwrap();
    ClientConfig::with_root_certificates(roots, &[protocol]).unwrap()
}

/// The configurations of a server and of a client that trusts it.
pub fn configs(protocol: &[u8]) -> (ServerConfig, ClientConfig) {
    let (certificate, key) = certificate();
    let client = trusting(certificate.clone(), protocol);
    (ServerConfig::with_single_cert(vec![certificate], key, &[protocol]).unwrap(), client)
}

/// The endpoint whose connections have this configuration.
pub fn client_of(config: ClientConfig, mut endpoint: Endpoint) -> Endpoint {
    endpoint.set_default_client_config(config);
    endpoint
}

/// The endpoint of a client with this configuration, on loopback.
pub fn local_client(config: ClientConfig) -> Endpoint {
    client_of(config, Endpoint::client(localhost()).unwrap())
}

/// A server and a client that trusts it.
pub fn pair(protocol: &[u8], transport: &TransportConfig) -> (Endpoint, Endpoint, SocketAddr) {
    let (server, config) = configs(protocol);
    let server = Endpoint::server(server.transport(transport.clone()), localhost()).unwrap();
    let address = server.local_addr().unwrap();
    (server, local_client(config.transport(transport.clone())), address)
}

/// A connection to a server that echoes, and the client's endpoint.
pub async fn echoing() -> (Connection, Endpoint) {
    let (server, client, address) = pair(b"echo", &TransportConfig::default());
    echo(server);
    (client.connect(address, "localhost").unwrap().await.unwrap(), client)
}

/// Fails if `test` hangs.
pub async fn within<F: Future>(test: F) -> F::Output {
    tokio::time::timeout(PATIENCE, test).await.expect("it should have ended long ago")
}

/// Waits until something holds.
pub async fn until(mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    within(waiting).await;
}

/// Both ends of a connection, the client's first, and the client's endpoint.
pub async fn connected(
    protocol: &[u8],
    transport: &TransportConfig,
) -> (Connection, Connection, Endpoint) {
    let (server, client, address) = pair(protocol, transport);
    let accept = tokio::spawn(async move { server.accept().await.unwrap().await.unwrap() });
    let connection = client.connect(address, "localhost").unwrap().await.unwrap();
    (connection, accept.await.unwrap(), client)
}

/// Bytes that vary with their position.
pub fn pattern(len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
}

/// Echoes the bidirectional streams and the datagrams of every connection. It asks for protection,
/// which must change nothing for a peer that cannot decode.
pub fn echo(server: Endpoint) {
    tokio::spawn(async move {
        while let Some(incoming) = server.accept().await {
            tokio::spawn(async move {
                let Ok(connection) = incoming.await else { return };
                let datagrams = connection.clone();
                tokio::spawn(async move {
                    while let Ok(data) = datagrams.read_datagram().await {
                        datagrams.send_datagram(data).unwrap();
                    }
                });
                while let Ok((send, recv)) = connection.accept_bi().await {
                    tokio::spawn(echo_stream(send, recv));
                }
            });
        }
    });
}

async fn echo_stream(mut send: SendStream, mut recv: RecvStream) {
    send.protect(Some(Protection::tail(2, Duration::ZERO))).unwrap();
    while let Ok(Some(chunk)) = recv.read_chunk(usize::MAX, true).await {
        if send.write_chunk(chunk.bytes).await.is_err() {
            return;
        }
    }
    let _ = send.finish();
    let _ = send.stopped().await;
}

/// Runs one task for each of `lengths`, all concurrently.
pub async fn all<F>(lengths: impl Iterator<Item = usize>, task: impl Fn(usize) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let tasks: Vec<_> = lengths.map(|len| tokio::spawn(task(len))).collect();
    for task in tasks {
        task.await.unwrap();
    }
}

/// Sends `data` on a new stream, protected or not, and reads it back.
pub async fn exchange(connection: Connection, data: Vec<u8>, protection: Option<Protection>) {
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    send.protect(protection).unwrap();
    let expected = data.clone();
    let writer = tokio::spawn(async move {
        send.write_all(&data).await.unwrap();
        send.finish().unwrap();
        assert_eq!(send.stopped().await, Ok(None));
    });
    let received = recv.read_to_end(2 * expected.len()).await.unwrap();
    assert!(received == expected, "{} bytes differ", expected.len());
    writer.await.unwrap();
}
