//! The exchanges of a connection.

use std::collections::HashMap;

use sutura_proto::StreamId;
use sutura_schedule::KeyHash;

use super::exchange::Exchange;

/// Room for this many exchanges is kept when there are none.
const FEW: usize = 8;

/// The exchanges in progress, by their stream.
#[derive(Debug, Default)]
pub(super) struct Exchanges {
    // In boxes, so that places without an exchange take little memory.
    by_stream: HashMap<StreamId, Box<Exchange>, KeyHash>,
}

impl Exchanges {
    pub(super) fn get(&self, id: StreamId) -> Option<&Exchange> {
        self.by_stream.get(&id).map(|exchange| &**exchange)
    }

    pub(super) fn get_mut(&mut self, id: StreamId) -> Option<&mut Exchange> {
        self.by_stream.get_mut(&id).map(|exchange| &mut **exchange)
    }

    pub(super) fn insert(&mut self, id: StreamId, exchange: Exchange) {
        self.by_stream.insert(id, Box::new(exchange));
    }

    pub(super) fn remove(&mut self, id: StreamId) -> Option<Box<Exchange>> {
        let exchange = self.by_stream.remove(&id);
        // The room that many exchanges at once have taken is given back.
        if self.by_stream.is_empty() && self.by_stream.capacity() > FEW {
            self.by_stream.shrink_to_fit();
        }
        exchange
    }

    pub(super) fn clear(&mut self) {
        self.by_stream.clear();
    }

    /// Gives back the room of exchanges that are over.
    pub(super) fn rest(&mut self) {
        self.by_stream.shrink_to_fit();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_stream.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.by_stream.len()
    }

    /// All exchanges, in any order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (StreamId, &Exchange)> {
        self.by_stream.iter().map(|(id, exchange)| (*id, &**exchange))
    }

    /// The streams from `first` on that have an exchange, in their order.
    pub(super) fn streams_from(&self, first: StreamId) -> Vec<StreamId> {
        let mut streams: Vec<_> = self.by_stream.keys().copied().collect();
        streams.retain(|stream| *stream >= first);
        streams.sort_unstable();
        streams
    }
}
