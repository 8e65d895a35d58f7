//! The task that does all I/O of an endpoint, or of one of its workers: one socket and all its connections.
//!
//! Applications change a connection's state under its lock and mark it dirty. The driver visits connections
//! that are dirty, have received a datagram or whose timer is due, collects the datagrams that each wants to
//! send, and sends them.

use super::patience::Patience;
use super::{Inner, Opened, Wishes};
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

    /// Wakes the tasks that wait for something that has happened at these connections. Returns how many answers
    /// may follow.
    fn announce(&self, active: &[ConnectionHandle], now: Instant) -> usize {
        let active = active.iter().filter_map(|handle| self.get(*handle));
        active.map(|entry| entry.shared.lock().dispatch(now)).sum()
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
    socket: Arc<dyn AsyncUdpSocket>,
    /// The socket before it, until a datagram has arrived at the new one: the peers send to the old address until
    /// they know the new one.
    previous: Option<Arc<dyn AsyncUdpSocket>>,
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
    patience: Patience,
}

impl Driver {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        Self {
            patience: Patience::new(&inner.runtime.runtime_flavor()),
            socket: inner.socket(),
            previous: None,
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

    /// Takes over connections that applications have opened and accepted.
    fn adopt(&mut self, opened: Vec<Opened>) {
        for Opened { shared, local } in opened {
            let handle = shared.handle;
            let remote = shared.lock().quic.remote_address();
            let tenure = Tenure::new(self.inner.budget().open(remote.ip()), Instant::now());
            let entry = Entry { shared, timer: None, active: false, local, tenure };
            self.connections.insert(handle, entry);
            self.activate(handle);
        }
    }

    /// Collects the connections that applications have changed since the last turn. Returns whether there are
    /// any.
    fn take_dirty(&mut self, cx: &Context<'_>) -> bool {
        self.inner.dirty.take(&mut self.touched, cx);
        let Wishes { opened, rebound, ending } = self.inner.take_wishes();
        if rebound {
            self.previous = Some(std::mem::replace(&mut self.socket, self.inner.socket()));
            self.tell_of_another_socket();
        }
        self.adopt(opened);
        if let Some((code, reason)) = ending {
            self.close_all(code, &reason);
        }
        let mut touched = std::mem::take(&mut self.touched);
        let any = !touched.is_empty();
        for handle in touched.drain(..) {
            if let Some(entry) = self.connections.get(handle) {
                entry.shared.visit();
            }
            self.activate(handle);
        }
        self.touched = touched;
        any
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
        if let Some(previous) = self.previous.clone() {
            // Late datagrams at the previous socket are welcome, but its failure is no loss.
            let _ = self.receive_from(cx, &previous);
        }
        let present = self.socket.clone();
        self.receive_from(cx, &present)
    }

    /// Receives a few batches from a socket. Returns whether there may be more.
    fn receive_from(
        &mut self,
        cx: &mut Context<'_>,
        socket: &Arc<dyn AsyncUdpSocket>,
    ) -> std::io::Result<bool> {
        let mut datagrams = 0usize;
        for _ in 0..RECEIVE_BATCHES {
            let mut arrived = None;
            let result = socket.poll_recv(cx, &mut |meta, datagram| {
                let now = *arrived.get_or_insert_with(Instant::now);
                self.on_datagram(now, &meta, datagram);
            });
            match result {
                Poll::Pending => return Ok(false),
                Poll::Ready(Ok(count)) => datagrams = count.saturating_add(datagrams),
                Poll::Ready(Err(error)) => return Err(error),
            }
            if Arc::ptr_eq(socket, &self.socket) {
                self.previous = None;
            }
            if datagrams >= RECEIVE_DATAGRAMS {
                break;
            }
        }
        Ok(true)
    }

    /// Takes the datagrams that arrived at the sockets of other workers.
    fn take_handed_over(&mut self) {
        for (meta, mut datagram) in self.inner.clone().handed_over() {
            self.on_datagram(Instant::now(), &meta, &mut datagram);
        }
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
            DatagramEvent::Elsewhere(worker) => {
                inner.hand_over(worker, meta, datagram);
                None
            }
        };
        drop(state);
        if handle.iter().chain(&given_up).any(|handle| self.connections.get(*handle).is_none()) {
            self.adopt(self.inner.take_opened());
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
        let mut active = std::mem::take(&mut self.active);
        let (mut blocked, mut result) = (false, Ok(()));
        active.retain(|handle| {
            if blocked || result.is_err() {
                return true;
            }
            match self.drive_connection(cx, *handle) {
                Ok(Progress::Done) => {
                    if let Some(entry) = self.connections.get_mut(*handle) {
                        entry.active = false;
                    }
                    return false;
                }
                Ok(Progress::More) => {}
                Ok(Progress::Blocked) => blocked = true,
                Err(error) => result = Err(error),
            }
            true
        });
        let more = !active.is_empty() && !blocked;
        active.append(&mut self.active);
        self.active = active;
        result.map(|()| more)
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
        let (mut now, mut state) = (Instant::now(), shared.lock());
        if entry.tenure.report(now, &mut state) {
            self.tend_at.get_or_insert(now + TEND_INTERVAL);
        }
        let inner = self.inner.clone();
        let tell = |event| lock(&inner.state).proto.handle_event(handle, event);
        let most = self.socket.max_segments().min(MAX_SEGMENTS);
        let mut segments = self.patience.first_batch().min(most);
        for _ in 0..SEND_BATCHES {
            state.process(now, tell);
            if state.quic.is_drained() {
                let error = state.error.clone().unwrap_or(ConnectionError::LocallyClosed);
                state.abandon(error);
                drop(state);
                self.forget(handle);
                return Ok(Progress::Done);
            }
            self.buffer.clear();
            let transmit = state.quic.poll_segments(now, segments, &mut self.buffer);
            let more = transmit.is_some_and(|transmit| transmit.more);
            segments = most;
            if !more {
                state.process(now, tell);
            }
            self.reschedule(handle, state.quic.poll_timeout());
            drop(state);
            if let Some(transmit) = transmit {
                let contents = std::mem::take(&mut self.buffer);
                if !self.send(cx, Unsent { transmit, contents, sent: 0, source })? {
                    return Ok(Progress::Blocked);
                }
            }
            if !more {
                return Ok(Progress::Done);
            }
            (now, state) = (Instant::now(), shared.lock());
        }
        Ok(Progress::More)
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
        let result = self.socket.poll_send(cx, &mut outgoing);
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

    fn reschedule(&mut self, handle: ConnectionHandle, at: Option<Instant>) {
        let Some(entry) = self.connections.get_mut(handle) else { return };
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

impl Driver {
    /// One turn. Returns whether there may be more to do at once.
    fn turn(&mut self, cx: &mut Context<'_>) -> std::io::Result<bool> {
        let has_news = self.take_dirty(cx);
        self.take_handed_over();
        let mut more = self.receive(cx)?;
        let now = Instant::now();
        self.fire_timers(now);
        self.tend(now);
        let Self { patience, active, connections, .. } = self;
        if patience.wait(has_news, || connections.announce(active, now)) {
            return Ok(true);
        }
        more |= self.drive(cx)?;
        let timer = self.timers.first().map(|(at, _)| *at);
        if let Some(at) = timer.into_iter().chain(self.tend_at).min() {
            self.sleep.as_mut().reset(at.into());
            more |= self.sleep.as_mut().poll(cx).is_ready();
        }
        Ok(more)
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match self.turn(cx) {
            Ok(true) => cx.waker().wake_by_ref(),
            Ok(false) => {}
            Err(error) => {
                self.give_up(&error);
                return Poll::Ready(());
            }
        }
        if self.connections.len == 0 && self.inner.is_abandoned() {
            self.inner.shut_down();
            return Poll::Ready(());
        }
        Poll::Pending
    }
}
