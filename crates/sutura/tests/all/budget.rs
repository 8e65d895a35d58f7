//! Peers that make a server hold more than they should.

use crate::common::http::{ask, body, connect, serve};
use crate::common::{connected, local_client, pair, pattern, until, within};
use std::sync::Arc;
use std::time::Duration;
use sutura::groups::GroupMessage;
use sutura::http;
use sutura::{
    ClientConfig, Endpoint, FecConfig, MemoryBudget, MessageOutcome, Priority, TransportConfig,
};

const LIMIT: usize = 8 << 20;
const SLOW_CLIENTS: usize = 24;
const REQUESTS: usize = 20;
/// Bytes of each response: without a limit, the slow clients would make the server hold 120 MiB.
const RESPONSE: usize = 256 << 10;

/// An endpoint whose peers may send one byte on each connection. It acknowledges that byte.
fn slow_endpoint() -> Endpoint {
    let transport = TransportConfig::default().with_receive_window(1).with_max_receive_window(1);
    let config = ClientConfig::without_verification(&[http::ALPN]).unwrap().transport(transport);
    local_client(config)
}

#[tokio::test]
async fn many_slow_readers_keep_the_budget_and_others_are_served() {
    let (server, endpoint, address) = pair(http::ALPN, &TransportConfig::default());
    let budget = MemoryBudget::new(LIMIT);
    server.set_memory_budget(budget.clone());
    serve(server);
    let slow = slow_endpoint();
    let mut held = Vec::new();
    for _ in 0..SLOW_CLIENTS {
        let client = connect(&slow, address).await;
        // Requests that the server does not let begin wait here.
        let asking = tokio::spawn(async move {
            let mut streams = Vec::new();
            for _ in 0..REQUESTS {
                streams.push(ask(&client, &format!("/{RESPONSE}")).await);
            }
            std::future::pending::<()>().await;
        });
        held.push(asking);
        assert!(budget.used() <= 2 * LIMIT, "{}", budget.used());
    }
    // Wait until the server holds as much as it will for the slow clients.
    until(|| budget.used() >= LIMIT / 2).await;
    let honest = connect(&endpoint, address).await;
    within(async {
        for _ in 0..4 {
            let mut stream = ask(&honest, "/1000000").await;
            assert_eq!(stream.recv_response().await.unwrap().status, 200);
            assert!(body(&mut stream).await == pattern(1_000_000));
            assert!(budget.used() <= 2 * LIMIT, "{}", budget.used());
        }
    })
    .await;
    held.iter().for_each(tokio::task::JoinHandle::abort);
    slow.close(0, b"");
    drop(honest);
    until(|| budget.used() == 0).await;
}

#[tokio::test]
async fn a_server_without_memory_refuses_clients() {
    let (server, endpoint, address) = pair(http::ALPN, &TransportConfig::default());
    server.set_memory_budget(MemoryBudget::new(60 * 1024));
    serve(server);
    let first = endpoint.connect(address, "localhost").unwrap().await.unwrap();
    let refused = endpoint.connect(address, "localhost").unwrap().await.unwrap_err();
    assert!(refused.to_string().contains("CONNECTION_REFUSED"), "{refused}");
    drop(first);
}

/// What codes and streams keep in a silence says nothing about whether the peer takes data: after more than the time
/// for which a peer may take none, messages are sent as before.
#[tokio::test]
async fn messages_that_are_larger_than_what_is_kept_are_sent_after_a_silence() {
    const SILENCE: Duration = Duration::from_secs(6);
    let redundancy = sutura::policy::Auto::new(1.0).unwrap().expecting(0.02).unwrap();
    let transport = TransportConfig::default()
        .with_redundancy(Some(Arc::new(redundancy)))
        .with_keep_alive(Some(Duration::from_millis(500)))
        .with_fec(Some(FecConfig::default()));
    let (client, peer, _endpoint) = connected(b"x", &transport).await;
    // An open stream keeps the block of what was read from it.
    let (mut asking, mut answering) = (client.open_bi().await.unwrap(), [0; 10]);
    asking.0.write_all(&answering).await.unwrap();
    let mut asked = within(peer.accept_bi()).await.unwrap();
    asked.1.read_exact(&mut answering).await.unwrap();
    asked.0.write_all(&answering).await.unwrap();
    asking.1.read_exact(&mut answering).await.unwrap();
    let mut groups = client.receive_groups();
    let group = peer.open_group(Priority::default()).unwrap();
    let mut number = 0;
    for silence in [Duration::ZERO, SILENCE, SILENCE] {
        tokio::time::sleep(silence).await;
        for size in [60_000, 2_000, 100] {
            let data = pattern(size);
            assert_eq!(within(group.send(&GroupMessage::new(&data))).await, Ok(number));
            let message = within(groups.next()).await.unwrap().unwrap();
            assert!(message.number == number && message.data == data);
            let (told, outcome) = within(group.outcome()).await.unwrap();
            assert_eq!(told, number);
            assert_ne!(outcome, MessageOutcome::GivenUp);
            number += 1;
        }
    }
}
