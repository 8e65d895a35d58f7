//! Clients that move to another socket, and servers that forgot their clients.

use std::net::UdpSocket;
use std::time::Duration;

use super::peers::{Peers, within};
use super::quic::{they_echo, they_exchange, we_exchange};
use crate::common::{echo, localhost};

const PROTOCOL: &[u8] = b"echo";
const LEN: usize = 8 << 20;
const PAUSE: Duration = Duration::from_millis(20);

#[tokio::test]
async fn our_client_moves() {
    within(async {
        let peers = Peers::they_serve(PROTOCOL, None);
        they_echo(peers.theirs.clone());
        let connection = peers.we_connect().await;
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
    within(async {
        let peers = Peers::we_serve(PROTOCOL, None);
        echo(peers.ours.clone());
        let connection = peers.they_connect().await;
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
