//! Resending by a separate scheduler among the streams that lost data.

use super::{Precedence, ResendOrder};
use crate::ids::MIN_UDP_PAYLOAD;
use sutura_schedule::{Priority, Scheduler, StreamKey};

/// A scheduler decides among the streams that lost data. It sees only lost data: a stream is active in the
/// scheduler while lost data of the stream waits, and is charged only for resending this data.
#[derive(Debug)]
pub struct ByScheduler {
    precedence: Precedence,
    lossy: Box<dyn Scheduler>,
}

impl ByScheduler {
    /// Creates the order from `lossy`, a scheduler without streams.
    #[must_use]
    pub fn new(precedence: Precedence, lossy: Box<dyn Scheduler>) -> Self {
        Self { precedence, lossy }
    }
}

impl ResendOrder for ByScheduler {
    fn precedence(&self) -> Precedence {
        self.precedence
    }

    fn insert(&mut self, stream: StreamKey, priority: &Priority) {
        self.lossy.insert(stream, priority.clone());
    }

    fn remove(&mut self, stream: StreamKey) {
        self.lossy.remove(stream);
    }

    fn reprioritize(&mut self, stream: StreamKey, priority: &Priority) {
        self.lossy.reprioritize(stream, priority.clone());
    }

    fn queued(&mut self, stream: StreamKey) {
        self.lossy.activate(stream);
    }

    fn dequeued(&mut self, stream: StreamKey, left: usize) {
        if left == 0 {
            self.lossy.deactivate(stream);
        }
    }

    fn charge(&mut self, stream: StreamKey, bytes: usize) {
        self.lossy.charge(stream, bytes);
    }

    fn next(&self) -> Option<StreamKey> {
        // Only the stream of the grant matters: the packet alone limits the size of the frame.
        self.lossy.next(MIN_UDP_PAYLOAD.into()).map(|grant| grant.stream)
    }
}
