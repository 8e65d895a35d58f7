//! Checks that streams, coding sessions and messages agree, and that none of their state is left in the end.

use super::Egress;
use super::lost::check::QueuedSymbol;
use crate::ids::SymbolRef;
use crate::invariant::ensure;
use crate::streams::Streams;
use std::collections::HashMap;

impl Egress {
    /// Checks the invariants that hold between any two calls. Visits all streams, sessions and messages.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn check(&self, streams: &Streams) -> Result<(), String> {
        streams.check()?;
        self.lost.check(streams)?;
        self.sessions.check()?;
        self.messages.check().map_err(|wrong| format!("messages: {wrong}"))?;
        self.check_queued_symbols(streams)?;
        let mut with_stream = self.messages.streams();
        let lost = with_stream.find(|(id, stream)| streams.message_id(*stream) != Some(*id));
        ensure(lost.is_none(), || format!("a message without its stream: {lost:?}"))
    }

    /// A symbol that waits to be sent again is in the queue of exactly one stream.
    fn check_queued_symbols(&self, streams: &Streams) -> Result<(), String> {
        let mut entries = HashMap::new();
        for entry in self.lost.queued_symbols(streams) {
            let twice = entries.insert(entry.symbol, entry);
            ensure(twice.is_none(), || format!("queued twice: {twice:?}"))?;
        }
        for (session, id, frames) in self.sessions.queued() {
            let symbol = SymbolRef { session, id };
            let entry = entries.remove(&symbol);
            let fits = |entry: &QueuedSymbol| frames.iter().any(|frame| entry.waits_for(frame));
            ensure(entry.as_ref().is_some_and(fits), || {
                format!("nobody will send {symbol:?} with {frames:?}, but {entry:?}")
            })?;
        }
        let rest = entries.values().find(|entry| entry.wanted);
        ensure(rest.is_none(), || format!("a queue has a symbol that is not to be sent: {rest:?}"))
    }

    /// Checks that no state is left, once all streams are over, all messages are settled, and idle sessions
    /// have given back their memory.
    ///
    /// # Errors
    /// The first piece of state that is left.
    pub fn check_nothing_left(&self, streams: &Streams) -> Result<(), String> {
        streams.check_nothing_left()?;
        self.sessions.check_nothing_left()?;
        self.lost.check_nothing_left()?;
        ensure(self.datagrams.is_empty(), || "datagrams in the queue".to_owned())?;
        ensure(!self.awaits_messages(), || "messages whose fate is open".to_owned())
    }
}
