//! Flows of TCP.

use std::sync::atomic::Ordering::Relaxed;

use sutura_tunnel::flow::Rules;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{
    Proxy, TOKEN, config, converse, echo, forwarded, forwarded_to, listener, near, near_at,
    pattern, raw,
};

#[tokio::test]
async fn bytes_go_both_ways_to_their_ends() {
    let (proxy, target) = (Proxy::start(&["127.0.0.1:*"]), echo().await);
    let near = near(&proxy).await;
    let at = forwarded(&near, target).await;
    for size in [0, 8, 1 << 20] {
        let bytes = pattern(size);
        let tcp = TcpStream::connect(at).await.unwrap();
        assert!(converse(tcp, &bytes).await.unwrap() == bytes, "{size}");
        proxy.said.wait(&format!("tcp {target} ended: {size} {size} true")).await;
    }
}

#[tokio::test]
async fn one_direction_may_end_long_before_the_other() {
    let (proxy, (listener, target)) = (Proxy::start(&["127.0.0.1:*"]), listener().await);
    let near = near(&proxy).await;
    let at = forwarded(&near, target).await;
    let mut program = TcpStream::connect(at).await.unwrap();
    let (mut server, _) = listener.accept().await.unwrap();
    program.write_all(b"question").await.unwrap();
    program.shutdown().await.unwrap();
    let mut question = Vec::new();
    server.read_to_end(&mut question).await.unwrap();
    server.write_all(b"answer").await.unwrap();
    let mut answer = [0; 6];
    program.read_exact(&mut answer).await.unwrap();
    server.write_all(b" and more").await.unwrap();
    drop(server);
    let mut rest = Vec::new();
    program.read_to_end(&mut rest).await.unwrap();
    assert_eq!(
        (&question[..], &answer, &rest[..]),
        (&b"question"[..], b"answer", &b" and more"[..])
    );
}

#[tokio::test]
async fn a_reset_goes_through_in_both_directions() {
    let (proxy, (listener, target)) = (Proxy::start(&["127.0.0.1:*"]), listener().await);
    let near = near(&proxy).await;
    let at = forwarded(&near, target).await;
    for by_program in [true, false] {
        let mut program = TcpStream::connect(at).await.unwrap();
        program.write_all(b"x").await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        assert_eq!(server.read_u8().await.unwrap(), b'x');
        let (mut one, other) = if by_program { (server, program) } else { (program, server) };
        other.set_zero_linger().unwrap();
        drop(other);
        let error = one.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    }
}

#[tokio::test]
async fn what_the_target_does_not_take_is_not_read_from_the_program() {
    let (proxy, (listener, target)) = (Proxy::start(&["127.0.0.1:*"]), listener().await);
    let near = near(&proxy).await;
    let at = forwarded(&near, target).await;
    let program = TcpStream::connect(at).await.unwrap();
    let (mut server, _) = listener.accept().await.unwrap();
    // Far more than all buffers on the way hold.
    let bytes = pattern(64 << 20);
    let sending = tokio::spawn({
        let bytes = bytes.clone();
        async move { converse(program, &bytes).await }
    });
    let mut got = vec![0; bytes.len()];
    server.read_exact(&mut got[..8]).await.unwrap();
    assert!(!sending.is_finished());
    server.read_exact(&mut got[8..]).await.unwrap();
    assert!(got == bytes);
    drop(server);
    assert_eq!(sending.await.unwrap().unwrap(), b"");
}

#[tokio::test]
async fn a_target_that_no_rule_allows_is_refused_with_what_to_set() {
    let proxy = Proxy::start(&["*", "127.0.0.1:9"]);
    let near = near(&proxy).await;
    // A name that leads to an address that is not allowed is refused as well.
    for (target, why) in [
        ("127.0.0.1:1", "--allow 127.0.0.1:1 would allow it"),
        ("localhost:1", "would allow it"),
        ("10.0.0.1:22", "--allow 10.0.0.1:22 would allow it"),
    ] {
        let refusal = near.tunnel.tcp(&target.parse().unwrap()).await.unwrap_err();
        let text = refusal.to_string();
        assert!(text.contains(why) && text.contains("destination_ip_prohibited"), "{text}");
        proxy.said.wait(&format!("ann: tcp {target} refused")).await;
        let at = forwarded_to(&near, target.parse().unwrap()).await;
        let mut program = TcpStream::connect(at).await.unwrap();
        let error = program.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    }
}

#[tokio::test]
async fn targets_that_cannot_be_reached_are_told_apart() {
    let proxy = Proxy::start(&["127.0.0.1:*", "*.invalid:*"]);
    let near = near(&proxy).await;
    let (listener, closed) = listener().await;
    drop(listener);
    for (target, cause) in
        [(closed.to_string(), "connection_refused"), ("no.such.invalid:1".into(), "dns_")]
    {
        let refusal = near.tunnel.tcp(&target.parse().unwrap()).await.unwrap_err();
        assert!(refusal.to_string().contains(cause), "{refusal}");
    }
}

#[tokio::test]
async fn a_wrong_token_is_told_and_ends_the_tunnel() {
    let proxy = Proxy::with(config(&["*"]));
    let near = near_at(vec![proxy.address], proxy.fingerprint(), &TOKEN.replace('0', "1"));
    let why = near.tunnel.ready().await.unwrap_err();
    assert!(why.contains("http_request_denied") && why.contains("--token-file"), "{why}");
}

#[tokio::test]
async fn the_next_proxy_is_tried() {
    let proxy = Proxy::start(&["127.0.0.1:*"]);
    // Nobody is there.
    let nowhere = std::net::UdpSocket::bind(("127.0.0.1", 0)).unwrap();
    let addresses = vec![nowhere.local_addr().unwrap(), proxy.address];
    let near = near_at(addresses, proxy.fingerprint(), TOKEN);
    near.tunnel.ready().await.unwrap();
    let at = forwarded(&near, echo().await).await;
    let tcp = TcpStream::connect(at).await.unwrap();
    assert_eq!(converse(tcp, b"hello").await.unwrap(), b"hello");
}

#[tokio::test]
async fn what_flows_carry_counts_while_they_last() {
    let (proxy, target) = (Proxy::start(&["127.0.0.1:*"]), echo().await);
    let near = near(&proxy).await;
    let mut program = TcpStream::connect(forwarded(&near, target).await).await.unwrap();
    program.write_all(b"hello").await.unwrap();
    program.read_exact(&mut [0; 5]).await.unwrap();
    let totals = near.tunnel.totals();
    // The last byte counts just after the program has it.
    while totals.received.load(Relaxed) < 5 {
        tokio::task::yield_now().await;
    }
    assert_eq!((totals.sent.load(Relaxed), totals.received.load(Relaxed)), (5, 5));
    assert_eq!(totals.flows.load(Relaxed), 1);
}

/// What the proxy sends is protected as its rules say, whatever the client wishes.
#[tokio::test]
async fn each_end_sends_a_flow_as_its_own_rules_say() {
    let target = echo().await;
    let mut repaired = Vec::new();
    for rule in ["tcp protect tail:burst=1", "tcp protect none"] {
        let mut config = config(&["127.0.0.1:*"]);
        config.rules = Rules::parse(rule).unwrap().into();
        let proxy = Proxy::with(config);
        let (client, _endpoint) = raw(&proxy).await;
        let bearer = format!("Bearer {TOKEN}");
        let fields = [("proxy-authorization", bearer.as_bytes())];
        let mut stream = client.tunnel(&target.to_string(), &fields, None).await.unwrap();
        assert_eq!(stream.recv_response().await.unwrap().status, 200);
        let mut back = 0;
        stream.send_data(pattern(50_000).into()).await.unwrap();
        stream.finish().await.unwrap();
        while let Some(data) = stream.recv_data().await.unwrap() {
            back += data.len();
        }
        assert_eq!(back, 50_000, "{rule}");
        let stats = || client.connection().stats().fec;
        // The repair symbols of the end come after it.
        while rule.contains("tail") && stats().repair_symbols_received == 0 {
            tokio::task::yield_now().await;
        }
        repaired.push(stats().source_symbols_received > 0);
    }
    assert_eq!(repaired, [true, false]);
}
