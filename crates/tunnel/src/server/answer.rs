//! Answers requests.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use sutura::http::{Error, Request, RequestStream};

use super::clients::Slot;
use super::{Decision, Identity, Record, Shared, Visit};
use crate::masque::{AUTHENTICATE, Ask, Cause, PROXY_STATUS};
use crate::stream::Ledger;

/// An exchange that waits for its answer.
#[derive(Debug)]
pub(super) struct Pending {
    stream: RequestStream,
}

/// Whose request it is, and what it asks for.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) identity: Identity,
    pub(super) address: SocketAddr,
    pub(super) ask: Ask,
    /// The addresses that the client has in a tunnel of IP packets.
    pub(super) assigned: Vec<IpAddr>,
}

/// A flow in the records: it is recorded as over when this is dropped.
pub(super) struct Recorded {
    shared: Arc<Shared>,
    case: Case,
    resolved: Option<SocketAddr>,
    began: Instant,
    pub(super) to_target: AtomicU64,
    pub(super) from_target: AtomicU64,
    pub(super) dropped: AtomicU64,
    /// Whether both directions came to their end: 1.
    pub(super) complete: AtomicU64,
    /// Whether another process goes on with it.
    at_rest: bool,
    _slot: Slot,
}

impl Pending {
    pub(super) const fn new(stream: RequestStream) -> Self {
        Self { stream }
    }

    /// Refuses.
    pub(super) async fn refuse(self, cause: Cause, details: &str) {
        self.refuse_as(cause.status(), cause, details).await;
    }

    /// Refuses with another status than that of the cause.
    pub(super) async fn refuse_as(mut self, status: u16, cause: Cause, details: &str) {
        let why = cause.to_field(details);
        let mut fields = vec![(PROXY_STATUS, why.as_bytes())];
        if cause == Cause::Denied {
            fields.push((AUTHENTICATE, b"Bearer realm=\"sutura tunnel\""));
        }
        // The client may be gone.
        if self.stream.send_response(status, &fields).await.is_ok() {
            let _ = self.stream.finish().await;
        }
    }

    /// Agrees, and returns the exchange.
    pub(super) async fn agree(mut self, fields: &[(&str, &[u8])]) -> Result<RequestStream, Error> {
        self.stream.send_response(200, fields).await?;
        Ok(self.stream)
    }

    /// Tells something before the answer.
    pub(super) async fn inform(&mut self, fields: &[(&str, &[u8])]) -> Result<(), Error> {
        self.stream.send_response(100, fields).await
    }

    /// Waits until the client gives the request up.
    pub(super) async fn given_up(&mut self) {
        // The client sends nothing before the answer, unless it breaks the protocol.
        let _ = self.stream.recv_data().await;
    }
}

impl Visit {
    /// Answers a request of a client that may ask.
    pub(super) async fn answer(
        self: Arc<Self>,
        identity: Identity,
        request: &Request,
        stream: RequestStream,
    ) {
        let answer = Pending::new(stream);
        let ask = match Ask::of(request) {
            Ok(ask) => ask,
            Err(bad) => return answer.refuse_as(bad.status, Cause::Request, bad.reason).await,
        };
        let address = self.connection.remote_address();
        let case = Case { identity, address, ask, assigned: Vec::new() };
        match &case.ask {
            Ask::Flows => self.keep_ledger(case.identity, answer).await,
            Ask::Tcp(_) => self.tcp(case, request, answer).await,
            Ask::Udp(_) => self.udp(case, answer).await,
            Ask::Ip(_) => self.ip(case, answer).await,
            Ask::Accept(_) => self.listen(case, request, answer).await,
        }
    }

    /// Tells and hears of the progress of the connection's flows until it ends.
    async fn keep_ledger(&self, identity: Identity, answer: Pending) {
        let ledger = Arc::new(Ledger::default());
        if self.ledger.set((ledger.clone(), identity)).is_err() {
            return answer
                .refuse(Cause::Request, "the connection has its flows told already")
                .await;
        }
        let fields = [crate::masque::CAPSULE_PROTOCOL];
        if let Ok(stream) = answer.agree(&fields).await
            && let Err(error) = ledger.run(stream).await
        {
            tracing::debug!(%error, "no more progress of flows is told");
        }
    }

    /// The connection's ledger, if it is this client's, who wants its flows to be resumable.
    pub(super) fn ledger_of(&self, identity: &Identity) -> Option<Arc<Ledger>> {
        let (ledger, owner) = self.ledger.get()?;
        (owner == identity).then(|| ledger.clone())
    }

    /// Takes a place among the flows of a client.
    pub(super) fn enter(&self, case: &Case) -> Result<Slot, (Cause, String)> {
        self.shared.clients.enter(&case.identity)
    }

    /// Refuses a request, and records that.
    pub(super) async fn refuse(&self, case: &Case, answer: Pending, cause: Cause, details: &str) {
        self.refuse_as(cause.status(), case, answer, cause, details).await;
    }

    /// The same with another status than that of the cause.
    pub(super) async fn refuse_as(
        &self,
        status: u16,
        case: &Case,
        answer: Pending,
        cause: Cause,
        details: &str,
    ) {
        self.shared.record(case, None, Decision::Refused { cause, details });
        answer.refuse_as(status, cause, details).await;
    }

    /// Records that a flow begins.
    pub(super) fn begin(&self, case: Case, resolved: Option<SocketAddr>, slot: Slot) -> Recorded {
        self.shared.record(&case, resolved, Decision::Begun);
        Recorded::since(Instant::now(), self.shared.clone(), case, resolved, slot)
    }
}

impl Shared {
    pub(super) fn record(&self, case: &Case, resolved: Option<SocketAddr>, decision: Decision<'_>) {
        let Case { identity, address, ask, assigned } = case;
        let client = identity;
        let record = Record { client, address: *address, ask, resolved, assigned, decision };
        self.observer.record(&record);
    }
}

impl Recorded {
    /// A flow that began at this time, which is recorded already.
    pub(super) fn since(
        began: Instant,
        shared: Arc<Shared>,
        case: Case,
        resolved: Option<SocketAddr>,
        slot: Slot,
    ) -> Self {
        Self {
            shared,
            case,
            resolved,
            began,
            to_target: AtomicU64::new(0),
            from_target: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            complete: AtomicU64::new(0),
            at_rest: false,
            _slot: slot,
        }
    }

    /// What another process is to know of the flow: whose it is and what for, the address of the target, and how long
    /// it has lasted. It is recorded as suspended.
    pub(super) fn rest(mut self) -> (Case, Option<SocketAddr>, Duration) {
        self.at_rest = true;
        (self.case.clone(), self.resolved, self.began.elapsed())
    }

    /// Records that the flow goes on over another connection.
    pub(super) fn resumed(&mut self, address: SocketAddr) {
        self.case.address = address;
        self.shared.record(&self.case, self.resolved, Decision::Resumed);
    }

    /// Records that a client has the addresses of before again, in a tunnel of IP packets.
    pub(super) fn moved(&mut self, addresses: &[IpAddr]) {
        self.case.assigned = addresses.to_vec();
        self.shared.record(&self.case, self.resolved, Decision::Resumed);
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        let (to_target, from_target) =
            (self.to_target.load(Relaxed), self.from_target.load(Relaxed));
        let lasted = self.began.elapsed();
        let decision = if self.at_rest {
            Decision::Suspended { to_target, from_target, lasted }
        } else {
            let dropped = self.dropped.load(Relaxed);
            let complete = self.complete.load(Relaxed) == 1;
            Decision::Ended { to_target, from_target, dropped, complete, lasted }
        };
        self.shared.record(&self.case, self.resolved, decision);
    }
}
