//! The interface of a QUIC connection to applications. Applications written against it run on several
//! implementations.

use bytes::Bytes;
use sutura_proto::{Connection, Dir, Event, Protection, Read, ReadError, StreamId, WriteError};

use crate::app_error::AppError;

/// The result of reading from a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// This many bytes were read.
    Data(usize),
    /// The stream has ended. Reported once.
    End,
    /// There is nothing to read for now.
    Nothing,
}

/// The result of reading from a stream in any order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Bytes, and where in the stream the first of them is.
    Data(u64, Bytes),
    /// The stream has ended and all of it was read. Reported once.
    End,
    /// There is nothing to read for now.
    Nothing,
}

/// A connection. Streams are identified by their stream ID on the wire. Errors stand for events that no
/// application here expects, such as resets and unknown streams.
pub trait Quic {
    /// An event that the connection reports to its application.
    type Event;

    /// Whether the handshake is complete.
    fn is_established(&self) -> bool;

    /// Opens a bidirectional stream. Returns `None` while the peer's limit does not allow another.
    fn open(&mut self) -> Option<u64>;

    /// Accepts the next bidirectional stream that the peer opened.
    fn accept(&mut self) -> Option<u64>;

    /// Writes as much of `data` as there is room for, and returns how many bytes that is.
    ///
    /// # Errors
    /// The stream cannot be written.
    fn write(&mut self, stream: u64, data: &[u8]) -> Result<usize, AppError>;

    /// Ends a stream.
    ///
    /// # Errors
    /// The stream cannot be written.
    fn finish(&mut self, stream: u64) -> Result<(), AppError>;

    /// Reads the next bytes into `out`, which must not be empty.
    ///
    /// # Errors
    /// The stream cannot be read.
    fn read(&mut self, stream: u64, out: &mut [u8]) -> Result<Received, AppError>;

    /// Reads bytes that have arrived, whether or not earlier bytes have. A stream that is read like this once
    /// must always be read like this.
    ///
    /// # Errors
    /// The stream cannot be read.
    fn read_piece(&mut self, stream: u64) -> Result<Piece, AppError>;

    /// Requests erasure coding for a stream. Has no effect on transports without it.
    ///
    /// # Errors
    /// The stream cannot be written.
    fn protect(&mut self, stream: u64, protection: Option<Protection>) -> Result<(), AppError>;

    /// Sends an unreliable datagram.
    ///
    /// # Errors
    /// The datagram is too large, or the peer does not accept datagrams.
    fn send_datagram(&mut self, data: Bytes) -> Result<(), AppError>;

    /// The next received datagram.
    fn recv_datagram(&mut self) -> Option<Bytes>;
}

fn unexpected(what: &str, stream: u64, error: impl std::fmt::Display) -> AppError {
    AppError(format!("{what} stream {stream}: {error}"))
}

impl Quic for Connection {
    type Event = Event;

    fn is_established(&self) -> bool {
        !self.is_handshaking() && !self.is_closed()
    }

    fn open(&mut self) -> Option<u64> {
        Self::open(self, Dir::Bi).map(|id| id.0)
    }

    fn accept(&mut self) -> Option<u64> {
        Self::accept(self, Dir::Bi).map(|id| id.0)
    }

    fn write(&mut self, stream: u64, data: &[u8]) -> Result<usize, AppError> {
        match self.send_stream(StreamId(stream)).write(data) {
            Ok(n) => Ok(n),
            Err(WriteError::Blocked) => Ok(0),
            Err(error) => Err(unexpected("writing", stream, error)),
        }
    }

    fn finish(&mut self, stream: u64) -> Result<(), AppError> {
        let result = self.send_stream(StreamId(stream)).finish();
        result.map_err(|error| unexpected("finishing", stream, error))
    }

    fn read(&mut self, stream: u64, out: &mut [u8]) -> Result<Received, AppError> {
        match self.recv_stream(StreamId(stream)).read(out) {
            Ok(Read::Data(n)) => Ok(Received::Data(n)),
            Ok(Read::Fin) => Ok(Received::End),
            Err(ReadError::Blocked) => Ok(Received::Nothing),
            Err(error) => Err(unexpected("reading", stream, error)),
        }
    }

    fn read_piece(&mut self, stream: u64) -> Result<Piece, AppError> {
        match self.recv_stream(StreamId(stream)).read_chunk(usize::MAX, false) {
            Ok(Some(chunk)) => Ok(Piece::Data(chunk.offset, chunk.bytes)),
            Ok(None) => Ok(Piece::End),
            Err(ReadError::Blocked) => Ok(Piece::Nothing),
            Err(error) => Err(unexpected("reading", stream, error)),
        }
    }

    fn protect(&mut self, stream: u64, protection: Option<Protection>) -> Result<(), AppError> {
        let result = self.send_stream(StreamId(stream)).protect(protection);
        result.map_err(|error| unexpected("protecting", stream, error))
    }

    fn send_datagram(&mut self, data: Bytes) -> Result<(), AppError> {
        let sent = self.datagrams().send(data).map(drop);
        sent.map_err(|error| AppError(format!("datagram: {error}")))
    }

    fn recv_datagram(&mut self) -> Option<Bytes> {
        self.datagrams().recv()
    }
}
