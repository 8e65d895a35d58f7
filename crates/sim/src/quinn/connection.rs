//! A connection of quinn-proto, as applications see it.

use bytes::Bytes;
use quinn_proto::{ConnectionStats, Dir, Event, ReadError, StreamId, VarInt, WriteError};
use sutura_proto::Protection;

use crate::{AppError, Piece, Quic, Received};

/// A connection of quinn, with the interface that the applications need.
pub struct QuinnConnection(pub(super) quinn_proto::Connection);

impl QuinnConnection {
    /// Its statistics.
    #[must_use]
    pub fn stats(&self) -> ConnectionStats {
        self.0.stats()
    }
}

impl std::fmt::Debug for QuinnConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QuinnConnection").finish_non_exhaustive()
    }
}

fn stream_id(stream: u64) -> Result<StreamId, AppError> {
    VarInt::from_u64(stream).map(StreamId::from).map_err(failed)
}

fn number(id: StreamId) -> u64 {
    VarInt::from(id).into_inner()
}

fn failed(error: impl std::fmt::Display) -> AppError {
    AppError(format!("quinn: {error}"))
}

impl Quic for QuinnConnection {
    type Event = Event;

    fn is_established(&self) -> bool {
        !self.0.is_handshaking() && !self.0.is_closed()
    }

    fn open(&mut self) -> Option<u64> {
        self.0.streams().open(Dir::Bi).map(number)
    }

    fn accept(&mut self) -> Option<u64> {
        self.0.streams().accept(Dir::Bi).map(number)
    }

    fn write(&mut self, stream: u64, data: &[u8]) -> Result<usize, AppError> {
        match self.0.send_stream(stream_id(stream)?).write(data) {
            Ok(n) => Ok(n),
            Err(WriteError::Blocked) => Ok(0),
            Err(error) => Err(failed(error)),
        }
    }

    fn finish(&mut self, stream: u64) -> Result<(), AppError> {
        self.0.send_stream(stream_id(stream)?).finish().map_err(failed)
    }

    fn read(&mut self, stream: u64, out: &mut [u8]) -> Result<Received, AppError> {
        let mut recv = self.0.recv_stream(stream_id(stream)?);
        let mut chunks = recv.read(true).map_err(failed)?;
        let result = match chunks.next(out.len()) {
            Ok(Some(chunk)) => {
                out[..chunk.bytes.len()].copy_from_slice(&chunk.bytes);
                Ok(Received::Data(chunk.bytes.len()))
            }
            Ok(None) => Ok(Received::End),
            Err(ReadError::Blocked) => Ok(Received::Nothing),
            Err(error) => Err(failed(error)),
        };
        // The result does not matter: the network asks for datagrams after every event anyway.
        let _ = chunks.finalize();
        result
    }

    fn read_piece(&mut self, stream: u64) -> Result<Piece, AppError> {
        let mut recv = self.0.recv_stream(stream_id(stream)?);
        let mut chunks = recv.read(false).map_err(failed)?;
        let result = match chunks.next(usize::MAX) {
            Ok(Some(chunk)) => Ok(Piece::Data(chunk.offset, chunk.bytes)),
            Ok(None) => Ok(Piece::End),
            Err(ReadError::Blocked) => Ok(Piece::Nothing),
            Err(error) => Err(failed(error)),
        };
        let _ = chunks.finalize();
        result
    }

    fn protect(&mut self, _: u64, _: Option<Protection>) -> Result<(), AppError> {
        Ok(())
    }

    fn send_datagram(&mut self, data: Bytes) -> Result<(), AppError> {
        self.0.datagrams().send(data, true).map_err(|e| AppError(format!("{e:?}")))
    }

    fn recv_datagram(&mut self) -> Option<Bytes> {
        self.0.datagrams().recv()
    }
}
