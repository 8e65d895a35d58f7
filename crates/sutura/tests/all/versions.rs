//! Versions of QUIC over loopback.

use crate::common::{client_of, configs, echo, exchange, localhost, pattern};
use std::net::SocketAddr;
use sutura::Version::{V1, V2};
use sutura::{ClientConfig, Endpoint, EndpointConfig, Version};

const PROTOCOL: &[u8] = b"versions";

fn supporting(versions: &[Version]) -> EndpointConfig {
    EndpointConfig::default().with_versions(versions.to_vec())
}

/// A server with these settings, its address, and the configuration of a client that trusts it.
fn server(endpoint: EndpointConfig) -> (Endpoint, SocketAddr, ClientConfig) {
    let (server, config) = configs(PROTOCOL);
    let server = Endpoint::bind(endpoint, Some(server), localhost()).unwrap();
    let address = server.local_addr().unwrap();
    (server, address, config)
}

fn client(config: ClientConfig, endpoint: EndpointConfig) -> Endpoint {
    client_of(config, Endpoint::bind(endpoint, None, localhost()).unwrap())
}

#[tokio::test]
async fn a_server_goes_over_to_the_version_that_it_prefers() {
    for ours in [[V2, V1], [V1, V2]] {
        let (server, address, config) = server(supporting(&ours));
        echo(server);
        let offers = [(&[V1, V2][..], ours[0]), (&[V2, V1], V2), (&[V1], V1), (&[V2], V2)];
        for (offered, expected) in offers {
            let client = client(config.clone(), supporting(offered));
            // The later connections use the ticket and token that the client keeps from the earlier ones.
            for _ in 0..3 {
                let connection = client.connect(address, "localhost").unwrap().await.unwrap();
                assert_eq!(connection.version(), expected, "{offered:?} {ours:?}");
                exchange(connection.clone(), pattern(100_000), None).await;
                connection.close(0, b"");
            }
        }
    }
}

#[tokio::test]
async fn a_client_may_begin_with_another_version_than_the_best() {
    for (theirs, expected) in [(&[V1, V2][..], V1), (&[V2, V1], V2), (&[V1], V1), (&[V2], V2)] {
        let (server, address, config) = server(supporting(theirs));
        echo(server);
        let ours = supporting(&[V2, V1]).with_original_version(Some(V1));
        let client = client(config, ours);
        // The later connection uses the ticket and token that the client keeps from the first.
        for _ in 0..2 {
            let connection = client.connect(address, "localhost").unwrap().await.unwrap();
            assert_eq!(connection.version(), expected, "{theirs:?}");
            exchange(connection.clone(), pattern(10_000), None).await;
            connection.close(0, b"");
        }
    }
}

#[tokio::test]
async fn both_ends_agree_on_the_version_after_a_retry() {
    let endpoint = supporting(&[V2, V1]).with_retry_above(Some(0));
    let (server, config) = configs(PROTOCOL);
    let server = Endpoint::bind(endpoint, Some(server.exporter()), localhost()).unwrap();
    let address = server.local_addr().unwrap();
    let client = client(config, supporting(&[V1, V2]));
    let accept = tokio::spawn(async move { server.accept().await.unwrap().await.unwrap() });
    let ours = client.connect(address, "localhost").unwrap().await.unwrap();
    let theirs = accept.await.unwrap();
    assert_eq!((ours.version(), theirs.version()), (V2, V2));
    let export = |connection: &sutura::Connection| {
        let mut out = [0; 32];
        connection.export_keying_material(&mut out, b"label", None).unwrap();
        out
    };
    assert_eq!(export(&ours), export(&theirs));
    let mut send = ours.open_uni().await.unwrap();
    send.write_all(b"after a Retry").await.unwrap();
    send.finish().unwrap();
    let mut recv = theirs.accept_uni().await.unwrap();
    assert_eq!(recv.read_to_end(100).await.unwrap(), b"after a Retry");
}
