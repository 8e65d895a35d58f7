//! SOCKS5.

use std::net::SocketAddr;

use sutura_tunnel::access::Target;
use sutura_tunnel::local::serve_socks;
use sutura_tunnel::local::socks::{read_udp, write_udp};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};

use crate::support::{IntoTarget, Near, Proxy, converse, echo, echo_udp, listener, near};

async fn served(near: &Near) -> SocketAddr {
    let (listener, at) = listener().await;
    tokio::spawn(serve_socks(listener, near.tunnel.clone()));
    at
}

/// Says what it does not want to authenticate, and asks for a command and a target; returns the code of the reply.
async fn ask(at: SocketAddr, command: u8, target: &Target) -> (TcpStream, u8, SocketAddr) {
    let mut tcp = TcpStream::connect(at).await.unwrap();
    tcp.write_all(b"\x05\x01\x00").await.unwrap();
    let mut method = [0; 2];
    tcp.read_exact(&mut method).await.unwrap();
    assert_eq!(method, [5, 0]);
    let mut request = vec![5, command];
    let mut address = Vec::new();
    write_udp(&mut address, target);
    request.extend_from_slice(&address[2..]);
    tcp.write_all(&request).await.unwrap();
    let mut reply = [0; 10];
    tcp.read_exact(&mut reply).await.unwrap();
    let ip: [u8; 4] = reply[4..8].try_into().unwrap();
    let port = u16::from_be_bytes(reply[8..10].try_into().unwrap());
    (tcp, reply[1], (ip, port).into())
}

#[tokio::test]
async fn programs_reach_addresses_and_names() {
    let proxy = Proxy::start(&["127.0.0.1:*", "[::1]:*"]);
    let near = near(&proxy).await;
    let (at, target) = (served(&near).await, echo().await);
    for host in ["127.0.0.1", "localhost"] {
        let target: Target = format!("{host}:{}", target.port()).parse().unwrap();
        let (tcp, code, _) = ask(at, 1, &target).await;
        assert_eq!(code, 0, "{target}");
        assert_eq!(converse(tcp, b"hello").await.unwrap(), b"hello");
    }
}

#[tokio::test]
async fn programs_learn_why_there_is_no_connection() {
    let proxy = Proxy::start(&["127.0.0.1:*", "*.invalid:*"]);
    let near = near(&proxy).await;
    let at = served(&near).await;
    let (listener, closed) = listener().await;
    drop(listener);
    for (target, expected) in [
        (closed.into_target(), 5),
        ("10.0.0.1:22".parse().unwrap(), 2),
        ("no.such.invalid:1".parse().unwrap(), 4),
    ] {
        let (_, code, _) = ask(at, 1, &target).await;
        assert_eq!(code, expected, "{target}");
    }
    // BIND.
    let (_, code, _) = ask(at, 2, &closed.into_target()).await;
    assert_eq!(code, 7);
}

#[tokio::test]
async fn datagrams_have_an_association() {
    let (proxy, target) = (Proxy::start(&["127.0.0.1:*"]), echo_udp().await);
    let near = near(&proxy).await;
    let at = served(&near).await;
    let any = "0.0.0.0:1".parse().unwrap();
    let (tcp, code, relay) = ask(at, 3, &any).await;
    assert_eq!(code, 0);
    let program = UdpSocket::bind(("127.0.0.1", 0)).await.unwrap();
    program.connect(relay).await.unwrap();
    let target = target.into_target();
    let mut buffer = vec![0; 2048];
    for payload in [&b"one"[..], b"two", b""] {
        let mut datagram = Vec::new();
        write_udp(&mut datagram, &target);
        datagram.extend_from_slice(payload);
        program.send(&datagram).await.unwrap();
        let size = program.recv(&mut buffer).await.unwrap();
        let (from, header) = read_udp(&buffer[..size]).unwrap();
        assert_eq!((from, &buffer[header..size]), (target.clone(), payload));
    }
    // Garbage is dropped. The association ends with its connection.
    program.send(b"\0\0\x01garbage").await.unwrap();
    drop(tcp);
    while program.send(b"\0\0\0\x01").await.is_ok() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn what_is_no_socks_is_told_apart_and_closed() {
    let proxy = Proxy::start(&["127.0.0.1:*"]);
    let near = near(&proxy).await;
    let at = served(&near).await;
    for (bytes, why) in [
        (&b"\x04\x01\0\x50\x7f\0\0\x01\0"[..], "SOCKS4"),
        (b"GET / HTTP/1.1\r\n\r\n", "--http"),
        (b"\x16\x03\x01\0\0", "does not speak SOCKS5"),
        (b"\x05\x01\x02", "authenticate"),
        (b"\x05\x01\x00\x05\x01\x00\x03\x00\x00\x50", "address"),
    ] {
        let mut tcp = TcpStream::connect(at).await.unwrap();
        tcp.write_all(bytes).await.unwrap();
        near.said.wait(why).await;
        let mut rest = Vec::new();
        // Closed or reset, but over.
        let _ = tcp.read_to_end(&mut rest).await;
        assert!(rest.len() <= 12, "{rest:?}");
    }
}
