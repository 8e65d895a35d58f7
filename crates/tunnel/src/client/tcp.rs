//! Flows of TCP at the programs' end.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use ring::rand::{SecureRandom, SystemRandom};
use sutura::http::{RequestStream, Response};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use super::link::{Link, Unanswered, field};
use super::{OPEN_TIMEOUT, Refusal, Tunnel};
use crate::access::{Target, Transport};
use crate::counts::Counts;
use crate::flow::Flow;
use crate::masque::{Cause, FLOW, FlowRequest, FlowToken, Resumed};
use crate::stream::{Ending, Kept, Pipe};
use crate::throttle::Throttle;

/// A flow that has begun at the proxy, and waits for the program's socket.
#[derive(Debug)]
pub struct TcpTunnel {
    pub(super) tunnel: Tunnel,
    pub(super) link: Arc<Link>,
    pub(super) stream: RequestStream,
    /// The flow's name, if it can be resumed.
    pub(super) token: Option<FlowToken>,
    /// The target, for messages.
    pub(super) target: String,
    pub(super) flow: Flow,
}

/// The wish that a flow can be resumed.
pub(super) struct Wish {
    /// `None` if the system has no random numbers.
    token: Option<FlowToken>,
    field: String,
}

impl Wish {
    /// A wish for a flow to come.
    pub(super) fn new() -> Self {
        let mut token = FlowToken([0; 16]);
        let token = SystemRandom::new().fill(&mut token.0).ok().map(|()| token);
        let field = token.map(|token| FlowRequest { token, taken: None }.to_field());
        Self { token, field: field.unwrap_or_default() }
    }

    /// What tells it to a proxy, if that can do so.
    pub(super) fn fields(&self, link: &Link) -> Vec<(&str, &[u8])> {
        let is_told = self.token.is_some() && link.ledger().is_some();
        is_told.then_some((FLOW, self.field.as_bytes())).into_iter().collect()
    }

    /// The name of the flow, if the proxy answers that it can be resumed.
    pub(super) fn granted(&self, response: &Response) -> Option<FlowToken> {
        field(response, FLOW).and_then(Resumed::from_field)?;
        self.token
    }
}

impl Tunnel {
    /// Begins a flow to a target, as soon as there is a connection.
    ///
    /// # Errors
    /// There is no connection, or the proxy refuses or does not answer.
    pub async fn tcp(&self, target: &Target) -> Result<TcpTunnel, Refusal> {
        let until = Instant::now() + OPEN_TIMEOUT;
        let flow = self.flow(Transport::Tcp, target);
        let priority = flow.treatment().priority();
        let target = target.to_string();
        let wish = Wish::new();
        let opened = loop {
            let link = self.link(until).await?;
            let fields = wish.fields(&link);
            match timeout_at(until, link.tcp(&target, &fields, priority.clone())).await {
                Ok(Ok((stream, response))) => {
                    let token = wish.granted(&response);
                    break Ok((link, stream, token));
                }
                Ok(Err(Unanswered::Refused(refusal))) => break Err(refusal),
                // The proxy knows from the name whether it has begun.
                Ok(Err(Unanswered::Lost(_))) => {}
                Err(_) => {
                    let why = format!("the proxy does not answer about {target}");
                    break Err(Refusal::new(Cause::Timeout, why));
                }
            }
        };
        match opened {
            Ok((link, stream, token)) => {
                Ok(TcpTunnel { tunnel: self.clone(), link, stream, token, target, flow })
            }
            Err(refusal) => {
                self.0.totals.refused.fetch_add(1, Relaxed);
                Err(refusal)
            }
        }
    }
}

impl TcpTunnel {
    /// Carries the flow until its end. `early` is what was read from the socket already.
    pub async fn carry(self, tcp: TcpStream, early: Bytes) {
        let Self { tunnel, mut link, stream, token, target, flow } = self;
        let shared = tunnel.0.clone();
        let totals = &shared.totals;
        totals.tcp.fetch_add(1, Relaxed);
        totals.flows.fetch_add(1, Relaxed);
        let kept = Kept::new(token.is_some(), shared.pool.clone());
        if !early.is_empty() {
            kept.push(early);
        }
        let counts = Arc::new(Counts::among(totals));
        let mut pipe = Pipe::new(tcp, flow, kept, Throttle::default(), counts);
        let mut stream = stream;
        let ending = loop {
            let ledger = link.ledger().filter(|_| token.is_some()).cloned();
            match (pipe.over(stream, ledger.as_ref()).await, token) {
                (Ending::Lost, Some(_)) if pipe.is_done() => break Ending::Complete,
                (Ending::Lost, Some(token)) => match tunnel.resume(&pipe, token, &target).await {
                    Some((new, again)) => (link, stream) = (new, again),
                    None => break Ending::Lost,
                },
                (ending, _) => break ending,
            }
        };
        if ending == Ending::Lost {
            totals.lost.fetch_add(1, Relaxed);
        }
        totals.flows.fetch_sub(1, Relaxed);
        pipe.end(ending);
    }
}

impl Tunnel {
    /// Goes on with a flow over another connection. `None` if that cannot be.
    async fn resume(
        &self,
        pipe: &Pipe,
        token: FlowToken,
        target: &str,
    ) -> Option<(Arc<Link>, RequestStream)> {
        let until = Instant::now() + self.0.reconnect_time;
        loop {
            let link = self.link(until).await.ok()?;
            link.ledger()?;
            let field_value = FlowRequest { token, taken: Some(pipe.taken()) }.to_field();
            let fields = [(FLOW, field_value.as_bytes())];
            match timeout_at(until, link.tcp(target, &fields, pipe.priority())).await {
                Ok(Ok((stream, response))) => {
                    let Resumed(taken) = Resumed::from_field(field(&response, FLOW)?)?;
                    pipe.kept().rewind(taken).ok()?;
                    self.0.totals.resumed.fetch_add(1, Relaxed);
                    return Some((link, stream));
                }
                Ok(Err(Unanswered::Lost(_))) => {}
                Ok(Err(Unanswered::Refused(refusal))) => {
                    if !refusal.is_unknown_flow() {
                        self.0.notices.complain(&format!("{target}: {refusal}"));
                    }
                    return None;
                }
                Err(_) => return None,
            }
        }
    }
}
