//! Flows of TCP at the proxy.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use sutura::http::{Code, Request, RequestStream};
use sutura::{Connection, ConnectionError};
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::answer::{Case, Pending, Recorded};
use super::clients::Slot;
use super::flow_state::{FlowState, Resting};
use super::reach::{self, Unreached};
use super::rest::{FlowAtRest, WayToRest};
use super::resume::{Attachment, Resumable};
use super::{RESUME_TIME, Shared, Visit};
use crate::access::Transport;
use crate::counts::Counts;
use crate::flow::{Flow, FlowInfo};
use crate::masque::{Ask, Cause, FLOW, FlowRequest, Resumed};
use crate::stream::{Ending, Kept, Ledger, Pipe};

/// A flow and what belongs to it.
pub(super) struct Served {
    flow: Pipe,
    counts: Arc<Counts>,
    recorded: Recorded,
    resumable: Option<Resumable>,
    patience: Duration,
    /// `None` if the proxy stops already.
    way: Option<WayToRest>,
}

/// What has become of a flow without a connection.
enum Waited {
    /// Its client wants to go on.
    Asked(Attachment),
    /// Nobody has come.
    InVain,
    /// The proxy stops.
    Suspended,
}

/// The exchange that carries a flow at present.
pub(super) struct Carrier {
    stream: RequestStream,
    ledger: Option<Arc<Ledger>>,
}

/// A flow that has a place among those of its client, before the request is answered.
pub(super) struct Opening {
    case: Case,
    slot: Slot,
    answer: Pending,
    /// What it takes to go on with the flow over another connection, if the client wants that.
    kept: Option<(Resumable, Arc<Ledger>)>,
}

/// Whether a client that has lost this connection does not come back.
fn said_goodbye(connection: &Connection) -> bool {
    let reason = connection.close_reason();
    matches!(reason, Some(ConnectionError::ApplicationClosed { code, .. }) if code == Code::NO_ERROR.0)
}

impl Visit {
    /// Connects to a target, or goes on with a flow.
    pub(super) async fn tcp(self: Arc<Self>, case: Case, request: &Request, answer: Pending) {
        let asked = request.field(FLOW).and_then(FlowRequest::from_field);
        if let Some(asked) = asked {
            // A request to begin is made again if its answer was lost.
            let is_there = || self.shared.resumables.has(asked.token, &case.identity);
            if asked.taken.is_some() || is_there() {
                return self.resume(&case.identity, asked, answer).await;
            }
        }
        let Ok(opening) = self.open(case, asked, answer).await else { return };
        let Ask::Tcp(target) = &opening.case.ask else { return };
        match reach::connect(target, &self.shared.config.allow, &opening.slot.client.lookups).await
        {
            Ok(tcp) => {
                let resolved = tcp.peer_addr().ok();
                let info = FlowInfo::asked(Transport::Tcp, target, resolved);
                self.carry(opening, tcp, resolved, info, &[]).await;
            }
            Err(unreached) => self.give_up(opening, unreached).await,
        }
    }

    /// Takes a place for a flow, or refuses the request.
    pub(super) async fn open(
        &self,
        case: Case,
        asked: Option<FlowRequest>,
        answer: Pending,
    ) -> Result<Opening, ()> {
        let slot = match self.enter(&case) {
            Ok(slot) => slot,
            Err((cause, details)) => {
                self.refuse(&case, answer, cause, &details).await;
                return Err(());
            }
        };
        let kept = asked.zip(self.ledger_of(&case.identity)).and_then(|(asked, ledger)| {
            Some((self.shared.resumables.name(asked.token, &case.identity)?, ledger))
        });
        Ok(Opening { case, slot, answer, kept })
    }

    /// Refuses a flow whose target is not reached, also if it was asked for again in the meantime.
    async fn give_up(&self, opening: Opening, (cause, details): Unreached) {
        self.refuse(&opening.case, opening.answer, cause, &details).await;
        if let Some((resumable, _)) = opening.kept {
            resumable.refuse(cause, &details).await;
        }
    }

    /// Agrees to a request with a socket, whose bytes the exchange then carries.
    pub(super) async fn carry(
        &self,
        opening: Opening,
        tcp: TcpStream,
        resolved: Option<SocketAddr>,
        info: FlowInfo,
        fields: &[(&str, &[u8])],
    ) {
        let Opening { case, slot, answer, kept } = opening;
        let (resumable, ledger) = kept.unzip();
        let mut fields = fields.to_vec();
        let taken = Resumed(0).to_field();
        if resumable.is_some() {
            fields.push((FLOW, taken.as_bytes()));
        }
        let carrier = match answer.agree(&fields).await {
            Ok(stream) => Some(Carrier { stream, ledger }),
            // The client asks again, unless it has given up.
            Err(_) if resumable.is_some() && self.connection.close_reason().is_some() => None,
            Err(_) => return,
        };
        if carrier.is_none() && said_goodbye(&self.connection) {
            return;
        }
        let kept = Kept::new(resumable.is_some(), slot.client.pool.clone());
        let throttle = slot.client.throttle.clone();
        let flow = Flow::new(&self.shared.config.rules, &info);
        let counts = Arc::new(Counts::default());
        let pipe = Pipe::new(tcp, flow, kept, throttle, counts.clone());
        let recorded = self.begin(case, resolved, slot);
        let served = Served::new(pipe, counts, recorded, resumable, &self.shared);
        // It may outlive the connection, and so the task of the request.
        tokio::spawn(served.run(carrier));
    }
}

impl Served {
    pub(super) fn new(
        flow: Pipe,
        counts: Arc<Counts>,
        recorded: Recorded,
        resumable: Option<Resumable>,
        shared: &Shared,
    ) -> Self {
        let patience = shared.config.resume_time.unwrap_or(RESUME_TIME);
        Self { flow, counts, recorded, resumable, patience, way: shared.suspension.way() }
    }

    /// Carries the flow over one exchange after the other.
    pub(super) async fn run(mut self, mut carrier: Option<Carrier>) {
        let ending = loop {
            let attachment = match carrier.take() {
                Some(carrier) => match self.over(carrier).await {
                    Ok(attachment) => attachment,
                    Err(Ending::Lost) if self.resumable.is_some() => continue,
                    Err(ending) => break ending,
                },
                None => match self.wait().await {
                    Waited::Asked(attachment) => attachment,
                    Waited::InVain => break Ending::Lost,
                    Waited::Suspended => return self.rest(),
                },
            };
            carrier = self.attach(attachment).await;
        };
        self.finish(ending);
    }

    /// Ends the flow.
    fn finish(self, ending: Ending) {
        let complete = ending == Ending::Complete || self.flow.is_done();
        self.record_carried();
        self.recorded.complete.store(complete.into(), Relaxed);
        self.flow.end(if complete { Ending::Complete } else { ending });
    }

    fn record_carried(&self) {
        self.recorded.to_target.store(self.counts.received(), Relaxed);
        self.recorded.from_target.store(self.counts.sent(), Relaxed);
    }

    /// Leaves the flow to whoever goes on with it.
    fn rest(mut self) {
        let kept = self.resumable.take().zip(self.way.take());
        let Some((resumable, way)) = kept.filter(|_| !self.flow.is_done()) else {
            return self.finish(Ending::Lost);
        };
        self.record_carried();
        let Self { flow, recorded, .. } = self;
        // If its socket cannot be used, the flow is over.
        let Ok((socket, pipe)) = flow.rest() else { return };
        let (case, resolved, lasted) = recorded.rest();
        let Case { identity: owner, address, ask, .. } = case;
        if let Some(ask) = Resting::of(ask) {
            let token = resumable.token();
            let state = FlowState { token, owner, address, ask, resolved, lasted, pipe };
            way.leave(FlowAtRest::new(socket, state));
        }
    }

    /// Carries the flow over an exchange until that ends, or the client wants to go on over another.
    async fn over(&mut self, carrier: Carrier) -> Result<Attachment, Ending> {
        let connection = carrier.stream.connection().clone();
        let over = self.flow.over(carrier.stream, carrier.ledger.as_ref());
        let ending = tokio::select! {
            ending = over => ending,
            attachment = requested(self.resumable.as_mut()) => return Ok(attachment),
            // The exchange is given up after its connection, so that the client does not take it for a reset.
            () = suspended(self.way.as_mut(), Some(&connection)) => Ending::Lost,
        };
        // A client that says goodbye does not come back.
        let is_over = ending == Ending::Lost && said_goodbye(&connection);
        Err(if is_over { Ending::Reset } else { ending })
    }

    /// Waits for a client whose connection is lost.
    async fn wait(&mut self) -> Waited {
        if self.way.is_none() {
            return Waited::Suspended;
        }
        tokio::select! {
            biased;
            () = suspended(self.way.as_mut(), None) => Waited::Suspended,
            attachment = requested(self.resumable.as_mut()) => Waited::Asked(attachment),
            () = sleep(self.patience) => Waited::InVain,
        }
    }

    /// Agrees to go on over another exchange, if both ends agree about where they are.
    async fn attach(&mut self, attachment: Attachment) -> Option<Carrier> {
        if self.flow.kept().rewind(attachment.taken).is_err() {
            let why = "the flow has not come to where the client says it has";
            attachment.answer.refuse(Cause::Request, why).await;
            return None;
        }
        let address = attachment.visit.address;
        let (stream, to) = attachment.accept(self.flow.taken()).await?;
        self.recorded.resumed(address);
        Some(Carrier { stream, ledger: Some(to.ledger) })
    }
}

/// Waits for a request to go on with a flow, if it can be resumed.
async fn requested(resumable: Option<&mut Resumable>) -> Attachment {
    match resumable {
        Some(resumable) => resumable.request().await,
        None => pending().await,
    }
}

/// Waits until the proxy stops, and closes the connection that carries a flow then.
async fn suspended(way: Option<&mut WayToRest>, carrier: Option<&Connection>) {
    match (way, carrier) {
        (Some(way), Some(connection)) => way.close(connection).await,
        (Some(way), None) => way.begun().await,
        (None, _) => pending().await,
    }
}
