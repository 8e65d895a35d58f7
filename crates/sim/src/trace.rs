//! Human-readable traces of a simulation.

use std::collections::VecDeque;
use std::fmt::{self, Write};
use std::time::Duration;

use sutura_link::Fate;

use crate::NodeId;

/// An event of a simulation.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum TraceEvent<'a> {
    /// A datagram was handed to a link.
    Sent {
        /// The sender.
        from: NodeId,
        /// The receiver.
        to: NodeId,
        /// The datagram.
        payload: &'a [u8],
        /// The link's decision about it.
        fate: Fate,
    },
    /// A datagram was dropped: no node has its destination address, or no link leads there.
    Unroutable {
        /// The sender.
        from: NodeId,
        /// The payload of the datagram, or of the whole batch.
        payload: &'a [u8],
    },
    /// A datagram arrived.
    Arrived {
        /// The sender.
        from: NodeId,
        /// The receiver.
        to: NodeId,
        /// Its size in bytes.
        size: usize,
        /// Whether the link damaged it.
        corrupt: bool,
    },
    /// A node's timer fired.
    Timeout {
        /// The node.
        node: NodeId,
    },
}

impl fmt::Display for TraceEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Sent { from, to, payload, fate } => {
                write!(f, "{} -> {}: {} bytes, ", from.0, to.0, payload.len())?;
                match fate {
                    Fate::Dropped(cause) => write!(f, "dropped ({cause:?})"),
                    Fate::Delivered(deliveries) => {
                        write!(f, "to arrive at")?;
                        deliveries.into_iter().try_for_each(|d| write!(f, " {:?}", d.at))
                    }
                }
            }
            Self::Unroutable { from, payload } => {
                write!(f, "{} -> nowhere: {} bytes", from.0, payload.len())
            }
            Self::Arrived { from, to, size, corrupt } => {
                let damaged = if corrupt { ", damaged" } else { "" };
                write!(f, "{} <- {}: {size} bytes{damaged}", to.0, from.0)
            }
            Self::Timeout { node } => write!(f, "{} timer", node.0),
        }
    }
}

/// Receives every event, in order.
pub trait Tracer {
    /// Called when `event` happens, `at` after the start.
    fn record(&mut self, at: Duration, event: &TraceEvent<'_>);

    /// Text to print if the simulation fails.
    fn report(&self) -> String {
        String::new()
    }
}

/// Keeps the most recent events as text.
#[derive(Clone, Debug)]
pub struct TraceLog {
    lines: VecDeque<String>,
    limit: usize,
}

impl TraceLog {
    /// Keeps up to `limit` events.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self { lines: VecDeque::new(), limit }
    }
}

impl Tracer for TraceLog {
    fn record(&mut self, at: Duration, event: &TraceEvent<'_>) {
        let mut line = if self.lines.len() >= self.limit {
            self.lines.pop_front().unwrap_or_default()
        } else {
            String::new()
        };
        line.clear();
        // Writing to a string cannot fail.
        let _ = write!(line, "{:>12.6} {event}", at.as_secs_f64());
        self.lines.push_back(line);
    }

    fn report(&self) -> String {
        self.lines.iter().fold(String::new(), |mut text, line| {
            text.push_str(line);
            text.push('\n');
            text
        })
    }
}
