//! The proxy: answers the requests of clients, and carries their flows.

mod answer;
mod audit;
mod clients;
mod flow_state;
mod ip;
mod listen;
mod lookups;
mod reach;
mod rest;
mod resume;
mod tcp;
mod udp;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use sutura::{Connection, http};
use tokio::task::JoinSet;

use crate::access::{AllowList, Limits};
use crate::flow::Rules;
use crate::masque::{AUTHORIZATION, Cause};
use crate::stream::Ledger;
use crate::tun::IpNetwork;
use answer::Pending;
use clients::Clients;
use listen::Listeners;
use rest::Suspension;
use resume::Resumables;

pub use crate::access::Identity;
pub use audit::{Decision, Record};
pub use flow_state::{InvalidState, MAX_FLOW_STATE};
pub use listen::{LISTEN_GRACE, MAX_LISTENERS, MAX_WAITING};
pub use lookups::MAX_LOOKUPS;
pub use reach::{CONNECT_TIMEOUT, DNS_TIMEOUT, MAX_ADDRESSES};
pub use rest::FlowAtRest;
pub use udp::UDP_IDLE;

/// How long a flow waits for a client whose connection was lost.
pub const RESUME_TIME: Duration = Duration::from_secs(60);
/// Bytes that the flows of a client keep, at most, until the client has taken them, beyond
/// [`FLOW_RESERVE`](crate::stream::FLOW_RESERVE) for each flow.
pub const MAX_KEPT_BY_CLIENT: usize = 32 << 20;

/// A decision about a request.
pub type Admission<'a> = Pin<Box<dyn Future<Output = Option<Identity>> + Send + 'a>>;

/// Decides who may use the proxy, for one connection.
pub trait Gate: Send + Sync {
    /// Whose request it is, by the value of its `proxy-authorization` field; `None` if it may not be answered. May
    /// take its time, as a brake on guesses.
    fn admit<'a>(&'a self, shown: Option<&'a [u8]>) -> Admission<'a>;
}

/// Is told what happens.
pub trait Observer: Send + Sync {
    /// A request was decided upon, or a flow is over.
    fn record(&self, record: &Record<'_>);

    /// Something does not work as it should, in words for whoever runs the proxy.
    fn complain(&self, text: &str);
}

/// What a proxy permits.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ServerConfig {
    /// The targets that may be reached. None.
    pub allow: Arc<AllowList>,
    /// The addresses of this machine that clients may listen at. None.
    pub allow_listen: AllowList,
    /// The limits of each client.
    pub limits: Limits,
    /// How flows are treated, where not as what they carry shows.
    pub rules: Arc<Rules>,
    /// How long a flow waits for a client whose connection was lost. [`RESUME_TIME`] if `None`.
    pub resume_time: Option<Duration>,
    /// The device for clients that send IP packets. None.
    pub network: Option<IpNetwork>,
}

/// A proxy. Clones are the same one.
#[derive(Clone)]
pub struct Server(Arc<Shared>);

/// What all connections share.
struct Shared {
    config: ServerConfig,
    observer: Box<dyn Observer>,
    clients: Clients,
    resumables: Resumables,
    listeners: Listeners,
    suspension: Suspension,
}

/// A connection of a client.
struct Visit {
    shared: Arc<Shared>,
    connection: Connection,
    gate: Arc<dyn Gate>,
    /// What both ends tell each other of flows, once a client has asked for it, and whose flows these are.
    ledger: OnceLock<(Arc<Ledger>, Identity)>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("config", &self.0.config).finish_non_exhaustive()
    }
}

/// The settings of HTTP/3 for connections of tunnels, at either end.
#[must_use]
pub fn http_config() -> http::Config {
    let mut config = http::Config::default();
    config.enable_connect_protocol = true;
    config.enable_datagrams = true;
    // Flows are given up at any time, by browsers by the dozen.
    config.cancelled_requests = None;
    config
}

impl Server {
    /// A proxy that tells `observer` of each request.
    #[must_use]
    pub fn new(config: ServerConfig, observer: Box<dyn Observer>) -> Self {
        let clients = Clients::new(config.limits);
        let (resumables, listeners, suspension) = Default::default();
        Self(Arc::new(Shared { config, observer, clients, resumables, listeners, suspension }))
    }

    /// Answers the requests of a connection until it ends, or the server is [suspended](Self::suspend). Flows that can
    /// be resumed outlive it.
    ///
    /// # Errors
    /// The connection ended with an error.
    pub async fn serve(
        &self,
        connection: Connection,
        gate: Arc<dyn Gate>,
    ) -> Result<(), http::Error> {
        let mut server = http::Server::new(connection.clone(), http_config());
        let visit =
            Arc::new(Visit { shared: self.0.clone(), connection, gate, ledger: OnceLock::new() });
        let mut requests = JoinSet::new();
        let (shared, connection) = (visit.shared.clone(), visit.connection.clone());
        let suspended = shared.suspension.close(&connection);
        tokio::pin!(suspended);
        let ending = loop {
            tokio::select! {
                () = &mut suspended => break Ok(()),
                next = server.accept() => {
                    let (request, stream) = match next {
                        Ok(Some(next)) => next,
                        Ok(None) => break Ok(()),
                        Err(error) => break Err(error),
                    };
                    let visit = visit.clone();
                    requests.spawn(async move {
                        let shown = request.field(AUTHORIZATION);
                        let Some(identity) = visit.gate.admit(shown).await else {
                            let why = "no token, or a wrong one, and no certificate that counts";
                            Pending::new(stream).refuse(Cause::Denied, why).await;
                            return;
                        };
                        visit.answer(identity, &request, stream).await;
                    });
                }
                Some(_) = requests.join_next() => {}
            }
        };
        // They notice that the connection is over, and record what they have carried.
        requests.detach_all();
        ending
    }

    /// How many flows there are.
    #[must_use]
    pub fn flows(&self) -> usize {
        self.0.clients.flows()
    }
}
