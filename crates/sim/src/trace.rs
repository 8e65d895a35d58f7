//! What happened, for people to read.

use std::collections::VecDeque;
use std::fmt::{self, Write};
use std::time::Duration;

use sutura_link::Fate;

use crate::NodeId;

/// One event of a simulation.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum TraceEvent<'a> {
    /// A datagram was given to a link.
    Sent {
        /// Who sent it.
        from: NodeId,
        /// To whom.
        to: NodeId,
        /// The datagram.
        payload: &'a [u8],
        /// What becomes of it.
        fate: Fate,
    },
    /// A datagram was for nobody, or there is no link to who it was for.
    Unroutable {
        /// Who sent it.
        from: NodeId,
        /// The datagram.
        payload: &'a [u8],
    },
    /// A datagram arrived.
    Arrived {
        /// Who sent it.
        from: NodeId,
        /// Where.
        to: NodeId,
        /// Its bytes.
        size: usize,
        /// Whether it is damaged.
        corrupt: bool,
    },
    /// A node's timer fired.
    Timeout {
        /// Whose.
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

/// Hears of every event, in their order.
pub trait Tracer {
    /// `event` happens, `at` since the start.
    fn record(&mut self, at: Duration, event: &TraceEvent<'_>);

    /// What is worth printing when the simulation fails.
    fn report(&self) -> String {
        String::new()
    }
}

/// Remembers the last events as text.
#[derive(Clone, Debug)]
pub struct TraceLog {
    lines: VecDeque<String>,
    limit: usize,
}

impl TraceLog {
    /// Remembers `limit` events.
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
