//! Stream schedulers: which stream sends next, and how many bytes.
//!
//! A [`Scheduler`] is told which streams exist, what their priorities are and which of them have
//! bytes that may be sent now. Whenever there is room in the packet being built, it is asked for a
//! [`Grant`]. It sees stream keys, priorities and byte counts, but no data, packet numbers, clock
//! or network.
//!
//! Each scheme lives in its own file and has an entry in the table [`Scheme`], which finds it by
//! name:
//!
//! ```
//! use sutura_schedule::{Priority, Scheme};
//!
//! let mut scheduler = "eps".parse::<Scheme>()?.build();
//! scheduler.insert(4, Priority::default());
//! scheduler.insert(0, Priority::default());
//! scheduler.activate(4);
//! scheduler.activate(0);
//!
//! let grant = scheduler.next(1200).ok_or("a stream is active")?;
//! assert_eq!((grant.stream, grant.bytes), (0, 1200));
//! scheduler.charge(grant.stream, 700); // its last 700 bytes
//! scheduler.remove(grant.stream);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A custom scheme is a type that implements [`Scheduler`] and a [`SchedulerFactory`] that creates
//! it. [`conformance`] checks whether it fulfils the contract.
//!
//! A [`Multiplexer`] treats all streams alike, as transports do that know nothing of them; the
//! table [`Preset`] has the defaults of ten of these by name.
#![forbid(unsafe_code)]

pub mod conformance;
mod deadline;
mod eps;
mod h2;
mod hash;
mod hmm;
mod marx;
mod multiplex;
mod priority;
mod queue;
mod resource;
mod scheduler;
mod scheme;
#[cfg(test)]
mod testing;
mod tree;

pub use deadline::Deadline;
pub use eps::Eps;
pub use h2::H2;
pub use hmm::{Hls, Hmm};
pub use multiplex::{Block, Discipline, Multiplexer, Preset};
pub use priority::{Class, Dependency, MAX_DEPTH, Priority, Rank, Urgency, Weight};
pub use resource::{Kind, Resource};
pub use scheduler::{Grant, Scheduler, SchedulerFactory, StreamKey};
pub use scheme::{ParseSchemeError, Scheme};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
