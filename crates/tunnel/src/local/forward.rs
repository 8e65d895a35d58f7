//! Connections to a port of this machine that go to one target.

use bytes::Bytes;
use tokio::net::TcpListener;

use super::{MAX_PROGRAMS, begin, reset};
use crate::access::Target;
use crate::bounded_accept::accept_all;
use crate::client::Tunnel;

/// Forwards connections, for ever.
pub async fn forward_tcp(listener: TcpListener, tunnel: Tunnel, target: Target) {
    accept_all(listener, MAX_PROGRAMS, |tcp| {
        let (tunnel, target) = (tunnel.clone(), target.clone());
        async move {
            match begin(&tunnel, &target).await {
                Ok(flow) => flow.carry(tcp, Bytes::new()).await,
                Err(_) => reset(tcp),
            }
        }
    })
    .await;
}
