//! Peers that make a server hold more than they should.

use crate::common::http::{ask, body, connect, serve};
use crate::common::{local_client, pair, pattern, until, within};
use sutura::http;
use sutura::{ClientConfig, Endpoint, MemoryBudget, TransportConfig};

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
