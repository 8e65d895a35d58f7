//! How programs come into a tunnel: forwarded ports, SOCKS5, and an HTTP proxy, each at an address of this machine.

mod forward;
mod http_proxy;
pub mod socks;
mod udp;

use std::time::Duration;

use tokio::net::TcpStream;

use crate::access::Target;
use crate::client::{Refusal, Tunnel};

pub use forward::forward_tcp;
pub use http_proxy::serve_http;
pub use socks::serve_socks;
pub use udp::forward_udp;

/// Programs that are connected to one of these addresses at a time, at most.
pub const MAX_PROGRAMS: usize = 4096;
/// How long a program may take to say what it wants.
pub const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// Flows of UDP from one address or association, at most; the one that was used least recently gives way.
pub const MAX_UDP_FLOWS: usize = 1024;
/// How long a flow of UDP may be silent; a little less than at the proxy.
pub const UDP_IDLE: Duration = Duration::from_secs(115);

/// Begins a flow for a program, and says why if there is none.
async fn begin(tunnel: &Tunnel, target: &Target) -> Result<crate::client::TcpTunnel, Refusal> {
    let begun = tunnel.tcp(target).await;
    if let Err(refusal) = &begun {
        tunnel.complain(&format!("{target}: {refusal}"));
    }
    begun
}

/// Ends a program's connection in a way that it takes for a failure.
fn reset(tcp: TcpStream) {
    // The program then sees an end instead.
    let _ = tcp.set_zero_linger();
    drop(tcp);
}
