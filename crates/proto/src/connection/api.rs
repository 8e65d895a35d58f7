//! The application's handles to streams and datagrams. Each borrows the connection; nothing is
//! shared.

use super::{
    Connection, DatagramOptions, MessageOptions, MessageOutcome, SendDatagramError,
    SendMessageError,
};
use crate::fec::Protection;
use crate::fec::redundancy::Message;
use crate::ids::{Dir, MessageId, StreamId};
use crate::streams::delivery::{Chunk, DeliveryFactory};
use crate::streams::{Outcome, Read, ReadError, ResetAtError, Uptake, WriteError};
use bytes::Bytes;
use std::time::Instant;
use sutura_schedule::Priority;

impl Connection {
    /// Opens a stream. Returns `None` if the connection is closed or the peer allows no more
    /// streams for now; [`StreamEvent::Available`](crate::StreamEvent::Available) says when it
    /// allows more.
    pub fn open(&mut self, dir: Dir) -> Option<StreamId> {
        if self.is_closed() {
            return None;
        }
        self.streams.open(dir)
    }

    /// How many streams of this direction the peer allows to open now.
    #[must_use]
    pub fn streams_left(&self, dir: Dir) -> u64 {
        if self.is_closed() { 0 } else { self.streams.left(dir) }
    }

    /// Notes that one more stream is wanted, as an [`open`](Self::open) in vain does:
    /// [`StreamEvent::Available`](crate::StreamEvent::Available) follows once the peer allows one.
    pub fn want_stream(&mut self, dir: Dir) {
        if self.streams_left(dir) == 0 {
            self.streams.want(dir);
        }
    }

    /// How many streams of this direction the peer may have opened so far in total, as announced by
    /// MAX_STREAMS.
    #[must_use]
    pub fn peer_stream_limit(&self, dir: Dir) -> u64 {
        self.streams.peer_stream_limit(dir)
    }

    /// Whether new streams are delivered in stream order, as [`TransportConfig::delivery`] says.
    ///
    /// [`TransportConfig::delivery`]: crate::TransportConfig::delivery
    #[must_use]
    pub fn delivers_in_stream_order(&self) -> bool {
        self.streams.delivers_in_stream_order()
    }

    /// Sets how many streams of this direction the peer may have open at a time, instead of what
    /// [`TransportConfig`](crate::TransportConfig) says. A lower number has no effect on streams that the
    /// peer was already allowed to open.
    pub fn set_max_concurrent_streams(&mut self, dir: Dir, count: u64) {
        self.streams.set_max_concurrent(dir, count);
    }

    /// Lets the peer have as many unidirectional streams open as
    /// [`TransportConfig::max_concurrent_group_streams`](crate::TransportConfig::max_concurrent_group_streams)
    /// says, if it may not have more already. A receiver of groups, of which each message is a stream, calls it.
    pub fn permit_group_streams(&mut self) {
        let count = self.config.max_concurrent_group_streams;
        self.streams.raise_max_concurrent(Dir::Uni, count);
    }

    /// Sets how many bytes the peer may send on all streams before the application has read any, instead
    /// of what [`TransportConfig`](crate::TransportConfig) says; it is no longer tuned. A lower number does
    /// not take back credit that the peer already has.
    pub fn set_receive_window(&mut self, bytes: u64) {
        self.streams.set_receive_window(bytes);
    }

    /// Whether there is flow control credit to announce to the peer because the application read,
    /// accepted or stopped a stream. If so, datagrams should be polled.
    #[must_use]
    pub fn wants_to_grant_credit(&self) -> bool {
        self.streams.wants_control()
    }

    /// How many bytes the peer lets this end send on all streams together, from the start of the connection
    /// on (MAX_DATA).
    #[must_use]
    pub fn send_credit(&self) -> u64 {
        self.streams.max_data()
    }

    /// How many streams of this direction that the peer opened wait to be accepted.
    #[must_use]
    pub fn acceptable(&self, dir: Dir) -> u64 {
        self.streams.acceptable(dir)
    }

    /// Accepts the next stream that the peer opened.
    pub fn accept(&mut self, dir: Dir) -> Option<StreamId> {
        self.streams.accept(dir)
    }

    /// The sending half of a stream.
    pub fn send_stream(&mut self, id: StreamId) -> SendStream<'_> {
        SendStream { connection: self, id }
    }

    /// How many bytes the buffer of a stream has room for. To be told when there is some, use
    /// [`SendStream::want_room`].
    ///
    /// # Errors
    /// The peer does not want data, or the stream is finished.
    pub fn send_room(&self, id: StreamId) -> Result<usize, WriteError> {
        if self.is_closed() { Err(WriteError::Closed) } else { self.streams.room(id) }
    }

    /// The receiving half of a stream.
    pub fn recv_stream(&mut self, id: StreamId) -> RecvStream<'_> {
        RecvStream { connection: self, id }
    }

    /// Unreliable datagrams.
    pub fn datagrams(&mut self) -> Datagrams<'_> {
        Datagrams { connection: self }
    }

    /// Sets whether to keep the connection alive during silences, with a PING well before the idle
    /// timeout (RFC 9000 section 10.1.2), as while an answer is awaited from the peer. The first one is sent
    /// soon, in case a NAT on the path has forgotten this end. If not, [`TransportConfig::keep_alive`] alone
    /// decides. Off at first.
    ///
    /// [`TransportConfig::keep_alive`]: crate::TransportConfig::keep_alive
    pub fn set_kept_alive(&mut self, now: Instant, kept_alive: bool) {
        if self.silence.keep_alive(kept_alive) && !self.is_closed() {
            self.reset_keep_alive(now);
        }
    }

    /// Sends a message as a whole, on a unidirectional stream of its own, or as a DATAGRAM if the
    /// options say so and it fits. The redundancy policy and the scheduler learn its deadline.
    /// Streams of messages are protected as [`TransportConfig::redundancy`] says, and report no
    /// [`StreamEvent`](crate::StreamEvent); [`poll_message_outcome`](Self::poll_message_outcome) tells the
    /// outcome of the message.
    ///
    /// # Errors
    /// Too much data is waiting to be sent, the message is too large, or the connection is closed.
    ///
    /// [`TransportConfig::redundancy`]: crate::TransportConfig::redundancy
    pub fn send_message(
        &mut self,
        data: Bytes,
        options: MessageOptions,
    ) -> Result<MessageId, SendMessageError> {
        if self.is_closed() {
            return Err(SendMessageError::Closed);
        }
        if options.unreliable && self.datagrams().max_size().is_some_and(|max| data.len() <= max) {
            let alike = DatagramOptions::default()
                .with_deadline(options.deadline)
                .with_urgency(options.priority.urgency);
            return Ok(self.egress.send_datagram(data, &alike));
        }
        let cancel_late = options.cancel_late.or(self.config.cancel_late);
        self.egress.send_message(&mut self.streams, data, MessageOptions { cancel_late, ..options })
    }

    /// Tells when the application will send its next message, so that redundancy may wait for it
    /// and protect both at once. `None` if that is not known. Holds until it is told anew.
    pub fn next_message_at(&mut self, at: Option<Instant>) {
        self.egress.set_next_message(at);
    }

    /// Cancels a message or datagram: nothing more of it is sent. Its stream is reset with the
    /// application error `code`. Returns whether its fate was still open.
    pub fn cancel_message(&mut self, id: MessageId, code: u64) -> bool {
        self.egress.cancel_message(&mut self.streams, id, code)
    }

    /// The outcome of a message or datagram. Each outcome is reported once, unless the application leaves
    /// more than 16384 of them unread.
    pub fn poll_message_outcome(&mut self) -> Option<(MessageId, MessageOutcome)> {
        self.egress.poll_outcome()
    }
}

/// The sending half of a stream.
#[derive(Debug)]
pub struct SendStream<'a> {
    connection: &'a mut Connection,
    id: StreamId,
}

impl SendStream<'_> {
    /// Buffers as much of `data` as the stream's buffer has room for and returns how many bytes
    /// that is.
    ///
    /// # Errors
    /// The buffer is full, the peer does not want the data, or the stream is finished.
    pub fn write(&mut self, data: &[u8]) -> Result<usize, WriteError> {
        self.check()?;
        self.connection.streams.write(self.id, data)
    }

    /// Like [`write`](Self::write), but without copying.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub fn write_chunk(&mut self, data: Bytes) -> Result<usize, WriteError> {
        self.check()?;
        self.connection.streams.write_chunk(self.id, data)
    }

    /// Makes [`StreamEvent::Writable`](crate::StreamEvent::Writable) follow once the stream's buffer has
    /// room, as it does after a [`write`](Self::write) that finds none; [`Connection::send_room`] tells how
    /// much there is.
    ///
    /// # Errors
    /// The peer does not want data, or the stream is finished.
    pub fn want_room(&mut self) -> Result<(), WriteError> {
        self.check()?;
        self.connection.streams.want_room(self.id)
    }

    /// Finishes the stream: it ends after the data written so far.
    ///
    /// # Errors
    /// The peer does not want the data, or the stream is finished.
    pub fn finish(&mut self) -> Result<(), WriteError> {
        self.check()?;
        Ok(self.connection.streams.finish(self.id)?)
    }

    /// Resets the stream: unacknowledged data is not retransmitted, and the peer is told `code`.
    ///
    /// # Errors
    /// The stream is finished.
    pub fn reset(&mut self, code: u64) -> Result<(), WriteError> {
        Ok(self.connection.egress.reset(&mut self.connection.streams, self.id, code)?)
    }

    /// Resets the stream beyond its first `reliable_size` bytes, or beyond all written bytes if these are
    /// fewer (draft-ietf-quic-reliable-stream-reset-07). The first bytes still reach the peer, which is then
    /// told `code`; later bytes are not sent, or not again. May be called again for fewer bytes, which leaves
    /// the code as it was.
    ///
    /// # Errors
    /// The peer cannot do this, or the stream is finished.
    pub fn reset_at(&mut self, code: u64, reliable_size: u64) -> Result<(), ResetAtError> {
        let c = &mut *self.connection;
        if !(c.extensions.reset_stream_at && c.peer.reset_stream_at) {
            return Err(ResetAtError::UnsupportedByPeer);
        }
        let reset = c.egress.reset_at(&mut c.streams, self.id, code, reliable_size);
        reset.map_err(|_| ResetAtError::Closed)
    }

    /// How far the peer has taken the written data; `None` if no written data is held any more, because all
    /// was acknowledged or the stream is over.
    #[must_use]
    pub fn uptake(&self) -> Option<Uptake> {
        self.connection.streams.uptake(self.id)
    }

    /// Sets the priority, which decides which stream goes first when several have data.
    ///
    /// # Errors
    /// The stream is finished.
    pub fn set_priority(&mut self, priority: Priority) -> Result<(), WriteError> {
        Ok(self.connection.streams.set_priority(self.id, priority)?)
    }

    /// The stream's priority.
    ///
    /// # Errors
    /// The stream is finished.
    pub fn priority(&self) -> Result<Priority, WriteError> {
        self.connection.streams.priority(self.id).ok_or(WriteError::Closed)
    }

    /// Protects data sent from now on by erasure coding; `None` stops that. Protection starts once
    /// the peer is known to decode, and has no effect if it does not.
    ///
    /// # Errors
    /// The stream is finished.
    pub fn protect(&mut self, protection: Option<Protection>) -> Result<(), WriteError> {
        Ok(self.connection.egress.protect(&mut self.connection.streams, self.id, protection)?)
    }

    /// Protects data sent from now on as [`TransportConfig::redundancy`] says, like a new stream.
    ///
    /// [`TransportConfig::redundancy`]: crate::TransportConfig::redundancy
    ///
    /// # Errors
    /// The stream is finished.
    pub fn protect_by_default(&mut self) -> Result<(), WriteError> {
        let protection = self.connection.streams.default_protection().cloned();
        self.protect(protection)
    }

    /// Announces that the data written next is one message, so that policies know its size and
    /// deadline. The bytes on the wire do not change.
    ///
    /// # Errors
    /// The stream is finished.
    pub fn announce(&mut self, message: Message) -> Result<(), WriteError> {
        Ok(self.connection.streams.announce(self.id, message)?)
    }

    /// How the stream ended; `None` while data may still reach the peer.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        self.connection.streams.outcome(self.id)
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
    /// Copies the next bytes in stream order into `out`.
    ///
    /// # Errors
    /// No data is available yet, the peer reset the stream, the stream was already read to its end,
    /// or it is [delivered](Self::set_delivery) in another order.
    pub fn read(&mut self, out: &mut [u8]) -> Result<Read, ReadError> {
        self.connection.streams.read(self.id, out)
    }

    /// Returns the next data, at most `max` bytes, without copying. `None` means that the stream
    /// has ended and all of it was read.
    ///
    /// With `ordered`, this is the next data in stream order. Otherwise it is any data that is
    /// available, as chosen by the stream's delivery. A stream that was delivered in stream order
    /// then switches to [`ArrivalOrder`](crate::policy::ArrivalOrder) for good, and ordered reads
    /// fail from then on.
    ///
    /// # Errors
    /// No data is available yet, the peer reset the stream, the stream was already read to its end,
    /// or `ordered` is set and the stream is delivered in another order.
    pub fn read_chunk(&mut self, max: usize, ordered: bool) -> Result<Option<Chunk>, ReadError> {
        self.connection.streams.read_chunk(self.id, max, ordered)
    }

    /// Returns the first bytes below stream offset `end` that are there, at most `max` of them, even if bytes
    /// before them are missing. For a protocol that delivers in stream order, as HTTP/3 does, and has
    /// delimited its frames up to `end`. `None` means that the stream has ended and all of it was read.
    ///
    /// From now on the stream counts as readable if any bytes below the latest `end` are there. Reading in
    /// stream order goes on once no byte is missing before the bytes that were read; until then it fails.
    ///
    /// # Errors
    /// No such bytes are available yet ([`ReadError::Blocked`], also with a `max` of 0), the peer reset the
    /// stream, the stream was already read to its end, or it is
    /// [delivered](Self::set_delivery) otherwise than by
    /// [`StreamOrder`](crate::policy::StreamOrder).
    pub fn read_ahead(&mut self, end: u64, max: usize) -> Result<Option<Chunk>, ReadError> {
        self.connection.streams.read_ahead(self.id, end, max)
    }

    /// Lets a delivery made by `factory` decide which bytes are read from now on; data that was
    /// already read is not affected. Streams start with the delivery of
    /// [`TransportConfig::delivery`](crate::TransportConfig::delivery).
    ///
    /// The delivery can be changed at any time, with one exception: once an unordered delivery has
    /// read a byte, there is no way back to an ordered one. There may be holes then, which an
    /// ordered read cannot report.
    ///
    /// # Errors
    /// The stream was already read to its end or stopped, or it is too late for an ordered delivery
    /// ([`ReadError::IllegalOrderedRead`]). Nothing changes then.
    pub fn set_delivery(&mut self, factory: &dyn DeliveryFactory) -> Result<(), ReadError> {
        self.connection.streams.set_delivery(self.id, factory.build())
    }

    /// Whether some of the data came in a 0-RTT packet and the handshake is not complete yet: it may
    /// then be a copy that an attacker has sent again (RFC 9001 section 9.2). Once the handshake is
    /// complete, it is certain that the client itself has sent it on this connection.
    #[must_use]
    pub fn is_0rtt(&self) -> bool {
        self.connection.is_early_stream(self.id)
    }

    /// The code with which the peer has reset the stream, while there is something left to read or the reset has
    /// not been read. `None` if it will not reset it: all data has arrived, or the stream is over. Reads nothing,
    /// and changes nothing.
    ///
    /// # Errors
    /// [`ReadError::Blocked`]: the peer may still end the stream or reset it. An event,
    /// [`StreamEvent::Readable`](crate::StreamEvent::Readable), comes when that is decided.
    pub fn received_reset_code(&self) -> Result<Option<u64>, ReadError> {
        self.connection.streams.received_reset_code(self.id)
    }

    /// Stops reading: the peer is asked to stop sending, with `code`.
    ///
    /// # Errors
    /// The stream was already read to its end or stopped.
    pub fn stop(&mut self, code: u64) -> Result<(), ReadError> {
        self.connection.streams.stop(self.id, code).map_err(|_| ReadError::Closed)
    }
}

/// Unreliable datagrams (RFC 9221).
#[derive(Debug)]
pub struct Datagrams<'a> {
    connection: &'a mut Connection,
}

impl Datagrams<'_> {
    /// Queues a datagram. If the queue is full, its oldest datagrams are dropped.
    /// [`Connection::poll_message_outcome`] tells its outcome.
    ///
    /// # Errors
    /// The peer accepts no datagrams or none this large, or the connection is closed.
    pub fn send(&mut self, data: Bytes) -> Result<MessageId, SendDatagramError> {
        self.send_with(data, &DatagramOptions::default())
    }

    /// Queues a datagram that has a deadline, an urgency or a protection of its own. If the queue is full, the oldest of
    /// the least urgent datagrams are dropped.
    ///
    /// # Errors
    /// As for [`send`](Self::send).
    pub fn send_with(
        &mut self,
        data: Bytes,
        options: &DatagramOptions,
    ) -> Result<MessageId, SendDatagramError> {
        if self.connection.is_closed() {
            return Err(SendDatagramError::Closed);
        }
        let max = self.max_size().ok_or(SendDatagramError::UnsupportedByPeer)?;
        if data.len() > max {
            return Err(SendDatagramError::TooLarge);
        }
        Ok(self.connection.egress.send_datagram(data, options))
    }

    /// Whether a datagram of `length` bytes can be queued now without dropping another. If not,
    /// [`Event::DatagramsWritable`](crate::Event::DatagramsWritable) follows once it can.
    pub fn want_room(&mut self, length: usize) -> bool {
        let egress = &mut self.connection.egress;
        let has_room = egress.has_datagram_room(length);
        if !has_room {
            egress.await_datagram_room(length);
        }
        has_room
    }

    /// Protects datagrams that are sent from now on by erasure coding; `None` stops that.
    /// Protection starts once the peer is known to decode, and makes [`max_size`](Self::max_size) a
    /// little smaller.
    pub fn protect(&mut self, protection: Option<Protection>) {
        self.connection.egress.protect_datagrams(protection);
    }

    /// Returns the next received datagram.
    pub fn recv(&mut self) -> Option<Bytes> {
        self.connection.ingress.pop_datagram()
    }

    /// The largest datagram that can be sent; `None` if the peer accepts none or its limit is not
    /// known yet. It changes with the packet size that the path is known to carry; a queued datagram that has
    /// become too large is dropped.
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
