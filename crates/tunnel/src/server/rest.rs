//! Flows at rest: what a proxy that stops leaves to the one that follows, in the same process or in another.

use std::fmt;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use sutura::Connection;
use sutura::http::Code;
use tokio::sync::{mpsc, watch};

use super::answer::{Case, Recorded};
use super::flow_state::{FlowState, InvalidState, Resting};
use super::tcp::Served;
use super::{Decision, Server, Shared};
use crate::access::{Host, Transport};
use crate::counts::Counts;
use crate::flow::{Flow, FlowInfo};
use crate::masque::Cause;
use crate::stream::Pipe;

/// A flow of TCP that no proxy carries: the socket to its target, and what is to be known to go on. Its target sees a
/// reset when the last copy of the socket is closed, unless a proxy has gone on with the flow.
pub struct FlowAtRest {
    socket: TcpStream,
    state: FlowState,
}

impl fmt::Debug for FlowAtRest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlowAtRest").field("owner", &self.state.owner).finish_non_exhaustive()
    }
}

impl FlowAtRest {
    pub(super) const fn new(socket: TcpStream, state: FlowState) -> Self {
        Self { socket, state }
    }

    /// A flow from its parts.
    ///
    /// # Errors
    /// The bytes are not what [`into_parts`](Self::into_parts) of this version returns.
    pub fn from_parts(socket: TcpStream, state: Bytes) -> Result<Self, InvalidState> {
        Ok(Self { socket, state: FlowState::decode(state)? })
    }

    /// The socket, and the rest as at most [`MAX_FLOW_STATE`](super::MAX_FLOW_STATE) bytes. They have the name by which
    /// the client asks for the flow, and what was carried last: both are secret. `None` if the name of the client
    /// is too long for that.
    #[must_use]
    pub fn into_parts(self) -> Option<(TcpStream, Vec<u8>)> {
        let state = self.state.encode()?;
        Some((self.socket, state))
    }
}

/// Whether the proxy is to stop, and where its flows go then.
#[derive(Debug)]
pub(super) struct Suspension {
    /// Why, once it is.
    begun: watch::Sender<Option<Arc<[u8]>>>,
    way: Mutex<Option<mpsc::UnboundedSender<FlowAtRest>>>,
    collected: Mutex<Option<mpsc::UnboundedReceiver<FlowAtRest>>>,
}

/// A flow's way to rest. As long as one exists, more flows are waited for.
#[derive(Debug)]
pub(super) struct WayToRest {
    begun: watch::Receiver<Option<Arc<[u8]>>>,
    way: mpsc::UnboundedSender<FlowAtRest>,
}

impl Default for Suspension {
    fn default() -> Self {
        let (way, collected) = mpsc::unbounded_channel();
        let (way, collected) = (Some(way).into(), Some(collected).into());
        Self { begun: watch::Sender::new(None), way, collected }
    }
}

fn take<T>(place: &Mutex<Option<T>>) -> Option<T> {
    place.lock().unwrap_or_else(PoisonError::into_inner).take()
}

impl Suspension {
    /// The way of a new flow; `None` if it comes too late.
    pub(super) fn way(&self) -> Option<WayToRest> {
        let way = self.way.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        Some(WayToRest { begun: self.begun.subscribe(), way })
    }

    /// Waits until the proxy is to stop.
    pub(super) async fn begun(&self) {
        wait(&mut self.begun.subscribe()).await;
    }

    /// The same, and closes a connection then.
    pub(super) async fn close(&self, connection: &Connection) {
        part(connection, &mut self.begun.subscribe()).await;
    }
}

impl WayToRest {
    /// Waits until the proxy is to stop.
    pub(super) async fn begun(&mut self) {
        wait(&mut self.begun).await;
    }

    /// The same, and closes the connection that carries the flow then.
    pub(super) async fn close(&mut self, connection: &Connection) {
        part(connection, &mut self.begun).await;
    }

    pub(super) fn leave(self, flow: FlowAtRest) {
        // Whoever has suspended the proxy may have given up.
        let _ = self.way.send(flow);
    }
}

async fn wait(begun: &mut watch::Receiver<Option<Arc<[u8]>>>) -> Arc<[u8]> {
    let why = begun.wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
    match why {
        Some(why) => why,
        // The sender is there as long as the proxy is, and so as long as its flows.
        None => std::future::pending().await,
    }
}

/// The client takes this for a lost connection: it connects again and asks for its flows.
async fn part(connection: &Connection, begun: &mut watch::Receiver<Option<Arc<[u8]>>>) {
    let why = wait(begun).await;
    connection.close(Code::NO_ERROR.0, &why);
}

impl Server {
    /// Stops: closes all connections, for this reason, and returns the flows of TCP that can be resumed. Others are
    /// reset, and what comes afterwards is not answered. Clients of Sutura connect again by themselves and ask for
    /// their flows, at a server that [`restore`](Self::restore) has given them to.
    ///
    /// Flows that wait for a client whose connection was lost are among them; listeners and flows of UDP are not, as
    /// clients begin these anew. A second call returns none.
    pub async fn suspend(&self, reason: &[u8]) -> Vec<FlowAtRest> {
        let suspension = &self.0.suspension;
        // A flow that begins from now on has no way to rest.
        drop(take(&suspension.way));
        suspension.begun.send_replace(Some(reason.into()));
        let mut flows = Vec::new();
        if let Some(mut collected) = take(&suspension.collected) {
            while let Some(flow) = collected.recv().await {
                flows.push(flow);
            }
        }
        flows
    }

    /// Whether [`suspend`](Self::suspend) was called.
    #[must_use]
    pub fn is_suspended(&self) -> bool {
        self.0.suspension.begun.borrow().is_some()
    }

    /// Takes flows at rest, which then wait for their clients as after a lost connection. Call it before connections
    /// are served, or clients are told that their flows are gone. Returns how many flows were taken.
    ///
    /// The rules and limits of this server hold: a flow to what is not allowed any more, or beyond the flows that its
    /// client may have, is recorded as refused and reset.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn restore(&self, flows: Vec<FlowAtRest>) -> usize {
        flows.into_iter().filter_map(|flow| self.0.restore(flow)).count()
    }
}

impl Shared {
    /// Goes on with a flow.
    fn restore(self: &Arc<Self>, flow: FlowAtRest) -> Option<()> {
        let FlowAtRest { socket, state } = flow;
        let FlowState { token, owner, address, ask, resolved, lasted, pipe } = state;
        let permitted = self.permits(&ask, resolved);
        let info = match &ask {
            Resting::To(target) => FlowInfo::asked(Transport::Tcp, target, resolved),
            Resting::At(listen) => FlowInfo::asked(Transport::Tcp, listen, None),
        };
        let flow = Flow::new(&self.config.rules, &info);
        let case = Case { identity: owner, address, ask: ask.into_ask(), assigned: Vec::new() };
        let entered = permitted.and_then(|()| {
            let slot = self.clients.enter(&case.identity)?;
            let taken = || (Cause::Request, "another flow has its name".to_owned());
            Ok((slot, self.resumables.name(token, &case.identity).ok_or_else(taken)?))
        });
        let (slot, resumable) = match entered {
            Ok(entered) => entered,
            Err((cause, details)) => {
                let details = &*details;
                self.record(&case, resolved, Decision::Refused { cause, details });
                return None;
            }
        };
        let (received, sent) = pipe.carried();
        let counts = Arc::new(Counts::since(sent, received));
        let (pool, throttle) = (slot.client.pool.clone(), slot.client.throttle.clone());
        let began = Instant::now().checked_sub(lasted).unwrap_or_else(Instant::now);
        let recorded = Recorded::since(began, self.clone(), case, resolved, slot);
        // An error of the socket ends the flow, which is recorded.
        let pipe = Pipe::resting(socket, flow, pipe, pool, throttle, counts.clone()).ok()?;
        let served = Served::new(pipe, counts, recorded, Some(resumable), self);
        tokio::spawn(served.run(None));
        Some(())
    }

    /// Whether the rules allow what a flow has.
    fn permits(&self, ask: &Resting, resolved: Option<SocketAddr>) -> Result<(), (Cause, String)> {
        let (allow, target, address) = match ask {
            Resting::To(target) => (&*self.config.allow, target, resolved),
            // Which address of the machine a name stood for is not known any more.
            Resting::At(target) => (&self.config.allow_listen, target, None),
        };
        let (tcp, port) = (Transport::Tcp, target.port);
        let is_allowed = match (&target.host, address) {
            (Host::Ip(ip), _) => allow.check(tcp, None, (*ip, port).into()).is_ok(),
            (Host::Name(name), Some(address)) => allow.check(tcp, Some(name), address).is_ok(),
            (Host::Name(name), None) => allow.may_allow(tcp, name, port),
        };
        let why = || (Cause::Prohibited, format!("{target} is not allowed any more"));
        is_allowed.then_some(()).ok_or_else(why)
    }
}
