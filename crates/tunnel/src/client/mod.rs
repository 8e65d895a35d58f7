//! The end of a tunnel beside the programs: keeps a connection to a proxy, and opens flows on it.

mod ip;
mod keep;
mod link;
mod refusal;
mod reverse;
mod socket;
mod tcp;
mod udp;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use sutura::Connection;
use tokio::sync::watch;

use crate::access::{Target, Transport};
use crate::flow::{Flow, FlowInfo, Rules};
use crate::masque::UdpTemplate;
use crate::stream::Pool;
use link::Link;

pub use crate::counts::Totals;
pub use ip::MachineError;
pub use refusal::Refusal;
pub use reverse::{Reverse, WAITING_REQUESTS};
pub use socket::{MAX_ARRIVED, TunnelSocket};
pub use tcp::TcpTunnel;
pub use udp::{MAX_QUEUED, UdpFlow, UdpTunnel};

/// How long a program waits for its flow to begin, also while the connection is lost.
pub const OPEN_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a flow waits for a connection over which it can go on.
pub const RECONNECT_TIME: Duration = Duration::from_secs(60);
/// The first and the longest time between attempts to connect again.
pub const FIRST_RETRY: Duration = Duration::from_millis(250);
/// The longest time between attempts to connect again.
pub const LAST_RETRY: Duration = Duration::from_secs(10);
/// Bytes that all flows together keep, at most, until the proxy has taken them, beyond
/// [`FLOW_RESERVE`](crate::stream::FLOW_RESERVE) for each flow.
pub const MAX_KEPT: usize = 32 << 20;

/// A connection to a proxy, and the name by which requests address it.
#[derive(Debug)]
pub struct Dialled {
    /// The connection, on which no stream was opened.
    pub connection: Connection,
    /// The proxy's host and port.
    pub authority: String,
    /// Where it takes requests for UDP.
    pub udp: UdpTemplate,
}

/// Why there is no connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DialError {
    /// Why.
    pub message: String,
    /// Whether a further attempt will fail in the same way.
    pub is_final: bool,
}

/// A connection to come.
pub type Dialling<'a> = Pin<Box<dyn Future<Output = Result<Dialled, DialError>> + Send + 'a>>;

/// Connects to proxies.
pub trait Dial: Send + Sync {
    /// How many proxies there are to choose from, at least one.
    fn proxies(&self) -> usize;

    /// Connects to one of them.
    fn dial(&self, proxy: usize) -> Dialling<'_>;
}

/// Is told what happens.
pub trait Notices: Send + Sync {
    /// Something that is as it should be.
    fn note(&self, text: &str);
    /// Something does not work as it should.
    fn complain(&self, text: &str);
}

/// A tunnel. Clones are the same one.
#[derive(Clone)]
pub struct Tunnel(Arc<Inner>);

struct Inner {
    dial: Box<dyn Dial>,
    notices: Box<dyn Notices>,
    /// The value of the field that shows the token.
    authorization: Option<Arc<str>>,
    state: watch::Sender<State>,
    pool: Arc<Pool>,
    rules: Arc<Rules>,
    totals: Arc<Totals>,
    reconnect_time: Duration,
    /// Whether it was said that datagrams do not fit.
    said_oversize: AtomicBool,
}

/// The state of the connection.
#[derive(Debug, Clone)]
enum State {
    /// There is none, or none any more.
    Down,
    /// There is one.
    Up(Arc<Link>),
    /// There will be none.
    Over(String),
}

impl fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tunnel").field("totals", &self.0.totals).finish_non_exhaustive()
    }
}

impl Tunnel {
    /// A tunnel to the first proxy that lets it in, by this token if one is given. Flows are treated as the rules
    /// say, or as what they carry shows. [`run`](Self::run) connects it.
    #[must_use]
    pub fn new(
        dial: Box<dyn Dial>,
        notices: Box<dyn Notices>,
        token: Option<&str>,
        rules: Rules,
    ) -> Self {
        let authorization = token.map(|token| format!("Bearer {token}").into());
        let (state, pool) = (watch::Sender::new(State::Down), Arc::new(Pool::new(MAX_KEPT)));
        let (totals, reconnect_time) = (Arc::default(), RECONNECT_TIME);
        Self(Arc::new(Inner {
            dial,
            notices,
            authorization,
            state,
            pool,
            rules: Arc::new(rules),
            totals,
            reconnect_time,
            said_oversize: AtomicBool::new(false),
        }))
    }

    /// Says that something does not work as it should.
    pub(crate) fn complain(&self, text: &str) {
        self.0.notices.complain(text);
    }

    /// What is known of a flow to a target, which the proxy has an address for if it is a name.
    fn flow(&self, transport: Transport, target: &Target) -> Flow {
        Flow::new(&self.0.rules, &FlowInfo::asked(transport, target, None))
    }

    /// What has happened so far.
    #[must_use]
    pub fn totals(&self) -> &Totals {
        &self.0.totals
    }

    /// The present connection, if there is one.
    #[must_use]
    pub fn connection(&self) -> Option<Connection> {
        match &*self.0.state.borrow() {
            State::Up(link) => Some(link.connection().clone()),
            State::Down | State::Over(_) => None,
        }
    }
}
