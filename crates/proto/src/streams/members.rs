//! The streams of each coding session, and the data that the streams of a session have to send together.
//!
//! The sums are kept as streams join, change and leave, so that no decision visits all streams of a session:
//! a peer can bring hundreds of streams into a session.

use super::send::SendHalf;
use super::unsent::{Unsent, UnsentCounts};
use crate::fec::redundancy::Message;
use crate::ids::StreamId;
use std::collections::BTreeMap;

/// A stream's place in a session.
#[derive(Debug)]
pub(super) struct Membership {
    session: u16,
    /// The order in which the session's streams joined.
    turn: u64,
    /// The part of the session's sums that comes from the stream.
    counted: UnsentCounts,
    /// The stream's message among those of the session.
    message: Option<Message>,
    /// Whether the stream is its session's [only](SessionMembers::only) one, and not counted.
    alone: bool,
}

/// The streams of one session.
#[derive(Debug, Default)]
struct SessionMembers {
    streams: usize,
    /// A stream that has always been the only one. What it has to send is looked up and not counted, because the
    /// counts change with each frame.
    only: Option<StreamId>,
    /// Number of streams with new bytes that their own flow control allows to send.
    sendable: usize,
    /// The sum of [`Unsent::bytes`].
    bytes: u128,
    /// The sum of [`Unsent::peer_buffer`].
    peer_buffer: u128,
    /// The newest message of each stream with messages, by the turn of the stream.
    messages: BTreeMap<u64, Message>,
}

impl SessionMembers {
    /// Counts `now` in place of `before`, which was counted.
    fn replace(&mut self, before: UnsentCounts, now: UnsentCounts) {
        let sendable = self.sendable + usize::from(now.is_sendable);
        self.sendable = sendable - usize::from(before.is_sendable);
        self.bytes = self.bytes + u128::from(now.bytes) - u128::from(before.bytes);
        let peer_buffer = self.peer_buffer + u128::from(now.peer_buffer);
        self.peer_buffer = peer_buffer - u128::from(before.peer_buffer);
    }

    fn sum(&self) -> Unsent {
        Unsent {
            is_sendable: self.sendable > 0,
            bytes: u64::try_from(self.bytes).unwrap_or(u64::MAX),
            peer_buffer: u64::try_from(self.peer_buffer).unwrap_or(u64::MAX),
            message: self.messages.last_key_value().map(|(_, message)| *message),
        }
    }
}

/// The streams of all sessions, by the number of the session. One entry for each session:
/// [`MAX_SEND_SESSIONS`](crate::fec::MAX_SEND_SESSIONS) at most.
#[derive(Debug, Default)]
pub(super) struct Members {
    groups: Vec<SessionMembers>,
    /// The turn of the next stream that joins.
    next: u64,
    /// How often any of the sums has changed.
    changes: u64,
}

impl Members {
    /// The sessions that streams have joined.
    #[cfg(feature = "testing")]
    pub(super) fn sessions(&self) -> impl Iterator<Item = u16> + use<> {
        0..u16::try_from(self.groups.len()).unwrap_or(u16::MAX)
    }

    /// A number that changes with any change of the data that the streams of sessions have to send.
    pub(super) fn version(&self) -> u64 {
        self.changes
    }

    /// Number of streams that belong to a session.
    pub(super) fn count(&self, session: u16) -> usize {
        self.groups.get(usize::from(session)).map_or(0, |group| group.streams)
    }

    /// The data that the streams of a session still have to send.
    pub(super) fn unsent(&self, session: u16) -> Unsent {
        self.groups.get(usize::from(session)).map(SessionMembers::sum).unwrap_or_default()
    }

    /// The stream that alone belongs to a session, if there is one whose data the sums leave out.
    pub(super) fn only(&self, session: u16) -> Option<StreamId> {
        self.groups.get(usize::from(session))?.only
    }

    /// Another stream joins the session of the [only](Self::only) one, whose data now counts.
    pub(super) fn share(&mut self, send: &mut SendHalf) {
        let Some(member) = &mut send.membership else { return };
        member.alone = false;
        if let Some(group) = self.groups.get_mut(usize::from(member.session)) {
            group.only = None;
        }
        self.update_member(send);
    }

    /// A stream joins a session, and leaves the session to which it belonged.
    pub(super) fn join(&mut self, id: StreamId, send: &mut SendHalf, session: u16) {
        self.leave(send);
        let index = usize::from(session);
        if self.groups.len() <= index {
            self.groups.resize_with(index + 1, SessionMembers::default);
        }
        let Some(group) = self.groups.get_mut(index) else { return };
        let alone = group.streams == 0;
        group.only = alone.then_some(id);
        group.streams += 1;
        let turn = self.next;
        self.next += 1;
        let (counted, message) = (UnsentCounts::default(), None);
        let member = Membership { session, turn, counted, message, alone };
        send.membership = Some(Box::new(member));
        self.update(send);
    }

    /// A stream leaves its session, if it belongs to one.
    pub(super) fn leave(&mut self, send: &mut SendHalf) {
        let Some(member) = send.membership.take() else { return };
        let Some(group) = self.groups.get_mut(usize::from(member.session)) else { return };
        self.changes += 1;
        group.streams -= 1;
        group.only = None;
        group.replace(member.counted, UnsentCounts::default());
        group.messages.remove(&member.turn);
    }

    /// Updates the sums of a stream's session, if it belongs to one, after the stream changed.
    #[inline]
    pub(super) fn update(&mut self, send: &mut SendHalf) {
        match &send.membership {
            None => {}
            Some(member) if member.alone => self.changes += 1,
            Some(_) => self.update_member(send),
        }
    }

    fn update_member(&mut self, send: &mut SendHalf) {
        let now = UnsentCounts::of(send);
        // A stream that has announced a message always has a newest message.
        let newest = send.messages.as_ref().and_then(|messages| messages.newest());
        let Some(member) = &mut send.membership else { return };
        let newest = newest.filter(|message| member.message != Some(*message));
        if newest.is_none() && now == member.counted {
            return;
        }
        let Some(group) = self.groups.get_mut(usize::from(member.session)) else { return };
        self.changes += 1;
        group.replace(std::mem::replace(&mut member.counted, now), now);
        if let Some(message) = newest {
            member.message = Some(message);
            group.messages.insert(member.turn, message);
        }
    }
}

impl SendHalf {
    /// The erasure-coding session that the stream belongs to.
    pub(super) fn session(&self) -> Option<u16> {
        self.membership.as_ref().map(|member| member.session)
    }

    /// The turn in which the stream joined its session.
    #[cfg(feature = "testing")]
    pub(super) fn turn(&self) -> Option<u64> {
        self.membership.as_ref().map(|member| member.turn)
    }
}
