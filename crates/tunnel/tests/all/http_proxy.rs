//! The HTTP proxy for programs.

use std::net::SocketAddr;

use sutura_tunnel::local::serve_http;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Near, Proxy, converse, echo, listener, near};

async fn served(near: &Near) -> SocketAddr {
    let (listener, at) = listener().await;
    tokio::spawn(serve_http(listener, near.tunnel.clone()));
    at
}

/// Sends a request; returns the head of the response.
async fn ask(at: SocketAddr, request: &str) -> (TcpStream, String) {
    let mut tcp = TcpStream::connect(at).await.unwrap();
    tcp.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(tcp.read_u8().await.unwrap());
    }
    (tcp, String::from_utf8(head).unwrap())
}

#[tokio::test]
async fn connect_leads_to_the_target() {
    let (proxy, target) = (Proxy::start(&["127.0.0.1:*"]), echo().await);
    let near = near(&proxy).await;
    let at = served(&near).await;
    // The program may send before it is told that it may.
    let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\nearly ");
    let (tcp, head) = ask(at, &request).await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert_eq!(converse(tcp, b"late").await.unwrap(), b"early late");
}

#[tokio::test]
async fn programs_learn_why_there_is_no_connection() {
    let proxy = Proxy::start(&["127.0.0.1:1"]);
    let near = near(&proxy).await;
    let at = served(&near).await;
    for (request, status, why) in [
        ("CONNECT 10.0.0.1:22 HTTP/1.1\r\n\r\n", 403, "destination_ip_prohibited"),
        ("CONNECT nonsense HTTP/1.1\r\n\r\n", 400, ""),
        ("GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n", 501, ""),
        ("garbage\r\n\r\n", 400, ""),
    ] {
        let (_, head) = ask(at, request).await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {head}");
        assert!(head.contains(why), "{head}");
    }
}
