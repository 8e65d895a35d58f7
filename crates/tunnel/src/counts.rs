//! How much flows have carried.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// What has happened so far.
#[derive(Debug, Default)]
pub struct Totals {
    /// Flows under way.
    pub flows: AtomicUsize,
    /// Flows of TCP that began.
    pub tcp: AtomicU64,
    /// Flows of UDP that began.
    pub udp: AtomicU64,
    /// Exchanges of IP packets that began: one for each connection.
    pub ip: AtomicU64,
    /// Flows that the proxy refused.
    pub refused: AtomicU64,
    /// Connections after the first one.
    pub reconnections: AtomicU64,
    /// Flows that went on over another connection.
    pub resumed: AtomicU64,
    /// Flows that ended because their connection was lost, or the proxy had forgotten them.
    pub lost: AtomicU64,
    /// Datagrams and packets that were dropped.
    pub dropped: AtomicU64,
    /// Bytes into the tunnel.
    pub sent: AtomicU64,
    /// Bytes out of it.
    pub received: AtomicU64,
}

/// How much a flow has carried so far. It counts for all flows of an end as well, while it happens.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    sent: AtomicU64,
    received: AtomicU64,
    dropped: AtomicU64,
    all: Option<Arc<Totals>>,
}

impl Counts {
    /// Those of a flow that has carried so much already.
    pub(crate) fn since(sent: u64, received: u64) -> Self {
        Self { sent: sent.into(), received: received.into(), ..Self::default() }
    }

    /// Those of a flow that is one of many.
    pub(crate) fn among(all: &Arc<Totals>) -> Self {
        Self { all: Some(all.clone()), ..Self::default() }
    }

    /// Bytes into the tunnel.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Relaxed)
    }

    /// Bytes out of it.
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Relaxed)
    }

    /// Datagrams that were dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    /// So many bytes went into the tunnel.
    pub(crate) fn add_sent(&self, bytes: usize) {
        self.add(&self.sent, bytes, |all| &all.sent);
    }

    /// So many bytes came out of it.
    pub(crate) fn add_received(&self, bytes: usize) {
        self.add(&self.received, bytes, |all| &all.received);
    }

    /// A datagram was dropped.
    pub(crate) fn add_dropped(&self) {
        self.add(&self.dropped, 1, |all| &all.dropped);
    }

    fn add(&self, own: &AtomicU64, count: usize, among: impl Fn(&Totals) -> &AtomicU64) {
        own.fetch_add(count as u64, Relaxed);
        if let Some(all) = &self.all {
            among(all).fetch_add(count as u64, Relaxed);
        }
    }
}
