//! The fates of the packets of flows that share a link.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sutura_link::{DropCause, Fate};
use sutura_sim::{NodeId, TraceEvent, Tracer};

/// The length of an interval of the record.
pub const INTERVAL: Duration = Duration::from_millis(500);

/// The fates of the packets of a flow, from its server to its client.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Passage {
    /// Packets sent.
    pub sent: u64,
    /// Packets that found the queue full, or no token.
    pub overflow: u64,
    /// Packets that the queue passed.
    pub passed: u64,
    /// How long they waited there, in total.
    pub queued: Duration,
    /// The course of the flow, by [`INTERVAL`].
    pub intervals: Vec<Interval>,
}

/// A flow during an interval.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Interval {
    /// Bytes of UDP payload that arrived.
    pub arrived: u64,
    /// Packets that entered the queue.
    pub passed: u64,
    /// How long these wait there, in total.
    pub queued: Duration,
}

impl Passage {
    fn interval(&mut self, at: Duration) -> &mut Interval {
        let index = (at.as_nanos() / INTERVAL.as_nanos()) as usize;
        if self.intervals.len() <= index {
            self.intervals.resize(index + 1, Interval::default());
        }
        &mut self.intervals[index]
    }
}

/// Records the flows of a network. Clones share the record.
#[derive(Clone, Debug, Default)]
pub struct Meter(Rc<RefCell<Vec<(NodeId, Passage)>>>);

impl Meter {
    /// Records the packets that these servers send.
    pub fn new(servers: impl IntoIterator<Item = NodeId>) -> Self {
        let flows = servers.into_iter().map(|server| (server, Passage::default()));
        Self(Rc::new(RefCell::new(flows.collect())))
    }

    /// Takes the record, in the order of the servers.
    pub fn take(&self) -> Vec<Passage> {
        self.0.take().into_iter().map(|(_, passage)| passage).collect()
    }
}

impl Tracer for Meter {
    fn record(&mut self, at: Duration, event: &TraceEvent<'_>) {
        let (TraceEvent::Sent { from, .. } | TraceEvent::Arrived { from, .. }) = event else {
            return;
        };
        let mut flows = self.0.borrow_mut();
        let Some((_, flow)) = flows.iter_mut().find(|(server, _)| server == from) else { return };
        match event {
            TraceEvent::Sent { fate, .. } => {
                flow.sent += 1;
                match fate {
                    Fate::Dropped(DropCause::Overflow) => flow.overflow += 1,
                    Fate::Dropped(DropCause::Loss | DropCause::Outage | DropCause::TooLong) => {}
                    Fate::Delivered(deliveries) => {
                        let queued = deliveries.original.queued;
                        flow.passed += 1;
                        flow.queued += queued;
                        let interval = flow.interval(at);
                        interval.passed += 1;
                        interval.queued += queued;
                    }
                }
            }
            TraceEvent::Arrived { size, .. } => flow.interval(at).arrived += *size as u64,
            _ => {}
        }
    }
}
