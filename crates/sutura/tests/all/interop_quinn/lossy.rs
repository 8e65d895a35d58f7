//! Loss recovery against another stack: streams and HTTP/3 over a link that loses, reorders,
//! duplicates and corrupts packets.

use super::http;
use super::peers::Peers;
use super::quic;
use crate::common::http::serve;
use crate::common::{all, within};

const LINK: &str = "rate=50mbit queue=200p delay=4ms jitter=2ms,reorder loss=bern:4% \
                    reorder=0.01,8ms duplicate=0.01 corrupt=0.005";
const LENGTHS: [usize; 6] = [0, 1, 1000, 50_000, 150_000, 300_000];

/// Checks that the link really did so.
fn check(peers: Peers) {
    let stats = peers.relay.unwrap().stop();
    assert!(stats.up.lost > 0 && stats.down.lost > 0, "nothing was lost: {stats:?}");
}

#[tokio::test]
async fn streams_of_their_client() {
    let peers = quic::with_our_echo(Some(LINK), async |_, connection| {
        all(LENGTHS.into_iter(), |len| quic::they_exchange(connection.clone(), len)).await;
    })
    .await;
    check(peers);
}

#[tokio::test]
async fn streams_of_our_client() {
    let peers = quic::with_their_echo(Some(LINK), async |_, connection| {
        all(LENGTHS.into_iter(), |len| quic::we_exchange(connection.clone(), len)).await;
    })
    .await;
    check(peers);
}

#[tokio::test]
async fn requests_of_their_client() {
    let peers = Peers::we_serve(b"h3", Some(LINK));
    serve(peers.ours.clone());
    within(async {
        let client = http::TheirClient::connect(&peers).await;
        all(LENGTHS.into_iter(), |len| client.clone().exchange(len)).await;
    })
    .await;
    check(peers);
}

#[tokio::test]
async fn requests_of_our_client() {
    let peers = Peers::they_serve(b"h3", Some(LINK));
    http::they_serve(peers.theirs.clone());
    within(async {
        let client = http::we_connect(&peers).await;
        all(LENGTHS.into_iter(), |len| http::we_exchange(client.clone(), len)).await;
    })
    .await;
    check(peers);
}
