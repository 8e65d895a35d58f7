//! The memory in which the flows of a client keep what may have to be sent again.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Memory that flows share. A flow may take a quarter of what is free, so that some is always left for others.
#[derive(Debug)]
pub(crate) struct Pool {
    limit: usize,
    used: AtomicUsize,
}

impl Pool {
    /// A pool of `limit` bytes.
    pub(crate) const fn new(limit: usize) -> Self {
        Self { limit, used: AtomicUsize::new(0) }
    }

    /// Most bytes that a flow may hold now.
    pub(super) fn share(&self) -> usize {
        self.limit.saturating_sub(self.used.load(Relaxed)) / 4
    }

    pub(super) fn add(&self, bytes: usize) {
        self.used.fetch_add(bytes, Relaxed);
    }

    pub(super) fn remove(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Relaxed);
    }

    /// Bytes that are held.
    #[cfg(test)]
    pub(crate) fn used(&self) -> usize {
        self.used.load(Relaxed)
    }
}
