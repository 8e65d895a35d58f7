//! 0-RTT over loopback.

use crate::common::{certificate, local_client, localhost, pattern, trusting};
use bytes::Bytes;
use std::net::SocketAddr;
use sutura::http::{self, Client, Server};
use sutura::{
    Connection, Endpoint, Priority, ReadError, SendMessageError, ServerConfig, StoppedError,
    TransportConfig, WriteError,
};

const PROTOCOL: &[u8] = b"early";

/// A server and a client that want 0-RTT, and a second configuration for the server, which does not know the
/// sessions of the first.
fn endpoints(protocol: &[u8]) -> (Endpoint, Endpoint, SocketAddr, ServerConfig) {
    let (certificate, key) = certificate();
    let server = || {
        let chain = vec![certificate.clone()];
        ServerConfig::with_single_cert(chain, key.clone_key(), &[protocol]).unwrap().early_data()
    };
    let endpoint = Endpoint::server(server(), localhost()).unwrap();
    let client = local_client(trusting(certificate.clone(), protocol).early_data());
    let address = endpoint.local_addr().unwrap();
    (endpoint, client, address, server())
}

/// Echoes the data of bidirectional streams, even before the handshake is complete.
fn echo(server: Endpoint) {
    tokio::spawn(async move {
        while let Some(incoming) = server.accept().await {
            let (connection, _) = incoming.accept().unwrap().into_0rtt().unwrap();
            tokio::spawn(async move {
                while let Ok((mut send, mut recv)) = connection.accept_bi().await {
                    let data = recv.read_to_end(1 << 20).await.unwrap();
                    send.write_all(&data).await.unwrap();
                    send.finish().unwrap();
                    let _ = send.stopped().await;
                }
            });
        }
    });
}

async fn exchange(connection: &Connection, data: &[u8]) {
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    send.write_all(data).await.unwrap();
    send.finish().unwrap();
    assert_eq!(recv.read_to_end(1 << 20).await.unwrap(), data);
}

/// Leaves the client with tickets.
async fn prepare(client: &Endpoint, address: SocketAddr) {
    let connecting = client.connect(address, "localhost").unwrap();
    let connection = connecting.into_0rtt().expect_err("no ticket yet").await.unwrap();
    // The tickets come no later than the answer.
    exchange(&connection, b"first").await;
    exchange(&connection, b"second").await;
    connection.close(0, b"");
}

#[tokio::test]
async fn what_is_sent_with_the_first_packets_is_answered() {
    let (server, client, address, _) = endpoints(PROTOCOL);
    echo(server);
    prepare(&client, address).await;
    for _ in 0..3 {
        let connecting = client.connect(address, "localhost").unwrap();
        let (connection, accepted) = connecting.into_0rtt().expect("a ticket");
        exchange(&connection, &pattern(5000)).await;
        assert!(accepted.await);
        connection.handshake_complete().await.unwrap();
        exchange(&connection, &pattern(100_000)).await;
        connection.close(0, b"");
    }
}

#[tokio::test]
async fn what_is_rejected_fails_and_can_be_said_again() {
    let (server, client, address, forgetful) = endpoints(PROTOCOL);
    echo(server.clone());
    prepare(&client, address).await;
    server.set_server_config(Some(forgetful));
    let (connection, accepted) = client.connect(address, "localhost").unwrap().into_0rtt().unwrap();
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    send.write_all(b"too early").await.unwrap();
    let id = send.id();
    let reader = tokio::spawn(async move { recv.read_to_end(100).await });
    assert!(!accepted.await);
    assert_eq!(
        reader.await.unwrap(),
        Err(sutura::ReadToEndError::Read(ReadError::ZeroRttRejected))
    );
    assert_eq!(send.write(b"more").await, Err(WriteError::ZeroRttRejected));
    assert_eq!(send.finish(), Err(WriteError::ZeroRttRejected));
    assert_eq!(send.set_priority(Priority::default()), Err(WriteError::ZeroRttRejected));
    assert_eq!(send.stopped().await, Err(StoppedError::ZeroRttRejected));
    // The identifier is used again, which the old stream must not harm.
    let (mut again, mut answer) = connection.open_bi().await.unwrap();
    assert_eq!(again.id(), id);
    again.write_all(b"now").await.unwrap();
    drop(send);
    again.write_all(b" it counts").await.unwrap();
    again.finish().unwrap();
    assert_eq!(answer.read_to_end(100).await.unwrap(), b"now it counts");
}

#[tokio::test]
async fn an_application_that_awaits_the_connection_sees_nothing_early() {
    let (server, client, address, _) = endpoints(PROTOCOL);
    let task = tokio::spawn(async move {
        for _ in 0..2 {
            let connection = server.accept().await.unwrap().await.unwrap();
            connection.handshake_complete().await.unwrap();
            let (mut send, mut recv) = connection.accept_bi().await.unwrap();
            assert!(!recv.is_0rtt());
            let data = recv.read_to_end(1 << 20).await.unwrap();
            send.write_all(&data).await.unwrap();
            send.finish().unwrap();
            let _ = connection.closed().await;
        }
    });
    let connection = client.connect(address, "localhost").unwrap().await.unwrap();
    exchange(&connection, b"first").await;
    connection.close(0, b"");
    let (connection, accepted) = client.connect(address, "localhost").unwrap().into_0rtt().unwrap();
    exchange(&connection, b"early").await;
    assert!(accepted.await);
    connection.close(0, b"");
    task.await.unwrap();
}

#[tokio::test]
async fn messages_and_datagrams_go_early_and_groups_wait() {
    let (server, client, address, _) = endpoints(PROTOCOL);
    echo(server.clone());
    prepare(&client, address).await;
    let (connection, accepted) = client.connect(address, "localhost").unwrap().into_0rtt().unwrap();
    connection.send_datagram(Bytes::from_static(b"datagram")).unwrap();
    connection.try_send_message(Bytes::from_static(b"message"), Default::default()).unwrap();
    let group = connection.open_group(Priority::default()).unwrap();
    let message = group_message();
    let blocked = group.try_send(&message);
    assert_eq!(blocked, Err(SendMessageError::Blocked.into()));
    assert_eq!(group.send(&message).await, Ok(0));
    assert!(accepted.await);
    connection.close(0, b"");
}

fn group_message() -> sutura::groups::GroupMessage<'static> {
    sutura::groups::GroupMessage::new(b"part of a group")
}

#[tokio::test]
async fn configurations_without_early_data_have_none() {
    let transport = TransportConfig::default();
    let (server, client, address) = crate::common::pair(PROTOCOL, &transport);
    echo(server);
    prepare(&client, address).await;
    let connecting = client.connect(address, "localhost").unwrap();
    assert!(connecting.into_0rtt().is_err());
}

/// Answers requests with whether they came early, and early requests for `/late` with 425.
fn serve_http(server: Endpoint) {
    tokio::spawn(async move {
        while let Some(incoming) = server.accept().await {
            let (connection, _) = incoming.accept().unwrap().into_0rtt().unwrap();
            let mut server = Server::new(connection, http::Config::default());
            tokio::spawn(async move {
                while let Ok(Some((request, mut stream))) = server.accept().await {
                    let early = stream.is_0rtt();
                    let status = if early && request.path == "/late" { 425 } else { 200 };
                    stream.send_response(status, &[]).await.unwrap();
                    let body = if early { "early" } else { "late" };
                    stream.send_data(Bytes::from(body)).await.unwrap();
                    stream.finish().await.unwrap();
                }
            });
        }
    });
}

async fn fetch(client: &Client, method: &str, path: &str) -> Result<(u16, Bytes), http::Error> {
    let mut stream = client.request(method, "localhost", path, &[], None).await?;
    stream.finish().await?;
    let status = stream.recv_response().await?.status;
    let body = stream.recv_data().await?.unwrap_or_default();
    Ok((status, body))
}

async fn early_client(endpoint: &Endpoint, address: SocketAddr) -> (Client, bool) {
    let connecting = endpoint.connect(address, "localhost").unwrap();
    let (connection, early) = match connecting.into_0rtt() {
        Ok((connection, _)) => (connection, true),
        Err(connecting) => (connecting.await.unwrap(), false),
    };
    (Client::new(connection, http::Config::default()).await.unwrap(), early)
}

#[tokio::test]
async fn requests_say_whether_they_came_early() {
    let (server, endpoint, address, forgetful) = endpoints(http::ALPN);
    serve_http(server.clone());
    let (client, early) = early_client(&endpoint, address).await;
    assert!(!early);
    assert_eq!(fetch(&client, "GET", "/").await, Ok((200, Bytes::from("late"))));
    client.connection().close(0, b"");

    for (path, status) in [("/", 200), ("/late", 425)] {
        let (client, early) = early_client(&endpoint, address).await;
        assert!(early);
        assert_eq!(fetch(&client, "GET", path).await, Ok((status, Bytes::from("early"))));
        client.connection().handshake_complete().await.unwrap();
        assert_eq!(fetch(&client, "GET", path).await, Ok((200, Bytes::from("late"))));
        client.connection().close(0, b"");
    }
    // A request that may change something waits.
    let (client, early) = early_client(&endpoint, address).await;
    assert!(early);
    assert_eq!(fetch(&client, "POST", "/").await, Ok((200, Bytes::from("late"))));
    client.connection().close(0, b"");

    server.set_server_config(Some(forgetful));
    let (client, early) = early_client(&endpoint, address).await;
    assert!(early);
    assert_eq!(fetch(&client, "GET", "/").await, Err(http::Error::ZeroRttRejected));
    assert_eq!(fetch(&client, "GET", "/").await, Ok((200, Bytes::from("late"))));
}
