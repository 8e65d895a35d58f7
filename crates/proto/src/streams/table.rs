//! The table of streams: identifiers, limits, and the state of live streams.

use super::recv::RecvHalf;
use super::send::SendHalf;
use crate::error::{TransportError, TransportErrorCode};
use crate::ids::{Dir, Side, StreamId};
use crate::wire::range_set::RangeSet;
use std::collections::HashMap;
use sutura_schedule::KeyHash;

/// Maximum number of streams of a direction and initiator that identifiers can express (RFC 9000 section
/// 4.6).
pub(super) const MAX_STREAM_COUNT: u64 = 1 << 60;

/// The half of a stream that a frame refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Half {
    /// The half that we send on: MAX_STREAM_DATA and STOP_SENDING refer to it.
    Send,
    /// The half that we receive on: STREAM, STREAM_DATA_BLOCKED and RESET_STREAM refer to it.
    Recv,
}

/// Pending control frames of a stream.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PendingControl {
    pub(super) reset: bool,
    pub(super) stop: bool,
    pub(super) max_data: bool,
    pub(super) blocked: bool,
}

/// One half of a stream.
#[derive(Debug)]
pub(super) enum StreamHalf {
    Send(SendHalf),
    Recv(RecvHalf),
}

/// The halves that a stream has, the sending one first. A half that it does not have takes no memory.
#[derive(Debug)]
pub(super) struct Halves<H: ?Sized = [StreamHalf]>(H);

impl Halves {
    /// The sending half.
    #[inline]
    pub(super) fn send(&self) -> Option<&SendHalf> {
        match self.0.first() {
            Some(StreamHalf::Send(half)) => Some(half),
            _ => None,
        }
    }

    /// The sending half.
    #[inline]
    pub(super) fn send_mut(&mut self) -> Option<&mut SendHalf> {
        match self.0.first_mut() {
            Some(StreamHalf::Send(half)) => Some(half),
            _ => None,
        }
    }

    /// The receiving half.
    #[inline]
    pub(super) fn recv(&self) -> Option<&RecvHalf> {
        match self.0.last() {
            Some(StreamHalf::Recv(half)) => Some(half),
            _ => None,
        }
    }

    /// The receiving half.
    #[inline]
    pub(super) fn recv_mut(&mut self) -> Option<&mut RecvHalf> {
        match self.0.last_mut() {
            Some(StreamHalf::Recv(half)) => Some(half),
            _ => None,
        }
    }
}

/// A stream that is not finished.
#[derive(Debug)]
pub(super) struct Stream<H: ?Sized = [StreamHalf]> {
    pub(super) id: StreamId,
    pub(super) pending: PendingControl,
    /// Whether the stream is in the queue of streams with control frames.
    pub(super) control_queued: bool,
    /// Whether the application knows the stream's identifier.
    pub(super) accepted: bool,
    pub(super) readable_queued: bool,
    pub(super) writable_queued: bool,
    pub(super) halves: Halves<H>,
}

impl<H> Stream<H> {
    fn new(id: StreamId, halves: H) -> Box<Self> {
        Box::new(Self {
            id,
            pending: PendingControl::default(),
            control_queued: false,
            accepted: false,
            readable_queued: false,
            writable_queued: false,
            halves: Halves(halves),
        })
    }
}

impl Stream {
    /// A stream with both halves.
    pub(super) fn bidirectional(id: StreamId, send: SendHalf, recv: RecvHalf) -> Box<Self> {
        Stream::new(id, [StreamHalf::Send(send), StreamHalf::Recv(recv)])
    }

    /// A stream with one half.
    pub(super) fn unidirectional(id: StreamId, half: StreamHalf) -> Box<Self> {
        Stream::new(id, [half])
    }

    /// Whether both directions of the stream are done.
    pub(super) fn is_done(&self) -> bool {
        self.halves.send().is_none_or(SendHalf::is_done)
            && self.halves.recv().is_none_or(RecvHalf::is_done)
    }
}

/// Locally opened streams of one direction.
#[derive(Debug, Default)]
pub(super) struct LocalStreams {
    /// Index of the next stream to open.
    pub(super) next: u64,
    /// The peer's limit.
    pub(super) max: u64,
    /// Whether a stream has been wanted in vain since the limit was last raised.
    pub(super) wanted: bool,
    /// The limit for which STREAMS_BLOCKED was queued.
    pub(super) blocked_at: Option<u64>,
}

/// Streams of one direction that the peer opens.
#[derive(Debug, Default)]
pub(super) struct RemoteStreams {
    /// Index of the first stream that is not open.
    pub(super) next: u64,
    /// The limit that we announced.
    pub(super) max: u64,
    /// Index of the first stream that the application has not accepted.
    pub(super) accepted: u64,
    /// Streams that are open but have no state: a higher identifier opened them, and no frame has
    /// arrived yet.
    implicit: RangeSet,
    /// Maximum number of unfinished streams at a time.
    pub(super) concurrent: u64,
    /// Number of finished streams.
    pub(super) finished: u64,
    /// The most unfinished streams that are allowed at present, even if the maximum is higher.
    pub(super) lent: Option<u64>,
}

impl RemoteStreams {
    /// The limit that could be announced.
    pub(super) fn allowance(&self) -> u64 {
        self.finished.saturating_add(self.at_a_time()).min(MAX_STREAM_COUNT)
    }

    /// How many unfinished streams are allowed.
    fn at_a_time(&self) -> u64 {
        self.concurrent.min(self.lent.unwrap_or(u64::MAX))
    }

    /// Sets the most unfinished streams that are allowed, even if the maximum is higher. The announced limit
    /// stays. Returns whether a higher limit can be announced than before.
    pub(super) fn set_lent(&mut self, streams: u64) -> bool {
        let before = self.lent.replace(streams).unwrap_or(u64::MAX);
        before < streams.min(self.concurrent) && self.allowance() > self.max
    }

    /// Whether a new limit should be announced: either the new limit is considerably higher, or the peer has
    /// used up the old limit.
    pub(super) fn is_due(&self) -> bool {
        let fresh = self.allowance().saturating_sub(self.max);
        fresh > 0 && (fresh >= self.at_a_time() / 8 || self.next == self.max)
    }
}

/// The stream to which an identifier refers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lookup {
    /// A live stream.
    Live,
    /// An open stream whose state the caller must create.
    Fresh,
    /// A stream that is over: the frame is late and can be ignored.
    Gone,
}

/// All streams of a connection.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) side: Side,
    streams: HashMap<StreamId, Box<Stream>, KeyHash>,
    pub(super) local: [LocalStreams; 2],
    pub(super) remote: [RemoteStreams; 2],
}

fn state_error(reason: &'static str) -> TransportError {
    TransportError::new(TransportErrorCode::STREAM_STATE_ERROR, reason)
}

impl Table {
    /// A table without streams. `concurrent` limits how many streams of each direction the peer may have
    /// open.
    pub(super) fn new(side: Side, concurrent: [u64; 2]) -> Self {
        let remote = concurrent.map(|concurrent| {
            let concurrent = concurrent.min(MAX_STREAM_COUNT);
            RemoteStreams { max: concurrent, concurrent, ..RemoteStreams::default() }
        });
        Self { side, streams: HashMap::default(), local: Default::default(), remote }
    }

    /// The state of a live stream.
    pub(super) fn get(&self, id: StreamId) -> Option<&Stream> {
        self.streams.get(&id).map(|stream| &**stream)
    }

    /// The state of a live stream.
    pub(super) fn get_mut(&mut self, id: StreamId) -> Option<&mut Stream> {
        self.streams.get_mut(&id).map(|stream| &mut **stream)
    }

    /// Gives back the room of streams that are over.
    pub(super) fn shrink(&mut self) {
        self.streams.shrink_to_fit();
    }

    /// Number of streams with state.
    pub(super) fn len(&self) -> usize {
        self.streams.len()
    }

    /// All streams with state, in arbitrary order. The order must not matter to the caller.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.streams.values_mut().map(|stream| &mut **stream)
    }

    /// All streams with state, in arbitrary order. The order must not matter to the caller.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Stream> {
        self.streams.values().map(|stream| &**stream)
    }

    /// Adds the state of an open stream.
    pub(super) fn insert(&mut self, stream: Box<Stream>) -> &mut Stream {
        let id = stream.id;
        if id.initiator() != self.side {
            self.remote[id.dir().index()].implicit.remove(id.index()..id.index() + 1);
        }
        self.streams.entry(id).insert_entry(stream).into_mut()
    }

    /// Removes a stream that is done; returns whether the peer opened it.
    pub(super) fn remove(&mut self, id: StreamId) -> bool {
        if self.streams.remove(&id).is_none() || id.initiator() == self.side {
            return false;
        }
        self.remote[id.dir().index()].finished += 1;
        true
    }

    /// Whether an accepted identifier has no state yet.
    pub(super) fn is_implicit(&self, id: StreamId) -> bool {
        id.initiator() != self.side && self.remote[id.dir().index()].implicit.contains(id.index())
    }

    /// Looks up one half of the stream `id`, which a frame refers to. If the frame opens the stream, it opens
    /// all lower streams too (sections 2.1 and 3.2). The flag says whether the frame opened any stream.
    ///
    /// # Errors
    /// STREAM_STATE_ERROR if the stream has no such half, or is a local stream that is not open;
    /// STREAM_LIMIT_ERROR if the stream is above the peer's limit.
    pub(super) fn resolve(
        &mut self,
        id: StreamId,
        half: Half,
    ) -> Result<(Lookup, bool), TransportError> {
        let dir = id.dir().index();
        if id.initiator() == self.side {
            if id.dir() == Dir::Uni && half == Half::Recv {
                return Err(state_error("the peer cannot send on this stream"));
            }
            if id.index() >= self.local[dir].next {
                return Err(state_error("the stream is ours and not open"));
            }
        } else {
            if id.dir() == Dir::Uni && half == Half::Send {
                return Err(state_error("the peer cannot receive on this stream"));
            }
            let remote = &mut self.remote[dir];
            if id.index() >= remote.max {
                let code = TransportErrorCode::STREAM_LIMIT_ERROR;
                return Err(TransportError::new(code, "too many streams"));
            }
            if id.index() >= remote.next {
                // The caller creates the state of the stream itself.
                remote.implicit.insert(remote.next..id.index());
                remote.next = id.index() + 1;
                return Ok((Lookup::Fresh, true));
            }
            if remote.implicit.contains(id.index()) {
                return Ok((Lookup::Fresh, false));
            }
        }
        let live = self.streams.contains_key(&id);
        Ok((if live { Lookup::Live } else { Lookup::Gone }, false))
    }

    /// Number of ranges of streams without state.
    #[cfg(test)]
    pub(super) fn implicit_ranges(&self, dir: Dir) -> usize {
        self.remote[dir.index()].implicit.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection with HTTP/3 has six of them for as long as it lasts, so what one more field costs is to be seen.
    /// 384 is a size of allocations; the next one is 448.
    #[test]
    fn a_unidirectional_stream_is_small() {
        assert!(size_of::<Stream<[StreamHalf; 1]>>() <= 384);
    }
}
