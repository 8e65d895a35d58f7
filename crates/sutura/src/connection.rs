//! The state of a connection, which its handles and the driver share.

mod allowance;
mod api;
mod messages;
pub(crate) mod opening;
mod recv_stream;
mod send_stream;
mod streams;
mod turns;
mod upper;
mod waiters;

pub use self::api::{Connection, HandshakeData};
pub use self::messages::MAX_OUTCOMES;
pub use self::recv_stream::{ReadError, ReadExactError, ReadToEndError, RecvStream, ResetError};
pub use self::send_stream::{SendStream, StoppedError, WriteError};
pub(crate) use self::upper::Upper;
use self::upper::Uppers;
use self::waiters::{StreamWait, Waiters};
use crate::dirty::Dirty;
use crate::held::Held;
use crate::sync::{enlist, lock, wake};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Context;
use std::time::Instant;
use sutura_proto as proto;
use sutura_proto::{
    ConnectionError, ConnectionHandle, Dir, EcnCodepoint, EndpointEvent, Event, MessageId,
    MessageOutcome, StreamEvent, StreamId,
};

/// A connection's protocol state and the tasks that wait for it.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) quic: Box<proto::Connection>,
    waiters: Waiters,
    pub(crate) connected: bool,
    pub(crate) error: Option<ConnectionError>,
    /// Whether it is known here that the server does not accept 0-RTT.
    rejected: bool,
    /// The protocols over the connection that the application uses.
    pub(crate) uppers: Uppers,
    /// Outcomes of the application's own messages, if a protocol over the connection sends messages, too.
    outcomes: VecDeque<(MessageId, MessageOutcome)>,
    /// How many bytes the connection may hold.
    allowance: usize,
}

/// The state that the driver and the handles of a connection share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) handle: ConnectionHandle,
    state: Mutex<State>,
    /// Handles held by the application; when the last is dropped, the connection is closed.
    handles: AtomicUsize,
    /// Whether the driver is going to visit the connection.
    touched: AtomicBool,
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
            uppers: Uppers::default(),
            outcomes: VecDeque::new(),
            allowance: usize::MAX,
        };
        let (handles, touched) = (AtomicUsize::new(0), AtomicBool::new(false));
        Arc::new(Self { handle, state: Mutex::new(state), handles, touched, dirty })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Tells the driver that there may be data to send.
    pub(crate) fn touch(&self) {
        if !self.touched.swap(true, Ordering::AcqRel) {
            self.dirty.push(self.handle);
        }
    }

    /// The driver visits the connection next: it sees what was changed until now.
    pub(crate) fn visit(&self) {
        self.touched.swap(false, Ordering::AcqRel);
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

    /// Starts the handshake of a client that the application accepts, with the client's datagrams so far.
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

    /// Records the cause under the same lock under which the connection ended, so that a task which finds the
    /// connection closed also finds out why. In the same way, no task uses a stream that was opened in 0-RTT
    /// and rejected.
    fn learn_of_end(&mut self, now: Instant) {
        let has_ended = self.quic.is_closed() && self.error.is_none();
        let is_rejected = self.quic.side().is_client() && self.is_void(true);
        if has_ended || (is_rejected && !self.rejected) {
            self.dispatch(now);
        }
    }

    /// Whether a stream is void, because it was opened in 0-RTT (`early`) and the server does not accept
    /// 0-RTT. Its identifier may belong to another stream.
    pub(crate) fn is_void(&self, early: bool) -> bool {
        early && self.quic.zero_rtt_accepted() == Some(false)
    }

    /// Dispatches events: wakes waiting tasks and passes on endpoint events.
    pub(crate) fn process(&mut self, now: Instant, endpoint: impl FnMut(EndpointEvent)) {
        self.dispatch(now);
        std::iter::from_fn(|| self.quic.poll_endpoint_event()).for_each(endpoint);
    }

    /// Wakes the tasks that wait for the events of the connection. Returns how many answers may follow.
    pub(crate) fn dispatch(&mut self, now: Instant) -> usize {
        let mut answers = 0;
        while let Some(event) = self.quic.poll_event() {
            self.uppers.iter_mut().for_each(|upper| upper.on_event(&mut self.quic, &event));
            answers += self.on_event(event);
        }
        let over = self.error.is_some();
        let mut has_ended = false;
        for upper in self.uppers.iter_mut() {
            has_ended |= upper.process(now, &mut self.quic, over);
        }
        if has_ended {
            self.wake_streams();
        }
        answers
    }

    /// Wakes the tasks that wait for an event. Returns how many answers may follow.
    fn on_event(&mut self, event: Event) -> usize {
        let w = &mut self.waiters;
        match event {
            Event::Connected => {
                self.connected = true;
                wake(&mut w.connected);
                // Messages of groups wait until 0-RTT is over.
                wake(&mut w.messages);
                // The peer's limits are now known.
                self.serve_openers(Dir::Bi);
                self.serve_openers(Dir::Uni);
            }
            Event::ZeroRttRejected => {
                self.rejected = true;
                w.wake_streams();
            }
            Event::ConnectionLost(error) => {
                self.error.get_or_insert(error);
                w.wake_all();
            }
            Event::DatagramReceived => wake(&mut w.datagram),
            Event::MessageOutcomes => {
                wake(&mut w.outcomes);
                self.sort_outcomes();
            }
            Event::MessagesWritable => wake(&mut w.messages),
            Event::DatagramsWritable => wake(&mut w.datagram_room),
            Event::Stream(StreamEvent::Opened { dir }) => {
                wake(&mut w.accept[dir.index()]);
                return self.quic.acceptable(dir) as usize;
            }
            Event::Stream(StreamEvent::Available { dir }) => self.serve_openers(dir),
            Event::Stream(StreamEvent::Readable { id }) => {
                w.streams.wake(id, StreamWait::Readable);
            }
            Event::Stream(StreamEvent::Writable { id }) => {
                w.streams.wake(id, StreamWait::Writable);
            }
            Event::Stream(StreamEvent::Finished { id } | StreamEvent::Stopped { id, .. }) => {
                let events = [StreamWait::Writable, StreamWait::Finished];
                let woken = events.map(|event| w.streams.wake(id, event));
                return usize::from(woken.contains(&true));
            }
            // Nobody waits for anything else.
            _ => return 0,
        }
        1
    }

    /// Ends the connection from the driver's side.
    pub(crate) fn abandon(&mut self, error: ConnectionError) {
        self.error.get_or_insert(error);
        self.waiters.wake_all();
        self.uppers.iter_mut().for_each(Upper::wake_all);
    }

    /// Wakes the tasks that wait for streams, some of which this end has ended.
    pub(crate) fn wake_streams(&mut self) {
        self.waiters.wake_streams();
    }

    pub(crate) fn wait_connected(&mut self, cx: &Context<'_>) {
        enlist(&mut self.waiters.connected, cx);
    }

    /// Waits until messages are accepted again.
    pub(crate) fn wait_messages(&mut self, cx: &Context<'_>) {
        enlist(&mut self.waiters.messages, cx);
    }

    pub(crate) fn wait_readable(&mut self, id: StreamId, cx: &Context<'_>) {
        self.waiters.streams.insert(id, StreamWait::Readable, cx.waker().clone());
    }

    pub(crate) fn wait_datagram_room(&mut self, cx: &Context<'_>) {
        enlist(&mut self.waiters.datagram_room, cx);
    }

    pub(crate) fn wait_writable(&mut self, id: StreamId, cx: &Context<'_>) {
        self.waiters.streams.insert(id, StreamWait::Writable, cx.waker().clone());
    }

    pub(crate) fn wait_finished(&mut self, id: StreamId, cx: &Context<'_>) {
        self.waiters.streams.insert(id, StreamWait::Finished, cx.waker().clone());
    }

    /// Drops the wakers of a sending half whose handle is gone.
    pub(crate) fn forget_sender(&mut self, id: StreamId) {
        self.waiters.streams.remove(id, StreamWait::Writable);
        self.waiters.streams.remove(id, StreamWait::Finished);
    }

    /// Drops the waker of a receiving half whose handle is gone.
    pub(crate) fn forget_receiver(&mut self, id: StreamId) {
        self.waiters.streams.remove(id, StreamWait::Readable);
    }

    /// Fails if the connection is over, with the cause.
    pub(crate) fn check(&self) -> Result<(), ConnectionError> {
        self.error.clone().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ClientConfig;
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
