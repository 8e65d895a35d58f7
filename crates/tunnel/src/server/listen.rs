//! Listening at the proxy for clients: each request waits for one TCP connection.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sutura::http::Request;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep, sleep_until};

use super::answer::{Case, Pending};
use super::{Identity, Visit, reach};
use crate::access::{Target, Transport};
use crate::bounded_accept::PAUSE;
use crate::flow::FlowInfo;
use crate::masque::{Ask, Cause, FLOW, FlowRequest, LISTENING, PEER};

/// Addresses that one client listens at, at most.
pub const MAX_LISTENERS: usize = 64;
/// Requests of a client that wait at an address, at most.
pub const MAX_WAITING: usize = 64;
/// How long is listened after the last request that waited is gone: a client whose connection was lost comes back.
pub const LISTEN_GRACE: Duration = Duration::from_secs(30);

/// Where is listened, and for whom.
type Seat = (Identity, Target);

/// All addresses that are listened at.
#[derive(Debug, Default)]
pub(super) struct Listeners(Mutex<HashMap<Seat, Arc<Queue>>>);

/// The requests that wait for connections to an address.
#[derive(Debug)]
struct Queue {
    address: SocketAddr,
    waiting: Mutex<VecDeque<oneshot::Sender<(TcpStream, SocketAddr)>>>,
    came: Notify,
}

impl Queue {
    fn waiting(&self) -> MutexGuard<'_, VecDeque<oneshot::Sender<(TcpStream, SocketAddr)>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a request waits; `None` if none has come for too long.
    async fn next(&self) -> Option<oneshot::Sender<(TcpStream, SocketAddr)>> {
        let until = Instant::now() + LISTEN_GRACE;
        loop {
            let came = self.came.notified();
            let next = {
                let mut waiting = self.waiting();
                std::iter::from_fn(|| waiting.pop_front()).find(|request| !request.is_closed())
            };
            if next.is_some() {
                return next;
            }
            tokio::select! {
                () = came => {}
                () = sleep_until(until) => return None,
            }
        }
    }

    /// Hands each connection to a request.
    async fn accept(&self, listener: &TcpListener) {
        while let Some(mut request) = self.next().await {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = request.closed() => continue,
            };
            match accepted {
                // A request that has been given up at this moment takes the connection with it.
                Ok(accepted) => drop(request.send(accepted)),
                Err(_) => {
                    self.waiting().push_front(request);
                    sleep(PAUSE).await;
                }
            }
        }
    }
}

impl Visit {
    /// Waits for a connection, and carries it.
    pub(super) async fn listen(
        self: Arc<Self>,
        case: Case,
        request: &Request,
        mut answer: Pending,
    ) {
        let Ask::Accept(target) = &case.ask else { return };
        let queue = match self.queue(&case.identity, target).await {
            Ok(queue) => queue,
            Err((cause, details)) => return self.refuse(&case, answer, cause, &details).await,
        };
        let (sender, receiver) = oneshot::channel();
        {
            let mut waiting = queue.waiting();
            waiting.retain(|request| !request.is_closed());
            if waiting.len() < MAX_WAITING {
                waiting.push_back(sender);
            }
        }
        queue.came.notify_waiters();
        let at = format!("\"{}\"", queue.address);
        if answer.inform(&[(LISTENING, at.as_bytes())]).await.is_err() {
            return;
        }
        let accepted = tokio::select! {
            accepted = receiver => accepted,
            () = answer.given_up() => return,
        };
        let Ok((tcp, peer)) = accepted else {
            let details = "too many requests wait at this address";
            return self.refuse(&case, answer, Cause::Limit, details).await;
        };
        let asked = request.field(FLOW).and_then(FlowRequest::from_field);
        // What is served at the address that the client listens at.
        let info = FlowInfo::asked(Transport::Tcp, target, Some(queue.address));
        let Ok(opening) = self.open(case, asked, answer).await else { return };
        let field = format!("\"{peer}\"");
        let fields = [(PEER, field.as_bytes())];
        self.carry(opening, tcp, Some(peer), info, &fields).await;
    }

    /// The queue of a client at an address; listens there if it is the first.
    async fn queue(
        self: &Arc<Self>,
        identity: &Identity,
        target: &Target,
    ) -> Result<Arc<Queue>, (Cause, String)> {
        let place = (identity.clone(), target.clone());
        if let Some(queue) = self.shared.listeners.find(&place) {
            return Ok(queue);
        }
        let client = self.shared.clients.client(identity);
        let allow = &self.shared.config.allow_listen;
        let addresses = reach::addresses(Transport::Tcp, target, allow, &client.lookups).await;
        let addresses = addresses.map_err(|(cause, why)| match cause {
            Cause::Prohibited => (
                cause,
                format!(
                    "listening at {target} is not allowed (--allow-listen {target} would allow it)"
                ),
            ),
            cause => (cause, why),
        })?;
        let unusable = |error: std::io::Error| {
            (Cause::Internal, format!("cannot listen on {target}: {error}"))
        };
        let listener = TcpListener::bind(&addresses[..]).await.map_err(unusable)?;
        let address = listener.local_addr().map_err(unusable)?;
        let queue = Arc::new(Queue { address, waiting: Mutex::default(), came: Notify::new() });
        self.shared.listeners.add(place.clone(), queue.clone())?;
        let (shared, kept) = (self.shared.clone(), queue.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = kept.accept(&listener) => {}
                () = shared.suspension.begun() => {}
            }
            shared.listeners.lock().remove(&place);
        });
        Ok(queue)
    }
}

impl Listeners {
    fn lock(&self) -> MutexGuard<'_, HashMap<Seat, Arc<Queue>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, place: &Seat) -> Option<Arc<Queue>> {
        self.lock().get(place).cloned()
    }

    fn add(&self, place: Seat, queue: Arc<Queue>) -> Result<(), (Cause, String)> {
        let mut all = self.lock();
        if all.keys().filter(|(owner, _)| *owner == place.0).count() >= MAX_LISTENERS {
            let details = format!("this client listens at {MAX_LISTENERS} addresses already");
            return Err((Cause::Limit, details));
        }
        all.insert(place, queue);
        Ok(())
    }
}
