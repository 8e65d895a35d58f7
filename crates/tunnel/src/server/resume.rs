//! Flows that outlive the connections of their clients.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sutura::http::RequestStream;
use tokio::sync::mpsc;

use super::answer::Pending;
use super::{Identity, Visit};
use crate::masque::{Cause, FlowRequest, FlowToken};
use crate::stream::Ledger;

/// Requests to resume a flow that wait for its task. The newest counts, so one is enough.
const MAX_WAITING_RESUMPTIONS: usize = 1;

/// A request to go on with a flow.
#[derive(Debug)]
pub(super) struct Attachment {
    pub(super) answer: Pending,
    pub(super) taken: u64,
    pub(super) visit: AttachedTo,
}

/// The connection over which a flow is to go on.
#[derive(Debug)]
pub(super) struct AttachedTo {
    pub(super) ledger: Arc<Ledger>,
    pub(super) address: std::net::SocketAddr,
}

/// The flows that can be resumed, by their secret names.
#[derive(Debug, Default)]
pub(super) struct Resumables(Arc<Mutex<HashMap<FlowToken, Owned>>>);

#[derive(Debug)]
struct Owned {
    owner: Identity,
    requests: mpsc::Sender<Attachment>,
}

/// A flow that can be resumed, until this is dropped.
#[derive(Debug)]
pub(super) struct Resumable {
    token: FlowToken,
    requests: mpsc::Receiver<Attachment>,
    all: Arc<Mutex<HashMap<FlowToken, Owned>>>,
}

fn lock(all: &Mutex<HashMap<FlowToken, Owned>>) -> MutexGuard<'_, HashMap<FlowToken, Owned>> {
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Resumables {
    /// Names a flow of a client. `None` if another flow has this name.
    pub(super) fn name(&self, token: FlowToken, owner: &Identity) -> Option<Resumable> {
        match lock(&self.0).entry(token) {
            Entry::Occupied(_) => None,
            Entry::Vacant(place) => {
                let (sender, requests) = mpsc::channel(MAX_WAITING_RESUMPTIONS);
                place.insert(Owned { owner: owner.clone(), requests: sender });
                Some(Resumable { token, requests, all: self.0.clone() })
            }
        }
    }

    /// Whether a flow of this client has this name.
    pub(super) fn has(&self, token: FlowToken, owner: &Identity) -> bool {
        self.find(token, owner).is_some()
    }

    /// Where to ask for a flow, if it is this client's.
    fn find(&self, token: FlowToken, owner: &Identity) -> Option<mpsc::Sender<Attachment>> {
        let all = lock(&self.0);
        let entry = all.get(&token).filter(|entry| entry.owner == *owner)?;
        Some(entry.requests.clone())
    }
}

impl Resumable {
    /// The flow's name.
    pub(super) const fn token(&self) -> FlowToken {
        self.token
    }

    /// Waits for a request to go on.
    pub(super) async fn request(&mut self) -> Attachment {
        match self.requests.recv().await {
            Some(attachment) => attachment,
            // The sender is kept as long as this is.
            None => std::future::pending().await,
        }
    }

    /// Refuses the requests that wait, as the flow is not to be.
    pub(super) async fn refuse(mut self, cause: Cause, details: &str) {
        while let Ok(attachment) = self.requests.try_recv() {
            attachment.answer.refuse(cause, details).await;
        }
    }
}

impl Drop for Resumable {
    fn drop(&mut self) {
        lock(&self.all).remove(&self.token);
    }
}

impl Visit {
    /// Hands a request to go on with a flow to the flow's task. If there is none, says so at once.
    pub(super) async fn resume(&self, owner: &Identity, request: FlowRequest, answer: Pending) {
        let found = self.shared.resumables.find(request.token, owner);
        let (Some(requests), Some(ledger)) = (found, self.ledger_of(owner)) else {
            return answer.refuse(Cause::UnknownFlow, "there is no such flow any more").await;
        };
        let visit = AttachedTo { ledger, address: self.connection.remote_address() };
        let attachment = Attachment { answer, taken: request.taken.unwrap_or_default(), visit };
        // If the task has ended meanwhile, the exchange is abandoned, which tells the client.
        let _ = requests.send(attachment).await;
    }
}

impl Attachment {
    /// Agrees to go on, and says how much was taken at this end.
    pub(super) async fn accept(self, taken: u64) -> Option<(RequestStream, AttachedTo)> {
        let field = crate::masque::Resumed(taken).to_field();
        let fields = [(crate::masque::FLOW, field.as_bytes())];
        let stream = self.answer.agree(&fields).await.ok()?;
        Some((stream, self.visit))
    }
}
