//! The answers that a server can give to a client that asks for a connection.

use crate::common::memory::Memory;
use crate::common::{client_of, configs, pair, within};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use sutura::{
    ClientConfig, Connection, ConnectionError, Endpoint, EndpointConfig, TransportConfig,
    TransportErrorCode,
};

/// Connects while `answer` runs.
async fn connect<T: Send + 'static>(
    answer: impl AsyncFnOnce(Endpoint) -> T,
) -> (Result<Connection, ConnectionError>, T, Endpoint) {
    let (server, client, address) = pair(b"x", &TransportConfig::default());
    let connecting = client.connect(address, "localhost").unwrap();
    let both = async { tokio::join!(connecting, answer(server)) };
    let (connected, answered) = within(both).await;
    (connected, answered, client)
}

fn is_refusal(error: &ConnectionError) -> bool {
    let refused = TransportErrorCode::CONNECTION_REFUSED;
    matches!(error, ConnectionError::ClosedByPeer(error) if error.code == refused)
}

#[tokio::test]
async fn a_client_is_accepted() {
    let (connected, accepted, _client) = connect(async |server| {
        let incoming = server.accept().await.unwrap();
        assert!(!incoming.remote_address_validated() && incoming.may_retry());
        incoming.accept().unwrap().await
    })
    .await;
    assert_eq!(connected.unwrap().close_reason(), None);
    assert!(accepted.is_ok());
}

#[tokio::test]
async fn a_client_is_asked_to_prove_its_address() {
    let (connected, accepted, _client) = connect(async |server| {
        let incoming = server.accept().await.unwrap();
        let address = incoming.remote_address();
        incoming.retry().unwrap();
        let incoming = server.accept().await.unwrap();
        assert_eq!(incoming.remote_address(), address);
        assert!(incoming.remote_address_validated() && !incoming.may_retry());
        // Once is enough.
        incoming.retry().unwrap_err().into_incoming().await
    })
    .await;
    assert!(connected.is_ok() && accepted.is_ok());
}

#[tokio::test]
async fn a_client_is_refused_at_once() {
    let (refused, _server, client) = connect(async |server| {
        server.accept().await.unwrap().refuse();
        server
    })
    .await;
    assert!(is_refusal(&refused.unwrap_err()));
    client.wait_idle().await;
    // A client that the application drops without a decision is refused as well.
    let (refused, _server, _client) = connect(async |server| {
        drop(server.accept().await.unwrap());
        server
    })
    .await;
    assert!(is_refusal(&refused.unwrap_err()));
}

#[tokio::test]
async fn a_client_that_is_ignored_comes_again() {
    let (connected, accepted, _client) = connect(async |server| {
        server.accept().await.unwrap().ignore();
        server.accept().await.unwrap().await
    })
    .await;
    assert!(connected.is_ok() && accepted.is_ok());
}

/// A server with room for this many handshakes, its address, and a configuration of its clients.
fn server(memory: &Memory, handshakes: usize) -> (Endpoint, SocketAddr, ClientConfig) {
    let (server, client) = configs(b"echo");
    let limits = EndpointConfig::default().with_max_handshakes(handshakes).with_retry_above(None);
    let socket = memory.socket(1);
    let address = socket.address;
    let server = Endpoint::with_abstract_socket(limits, Some(server), Arc::new(socket)).unwrap();
    (server, address, client)
}

fn client(memory: &Memory, host: u8, config: ClientConfig) -> Endpoint {
    let socket = Arc::new(memory.socket_at(([192, 0, 2, host], 1).into()));
    let endpoint = Endpoint::with_abstract_socket(EndpointConfig::default(), None, socket);
    client_of(config, endpoint.unwrap())
}

/// A server that has room for one handshake, and accepts the first client only after another one came.
#[tokio::test]
async fn a_client_that_made_room_for_another_is_not_accepted() {
    let memory = Memory::default();
    let (server, address, config) = server(&memory, 1);
    // The first client does not repeat itself.
    let transport = TransportConfig::default().with_initial_rtt(Duration::from_secs(3600));
    let first = client(&memory, 101, config.clone().transport(transport));
    let second = client(&memory, 102, config);
    let _early = first.connect(address, "localhost").unwrap();
    let given_up = within(server.accept()).await.unwrap();
    let late = second.connect(address, "localhost").unwrap();
    let other = within(server.accept()).await.unwrap();
    assert_ne!(given_up.remote_address(), other.remote_address());
    assert!(matches!(given_up.accept(), Err(ConnectionError::TimedOut)));
    let (connected, accepted) = within(async { tokio::join!(late, other) }).await;
    assert!(connected.is_ok() && accepted.is_ok());
}

#[tokio::test]
async fn a_server_that_accepts_no_more_says_so() {
    let (server, client, address) = pair(b"x", &TransportConfig::default());
    let first = client.connect(address, "localhost").unwrap();
    let (first, accepted) = tokio::join!(first, async { server.accept().await.unwrap().await });
    server.stop_accepting();
    assert!(server.accept().await.is_none());
    let second = client.connect(address, "localhost").unwrap();
    let error = within(second).await.unwrap_err();
    assert!(is_refusal(&error), "{error}");
    assert_eq!((first.unwrap().close_reason(), accepted.unwrap().close_reason()), (None, None));
}

#[tokio::test]
async fn the_token_of_one_connection_validates_the_next() {
    let (server, client, address) = pair(b"x", &TransportConfig::default());
    for first in [true, false] {
        let connecting = client.connect(address, "localhost").unwrap();
        let accept = async {
            let incoming = server.accept().await.unwrap();
            assert_eq!(incoming.remote_address_validated(), !first);
            assert!(incoming.may_retry());
            let connection = incoming.await.unwrap();
            connection.open_uni().await.unwrap().write_all(b"the token came before").await.unwrap();
            connection
        };
        let (connected, _accepted) = tokio::join!(connecting, accept);
        let connected = connected.unwrap();
        connected.accept_uni().await.unwrap().read_chunk(100, true).await.unwrap();
        connected.close(0, b"");
        client.wait_idle().await;
    }
}

/// Clients that the application has not looked at yet wait, but not any number of them.
#[tokio::test]
async fn clients_beyond_the_backlog_are_refused() {
    const BACKLOG: usize = 1024;
    const EACH: usize = 220;
    let memory = Memory::default();
    let (server, address, config) = server(&memory, 10_000);
    let (told, mut refusals) = tokio::sync::mpsc::unbounded_channel();
    let mut clients = Vec::new();
    for host in 0..5 {
        let client = client(&memory, 100 + host, config.clone());
        for _ in 0..EACH {
            let connecting = client.connect(address, "localhost").unwrap();
            let told = told.clone();
            tokio::spawn(async move {
                let error = connecting.await.map(drop).unwrap_err();
                let _ = told.send(is_refusal(&error));
            });
        }
        clients.push(client);
    }
    for _ in 0..5 * EACH - BACKLOG {
        assert!(within(refusals.recv()).await.unwrap());
    }
    // All other clients are there to be accepted.
    let mut waiting = Vec::new();
    for _ in 0..BACKLOG {
        waiting.push(within(server.accept()).await.unwrap());
    }
    assert!(refusals.try_recv().is_err());
}
