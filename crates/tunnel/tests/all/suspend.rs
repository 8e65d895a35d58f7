//! Flows that outlive the proxy.

use std::io::ErrorKind;
use std::time::Duration;

use sutura_tunnel::masque::{AUTHORIZATION, FlowRequest, FlowToken};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::resume::ask;
use crate::support::{
    OTHER_TOKEN, Proxy, TOKEN, Transfer, config, echo, forwarded, listener, near, pattern, raw,
};

const ALLOW: &[&str] = &["127.0.0.1:*"];

#[tokio::test(flavor = "multi_thread")]
async fn no_byte_is_lost_or_doubled_when_the_proxy_is_started_again_in_the_middle() {
    let (mut proxy, target) = (Proxy::start(ALLOW), echo().await);
    let near = near(&proxy).await;
    let at = forwarded(&near, target).await;
    let bytes = pattern(24 << 20);
    let mut transfer = Transfer::begin(at, &bytes).await;
    for restarts in 1..=2 {
        transfer.read(restarts * (6 << 20)).await;
        let said = proxy.said.clone();
        proxy = proxy.hand_over(config(ALLOW)).await;
        said.wait(&format!("ann: tcp {target} suspended")).await;
        assert_eq!((said.count(" ended:"), proxy.server.flows()), (0, 1));
        proxy.said.wait("resumed").await;
    }
    let back = transfer.end().await;
    assert!(back == bytes, "{} of {} bytes", back.len(), bytes.len());
    // The records are those of one flow.
    let size = bytes.len();
    proxy.said.wait(&format!("ann: tcp {target} ended: {size} {size} true")).await;
    assert_eq!(proxy.said.count("begun"), 0);
    while proxy.server.flows() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn flows_of_which_one_direction_has_ended_go_on() {
    let (proxy, (listener, target)) = (Proxy::start(ALLOW), listener().await);
    let near = near(&proxy).await;
    let at = forwarded(&near, target).await;
    let mut asking = TcpStream::connect(at).await.unwrap();
    let (mut asked, _) = listener.accept().await.unwrap();
    let mut sending = TcpStream::connect(at).await.unwrap();
    let (mut receiving, _) = listener.accept().await.unwrap();
    // The program's end of one, and the target's of the other.
    asking.write_all(b"question").await.unwrap();
    asking.shutdown().await.unwrap();
    let mut got = Vec::new();
    asked.read_to_end(&mut got).await.unwrap();
    receiving.write_all(b"go on").await.unwrap();
    receiving.shutdown().await.unwrap();
    let mut told = Vec::new();
    sending.read_to_end(&mut told).await.unwrap();
    assert_eq!((&*got, &*told), (&b"question"[..], &b"go on"[..]));

    let (place, flows) = proxy.suspend().await;
    assert_eq!(flows.len(), 2);
    // While there is no proxy, all of one flow ends, and bytes come of the other.
    asked.write_all(b"answer").await.unwrap();
    drop(asked);
    sending.write_all(b"the rest").await.unwrap();
    sending.shutdown().await.unwrap();
    let proxy = Proxy::again(place, config(ALLOW), flows);
    let (mut answer, mut rest) = (Vec::new(), Vec::new());
    asking.read_to_end(&mut answer).await.unwrap();
    receiving.read_to_end(&mut rest).await.unwrap();
    assert_eq!((&*answer, &*rest), (&b"answer"[..], &b"the rest"[..]));
    proxy.said.wait("ended: 8 6 true").await;
    proxy.said.wait("ended: 8 5 true").await;
}

#[tokio::test]
async fn a_flow_that_is_handed_over_is_its_clients_alone() {
    let (proxy, target) = (Proxy::start(ALLOW), echo().await);
    let token = FlowToken([7; 16]);
    let begin = FlowRequest { token, taken: None }.to_field();
    let (mut stream, status, _) = ask(&proxy, target, TOKEN, &begin).await;
    assert_eq!(status, 200);
    stream.send_data("before, ".into()).await.unwrap();
    assert_eq!(stream.recv_data().await.unwrap().unwrap(), "before, ");
    let proxy = proxy.hand_over(config(ALLOW)).await;
    // As if half of that had not been read.
    let resumption = FlowRequest { token, taken: Some(4) }.to_field();
    let (_, status, flow) = ask(&proxy, target, OTHER_TOKEN, &resumption).await;
    assert_eq!((status, flow), (404, None));
    // It has no place among the flows of another client, and its name is not taken there.
    let ahead = FlowRequest { token, taken: Some(9) }.to_field();
    assert_eq!(ask(&proxy, target, TOKEN, &ahead).await.1, 400);
    let (mut stream, status, flow) = ask(&proxy, target, TOKEN, &resumption).await;
    assert_eq!((status, flow.as_deref()), (200, Some(&b"8"[..])));
    assert_eq!(stream.recv_data().await.unwrap().unwrap(), "re, ");
    stream.send_data("after".into()).await.unwrap();
    assert_eq!(stream.recv_data().await.unwrap().unwrap(), "after");
}

#[tokio::test]
async fn a_flow_whose_client_does_not_come_back_is_reset() {
    let (proxy, (listener, target)) = (Proxy::start(ALLOW), listener().await);
    let begin = FlowRequest { token: FlowToken([7; 16]), taken: None }.to_field();
    let (_stream, status, _) = ask(&proxy, target, TOKEN, &begin).await;
    assert_eq!(status, 200);
    let (mut server, _) = listener.accept().await.unwrap();
    let mut config = config(ALLOW);
    config.resume_time = Some(Duration::from_millis(50));
    let proxy = proxy.hand_over(config).await;
    let error = server.read_u8().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    proxy.said.wait(&format!("ann: tcp {target} ended: 0 0 false")).await;
    let late = FlowRequest { token: FlowToken([7; 16]), taken: Some(0) }.to_field();
    assert_eq!(ask(&proxy, target, TOKEN, &late).await.1, 404);
}

#[tokio::test]
async fn a_flow_that_nobody_goes_on_with_is_reset_and_never_ended() {
    let (proxy, (listener, target)) = (Proxy::start(ALLOW), listener().await);
    let near = near(&proxy).await;
    let at = forwarded(&near, target).await;
    let mut program = TcpStream::connect(at).await.unwrap();
    let (mut server, _) = listener.accept().await.unwrap();
    proxy.said.wait("begun").await;
    let (place, flows) = proxy.suspend().await;
    assert_eq!(flows.len(), 1);
    drop(flows);
    // The target would take an end for the end of what it was to get.
    assert_eq!(server.read_u8().await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    let _proxy = Proxy::again(place, config(ALLOW), Vec::new());
    assert_eq!(program.read_u8().await.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn flows_that_cannot_be_resumed_are_reset_when_the_proxy_is_suspended() {
    let (proxy, (listener, target)) = (Proxy::start(ALLOW), listener().await);
    let (client, _endpoint) = raw(&proxy).await;
    let shown = format!("Bearer {TOKEN}");
    let fields = [(AUTHORIZATION, shown.as_bytes())];
    let mut stream = client.tunnel(&target.to_string(), &fields, None).await.unwrap();
    assert_eq!(stream.recv_response().await.unwrap().status, 200);
    let (mut server, _) = listener.accept().await.unwrap();
    let said = proxy.said.clone();
    let (_place, flows) = proxy.suspend().await;
    assert_eq!(flows.len(), 0);
    assert_eq!(server.read_u8().await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(said.count("ended: 0 0 false"), 1);
}

#[tokio::test]
async fn the_rules_and_limits_of_the_next_proxy_hold() {
    let (proxy, (listener, target)) = (Proxy::start(ALLOW), listener().await);
    let (other_listener, other) = crate::support::listener().await;
    let near = near(&proxy).await;
    let at = forwarded(&near, target).await;
    let mut servers = Vec::new();
    let mut programs = Vec::new();
    for _ in 0..2 {
        programs.push(TcpStream::connect(at).await.unwrap());
        servers.push(listener.accept().await.unwrap().0);
    }
    programs.push(TcpStream::connect(forwarded(&near, other).await).await.unwrap());
    let (mut forbidden, _) = other_listener.accept().await.unwrap();
    proxy.said.wait_for("begun", 3).await;
    let mut config = config(&[&target.to_string()]);
    config.limits = config.limits.with_flows(Some(1));
    let proxy = proxy.hand_over(config).await;
    assert_eq!(proxy.server.flows(), 1);
    assert_eq!(forbidden.read_u8().await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(proxy.said.count(&format!("tcp {other} refused: {other} is not allowed")), 1);
    assert_eq!(proxy.said.count("(connection_limit_reached)"), 1);
    // One of both goes on.
    proxy.said.wait("resumed").await;
    let mut alive = 0;
    for (program, server) in programs.iter_mut().zip(&mut servers) {
        server.write_all(b"x").await.ok();
        alive += usize::from(program.read_u8().await.is_ok());
    }
    assert_eq!(alive, 1);
}
