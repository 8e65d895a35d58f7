//! Flows of UDP.

use bytes::Bytes;
use sutura_tunnel::local::forward_udp;
use tokio::net::UdpSocket;

use crate::support::{IntoTarget, Near, Proxy, echo_udp, near};

/// Sends a datagram until something comes back: the first may come before its flow has begun.
async fn exchange(socket: &UdpSocket, payload: &[u8]) -> Vec<u8> {
    socket.send(payload).await.unwrap();
    let mut buffer = vec![0; 65_536];
    let size = socket.recv(&mut buffer).await.unwrap();
    buffer.truncate(size);
    buffer
}

async fn forwarded(near: &Near, target: std::net::SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind(("127.0.0.1", 0)).await.unwrap();
    let at = socket.local_addr().unwrap();
    tokio::spawn(forward_udp(socket, near.tunnel.clone(), target.into_target()));
    let program = UdpSocket::bind(("127.0.0.1", 0)).await.unwrap();
    program.connect(at).await.unwrap();
    program
}

#[tokio::test]
async fn datagrams_go_both_ways_also_empty_ones() {
    let (proxy, target) = (Proxy::start(&["udp/127.0.0.1:*"]), echo_udp().await);
    let near = near(&proxy).await;
    let program = forwarded(&near, target).await;
    for payload in [&b"hello"[..], b"", &[7; 1000]] {
        assert_eq!(exchange(&program, payload).await, payload);
    }
    proxy.said.wait(&format!("udp {target} begun")).await;
    assert_eq!(proxy.said.count("begun"), 1);
}

#[tokio::test]
async fn each_program_has_a_flow_of_its_own() {
    let (proxy, target) = (Proxy::start(&["127.0.0.1:*"]), echo_udp().await);
    let near = near(&proxy).await;
    let one = forwarded(&near, target).await;
    let at = one.peer_addr().unwrap();
    let other = UdpSocket::bind(("127.0.0.1", 0)).await.unwrap();
    other.connect(at).await.unwrap();
    assert_eq!(exchange(&one, b"one").await, b"one");
    assert_eq!(exchange(&other, b"other").await, b"other");
    assert_eq!(exchange(&one, b"one again").await, b"one again");
    assert_eq!(proxy.said.count("begun"), 2);
}

#[tokio::test]
async fn a_datagram_that_does_not_fit_is_dropped_with_what_to_set() {
    let (proxy, target) = (Proxy::start(&["127.0.0.1:*"]), echo_udp().await);
    let near = near(&proxy).await;
    let program = forwarded(&near, target).await;
    assert_eq!(exchange(&program, b"small").await, b"small");
    program.send(&[0; 9000]).await.unwrap();
    let said = near.said.wait("does not fit").await;
    assert!(said.contains("MTU = 1"), "{said}");
    // The flow goes on.
    assert_eq!(exchange(&program, b"small again").await, b"small again");
}

#[tokio::test]
async fn a_target_that_no_rule_allows_is_refused() {
    let proxy = Proxy::start(&["tcp/127.0.0.1:*"]);
    let near = near(&proxy).await;
    let target = "127.0.0.1:9".parse().unwrap();
    let flow = near.tunnel.udp(&target, std::time::Duration::from_secs(60), |_| Ok(()));
    assert!(flow.send(Bytes::from_static(b"x")));
    let said = near.said.wait("udp 127.0.0.1:9: ").await;
    assert!(said.contains("destination_ip_prohibited"), "{said}");
    while flow.send(Bytes::from_static(b"x")) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_flow_begins_again_at_another_proxy_of_the_same_address() {
    let (proxy, target) = (Proxy::start(&["127.0.0.1:*"]), echo_udp().await);
    let near = near(&proxy).await;
    let program = forwarded(&near, target).await;
    assert_eq!(exchange(&program, b"before").await, b"before");
    let proxy = proxy.restart(crate::support::config(&["127.0.0.1:*"])).await;
    near.said.wait("connected again").await;
    assert_eq!(exchange(&program, b"after").await, b"after");
    proxy.said.wait(&format!("udp {target} begun")).await;
}
