//! Flows whose connection is lost.

use std::net::SocketAddr;

use sutura_relay::{Config, Relay};
use sutura_tunnel::masque::{AUTHORIZATION, FLOW, FLOWS, FLOWS_PATH, FlowRequest, FlowToken};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{
    Near, OTHER_TOKEN, Proxy, TOKEN, Transfer, alert, config, converse, echo, forwarded, listener,
    near, pattern, raw,
};

/// A relay at any port, or at one where there was one.
fn relay(at: SocketAddr, to: SocketAddr) -> (Relay, SocketAddr) {
    let relay = Relay::start(&Config::new(at, to)).unwrap();
    let at = relay.local_addr();
    (relay, at)
}

/// A tunnel through a relay.
async fn through_relay(proxy: &Proxy) -> (Near, Relay, SocketAddr) {
    let (relay, at) = relay(([127, 0, 0, 1], 0).into(), proxy.address);
    let near = alert(at, proxy.fingerprint());
    near.tunnel.ready().await.unwrap();
    (near, relay, at)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_byte_is_lost_or_doubled_when_the_connection_is_lost_in_the_middle() {
    let (proxy, target) = (Proxy::start(&["127.0.0.1:*"]), echo().await);
    let (near, mut cut, place) = through_relay(&proxy).await;
    let at = forwarded(&near, target).await;
    let bytes = pattern(24 << 20);
    let mut transfer = Transfer::begin(at, &bytes).await;
    for losses in 1..=2 {
        transfer.read(losses * (6 << 20)).await;
        let _ = cut.stop();
        near.said.wait_for("the connection is lost", losses).await;
        cut = relay(place, proxy.address).0;
        near.said.wait_for("connected again", losses).await;
    }
    let back = transfer.end().await;
    assert!(back == bytes, "{} of {} bytes", back.len(), bytes.len());
    proxy.said.wait_for("resumed", 2).await;
    let size = bytes.len();
    proxy.said.wait(&format!("tcp {target} ended: {size} {size} true")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_and_silent_flows_outlive_the_connection_too() {
    let (proxy, (listener, target)) = (Proxy::start(&["127.0.0.1:*"]), listener().await);
    let (near, cut, place) = through_relay(&proxy).await;
    let at = forwarded(&near, target).await;
    let mut program = TcpStream::connect(at).await.unwrap();
    program.write_all(b"question").await.unwrap();
    let (mut server, _) = listener.accept().await.unwrap();
    let mut question = [0; 8];
    server.read_exact(&mut question).await.unwrap();
    let _ = cut.stop();
    // While nobody hears of it.
    program.shutdown().await.unwrap();
    server.write_all(b"answer").await.unwrap();
    drop(server);
    near.said.wait("the connection is lost").await;
    let (_relay, _) = relay(place, proxy.address);
    let mut answer = Vec::new();
    program.read_to_end(&mut answer).await.unwrap();
    assert_eq!(answer, b"answer");
    proxy.said.wait(&format!("tcp {target} ended: 8 6 true")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn flows_that_a_proxy_has_forgotten_are_reset_at_once() {
    let (proxy, target) = (Proxy::start(&["127.0.0.1:*"]), echo().await);
    let near = near(&proxy).await;
    let at = forwarded(&near, target).await;
    let mut program = TcpStream::connect(at).await.unwrap();
    program.write_all(b"x").await.unwrap();
    assert_eq!(program.read_u8().await.unwrap(), b'x');
    let _proxy = proxy.restart(config(&["127.0.0.1:*"])).await;
    let error = program.read_u8().await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    // New ones work.
    let tcp = TcpStream::connect(at).await.unwrap();
    assert_eq!(converse(tcp, b"again").await.unwrap(), b"again");
}

#[tokio::test]
async fn a_flow_that_its_client_gives_up_ends_at_the_proxy() {
    let (proxy, (listener, target)) = (Proxy::start(&["127.0.0.1:*"]), listener().await);
    let near = near(&proxy).await;
    let at = forwarded(&near, target).await;
    let _program = TcpStream::connect(at).await.unwrap();
    let (mut server, _) = listener.accept().await.unwrap();
    near.tunnel.close();
    let error = server.read_u8().await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    proxy.said.wait("ended: 0 0 false").await;
}

/// Asks for a target with a token and a value of the field of flows; returns the status and that field of the answer.
pub async fn ask(
    proxy: &Proxy,
    target: SocketAddr,
    token: &str,
    flow: &str,
) -> (sutura::http::RequestStream, u16, Option<Vec<u8>>) {
    let (client, endpoint) = raw(proxy).await;
    let shown = format!("Bearer {token}");
    let fields = [(AUTHORIZATION, shown.as_bytes()), (FLOW, flow.as_bytes())];
    let mut progress =
        client.connect(FLOWS, "localhost", FLOWS_PATH, &fields[..1], None).await.unwrap();
    assert_eq!(progress.recv_response().await.unwrap().status, 200);
    let mut stream = client.tunnel(&target.to_string(), &fields, None).await.unwrap();
    let response = stream.recv_response().await.unwrap();
    let flow = response.fields.into_iter().find(|(name, _)| name == FLOW);
    // They are kept as long as the process runs.
    std::mem::forget((client, endpoint, progress));
    (stream, response.status, flow.map(|(_, value)| value))
}

#[tokio::test]
async fn a_flow_is_its_clients_alone() {
    let (proxy, target) = (Proxy::start(&["127.0.0.1:*"]), echo().await);
    let token = FlowToken([7; 16]);
    let begin = FlowRequest { token, taken: None }.to_field();
    let (_stream, status, flow) = ask(&proxy, target, TOKEN, &begin).await;
    assert_eq!((status, flow.as_deref()), (200, Some(&b"0"[..])));
    let resumption = FlowRequest { token, taken: Some(0) }.to_field();
    let (_, status, flow) = ask(&proxy, target, OTHER_TOKEN, &resumption).await;
    assert_eq!((status, flow), (404, None));
    let nonsense = FlowRequest { token: FlowToken([0; 16]), taken: Some(0) }.to_field();
    assert_eq!(ask(&proxy, target, TOKEN, &nonsense).await.1, 404);
    // What was never sent cannot have been taken; the flow goes on all the same.
    let ahead = FlowRequest { token, taken: Some(1000) }.to_field();
    assert_eq!(ask(&proxy, target, TOKEN, &ahead).await.1, 400);
    let (mut stream, status, _) = ask(&proxy, target, TOKEN, &resumption).await;
    assert_eq!(status, 200);
    stream.send_data("hello".into()).await.unwrap();
    assert_eq!(stream.recv_data().await.unwrap().unwrap(), "hello");
}

#[tokio::test]
async fn a_request_that_is_made_again_leads_to_the_same_connection() {
    let (proxy, (listener, target)) = (Proxy::start(&["127.0.0.1:*"]), listener().await);
    let begin = FlowRequest { token: FlowToken([7; 16]), taken: None }.to_field();
    let (_first, status, flow) = ask(&proxy, target, TOKEN, &begin).await;
    assert_eq!((status, flow.as_deref()), (200, Some(&b"0"[..])));
    let (mut server, _) = listener.accept().await.unwrap();
    server.write_all(b"greeting").await.unwrap();
    // As if that answer, and what followed, had been lost.
    let (mut again, status, flow) = ask(&proxy, target, TOKEN, &begin).await;
    assert_eq!((status, flow.as_deref()), (200, Some(&b"0"[..])));
    assert_eq!(again.recv_data().await.unwrap().unwrap(), "greeting");
    again.send_data("hello".into()).await.unwrap();
    let mut hello = [0; 5];
    server.read_exact(&mut hello).await.unwrap();
    assert_eq!(&hello, b"hello");
    // Another client may use the same name, and has a flow of its own.
    let (_other, status, flow) = ask(&proxy, target, OTHER_TOKEN, &begin).await;
    assert_eq!((status, flow), (200, None));
    listener.accept().await.unwrap();
}
