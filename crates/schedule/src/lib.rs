//! Stream schedulers: which stream sends next, and how many bytes.
//!
//! A [`Scheduler`] is told which streams exist, their priorities and which of them have bytes that may be
//! sent now. Whenever there is room in the packet being built, it is asked for a [`Grant`]. It sees stream
//! keys, priorities and byte counts, but no data, packet numbers, clock or network.
//!
//! Each scheme lives in its own file and has a line in the table [`SCHEDULERS`], which finds it by
//! name (see [`registry`]):
//!
//! ```
//! use sutura_schedule::{Priority, SCHEDULERS, registry::Registry};
//!
//! let schedulers = Registry::new("scheduler", SCHEDULERS);
//! let mut scheduler = schedulers.find("eps")?.build();
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
//! it, such as a [`Scheme`]. If it needs information that no [`Priority`] has, it defines an [`Extension`] of
//! [`Extension`] of its own. The feature `conformance` has a test kit that checks whether it
//! fulfils the contract.
#![forbid(unsafe_code)]

#[cfg(feature = "conformance")]
pub mod conformance;
mod extension;
mod hash;
mod priority;
mod queue;
pub mod registry;
mod scheduler;
mod scheme;
mod setters;

pub use deadline::Deadline;
pub use eps::Eps;
pub use extension::Extension;
pub use hash::{KeyHash, KeyHasher, KeyMap};
pub use hls::Hls;
pub use hmm::Hmm;
pub use priority::{Class, MAX_DEPTH, Priority, Rank, Urgency, Weight};
pub use scheduler::{Grant, Scheduler, SchedulerFactory, StreamKey};
pub use scheme::Scheme;

policies! {
    /// The schedulers of this crate, in the order in which they are listed.
    pub const SCHEDULERS: dyn SchedulerFactory = [eps, hmm, hls, deadline];
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
