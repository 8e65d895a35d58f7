//! Helpers shared by the tests, such as TLS for both implementations.

pub mod datagrams;
pub mod supply;
pub mod tls;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use sutura_link::LinkConfig;
use sutura_proto::{Algorithm, Connection, Event, Protection, TransportConfig};
use sutura_sim::quinn::QuinnHost;
use sutura_sim::{App, AppError, BulkClient, Clock, Host, Network, Node, NodeId, Scenario};

pub const MS: Duration = Duration::from_millis(1);

/// The algorithms that come with the transport.
pub const ALGORITHMS: [Algorithm; 3] = [Algorithm::NEW_RENO, Algorithm::CUBIC, Algorithm::BBR];

pub fn link(text: &str) -> LinkConfig {
    text.parse().unwrap()
}

/// A scenario over this path in both directions.
pub fn over(seed: u64, path: &str) -> Scenario {
    Scenario::new(seed).link(&link(path), &link(path))
}

/// The value in the middle.
pub fn median<T: PartialOrd + Copy>(values: impl IntoIterator<Item = T>) -> T {
    let mut values: Vec<T> = values.into_iter().collect();
    values.sort_by(|a, b| a.partial_cmp(b).unwrap());
    values[values.len() / 2]
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

/// A client and a server with the same link each way.
pub fn linked(
    seed: u64,
    path: &LinkConfig,
    client: impl Node,
    server: impl Node,
) -> (Network, NodeId, NodeId) {
    let mut network = Network::new(Clock::default());
    let client = network.add(address(1), client);
    let server = network.add(address(2), server);
    network.connect(client, server, path, 2 * seed);
    network.connect(server, client, path, 2 * seed + 1);
    (network, client, server)
}

/// Opens a connection from quinn's client to the server.
pub fn quinn_connects(
    network: &mut Network,
    client: NodeId,
    config: quinn_proto::ClientConfig,
    app: BulkClient,
) -> quinn_proto::ConnectionHandle {
    let now = network.clock().at(Duration::ZERO);
    let host = network.node_mut::<QuinnHost>(client).unwrap();
    host.connect(now, config, address(2), tls::NAME, app).unwrap()
}

/// The application of a host's first connection, if there is one. The host has no error.
#[track_caller]
pub fn app<T: App<Connection>>(network: &Network, node: NodeId) -> Option<&T> {
    let host = network.node::<Host>(node).unwrap();
    assert_eq!((host.connection_error(), host.app_error()), (None, None), "{:?}", network.now());
    host.app(host.connections().next()?.0)
}

/// An application, and what is done beside it whenever it is polled.
pub struct Beside<A, F>(pub A, pub F);

impl<A: App<Connection>, F: FnMut(Instant, &mut Connection) + 'static> App<Connection>
    for Beside<A, F>
{
    fn on_event(
        &mut self,
        now: Instant,
        quic: &mut Connection,
        event: Event,
    ) -> Result<(), AppError> {
        self.0.on_event(now, quic, event)
    }

    fn poll(&mut self, now: Instant, quic: &mut Connection) -> Result<Option<Instant>, AppError> {
        let wake_at = self.0.poll(now, quic)?;
        (self.1)(now, quic);
        Ok(wake_at)
    }
}

/// A client and a server with TLS, the same link each way, and a connection about to be opened.
pub fn hosts<S: App<Connection>>(
    seed: u64,
    path: &str,
    transport: &TransportConfig,
    app: impl App<Connection>,
    accept: impl Fn() -> S + 'static,
) -> (Network, NodeId, NodeId) {
    let accept = Box::new(move || Box::new(accept()) as _);
    let server = Host::server(tls::our_server(transport), accept, 2 * seed + 1);
    let (mut network, client, server) = linked(seed, &link(path), Host::client(2 * seed), server);
    let now = network.clock().at(Duration::ZERO);
    let host = network.node_mut::<Host>(client).unwrap();
    host.connect(now, tls::our_client(transport), address(2), tls::NAME, app).unwrap();
    (network, client, server)
}
