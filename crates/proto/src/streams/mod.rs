//! Streams and flow control (RFC 9000 sections 2 to 4): the whole stream layer of one connection.
//!
//! [`Streams`] processes the contents of frames ([`receive`]), serves the application ([`app`]),
//! and fills packets: with control frames ([`control`]), and with stream data as the [`Scheduler`]
//! and, for lost data, the [`ResendOrder`] decide ([`transmit`]). It knows which bytes the peer misses,
//! but neither packets nor which lost data waits to be sent again. The fate of a frame is reported by its
//! [`Token`](crate::recovery::token::Token).

mod app;
mod assembler;
mod block;
mod control;
pub mod delivery;
mod encode;
mod events;
mod flow;
mod members;
mod memory;
mod messages;
mod optional_number;
mod receive;
mod recv;
pub mod resend_order;
mod send;
mod send_buffer;
mod send_pool;
mod table;
mod transmit;
mod unsent;
mod whole;

#[cfg(test)]
pub(crate) mod tests;

#[cfg(feature = "conformance")]
pub(crate) use assembler::Assembler;
#[cfg(feature = "conformance")]
pub(crate) use block::Fresh;
pub use encode::Length;
pub use events::StreamEvent;
pub use memory::Allowance;
pub(crate) use memory::STREAM_COST;
pub use messages::{EndedMessage, NewMessage};
pub use send::{NextLost, Sendable};
pub use transmit::{Backlog, Pending, Written};

pub use crate::fec::Protection;
use crate::ids::{Dir, MessageId, Side, StreamId};
use control::Control;
use delivery::DeliveryFactory;
use events::Events;
use flow::RecvWindow;
use recv::RecvHalf;
use resend_order::ResendOrder;
use send::SendHalf;
use std::sync::Arc;
use sutura_schedule::Scheduler;
use table::{Half, MAX_STREAM_COUNT, Stream, StreamHalf, Table};
use transmit::Outgoing;
use whole::Whole;

/// Limits of this endpoint, for the peer and for itself. The limits for the peer are announced in the
/// transport parameters (RFC 9000 section 18.2).
#[derive(Debug, Clone)]
pub struct StreamLimits {
    /// Bidirectional streams that the peer may have open at a time (`initial_max_streams_bidi`).
    pub bidi_streams: u64,
    /// Unidirectional streams that the peer may have open at a time (`initial_max_streams_uni`).
    pub uni_streams: u64,
    /// Initial receive window of a stream in bytes (all three `initial_max_stream_data_*`).
    pub stream_window: u64,
    /// Maximum receive window of a stream in bytes.
    pub max_stream_window: u64,
    /// Initial receive window of the connection in bytes (`initial_max_data`).
    pub connection_window: u64,
    /// Maximum receive window of the connection in bytes.
    pub max_connection_window: u64,
    /// Bytes that a stream's send buffer holds until they are acknowledged.
    pub send_buffer: usize,
    /// Bytes that all send buffers may hold together, in addition to the reserve of each stream.
    pub connection_send_buffer: usize,
}

impl Default for StreamLimits {
    fn default() -> Self {
        Self {
            bidi_streams: 100,
            uni_streams: 100,
            stream_window: 1 << 20,
            max_stream_window: 16 << 20,
            connection_window: 3 << 19,
            max_connection_window: 24 << 20,
            send_buffer: 4 << 20,
            connection_send_buffer: 16 << 20,
        }
    }
}

/// The limits that the peer's transport parameters set for us (RFC 9000 section 18.2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PeerLimits {
    /// `initial_max_data`.
    pub max_data: u64,
    /// `initial_max_stream_data_bidi_local`: for streams that the peer opens.
    pub max_stream_data_bidi_local: u64,
    /// `initial_max_stream_data_bidi_remote`: for streams that we open.
    pub max_stream_data_bidi_remote: u64,
    /// `initial_max_stream_data_uni`.
    pub max_stream_data_uni: u64,
    /// `initial_max_streams_bidi`, at most 2^60.
    pub max_streams_bidi: u64,
    /// `initial_max_streams_uni`, at most 2^60.
    pub max_streams_uni: u64,
}

impl PeerLimits {
    /// The limit for the bytes that we send on a stream.
    fn stream_data(&self, side: Side, id: StreamId) -> u64 {
        match id.dir() {
            Dir::Uni => self.max_stream_data_uni,
            Dir::Bi if id.initiator() == side => self.max_stream_data_bidi_remote,
            Dir::Bi => self.max_stream_data_bidi_local,
        }
    }
}

/// How far the peer has taken the data written on a stream, of which this end still holds a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Uptake {
    /// Every byte below this offset was acknowledged.
    pub acked: u64,
    /// The first offset that the peer does not let this end send (MAX_STREAM_DATA).
    pub credit: u64,
    /// Whether bytes wait for the peer to raise the limit.
    pub is_blocked: bool,
}

/// The outcome of a sending half.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The peer has all bytes and the end of the stream, or acknowledged the reset; or there never was such a
    /// stream.
    Finished,
    /// The peer stopped the stream with this code.
    Stopped(u64),
}

/// The stream, or this half of it, can no longer be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClosedStream {
    /// The peer stopped the stream with this code, so it was reset.
    #[error("stopped by peer: code {0}")]
    Stopped(u64),
    /// The stream is finished, was reset or stopped locally, or never existed.
    #[error("stream is closed")]
    Closed,
}

/// Why no byte was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The send buffer is full; [`StreamEvent::Writable`] will follow.
    #[error("send buffer is full")]
    Blocked,
    /// The peer stopped the stream with this code, so it was reset.
    #[error("stopped by peer: code {0}")]
    Stopped(u64),
    /// The stream is finished, was reset, or never existed.
    #[error("stream is closed")]
    Closed,
}

impl From<ClosedStream> for WriteError {
    fn from(closed: ClosedStream) -> Self {
        match closed {
            ClosedStream::Stopped(code) => Self::Stopped(code),
            ClosedStream::Closed => Self::Closed,
        }
    }
}

/// Why a stream was not reset after a number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResetAtError {
    /// The peer does not understand RESET_STREAM_AT, or this end does not offer it. A
    /// [`reset`](crate::SendStream::reset) is possible, without any promise about bytes.
    #[error("not supported by peer")]
    UnsupportedByPeer,
    /// The stream is finished, or never existed.
    #[error("stream is closed")]
    Closed,
}

/// The result of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    /// This many bytes.
    Data(usize),
    /// The end of the stream; reported once.
    Fin,
}

/// Why no byte was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// No data is available yet; [`StreamEvent::Readable`] will follow.
    #[error("nothing to read yet")]
    Blocked,
    /// The peer reset the stream with this code; reported once.
    #[error("reset by peer: code {0}")]
    Reset(u64),
    /// The whole stream was read, the stream was stopped locally, or it never existed.
    #[error("stream is closed")]
    Closed,
    /// The stream is not delivered in stream order, so a read that returns no offsets makes no
    /// sense.
    #[error("ordered read of a stream that is delivered out of order")]
    IllegalOrderedRead,
}

/// The memory that the stream layer holds, and the bytes that it has transferred.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamStats {
    /// Streams with state.
    pub streams: usize,
    /// Bytes in send buffers.
    pub send_buffered: usize,
    /// Bytes of storage for received data that was not read yet.
    pub receive_buffered: usize,
    /// Events that the application has not polled yet.
    pub events: usize,
    /// New stream bytes sent, as counted by flow control.
    pub sent: u64,
    /// Stream bytes received, as counted by flow control.
    pub received: u64,
}

/// All streams of one connection.
#[derive(Debug)]
pub struct Streams {
    limits: StreamLimits,
    peer: PeerLimits,
    table: Table,
    /// The connection's receive window.
    window: RecvWindow,
    /// How many bytes of the connection's window are used: the sum of all streams' highest offsets.
    received: u64,
    /// Bytes of storage for received data that all streams can have.
    received_storage: usize,
    out: Outgoing,
    control: Control,
    events: Events,
    /// Builds the delivery of new streams. `None` for stream order.
    delivery: Option<Arc<dyn DeliveryFactory>>,
    /// The protection of new streams.
    protection: Option<Protection>,
    /// Streams to be stopped because repair completed them.
    whole: Whole,
}

impl Streams {
    /// A connection without streams. `limits` must match the transport parameters sent to the peer.
    /// No stream can be opened before [`Self::set_peer_limits`].
    #[must_use]
    pub fn new(
        side: Side,
        limits: StreamLimits,
        scheduler: Box<dyn Scheduler>,
        order: Box<dyn ResendOrder>,
    ) -> Self {
        let table = Table::new(side, [limits.bidi_streams, limits.uni_streams]);
        let window = RecvWindow::new(limits.connection_window, limits.max_connection_window);
        let out = Outgoing::new(scheduler, order, limits.connection_send_buffer);
        Self {
            limits,
            peer: PeerLimits::default(),
            table,
            window,
            received: 0,
            received_storage: 0,
            out,
            control: Control::default(),
            events: Events::default(),
            delivery: None,
            protection: None,
            whole: Whole::default(),
        }
    }

    /// Sets the delivery of future streams, [`StreamOrder`](delivery::StreamOrder) by default.
    #[must_use]
    pub fn with_delivery(self, delivery: Arc<dyn DeliveryFactory>) -> Self {
        let delivery = (!delivery.build().is_stream_order()).then_some(delivery);
        Self { delivery, ..self }
    }

    /// Whether new streams are delivered in stream order.
    #[must_use]
    pub fn delivers_in_stream_order(&self) -> bool {
        self.delivery.is_none()
    }

    /// Sets the protection of future streams.
    #[must_use]
    pub fn with_protection(self, protection: Option<Protection>) -> Self {
        Self { protection, ..self }
    }

    /// Makes this end stop streams that repair completes, with this code; by default no stream is stopped.
    #[must_use]
    pub fn with_stop_recovered(self, code: Option<u64>) -> Self {
        Self { whole: Whole::new(code), ..self }
    }

    /// Sets the limits from the peer's transport parameters. The limits remembered for 0-RTT may be set first
    /// and the real limits later, because limits only rise (RFC 9000 section 7.4.1).
    pub fn set_peer_limits(&mut self, peer: PeerLimits) {
        self.peer = peer;
        self.raise_max_data(peer.max_data);
        self.raise_max_streams(Dir::Bi, peer.max_streams_bidi.min(MAX_STREAM_COUNT));
        self.raise_max_streams(Dir::Uni, peer.max_streams_uni.min(MAX_STREAM_COUNT));
        let side = self.table.side;
        for stream in self.table.iter_mut() {
            if let Some(send) = stream.halves.send_mut() {
                send.raise_max_data(peer.stream_data(side, stream.id));
                self.out.refresh(stream, &mut self.control);
            }
        }
    }

    /// Tells the scheduler the size of the congestion window.
    pub fn on_congestion_window(&mut self, bytes: u64) {
        self.out.scheduler.on_congestion_window(bytes);
    }

    /// Replaces the scheduler, while there are no streams.
    #[cfg(test)]
    pub fn set_scheduler(&mut self, scheduler: Box<dyn Scheduler>) {
        assert_eq!(self.table.len(), 0);
        self.out.scheduler = scheduler;
    }

    /// The next event for the application.
    pub fn poll_event(&mut self) -> Option<StreamEvent> {
        while let Some(event) = self.events.pop() {
            match event {
                StreamEvent::Readable { id } => match self.table.get_mut(id) {
                    Some(stream) => stream.readable_queued = false,
                    None => continue,
                },
                StreamEvent::Writable { id } => match self.table.get_mut(id) {
                    Some(stream) => stream.writable_queued = false,
                    None => continue,
                },
                _ => {}
            }
            return Some(event);
        }
        None
    }

    /// Counters. Visits every stream, so do not call this for every packet.
    #[must_use]
    pub fn stats(&self) -> StreamStats {
        let mut stats = StreamStats {
            streams: self.table.len(),
            events: self.events.len(),
            sent: self.out.credit.used(),
            received: self.received,
            ..StreamStats::default()
        };
        for stream in self.table.iter() {
            stats.send_buffered += stream.halves.send().map_or(0, |send| send.buffer.retained());
            stats.receive_buffered += stream.halves.recv().map_or(0, RecvHalf::allocated);
        }
        stats
    }

    /// Creates the state of an open stream.
    fn create(&mut self, id: StreamId, accepted: bool) -> &mut Stream {
        let stream = if id.dir() == Dir::Bi {
            Stream::bidirectional(id, self.new_send(id), self.new_recv())
        } else if id.initiator() == self.table.side {
            Stream::unidirectional(id, StreamHalf::Send(self.new_send(id)))
        } else {
            Stream::unidirectional(id, StreamHalf::Recv(self.new_recv()))
        };
        let stream = self.table.insert(stream);
        stream.accepted = accepted;
        stream
    }

    /// The sending half of a new stream.
    fn new_send(&mut self, id: StreamId) -> SendHalf {
        let max_data = self.peer.stream_data(self.table.side, id);
        let send = SendHalf::new(max_data, self.limits.send_buffer, self.protection.clone());
        self.out.pool.opened();
        self.out.order.insert(id.0, &send.priority);
        self.out.scheduler.insert(id.0, send.priority.clone());
        send
    }

    /// The receiving half of a new stream.
    fn new_recv(&self) -> RecvHalf {
        let window = RecvWindow::new(self.limits.stream_window, self.limits.max_stream_window);
        RecvHalf::new(window, self.delivery.as_ref().map(|delivery| delivery.build()))
    }

    /// Frees a stream that is done in both directions, and lets the peer open another stream in its place.
    fn reap(&mut self, id: StreamId) {
        let Some(stream) = self.table.get_mut(id).filter(|stream| stream.is_done()) else {
            return;
        };
        if let Some(send) = stream.halves.send_mut() {
            self.out.remove(id, send);
        }
        if let Some(recv) = stream.halves.recv_mut() {
            self.received_storage -= std::mem::take(&mut recv.stored);
        }
        let dir = id.dir().index();
        if self.table.remove(id) && self.table.remote[dir].is_due() {
            self.control.max_streams[dir] = true;
        }
    }

    /// Reports how the sending half of a stream ended: to the application, or, if the stream was opened for a
    /// message, to the caller.
    fn report_end(
        &mut self,
        message: Option<MessageId>,
        event: StreamEvent,
        complete: bool,
    ) -> Option<EndedMessage> {
        if message.is_none() {
            self.events.push(event);
        }
        message.map(|id| EndedMessage { id, complete })
    }

    /// Credits received bytes that were read, or will not be read, to the connection's window.
    fn release(&mut self, bytes: u64) {
        self.window.consume(bytes);
        if bytes > 0 && self.window.is_due() {
            self.control.max_data = true;
        }
    }

    /// Raises the limit for the bytes that we send on the connection.
    fn raise_max_data(&mut self, limit: u64) {
        self.out.credit.raise(limit);
        self.out.report_blocked(&mut self.control);
    }

    /// Raises the limit for streams that we open.
    fn raise_max_streams(&mut self, dir: Dir, limit: u64) {
        let local = &mut self.table.local[dir.index()];
        if limit > local.max {
            local.max = limit;
            if std::mem::take(&mut local.wanted) {
                self.events.available(dir);
            }
        }
    }

    /// Notifies the application, once, that the stream is readable.
    fn notify_readable(events: &mut Events, stream: &mut Stream) {
        if stream.accepted && !std::mem::replace(&mut stream.readable_queued, true) {
            events.push(StreamEvent::Readable { id: stream.id });
        }
    }
}
