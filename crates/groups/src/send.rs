//! The sending side of ordered groups.

use super::header::{Before, Header, MAX_CANCELLED, Notice};
use super::runs::Runs;
use super::{CANCELLED, GroupId, MAX_AFTER, MAX_GROUPS, MAX_MESSAGE};
use smallvec::SmallVec;
use std::collections::{BTreeMap, HashMap};
use std::time::Instant;
use sutura_proto::policy::Stage;
use sutura_proto::{
    Connection, MessageId, MessageOptions, MessageOutcome, Priority, SendMessageError,
};

/// Why a message of a group was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendGroupError {
    /// The group was never opened, or is finished.
    #[error("no such group")]
    NoGroup,
    /// The message is to come after a message that was not sent yet.
    #[error("message {0} was not sent yet")]
    NotSent(u64),
    /// The message is to come after more than [`MAX_AFTER`] messages, apart from messages before the last
    /// fence.
    #[error("more than {MAX_AFTER} messages to come after")]
    TooManyAfter,
    /// See [`SendMessageError`].
    #[error(transparent)]
    Message(#[from] SendMessageError),
}

/// A message to send in a group.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct GroupMessage<'a> {
    /// Its bytes, at most [`MAX_MESSAGE`].
    pub data: &'a [u8],
    /// Numbers of messages that are delivered before it, in addition to all before the last fence.
    pub after: &'a [u64],
    /// When it must be at the receiver. A deadline is put off to the latest deadline before the last fence,
    /// and does not count if a message before the fence has none.
    pub deadline: Option<Instant>,
    /// Whether the message is cancelled if it cannot arrive in time and some of it is still to be sent.
    pub cancel_late: bool,
}

impl<'a> GroupMessage<'a> {
    /// A message of these bytes, which comes after all before the last fence.
    #[must_use]
    pub fn new(data: &'a [u8]) -> Self {
        Self { data, ..Self::default() }
    }

    sutura_proto::setters! {
        with_after: after = &'a [u64],
        with_deadline: deadline = Option<Instant>,
        with_cancel_late: cancel_late = bool,
    }
}

/// The latest of several deadlines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Latest {
    /// There is no message yet.
    Nothing,
    /// All are at this time or before.
    At(Instant),
    /// At least one message is never too late.
    Never,
}

impl Latest {
    fn and(self, deadline: Option<Instant>) -> Self {
        match (self, deadline) {
            (Self::Nothing, Some(at)) => Self::At(at),
            (Self::At(latest), Some(at)) => Self::At(latest.max(at)),
            (Self::Never, _) | (_, None) => Self::Never,
        }
    }

    /// `deadline`, put off so that no message behind a fence is more urgent than the messages before it.
    fn put_off(self, deadline: Option<Instant>) -> Option<Instant> {
        match self {
            Self::Nothing => deadline,
            Self::At(latest) => deadline.map(|deadline| deadline.max(latest)),
            Self::Never => None,
        }
    }
}

/// A group that is not finished, or of whose end or cancelled messages the peer was not told.
#[derive(Debug)]
struct Group {
    priority: Priority,
    /// The number of the next message.
    next: u64,
    /// The first message behind the last fence.
    fence: u64,
    /// The latest deadline of all messages, and of the messages before the last fence.
    latest: Latest,
    fenced: Latest,
    /// Messages whose fate is open.
    open: BTreeMap<u64, MessageId>,
    /// Cancelled messages of which the peer was not told.
    untold: Runs,
    /// Notices whose fate is open.
    notices: usize,
    /// Whether no message will follow, and whether the peer was told.
    finished: bool,
    end_told: bool,
}

impl Group {
    fn wants_notice(&self) -> bool {
        !self.untold.is_empty() || (self.finished && !self.end_told)
    }

    fn is_over(&self) -> bool {
        self.finished && !self.wants_notice() && self.open.is_empty() && self.notices == 0
    }

    fn notice(&self, id: GroupId) -> Notice {
        let end = Some(self.next).filter(|_| self.finished && !self.end_told);
        Notice { group: id.0, end, cancelled: self.untold.iter().take(MAX_CANCELLED).collect() }
    }
}

/// The groups that one end of a connection sends.
///
/// ```
/// # use sutura_groups::{GroupMessage, SendGroupError, SendGroups};
/// # fn run(connection: &mut sutura_proto::Connection) -> Result<(), SendGroupError> {
/// let mut groups = SendGroups::default();
/// let screen = groups.open(sutura_proto::Priority::default()).ok_or(SendGroupError::NoGroup)?;
/// for update in [[b"left", b"half"], [b"next", b"part"]] {
///     for tile in update {
///         let message = GroupMessage::new(tile);
///         groups.send(connection, screen, &message)?;
///     }
///     groups.fence(screen);
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Default)]
pub struct SendGroups {
    groups: BTreeMap<GroupId, Group>,
    opened: u64,
    /// The messages of the transport whose fate is open, and their contents.
    sent: HashMap<MessageId, TransportMessage>,
}

/// A message of the transport.
#[derive(Debug, Clone, Copy)]
enum TransportMessage {
    /// This message of a group.
    Message(GroupId, u64),
    /// A notice about a group.
    Notice(GroupId),
}

impl SendGroups {
    /// Opens a group whose messages have this priority. `None` if [`MAX_GROUPS`] are open.
    pub fn open(&mut self, priority: Priority) -> Option<GroupId> {
        if self.groups.len() >= MAX_GROUPS {
            return None;
        }
        let id = GroupId(self.opened);
        self.opened += 1;
        let group = Group {
            priority,
            next: 0,
            fence: 0,
            latest: Latest::Nothing,
            fenced: Latest::Nothing,
            open: BTreeMap::new(),
            untold: Runs::default(),
            notices: 0,
            finished: false,
            end_told: false,
        };
        self.groups.insert(id, group);
        Some(id)
    }

    fn group(&mut self, id: GroupId) -> Option<&mut Group> {
        self.groups.get_mut(&id).filter(|group| !group.finished)
    }

    /// Puts a fence behind all messages sent so far.
    pub fn fence(&mut self, id: GroupId) {
        if let Some(group) = self.group(id) {
            group.fence = group.next;
            group.fenced = group.latest;
        }
    }

    /// Sends a message of the group `id`, and returns its number within the group: 0, 1, 2, ...
    ///
    /// # Errors
    /// See [`SendGroupError`]; nothing has changed then. After [`SendMessageError::Blocked`],
    /// [`Event::MessagesWritable`](sutura_proto::Event::MessagesWritable) will follow.
    pub fn send(
        &mut self,
        quic: &mut Connection,
        id: GroupId,
        message: &GroupMessage<'_>,
    ) -> Result<u64, SendGroupError> {
        // The notices that the peer waits for go first.
        if !self.flush(quic) {
            return Err(SendMessageError::Blocked.into());
        }
        let group = self.group(id).ok_or(SendGroupError::NoGroup)?;
        let number = group.next;
        let header = Header { group: id.0, number, before: group.before(message.after)? };
        if message.data.len() > MAX_MESSAGE {
            return Err(SendMessageError::TooLarge.into());
        }
        let mut bytes = Vec::with_capacity(8 + message.data.len());
        header.encode(&mut bytes);
        bytes.extend_from_slice(message.data);
        let deadline = group.fenced.put_off(message.deadline);
        let is_first = number > 0 && number == group.fence;
        let options = MessageOptions::default()
            .with_deadline(deadline)
            .with_cancel_late(message.cancel_late.then_some(CANCELLED))
            .with_priority(group.priority.clone())
            .with_stage(if is_first { Stage::First } else { Stage::Within });
        let sent = quic.send_message(bytes.into(), options)?;
        group.latest = group.latest.and(deadline);
        group.next += 1;
        group.open.insert(number, sent);
        self.sent.insert(sent, TransportMessage::Message(id, number));
        Ok(number)
    }

    /// Cancels a message, for example because a newer one supersedes it: nothing more of it is sent, and
    /// no other waits for it. Returns whether its fate was still open.
    pub fn cancel(&mut self, quic: &mut Connection, id: GroupId, number: u64) -> bool {
        let Some(group) = self.groups.get_mut(&id) else { return false };
        let Some(message) = group.open.remove(&number) else { return false };
        if quic.cancel_message(message, CANCELLED) {
            group.untold.insert(number..number + 1);
        }
        self.flush(quic);
        true
    }

    /// Says that no message of the group will follow.
    pub fn finish(&mut self, quic: &mut Connection, id: GroupId) {
        if let Some(group) = self.group(id) {
            group.finished = true;
        }
        self.flush(quic);
    }

    /// Handles the outcome of a message, from [`Connection::poll_message_outcome`]. Returns the group and the
    /// number of the message if it belongs to a group; pass every outcome.
    pub fn on_outcome(
        &mut self,
        quic: &mut Connection,
        message: MessageId,
        outcome: MessageOutcome,
    ) -> Option<(GroupId, u64)> {
        let known = match self.sent.remove(&message)? {
            TransportMessage::Message(id, number) => {
                if let Some(group) = self.groups.get_mut(&id)
                    && group.open.remove(&number).is_some()
                    && outcome == MessageOutcome::GivenUp
                {
                    group.untold.insert(number..number + 1);
                }
                Some((id, number))
            }
            TransportMessage::Notice(id) => {
                self.groups.entry(id).and_modify(|group| group.notices -= 1);
                None
            }
        };
        self.flush(quic);
        known
    }

    /// Tells the peer of messages that will not come, as far as messages may be sent. Returns whether
    /// nothing is left to be told. Call this upon
    /// [`Event::MessagesWritable`](sutura_proto::Event::MessagesWritable).
    pub fn flush(&mut self, quic: &mut Connection) -> bool {
        let mut told = true;
        for (id, group) in &mut self.groups {
            while told && group.wants_notice() {
                let notice = group.notice(*id);
                let mut bytes = Vec::new();
                notice.encode(&mut bytes);
                let options = MessageOptions::default().with_priority(group.priority.clone());
                let Ok(sent) = quic.send_message(bytes.into(), options) else {
                    told = false;
                    break;
                };
                self.sent.insert(sent, TransportMessage::Notice(*id));
                group.notices += 1;
                group.end_told |= notice.end.is_some();
                notice.cancelled.iter().for_each(|run| group.untold.remove(run));
            }
        }
        self.groups.retain(|_, group| !group.is_over());
        told
    }

    /// Number of messages of all groups whose fate is open.
    #[must_use]
    pub fn open_messages(&self) -> usize {
        self.groups.values().map(|group| group.open.len()).sum()
    }
}

impl Group {
    /// The messages that come before the next one: `after`, and all messages before the last fence.
    fn before(&self, after: &[u64]) -> Result<Before, SendGroupError> {
        let unsent = after.iter().find(|number| **number >= self.next);
        if let Some(number) = unsent {
            return Err(SendGroupError::NotSent(*number));
        }
        let mut after: SmallVec<[u64; 2]> =
            after.iter().copied().filter(|number| *number >= self.fence).collect();
        after.sort_unstable();
        after.dedup();
        if after.len() > MAX_AFTER {
            return Err(SendGroupError::TooManyAfter);
        }
        Ok(Before { fence: self.fence, after })
    }
}
