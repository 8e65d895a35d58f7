//! The ledger of lost data: all stream data that was sent, was lost, and may have to be sent again.
//!
//! The loss reaction decides between *held* and *queued*. A held frame waits for a late acknowledgement; it
//! is queued when its time is over. A queued frame waits for its turn, which the order of resending decides.
//! Data leaves the ledger when it arrives, as bytes or by repair: [`Streams`](crate::streams) know which
//! bytes the peer misses, but no queues. A lost source symbol that waits for repair symbols stays in its
//! [coding session](crate::fec); it comes here to be sent again as a whole.

#[cfg(feature = "testing")]
pub(super) mod check;
mod held;
#[cfg(test)]
mod tests;

use crate::ids::{StreamId, SymbolRef};
use crate::recovery::token::StreamToken;
use crate::streams::{NextLost, Pending, Sendable, Streams};
use crate::wire::range_set::RangeSet;
use held::HeldFrames;
use smallvec::SmallVec;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::time::Instant;
use sutura_schedule::KeyHash;

/// A queue that has room for more frames is not kept for its memory.
const MAX_SPARE_FRAMES: usize = 64;

/// Source symbols that left the queues without being sent again: the bytes for which they waited arrived in
/// another frame, or the stream is over. The caller has to tell their sessions, or the sessions keep the
/// symbols for ever.
pub type Unqueued = SmallVec<[SymbolRef; 2]>;

/// See the [module](self).
#[derive(Debug, Default)]
pub struct LossLedger {
    /// Frames that wait to be sent again, by stream. No queue is empty.
    queues: HashMap<StreamId, Box<LossQueue>, KeyHash>,
    /// An empty queue, whose memory the next one uses.
    spare: Option<Box<LossQueue>>,
    held: HeldFrames,
}

/// The lost frames of a stream that wait to be sent again.
#[derive(Debug, Default)]
struct LossQueue {
    /// In the order of loss. A frame that arrives in the meantime is skipped when its turn comes; the peer
    /// always misses a part of the first frame. A frame with a symbol is sent again as that symbol.
    frames: VecDeque<StreamToken>,
    /// The bytes of the frames without a symbol that the peer misses. Neighbours are sent in one frame.
    bytes: RangeSet,
    /// Whether the end of the stream, which a frame without a symbol carried, is missing.
    fin: bool,
}

impl LossQueue {
    /// The data of the first frame that has to be sent again. `None` if the peer received all of it by other
    /// means.
    fn next(&self, streams: &Streams) -> Option<NextLost> {
        let first = self.frames.front()?;
        match first.symbol {
            Some(symbol) => streams.is_missing(first).then_some(NextLost::Symbol(symbol)),
            None => self.bare(streams, first).map(NextLost::Bytes),
        }
    }

    /// Whether the peer still misses a part of a frame that the queue holds.
    fn is_wanted(&self, streams: &Streams, frame: &StreamToken) -> bool {
        match frame.symbol {
            Some(_) => streams.is_missing(frame),
            None => self.bare(streams, frame).is_some(),
        }
    }

    /// The stretch that has to be sent again for a frame without a symbol. It may extend beyond the frame if
    /// the data after it was lost as well.
    fn bare(&self, streams: &Streams, frame: &StreamToken) -> Option<Sendable> {
        if let Some(lost) = self.bytes_from(&frame.range()) {
            return streams.stretch(frame.id, &lost);
        }
        if !(frame.fin && self.fin && streams.is_fin_missing(frame.id)) {
            return None;
        }
        let end = streams.end(frame.id)?;
        streams.stretch(frame.id, &(end..end))
    }

    /// The first stretch of lost bytes that starts in `range` or contains its start. It may extend beyond
    /// `range`.
    fn bytes_from(&self, range: &Range<u64>) -> Option<Range<u64>> {
        if let Some(lost) = self.bytes.range_of(range.start) {
            return Some(range.start..lost.end);
        }
        let from = self.bytes.gaps(range.clone()).next()?.end;
        (from < range.end).then(|| self.bytes.range_of(from)).flatten()
    }

    /// Adds the bytes and the FIN of a frame without a symbol that the peer misses. Returns whether the queue
    /// lacked any of them.
    fn add(&mut self, streams: &Streams, frame: &StreamToken) -> bool {
        let mut any = false;
        for gap in streams.missing(frame) {
            any |= self.bytes.insert(gap) > 0;
        }
        let fin = frame.fin && !self.fin && streams.is_fin_missing(frame.id);
        self.fin |= fin;
        any | fin
    }
}

impl LossLedger {
    /// The lost data that goes next, if lost data precedes all new data. Changes nothing.
    #[must_use]
    pub fn look(&self, streams: &Streams) -> Option<Pending> {
        let id = streams.next_resending()?;
        let next = self.next(streams, id);
        debug_assert!(next.is_some(), "the order names a stream that lost nothing");
        streams.pending_lost(id, next?)
    }

    /// The lost data that a stream sends next.
    #[must_use]
    pub fn next(&self, streams: &Streams, id: StreamId) -> Option<NextLost> {
        self.queues.get(&id)?.next(streams)
    }

    /// Whether the peer misses any of a stream's data that waits to be sent again.
    #[must_use]
    pub fn owes(&self, streams: &Streams, id: StreamId) -> bool {
        let queue = self.queues.get(&id);
        queue.is_some_and(|queue| queue.frames.iter().any(|frame| queue.is_wanted(streams, frame)))
    }

    /// Whether the peer misses any data that waits to be sent again. Visits all of it.
    #[must_use]
    pub fn owes_any(&self, streams: &Streams) -> bool {
        self.queues.keys().any(|id| self.owes(streams, *id))
    }

    /// Whether at least so many frames, or frames of so many streams, wait to be sent again with that of `id`.
    #[must_use]
    pub fn has_many(&self, id: StreamId, many: usize) -> bool {
        let of_stream = || self.queues.get(&id).map_or(0, |queue| queue.frames.len());
        self.queues.len() >= many || of_stream() >= many
    }

    /// Queues the part of a frame that the peer misses, unless it is queued already; returns whether any of
    /// the frame was queued newly. Used for lost frames and for probes.
    pub fn queue(&mut self, streams: &mut Streams, frame: &StreamToken) -> bool {
        let id = frame.id;
        let queue = self.queue_of(id);
        let any = queue.add(streams, frame);
        if any {
            queue.frames.push_back(StreamToken { symbol: None, ..*frame });
            streams.queued(id);
        } else if queue.frames.is_empty() {
            self.forget(id);
        }
        any
    }

    /// Queues a source symbol to be sent again as a whole, because it holds `frame`, of which the peer misses
    /// a part.
    pub fn queue_symbol(&mut self, streams: &mut Streams, symbol: SymbolRef, frame: &StreamToken) {
        let frame = StreamToken { symbol: Some(symbol), ..*frame };
        self.queue_of(frame.id).frames.push_back(frame);
        streams.queued(frame.id);
    }

    /// A source symbol that is queued on a stream can no longer be sent as a whole. The bytes of its frame
    /// take its place. Returns the length of the frame.
    pub fn unbind(
        &mut self,
        streams: &mut Streams,
        id: StreamId,
        symbol: SymbolRef,
    ) -> (u64, Unqueued) {
        let Some(queue) = self.queues.get_mut(&id) else { return (0, Unqueued::new()) };
        let bound = queue.frames.iter_mut().find(|frame| frame.symbol == Some(symbol));
        let Some(frame) = bound else { return (0, Unqueued::new()) };
        frame.symbol = None;
        let frame = *frame;
        queue.add(streams, &frame);
        (u64::from(frame.len), self.prune(streams, id))
    }

    /// A frame that [`next`](Self::next) named was sent again, in part or with its neighbours.
    pub fn sent(&mut self, streams: &mut Streams, frame: &StreamToken) -> Unqueued {
        let Some(queue) = self.queues.get_mut(&frame.id) else { return Unqueued::new() };
        queue.bytes.remove(frame.range());
        queue.fin &= !frame.fin;
        if queue.next(streams).is_some() {
            return Unqueued::new();
        }
        queue.frames.pop_front();
        streams.dequeued(frame.id, queue.frames.len());
        self.prune(streams, frame.id)
    }

    /// The symbol that [`next`](Self::next) named for a stream was sent again.
    pub fn sent_symbol(
        &mut self,
        streams: &mut Streams,
        id: StreamId,
        symbol: SymbolRef,
    ) -> Unqueued {
        let Some(queue) = self.queues.get_mut(&id) else { return Unqueued::new() };
        if queue.frames.pop_front_if(|frame| frame.symbol == Some(symbol)).is_some() {
            streams.dequeued(id, queue.frames.len());
        }
        self.prune(streams, id)
    }

    /// The peer has the contents of a frame, or they were given up.
    pub fn arrived(&mut self, streams: &mut Streams, frame: &StreamToken) -> Unqueued {
        let Some(queue) = self.queues.get_mut(&frame.id) else { return Unqueued::new() };
        queue.bytes.remove(frame.range());
        self.prune(streams, frame.id)
    }

    /// A stream was reset: lost data that it no longer has to deliver is not sent again.
    pub fn withdraw(&mut self, streams: &mut Streams, id: StreamId) -> Unqueued {
        let Some(queue) = self.queues.get_mut(&id) else { return Unqueued::new() };
        queue.bytes.remove(streams.end(id).unwrap_or(0)..u64::MAX);
        let frames = std::mem::take(&mut queue.frames);
        let (kept, gone): (VecDeque<_>, VecDeque<_>) =
            frames.into_iter().partition(|frame| queue.is_wanted(streams, frame));
        queue.frames = kept;
        self.dequeue(streams, id, gone)
    }

    /// Removes frames from the front of a stream's queue while the peer has received them by other means, so
    /// that the first frame always has to be sent.
    fn prune(&mut self, streams: &mut Streams, id: StreamId) -> Unqueued {
        let Some(queue) = self.queues.get_mut(&id) else { return Unqueued::new() };
        let unwanted =
            queue.frames.iter().take_while(|frame| !queue.is_wanted(streams, frame)).count();
        let gone: SmallVec<[StreamToken; 4]> = queue.frames.drain(..unwanted).collect();
        self.dequeue(streams, id, gone)
    }

    /// Frames were taken out of a stream's queue.
    fn dequeue(
        &mut self,
        streams: &mut Streams,
        id: StreamId,
        gone: impl IntoIterator<Item = StreamToken>,
    ) -> Unqueued {
        let left = self.queues.get(&id).map_or(0, |queue| queue.frames.len());
        let mut gone = gone.into_iter().peekable();
        if gone.peek().is_some() {
            streams.dequeued(id, left);
        }
        if left == 0 {
            self.forget(id);
        }
        gone.filter_map(|frame| frame.symbol).collect()
    }

    /// The queue of a stream.
    fn queue_of(&mut self, id: StreamId) -> &mut LossQueue {
        let spare = &mut self.spare;
        self.queues.entry(id).or_insert_with(|| spare.take().unwrap_or_default())
    }

    /// Removes a queue without frames.
    fn forget(&mut self, id: StreamId) {
        let queue = self.queues.remove(&id);
        if let Some(mut queue) = queue.filter(|queue| queue.frames.capacity() <= MAX_SPARE_FRAMES) {
            queue.bytes.remove(0..u64::MAX);
            queue.fin = false;
            self.spare = Some(queue);
        }
    }

    /// Holds a frame until `until`. Returns false if there is no room for it.
    pub fn hold(&mut self, until: Instant, frame: StreamToken) -> bool {
        self.held.hold(until, frame)
    }

    /// When the next held frame is due.
    #[must_use]
    pub fn held_until(&self) -> Option<Instant> {
        self.held.next()
    }

    /// Takes the held frames whose time is over and of which the peer misses a part, in the order in which
    /// they were lost. They have to be [queued](Self::queue) next.
    pub fn take_due(&mut self, streams: &Streams, now: Instant) -> Vec<StreamToken> {
        let mut due = Vec::new();
        if !self.held.is_empty() {
            self.held.sweep(|frame| streams.is_missing(frame));
            due.extend(self.held.take_due(now).filter(|frame| streams.is_missing(frame)));
        }
        due
    }
}
