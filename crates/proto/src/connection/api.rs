//! The application's handles to streams and datagrams. They borrow the connection; nothing is
//! shared.

use super::{Connection, SendDatagramError};
use crate::fec::Protection;
use crate::fec::redundancy::Message;
use crate::ids::{Dir, StreamId};
use crate::streams::delivery::{Chunk, DeliveryFactory};
use crate::streams::{Outcome, Read, ReadError, WriteError};
use bytes::Bytes;
use sutura_schedule::Priority;

impl Connection {
    /// Opens a stream. `None` while the peer allows no more, or when the connection is closed;
    /// a [`StreamEvent::Available`](crate::StreamEvent::Available) tells when it does again.
    pub fn open(&mut self, dir: Dir) -> Option<StreamId> {
        if self.is_closed() {
            return None;
        }
        self.egress.streams.open(dir)
    }

    /// Streams of that direction that the peer may have opened so far in all: what MAX_STREAMS
    /// told it.
    #[must_use]
    pub fn peer_stream_limit(&self, dir: Dir) -> u64 {
        self.egress.streams.peer_stream_limit(dir)
    }

    /// Whether there is something to tell the peer about what may be sent to this end, after the
    /// application read, accepted or stopped: if so, datagrams should be polled.
    #[must_use]
    pub fn wants_to_grant_credit(&self) -> bool {
        self.egress.streams.wants_control()
    }

    /// The next stream that the peer opened.
    pub fn accept(&mut self, dir: Dir) -> Option<StreamId> {
        self.egress.streams.accept(dir)
    }

    /// The sending half of a stream.
    pub fn send_stream(&mut self, id: StreamId) -> SendStream<'_> {
        SendStream { connection: self, id }
    }

    /// The receiving half of a stream.
    pub fn recv_stream(&mut self, id: StreamId) -> RecvStream<'_> {
        RecvStream { connection: self, id }
    }

    /// Unreliable datagrams.
    pub fn datagrams(&mut self) -> Datagrams<'_> {
        Datagrams { connection: self }
    }
}

/// The sending half of a stream.
#[derive(Debug)]
pub struct SendStream<'a> {
    connection: &'a mut Connection,
    id: StreamId,
}

impl SendStream<'_> {
    /// Takes as much of `data` as the stream's buffer has room for, and says how much.
    ///
    /// # Errors
    /// The buffer is full, the peer does not want the data, or the stream is finished.
    pub fn write(&mut self, data: &[u8]) -> Result<usize, WriteError> {
        self.check()?;
        self.connection.egress.streams.write(self.id, data)
    }

    /// As [`write`](Self::write), without copying.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub fn write_chunk(&mut self, data: Bytes) -> Result<usize, WriteError> {
        self.check()?;
        self.connection.egress.streams.write_chunk(self.id, data)
    }

    /// Ends the stream after what was written.
    ///
    /// # Errors
    /// The peer does not want the data, or the stream is finished.
    pub fn finish(&mut self) -> Result<(), WriteError> {
        self.check()?;
        Ok(self.connection.egress.streams.finish(self.id)?)
    }

    /// Gives up: what was not acknowledged is not sent again, and the peer is told `code`.
    ///
    /// # Errors
    /// The stream is finished.
    pub fn reset(&mut self, code: u64) -> Result<(), WriteError> {
        Ok(self.connection.egress.reset(self.id, code)?)
    }

    /// Sets the priority, which decides which stream goes first when several have data.
    ///
    /// # Errors
    /// The stream is finished.
    pub fn set_priority(&mut self, priority: Priority) -> Result<(), WriteError> {
        Ok(self.connection.egress.streams.set_priority(self.id, priority)?)
    }

    /// The stream's priority.
    ///
    /// # Errors
    /// The stream is finished.
    pub fn priority(&self) -> Result<Priority, WriteError> {
        self.connection.egress.streams.priority(self.id).ok_or(WriteError::Closed)
    }

    /// Protects what is sent from now on by erasure coding; `None` stops that. Without effect
    /// towards a peer that does not decode. The protection is used as soon as it is known that
    /// the peer does.
    ///
    /// # Errors
    /// The stream is finished.
    pub fn protect(&mut self, protection: Option<Protection>) -> Result<(), WriteError> {
        Ok(self.connection.egress.protect(self.id, protection)?)
    }

    /// Says that what is written next is one message, so that policies know of its size and its
    /// deadline. It changes nothing in what is sent.
    ///
    /// # Errors
    /// The stream is finished.
    pub fn announce(&mut self, message: Message) -> Result<(), WriteError> {
        Ok(self.connection.egress.streams.announce(self.id, message)?)
    }

    /// What became of the stream: `None` while the peer may still get something of it.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        self.connection.egress.streams.outcome(self.id)
    }

    fn check(&self) -> Result<(), WriteError> {
        if self.connection.is_closed() { Err(WriteError::Closed) } else { Ok(()) }
    }
}

/// The receiving half of a stream.
#[derive(Debug)]
pub struct RecvStream<'a> {
    connection: &'a mut Connection,
    id: StreamId,
}

impl RecvStream<'_> {
    /// Copies what is next in order into `out`.
    ///
    /// # Errors
    /// Nothing is there yet, the peer reset the stream, or it was read to its end before; or the
    /// stream is [delivered](Self::set_delivery) in another order.
    pub fn read(&mut self, out: &mut [u8]) -> Result<Read, ReadError> {
        self.connection.egress.streams.read(self.id, out)
    }

    /// What is next, at most `max` bytes, without copying. `None` at the end, after all bytes.
    ///
    /// If `ordered`, that is what is next in stream order. If not, it is any piece that is there, as
    /// the stream's delivery chooses, and a stream that is delivered in stream order is switched to
    /// [`ArrivalOrder`](crate::policy::ArrivalOrder) for good: ordered reads are errors from then on.
    ///
    /// # Errors
    /// Nothing is there yet, the peer reset the stream, or it was read to its end before; or
    /// `ordered`, and the stream is delivered in another order.
    pub fn read_chunk(&mut self, max: usize, ordered: bool) -> Result<Option<Chunk>, ReadError> {
        self.connection.egress.streams.read_chunk(self.id, max, ordered)
    }

    /// Lets a delivery made by `factory` decide which bytes are read next, from now on; what was
    /// read stays read. Streams begin with the one of
    /// [`TransportConfig::delivery`](crate::TransportConfig::delivery).
    ///
    /// This can be changed at any time, with one exception: once a byte was read by a delivery that
    /// is not ordered, there is no way back to an ordered one. There may be holes then, which an
    /// ordered read cannot report.
    ///
    /// # Errors
    /// The stream was read to its end or stopped before; or an ordered delivery comes too late
    /// ([`ReadError::IllegalOrderedRead`]), and nothing changes.
    pub fn set_delivery(&mut self, factory: &dyn DeliveryFactory) -> Result<(), ReadError> {
        self.connection.egress.streams.set_delivery(self.id, factory.build())
    }

    /// Says that nothing more will be read; the peer is asked to stop with `code`.
    ///
    /// # Errors
    /// The stream was read to its end, or stopped before.
    pub fn stop(&mut self, code: u64) -> Result<(), ReadError> {
        self.connection.egress.streams.stop(self.id, code).map_err(|_| ReadError::Closed)
    }
}

/// Unreliable datagrams (RFC 9221).
#[derive(Debug)]
pub struct Datagrams<'a> {
    connection: &'a mut Connection,
}

impl Datagrams<'_> {
    /// Queues a datagram. If the queue is full the oldest ones in it are dropped.
    ///
    /// # Errors
    /// The peer takes no datagrams, or none of this size, or the connection is closed.
    pub fn send(&mut self, data: Bytes) -> Result<(), SendDatagramError> {
        if self.connection.is_closed() {
            return Err(SendDatagramError::Closed);
        }
        let max = self.max_size().ok_or(SendDatagramError::UnsupportedByPeer)?;
        if data.len() > max {
            return Err(SendDatagramError::TooLarge);
        }
        self.connection.egress.push_datagram(data);
        Ok(())
    }

    /// The next datagram that was received.
    pub fn recv(&mut self) -> Option<Bytes> {
        self.connection.datagrams_in.pop()
    }

    /// The largest datagram that can be sent; `None` if the peer takes none, or is not known yet.
    #[must_use]
    pub fn max_size(&self) -> Option<usize> {
        let c = &*self.connection;
        let peer = usize::try_from(c.peer.max_datagram_frame_size).unwrap_or(usize::MAX);
        if peer == 0 {
            return None;
        }
        c.egress.max_datagram(peer)
    }
}
