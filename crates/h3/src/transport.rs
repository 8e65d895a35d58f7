//! The interface that HTTP/3 needs from a QUIC connection.

use bytes::Bytes;
use std::ops::Range;
use std::time::Instant;
use sutura_proto::{DatagramOptions, Dir, Offence, Protection, Side, StreamId};
use sutura_schedule::Priority;

use crate::error::{Code, SendDatagramError};
use crate::observe::FrameEvent;

/// A QUIC connection as HTTP/3 sees it.
///
/// The driver of the connection also tells [`Connection`](crate::Connection) which streams became
/// readable or writable or were stopped. A method called with a stream that the transport no longer
/// knows does nothing, or returns `Closed`.
pub trait Transport {
    /// Which end this is.
    fn side(&self) -> Side;

    /// Opens a stream; `None` if the peer permits no further one now.
    fn open(&mut self, dir: Dir) -> Option<StreamId>;

    /// The next stream opened by the peer, in the order of identifiers.
    fn accept(&mut self, dir: Dir) -> Option<StreamId>;

    /// The total number of streams of direction `dir` that the peer may have opened so far: the largest value
    /// of MAX_STREAMS that was sent (RFC 9000 section 4.6).
    fn stream_limit(&self, dir: Dir) -> u64;

    /// Accepts a prefix of `data` for sending and returns its length.
    ///
    /// # Errors
    /// `Blocked` if nothing can be accepted; the stream becomes writable later.
    fn write(&mut self, id: StreamId, data: &[u8]) -> Result<usize, WriteError>;

    /// Like [`Self::write`], but may keep the bytes instead of copying them.
    ///
    /// # Errors
    /// As [`Self::write`].
    fn write_chunk(&mut self, id: StreamId, chunk: Bytes) -> Result<usize, WriteError>;

    /// How many bytes a write would accept now. A transport that does not know says that it accepts any
    /// number.
    ///
    /// # Errors
    /// `Stopped` or `Closed`, never `Blocked`.
    fn room(&self, _id: StreamId) -> Result<usize, WriteError> {
        Ok(usize::MAX)
    }

    /// The stream is to become writable once there is room, as after a write that was blocked. A
    /// transport whose [`room`](Self::room) is never 0 has nothing to do.
    ///
    /// # Errors
    /// As [`Self::room`].
    fn want_room(&mut self, _id: StreamId) -> Result<(), WriteError> {
        Ok(())
    }

    /// Ends the stream after the written data.
    ///
    /// # Errors
    /// `Stopped` or `Closed`, never `Blocked`.
    fn finish(&mut self, id: StreamId) -> Result<(), WriteError>;

    /// Abandons sending on the stream.
    fn reset(&mut self, id: StreamId, code: Code);

    /// Abandons sending on the stream beyond its first `reliable` bytes, which the peer still gets before it
    /// learns of the code. A transport or a peer that cannot do this loses these bytes, too.
    fn reset_at(&mut self, id: StreamId, code: Code, _reliable: u64) {
        self.reset(id, code);
    }

    /// Whether anything can still be sent, acknowledged or received on the stream. A transport that does not
    /// know says yes.
    fn is_open(&mut self, _id: StreamId) -> bool {
        true
    }

    /// Moves received bytes, in order, to the front of `buffer`. With an empty buffer, only the end of
    /// the stream, a reset or the lack of bytes is reported.
    ///
    /// # Errors
    /// `Blocked` if none are available and the stream has not ended; it becomes readable later.
    fn read(&mut self, id: StreamId, buffer: &mut [u8]) -> Result<Read, ReadError>;

    /// Takes received bytes, in order, without copying them if that is possible: at most `most`, which is not 0.
    /// Returns them and whether they were the stream's last.
    ///
    /// # Errors
    /// As [`Self::read`].
    fn read_chunk(&mut self, id: StreamId, most: usize) -> Result<(Bytes, bool), ReadError> {
        let mut buffer = vec![0; most];
        let Read { bytes, finished } = self.read(id, &mut buffer)?;
        buffer.truncate(bytes);
        Ok((buffer.into(), finished))
    }

    /// Moves received bytes of `range` to the front of `buffer`, the first ones that are there even if bytes
    /// before them are missing, and returns where in the stream they begin. `range` begins where reading in
    /// order would go on if no byte was missing, and [`read`](Self::read) is not called again before all of
    /// it was read. A transport that only delivers in order returns the next bytes.
    ///
    /// # Errors
    /// As [`Self::read`], for the bytes of `range`.
    fn read_ahead(
        &mut self,
        id: StreamId,
        range: Range<u64>,
        buffer: &mut [u8],
    ) -> Result<(u64, Read), ReadError> {
        let length = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let length = length.min(buffer.len());
        self.read(id, &mut buffer[..length]).map(|read| (range.start, read))
    }

    /// Asks the peer to stop sending and discards received bytes.
    fn stop(&mut self, id: StreamId, code: Code);

    /// Sets the stream's sending priority.
    fn set_priority(&mut self, id: StreamId, priority: Priority);

    /// Turns protection by erasure coding on or off for data that is sent on the stream.
    fn protect(&mut self, id: StreamId, protection: Option<Protection>);

    /// Protects the data of the stream like that of a new stream, as the connection is configured.
    fn protect_by_default(&mut self, id: StreamId);

    /// Sends an unreliable datagram (RFC 9221), with the deadline, the urgency and the protection of `options` where the
    /// transport knows these.
    ///
    /// # Errors
    /// It cannot be sent.
    fn send_datagram(
        &mut self,
        _data: Bytes,
        _options: &DatagramOptions,
    ) -> Result<(), SendDatagramError> {
        Err(SendDatagramError::Unsupported)
    }

    /// Whether a datagram of `length` bytes can be sent without dropping another that waits to be sent. If not, the
    /// driver of the connection learns when it can.
    fn want_datagram_room(&mut self, _length: usize) -> bool {
        true
    }

    /// The next received datagram.
    fn recv_datagram(&mut self) -> Option<Bytes> {
        None
    }

    /// The largest datagram that can be sent, in bytes; `None` if the peer accepts none.
    fn max_datagram_size(&mut self) -> Option<usize> {
        None
    }

    /// Reports a frame to the connection's observer. `event` is called only if there is an
    /// observer.
    fn observe(&mut self, _event: impl FnOnce() -> FrameEvent) {}

    /// Sets whether the connection is to outlast silences, as while a response is awaited (RFC 9114
    /// section 5.1).
    fn keep_alive(&mut self, _kept_alive: bool) {}

    /// The time, if it is known. Without it, cancelled requests are never forgotten.
    fn now(&self) -> Option<Instant> {
        None
    }

    /// Tells that the peer made this end work in vain.
    fn blame(&mut self, _offence: Offence) {}

    /// Closes the connection.
    fn close(&mut self, code: Code, reason: &[u8]);
}

/// The result of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    /// Bytes put into the buffer; 0 only if `finished`, or if the buffer is empty.
    pub bytes: usize,
    /// Whether these bytes were the stream's last.
    pub finished: bool,
}

/// Why a write accepted nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteError {
    /// There is no room or no flow-control credit.
    Blocked,
    /// The peer sent STOP_SENDING with this code.
    Stopped(Code),
    /// The stream was finished or reset, or the connection is over.
    Closed,
}

/// Why a read returned nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadError {
    /// Nothing has arrived yet.
    Blocked,
    /// The peer sent RESET_STREAM with this code.
    Reset(Code),
    /// The stream was read to its end or stopped, or the connection is over.
    Closed,
}
