//! Endpoints as a whole: closing them, limits that change, and custom sockets.

use crate::common::memory::{Memory, MemorySocket};
use crate::common::{
    all, client_of, configs, connected, echo, exchange, local_client, localhost, pair, pattern,
};
use std::sync::Arc;
use sutura::{
    ConnectionError, Endpoint, EndpointConfig, PreferredAddresses, TransportConfig, Version,
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
    // Later clients are refused, and later connections of this client fail.
    assert!(client.connect(address, "localhost").unwrap().await.is_err());
    client.close(1, b"");
    let late = client.connect(address, "localhost").unwrap().await.map(drop);
    assert_eq!(late, Err(ConnectionError::LocallyClosed));
    client.wait_idle().await;
}

#[tokio::test]
async fn limits_of_a_connection_can_be_raised() {
    let transport = TransportConfig::default().with_max_concurrent_uni_streams(0);
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
    let (config, trusting) = configs(b"echo");
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    echo(Endpoint::with_socket(EndpointConfig::default(), Some(config), socket).unwrap());
    let connection = local_client(trusting).connect(address, "localhost").unwrap().await.unwrap();
    exchange(connection, pattern(10_000), None).await;
}

#[tokio::test]
async fn version_2_is_used_if_the_client_begins_with_it_or_the_server_has_no_other() {
    for (ours, theirs, expected) in [
        ([Version::V2, Version::V1], vec![Version::V1, Version::V2], Version::V2),
        ([Version::V1, Version::V2], vec![Version::V2], Version::V2),
        ([Version::V2, Version::V1], vec![Version::V1], Version::V1),
    ] {
        let (server, trusting) = configs(b"echo");
        let config = EndpointConfig::default().with_versions(theirs);
        let server = Endpoint::bind(config, Some(server), localhost()).unwrap();
        let address = server.local_addr().unwrap();
        echo(server);
        let config = EndpointConfig::default().with_versions(ours.to_vec());
        let client = client_of(trusting, Endpoint::bind(config, None, localhost()).unwrap());
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
    let (server, trusting) = configs(b"echo");
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    let there = std::net::SocketAddrV4::new([127, 0, 0, 2].into(), port);
    let config = EndpointConfig::default().with_preferred_address(Some(
        PreferredAddresses::default().with_ipv4(Some(there)).with_ipv6(None),
    ));
    echo(Endpoint::with_socket(config, Some(server), socket).unwrap());
    let address = ([127, 0, 0, 1], port).into();
    let connection = local_client(trusting).connect(address, "localhost").unwrap().await.unwrap();
    while connection.remote_address() != there.into() {
        exchange(connection.clone(), pattern(10_000), None).await;
    }
    exchange(connection, pattern(100_000), None).await;
}

#[tokio::test]
async fn endpoints_talk_over_sockets_of_the_applications_own() {
    let memory = Memory::default();
    let (server, client) = (memory.socket(1), memory.socket(2));
    let address = server.address;
    let (config, trusting) = configs(b"echo");
    let open = |socket: MemorySocket, config| {
        Endpoint::with_abstract_socket(EndpointConfig::default(), config, Arc::new(socket)).unwrap()
    };
    echo(open(server, Some(config)));
    let client = client_of(trusting, open(client, None));
    let connection = client.connect(address, "localhost").unwrap().await.unwrap();
    all(0..5, |i| exchange(connection.clone(), pattern(50_000 + i), None)).await;
    connection.close(0, b"");
    client.wait_idle().await;
}
