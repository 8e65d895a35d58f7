//! The order of resending: which lost stream data is sent when, relative to new data.
//!
//! Built in are [`ByLoss`], the default, and the three approaches that Marx 2020, section 2.1 found in
//! QUIC implementations: [`InTurn`], [`First`] and [`FirstBy`]. What *is* sent again was decided before
//! ([`LossReaction`](crate::policy::LossReaction)); an order sees streams and byte
//! counts, no data.

mod by_scheduler;

pub use by_loss::ByLoss;
pub use by_scheduler::ByScheduler;
pub use first::{First, FirstBy};
pub use in_turn::InTurn;

use std::fmt::Debug;
use sutura_schedule::{Priority, Scheduler, StreamKey, policies};

policies! {
    /// The built-in orders, as they are listed.
    ///
    /// In the examples of those that go by schedulers, four streams A to D share in turn, of which A
    /// and B have lost two packets each.
    pub(crate) const ENTRIES: dyn ResendOrderFactory = [by_loss, in_turn, first];
}

/// When lost data goes, relative to new data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precedence {
    /// Before all new data, of whichever stream.
    First,
    /// When the scheduler selects its stream, before that stream's new data.
    InTurn,
}

/// Decides which stream sends next of what it lost.
///
/// It is told of streams as a [`Scheduler`](sutura_schedule::Scheduler) is, and of each frame that
/// waits to be sent again. Frames of one stream are sent in the order in which they were lost.
///
/// * [`next`](Self::next) is a question: it changes nothing. It names only streams of which something
///   waits.
/// * A call that names an unknown stream changes nothing.
/// * What an order holds is bounded by the streams and the frames that wait.
pub trait ResendOrder: Debug + Send {
    /// When lost data goes, relative to new data; the same at all times.
    fn precedence(&self) -> Precedence;

    /// Adds a stream of which nothing is lost.
    fn insert(&mut self, stream: StreamKey, priority: &Priority);

    /// Forgets a stream.
    fn remove(&mut self, stream: StreamKey);

    /// Changes the priority of a stream.
    fn reprioritize(&mut self, stream: StreamKey, priority: &Priority);

    /// One more frame of the stream waits to be sent again.
    fn queued(&mut self, stream: StreamKey);

    /// A frame of the stream waits no longer, because it was sent or is of no use any more; `left`
    /// wait still. With 0, `stream` has nothing to send again, whatever was queued before.
    fn dequeued(&mut self, stream: StreamKey, left: usize);

    /// The stream sent `bytes` again.
    fn charge(&mut self, stream: StreamKey, bytes: usize);

    /// Which stream sends next of what it lost; `None` if nothing is lost.
    ///
    /// With [`Precedence::InTurn`] the scheduler answers this instead, except while connection flow
    /// control lets nothing new go: lost data is counted already and needs no credit.
    fn next(&self) -> Option<StreamKey>;
}

/// Makes orders of one kind: what a connection's configuration holds.
pub trait ResendOrderFactory: Debug + Send + Sync {
    /// The name by which people choose it.
    fn name(&self) -> &str;

    /// An order without streams. `scheduler` makes what schedules the connection's new data, for
    /// orders that go by the same scheme.
    fn build(&self, scheduler: &dyn Fn() -> Box<dyn Scheduler>) -> Box<dyn ResendOrder>;
}
