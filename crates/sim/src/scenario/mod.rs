//! Two hosts, a link each way, and their work: the shortcut for experiments and tests.

mod bulk;
mod disturbance;
mod drive;
mod watched;

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use sutura_link::{LinkConfig, LinkStats};
use sutura_proto::{
    Connection, ConnectionStats, MessageOutcome, Protection, Reason, SocketFeatures,
    TransportConfig,
};
use sutura_random::Rng;

pub use bulk::{BulkOutcome, TransferReport};
pub use disturbance::{Disturbance, Disturbances};
pub use drive::{Progress, View};
pub use watched::Watched;

use crate::{
    App, BulkClient, BulkServer, Clock, DatagramPlan, DatagramSink, DatagramSource, Delay,
    DeliveredMessage, EchoClient, EchoServer, Failure, MessagePlan, MessageSink, MessageSource,
    StreamPlan, StreamSink, StreamSource, TraceLog, Tracer, Transfer, UpdatePlan, UpdateSink,
    UpdateSource,
};

/// A simulated hour: no scenario here takes longer.
const DEFAULT_DEADLINE: Duration = Duration::from_secs(3600);
/// How long the connection stays open after the work is done, so that packets in flight arrive and
/// are acknowledged before statistics are taken.
const LINGER: Duration = Duration::from_secs(1);

fn client_address() -> SocketAddr {
    (Ipv4Addr::new(192, 0, 2, 1), 50_000).into()
}

fn server_address() -> SocketAddr {
    (Ipv4Addr::new(198, 51, 100, 1), 4433).into()
}

/// A client, a server, a link each way, and the work to do over them.
///
/// A run is fully determined by the scenario and its seed. Connections behave like real ones except
/// for the payload, which is generated, and the cryptography, which is the null implementation of
/// `sutura_proto`.
#[derive(Clone, Debug)]
pub struct Scenario {
    seed: u64,
    up: LinkConfig,
    down: LinkConfig,
    client: TransportConfig,
    server: TransportConfig,
    sockets: SocketFeatures,
    plan: Vec<Transfer>,
    protection: Option<Protection>,
    parallel: usize,
    ordered: bool,
    gap: Duration,
    deadline: Duration,
    disturbances: Vec<(Duration, Disturbance)>,
    checked: bool,
    tracer: Option<MakeTracer>,
}

/// The seeds of a scenario's parts.
#[derive(Clone, Copy, Debug)]
struct Seeds {
    client: u64,
    server: u64,
    /// Of the links from the client to the server and back.
    links: [u64; 2],
}

impl Seeds {
    fn of(seed: u64) -> Self {
        let mut seeds = Rng::new(seed);
        let mut next = || seeds.next_u64();
        Self { client: next(), server: next(), links: [next(), next()] }
    }
}

/// Creates the tracer of a run.
#[derive(Clone)]
struct MakeTracer(Arc<dyn Fn() -> Box<dyn Tracer> + Send + Sync>);

impl fmt::Debug for MakeTracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MakeTracer")
    }
}

impl Scenario {
    /// A scenario with perfect links, default settings and no work.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            up: LinkConfig::default(),
            down: LinkConfig::default(),
            client: TransportConfig::default(),
            server: TransportConfig::default(),
            sockets: SocketFeatures::default(),
            plan: Vec::new(),
            protection: None,
            parallel: 1,
            ordered: true,
            gap: Duration::ZERO,
            deadline: DEFAULT_DEADLINE,
            disturbances: Vec::new(),
            checked: false,
            tracer: None,
        }
    }

    /// Sets the links from the client to the server and back.
    #[must_use]
    pub fn link(mut self, up: &LinkConfig, down: &LinkConfig) -> Self {
        (self.up, self.down) = (up.clone(), down.clone());
        self
    }

    /// The seeds of the links from the client to the server and back, for models that are to meet the
    /// same losses.
    #[must_use]
    pub fn link_seeds(&self) -> [u64; 2] {
        Seeds::of(self.seed).links
    }

    /// Sets the transport configuration of both ends.
    #[must_use]
    pub fn transport(self, config: &TransportConfig) -> Self {
        self.client(config).server(config)
    }

    /// Sets the transport configuration of the client.
    #[must_use]
    pub fn client(mut self, config: &TransportConfig) -> Self {
        self.client = config.clone();
        self
    }

    /// Sets the transport configuration of the server.
    #[must_use]
    pub fn server(mut self, config: &TransportConfig) -> Self {
        self.server = config.clone();
        self
    }

    /// Sets the abilities of both ends' sockets beyond sending and receiving.
    #[must_use]
    pub fn sockets(mut self, sockets: SocketFeatures) -> Self {
        self.sockets = sockets;
        self
    }

    /// Adds a transfer for [`run`](Self::run).
    #[must_use]
    pub fn transfer(self, transfer: Transfer) -> Self {
        self.transfers([transfer])
    }

    /// Adds transfers for [`run`](Self::run).
    #[must_use]
    pub fn transfers(mut self, transfers: impl IntoIterator<Item = Transfer>) -> Self {
        self.plan.extend(transfers);
        self
    }

    /// Sets how the server protects the bytes of the transfers.
    #[must_use]
    pub fn protect(mut self, protection: Option<Protection>) -> Self {
        self.protection = protection;
        self
    }

    /// Sets the number of parallel transfers. The default is 1.
    #[must_use]
    pub fn parallel(mut self, transfers: usize) -> Self {
        self.parallel = transfers;
        self
    }

    /// Lets the client read the responses of [`run`](Self::run) in whichever order their bytes arrive,
    /// which it must if its configuration delivers streams in another order than their own.
    #[must_use]
    pub fn unordered(mut self) -> Self {
        self.ordered = false;
        self
    }

    /// Sets the time from the end of a transfer to the beginning of the next. The default is zero.
    #[must_use]
    pub fn gap(mut self, gap: Duration) -> Self {
        self.gap = gap;
        self
    }

    /// Sets the time by which the work must be done. The default is one hour.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Disturbs a host at a time since the start. A change of the client's address waits until the server has
    /// completed the handshake, and a deliberate move until the client knows that the handshake is confirmed.
    #[must_use]
    pub fn disturb(mut self, at: Duration, disturbance: Disturbance) -> Self {
        self.disturbances.push((at, disturbance));
        self
    }

    /// Checks both connections for contradictions, as [`Host::checked`](crate::Host::checked) does.
    #[must_use]
    pub fn checked(mut self) -> Self {
        self.checked = true;
        self
    }

    /// Includes the last `events` events in the text of a failure.
    #[must_use]
    pub fn trace(self, events: usize) -> Self {
        self.tracer(move || TraceLog::new(events))
    }

    /// Reports every event to a tracer; `make` creates one for each run. There is only one tracer,
    /// so this and [`trace`](Self::trace) replace each other.
    #[must_use]
    pub fn tracer<T: Tracer + 'static>(
        mut self,
        make: impl Fn() -> T + Send + Sync + 'static,
    ) -> Self {
        self.tracer = Some(MakeTracer(Arc::new(move || Box::new(make()))));
        self
    }

    /// Runs the transfers.
    ///
    /// # Errors
    /// A transfer does not complete, received bytes are wrong, neither end sends anything for too
    /// long, or a connection is not released after it was closed.
    pub fn run(self) -> Result<BulkOutcome, Failure> {
        self.run_within(|client| client, |server| server, |client| client)
    }

    /// Runs the transfers as [`run`](Self::run) does, by applications that `client` and `server` make around
    /// the transferring ones, such as a protocol above QUIC. `within` finds the client's again.
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    pub fn run_within<C: App<Connection>, S: App<Connection>>(
        self,
        client: impl FnOnce(BulkClient) -> C,
        server: impl Fn(BulkServer) -> S + 'static,
        within: fn(&C) -> &BulkClient,
    ) -> Result<BulkOutcome, Failure> {
        bulk::run(&self, client, server, within)
    }

    /// Streams messages from the server to the client.
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    pub fn stream(self, plan: StreamPlan) -> Result<StreamOutcome, Failure> {
        self.stream_within(plan, |sink| sink, |source| source, |sink| sink)
    }

    /// Streams messages as [`stream`](Self::stream) does, within other applications as
    /// [`run_within`](Self::run_within) has them.
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    pub fn stream_within<C: App<Connection>, S: App<Connection>>(
        self,
        plan: StreamPlan,
        client: impl FnOnce(StreamSink) -> C,
        server: impl Fn(StreamSource) -> S + 'static,
        within: fn(&C) -> &StreamSink,
    ) -> Result<StreamOutcome, Failure> {
        let clock = Clock::default();
        let sink = client(StreamSink::new(plan.clone(), clock));
        let source = move || server(StreamSource::new(plan.clone(), clock));
        let (mut delays, mut began) = (Vec::new(), Duration::ZERO);
        let ends = self.drive(clock, sink, source, |view| {
            let sink = within(view.client);
            let done = sink.is_done();
            if done {
                delays = sink.delays().to_vec();
                began = sink.began().unwrap_or_default();
            }
            // The next message may be due much later, so a silence is fine.
            Progress { done, busy: false }
        })?;
        Ok(StreamOutcome { delays, began, ends })
    }

    /// Sends datagrams from the client to the server.
    ///
    /// # Errors
    /// As for [`run`](Self::run), except that datagrams may be lost.
    pub fn datagrams(self, plan: DatagramPlan) -> Result<DatagramOutcome, Failure> {
        let clock = Clock::default();
        let mut delays = Vec::new();
        let source = DatagramSource::new(plan, clock);
        let ends = self.drive(
            clock,
            source,
            move || DatagramSink::new(clock),
            |view| {
                if let Some(sink) = view.server {
                    delays.clear();
                    delays.extend_from_slice(sink.delays());
                }
                Progress { done: view.client.is_done(), busy: false }
            },
        )?;
        Ok(DatagramOutcome { delays, ends })
    }

    /// Sends datagrams from the client to the server, which sends each of them back. Both protect them
    /// with `protection`. The outcome has the time there and back.
    ///
    /// # Errors
    /// As for [`datagrams`](Self::datagrams).
    pub fn echoes(
        self,
        plan: DatagramPlan,
        protection: Option<Protection>,
    ) -> Result<DatagramOutcome, Failure> {
        let clock = Clock::default();
        let mut delays = Vec::new();
        let client = EchoClient::new(plan, protection.clone(), clock);
        let server = move || EchoServer::new(protection.clone());
        let ends = self.drive(clock, client, server, |view| {
            let done = view.client.is_done();
            if done {
                delays = view.client.delays().to_vec();
            }
            Progress { done, busy: false }
        })?;
        Ok(DatagramOutcome { delays, ends })
    }

    /// Sends messages from the server to the client.
    ///
    /// # Errors
    /// As for [`run`](Self::run), except that messages may be cancelled, and datagrams lost.
    pub fn messages(self, plan: MessagePlan) -> Result<MessagesOutcome, Failure> {
        let clock = Clock::default();
        let (mut delays, mut fates) = (Vec::new(), Vec::new());
        let sink = MessageSink::new(plan.messages.len(), clock);
        let source = move || MessageSource::new(plan.clone(), clock);
        let ends = self.drive(clock, sink, source, |view| {
            let done = view.server.is_some_and(MessageSource::is_done);
            if done {
                delays = view.client.delays().to_vec();
                fates = view.server.map(|source| source.fates().to_vec()).unwrap_or_default();
            }
            // The next message may be due much later, so a silence is fine.
            Progress { done, busy: false }
        })?;
        Ok(MessagesOutcome { delays, fates: fates.into_iter().flatten().collect(), ends })
    }

    /// Sends updates of a screen from the server to the client.
    ///
    /// # Errors
    /// As for [`run`](Self::run), or a message is delivered out of its turn.
    pub fn updates(self, plan: &UpdatePlan) -> Result<UpdatesOutcome, Failure> {
        let clock = Clock::default();
        let sink = UpdateSink::new(plan.clone(), clock);
        let plan = plan.clone();
        let source = move || UpdateSource::new(plan.clone(), clock);
        let (mut delivered, mut asked_at) = (Vec::new(), Vec::new());
        let ends = self.drive(clock, sink, source, |view| {
            let sent = view.server.is_some_and(UpdateSource::is_done);
            let done = sent && view.client.is_done();
            if done {
                delivered = view.client.delivered().to_vec();
                asked_at = view.client.asked_at().to_vec();
            }
            // The next update may be asked for much later, so a silence is fine.
            Progress { done, busy: false }
        })?;
        Ok(UpdatesOutcome { delivered, asked_at, ends })
    }

    fn bulk_apps(&self) -> (BulkClient, impl FnMut() -> BulkServer + use<>) {
        let client = BulkClient::new(self.plan.iter().cloned(), self.parallel, self.gap);
        let client = if self.ordered { client } else { client.unordered() };
        let protection = self.protection.clone();
        (client, move || BulkServer::new(protection.clone()))
    }

    fn client_transport(&self) -> Arc<TransportConfig> {
        Arc::new(self.client.clone())
    }

    fn server_transport(&self) -> Arc<TransportConfig> {
        Arc::new(self.server.clone())
    }
}

/// The statistics of both ends and both links until the connection was closed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ends {
    /// The client's connection.
    pub client: ConnectionStats,
    /// The server's connection.
    pub server: ConnectionStats,
    /// Why the server's redundancy policy sends redundancy at present, or sends none, if a policy in use
    /// gives a reason.
    pub reason: Option<Reason>,
    /// The link from the client to the server.
    pub up: LinkStats,
    /// The link from the server to the client.
    pub down: LinkStats,
    /// When the work was done.
    pub duration: Duration,
    /// The longest time without a datagram while the scenario was busy.
    pub longest_silence: Duration,
}

/// The outcome of streaming messages.
#[derive(Clone, Debug)]
pub struct StreamOutcome {
    /// The delays of all bytes, in stream order.
    pub delays: Vec<Delay>,
    /// When the first message was made, since the links came up.
    pub began: Duration,
    /// The statistics of the whole run.
    pub ends: Ends,
}

/// The outcome of sending datagrams.
#[derive(Clone, Debug)]
pub struct DatagramOutcome {
    /// The number and the delay of each datagram that arrived, in the order of arrival.
    pub delays: Vec<(u64, Duration)>,
    /// The statistics of the whole run.
    pub ends: Ends,
}

/// The outcome of sending messages.
#[derive(Clone, Debug)]
pub struct MessagesOutcome {
    /// The delay of each message, from when it was due until the application had all of it; `None` if
    /// it did not arrive.
    pub delays: Vec<Option<Duration>>,
    /// The outcome of each message, as the sender was told.
    pub fates: Vec<MessageOutcome>,
    /// The statistics of the whole run.
    pub ends: Ends,
}

/// The outcome of sending updates of a screen.
#[derive(Clone, Debug)]
pub struct UpdatesOutcome {
    /// The messages in the order in which they were delivered.
    pub delivered: Vec<DeliveredMessage>,
    /// When the client asked for each update, since the links came up.
    pub asked_at: Vec<Duration>,
    /// The statistics of the whole run.
    pub ends: Ends,
}
