//! Connections to the proxy that lead to this side.

use sutura_tunnel::client::Reverse;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{
    IntoTarget, Near, Proxy, Said, config, converse, echo, listener, near, rules,
};

/// Has the proxy listen at a free port, and says when it does.
async fn listening(near: &Near, reverse: Reverse) -> Said {
    let said = Said::default();
    let (tunnel, told) = (near.tunnel.clone(), said.clone());
    tokio::spawn(async move {
        tunnel.reverse(reverse, move |at| sutura_tunnel::client::Notices::note(&told, at)).await;
    });
    said
}

#[tokio::test]
async fn many_connections_come_to_this_side() {
    let (listener, free) = listener().await;
    drop(listener);
    let mut config = config(&[]);
    config.allow_listen = rules(&["127.0.0.1:*"]);
    let proxy = Proxy::with(config);
    let near = near(&proxy).await;
    let reverse = Reverse { listen: free.into_target(), to: echo().await.into_target() };
    let said = listening(&near, reverse).await;
    assert_eq!(said.wait("127.0.0.1").await, free.to_string());
    // More at once than requests wait.
    let mut conversations = tokio::task::JoinSet::new();
    for n in 0..20_u8 {
        conversations.spawn(async move {
            let tcp = TcpStream::connect(free).await.unwrap();
            converse(tcp, &[n; 1000]).await.unwrap() == [n; 1000]
        });
    }
    assert!(conversations.join_all().await.into_iter().all(|right| right));
    // When this side goes, nobody listens any more.
    proxy.said.wait(&format!("listen {free} ended: 1000 1000 true")).await;
}

#[tokio::test]
async fn listening_must_be_allowed() {
    let proxy = Proxy::start(&["*", "127.0.0.1:*"]);
    let near = near(&proxy).await;
    let to = "127.0.0.1:9".parse().unwrap();
    listening(&near, Reverse { listen: "127.0.0.1:8080".parse().unwrap(), to }).await;
    let said = near.said.wait("-R 127.0.0.1:8080:127.0.0.1:9: ").await;
    assert!(said.contains("--allow-listen 127.0.0.1:8080 would allow it"), "{said}");
}

#[tokio::test]
async fn connections_to_the_proxy_outlive_it() {
    let (listener, free) = listener().await;
    drop(listener);
    let mut config = config(&[]);
    config.allow_listen = rules(&["127.0.0.1:*"]);
    let proxy = Proxy::with(config.clone());
    let near = near(&proxy).await;
    let reverse = Reverse { listen: free.into_target(), to: echo().await.into_target() };
    let said = listening(&near, reverse).await;
    said.wait("127.0.0.1").await;
    let mut old = TcpStream::connect(free).await.unwrap();
    old.write_all(b"x").await.unwrap();
    assert_eq!(old.read_u8().await.unwrap(), b'x');
    let before = said.count("127.0.0.1");
    let proxy = proxy.hand_over(config).await;
    assert_eq!(converse(old, b"hello").await.unwrap(), b"hello");
    proxy.said.wait(&format!("ann: listen {free} ended: 6 6 true")).await;
    // It is listened there anew.
    said.wait_for("127.0.0.1", before + 1).await;
    let new = TcpStream::connect(free).await.unwrap();
    assert_eq!(converse(new, b"again").await.unwrap(), b"again");
}
