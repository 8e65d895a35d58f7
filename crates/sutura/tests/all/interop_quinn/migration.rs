//! Clients that move to another socket, and servers that forgot their clients.

use std::net::UdpSocket;
use std::time::Duration;

use super::quic::{they_exchange, we_exchange, with_our_echo, with_their_echo};
use crate::common::localhost;

const LEN: usize = 8 << 20;
const PAUSE: Duration = Duration::from_millis(20);

#[tokio::test]
async fn our_client_moves() {
    with_their_echo(None, async |peers, connection| {
        we_exchange(connection.clone(), 1000).await;
        let transfer = tokio::spawn(we_exchange(connection.clone(), LEN));
        for _ in 0..2 {
            tokio::time::sleep(PAUSE).await;
            peers.ours.rebind(UdpSocket::bind(localhost()).unwrap()).unwrap();
        }
        transfer.await.unwrap();
        we_exchange(connection, 1000).await;
    })
    .await;
}

#[tokio::test]
async fn their_client_moves() {
    with_our_echo(None, async |peers, connection| {
        they_exchange(connection.clone(), 1000).await;
        let transfer = tokio::spawn(they_exchange(connection.clone(), LEN));
        for _ in 0..2 {
            tokio::time::sleep(PAUSE).await;
            peers.theirs.rebind(UdpSocket::bind(localhost()).unwrap()).unwrap();
        }
        transfer.await.unwrap();
        they_exchange(connection, 1000).await;
    })
    .await;
}
