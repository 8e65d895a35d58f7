//! Which streams there are: identifiers, limits, and the state of the live ones.

use super::recv::RecvHalf;
use super::send::SendHalf;
use crate::error::{TransportError, TransportErrorCode};
use crate::ids::{Dir, Side, StreamId};
use crate::wire::range_set::RangeSet;
use std::collections::HashMap;
use sutura_schedule::KeyHash;

/// Most streams of a kind that identifiers can name (RFC 9000 section 4.6).
pub(super) const MAX_STREAM_COUNT: u64 = 1 << 60;

/// Part of a stream that a frame speaks about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Half {
    /// Ours to send on: MAX_STREAM_DATA and STOP_SENDING name it.
    Send,
    /// Ours to receive from: STREAM, STREAM_DATA_BLOCKED and RESET_STREAM name it.
    Recv,
}

/// Control frames that a stream waits to send.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PendingControl {
    pub(super) reset: bool,
    pub(super) stop: bool,
    pub(super) max_data: bool,
    pub(super) blocked: bool,
}

/// One stream that is not finished.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) id: StreamId,
    pub(super) send: Option<SendHalf>,
    pub(super) recv: Option<RecvHalf>,
    pub(super) pending: PendingControl,
    /// Stands in the queue of streams with control frames.
    pub(super) control_queued: bool,
    /// The application has the stream's identifier.
    pub(super) accepted: bool,
    pub(super) readable_queued: bool,
    pub(super) writable_queued: bool,
}

impl Stream {
    pub(super) fn new(id: StreamId, send: Option<SendHalf>, recv: Option<RecvHalf>) -> Self {
        Self {
            id,
            send,
            recv,
            pending: PendingControl::default(),
            control_queued: false,
            accepted: false,
            readable_queued: false,
            writable_queued: false,
        }
    }

    /// Whether nothing is left to do in either direction.
    pub(super) fn is_done(&self) -> bool {
        self.send.as_ref().is_none_or(SendHalf::is_done)
            && self.recv.as_ref().is_none_or(RecvHalf::is_done)
    }
}

/// Streams of one direction that we open.
#[derive(Debug, Default)]
pub(super) struct LocalStreams {
    /// Index of the next one.
    pub(super) next: u64,
    /// The peer's limit.
    pub(super) max: u64,
    /// An attempt to open failed since.
    pub(super) wanted: bool,
    /// The limit for which STREAMS_BLOCKED was queued.
    pub(super) blocked_at: Option<u64>,
}

/// Streams of one direction that the peer opens.
#[derive(Debug, Default)]
pub(super) struct RemoteStreams {
    /// Index of the first one that is not open.
    pub(super) next: u64,
    /// The limit that we announced.
    pub(super) max: u64,
    /// Index of the first one that the application did not accept.
    pub(super) accepted: u64,
    /// Open ones without state: a higher identifier opened them, no frame came yet.
    implicit: RangeSet,
    /// Most that may be unfinished at a time.
    pub(super) concurrent: u64,
    /// Finished ones.
    pub(super) finished: u64,
}

impl RemoteStreams {
    /// The limit that could be announced.
    pub(super) fn allowance(&self) -> u64 {
        self.finished.saturating_add(self.concurrent).min(MAX_STREAM_COUNT)
    }

    /// Whether the peer should hear of a new limit: a good part of what it may have is new, or it
    /// has used all it has.
    pub(super) fn is_due(&self) -> bool {
        let fresh = self.allowance().saturating_sub(self.max);
        fresh > 0 && (fresh >= self.concurrent / 8 || self.next == self.max)
    }
}

/// Where an identifier leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lookup {
    /// To a live stream.
    Live,
    /// To an open stream whose state has to be made first.
    Fresh,
    /// To a stream that is over: the frame is late and means nothing any more.
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
    /// No streams; the peer may open so many of each direction.
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

    /// Number of streams with state.
    pub(super) fn len(&self) -> usize {
        self.streams.len()
    }

    /// All streams with state, in no order: for sums and for parameters of all.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.streams.values_mut().map(|stream| &mut **stream)
    }

    /// All streams with state, in no order: for sums.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Stream> {
        self.streams.values().map(|stream| &**stream)
    }

    /// Adds the state of an open stream.
    pub(super) fn insert(&mut self, stream: Stream) -> &mut Stream {
        let id = stream.id;
        if id.initiator() != self.side {
            self.remote[id.dir().index()].implicit.remove(id.index()..id.index() + 1);
        }
        self.streams.entry(id).insert_entry(Box::new(stream)).into_mut()
    }

    /// Removes a stream that is done; returns whether the peer opened it.
    pub(super) fn remove(&mut self, id: StreamId) -> bool {
        if self.streams.remove(&id).is_none() || id.initiator() == self.side {
            return false;
        }
        self.remote[id.dir().index()].finished += 1;
        true
    }

    /// Whether an accepted identifier still has to get its state.
    pub(super) fn is_implicit(&self, id: StreamId) -> bool {
        id.initiator() != self.side && self.remote[id.dir().index()].implicit.contains(id.index())
    }

    /// Finds where a frame about one half of `id` leads, and opens the stream and all below it if
    /// the peer does so by this frame (sections 2.1 and 3.2). The flag says whether it did.
    ///
    /// # Errors
    /// STREAM_STATE_ERROR if the stream has no such half or is ours and not open;
    /// STREAM_LIMIT_ERROR if the peer may not open it.
    pub(super) fn resolve(
        &mut self,
        id: StreamId,
        half: Half,
    ) -> Result<(Lookup, bool), TransportError> {
        let dir = id.dir().index();
        let mut opened = false;
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
                remote.implicit.insert(remote.next..id.index() + 1);
                remote.next = id.index() + 1;
                opened = true;
            }
            if remote.implicit.contains(id.index()) {
                return Ok((Lookup::Fresh, opened));
            }
        }
        let live = self.streams.contains_key(&id);
        Ok((if live { Lookup::Live } else { Lookup::Gone }, opened))
    }

    /// Ranges of streams without state.
    #[cfg(test)]
    pub(super) fn implicit_ranges(&self, dir: Dir) -> usize {
        self.remote[dir.index()].implicit.len()
    }
}
