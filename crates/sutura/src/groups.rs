//! Ordered groups: messages that are delivered in a partial order. See [`sutura_groups`].

pub use crate::connection::MAX_OUTCOMES;
use crate::connection::{Connection, State, Upper};
use crate::sync::{enlist, wake};
use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::task::{Poll, Waker};
use std::time::Instant;
use sutura_groups::{ReceiveGroups, SendGroups};
use sutura_proto::{
    ConnectionError, Event, MessageId, MessageOutcome, Priority, SendMessageError, StreamEvent,
};

pub use sutura_groups::{
    CANCELLED, Delivered, GroupError, GroupId, GroupMessage, INVALID, SendGroupError,
};

/// The outcomes of the messages of a group, and the tasks that wait for them.
#[derive(Debug, Default)]
struct Outcomes {
    known: VecDeque<(u64, MessageOutcome)>,
    waiters: Vec<Waker>,
}

/// The groups of a connection.
#[derive(Debug, Default)]
pub(crate) struct GroupState {
    send: SendGroups,
    outcomes: HashMap<GroupId, Outcomes>,
    receive: Option<ReceiveGroups>,
    /// Tasks that wait for a message of a group.
    receivers: Vec<Waker>,
    error: Option<GroupError>,
}

impl Upper for GroupState {
    fn on_event(&mut self, quic: &mut sutura_proto::Connection, event: &Event) {
        match event {
            Event::Stream(event @ StreamEvent::Readable { .. }) => {
                self.receive.iter_mut().for_each(|receive| receive.on_event(event));
            }
            Event::MessagesWritable => {
                self.send.flush(quic);
            }
            Event::ConnectionLost(_) => self.wake_all(),
            _ => {}
        }
    }

    /// Reads the streams that have new data, and closes the connection if the peer breaks the rules.
    fn process(&mut self, now: Instant, quic: &mut sutura_proto::Connection, _over: bool) -> bool {
        let Some(receive) = &mut self.receive else { return false };
        if self.error.is_none()
            && let Err(error) = receive.receive(now, quic)
        {
            self.error = Some(error);
            quic.close(now, INVALID, error.to_string().as_bytes());
        }
        if receive.is_ready() || self.error.is_some() {
            wake(&mut self.receivers);
        }
        false
    }

    fn wake_all(&mut self) {
        wake(&mut self.receivers);
        self.outcomes.values_mut().for_each(|o| wake(&mut o.waiters));
    }

    fn sends_messages(&self) -> bool {
        true
    }

    fn on_outcome(
        &mut self,
        quic: &mut sutura_proto::Connection,
        id: MessageId,
        outcome: MessageOutcome,
    ) -> bool {
        let Some((group, number)) = self.send.on_outcome(quic, id, outcome) else { return false };
        if let Some(outcomes) = self.outcomes.get_mut(&group) {
            if outcomes.known.len() == MAX_OUTCOMES {
                outcomes.known.pop_front();
            }
            outcomes.known.push_back((number, outcome));
            wake(&mut outcomes.waiters);
        }
        true
    }
}

impl GroupState {
    /// The next message in its turn.
    fn pop(&mut self, now: Instant, quic: &mut sutura_proto::Connection) -> Option<Delivered> {
        if !self.receive.as_ref()?.is_ready() && !quic.is_closed() {
            self.process(now, quic, false);
        }
        self.receive.as_mut()?.pop()
    }
}

impl State {
    /// The state of groups, which is made when the application first uses them.
    fn groups(&mut self) -> (&mut GroupState, &mut sutura_proto::Connection) {
        (self.uppers.get_or_default(), &mut self.quic)
    }
}

impl Connection {
    /// Opens an [ordered group](sutura_groups), all of whose messages have this priority. `None`
    /// if [`MAX_GROUPS`](sutura_groups::MAX_GROUPS) are open.
    #[must_use]
    pub fn open_group(&self, priority: Priority) -> Option<SendGroup> {
        let mut state = self.0.lock();
        let (groups, _) = state.groups();
        let id = groups.send.open(priority)?;
        groups.outcomes.insert(id, Outcomes::default());
        drop(state);
        Some(SendGroup { connection: self.clone(), id })
    }

    /// Receives the messages of the groups that the peer opens. From now on, all unidirectional streams
    /// that it opens belong to them, and [`accept_uni`](Self::accept_uni) returns no more. Call this before
    /// the peer sends any.
    ///
    /// ```no_run
    /// # async fn run(connection: sutura::Connection) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut groups = connection.receive_groups();
    /// while let Some(message) = groups.next().await? {
    ///     println!("{} bytes, number {}", message.data.len(), message.number);
    /// }
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn receive_groups(&self) -> GroupReceiver {
        let mut state = self.0.lock();
        let side = state.quic.side();
        let (groups, quic) = state.groups();
        groups.receive.get_or_insert_with(|| ReceiveGroups::new(side));
        groups.process(Instant::now(), quic, false);
        drop(state);
        self.0.touch();
        GroupReceiver { connection: self.clone() }
    }
}

/// Sends the messages of one ordered group. When it is dropped, the group is finished.
///
/// ```no_run
/// # async fn run(connection: sutura::Connection) -> Result<(), Box<dyn std::error::Error>> {
/// use sutura::groups::GroupMessage;
///
/// let screen = connection.open_group(sutura::Priority::default()).ok_or("too many groups")?;
/// for update in [[b"left", b"half"], [b"next", b"part"]] {
///     for tile in update {
///         screen.send(&GroupMessage::new(tile)).await?;
///     }
///     screen.fence();
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct SendGroup {
    connection: Connection,
    id: GroupId,
}

impl SendGroup {
    /// The group's number.
    #[must_use]
    pub fn id(&self) -> GroupId {
        self.id
    }

    /// Puts a fence behind all messages sent so far: they are delivered before any that follows.
    pub fn fence(&self) {
        self.connection.0.lock().groups().0.send.fence(self.id);
    }

    /// Sends a message and returns its number within the group: 0, 1, 2, ... Waits while too much data is
    /// waiting to be sent. Groups are not sent in 0-RTT: their messages wait for the handshake.
    ///
    /// # Errors
    /// The message is too large, is to come after messages that were not sent or after too many messages, or
    /// the connection is over.
    pub async fn send(&self, message: &GroupMessage<'_>) -> Result<u64, SendGroupError> {
        poll_fn(|cx| {
            let mut state = self.connection.0.lock();
            match try_send(&mut state, self.id, message) {
                Err(SendGroupError::Message(SendMessageError::Blocked)) => {
                    state.wait_messages(cx);
                    Poll::Pending
                }
                sent => {
                    drop(state);
                    self.connection.0.touch();
                    Poll::Ready(sent)
                }
            }
        })
        .await
    }

    /// Like [`send`](Self::send), but fails rather than to wait.
    ///
    /// # Errors
    /// As for [`send`](Self::send), or too much is waiting to be sent.
    pub fn try_send(&self, message: &GroupMessage<'_>) -> Result<u64, SendGroupError> {
        let mut state = self.connection.0.lock();
        let number = try_send(&mut state, self.id, message)?;
        drop(state);
        self.connection.0.touch();
        Ok(number)
    }

    /// Cancels a message, for example because a newer one supersedes it: nothing more of it is sent, and
    /// no other waits for it. Returns whether its fate was still open.
    pub fn cancel(&self, number: u64) -> bool {
        let mut state = self.connection.0.lock();
        let (groups, quic) = state.groups();
        let cancelled = groups.send.cancel(quic, self.id, number);
        drop(state);
        self.connection.0.touch();
        cancelled
    }

    /// Waits until the outcome of a message is known; returns the message's number, too. Each outcome is
    /// reported once. Up to 4096 are kept for an application that does not ask; then the oldest are dropped.
    ///
    /// # Errors
    /// The connection is over, and all known outcomes were reported.
    pub async fn outcome(&self) -> Result<(u64, MessageOutcome), ConnectionError> {
        poll_fn(|cx| {
            let mut state = self.connection.0.lock();
            let ended = state.check();
            let (groups, _) = state.groups();
            let outcomes = groups.outcomes.entry(self.id).or_default();
            if let Some(outcome) = outcomes.known.pop_front() {
                return Poll::Ready(Ok(outcome));
            }
            ended?;
            enlist(&mut outcomes.waiters, cx);
            Poll::Pending
        })
        .await
    }
}

/// Sends a message of a group, but not in 0-RTT: the receiver of a group needs all its messages, and rejected
/// 0-RTT would lose some.
fn try_send(
    state: &mut State,
    id: GroupId,
    message: &GroupMessage<'_>,
) -> Result<u64, SendGroupError> {
    let (groups, quic) = state.groups();
    if quic.is_sending_0rtt() {
        return Err(SendMessageError::Blocked.into());
    }
    groups.send.send(quic, id, message)
}

impl Drop for SendGroup {
    fn drop(&mut self) {
        let mut state = self.connection.0.lock();
        let (groups, quic) = state.groups();
        groups.send.finish(quic, self.id);
        groups.outcomes.remove(&self.id);
        drop(state);
        self.connection.0.touch();
    }
}

/// Receives the messages of all groups of a connection.
#[derive(Debug)]
pub struct GroupReceiver {
    connection: Connection,
}

impl GroupReceiver {
    /// Waits for the next message in its turn. `None` if the peer has closed the connection without an
    /// error, after all that was delivered.
    ///
    /// # Errors
    /// The connection is over, or the peer broke the rules of groups.
    pub async fn next(&mut self) -> Result<Option<Delivered>, ReceiveGroupError> {
        poll_fn(|cx| {
            let mut state = self.connection.0.lock();
            let ended = state.error.clone();
            let (groups, quic) = state.groups();
            if let Some(message) = groups.pop(Instant::now(), quic) {
                let wants_to_send = quic.wants_to_grant_credit();
                drop(state);
                if wants_to_send {
                    self.connection.0.touch();
                }
                return Poll::Ready(Ok(Some(message)));
            }
            if let Some(error) = groups.error {
                return Poll::Ready(Err(error.into()));
            }
            match ended {
                Some(ConnectionError::ApplicationClosed { code: 0, .. }) => Poll::Ready(Ok(None)),
                Some(error) => Poll::Ready(Err(error.into())),
                None => {
                    enlist(&mut groups.receivers, cx);
                    Poll::Pending
                }
            }
        })
        .await
    }
}

/// Why no more messages of groups can be received.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiveGroupError {
    /// The peer broke the rules of groups; the connection was closed.
    #[error("ordered group: {0}")]
    Group(#[from] GroupError),
    /// The connection is over.
    #[error("connection lost: {0}")]
    ConnectionLost(#[from] ConnectionError),
}
