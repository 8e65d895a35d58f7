//! A connection with what the loop has to know of it, and the application's tasks that wait for it.

use crate::Error;
use bytes::Bytes;
use quiche::BufFactory;
use std::collections::{HashMap, VecDeque};
use std::task::{Context, Waker};
use std::time::Instant;

/// The urgency that streams have unless they are given another.
const URGENCY: u8 = 127;

/// What the application writes goes into packets without a copy in between.
#[derive(Debug, Clone, Default)]
pub struct Buffers;

impl BufFactory for Buffers {
    type Buf = Bytes;
    type DgramBuf = Vec<u8>;

    fn buf_from_slice(buf: &[u8]) -> Bytes {
        Bytes::copy_from_slice(buf)
    }

    fn dgram_buf_from_slice(buf: &[u8]) -> Vec<u8> {
        buf.to_vec()
    }
}

pub type Connection = quiche::Connection<Buffers>;

/// The application's tasks that wait for something to happen.
#[derive(Default)]
pub struct Waiting {
    handshake: Option<Waker>,
    opened: Option<Waker>,
    openers: Vec<Waker>,
    readers: HashMap<u64, Waker>,
    writers: HashMap<u64, Waker>,
}

impl Waiting {
    pub fn wait_for_handshake(&mut self, cx: &Context<'_>) {
        self.handshake = Some(cx.waker().clone());
    }

    /// Waits for the peer to open a stream.
    pub fn wait_for_stream(&mut self, cx: &Context<'_>) {
        self.opened = Some(cx.waker().clone());
    }

    /// Waits until the peer lets us open a stream.
    pub fn wait_to_open(&mut self, cx: &Context<'_>) {
        self.openers.push(cx.waker().clone());
    }

    pub fn wait_to_read(&mut self, stream: u64, cx: &Context<'_>) {
        self.readers.insert(stream, cx.waker().clone());
    }

    pub fn wait_to_write(&mut self, stream: u64, cx: &Context<'_>) {
        self.writers.insert(stream, cx.waker().clone());
    }

    fn wake_all(&mut self) {
        let streams = self.readers.drain().chain(self.writers.drain()).map(|(_, waker)| waker);
        let others = self.handshake.take().into_iter().chain(self.opened.take());
        streams.chain(others).chain(self.openers.drain(..)).for_each(Waker::wake);
    }
}

/// A connection and what the loop has to know of it.
pub struct Entry {
    pub connection: Connection,
    pub waiting: Waiting,
    /// Streams of the peer that nobody has accepted.
    pub opened: VecDeque<u64>,
    /// Whether the loop has to look after it, and whether it is in the list of those.
    pub is_touched: bool,
    pub is_listed: bool,
    /// The time under which the connection is among the timers.
    pub timer: Option<Instant>,
    pub ids: Vec<Vec<u8>>,
    /// Whether the handshake is complete, its last message included: quiche would never send that if the application
    /// closed the connection before.
    pub is_ready: bool,
    next_own: u64,
    next_of_peer: u64,
    pub has_handle: bool,
}

impl Entry {
    pub fn new(connection: Connection, ids: Vec<Vec<u8>>) -> Self {
        let (next_own, next_of_peer) = if connection.is_server() { (1, 0) } else { (0, 1) };
        Self {
            connection,
            waiting: Waiting::default(),
            opened: VecDeque::new(),
            is_touched: false,
            is_listed: false,
            timer: None,
            ids,
            is_ready: false,
            next_own,
            next_of_peer,
            has_handle: true,
        }
    }

    /// Lets the loop look after the connection.
    pub fn touch(&mut self) {
        self.is_touched = true;
    }

    /// Opens a stream and returns its identifier.
    pub fn open(&mut self) -> Result<u64, Error> {
        let id = self.next_own;
        // The stream exists from now on, so that it counts among those that the peer allows.
        self.connection.stream_priority(id, URGENCY, true)?;
        self.next_own += 4;
        Ok(id)
    }

    /// Notes that everything has been sent for now.
    pub fn on_flushed(&mut self) {
        self.is_ready |= self.connection.is_established();
        if let Some(waker) = self.waiting.handshake.take_if(|_| self.is_ready) {
            waker.wake();
        }
    }

    pub fn has_ended(&self) -> bool {
        self.connection.is_closed() || self.connection.is_draining()
    }

    /// Wakes the tasks for which something has happened.
    pub fn wake(&mut self) {
        while let Some(id) = self.connection.stream_readable_next() {
            // Streams of the peer, whose identifiers differ from ours in the lowest bit.
            if id % 2 == self.next_of_peer % 2 {
                while self.next_of_peer <= id {
                    self.opened.push_back(self.next_of_peer);
                    self.next_of_peer += 4;
                }
            }
            if let Some(waker) = self.waiting.readers.remove(&id) {
                waker.wake();
            }
        }
        let Self { connection, waiting, .. } = self;
        let mut is_full = |id| connection.stream_capacity(id).is_ok_and(|capacity| capacity == 0);
        let writers = waiting.writers.extract_if(|id, _| !is_full(*id));
        writers.for_each(|(_, waker)| waker.wake());
        if connection.peer_streams_left_bidi() > 0 {
            waiting.openers.drain(..).for_each(Waker::wake);
        }
        if let Some(waker) = waiting.opened.take_if(|_| !self.opened.is_empty()) {
            waker.wake();
        }
        if self.has_ended() {
            self.waiting.wake_all();
        }
    }
}
