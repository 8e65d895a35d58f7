//! What HTTP/3 needs of a QUIC connection.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sutura_proto::{Dir, Observation, Side, StreamId};
use sutura_schedule::{Class, Weight};

use crate::error::Code;

/// A QUIC connection as HTTP/3 sees it.
///
/// Whoever drives the connection also tells [`Connection`](crate::Connection) which streams became
/// readable or writable or were stopped. Methods that name a stream which the transport no longer
/// knows do nothing, or answer `Closed`.
pub trait Transport {
    /// Which end this is.
    fn side(&self) -> Side;

    /// Opens a stream; `None` while the peer permits no further one.
    fn open(&mut self, dir: Dir) -> Option<StreamId>;

    /// The next stream that the peer opened, in the order of their identifiers.
    fn accept(&mut self, dir: Dir) -> Option<StreamId>;

    /// How many streams of that direction the peer may have opened so far in all: the largest
    /// value of MAX_STREAMS that was sent (RFC 9000 section 4.6).
    fn stream_limit(&self, dir: Dir) -> u64;

    /// Takes a prefix of `data` for sending and says how long it is.
    ///
    /// # Errors
    /// `Blocked` if that would be nothing; the stream becomes writable later.
    fn write(&mut self, id: StreamId, data: &[u8]) -> Result<usize, WriteError>;

    /// Like [`Self::write`], but may keep the bytes instead of copying them.
    ///
    /// # Errors
    /// As [`Self::write`].
    fn write_chunk(&mut self, id: StreamId, chunk: Bytes) -> Result<usize, WriteError>;

    /// Ends the stream after what was written.
    ///
    /// # Errors
    /// `Stopped` or `Closed`, never `Blocked`.
    fn finish(&mut self, id: StreamId) -> Result<(), WriteError>;

    /// Abandons sending.
    fn reset(&mut self, id: StreamId, code: Code);

    /// Moves bytes that arrived, in order, to the front of `buffer`, which is not empty.
    ///
    /// # Errors
    /// `Blocked` if there are none and the stream has not ended; it becomes readable later.
    fn read(&mut self, id: StreamId, buffer: &mut [u8]) -> Result<Read, ReadError>;

    /// Asks the peer to stop sending and forgets what arrived.
    fn stop(&mut self, id: StreamId, code: Code);

    /// Sets the order in which the stream's bytes are sent.
    fn set_priority(&mut self, id: StreamId, priority: StreamPriority);

    /// Protects what is sent on the stream by erasure coding, or no longer.
    fn protect(&mut self, id: StreamId, protection: Option<Protection>);

    /// Tells who observes the connection, if anybody does, what HTTP/3 read.
    fn observe(&mut self, _observation: &Observation<'_>) {}

    /// Closes the connection.
    fn close(&mut self, code: Code, reason: &[u8]);
}

/// What a read gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    /// Bytes put into the buffer; 0 only if `finished`.
    pub bytes: usize,
    /// Whether these were the stream's last.
    pub finished: bool,
}

/// Why a write took nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteError {
    /// There is no room or no flow-control credit.
    Blocked,
    /// The peer sent STOP_SENDING with this code.
    Stopped(Code),
    /// The stream was finished or reset, or the connection is over.
    Closed,
}

/// Why a read gave nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadError {
    /// Nothing arrived yet.
    Blocked,
    /// The peer sent RESET_STREAM with this code.
    Reset(Code),
    /// The stream was read to its end or stopped, or the connection is over.
    Closed,
}

/// Where a stream stands among those that have something to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamPriority {
    /// Before every request: control and QPACK streams (RFC 9204 section 2.1.3).
    Control,
    /// By RFC 9218 and the parameters of hierarchical sharing.
    Request {
        /// 0 (first) to 7.
        urgency: u8,
        /// Whether parts of the response are of use before the whole.
        incremental: bool,
        /// The share among siblings.
        weight: Weight,
        /// The classes above the stream, its direct parent first; empty on the root.
        parents: Arc<[Class]>,
    },
}

/// How a stream is to be protected by erasure coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Protection {
    /// Burst loss tolerance: repair symbols on each occasion, at least 1.
    pub burst: u32,
    /// Repair delay tolerance: how long repair symbols may wait.
    pub delay: Duration,
    /// Whether the stream is of use piece by piece, so that repair follows each piece.
    pub incremental: bool,
}
