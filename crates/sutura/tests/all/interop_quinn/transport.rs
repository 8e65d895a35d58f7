//! Valid behaviour of peers that ordinary exchanges do not exercise: Retry, key updates, empty
//! connection identifiers, another version.

use std::sync::Arc;

use super::peers::{Peers, quinn_client_config};
use super::quic::{they_echo, they_exchange, we_exchange, with_our_echo};
use crate::common::{certificate, localhost, within};

const PROTOCOL: &[u8] = b"echo";
const LEN: usize = 100_000;

/// A version whose keys quinn knows and this project does not: draft 29 of QUIC v1.
const OTHER_VERSION: u32 = 0xff00_001d;

#[tokio::test]
async fn their_server_validates_our_address_with_a_retry() {
    let peers = Peers::they_serve(PROTOCOL, None);
    within(async {
        let server = peers.theirs.clone();
        tokio::spawn(async move {
            server.accept().await.unwrap().retry().unwrap();
            let incoming = server.accept().await.unwrap();
            assert!(incoming.remote_address_validated());
            let connection = incoming.await.unwrap();
            let (mut send, mut recv) = connection.accept_bi().await.unwrap();
            let data = recv.read_to_end(LEN).await.unwrap();
            send.write_all(&data).await.unwrap();
            send.finish().unwrap();
            let _ = send.stopped().await;
        });
        we_exchange(peers.we_connect().await, LEN).await;
    })
    .await;
}

#[tokio::test]
async fn their_client_updates_its_keys() {
    with_our_echo(None, async |_, connection| {
        for _ in 0..4 {
            connection.force_key_update();
            they_exchange(connection.clone(), LEN).await;
        }
    })
    .await;
}

#[tokio::test]
async fn their_server_updates_its_keys() {
    let peers = Peers::they_serve(PROTOCOL, None);
    within(async {
        let (ours, theirs) = peers.meet().await;
        let answering = ours.clone();
        tokio::spawn(async move {
            while let Ok((mut send, mut recv)) = answering.accept_bi().await {
                let data = recv.read_to_end(LEN).await.unwrap();
                send.write_all(&data).await.unwrap();
                send.finish().unwrap();
                let _ = send.stopped().await;
            }
        });
        for _ in 0..4 {
            theirs.force_key_update();
            they_exchange(theirs.clone(), LEN).await;
        }
    })
    .await;
}

#[tokio::test]
async fn their_endpoint_has_empty_connection_ids() {
    let mut endpoint = quinn::EndpointConfig::default();
    endpoint.cid_generator(|| Box::new(quinn_proto::RandomConnectionIdGenerator::new(0)));
    let peers = Peers::they_serve_as(PROTOCOL, None, endpoint);
    they_echo(peers.theirs.clone());
    within(async { we_exchange(peers.we_connect().await, LEN).await }).await;
}

#[tokio::test]
async fn their_client_is_told_our_version() {
    let peers = Peers::we_serve(PROTOCOL, None);
    let mut endpoint = quinn::EndpointConfig::default();
    endpoint.supported_versions(vec![OTHER_VERSION, 1]);
    let socket = std::net::UdpSocket::bind(localhost()).unwrap();
    let runtime = Arc::new(quinn::TokioRuntime);
    let client = quinn::Endpoint::new(endpoint, None, socket, runtime).unwrap();
    let mut config = quinn_client_config(certificate().0, PROTOCOL);
    config.version(OTHER_VERSION);
    within(async {
        let connecting = client.connect_with(config, peers.address, "localhost").unwrap();
        assert_eq!(connecting.await.unwrap_err(), quinn::ConnectionError::VersionMismatch);
    })
    .await;
}

#[tokio::test]
async fn their_server_lacks_our_version() {
    let mut endpoint = quinn::EndpointConfig::default();
    endpoint.supported_versions(vec![OTHER_VERSION]);
    let peers = Peers::they_serve_as(PROTOCOL, None, endpoint);
    within(async {
        let connecting = peers.ours.connect(peers.address, "localhost").unwrap();
        let error = connecting.await.map(drop).unwrap_err();
        assert_eq!(error, sutura::ConnectionError::VersionMismatch);
    })
    .await;
}
