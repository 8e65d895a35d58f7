//! How much memory a connection holds on behalf of its peer, and how much it may take of the process's
//! memory.

use super::{CloseReason, Connection};
use crate::config::TransportConfig;
use crate::error::{ConnectionError, TransportError, TransportErrorCode};
use crate::ids::{Dir, SpaceId};
use crate::streams::{Allowance, STREAM_COST};
use std::sync::Arc;
use std::time::Instant;

/// Bytes that an idle connection takes: its own state, and the state of TLS, recovery and congestion control.
/// `docs/performance.md` has the measurement.
pub const CONNECTION_COST: usize = 26 * 1024;
/// However little may be held, the peer may send this many unread bytes, so that it can still make and cancel
/// its requests.
const MIN_RECEIVE: u64 = 4096;
/// The peer may open this many streams of each direction, however little may be held.
const MIN_STREAMS: u64 = 8;

/// The memory that a connection holds, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUse {
    /// Written stream data that the peer may still need.
    pub send: usize,
    /// Received stream data that the application has not read, with the storage reserved for gaps.
    pub receive: usize,
    /// Coding windows and decoders.
    pub coding: usize,
    /// Datagrams that wait to be sent or read.
    pub datagrams: usize,
    /// The state of open streams.
    pub streams: usize,
    /// Handshake messages and packets that wait for their keys.
    pub handshake: usize,
    /// The connection itself.
    pub connection: usize,
}

impl MemoryUse {
    /// All of it.
    #[must_use]
    pub fn total(&self) -> usize {
        let Self { send, receive, coding, datagrams, streams, handshake, connection } = self;
        send + receive + coding + datagrams + streams + handshake + connection
    }

    /// Received stream data, with the storage reserved for gaps, and all datagrams, also datagrams that wait
    /// to be sent.
    #[must_use]
    pub fn sent_by_peer(&self) -> usize {
        self.receive + self.datagrams
    }
}

/// How many bytes the peer may send if the connection may hold `bytes`.
fn window(bytes: usize) -> u64 {
    (bytes as u64 / 2).max(MIN_RECEIVE)
}

/// How many streams of a direction the peer may have open.
fn streams(bytes: usize) -> u64 {
    ((bytes / 2 / STREAM_COST) as u64).max(MIN_STREAMS)
}

/// `config`, but a new peer is promised no more than fits into `bytes` bytes.
pub(crate) fn lend(config: &Arc<TransportConfig>, bytes: usize) -> Arc<TransportConfig> {
    let (window, streams) = (window(bytes), streams(bytes));
    let promised = config.receive_window.max(config.stream_receive_window);
    let open = config.max_concurrent_bidi_streams.max(config.max_concurrent_uni_streams);
    if promised <= window && open <= streams {
        return config.clone();
    }
    Arc::new(TransportConfig {
        receive_window: config.receive_window.min(window),
        stream_receive_window: config.stream_receive_window.min(window),
        max_concurrent_bidi_streams: config.max_concurrent_bidi_streams.min(streams),
        max_concurrent_uni_streams: config.max_concurrent_uni_streams.min(streams),
        ..(**config).clone()
    })
}

impl Connection {
    /// The memory that the connection holds. Visits neither streams nor data, so it can be asked for every
    /// packet.
    #[must_use]
    pub fn memory(&self) -> MemoryUse {
        let streams = &self.streams;
        let crypto: usize = SpaceId::ALL.iter().map(|id| self.spaces[*id].crypto.storage()).sum();
        MemoryUse {
            send: streams.send_storage(),
            receive: streams.receive_storage(),
            coding: self.egress.coding_bytes() + self.ingress.decoders.allocated(),
            datagrams: self.egress.datagram_cost() + self.ingress.datagram_cost(),
            streams: streams.open_streams() * STREAM_COST,
            handshake: crypto + self.early.bytes,
            connection: CONNECTION_COST,
        }
    }

    /// Bytes that have left this connection's buffers: of streams, because the peer acknowledged them or the
    /// application read them, and of datagrams, because they were sent, for which the window had room, or were
    /// read. Only ever grows: a peer for which it does not grow takes nothing.
    #[must_use]
    pub fn taken(&self) -> u64 {
        let datagrams = self.egress.datagrams_taken() + self.ingress.datagrams_taken();
        self.streams.taken() + datagrams
    }

    /// Sets how many bytes the connection may hold, as [`memory`](Self::memory) counts them; unlimited at
    /// first. Held data and credit already given to the peer stay. But as long as the connection holds more,
    /// no stream can be written to ([`WriteError::Blocked`](crate::WriteError::Blocked), and
    /// [`StreamEvent::Writable`](crate::StreamEvent::Writable) follows), the peer gets no more credit for
    /// data and for streams than it needs to make and cancel requests, and coding windows shrink to a
    /// quarter. Call it whenever the memory that the connection holds has changed, because the allowance is
    /// divided anew at each call.
    ///
    /// Until this is called again, the application can write no more than `burst` bytes beyond the buffered
    /// ones, so that many connections with the same allowance do not take it all at once.
    pub fn set_allowance(&mut self, bytes: usize, burst: usize) {
        let share = bytes / 4;
        self.egress.set_coding_allowance(&mut self.streams, share);
        self.ingress.decoders.set_allowance(share);
        let MemoryUse { send, receive, coding, datagrams, streams, handshake, connection } =
            self.memory();
        let left = bytes.saturating_sub(coding + datagrams + streams + handshake + connection);
        self.streams.set_allowance(Allowance {
            send: left.saturating_sub(receive).min(send.saturating_add(burst)),
            receive: window(left.saturating_sub(send)),
            streams: self::streams(bytes),
        });
    }

    /// The peer's first credit was set by [`lend`] with `config` and `bytes`; it grows when more may be held.
    pub(crate) fn borrow_within(&mut self, config: &TransportConfig, bytes: usize) {
        self.set_allowance(bytes, bytes);
        let streams = &mut self.streams;
        streams.set_max_concurrent(Dir::Bi, config.max_concurrent_bidi_streams);
        streams.set_max_concurrent(Dir::Uni, config.max_concurrent_uni_streams);
    }

    /// Closes the connection because this end cannot go on holding its data, with INTERNAL_ERROR (RFC 9000
    /// section 20.1). The application learns of it, as of any error of the transport. Does nothing if the
    /// connection is already closed.
    pub fn give_up_for_memory(&mut self, now: Instant) {
        if self.is_closed() {
            return;
        }
        let error = TransportError::new(TransportErrorCode::INTERNAL_ERROR, "out of memory");
        self.lost(now, ConnectionError::Transport(error.clone()));
        self.start_closing(now, CloseReason::Transport(error));
    }
}
