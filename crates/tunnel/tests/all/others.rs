//! Proxies by others, which lack what this end needs.

use std::time::Duration;

use bytes::Bytes;
use sutura::http;
use sutura_tunnel::client::MachineError;
use sutura_tunnel::masque::UdpTemplate;
use sutura_tunnel::server::http_config;
use sutura_tunnel::tun::IpClient;

use crate::support::{Near, agreeable};

const UDP: &str = "udp 127.0.0.1:9: the proxy cannot carry this: ";

/// Sends a datagram to nobody.
fn send(near: &Near) {
    let target = "127.0.0.1:9".parse().unwrap();
    let flow = near.tunnel.udp(&target, Duration::from_secs(60), |_| Ok(()));
    assert!(flow.send(Bytes::from_static(b"x")));
}

#[tokio::test]
async fn a_proxy_without_extended_connect_carries_tcp_only() {
    let (near, requests) = agreeable(http::Config::default(), UdpTemplate::default());
    near.tunnel.ready().await.unwrap();
    send(&near);
    let said = near.said.wait(UDP).await;
    assert!(said.contains("SETTINGS_ENABLE_CONNECT_PROTOCOL"), "{said}");
    near.tunnel.tcp(&"127.0.0.1:9".parse().unwrap()).await.unwrap();
    requests.wait("CONNECT").await;
    assert_eq!(requests.count("CONNECT"), 1);
    let machine = IpClient::new("sutura%d", Vec::new(), &[]);
    let refused = near.tunnel.machine(machine, |_| {}).await;
    let Err(MachineError::Refused(refusal)) = refused else { panic!("{refused:?}") };
    assert_eq!(refusal.status(), 501);
    assert!(refusal.to_string().contains("SETTINGS_ENABLE_CONNECT_PROTOCOL"), "{refusal}");
}

#[tokio::test]
async fn a_proxy_without_datagrams_carries_no_udp() {
    let mut config = http_config();
    config.enable_datagrams = false;
    let (near, _) = agreeable(config, UdpTemplate::default());
    send(&near);
    let said = near.said.wait(UDP).await;
    assert!(said.contains("SETTINGS_H3_DATAGRAM"), "{said}");
}

#[tokio::test]
async fn a_proxy_is_asked_at_the_path_of_its_template() {
    let template = "/masque{?target_host,target_port}".parse().unwrap();
    let (near, requests) = agreeable(http_config(), template);
    send(&near);
    requests.wait("CONNECT /masque?target_host=127.0.0.1&target_port=9").await;
}
