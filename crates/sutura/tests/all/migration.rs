//! Clients that move to another socket, and clients behind a NAT that forgets them.

use crate::common::{connected, echo, echoing, exchange, localhost, pair, pattern, until, within};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use sutura::{MemoryBudget, TransportConfig};

#[tokio::test]
async fn a_client_moves_to_another_socket_in_the_middle_of_an_exchange() {
    let (connection, client) = echoing().await;
    exchange(connection.clone(), pattern(1000), None).await;
    let (before, mut addresses) = (client.local_addr().unwrap(), Vec::new());
    let transfer = tokio::spawn(exchange(connection.clone(), pattern(20 << 20), None));
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        client.rebind(UdpSocket::bind(localhost()).unwrap()).unwrap();
        addresses.push(client.local_addr().unwrap());
    }
    within(transfer).await.unwrap();
    assert!(!addresses.contains(&before));
    exchange(connection, pattern(1000), None).await;
}

#[tokio::test]
async fn a_server_sees_where_its_client_went() {
    let (connection, peer, client) = connected(b"echo", &TransportConfig::default()).await;
    // Until a message has been acknowledged, the handshake may not be confirmed.
    let mut hello = connection.open_uni().await.unwrap();
    hello.write_all(b"hello").await.unwrap();
    hello.finish().unwrap();
    assert_eq!(hello.stopped().await, Ok(None));
    client.rebind(UdpSocket::bind(localhost()).unwrap()).unwrap();
    let moved = client.local_addr().unwrap();
    until(|| peer.remote_address() == moved).await;
}

#[tokio::test]
async fn the_memory_of_a_connection_counts_for_the_address_that_it_has_moved_to() {
    let (server, client, address) = pair(b"echo", &TransportConfig::default());
    let budget = MemoryBudget::new(16 << 20);
    server.set_memory_budget(budget.clone());
    echo(server);
    let connection = client.connect(address, "localhost").unwrap().await.unwrap();
    exchange(connection.clone(), pattern(1000), None).await;
    let before = client.local_addr().unwrap().ip();
    // The largest number of other connections that may have the client's address.
    let mut others = Vec::new();
    while budget.admits(before) {
        others.push(budget.open(before));
    }
    // Every address of 127.0.0.0/8 is one of this machine on Linux; others have to be set up.
    let Ok(socket) = UdpSocket::bind("127.0.0.2:0") else { return };
    client.rebind(socket).unwrap();
    within(async {
        while !budget.admits(before) {
            exchange(connection.clone(), pattern(1000), None).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_socket_of_another_family_is_refused() {
    let (_server, client, _) = pair(b"echo", &TransportConfig::default());
    let before = client.local_addr().unwrap();
    if let Ok(socket) = UdpSocket::bind("[::1]:0") {
        assert!(client.rebind(socket).is_err());
    }
    assert_eq!(client.local_addr().unwrap(), before);
}

/// Forwards datagrams between one client and `server`, from another port once `rebind` is set. Datagrams that
/// the server sends to the old port are lost.
fn nat(server: SocketAddr, rebind: Arc<AtomicBool>) -> SocketAddr {
    let inside = tokio::net::UdpSocket::from_std(bound()).unwrap();
    let mut outside = tokio::net::UdpSocket::from_std(bound()).unwrap();
    let address = inside.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut up, mut down, mut client) = ([0; 2048], [0; 2048], None);
        loop {
            tokio::select! {
                Ok((size, from)) = inside.recv_from(&mut up) => {
                    client = Some(from);
                    if rebind.swap(false, Ordering::Relaxed) {
                        outside = tokio::net::UdpSocket::from_std(bound()).unwrap();
                    }
                    let _ = outside.send_to(&up[..size], server).await;
                }
                Ok((size, _)) = outside.recv_from(&mut down) => {
                    let Some(client) = client else { continue };
                    let _ = inside.send_to(&down[..size], client).await;
                }
            }
        }
    });
    address
}

fn bound() -> UdpSocket {
    let socket = UdpSocket::bind(localhost()).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket
}

#[tokio::test]
async fn a_nat_that_forgets_a_client_does_not_end_its_connection() {
    let (server, client, address) = pair(b"echo", &TransportConfig::default());
    echo(server);
    let rebind = Arc::new(AtomicBool::new(false));
    let nat = nat(address, rebind.clone());
    let connection = client.connect(nat, "localhost").unwrap().await.unwrap();
    exchange(connection.clone(), pattern(1000), None).await;
    let transfer = tokio::spawn(exchange(connection.clone(), pattern(4 << 20), None));
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        rebind.store(true, Ordering::Relaxed);
    }
    within(transfer).await.unwrap();
}
