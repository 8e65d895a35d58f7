//! The order of resending: when lost stream data is sent again, relative to new data.
//!
//! The built-in orders are [`ByLoss`], the default, and the three approaches that Marx 2020, section 2.1
//! found in QUIC implementations: [`InTurn`], [`First`] and [`FirstBy`].
//! [`LossReaction`](crate::policy::LossReaction) has already decided *which* data is sent again. An order
//! sees streams and byte counts, but no data.

mod by_scheduler;

pub use by_loss::ByLoss;
pub use by_scheduler::ByScheduler;
pub use first::First;
pub use first_by::FirstBy;
pub use in_turn::InTurn;

use std::fmt::Debug;
use sutura_schedule::{Priority, Scheduler, StreamKey, policies};

policies! {
    /// The built-in orders, in the order in which they are listed.
    ///
    /// The examples of the orders that follow a scheduler show four streams A to D that take turns, of which
    /// A and B have lost two packets each.
    pub(crate) const ENTRIES: dyn ResendOrderFactory = [by_loss, in_turn, first, first_by];
}

/// When lost data is sent, relative to new data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precedence {
    /// Before all new data of any stream.
    First,
    /// When the scheduler selects its stream, before new data of that stream.
    InTurn,
}

/// Decides which stream resends its lost data next.
///
/// Like a [`Scheduler`](sutura_schedule::Scheduler), an order is told of streams, and also of each frame that
/// waits to be sent again. Frames of one stream are sent again in the order in which they were lost.
///
/// * [`next`](Self::next) is a pure query: it changes nothing. It returns only streams with waiting
///   frames.
/// * A call for an unknown stream changes nothing.
/// * The state of an order is bounded by the number of streams and waiting frames.
pub trait ResendOrder: Debug + Send {
    /// When lost data is sent, relative to new data. Must never change.
    fn precedence(&self) -> Precedence;

    /// Adds a stream without lost data.
    fn insert(&mut self, stream: StreamKey, priority: &Priority);

    /// Removes a stream.
    fn remove(&mut self, stream: StreamKey);

    /// Changes the priority of a stream.
    fn reprioritize(&mut self, stream: StreamKey, priority: &Priority);

    /// One more frame of the stream waits to be sent again.
    fn queued(&mut self, stream: StreamKey);

    /// A frame of the stream no longer waits, because it was sent or is no longer needed; `left` frames still
    /// wait. If `left` is 0, `stream` has nothing to resend, no matter how many frames were queued before.
    fn dequeued(&mut self, stream: StreamKey, left: usize);

    /// The stream sent `bytes` again.
    fn charge(&mut self, stream: StreamKey, bytes: usize);

    /// The stream that resends lost data next; `None` if no lost data waits.
    ///
    /// With [`Precedence::InTurn`] the scheduler decides this instead, except while connection flow
    /// control blocks new data: lost data is already counted and needs no credit.
    fn next(&self) -> Option<StreamKey>;
}

/// Builds orders of one kind; part of a connection's configuration.
pub trait ResendOrderFactory: Debug + Send + Sync {
    /// The name of the order in configurations.
    fn name(&self) -> &str;

    /// An order without streams. `scheduler` builds a scheduler like the one for the connection's
    /// new data, for orders that follow the same scheme.
    fn build(&self, scheduler: &dyn Fn() -> Box<dyn Scheduler>) -> Box<dyn ResendOrder>;
}
