//! Calls to a scheduler as values.

use crate::{Grant, Priority, Scheduler, StreamKey};

/// A call to a [`Scheduler`], or a few calls that belong together, to compare a scheduler with a model.
#[derive(Clone, Debug)]
pub enum Call {
    /// [`Scheduler::insert`].
    Insert(StreamKey, Priority),
    /// [`Scheduler::remove`].
    Remove(StreamKey),
    /// [`Scheduler::reprioritize`].
    Reprioritize(StreamKey, Priority),
    /// [`Scheduler::activate`].
    Activate(StreamKey),
    /// [`Scheduler::deactivate`].
    Deactivate(StreamKey),
    /// Takes up to `turns` grants of at most `room` bytes each, and charges up to `used` bytes for
    /// each.
    Serve {
        /// The most grants that are taken.
        turns: usize,
        /// Bytes that are asked for.
        room: usize,
        /// Bytes that are used of each grant, if it has that many.
        used: usize,
    },
    /// [`Scheduler::charge`].
    Charge(StreamKey, usize),
    /// [`Scheduler::on_congestion_window`].
    Window(u64),
    /// [`Scheduler::rest`].
    Rest,
}

/// Makes a call. Returns the resulting grants.
pub fn apply(scheduler: &mut dyn Scheduler, call: &Call) -> Vec<Grant> {
    let mut grants = Vec::new();
    match call.clone() {
        Call::Insert(stream, priority) => scheduler.insert(stream, priority),
        Call::Remove(stream) => scheduler.remove(stream),
        Call::Reprioritize(stream, priority) => scheduler.reprioritize(stream, priority),
        Call::Activate(stream) => scheduler.activate(stream),
        Call::Deactivate(stream) => scheduler.deactivate(stream),
        Call::Charge(stream, bytes) => scheduler.charge(stream, bytes),
        Call::Window(bytes) => scheduler.on_congestion_window(bytes),
        Call::Rest => scheduler.rest(),
        Call::Serve { turns, room, used } => {
            for _ in 0..turns {
                let Some(grant) = scheduler.next(room) else { break };
                scheduler.charge(grant.stream, used.min(grant.bytes));
                grants.push(grant);
            }
        }
    }
    grants
}
