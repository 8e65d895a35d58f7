//! The clients of a proxy and their limits.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use super::lookups::Lookups;
use super::{Identity, MAX_KEPT_BY_CLIENT};
use crate::access::Limits;
use crate::masque::Cause;
use crate::stream::Pool;
use crate::throttle::Throttle;

/// Most clients without flows that are remembered, with how much they have carried.
const MAX_REMEMBERED: usize = 4096;

/// All clients.
#[derive(Debug)]
pub(super) struct Clients {
    limits: Limits,
    known: Mutex<HashMap<Identity, Arc<Known>>>,
    /// Flows of all clients.
    flows: Arc<AtomicUsize>,
}

/// A client.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) throttle: Throttle,
    pub(super) pool: Arc<Pool>,
    pub(super) lookups: Lookups,
    /// Whether it was said that datagrams for it do not fit.
    pub(super) said_oversize: AtomicBool,
}

/// A place among the flows of a client, until it is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) client: Arc<Known>,
    all: Arc<AtomicUsize>,
}

impl Clients {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, known: Mutex::default(), flows: Arc::default() }
    }

    /// Takes a place among the flows of a client.
    ///
    /// # Errors
    /// A limit of the client is reached.
    pub(super) fn enter(&self, identity: &Identity) -> Result<Slot, (Cause, String)> {
        let client = self.client(identity);
        if client.throttle.is_exhausted() {
            let details = "this client has carried all that --max-bytes permits".into();
            return Err((Cause::Limit, details));
        }
        let full = |why| (Cause::Limit, format!("this client has {why}, as --max-flows says"));
        client.throttle.open().map_err(full)?;
        self.flows.fetch_add(1, Relaxed);
        Ok(Slot { client, all: self.flows.clone() })
    }

    /// A client, with what it has carried so far.
    pub(super) fn client(&self, identity: &Identity) -> Arc<Known> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.contains_key(identity) && known.len() >= MAX_REMEMBERED {
            known.retain(|_, client| client.throttle.flows() > 0);
        }
        let client = known.entry(identity.clone()).or_insert_with(|| {
            let pool = Arc::new(Pool::new(MAX_KEPT_BY_CLIENT));
            let (lookups, said_oversize) = Default::default();
            Arc::new(Known { throttle: Throttle::new(self.limits), pool, lookups, said_oversize })
        });
        client.clone()
    }

    pub(super) fn flows(&self) -> usize {
        self.flows.load(Relaxed)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.client.throttle.close();
        self.all.fetch_sub(1, Relaxed);
    }
}
