//! Cases in which one end is quinn-proto.

use std::sync::Arc;
use std::time::Duration;

use quinn_proto::{IdleTimeout, VarInt};
use sutura_random::Rng;
use sutura_sim::quinn::{QuinnHost, null_client, null_server};
use sutura_sim::{
    BulkClient, BulkServer, Clock, Disturbances, Failure, FailureKind, Host, Network, NodeId,
    TraceLog,
};

use super::super::seeded::Traffic;
use super::case::{Peers, TransferCase};
use crate::hosts::{self, NAME, client_at, client_config, server_at, server_config};

const ALPN: &[u8] = b"perf";
/// By when everything is done. Probes of quinn back off without bound, so an outage costs it more.
const DEADLINE: Duration = Duration::from_secs(1200);
/// How long both ends may take to release everything after the close.
const DRAIN: Duration = Duration::from_secs(300);
/// When clients of quinn start to send. If data fills its congestion window before the server has its
/// Finished, quinn neither resends the Finished nor acknowledges packets.
pub const START: Duration = Duration::from_secs(2);
/// How many events are shown with a failure.
const EVENTS: usize = 30;

/// Runs a case.
///
/// # Errors
/// A transfer is not complete in time, bytes are wrong, a connection breaks, or something is left
/// after the close.
pub fn run(case: &TransferCase) -> Result<Traffic, Failure> {
    let mut run = MixedPair::new(case)?;
    run.work(case)?;
    run.close()?;
    Ok(run.tally())
}

/// An end of ours and an end of quinn.
struct MixedPair {
    network: Network,
    /// The client and the server.
    nodes: [NodeId; 2],
}

/// The settings of quinn: the idle timeout, the keep-alive interval and the windows of our end.
fn quinn_transport(case: &TransferCase) -> Arc<quinn_proto::TransportConfig> {
    let mut config = quinn_proto::TransportConfig::default();
    let idle = case.client.max_idle_timeout.and_then(|t| IdleTimeout::try_from(t).ok());
    // quinn gets stuck if it moves to another path at the moment when the longest packet becomes smaller.
    let explores = case.sockets.unfragmented && !(case.has_move() && case.has("mtu="));
    let window = u32::try_from(case.client.stream_receive_window).unwrap_or(u32::MAX);
    config
        .max_idle_timeout(idle)
        .keep_alive_interval(case.client.keep_alive)
        .stream_receive_window(VarInt::from_u32(window))
        .receive_window(VarInt::from_u32(window))
        .mtu_discovery_config(explores.then(Default::default));
    Arc::new(config)
}

impl MixedPair {
    fn new(case: &TransferCase) -> Result<Self, Failure> {
        let mut seeds = Rng::new(case.seed);
        let mut network = Network::new(Clock::default());
        network.set_tracer(Box::new(TraceLog::new(EVENTS)));
        let transfers = std::iter::repeat_n(case.transfer(), case.streams as usize);
        let app = BulkClient::new(transfers, case.streams as usize, Duration::ZERO);
        let app = if case.unordered { app.unordered() } else { app };
        let now = network.clock().at(Duration::ZERO);
        let app = if case.peers == Peers::QuinnClient { app.not_before(now + START) } else { app };
        let (client_seed, server_seed) = (seeds.next_u64(), seeds.next_u64());
        let (client, server, opened) = if case.peers == Peers::QuinnClient {
            let mut config = null_client(ALPN);
            config.transport_config(quinn_transport(case));
            let mut host = QuinnHost::client(client_seed);
            let opened = host.connect(now, config, server_at(1), NAME, app).map(drop);
            let opened = opened.map_err(|e| e.to_string());
            let client = network.add(client_at(1, 50_000), host);
            (client, network.add(server_at(1), our_server(case, server_seed)), opened)
        } else {
            let config = client_config(ALPN, Arc::new(case.client.clone()));
            let mut host = Host::with_sockets(case.sockets, None, client_seed);
            let opened = host.connect(now, config, server_at(1), NAME, app).map(drop);
            let opened = opened.map_err(|e| e.to_string());
            let client = network.add(client_at(1, 50_000), host);
            (client, network.add(server_at(1), quinn_server(case, server_seed)), opened)
        };
        network.connect(client, server, &case.up, seeds.next_u64());
        network.connect(server, client, &case.down, seeds.next_u64());
        opened.map_err(|error| network.failure(FailureKind::Connect(error)))?;
        Ok(Self { network, nodes: [client, server] })
    }

    fn work(&mut self, case: &TransferCase) -> Result<(), Failure> {
        let mut disturbances = Disturbances::new(&case.disturbances);
        while !self.is_done() {
            disturbances.happen(&mut self.network, self.nodes);
            for node in self.nodes {
                if let Some(error) = self.error(node) {
                    return Err(self.network.failure(FailureKind::App(error)));
                }
            }
            if self.network.now() > DEADLINE {
                return Err(self.network.failure(FailureKind::Deadline(DEADLINE)));
            }
            if !self.network.step()? {
                return Err(self.network.failure(FailureKind::Quiescent));
            }
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        let [client, _] = self.nodes;
        let ours = self.network.node::<Host>(client).and_then(|host| {
            let (handle, _) = host.connections().next()?;
            host.app::<BulkClient>(handle)
        });
        let theirs = self.network.node::<QuinnHost>(client).and_then(|host| {
            let (handle, _) = host.connections().next()?;
            host.app::<BulkClient>(handle)
        });
        ours.or(theirs).is_some_and(BulkClient::is_done)
    }

    fn error(&self, node: NodeId) -> Option<String> {
        if let Some(host) = self.network.node::<Host>(node) {
            return hosts::error(host);
        }
        self.network.node::<QuinnHost>(node)?.error()
    }

    /// Closes the connection from the client's end, and waits until nothing is left of it.
    fn close(&mut self) -> Result<(), Failure> {
        let now = self.network.clock().at(self.network.now());
        let [client, _] = self.nodes;
        if let Some(host) = self.network.node_mut::<Host>(client) {
            let handle = host.connections().next().map(|(handle, _)| handle);
            if let Some(handle) = handle {
                host.close(now, handle, 0, b"done");
            }
        }
        if let Some(host) = self.network.node_mut::<QuinnHost>(client) {
            host.close(now);
        }
        let deadline = self.network.now() + DRAIN;
        while self.network.now() < deadline && self.network.step()? {}
        for node in self.nodes {
            let ours = self
                .network
                .node::<Host>(node)
                .map_or(0, |host| host.endpoint_len() + host.connections().count());
            let theirs = self.network.node::<QuinnHost>(node).is_some_and(|h| !h.is_empty());
            if ours > 0 || theirs {
                let what = format!("node {}", node.0);
                return Err(self.network.failure(FailureKind::Leftover(what)));
            }
        }
        Ok(())
    }

    fn tally(&self) -> Traffic {
        let [client, server] = self.nodes;
        let links = [(client, server), (server, client)];
        let links = links.map(|(from, to)| self.network.link_stats(from, to));
        Traffic::of(&links, 0)
    }
}

fn our_server(case: &TransferCase, seed: u64) -> Host {
    let config = server_config(ALPN, Arc::new(case.server.clone()));
    let accept = Box::new(|| Box::new(BulkServer::default()) as _);
    Host::with_sockets(case.sockets, Some((config, accept)), seed)
}

fn quinn_server(case: &TransferCase, seed: u64) -> QuinnHost {
    let mut config = null_server(ALPN);
    config.transport_config(quinn_transport(case));
    let accept = Box::new(|| Box::new(BulkServer::default()) as _);
    QuinnHost::server(Arc::new(config), accept, seed)
}
