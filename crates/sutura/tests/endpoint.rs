//! Endpoints as a whole: closing them, limits that change, and sockets of one's own.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::{all, connected, echo, exchange, localhost, pair, pattern};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use sutura::{
    AsyncUdpSocket, ConnectionError, Endpoint, EndpointConfig, PreferredAddresses, Received,
    Transmit, TransportConfig, Version,
};

#[tokio::test]
async fn closing_an_endpoint_closes_its_connections() {
    let (server, client, address) = pair(b"x", &TransportConfig::default());
    let accepting = server.clone();
    let accepted = tokio::spawn(async move {
        let mut connections = Vec::new();
        for _ in 0..3 {
            connections.push(accepting.accept().await.unwrap().await.unwrap());
        }
        connections
    });
    let mut clients = Vec::new();
    for _ in 0..3 {
        clients.push(client.connect(address, "localhost").unwrap().await.unwrap());
    }
    let accepted = accepted.await.unwrap();
    server.close(9, b"maintenance");
    let told = ConnectionError::ApplicationClosed { code: 9, reason: b"maintenance".to_vec() };
    for (client, server) in clients.iter().zip(&accepted) {
        assert_eq!(client.closed().await, told);
        assert_eq!(server.closed().await, ConnectionError::LocallyClosed);
    }
    assert!(server.accept().await.is_none());
    server.wait_idle().await;
    assert_eq!(server.open_connections(), 0);
    // Whoever comes later is refused, and what is opened later fails.
    assert!(client.connect(address, "localhost").unwrap().await.is_err());
    client.close(1, b"");
    let late = client.connect(address, "localhost").unwrap().await.map(drop);
    assert_eq!(late, Err(ConnectionError::LocallyClosed));
    client.wait_idle().await;
}

#[tokio::test]
async fn limits_of_a_connection_can_be_raised() {
    let transport = TransportConfig { max_concurrent_uni_streams: 0, ..TransportConfig::default() };
    let (a, b, _client) = connected(b"x", &transport).await;
    let open = tokio::spawn({
        let a = a.clone();
        async move { a.open_uni().await.map(drop) }
    });
    tokio::task::yield_now().await;
    b.set_max_concurrent_uni_streams(1);
    b.set_max_concurrent_bi_streams(200);
    b.set_receive_window(8 << 20);
    assert_eq!(open.await.unwrap(), Ok(()));
}

#[tokio::test]
async fn an_endpoint_takes_over_a_socket() {
    let (server, client, _) = pair(b"echo", &TransportConfig::default());
    drop((server, client));
    let (certificate, key) = common::certificate();
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let config =
        sutura::ServerConfig::with_single_cert(vec![certificate.clone()], key, &[b"echo"]).unwrap();
    echo(Endpoint::with_socket(EndpointConfig::default(), Some(config), socket).unwrap());
    let client = client_of(certificate, Endpoint::client(localhost()).unwrap());
    let connection = client.connect(address, "localhost").unwrap().await.unwrap();
    exchange(connection, pattern(10_000), None).await;
}

fn client_of(
    certificate: rustls::pki_types::CertificateDer<'static>,
    mut endpoint: Endpoint,
) -> Endpoint {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).unwrap();
    let config = sutura::ClientConfig::with_root_certificates(roots, &[b"echo"]).unwrap();
    endpoint.set_default_client_config(config);
    endpoint
}

#[tokio::test]
async fn version_2_is_used_if_the_client_begins_with_it_or_the_server_has_no_other() {
    for (ours, theirs, expected) in [
        ([Version::V2, Version::V1], vec![Version::V1, Version::V2], Version::V2),
        ([Version::V1, Version::V2], vec![Version::V2], Version::V2),
        ([Version::V2, Version::V1], vec![Version::V1], Version::V1),
    ] {
        let (certificate, key) = common::certificate();
        let server =
            sutura::ServerConfig::with_single_cert(vec![certificate.clone()], key, &[b"echo"]);
        let config = EndpointConfig { versions: theirs, ..EndpointConfig::default() };
        let server = Endpoint::bind(config, Some(server.unwrap()), localhost()).unwrap();
        let address = server.local_addr().unwrap();
        echo(server);
        let config = EndpointConfig { versions: ours.to_vec(), ..EndpointConfig::default() };
        let client = client_of(certificate, Endpoint::bind(config, None, localhost()).unwrap());
        for _ in 0..2 {
            let connection = client.connect(address, "localhost").unwrap().await.unwrap();
            assert_eq!(connection.version(), expected);
            exchange(connection, pattern(100_000), None).await;
        }
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_client_goes_over_to_the_address_that_its_server_prefers() {
    let (certificate, key) = common::certificate();
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    let there = std::net::SocketAddrV4::new([127, 0, 0, 2].into(), port);
    let config = EndpointConfig {
        preferred_address: Some(PreferredAddresses { ipv4: Some(there), ipv6: None }),
        ..EndpointConfig::default()
    };
    let server =
        sutura::ServerConfig::with_single_cert(vec![certificate.clone()], key, &[b"echo"]).unwrap();
    echo(Endpoint::with_socket(config, Some(server), socket).unwrap());
    let client = client_of(certificate, Endpoint::client(localhost()).unwrap());
    let address = ([127, 0, 0, 1], port).into();
    let connection = client.connect(address, "localhost").unwrap().await.unwrap();
    while connection.remote_address() != there.into() {
        exchange(connection.clone(), pattern(10_000), None).await;
    }
    exchange(connection, pattern(100_000), None).await;
}

/// Datagrams on their way to an address, and who waits for them.
#[derive(Debug, Default)]
struct Mailbox {
    datagrams: VecDeque<(SocketAddr, Vec<u8>)>,
    waker: Option<Waker>,
}

/// Two sockets that are connected by memory.
#[derive(Debug)]
struct Pipe {
    address: SocketAddr,
    ours: Arc<Mutex<Mailbox>>,
    theirs: Arc<Mutex<Mailbox>>,
}

fn pipe() -> [Pipe; 2] {
    let boxes = [Arc::new(Mutex::default()), Arc::new(Mutex::default())];
    let end = |n: usize, port| Pipe {
        address: ([192, 0, 2, 1], port).into(),
        ours: boxes[n].clone(),
        theirs: boxes[1 - n].clone(),
    };
    [end(0, 1), end(1, 2)]
}

impl AsyncUdpSocket for Pipe {
    fn poll_send(
        &self,
        _cx: &mut Context<'_>,
        transmit: &mut Transmit<'_>,
    ) -> Poll<io::Result<()>> {
        assert_eq!((transmit.segment_size, transmit.ecn), (None, None), "it announces neither");
        let mut theirs = self.theirs.lock().unwrap();
        theirs.datagrams.push_back((self.address, transmit.contents.to_vec()));
        theirs.waker.take().into_iter().for_each(Waker::wake);
        transmit.contents = &[];
        Poll::Ready(Ok(()))
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        each: &mut dyn FnMut(Received, &mut [u8]),
    ) -> Poll<io::Result<usize>> {
        let mut ours = self.ours.lock().unwrap();
        let Some((remote, mut datagram)) = ours.datagrams.pop_front() else {
            ours.waker = Some(cx.waker().clone());
            return Poll::Pending;
        };
        each(Received { remote, local: None, ecn: None }, &mut datagram);
        Poll::Ready(Ok(1))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}

#[tokio::test]
async fn endpoints_talk_over_sockets_of_the_applications_own() {
    let [server, client] = pipe();
    let address = server.address;
    let (certificate, key) = common::certificate();
    let config =
        sutura::ServerConfig::with_single_cert(vec![certificate.clone()], key, &[b"echo"]).unwrap();
    let open = |socket: Pipe, config| {
        Endpoint::with_abstract_socket(EndpointConfig::default(), config, Arc::new(socket)).unwrap()
    };
    echo(open(server, Some(config)));
    let client = client_of(certificate, open(client, None));
    let connection = client.connect(address, "localhost").unwrap().await.unwrap();
    all(0..5, |i| exchange(connection.clone(), pattern(50_000 + i), None)).await;
    connection.close(0, b"");
    client.wait_idle().await;
}
