//! A network link as a pure, seeded function of time and packets.
//!
//! A [`Link`] is one direction of a path. It has a rate, a queue, a delay, jitter, reordering,
//! duplication, corruption, loss and outages, each of which is off unless configured. It is told
//! when a packet is sent and how large it is, and returns the packet's [`Fate`]. It holds no
//! packets, reads no clock and does no I/O, so a simulator and a relay between sockets can use the same link.
//! A [`Pipe`] adds the packets in transit.
//!
//! Time is the [`Duration`](std::time::Duration) since the link came up. The fates depend only on
//! the configuration, the seed and the calls, on every platform and in every version of every
//! dependency: there is no dependency, and the draws need no arithmetic that rounds differently
//! across platforms.
//!
//! ```
//! use std::time::Duration;
//! use sutura_link::{LinkConfig, Pipe};
//!
//! let config: LinkConfig = "rate=10mbit delay=50ms loss=none".parse()?;
//! let mut pipe = Pipe::new(&config, 1);
//! pipe.send(Duration::ZERO, 1222, "hello");
//! // 1222 + 28 bytes take 1 ms at 10 Mbit/s.
//! assert_eq!(pipe.next_time(), Some(Duration::from_millis(51)));
//! let arrival = pipe.pop(Duration::from_millis(51)).ok_or("still under way")?;
//! assert_eq!(arrival.payload, "hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod bottleneck;
mod codel;
mod config;
mod corrupt;
mod disorder;
mod line;
mod link;
mod loss;
mod opportunities;
mod outage;
mod pipe;
mod power;
mod probability;
mod rate;
mod red;
mod step;
mod text;

pub use bottleneck::{Backlog, Queue};
pub use config::{LinkConfig, PRESETS};
pub use corrupt::corrupt;
pub use disorder::{Jitter, Reorder};
pub use link::{Deliveries, Delivery, DropCause, Fate, Link, LinkStats};
pub use loss::{Background, Loss, Trace};
pub use opportunities::Opportunities;
pub use outage::Outage;
pub use pipe::{Arrival, Pipe};
pub use probability::Probability;
pub use rate::Rate;
pub use step::Step;
pub use text::{DurationText, ParseError, parse_duration, parse_size};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
