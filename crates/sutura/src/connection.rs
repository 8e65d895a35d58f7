//! The connection handle.

use crate::driver::Dirty;
use crate::groups::{GroupState, MAX_OUTCOMES};
use crate::http::HttpState;
use crate::incoming::Held;
use crate::recv_stream::RecvStream;
use crate::send_stream::SendStream;
use bytes::Bytes;
use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;
use sutura_proto as proto;
use sutura_proto::crypto::ExportError;
use sutura_proto::{
    ConnectionError, ConnectionHandle, ConnectionStats, Dir, EcnCodepoint, EndpointEvent, Event,
    MessageId, MessageOptions, MessageOutcome, Observer, Protection, ProtectionStats,
    SendDatagramError, SendMessageError, StreamEvent, StreamId, Version,
};

/// Locks `mutex`. A panic in another task is no reason to fail here: every call leaves the state
/// consistent.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tasks that wait for an event of a connection.
#[derive(Debug, Default)]
struct Waiters {
    connected: Vec<Waker>,
    closed: Vec<Waker>,
    open: [Vec<Waker>; 2],
    accept: [Vec<Waker>; 2],
    datagram: Vec<Waker>,
    /// Those that have a message to send.
    messages: Vec<Waker>,
    /// Those that want to know what became of a message.
    outcomes: Vec<Waker>,
    readable: HashMap<StreamId, Waker>,
    writable: HashMap<StreamId, Waker>,
    finished: HashMap<StreamId, Waker>,
}

impl Waiters {
    fn wake(list: &mut Vec<Waker>) {
        list.drain(..).for_each(Waker::wake);
    }

    fn wake_stream(map: &mut HashMap<StreamId, Waker>, id: StreamId) {
        if let Some(waker) = map.remove(&id) {
            waker.wake();
        }
    }

    /// Wakes the tasks that wait for streams.
    fn wake_streams(&mut self) {
        for map in [&mut self.readable, &mut self.writable, &mut self.finished] {
            map.drain().for_each(|(_, waker)| waker.wake());
        }
        self.open.iter_mut().for_each(Self::wake);
    }

    fn wake_all(&mut self) {
        self.wake_streams();
        let mut all = std::mem::take(self);
        let lists = [&mut all.connected, &mut all.closed, &mut all.datagram];
        lists.into_iter().chain([&mut all.messages, &mut all.outcomes]).for_each(Self::wake);
        all.accept.iter_mut().for_each(Self::wake);
    }
}

/// Adds `waker` to `list` unless it is already there.
pub(crate) fn enlist(list: &mut Vec<Waker>, cx: &Context<'_>) {
    if !list.iter().any(|w| w.will_wake(cx.waker())) {
        list.push(cx.waker().clone());
    }
}

/// A connection's protocol state and the tasks that wait for it.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) quic: Box<proto::Connection>,
    waiters: Waiters,
    pub(crate) connected: bool,
    pub(crate) error: Option<ConnectionError>,
    /// Whether it is known here that the server does not accept 0-RTT.
    rejected: bool,
    /// HTTP/3, if the application uses it.
    pub(crate) http: Option<Box<HttpState>>,
    /// Ordered groups, if the application uses them.
    pub(crate) groups: Option<Box<GroupState>>,
    /// What became of messages that belong to no group, if the application uses groups as well.
    outcomes: VecDeque<(MessageId, MessageOutcome)>,
    /// Handles held by the application; when the last is dropped, the connection is closed.
    handles: usize,
    /// How many bytes the connection may hold.
    allowance: usize,
}

/// The state that the driver and the handles of a connection share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) handle: ConnectionHandle,
    state: Mutex<State>,
    dirty: Arc<Dirty>,
}

impl Shared {
    pub(crate) fn new(
        handle: ConnectionHandle,
        quic: Box<proto::Connection>,
        dirty: Arc<Dirty>,
    ) -> Arc<Self> {
        let state = State {
            waiters: Waiters::default(),
            connected: false,
            error: None,
            rejected: false,
            quic,
            http: None,
            groups: None,
            outcomes: VecDeque::new(),
            handles: 0,
            allowance: usize::MAX,
        };
        Arc::new(Self { handle, state: Mutex::new(state), dirty })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Tells the driver that there may be something to send.
    pub(crate) fn touch(&self) {
        self.dirty.push(self.handle);
    }
}

impl State {
    /// Processes a datagram that came from `remote`.
    pub(crate) fn handle_datagram(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        ecn: Option<EcnCodepoint>,
        datagram: &mut [u8],
    ) {
        self.quic.handle_datagram(now, remote, ecn, datagram);
        self.learn_of_end(now);
    }

    /// Starts the handshake of a client that the application accepts, with what came from it before.
    pub(crate) fn start(&mut self, now: Instant, held: Held) {
        let remote = self.quic.remote_address();
        for (ecn, mut datagram) in held.into_datagrams() {
            self.quic.handle_datagram(now, remote, ecn, &mut datagram);
        }
        self.learn_of_end(now);
    }

    /// Ends the connection without a word to the peer.
    pub(crate) fn discard(&mut self, now: Instant) {
        self.quic.discard(now);
        self.learn_of_end(now);
    }

    /// Handles the timers that are due.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.quic.handle_timeout(now);
        self.learn_of_end(now);
    }

    /// Closes the connection at once.
    pub(crate) fn close(&mut self, now: Instant, code: u64, reason: &[u8]) {
        self.quic.close(now, code, reason);
        self.learn_of_end(now);
    }

    /// Records the cause under the same lock under which the connection ended, so that whoever
    /// finds the connection closed also finds out why. In the same way, nobody uses what was opened in
    /// 0-RTT that was rejected.
    fn learn_of_end(&mut self, now: Instant) {
        let has_ended = self.quic.is_closed() && self.error.is_none();
        if has_ended || (self.is_void(true) && !self.rejected) {
            self.dispatch(now);
        }
    }

    /// Whether a stream never was, because it was opened in 0-RTT (`early`) and the server does not
    /// accept that. Its identifier may belong to another one.
    pub(crate) fn is_void(&self, early: bool) -> bool {
        early && self.quic.zero_rtt_accepted() == Some(false)
    }

    /// Bytes that the requests over HTTP/3 take.
    pub(crate) fn memory_of_requests(&self) -> usize {
        self.http.as_ref().map_or(0, |http| http.memory())
    }

    /// Sets how many bytes the connection may hold, and how many of them the application may write until
    /// this is called again.
    pub(crate) fn set_allowance(&mut self, bytes: usize, burst: usize) {
        self.allowance = bytes;
        let of_requests = self.memory_of_requests();
        self.quic.set_allowance(bytes.saturating_sub(of_requests), burst);
        let held_back = self.holds_requests_back();
        if let Some(http) = self.http.as_mut().filter(|_| !held_back) {
            http.wake_for_requests();
        }
    }

    /// Whether the application is to accept no further request for now.
    pub(crate) fn holds_requests_back(&self) -> bool {
        let held = self.quic.memory().total() + self.memory_of_requests();
        let left = self.allowance.saturating_sub(held);
        self.http.as_ref().is_some_and(|http| http.holds_back(left))
    }

    /// Ends the connection because this process cannot go on holding what the peer makes it hold.
    pub(crate) fn close_for_memory(&mut self, now: Instant) {
        match self.http {
            Some(_) => self.close(now, sutura_h3::Code::EXCESSIVE_LOAD.0, b"out of memory"),
            None => {
                self.quic.give_up_for_memory(now);
                self.learn_of_end(now);
            }
        }
    }

    /// Dispatches events: wakes waiting tasks and passes on endpoint events.
    pub(crate) fn process(&mut self, now: Instant, endpoint: impl FnMut(EndpointEvent)) {
        self.dispatch(now);
        std::iter::from_fn(|| self.quic.poll_endpoint_event()).for_each(endpoint);
    }

    /// Wakes the tasks that wait for what happened.
    fn dispatch(&mut self, now: Instant) {
        while let Some(event) = self.quic.poll_event() {
            if let (Some(http), Event::Stream(event)) = (&mut self.http, &event) {
                http.on_stream_event(event);
            }
            if let Some(groups) = &mut self.groups {
                groups.on_event(&mut self.quic, &event);
            }
            self.on_event(event);
        }
        if let Some(http) = &mut self.http {
            http.process(now, &mut self.quic, self.error.is_some());
        }
        if let Some(groups) = &mut self.groups {
            groups.receive(now, &mut self.quic);
        }
    }

    /// What became of the next message or datagram that belongs to no group.
    fn poll_outcome(&mut self) -> Option<(MessageId, MessageOutcome)> {
        self.sort_outcomes();
        self.outcomes.pop_front().or_else(|| self.quic.poll_message_outcome())
    }

    /// Passes the outcomes of messages of groups to these.
    fn sort_outcomes(&mut self) {
        let Some(groups) = &mut self.groups else { return };
        while let Some((id, outcome)) = self.quic.poll_message_outcome() {
            if !groups.on_outcome(&mut self.quic, id, outcome) {
                if self.outcomes.len() == MAX_OUTCOMES {
                    self.outcomes.pop_front();
                }
                self.outcomes.push_back((id, outcome));
            }
        }
    }

    fn on_event(&mut self, event: Event) {
        let w = &mut self.waiters;
        match event {
            Event::Connected => {
                self.connected = true;
                Waiters::wake(&mut w.connected);
                // Those of groups wait until 0-RTT is over.
                Waiters::wake(&mut w.messages);
                // The peer's limits are now known.
                w.open.iter_mut().for_each(Waiters::wake);
            }
            Event::ZeroRttRejected => {
                self.rejected = true;
                w.wake_streams();
                if let Some(http) = &mut self.http {
                    http.start_over();
                }
            }
            Event::ConnectionLost(error) => {
                self.error.get_or_insert(error);
                w.wake_all();
                self.groups.iter_mut().for_each(|groups| groups.wake_all());
            }
            Event::DatagramReceived => Waiters::wake(&mut w.datagram),
            Event::MessageOutcomes => {
                Waiters::wake(&mut w.outcomes);
                self.sort_outcomes();
            }
            Event::MessagesWritable => Waiters::wake(&mut w.messages),
            Event::Stream(StreamEvent::Opened { dir }) => Waiters::wake(&mut w.accept[dir.index()]),
            Event::Stream(StreamEvent::Available { dir }) => {
                Waiters::wake(&mut w.open[dir.index()]);
            }
            Event::Stream(StreamEvent::Readable { id }) => {
                Waiters::wake_stream(&mut w.readable, id);
            }
            Event::Stream(StreamEvent::Writable { id }) => {
                Waiters::wake_stream(&mut w.writable, id);
            }
            Event::Stream(StreamEvent::Finished { id } | StreamEvent::Stopped { id, .. }) => {
                Waiters::wake_stream(&mut w.writable, id);
                Waiters::wake_stream(&mut w.finished, id);
            }
        }
    }

    /// Ends the connection from the driver's side.
    pub(crate) fn abandon(&mut self, error: ConnectionError) {
        self.error.get_or_insert(error);
        self.waiters.wake_all();
        if let Some(http) = &mut self.http {
            http.wake_all();
        }
        if let Some(groups) = &mut self.groups {
            groups.wake_all();
        }
    }

    pub(crate) fn wait_connected(&mut self, cx: &Context<'_>) {
        enlist(&mut self.waiters.connected, cx);
    }

    /// Waits until messages are accepted again.
    pub(crate) fn wait_messages(&mut self, cx: &Context<'_>) {
        enlist(&mut self.waiters.messages, cx);
    }

    pub(crate) fn wait_open(&mut self, dir: Dir, cx: &Context<'_>) {
        enlist(&mut self.waiters.open[dir.index()], cx);
    }

    pub(crate) fn wait_readable(&mut self, id: StreamId, cx: &Context<'_>) {
        self.waiters.readable.insert(id, cx.waker().clone());
    }

    pub(crate) fn wait_writable(&mut self, id: StreamId, cx: &Context<'_>) {
        self.waiters.writable.insert(id, cx.waker().clone());
    }

    pub(crate) fn wait_finished(&mut self, id: StreamId, cx: &Context<'_>) {
        self.waiters.finished.insert(id, cx.waker().clone());
    }

    /// Drops the wakers of a sending half whose handle is gone.
    pub(crate) fn forget_sender(&mut self, id: StreamId) {
        self.waiters.writable.remove(&id);
        self.waiters.finished.remove(&id);
    }

    /// Drops the waker of a receiving half whose handle is gone.
    pub(crate) fn forget_receiver(&mut self, id: StreamId) {
        self.waiters.readable.remove(&id);
    }

    /// Fails if the connection is over, with the cause.
    pub(crate) fn check(&self) -> Result<(), ConnectionError> {
        self.error.clone().map_or(Ok(()), Err)
    }
}

/// A QUIC connection. Cheap to clone. It is closed when its last clone and its last stream are
/// dropped.
#[derive(Debug)]
pub struct Connection(pub(crate) Arc<Shared>);

impl Clone for Connection {
    fn clone(&self) -> Self {
        Self::new(self.0.clone())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.handles -= 1;
        if state.handles == 0 && !state.quic.is_closed() {
            state.close(Instant::now(), 0, b"");
            drop(state);
            self.0.touch();
        }
    }
}

impl Connection {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        shared.lock().handles += 1;
        Self(shared)
    }

    /// Opens a bidirectional stream, waiting until the peer allows one more. The peer learns of it
    /// when something is sent on it.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn open_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        let (id, early) = poll_fn(|cx| self.poll_open(cx, Dir::Bi)).await?;
        Ok((SendStream::new(self.clone(), id, early), RecvStream::new(self.clone(), id, early)))
    }

    /// Opens a unidirectional stream, waiting until the peer allows one more.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn open_uni(&self) -> Result<SendStream, ConnectionError> {
        let (id, early) = poll_fn(|cx| self.poll_open(cx, Dir::Uni)).await?;
        Ok(SendStream::new(self.clone(), id, early))
    }

    /// Opens a stream; the flag says whether in 0-RTT.
    fn poll_open(
        &self,
        cx: &Context<'_>,
        dir: Dir,
    ) -> Poll<Result<(StreamId, bool), ConnectionError>> {
        let mut state = self.0.lock();
        state.check()?;
        if let Some(id) = state.quic.open(dir) {
            return Poll::Ready(Ok((id, state.quic.is_sending_0rtt())));
        }
        enlist(&mut state.waiters.open[dir.index()], cx);
        drop(state);
        // Tells the peer that a stream is wanted.
        self.0.touch();
        Poll::Pending
    }

    /// Waits for the next bidirectional stream that the peer opens.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn accept_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        let id = poll_fn(|cx| self.poll_accept(cx, Dir::Bi)).await?;
        Ok((SendStream::new(self.clone(), id, false), RecvStream::new(self.clone(), id, false)))
    }

    /// Waits for the next unidirectional stream that the peer opens.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn accept_uni(&self) -> Result<RecvStream, ConnectionError> {
        let id = poll_fn(|cx| self.poll_accept(cx, Dir::Uni)).await?;
        Ok(RecvStream::new(self.clone(), id, false))
    }

    fn poll_accept(&self, cx: &Context<'_>, dir: Dir) -> Poll<Result<StreamId, ConnectionError>> {
        let mut state = self.0.lock();
        if let Some(id) = state.quic.accept(dir) {
            return Poll::Ready(Ok(id));
        }
        state.check()?;
        enlist(&mut state.waiters.accept[dir.index()], cx);
        Poll::Pending
    }

    /// Sends a datagram, unreliably. If too many are waiting to be sent, the oldest are dropped.
    ///
    /// # Errors
    /// The peer does not accept datagrams, or none of this size; or the connection is over.
    pub fn send_datagram(&self, data: Bytes) -> Result<MessageId, SendDatagramError> {
        let id = self.0.lock().quic.datagrams().send(data)?;
        self.0.touch();
        Ok(id)
    }

    /// Protects datagrams that are sent from now on by erasure coding; `None` stops that. A protected
    /// datagram may be a little smaller: see [`max_datagram_size`](Self::max_datagram_size).
    pub fn protect_datagrams(&self, protection: Option<Protection>) {
        self.0.lock().quic.datagrams().protect(protection);
    }

    /// Sends a message as a whole, on a unidirectional stream of its own, or as a datagram if the
    /// options say so and it fits. The receiver accepts the stream and reads it to its end.
    ///
    /// The redundancy policy of the configuration and the scheduler learn the message's deadline;
    /// [`policy::Messages`](crate::policy::Messages) and [`Scheme::DEADLINE`](crate::Scheme::DEADLINE)
    /// are made for messages. What becomes of it tells [`message_outcome`](Self::message_outcome).
    ///
    /// Waits while too much is waiting to be sent. What a message is worth then, only the application
    /// knows: [`try_send_message`](Self::try_send_message) does not wait.
    ///
    /// ```no_run
    /// # async fn run(
    /// #     connection: sutura::Connection,
    /// #     frame: bytes::Bytes,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::{Duration, Instant};
    /// use sutura::MessageOptions;
    ///
    /// let now = Instant::now();
    /// let options = MessageOptions::by(now + Duration::from_millis(250));
    /// let sent = connection.send_message(frame, options).await?;
    /// connection.next_message_at(Some(now + Duration::from_millis(33)));
    /// let (id, outcome) = connection.message_outcome().await?;
    /// println!("{outcome:?}: {}", id == sent);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The message is too large, or the connection is over.
    pub async fn send_message(
        &self,
        data: Bytes,
        options: MessageOptions,
    ) -> Result<MessageId, SendMessageError> {
        poll_fn(|cx| {
            let mut state = self.0.lock();
            match state.quic.send_message(data.clone(), options.clone()) {
                Err(SendMessageError::Blocked) => {
                    enlist(&mut state.waiters.messages, cx);
                    Poll::Pending
                }
                sent => {
                    drop(state);
                    self.0.touch();
                    Poll::Ready(sent)
                }
            }
        })
        .await
    }

    /// Like [`send_message`](Self::send_message), but fails rather than to wait.
    ///
    /// # Errors
    /// Too much is waiting to be sent, the message is too large, or the connection is over.
    pub fn try_send_message(
        &self,
        data: Bytes,
        options: MessageOptions,
    ) -> Result<MessageId, SendMessageError> {
        let id = self.0.lock().quic.send_message(data, options)?;
        self.0.touch();
        Ok(id)
    }

    /// Tells when the application will send its next message, so that redundancy may wait for it
    /// and protect both at once. `None` if that is not known. Holds until it is told anew.
    pub fn next_message_at(&self, at: Option<Instant>) {
        self.0.lock().quic.next_message_at(at);
        self.0.touch();
    }

    /// Cancels a message or datagram: nothing more of it is sent. Its stream is reset with the
    /// application error `code`. Returns whether its fate was still open.
    pub fn cancel_message(&self, id: MessageId, code: u64) -> bool {
        let cancelled = self.0.lock().quic.cancel_message(id, code);
        self.0.touch();
        cancelled
    }

    /// Waits until it is known what became of a message or datagram. Each is reported once. Up to
    /// 4096 are kept for an application that does not ask; then the oldest are dropped.
    ///
    /// # Errors
    /// The connection is over, and all that is known was reported.
    pub async fn message_outcome(&self) -> Result<(MessageId, MessageOutcome), ConnectionError> {
        poll_fn(|cx| {
            let mut state = self.0.lock();
            if let Some(outcome) = state.poll_outcome() {
                return Poll::Ready(Ok(outcome));
            }
            state.check()?;
            enlist(&mut state.waiters.outcomes, cx);
            Poll::Pending
        })
        .await
    }

    /// The largest datagram that can be sent; `None` if the peer does not accept datagrams. It changes
    /// with what the path is known to carry; a queued datagram that has become too large is dropped.
    #[must_use]
    pub fn max_datagram_size(&self) -> Option<usize> {
        self.0.lock().quic.datagrams().max_size()
    }

    /// Waits for the next received datagram.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn read_datagram(&self) -> Result<Bytes, ConnectionError> {
        poll_fn(|cx| {
            let mut state = self.0.lock();
            if let Some(data) = state.quic.datagrams().recv() {
                return Poll::Ready(Ok(data));
            }
            state.check()?;
            enlist(&mut state.waiters.datagram, cx);
            Poll::Pending
        })
        .await
    }

    /// Sets how many unidirectional streams the peer may have open at a time. A lower number has no
    /// effect on streams that it was already allowed to open.
    pub fn set_max_concurrent_uni_streams(&self, count: u64) {
        self.0.lock().quic.set_max_concurrent_streams(Dir::Uni, count);
        self.0.touch();
    }

    /// Sets how many bidirectional streams the peer may have open at a time. A lower number has no
    /// effect on streams that it was already allowed to open.
    pub fn set_max_concurrent_bi_streams(&self, count: u64) {
        self.0.lock().quic.set_max_concurrent_streams(Dir::Bi, count);
        self.0.touch();
    }

    /// Sets how many bytes the peer may send on all streams before the application has read any. A lower
    /// number has no effect on what it was already allowed to send.
    pub fn set_receive_window(&self, bytes: u64) {
        self.0.lock().quic.set_receive_window(bytes);
        self.0.touch();
    }

    /// Waits until the handshake is complete. It is not yet only on a connection from
    /// [`Connecting::into_0rtt`](crate::Connecting::into_0rtt).
    ///
    /// # Errors
    /// The connection is over.
    pub async fn handshake_complete(&self) -> Result<(), ConnectionError> {
        poll_fn(|cx| {
            let mut state = self.0.lock();
            if state.connected {
                return Poll::Ready(Ok(()));
            }
            state.check()?;
            state.wait_connected(cx);
            Poll::Pending
        })
        .await
    }

    /// Whether 0-RTT packets are accepted. `None` while that is not known, and on a client that sends
    /// none.
    #[must_use]
    pub fn zero_rtt_accepted(&self) -> Option<bool> {
        self.0.lock().quic.zero_rtt_accepted()
    }

    /// Closes the connection at once. Data that the peer has not received may be lost.
    pub fn close(&self, code: u64, reason: &[u8]) {
        self.0.lock().close(Instant::now(), code, reason);
        self.0.touch();
    }

    /// Waits for the end of the connection and returns the cause.
    pub async fn closed(&self) -> ConnectionError {
        poll_fn(|cx| {
            let mut state = self.0.lock();
            if let Some(error) = &state.error {
                return Poll::Ready(error.clone());
            }
            enlist(&mut state.waiters.closed, cx);
            Poll::Pending
        })
        .await
    }

    /// Why the connection ended, if it has.
    #[must_use]
    pub fn close_reason(&self) -> Option<ConnectionError> {
        self.0.lock().error.clone()
    }

    /// Counters and gauges, including those of erasure coding.
    #[must_use]
    pub fn stats(&self) -> ConnectionStats {
        self.0.lock().quic.stats()
    }

    /// What erasure coding protects, and why the policies send redundancy at present, or none.
    #[must_use]
    pub fn protections(&self) -> Vec<ProtectionStats> {
        self.0.lock().quic.protections()
    }

    /// The peer's address.
    #[must_use]
    pub fn remote_address(&self) -> SocketAddr {
        self.0.lock().quic.remote_address()
    }

    /// The version of QUIC.
    #[must_use]
    pub fn version(&self) -> Version {
        self.0.lock().quic.version()
    }

    /// The negotiated application protocol.
    #[must_use]
    pub fn alpn(&self) -> Option<Vec<u8>> {
        self.0.lock().quic.alpn()
    }

    /// The peer's certificate chain in DER, its own certificate first.
    #[must_use]
    pub fn peer_certificates(&self) -> Option<Vec<Vec<u8>>> {
        self.0.lock().quic.peer_certificates()
    }

    /// The server name that the client asked for (server only).
    #[must_use]
    pub fn server_name(&self) -> Option<String> {
        self.0.lock().quic.server_name()
    }

    /// Updates the keys of 1-RTT packets (RFC 9001 section 6), which otherwise happens by itself before
    /// they have protected too much. Returns whether it was possible: not before the handshake is
    /// confirmed, nor before the peer has acknowledged a packet under the present keys.
    pub fn update_keys(&self) -> bool {
        let updated = self.0.lock().quic.update_keys();
        self.0.touch();
        updated
    }

    /// Fills `output` with keying material that both ends of this connection can compute, and nobody
    /// else, for instance to bind something to the connection (RFC 5705, RFC 8446 section 7.5).
    /// `label` says what it is for and `context` what else it is bound to; both ends must agree on
    /// them.
    ///
    /// # Errors
    /// The handshake is not complete, or the length of `output` is zero or too large.
    pub fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: Option<&[u8]>,
    ) -> Result<(), ExportError> {
        self.0.lock().quic.export_keying_material(output, label, context)
    }

    /// Reports everything that the connection does from now on to `observer`.
    pub fn observe(&self, observer: Box<dyn Observer>) {
        self.0.lock().quic.set_observer(Instant::now(), observer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ClientConfig;
    use crate::send_stream::WriteError;
    use std::sync::Arc;

    /// A client that has sent its first packet.
    fn connecting() -> (Connection, Instant, Vec<u8>) {
        let now = Instant::now();
        let config = ClientConfig::with_fingerprint([0; 32], &[b"x"]).unwrap();
        let mut endpoint = proto::Endpoint::new(Arc::default(), None, [7; 32]);
        let (handle, quic) =
            endpoint.connect(now, config.into_proto(), REMOTE, "localhost").unwrap();
        let connection = Connection::new(Shared::new(handle, quic, Arc::default()));
        let mut first = Vec::new();
        connection.0.lock().quic.poll_transmit(now, 1, &mut first).unwrap();
        (connection, now, first)
    }

    const REMOTE: SocketAddr =
        SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 4433);

    /// A server's answer that it speaks only another version (RFC 9000 section 17.2.1).
    fn version_negotiation(first: &[u8]) -> Vec<u8> {
        let dcid_end = 6 + usize::from(first[5]);
        let scid_end = dcid_end + 1 + usize::from(first[dcid_end]);
        let mut packet = vec![0x80, 0, 0, 0, 0];
        packet.extend(&first[dcid_end..scid_end]);
        packet.extend(&first[5..dcid_end]);
        packet.extend([0x1a, 0x2a, 0x3a, 0x4a]);
        packet
    }

    #[test]
    fn the_cause_of_the_end_is_known_as_soon_as_the_connection_is_over() {
        let expected = Some(ConnectionError::VersionMismatch);
        let (connection, now, first) = connecting();
        let mut answer = version_negotiation(&first);
        connection.0.lock().handle_datagram(now, REMOTE, None, &mut answer);
        assert_eq!(connection.close_reason(), expected);

        let (connection, now, _) = connecting();
        let day = std::time::Duration::from_secs(86_400);
        connection.0.lock().handle_timeout(now + day);
        assert_eq!(connection.close_reason(), Some(ConnectionError::TimedOut));

        let (connection, ..) = connecting();
        let mut send = SendStream::new(
            connection.clone(),
            StreamId::new(proto::Side::Client, Dir::Uni, 0),
            false,
        );
        connection.close(0, b"enough");
        let closed = ConnectionError::LocallyClosed;
        assert_eq!(send.finish(), Err(WriteError::ConnectionLost(closed)));
    }
}
