//! The invariants of the ledger of lost data.

use super::{LossLedger, LossQueue};
use crate::ids::SymbolRef;
use crate::invariant::ensure;
use crate::recovery::token::StreamToken;
use crate::streams::Streams;
use crate::wire::range_set::RangeSet;

/// A symbol that waits to be sent again.
#[derive(Debug)]
pub struct QueuedSymbol {
    pub symbol: SymbolRef,
    /// The frame for which it waits.
    pub frame: StreamToken,
    /// Whether the peer still misses a part of the frame.
    pub wanted: bool,
}

impl QueuedSymbol {
    /// Whether the symbol waits for `frame` to arrive.
    pub fn waits_for(&self, frame: &StreamToken) -> bool {
        (frame.id, frame.range()) == (self.frame.id, self.frame.range())
    }
}

impl LossLedger {
    /// Checks the invariants that hold between any two calls. Visits all queued frames.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn check(&self, streams: &Streams) -> Result<(), String> {
        for (id, queue) in &self.queues {
            queue.check(streams).map_err(|wrong| format!("lost data of {id:?}: {wrong}"))?;
            let (told, frames) = (streams.resends(*id), queue.frames.len());
            ensure(told == frames, || format!("{id:?} resends {frames} frames, not {told}"))?;
        }
        let (queues, told) = (self.queues.len(), streams.resending());
        ensure(queues == told, || format!("{queues} streams lost data, {told} say so"))
    }

    /// The symbols that wait to be sent again.
    pub fn queued_symbols(&self, streams: &Streams) -> impl Iterator<Item = QueuedSymbol> {
        self.queues.values().flat_map(move |queue| {
            let symbols = queue.frames.iter().filter_map(|frame| Some((frame.symbol?, *frame)));
            symbols.map(move |(symbol, frame)| QueuedSymbol {
                symbol,
                frame,
                wanted: queue.is_wanted(streams, &frame),
            })
        })
    }

    /// Checks that no frame is left once all streams are over.
    ///
    /// # Errors
    /// The first queue that is left.
    pub fn check_nothing_left(&self) -> Result<(), String> {
        let queued = self.queues.keys().next();
        ensure(queued.is_none(), || format!("lost data of {queued:?}"))?;
        ensure(self.held.is_empty(), || "held frames".to_owned())
    }
}

impl LossQueue {
    fn check(&self, streams: &Streams) -> Result<(), String> {
        let Some(first) = self.frames.front() else { return Err("an empty queue".to_owned()) };
        ensure(self.is_wanted(streams, first), || {
            format!("the first of its lost data is not missing: {first:?}")
        })?;
        let (mut bare, mut missing, mut fin) = (RangeSet::default(), RangeSet::default(), false);
        for frame in self.frames.iter().filter(|frame| frame.symbol.is_none()) {
            bare.insert(frame.range());
            for range in streams.missing(frame) {
                missing.insert(range);
            }
            fin |= frame.fin;
        }
        let orphan = self.bytes.iter().find(|range| !bare.contains_range(range));
        ensure(orphan.is_none(), || format!("nobody sends the lost bytes {orphan:?}"))?;
        let arrived = self.bytes.iter().find(|range| !missing.contains_range(range));
        ensure(arrived.is_none(), || format!("lost, but not missing: {arrived:?}"))?;
        let fin_lost = self.fin && streams.is_fin_missing(first.id);
        ensure(!fin_lost || fin, || "nobody sends the lost FIN".to_owned())
    }
}
