//! Flows of TCP at the proxy.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use sutura::ConnectionError;
use sutura::http::{Code, Request, RequestStream};
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::answer::{Case, Pending, Recorded};
use super::clients::Slot;
use super::reach;
use super::resume::{Attachment, Resumable};
use super::{RESUME_TIME, Visit};
use crate::masque::{Ask, Cause, FLOW, Resumption};
use crate::stream::{Counts, Ending, Kept, Ledger, Pipe};

/// A flow and what belongs to it.
struct Served {
    flow: Pipe,
    counts: Arc<Counts>,
    recorded: Recorded,
    resumable: Option<Resumable>,
    patience: Duration,
}

/// The exchange that carries a flow at present.
struct Carrier {
    stream: RequestStream,
    ledger: Option<Arc<Ledger>>,
}

impl Visit {
    /// Connects to a target, or goes on with a flow.
    pub(super) async fn tcp(self: Arc<Self>, case: Case, request: &Request, answer: Pending) {
        let Ask::Tcp(target) = &case.ask else { return };
        if let Some(resumption) = request.field(FLOW).and_then(Resumption::from_field) {
            return self.resume(&case.identity, resumption, answer).await;
        }
        let slot = match self.enter(&case) {
            Ok(slot) => slot,
            Err((cause, details)) => return self.refuse(&case, answer, cause, &details).await,
        };
        match reach::connect(target, &self.shared.config.allow).await {
            Ok(tcp) => {
                let resolved = tcp.peer_addr().ok();
                self.carry(case, slot, request, answer, tcp, resolved, &[]).await;
            }
            Err((cause, details)) => self.refuse(&case, answer, cause, &details).await,
        }
    }

    /// Agrees to a request with a socket, whose bytes the exchange then carries.
    #[expect(clippy::too_many_arguments, reason = "each is a part of the same flow")]
    pub(super) async fn carry(
        &self,
        case: Case,
        slot: Slot,
        request: &Request,
        answer: Pending,
        tcp: TcpStream,
        resolved: Option<SocketAddr>,
        fields: &[(&str, &[u8])],
    ) {
        let ledger = self.ledger_of(&case.identity).filter(|_| request.field(FLOW) == Some(b"?1"));
        let resumable = ledger.as_ref().and_then(|_| self.shared.resumables.name(&case.identity));
        let token = resumable.as_ref().map(|resumable| resumable.token.to_field());
        let mut fields = fields.to_vec();
        if let Some(token) = &token {
            fields.push((FLOW, token.as_bytes()));
        }
        let Ok(stream) = answer.agree(&fields).await else { return };
        let kept = Kept::new(resumable.is_some(), slot.client.pool.clone());
        let throttle = slot.client.throttle.clone();
        let counts = Arc::new(Counts::default());
        let served = Served {
            flow: Pipe::new(tcp, kept, throttle, counts.clone()),
            counts,
            recorded: self.begin(case, resolved, slot),
            resumable,
            patience: self.shared.config.resume_time.unwrap_or(RESUME_TIME),
        };
        // It may outlive the connection, and so the task of the request.
        tokio::spawn(served.run(Carrier { stream, ledger }));
    }
}

impl Served {
    /// Carries the flow over one exchange after the other.
    async fn run(mut self, first: Carrier) {
        let mut carrier = Some(first);
        let ending = loop {
            let attachment = match carrier.take() {
                Some(carrier) => match self.over(carrier).await {
                    Ok(attachment) => attachment,
                    Err(Ending::Lost) if self.resumable.is_some() => continue,
                    Err(ending) => break ending,
                },
                None => match self.wait().await {
                    Some(attachment) => attachment,
                    None => break Ending::Lost,
                },
            };
            carrier = self.attach(attachment).await;
        };
        let complete = ending == Ending::Complete || self.flow.is_done();
        let recorded = &self.recorded;
        recorded.to_target.store(self.counts.received.load(Relaxed), Relaxed);
        recorded.from_target.store(self.counts.sent.load(Relaxed), Relaxed);
        recorded.complete.store(complete.into(), Relaxed);
        self.flow.end(if complete { Ending::Complete } else { ending });
    }

    /// Carries the flow over an exchange until that ends, or the client wants to go on over another.
    async fn over(&mut self, carrier: Carrier) -> Result<Attachment, Ending> {
        let connection = carrier.stream.connection().clone();
        let over = self.flow.over(carrier.stream, carrier.ledger.as_ref());
        let ending = match &mut self.resumable {
            None => over.await,
            Some(resumable) => tokio::select! {
                ending = over => ending,
                attachment = resumable.request() => return Ok(attachment),
            },
        };
        match (ending, connection.close_reason()) {
            // A client that says goodbye does not come back.
            (Ending::Lost, Some(ConnectionError::ApplicationClosed { code, .. }))
                if code == Code::NO_ERROR.0 =>
            {
                Err(Ending::Reset)
            }
            (ending, _) => Err(ending),
        }
    }

    /// Waits for a client whose connection is lost.
    async fn wait(&mut self) -> Option<Attachment> {
        let resumable = self.resumable.as_mut()?;
        tokio::select! {
            attachment = resumable.request() => Some(attachment),
            () = sleep(self.patience) => None,
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
