//! HTTP/3 over `sutura_proto`.

use crate::error::{Code, SendDatagramError};
use crate::observe::FrameEvent;
use crate::transport::{Read, ReadError, Transport, WriteError};
use bytes::Bytes;
use std::ops::Range;
use std::time::Instant;
use sutura_proto as quic;
use sutura_proto::policy::StreamOrder;
use sutura_proto::{DatagramOptions, Dir, Observation, Offence, Protection, Side, StreamId};
use sutura_schedule::Priority;

/// A QUIC connection at an instant, as a transport for HTTP/3.
#[derive(Debug)]
pub struct Quic<'a> {
    /// The current time.
    pub now: Instant,
    /// The connection.
    pub connection: &'a mut quic::Connection,
}

impl Quic<'_> {
    /// Sets stream order for a new stream, unless it is the connection's default delivery: frames make sense
    /// only in sequence (RFC 9114 section 4).
    fn keep_order(&mut self, id: StreamId) {
        if !self.connection.delivers_in_stream_order() {
            // A send-only stream has no delivery order.
            let _ = self.connection.recv_stream(id).set_delivery(&StreamOrder);
        }
    }

    /// How far the peer has taken the data written on a stream, if any of it is still held.
    pub fn uptake(&mut self, id: StreamId) -> Option<quic::Uptake> {
        self.connection.send_stream(id).uptake()
    }

    /// Resets a stream that HTTP/3 has handed over completely.
    pub fn abandon(&mut self, id: StreamId, code: Code) {
        self.reset(id, code);
    }

    /// Reports written bytes to the observer, if there are any.
    fn written(
        &mut self,
        stream: StreamId,
        result: Result<usize, quic::WriteError>,
    ) -> Result<usize, WriteError> {
        if let Ok(length) = result {
            self.connection.observe(self.now, &Observation::Written { stream, length });
        }
        result.map_err(write_error)
    }
}

fn write_error(error: quic::WriteError) -> WriteError {
    match error {
        quic::WriteError::Blocked => WriteError::Blocked,
        quic::WriteError::Stopped(code) => WriteError::Stopped(Code(code)),
        _ => WriteError::Closed,
    }
}

fn read_error(error: quic::ReadError) -> ReadError {
    match error {
        quic::ReadError::Blocked => ReadError::Blocked,
        quic::ReadError::Reset(code) => ReadError::Reset(Code(code)),
        // An illegal ordered read does not occur: stream order was set when the stream was new, and nothing is
        // read in order while bytes are missing before those that were read.
        _ => ReadError::Closed,
    }
}

impl Transport for Quic<'_> {
    fn side(&self) -> Side {
        self.connection.side()
    }

    fn open(&mut self, dir: Dir) -> Option<StreamId> {
        self.connection.open(dir).inspect(|id| self.keep_order(*id))
    }

    fn accept(&mut self, dir: Dir) -> Option<StreamId> {
        self.connection.accept(dir).inspect(|id| self.keep_order(*id))
    }

    fn stream_limit(&self, dir: Dir) -> u64 {
        self.connection.peer_stream_limit(dir)
    }

    fn write(&mut self, id: StreamId, data: &[u8]) -> Result<usize, WriteError> {
        let result = self.connection.send_stream(id).write(data);
        self.written(id, result)
    }

    fn write_chunk(&mut self, id: StreamId, chunk: Bytes) -> Result<usize, WriteError> {
        let result = self.connection.send_stream(id).write_chunk(chunk);
        self.written(id, result)
    }

    fn room(&self, id: StreamId) -> Result<usize, WriteError> {
        self.connection.send_room(id).map_err(write_error)
    }

    fn want_room(&mut self, id: StreamId) -> Result<(), WriteError> {
        self.connection.send_stream(id).want_room().map_err(write_error)
    }

    fn finish(&mut self, id: StreamId) -> Result<(), WriteError> {
        self.connection.send_stream(id).finish().map_err(write_error)
    }

    fn reset(&mut self, id: StreamId, code: Code) {
        // If the stream is already over, there is nothing to abandon.
        let _ = self.connection.send_stream(id).reset(code.0);
    }

    fn reset_at(&mut self, id: StreamId, code: Code, reliable: u64) {
        let outcome = self.connection.send_stream(id).reset_at(code.0, reliable);
        if let Err(quic::ResetAtError::UnsupportedByPeer) = outcome {
            self.reset(id, code);
        }
    }

    fn is_open(&mut self, id: StreamId) -> bool {
        self.connection.send_stream(id).outcome().is_none()
            || self.connection.recv_stream(id).received_reset_code() != Ok(None)
    }

    fn read(&mut self, id: StreamId, buffer: &mut [u8]) -> Result<Read, ReadError> {
        match self.connection.recv_stream(id).read(buffer) {
            Ok(quic::Read::Data(bytes)) => Ok(Read { bytes, finished: false }),
            Ok(quic::Read::Fin) => Ok(Read { bytes: 0, finished: true }),
            Err(error) => Err(read_error(error)),
        }
    }

    fn read_chunk(&mut self, id: StreamId, most: usize) -> Result<(Bytes, bool), ReadError> {
        match self.connection.recv_stream(id).read_chunk(most, true) {
            Ok(Some(chunk)) => Ok((chunk.bytes, false)),
            Ok(None) => Ok((Bytes::new(), true)),
            Err(error) => Err(read_error(error)),
        }
    }

    fn read_ahead(
        &mut self,
        id: StreamId,
        range: Range<u64>,
        buffer: &mut [u8],
    ) -> Result<(u64, Read), ReadError> {
        match self.connection.recv_stream(id).read_ahead(range.end, buffer.len()) {
            Ok(Some(chunk)) => {
                let bytes = chunk.bytes.len();
                buffer[..bytes].copy_from_slice(&chunk.bytes);
                Ok((chunk.offset, Read { bytes, finished: false }))
            }
            Ok(None) => Ok((range.end, Read { bytes: 0, finished: true })),
            Err(error) => Err(read_error(error)),
        }
    }

    fn stop(&mut self, id: StreamId, code: Code) {
        let _ = self.connection.recv_stream(id).stop(code.0);
    }

    fn set_priority(&mut self, id: StreamId, priority: Priority) {
        let _ = self.connection.send_stream(id).set_priority(priority);
    }

    fn protect(&mut self, id: StreamId, protection: Option<Protection>) {
        let _ = self.connection.send_stream(id).protect(protection);
    }

    fn protect_by_default(&mut self, id: StreamId) {
        let _ = self.connection.send_stream(id).protect_by_default();
    }

    fn want_datagram_room(&mut self, length: usize) -> bool {
        self.connection.datagrams().want_room(length)
    }

    fn send_datagram(
        &mut self,
        data: Bytes,
        options: &DatagramOptions,
    ) -> Result<(), SendDatagramError> {
        match self.connection.datagrams().send_with(data, options) {
            Ok(_) => Ok(()),
            Err(quic::SendDatagramError::UnsupportedByPeer) => Err(SendDatagramError::Unsupported),
            Err(quic::SendDatagramError::TooLarge) => Err(SendDatagramError::TooLarge),
            Err(_) => Err(SendDatagramError::Closed),
        }
    }

    fn recv_datagram(&mut self) -> Option<Bytes> {
        self.connection.datagrams().recv()
    }

    fn max_datagram_size(&mut self) -> Option<usize> {
        self.connection.datagrams().max_size()
    }

    fn observe(&mut self, event: impl FnOnce() -> FrameEvent) {
        self.connection.observe_application(self.now, event);
    }

    fn keep_alive(&mut self, kept_alive: bool) {
        self.connection.set_kept_alive(self.now, kept_alive);
    }

    fn now(&self) -> Option<Instant> {
        Some(self.now)
    }

    fn blame(&mut self, offence: Offence) {
        self.connection.blame(self.now, offence);
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        self.connection.close(self.now, code.0, reason);
    }
}
