//! Helpers shared by the tests, such as TLS for both implementations.

pub mod datagrams;
pub mod supply;
pub mod tls;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use sutura_link::LinkConfig;
use sutura_proto::{Algorithm, Connection, Protection, TransportConfig};
use sutura_sim::{App, Clock, Host, Network, NodeId};

pub const MS: Duration = Duration::from_millis(1);

/// The algorithms that come with the transport.
pub const ALGORITHMS: [Algorithm; 3] = [Algorithm::NEW_RENO, Algorithm::CUBIC, Algorithm::BBR];

pub fn link(text: &str) -> LinkConfig {
    text.parse().unwrap()
}

/// Repair symbols at the end of the data.
pub fn tail(burst: u32) -> Option<Protection> {
    Some(Protection::tail(burst, Duration::ZERO))
}

/// Repair symbols after each piece of the data.
pub fn incremental(burst: u32, delay: Duration) -> Option<Protection> {
    Some(Protection::incremental(burst, delay))
}

pub fn address(host: u8) -> SocketAddr {
    (Ipv4Addr::new(192, 0, 2, host), 4433).into()
}

/// A client and a server with TLS, the same link each way, and a connection about to be opened.
pub fn hosts<S: App<Connection> + Default>(
    seed: u64,
    path: &str,
    transport: &TransportConfig,
    app: impl App<Connection>,
) -> (Network, NodeId, NodeId) {
    let mut network = Network::new(Clock::default());
    let accept = Box::new(|| Box::new(S::default()) as _);
    let client = network.add(address(1), Host::client(2 * seed));
    let server = Host::server(tls::our_server(transport), accept, 2 * seed + 1);
    let server = network.add(address(2), server);
    network.connect(client, server, &link(path), 2 * seed);
    network.connect(server, client, &link(path), 2 * seed + 1);
    let now = network.clock().at(Duration::ZERO);
    let host = network.node_mut::<Host>(client).unwrap();
    host.connect(now, tls::our_client(transport), address(2), tls::NAME, app).unwrap();
    (network, client, server)
}
