//! Paths that fail: links that are down, other addresses, and packets that are too long.

use std::time::Duration;

use sutura_relay::{Change, Config, Rebinding, Relay};
use sutura_tunnel::client::TunnelSocket;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{IntoTarget, Near, Proxy, TOKEN, alert, converse, echo, forwarded, near_at};

/// A relay to a proxy over a link each way, with changes of address.
fn relay(proxy: &Proxy, link: &str, rebindings: &[Rebinding]) -> Relay {
    let mut config =
        Config::new(([127, 0, 0, 1], 0).into(), proxy.address).link(&link.parse().unwrap());
    config.rebindings = rebindings.to_vec();
    Relay::start(&config).unwrap()
}

async fn through(relay: &Relay, proxy: &Proxy) -> Near {
    let near = near_at(vec![relay.local_addr()], proxy.fingerprint(), TOKEN);
    near.tunnel.ready().await.unwrap();
    near
}

/// Sends a byte and waits for it to come back.
async fn ping(program: &mut TcpStream) {
    program.write_all(b"x").await.unwrap();
    assert_eq!(program.read_u8().await.unwrap(), b'x');
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flow_outlives_a_link_that_is_down_for_20_seconds() {
    let (proxy, target) = (Proxy::start(&["127.0.0.1:*"]), echo().await);
    let relay = relay(&proxy, "outage=1s..21s", &[]);
    let near = alert(relay.local_addr(), proxy.fingerprint());
    near.tunnel.ready().await.unwrap();
    let mut program = TcpStream::connect(forwarded(&near, target).await).await.unwrap();
    while near.said.count("the connection is lost") == 0 {
        // The last of them are on their way when the link goes down.
        let pinging = ping(&mut program);
        let lost = near.said.wait("the connection is lost");
        tokio::select! {
            () = pinging => {}
            _ = lost => break,
        }
    }
    near.said.wait("connected again").await;
    // What was on its way comes, too, and nothing comes twice.
    program.write_all(b"end").await.unwrap();
    program.shutdown().await.unwrap();
    let mut rest = Vec::new();
    program.read_to_end(&mut rest).await.unwrap();
    let text = String::from_utf8(rest).unwrap();
    assert!(matches!(&*text, "end" | "xend"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_address_or_port_is_not_noticed() {
    let (proxy, target) = (Proxy::start(&["127.0.0.1:*"]), echo().await);
    let moves = [(300, Change::Port), (600, Change::Address), (900, Change::Port)];
    let moves = moves.map(|(at, change)| Rebinding { at: Duration::from_millis(at), change });
    let relay = relay(&proxy, "delay=5ms", &moves);
    let near = through(&relay, &proxy).await;
    let mut program = TcpStream::connect(forwarded(&near, target).await).await.unwrap();
    let mut pings = 0;
    while relay.stats().rebindings < 3 || pings < 100 {
        ping(&mut program).await;
        pings += 1;
    }
    assert_eq!(near.said.count("lost"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_of_the_least_size_carries_all_but_quic() {
    let (proxy, target) = (Proxy::start(&["127.0.0.1:*"]), echo().await);
    // Headers of IP and UDP, and packets of 1,200 bytes (RFC 9000 section 14).
    let relay = relay(&proxy, "mtu=1228b", &[]);
    let near = through(&relay, &proxy).await;
    let tcp = TcpStream::connect(forwarded(&near, target).await).await.unwrap();
    let bytes = vec![7; 300_000];
    assert!(converse(tcp, &bytes).await.unwrap() == bytes);
    let socket = TunnelSocket::new(near.tunnel.clone());
    let refusal = socket.open(&target.into_target()).await.unwrap_err().to_string();
    assert!(refusal.contains("QUIC needs 1200"), "{refusal}");
}
