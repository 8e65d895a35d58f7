//! What a client may do at most.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{IntoTarget, Proxy, config, converse, echo, forwarded, near};

#[tokio::test]
async fn a_client_has_so_many_flows_and_no_more() {
    let mut config = config(&["127.0.0.1:*"]);
    config.limits.flows = Some(2);
    let proxy = Proxy::with(config);
    let near = near(&proxy).await;
    let target = echo().await;
    let at = forwarded(&near, target).await;
    let mut programs = Vec::new();
    for _ in 0..2 {
        let mut program = TcpStream::connect(at).await.unwrap();
        program.write_all(b"x").await.unwrap();
        assert_eq!(program.read_u8().await.unwrap(), b'x');
        programs.push(program);
    }
    let refusal = near.tunnel.tcp(&target.into_target()).await.unwrap_err();
    let text = refusal.to_string();
    assert!(text.contains("--max-flows") && text.contains("connection_limit_reached"), "{text}");
    // There is room again once one is over.
    drop(programs.pop());
    proxy.said.wait("ended").await;
    assert!(near.tunnel.tcp(&target.into_target()).await.is_ok());
}

#[tokio::test]
async fn a_client_carries_so_many_bytes_and_no_more() {
    let mut config = config(&["127.0.0.1:*"]);
    config.limits.bytes = Some(100_000);
    let proxy = Proxy::with(config);
    let near = near(&proxy).await;
    let target = echo().await;
    let at = forwarded(&near, target).await;
    let tcp = TcpStream::connect(at).await.unwrap();
    assert_eq!(converse(tcp, &[1; 1000]).await.unwrap().len(), 1000);
    let tcp = TcpStream::connect(at).await.unwrap();
    assert!(converse(tcp, &[1; 1 << 20]).await.is_err());
    let refusal = near.tunnel.tcp(&target.into_target()).await.unwrap_err();
    assert!(refusal.to_string().contains("--max-bytes"), "{refusal}");
}

#[tokio::test]
async fn a_client_that_is_slowed_down_gets_all_in_the_end() {
    let mut config = config(&["127.0.0.1:*"]);
    config.limits.bytes_per_second = Some(2_000_000);
    let proxy = Proxy::with(config);
    let near = near(&proxy).await;
    let at = forwarded(&near, echo().await).await;
    let tcp = TcpStream::connect(at).await.unwrap();
    assert_eq!(converse(tcp, &[1; 1_500_000]).await.unwrap().len(), 1_500_000);
}
