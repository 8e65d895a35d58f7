//! The two ends of a flow: a client that downloads and a server that sends, of either transport.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sutura_proto::{ConnectionHandle, ConnectionStats, TransportConfig};
use sutura_sim::quinn::{QuinnHost, null_client, null_server};
use sutura_sim::{BulkClient, BulkServer, Failure, FailureKind, Host, Network, NodeId, Transfer};

use super::sender::{QuinnController, Sender, our_transport, quinn_transport};
use crate::hosts::{NAME, client_at, client_config, server_at, server_config};

const ALPN: &[u8] = b"perf";

/// The ends of a flow.
#[derive(Debug)]
pub struct Ends {
    /// The node of the client.
    pub client: NodeId,
    /// The node of the server.
    pub server: NodeId,
    remote: SocketAddr,
    kind: Transport,
}

#[derive(Debug)]
enum Transport {
    Ours {
        transport: Arc<TransportConfig>,
        handle: Option<ConnectionHandle>,
    },
    Quinn {
        transport: Arc<quinn_proto::TransportConfig>,
        handle: Option<quinn_proto::ConnectionHandle>,
    },
}

impl Ends {
    /// Adds both ends of flow number `index` to `network`, without a link between them.
    pub fn new(
        network: &mut Network,
        index: u8,
        sender: &Sender,
        window: u32,
        seeds: [u64; 2],
    ) -> Self {
        let (local, remote) = (client_at(index, 50_000), server_at(index));
        match sender {
            Sender::Ours { congestion, protection } => {
                let transport = Arc::new(our_transport(congestion.clone(), window));
                let config = server_config(ALPN, transport.clone());
                let protection = protection.clone();
                let accept = Box::new(move || Box::new(BulkServer::new(protection.clone())) as _);
                let server = Host::server(config, accept, seeds[1]);
                Self {
                    client: network.add(local, Host::client(seeds[0])),
                    server: network.add(remote, server),
                    remote,
                    kind: Transport::Ours { transport, handle: None },
                }
            }
            Sender::Quinn(controller) => {
                Self::quinn(network, (local, remote), *controller, window, seeds)
            }
        }
    }

    fn quinn(
        network: &mut Network,
        (local, remote): (SocketAddr, SocketAddr),
        controller: QuinnController,
        window: u32,
        seeds: [u64; 2],
    ) -> Self {
        let transport = quinn_transport(controller, window);
        let mut config = null_server(ALPN);
        config.transport_config(transport.clone());
        let accept = Box::new(|| Box::new(BulkServer::default()) as _);
        let server = QuinnHost::server(Arc::new(config), accept, seeds[1]);
        Self {
            client: network.add(local, QuinnHost::client(seeds[0])),
            server: network.add(remote, server),
            remote,
            kind: Transport::Quinn { transport, handle: None },
        }
    }

    /// Opens the connection and makes `transfers`, one after the other with a `pause` between them.
    ///
    /// # Errors
    /// The connection cannot be opened.
    pub fn open(
        &mut self,
        network: &mut Network,
        transfers: impl IntoIterator<Item = Transfer>,
        pause: Duration,
    ) -> Result<(), Failure> {
        let app = BulkClient::new(transfers, 1, pause);
        let now = network.clock().at(network.now());
        let opened = match &mut self.kind {
            Transport::Ours { transport, handle } => {
                let config = client_config(ALPN, transport.clone());
                network.node_mut::<Host>(self.client).map(|host| {
                    let opened = host.connect(now, config, self.remote, NAME, app);
                    opened.map(|opened| *handle = Some(opened)).map_err(|e| e.to_string())
                })
            }
            Transport::Quinn { transport, handle } => {
                let mut config = null_client(ALPN);
                config.transport_config(transport.clone());
                network.node_mut::<QuinnHost>(self.client).map(|host| {
                    let opened = host.connect(now, config, self.remote, NAME, app);
                    opened.map(|opened| *handle = Some(opened)).map_err(|e| e.to_string())
                })
            }
        };
        let opened = opened.unwrap_or_else(|| Err("no such host".to_owned()));
        opened.map_err(|error| network.failure(FailureKind::Connect(error)))
    }

    fn app<'a>(&self, network: &'a Network) -> Option<&'a BulkClient> {
        match &self.kind {
            Transport::Ours { handle, .. } => network.node::<Host>(self.client)?.app((*handle)?),
            Transport::Quinn { handle, .. } => {
                network.node::<QuinnHost>(self.client)?.app((*handle)?)
            }
        }
    }

    /// How long the first transfer took, once all are complete.
    pub fn completed(&self, network: &Network) -> Option<Duration> {
        let client = self.app(network).filter(|client| client.is_done())?;
        let transfer = client.completed().first()?;
        Some(transfer.completed - transfer.started)
    }

    /// How long each transfer took that is complete.
    pub fn downloads(&self, network: &Network) -> Vec<Duration> {
        let completed = self.app(network).map_or(&[][..], BulkClient::completed);
        completed.iter().map(|transfer| transfer.completed - transfer.started).collect()
    }

    /// The statistics of our server.
    fn our_stats(&self, network: &Network) -> Option<ConnectionStats> {
        let host = network.node::<Host>(self.server);
        let present = host.and_then(|host| Some(host.connections().next()?.1.stats()));
        present.or_else(|| Some(host?.finished().last()?.stats))
    }

    /// Repair symbols that the server sent. quinn has none.
    pub fn repair_symbols(&self, network: &Network) -> u64 {
        match &self.kind {
            Transport::Ours { .. } => {
                self.our_stats(network).map_or(0, |stats| stats.fec.repair_symbols_sent)
            }
            Transport::Quinn { .. } => 0,
        }
    }

    /// Bytes that the server sent again. quinn does not count them; it sends all data again that it declares
    /// lost, so the bytes of the lost packets stand for them.
    pub fn sent_again(&self, network: &Network) -> u64 {
        match &self.kind {
            Transport::Ours { .. } => {
                self.our_stats(network).map_or(0, |stats| stats.stream_bytes_retransmitted)
            }
            Transport::Quinn { .. } => {
                let host = network.node::<QuinnHost>(self.server);
                let stats = host.and_then(|host| Some(host.connections().next()?.1.stats()));
                stats.map_or(0, |stats| stats.path.lost_bytes)
            }
        }
    }

    /// Fails if an application gave up, for example because a byte was wrong.
    ///
    /// # Errors
    /// It did.
    pub fn check(&self, network: &Network) -> Result<(), Failure> {
        let errors = [self.client, self.server].map(|node| match &self.kind {
            Transport::Ours { .. } => network.node::<Host>(node)?.app_error().cloned(),
            Transport::Quinn { .. } => network.node::<QuinnHost>(node)?.app_error().cloned(),
        });
        let error = errors.into_iter().flatten().next();
        error.map_or(Ok(()), |error| Err(network.failure(FailureKind::App(error.to_string()))))
    }
}
