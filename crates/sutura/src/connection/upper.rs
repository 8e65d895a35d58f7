//! Protocols over a connection, such as HTTP/3 and ordered groups, as the connection sees them.

use std::any::Any;
use std::fmt::Debug;
use std::time::Instant;
use sutura_proto::{Connection, Event, MessageId, MessageOutcome};

/// A protocol over a connection. All calls are made under the lock of the connection's state.
pub(crate) trait Upper: Any + Debug + Send {
    /// Handles an event of the connection, before the application's tasks are woken for it.
    fn on_event(&mut self, quic: &mut Connection, event: &Event);

    /// Works on received data, after all events were passed on. `over` tells whether the connection is over. Returns
    /// whether it has ended streams on which tasks of the application may wait.
    fn process(&mut self, now: Instant, quic: &mut Connection, over: bool) -> bool;

    /// Wakes all tasks that wait for an event of the protocol, because the connection is over.
    fn wake_all(&mut self);

    /// Whether the protocol sends messages of its own.
    fn sends_messages(&self) -> bool {
        false
    }

    /// Takes the outcome of a message; returns whether the message is one of the protocol's own.
    fn on_outcome(
        &mut self,
        quic: &mut Connection,
        id: MessageId,
        outcome: MessageOutcome,
    ) -> bool {
        let _ = (quic, id, outcome);
        false
    }

    /// Bytes that the protocol and its application hold, beside those of the connection.
    fn memory(&self) -> usize {
        0
    }

    /// Whether the application is to begin nothing more if the connection may hold only `left` bytes more.
    fn holds_back(&self, left: usize) -> bool {
        let _ = left;
        false
    }

    /// Wakes the tasks that were held back, so that they ask again whether they may begin.
    fn wake_held_back(&mut self) {}

    /// The application error code that closes the connection if the process has no memory for it, if the
    /// protocol has one.
    fn out_of_memory(&self) -> Option<u64> {
        None
    }
}

/// The protocols over a connection, at most one of each type.
#[derive(Debug, Default)]
pub(crate) struct Uppers(Vec<Box<dyn Upper>>);

impl Uppers {
    /// Adds a protocol, in place of another of its type.
    pub(crate) fn insert<T: Upper>(&mut self, upper: T) {
        self.0.retain(|other| !(&**other as &dyn Any).is::<T>());
        self.0.push(Box::new(upper));
    }

    /// The protocol of this type, if the application uses it.
    pub(crate) fn get<T: Upper>(&mut self) -> Option<&mut T> {
        self.iter_mut().find_map(|upper| (upper as &mut dyn Any).downcast_mut())
    }

    /// The protocol of this type, which is made when the application first uses it.
    pub(crate) fn get_or_default<T: Upper + Default>(&mut self) -> &mut T {
        if self.get::<T>().is_none() {
            self.insert(T::default());
        }
        self.get().expect("it was inserted")
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &dyn Upper> {
        self.0.iter().map(|upper| &**upper)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut dyn Upper> {
        self.0.iter_mut().map(|upper| &mut **upper)
    }
}
