//! What an application needs of a QUIC connection, so that one application runs on several
//! implementations.

use bytes::Bytes;
use sutura_proto::{Connection, Dir, Event, Protection, Read, ReadError, StreamId, WriteError};

use crate::AppError;

/// What was read from a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// So many bytes.
    Data(usize),
    /// The end; told once.
    End,
    /// There is nothing for now.
    Nothing,
}

/// A connection. Streams go by their number on the wire. All errors are what no application here
/// expects: resets, unknown streams.
pub trait Quic {
    /// What the connection tells its application.
    type Event;

    /// Whether the handshake is complete.
    fn is_established(&self) -> bool;

    /// Opens a bidirectional stream; `None` as long as the peer allows no more.
    fn open(&mut self) -> Option<u64>;

    /// The next bidirectional stream that the peer opened.
    fn accept(&mut self) -> Option<u64>;

    /// Sends what finds room of `data`, and says how much that is.
    ///
    /// # Errors
    /// The stream cannot be written.
    fn write(&mut self, stream: u64, data: &[u8]) -> Result<usize, AppError>;

    /// Ends a stream.
    ///
    /// # Errors
    /// The stream cannot be written.
    fn finish(&mut self, stream: u64) -> Result<(), AppError>;

    /// Reads what comes next into `out`, which is not empty.
    ///
    /// # Errors
    /// The stream cannot be read.
    fn read(&mut self, stream: u64, out: &mut [u8]) -> Result<Received, AppError>;

    /// Asks for erasure coding; without effect where there is none.
    ///
    /// # Errors
    /// The stream cannot be written.
    fn protect(&mut self, stream: u64, protection: Option<Protection>) -> Result<(), AppError>;

    /// Sends an unreliable datagram.
    ///
    /// # Errors
    /// It is too large, or the peer takes none.
    fn send_datagram(&mut self, data: Bytes) -> Result<(), AppError>;

    /// The next datagram that was received.
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

    fn protect(&mut self, stream: u64, protection: Option<Protection>) -> Result<(), AppError> {
        let result = self.send_stream(StreamId(stream)).protect(protection);
        result.map_err(|error| unexpected("protecting", stream, error))
    }

    fn send_datagram(&mut self, data: Bytes) -> Result<(), AppError> {
        self.datagrams().send(data).map_err(|error| AppError(format!("datagram: {error}")))
    }

    fn recv_datagram(&mut self) -> Option<Bytes> {
        self.datagrams().recv()
    }
}
