//! The task that does all I/O of an endpoint: one socket and all its connections.
//!
//! Applications change a connection's state under its lock and mark it dirty. The driver visits connections
//! that are dirty, have received a datagram or whose timer is due, collects the datagrams that each wants to
//! send, and sends them.

use super::{Inner, Opened, Sockets};
use crate::connection::Shared;
use crate::socket::{self, AsyncUdpSocket, Received};
use crate::sync::lock;
use crate::tenure::{TEND_INTERVAL, Tenure};
use std::collections::BTreeSet;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;
use sutura_proto::{ConnectionError, ConnectionHandle, DatagramEvent, Transmit};
use tokio::time::Sleep;

/// Most batches of datagrams received in one turn.
const RECEIVE_BATCHES: usize = 16;
/// After this many datagrams in one turn, no further batch is received.
const RECEIVE_DATAGRAMS: usize = 1024;
/// Most datagrams that a connection builds as one batch for the kernel: the number that fits into 64 KiB, the
/// kernel's maximum, on paths with the usual 1500 bytes.
const MAX_SEGMENTS: usize = 44;
/// Batches that a connection sends in one turn.
const SEND_BATCHES: usize = 8;

/// The driver's view of a connection.
#[derive(Debug)]
struct Entry {
    shared: Arc<Shared>,
    /// Its deadline in the timer queue.
    timer: Option<Instant>,
    active: bool,
    /// On a server: the address of this end that the newest datagram was sent to. Answers come from
    /// there, because a client takes no other.
    local: Option<IpAddr>,
    tenure: Tenure,
}

/// Connections by handle. Handles are small numbers that are reused.
#[derive(Debug, Default)]
struct Entries {
    slots: Vec<Option<Entry>>,
    len: usize,
}

impl Entries {
    fn insert(&mut self, handle: ConnectionHandle, entry: Entry) {
        if handle.0 >= self.slots.len() {
            self.slots.resize_with(handle.0 + 1, || None);
        }
        self.len += usize::from(self.slots[handle.0].replace(entry).is_none());
    }

    fn get(&self, handle: ConnectionHandle) -> Option<&Entry> {
        self.slots.get(handle.0)?.as_ref()
    }

    fn get_mut(&mut self, handle: ConnectionHandle) -> Option<&mut Entry> {
        self.slots.get_mut(handle.0)?.as_mut()
    }

    /// Gives back memory that was needed for many more connections than there are now.
    fn give_back(&mut self) {
        if self.slots.len() > 64 && self.len < self.slots.len() / 4 {
            while self.slots.pop_if(|slot| slot.is_none()).is_some() {}
            self.slots.shrink_to(self.slots.len() * 2);
        }
    }

    fn remove(&mut self, handle: ConnectionHandle) -> Option<Entry> {
        let entry = self.slots.get_mut(handle.0)?.take()?;
        self.len -= 1;
        self.give_back();
        Some(entry)
    }
}

/// A batch that the socket has not accepted completely.
#[derive(Debug)]
struct Unsent {
    transmit: Transmit,
    contents: Vec<u8>,
    sent: usize,
    source: Option<IpAddr>,
}

/// The driver of one endpoint.
#[derive(Debug)]
pub(crate) struct Driver {
    inner: Arc<Inner>,
    connections: Entries,
    timers: BTreeSet<(Instant, ConnectionHandle)>,
    sleep: Pin<Box<Sleep>>,
    active: Vec<ConnectionHandle>,
    /// Bytes that the socket has not accepted yet.
    unsent: Option<Unsent>,
    buffer: Vec<u8>,
    touched: Vec<ConnectionHandle>,
    /// When to look after connections for which memory is short, if there may be such connections.
    tend_at: Option<Instant>,
}

impl Driver {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        Self {
            inner,
            connections: Entries::default(),
            timers: BTreeSet::new(),
            sleep: Box::pin(tokio::time::sleep_until(tokio::time::Instant::now())),
            active: Vec::new(),
            unsent: None,
            buffer: Vec::new(),
            touched: Vec::new(),
            tend_at: None,
        }
    }

    fn activate(&mut self, handle: ConnectionHandle) {
        if let Some(entry) = self.connections.get_mut(handle)
            && !std::mem::replace(&mut entry.active, true)
        {
            self.active.push(handle);
        }
    }

    /// Takes over the connections that applications have opened and accepted.
    fn adopt(&mut self) {
        for Opened { shared, local } in self.inner.take_opened() {
            let handle = shared.handle;
            let remote = shared.lock().quic.remote_address();
            let tenure = Tenure::new(self.inner.budget().open(remote.ip()), Instant::now());
            let entry = Entry { shared, timer: None, active: false, local, tenure };
            self.connections.insert(handle, entry);
            self.activate(handle);
        }
    }

    /// Collects the connections that applications have changed since the last turn.
    fn take_dirty(&mut self, cx: &Context<'_>) {
        self.inner.dirty.take(&mut self.touched, cx);
        if self.inner.take_rebound() {
            self.tell_of_another_socket();
        }
        self.adopt();
        if let Some((code, reason)) = self.inner.ending() {
            self.close_all(code, &reason);
        }
        let mut touched = std::mem::take(&mut self.touched);
        for handle in touched.drain(..) {
            if let Some(entry) = self.connections.get(handle) {
                entry.shared.visit();
            }
            self.activate(handle);
        }
        self.touched = touched;
    }

    /// Closes all connections that are not closed yet.
    fn close_all(&mut self, code: u64, reason: &[u8]) {
        let now = Instant::now();
        for entry in self.connections.slots.iter().flatten() {
            let mut state = entry.shared.lock();
            if !state.quic.is_closed() {
                state.close(now, code, reason);
                self.touched.push(entry.shared.handle);
            }
        }
    }

    fn tell_of_another_socket(&mut self) {
        let now = Instant::now();
        for entry in self.connections.slots.iter().flatten() {
            entry.shared.lock().quic.local_address_changed(now);
            self.touched.push(entry.shared.handle);
        }
    }

    /// Receives datagrams and passes them to their connections. Returns whether there may be more.
    fn receive(&mut self, cx: &mut Context<'_>) -> std::io::Result<bool> {
        let Sockets { present, previous } = self.inner.sockets();
        if let Some(previous) = previous {
            // Late datagrams at the previous socket are welcome, but its failure is no loss.
            let _ = self.receive_from(cx, &previous);
        }
        self.receive_from(cx, &present)
    }

    /// Receives a few batches from a socket. Returns whether there may be more.
    fn receive_from(
        &mut self,
        cx: &mut Context<'_>,
        socket: &Arc<dyn AsyncUdpSocket>,
    ) -> std::io::Result<bool> {
        let inner = self.inner.clone();
        let mut datagrams = 0usize;
        for _ in 0..RECEIVE_BATCHES {
            let now = Instant::now();
            let result = socket.poll_recv(cx, &mut |meta, datagram| {
                self.on_datagram(now, &meta, datagram);
            });
            match result {
                Poll::Pending => return Ok(false),
                Poll::Ready(Ok(count)) => datagrams = count.saturating_add(datagrams),
                Poll::Ready(Err(error)) => return Err(error),
            }
            if Arc::ptr_eq(socket, &inner.socket()) {
                inner.drop_previous_socket();
            }
            if datagrams >= RECEIVE_DATAGRAMS {
                break;
            }
        }
        Ok(true)
    }

    fn on_datagram(&mut self, now: Instant, meta: &Received, datagram: &mut [u8]) {
        let inner = self.inner.clone();
        let mut state = lock(&inner.state);
        let event = state.proto.handle(now, meta.remote, datagram);
        let mut given_up = Vec::new();
        while let Some(handle) = state.proto.poll_given_up() {
            if !state.forget_client(handle) {
                given_up.push(handle);
            }
        }
        let handle = match event {
            DatagramEvent::Drop => None,
            DatagramEvent::Respond(reply) => {
                state.reply(meta.remote, Some(reply));
                None
            }
            DatagramEvent::Connection(handle) => {
                Some(handle).filter(|handle| !state.hold(*handle, meta, datagram))
            }
            DatagramEvent::NewConnection(client) => {
                state.offer(client, meta, datagram);
                None
            }
        };
        drop(state);
        if handle.iter().chain(&given_up).any(|handle| self.connections.get(*handle).is_none()) {
            self.adopt();
        }
        for handle in given_up {
            if let Some(entry) = self.connections.get(handle) {
                entry.shared.lock().discard(now);
                self.activate(handle);
            }
        }
        let Some(handle) = handle else { return };
        if let Some(entry) = self.connections.get_mut(handle) {
            let mut state = entry.shared.lock();
            if state.quic.side().is_server() {
                entry.local = meta.local;
            }
            state.handle_datagram(now, meta.remote, meta.ecn, datagram);
            drop(state);
            self.activate(handle);
        }
    }

    fn fire_timers(&mut self, now: Instant) {
        while let Some(&(at, handle)) = self.timers.first() {
            if at > now {
                break;
            }
            self.timers.pop_first();
            if let Some(entry) = self.connections.get_mut(handle) {
                entry.timer = None;
                entry.shared.lock().handle_timeout(now);
            }
            self.activate(handle);
        }
    }

    /// Lets the active connections send. Returns whether there may be more to send.
    fn drive(&mut self, cx: &mut Context<'_>) -> std::io::Result<bool> {
        if !self.flush(cx)? {
            return Ok(false);
        }
        while let Some((destination, contents)) = self.take_reply() {
            let transmit = Transmit::new(destination, contents.len());
            if !self.send(cx, Unsent { transmit, contents, sent: 0, source: None })? {
                return Ok(false);
            }
        }
        let mut again = Vec::new();
        let mut active = std::mem::take(&mut self.active);
        let mut blocked = false;
        for handle in active.drain(..) {
            if blocked {
                again.push(handle);
                continue;
            }
            match self.drive_connection(cx, handle)? {
                Progress::Done => {
                    if let Some(entry) = self.connections.get_mut(handle) {
                        entry.active = false;
                    }
                }
                Progress::More => again.push(handle),
                Progress::Blocked => {
                    again.push(handle);
                    blocked = true;
                }
            }
        }
        let more = !again.is_empty() && !blocked;
        again.append(&mut self.active);
        self.active = again;
        Ok(more)
    }

    /// Looks after the connections while memory is short: connections that wait for memory learn how much
    /// they may hold now, and connections that must be closed are.
    fn tend(&mut self, now: Instant) {
        if self.tend_at.is_none_or(|at| at > now) {
            return;
        }
        self.tend_at = None;
        let mut waiting = false;
        let mut candidates = Vec::new();
        for entry in self.connections.slots.iter_mut().flatten() {
            let waits = entry.tenure.waits();
            waiting |= waits || entry.tenure.is_short();
            if waits {
                self.touched.push(entry.shared.handle);
            }
            candidates.extend(entry.tenure.urgency(now).map(|rank| (rank, entry.shared.handle)));
        }
        candidates.sort_unstable_by(|a, b| b.cmp(a));
        for (_, handle) in candidates {
            let Some(entry) = self.connections.get_mut(handle) else { continue };
            if entry.tenure.urgency(now).is_some() {
                entry.tenure.evict();
                entry.shared.lock().close_for_memory(now);
                self.touched.push(handle);
            }
        }
        self.tend_at = waiting.then(|| now + TEND_INTERVAL);
        let mut touched = std::mem::take(&mut self.touched);
        touched.drain(..).for_each(|handle| self.activate(handle));
        self.touched = touched;
    }

    fn take_reply(&self) -> Option<(SocketAddr, Vec<u8>)> {
        lock(&self.inner.state).take_reply()
    }

    fn drive_connection(
        &mut self,
        cx: &mut Context<'_>,
        handle: ConnectionHandle,
    ) -> std::io::Result<Progress> {
        let Some(entry) = self.connections.get_mut(handle) else { return Ok(Progress::Done) };
        let (shared, source) = (entry.shared.clone(), entry.local);
        let now = Instant::now();
        if entry.tenure.report(now, &mut shared.lock()) {
            self.tend_at.get_or_insert(now + TEND_INTERVAL);
        }
        let mut progress = Progress::More;
        let inner = self.inner.clone();
        let tell = |event| lock(&inner.state).proto.handle_event(handle, event);
        let segments = inner.socket().max_segments().min(MAX_SEGMENTS);
        for _ in 0..SEND_BATCHES {
            let (now, mut state) = (Instant::now(), shared.lock());
            state.process(now, tell);
            if state.quic.is_drained() {
                let error = state.error.clone().unwrap_or(ConnectionError::LocallyClosed);
                state.abandon(error);
                drop(state);
                self.forget(handle);
                return Ok(Progress::Done);
            }
            self.buffer.clear();
            let transmit = state.quic.poll_transmit(now, segments, &mut self.buffer);
            let more = transmit.is_some_and(|transmit| transmit.more);
            if !more {
                state.process(now, tell);
            }
            drop(state);
            if let Some(transmit) = transmit {
                let contents = std::mem::take(&mut self.buffer);
                if !self.send(cx, Unsent { transmit, contents, sent: 0, source })? {
                    progress = Progress::Blocked;
                    break;
                }
            }
            if !more {
                progress = Progress::Done;
                break;
            }
        }
        self.reschedule(handle);
        Ok(progress)
    }

    /// Sends a batch, or keeps the part that the socket does not accept now. Returns whether all of
    /// it was sent.
    fn send(&mut self, cx: &mut Context<'_>, mut batch: Unsent) -> std::io::Result<bool> {
        let mut outgoing = socket::Transmit {
            destination: batch.transmit.destination,
            source: batch.source,
            ecn: batch.transmit.ecn,
            contents: &batch.contents[batch.sent..],
            segment_size: batch.transmit.segment_size,
        };
        let result = self.inner.socket().poll_send(cx, &mut outgoing);
        let left = outgoing.contents.len();
        match result {
            Poll::Ready(Ok(())) => {
                self.buffer = batch.contents;
                Ok(true)
            }
            Poll::Ready(Err(error)) => Err(error),
            Poll::Pending => {
                batch.sent = batch.contents.len() - left;
                self.unsent = Some(batch);
                Ok(false)
            }
        }
    }

    fn flush(&mut self, cx: &mut Context<'_>) -> std::io::Result<bool> {
        match self.unsent.take() {
            Some(batch) => self.send(cx, batch),
            None => Ok(true),
        }
    }

    fn reschedule(&mut self, handle: ConnectionHandle) {
        let Some(entry) = self.connections.get_mut(handle) else { return };
        let at = entry.shared.lock().quic.poll_timeout();
        if at != entry.timer {
            if let Some(old) = entry.timer.take() {
                self.timers.remove(&(old, handle));
            }
            entry.timer = at;
            self.timers.extend(at.map(|at| (at, handle)));
        }
    }

    fn forget(&mut self, handle: ConnectionHandle) {
        if let Some(entry) = self.connections.remove(handle)
            && let Some(at) = entry.timer
        {
            self.timers.remove(&(at, handle));
        }
        self.inner.connection_gone(self.connections.len);
    }

    /// Ends all connections after a fatal socket error.
    fn give_up(&mut self, error: &std::io::Error) {
        tracing::error!(%error, "socket failed");
        for entry in std::mem::take(&mut self.connections).slots.into_iter().flatten() {
            entry.shared.lock().abandon(ConnectionError::TimedOut);
        }
        self.inner.shut_down();
    }
}

/// How far a connection got in its turn.
enum Progress {
    Done,
    More,
    Blocked,
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let mut turn = || -> std::io::Result<bool> {
            this.take_dirty(cx);
            let mut more = this.receive(cx)?;
            let now = Instant::now();
            this.fire_timers(now);
            this.tend(now);
            more |= this.drive(cx)?;
            let timer = this.timers.first().map(|(at, _)| *at);
            if let Some(at) = timer.into_iter().chain(this.tend_at).min() {
                this.sleep.as_mut().reset(at.into());
                more |= this.sleep.as_mut().poll(cx).is_ready();
            }
            Ok(more)
        };
        match turn() {
            Ok(true) => cx.waker().wake_by_ref(),
            Ok(false) => {}
            Err(error) => {
                this.give_up(&error);
                return Poll::Ready(());
            }
        }
        if this.connections.len == 0 && this.inner.is_abandoned() {
            this.inner.shut_down();
            return Poll::Ready(());
        }
        Poll::Pending
    }
}
