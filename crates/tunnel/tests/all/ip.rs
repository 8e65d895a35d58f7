//! Requests for packets. What needs a device, and so root, is in `interop/tun.sh`.

use sutura_tunnel::client::{MachineError, Refusal};
use sutura_tunnel::tun::IpClient;

use crate::support::{Near, Proxy, near};

async fn refused(near: &Near) -> Refusal {
    let machine = IpClient::new("sutura%d", Vec::new(), &[]);
    match near.tunnel.machine(machine, |_| {}).await {
        Err(MachineError::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_proxy_without_a_device_says_so() {
    let proxy = Proxy::start(&["*"]);
    let near = near(&proxy).await;
    let refusal = refused(&near).await;
    assert_eq!(refusal.status(), 501);
    assert!(refusal.to_string().contains("--tun"), "{refusal}");
    proxy.said.wait("ann: ip * refused").await;
}
