//! 0-RTT.

use super::quic::{they_exchange, we_exchange, with_our_echo, with_their_echo};

#[tokio::test]
async fn our_0rtt_is_accepted() {
    with_their_echo(None, async |peers, connection| {
        we_exchange(connection.clone(), 3000).await;
        we_exchange(connection.clone(), 3000).await;
        connection.close(0, b"");
        let connecting = peers.ours.connect(peers.address, "localhost").unwrap();
        let (connection, accepted) = connecting.into_0rtt().expect("a ticket");
        we_exchange(connection.clone(), 5000).await;
        assert!(accepted.await);
        we_exchange(connection.clone(), 100_000).await;
    })
    .await;
}

#[tokio::test]
async fn their_0rtt_is_accepted() {
    with_our_echo(None, async |peers, connection| {
        they_exchange(connection.clone(), 3000).await;
        they_exchange(connection.clone(), 3000).await;
        connection.close(0u32.into(), b"");
        let connecting = peers.theirs.connect(peers.address, "localhost").unwrap();
        let (connection, accepted) = connecting.into_0rtt().expect("a ticket");
        they_exchange(connection.clone(), 5000).await;
        assert!(accepted.await);
        they_exchange(connection.clone(), 100_000).await;
    })
    .await;
}

/// With a loss every now and then, and with as much 0-RTT data as the first window takes.
#[tokio::test]
async fn zero_rtt_over_a_lossy_link_in_both_roles() {
    const LINK: &str = "rate=20mbit delay=10ms loss=bern:5%";
    with_their_echo(Some(LINK), async |peers, connection| {
        we_exchange(connection, 3000).await;
        for _ in 0..5 {
            match peers.ours.connect(peers.address, "localhost").unwrap().into_0rtt() {
                Ok((connection, _)) => we_exchange(connection, 30_000).await,
                Err(connecting) => we_exchange(connecting.await.unwrap(), 3000).await,
            }
        }
    })
    .await;
    with_our_echo(Some(LINK), async |peers, connection| {
        they_exchange(connection, 3000).await;
        for _ in 0..5 {
            match peers.theirs.connect(peers.address, "localhost").unwrap().into_0rtt() {
                Ok((connection, _)) => they_exchange(connection, 30_000).await,
                Err(connecting) => they_exchange(connecting.await.unwrap(), 3000).await,
            }
        }
    })
    .await;
}
