//! Runs a scenario from the handshake until both ends have released all state.

use std::sync::Arc;
use std::time::Duration;

use sutura_proto::crypto::null::{NullClientConfig, NullServerConfig};
use sutura_proto::{
    ClientConfig, Connection, ConnectionHandle, ConnectionStats, Reason, ServerConfig, Standstill,
};

use super::disturbance::Disturbances;
use super::{Ends, LINGER, Scenario, Seeds, client_address, server_address};
use crate::{App, Clock, Failure, FailureKind, Host, Network, NodeId};

/// The ALPN protocol of all scenarios.
const ALPN: &[u8] = b"perf";
/// A silence shorter than this is always fine, which saves computing the probe timeout.
const SHORT: Duration = Duration::from_millis(10);
/// How long it may take after the end of the work until all streams are released. With losses,
/// their ends may have to be retransmitted.
const MAX_STREAM_REST: Duration = Duration::from_secs(60);
/// How many probe timeouts a silence may last while there is data to send.
const MAX_SILENCE: u32 = 3;

/// A view of a running scenario.
#[derive(Debug)]
pub struct View<'a, C, S> {
    /// The time since the start.
    pub now: Duration,
    /// The client's application.
    pub client: &'a C,
    /// The server's application, once a connection has been accepted.
    pub server: Option<&'a S>,
    network: &'a Network,
    nodes: [NodeId; 2],
}

impl<C, S> View<'_, C, S> {
    /// The statistics of both ends and both links so far.
    #[must_use]
    pub fn ends(&self) -> Ends {
        ends(self.network, self.nodes)
    }
}

/// The progress of a scenario.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The work is done.
    pub done: bool,
    /// At least one end has data to send.
    pub busy: bool,
}

impl Scenario {
    /// Runs `client` on the client's connection, and the application that `server` creates on the connection
    /// that the server accepts. Calls `watch` after every step until it reports that the work is done. Then
    /// lets both ends settle, closes the connection and waits until both have released it.
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    pub fn drive<C, S>(
        &self,
        clock: Clock,
        client: C,
        mut server: impl FnMut() -> S + 'static,
        mut watch: impl FnMut(&View<'_, C, S>) -> Progress,
    ) -> Result<Ends, Failure>
    where
        C: App<Connection>,
        S: App<Connection>,
    {
        let accept = Box::new(move || Box::new(server()) as Box<dyn App<Connection>>);
        let mut run = Run::new(self, clock, accept);
        run.open(self, client)
            .and_then(|()| run.work(self, &mut watch))
            .map_err(|failure| Failure { seed: Some(self.seed), ..failure })
    }
}

struct Run {
    network: Network,
    /// The client and the server.
    nodes: [NodeId; 2],
    longest_silence: Duration,
    /// Until when an end, at least, had to wait for the validation of an address.
    blocked_until: Duration,
}

/// The node `node`, which is always a host: `None` would be a bug in this module.
fn host(network: &Network, node: NodeId) -> Option<&Host> {
    network.node(node)
}

fn first_connection(network: &Network, node: NodeId) -> Option<(ConnectionHandle, &Connection)> {
    host(network, node)?.connections().next()
}

fn app<T: App<Connection>>(network: &Network, node: NodeId) -> Option<&T> {
    let host = host(network, node)?;
    host.app(host.connections().next()?.0)
}

/// The statistics of a node's current connection, or else of its last one.
fn stats(network: &Network, node: NodeId) -> ConnectionStats {
    let present = first_connection(network, node).map(|(_, connection)| connection.stats());
    let past = || Some(host(network, node)?.finished().last()?.stats);
    present.or_else(past).unwrap_or_default()
}

/// Why a node's current connection sends redundancy or not: the reason of the last policy in use that gives
/// one.
fn reason(network: &Network, node: NodeId) -> Option<Reason> {
    let (_, connection) = first_connection(network, node)?;
    connection.protections().iter().rev().find_map(|protection| protection.reason)
}

fn ends(network: &Network, [client, server]: [NodeId; 2]) -> Ends {
    Ends {
        client: stats(network, client),
        server: stats(network, server),
        reason: reason(network, server),
        up: network.link_stats(client, server),
        down: network.link_stats(server, client),
        duration: network.now(),
        longest_silence: Duration::ZERO,
    }
}

impl Run {
    fn new(scenario: &Scenario, clock: Clock, accept: crate::Accept) -> Self {
        let seeds = Seeds::of(scenario.seed);
        let [up, down] = seeds.links;
        let mut network = Network::new(clock);
        if let Some(tracer) = &scenario.tracer {
            network.set_tracer((tracer.0)());
        }
        let config = ServerConfig::new(
            Arc::new(NullServerConfig::new(vec![ALPN.to_vec()])),
            scenario.server_transport(),
        );
        let host = |server, seed| {
            let host = Host::with_sockets(scenario.sockets, server, seed);
            if scenario.checked { host.checked() } else { host }
        };
        let client = network.add(client_address(), host(None, seeds.client));
        let server = host(Some((Arc::new(config), accept)), seeds.server);
        let server = network.add(server_address(), server);
        network.connect(client, server, &scenario.up, up);
        network.connect(server, client, &scenario.down, down);
        Self {
            network,
            nodes: [client, server],
            longest_silence: Duration::ZERO,
            blocked_until: Duration::ZERO,
        }
    }

    fn open(&mut self, scenario: &Scenario, app: impl App<Connection>) -> Result<(), Failure> {
        let now = self.network.clock().at(self.network.now());
        let config = ClientConfig::new(
            Arc::new(NullClientConfig::new(vec![ALPN.to_vec()])),
            scenario.client_transport(),
        );
        let host: &mut Host = self
            .network
            .node_mut(self.nodes[0])
            .ok_or_else(|| Failure::new(Duration::ZERO, FailureKind::Quiescent))?;
        let opened = host.connect(now, config, server_address(), "server.example", app);
        opened
            .map(|_| ())
            .map_err(|e| Failure::new(Duration::ZERO, FailureKind::Connect(e.to_string())))
    }

    fn work<C, S>(
        &mut self,
        scenario: &Scenario,
        watch: &mut impl FnMut(&View<'_, C, S>) -> Progress,
    ) -> Result<Ends, Failure>
    where
        C: App<Connection>,
        S: App<Connection>,
    {
        self.network.flush()?;
        let mut disturbances = Disturbances::new(&scenario.disturbances);
        loop {
            disturbances.happen(&mut self.network, self.nodes);
            let progress = self.look(watch)?;
            if progress.done {
                break;
            }
            if self.network.now() > scenario.deadline {
                return Err(self.network.failure(FailureKind::Deadline(scenario.deadline)));
            }
            if progress.busy {
                self.check_silence()?;
            }
            if !self.network.step()? {
                return Err(self.network.failure(FailureKind::Quiescent));
            }
        }
        let duration = self.network.now();
        self.network.run_until(duration + LINGER)?;
        self.look(watch)?;
        self.empty()?;
        let ends = Ends {
            duration,
            longest_silence: self.longest_silence,
            ..ends(&self.network, self.nodes)
        };
        self.close()?;
        Ok(ends)
    }

    /// Checks for errors, then calls `watch`.
    fn look<C, S>(
        &self,
        watch: &mut impl FnMut(&View<'_, C, S>) -> Progress,
    ) -> Result<Progress, Failure>
    where
        C: App<Connection>,
        S: App<Connection>,
    {
        for host in self.nodes.iter().filter_map(|node| host(&self.network, *node)) {
            if let Some(error) = host.app_error() {
                return Err(self.network.failure(FailureKind::App(error.to_string())));
            }
            if let Some(error) = host.connection_error() {
                return Err(self.network.failure(FailureKind::ConnectionLost(error.to_string())));
            }
        }
        let [client, server] = self.nodes;
        let Some(app_of_client) = app::<C>(&self.network, client) else {
            let kind = FailureKind::ConnectionLost("the client has no connection".to_owned());
            return Err(self.network.failure(kind));
        };
        Ok(watch(&View {
            now: self.network.now(),
            client: app_of_client,
            server: app::<S>(&self.network, server),
            network: &self.network,
            nodes: self.nodes,
        }))
    }

    /// Checks that the time without a datagram stays within [`MAX_SILENCE`] probe timeouts. Called
    /// while there is data to send.
    fn check_silence(&mut self) -> Result<(), Failure> {
        let Some(since) = self.network.last_sent() else { return Ok(()) };
        // A host that sleeps can neither send nor answer, and one that is blocked must not send until it no longer is.
        let since = since.max(self.network.awake_since()).max(self.blocked_until);
        let next = self.network.next_time().unwrap_or(Duration::MAX);
        let silence = next.saturating_sub(since);
        if next == Duration::MAX || silence < SHORT {
            return Ok(());
        }
        if self.is_anybody_blocked() {
            self.blocked_until = next;
            return Ok(());
        }
        self.longest_silence = self.longest_silence.max(silence);
        let allowed = MAX_SILENCE * self.probe_timeout();
        if silence > allowed {
            return Err(self.network.failure(FailureKind::Stall { silence, allowed }));
        }
        Ok(())
    }

    /// Whether an end must not send before it hears from an address that is not validated. When that happens
    /// depends on the other end, which may have nothing to send but a keep-alive.
    fn is_anybody_blocked(&self) -> bool {
        let now = self.network.clock().at(self.network.now());
        self.nodes.iter().any(|node| {
            first_connection(&self.network, *node).is_some_and(|(_, connection)| {
                connection.standstill(now) == Standstill::Amplification
            })
        })
    }

    /// The longest probe timeout, including backoff, of the ends that wait for an acknowledgement,
    /// or of both if neither does.
    fn probe_timeout(&self) -> Duration {
        let both = self.nodes.map(|node| {
            first_connection(&self.network, node).map(|(_, connection)| connection.stats())
        });
        let both = || both.iter().flatten();
        let waiting = both().filter(|s| s.bytes_in_flight > 0).map(|s| s.probe_timeout).max();
        waiting.or_else(|| both().map(|s| s.probe_timeout).max()).unwrap_or(Duration::MAX / 4)
    }

    /// Waits until neither end holds any stream.
    fn empty(&mut self) -> Result<(), Failure> {
        let deadline = self.network.now() + MAX_STREAM_REST;
        loop {
            let stats = self
                .nodes
                .map(|node| first_connection(&self.network, node).map(|(_, c)| c.stream_stats()));
            let Some(stats) = stats.into_iter().flatten().find(|stats| stats.streams > 0) else {
                return Ok(());
            };
            if self.network.now() > deadline || !self.network.step()? {
                let what = format!("streams: {stats:?}");
                return Err(self.network.failure(FailureKind::Leftover(what)));
            }
        }
    }

    /// Closes the connection from the client's end and waits until both ends have released it.
    fn close(&mut self) -> Result<(), Failure> {
        let now = self.network.clock().at(self.network.now());
        if let Some(host) = self.network.node_mut::<Host>(self.nodes[0]) {
            let handle = host.connections().next().map(|(handle, _)| handle);
            if let Some(handle) = handle {
                host.close(now, handle, 0, b"done");
            }
        }
        while self.network.step()? {}
        for node in self.nodes {
            let Some(host) = host(&self.network, node) else { continue };
            let (known, held) = (host.endpoint_len(), host.connections().count());
            if known + held > 0 {
                let what = format!("node {}: {known} known, {held} held", node.0);
                return Err(self.network.failure(FailureKind::Leftover(what)));
            }
        }
        Ok(())
    }
}
