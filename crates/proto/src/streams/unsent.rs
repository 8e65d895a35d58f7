//! The data that streams still have to send, for redundancy policies that plan ahead.

use super::send::SendHalf;
use super::{Protection, Streams};
use crate::fec::redundancy::Message;
use crate::ids::StreamId;
use crate::work;

/// The data that one stream, or several streams, still have to send.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unsent {
    /// Whether there are new bytes to send that the streams' own flow control allows.
    pub is_sendable: bool,
    /// Bytes that were written and never sent.
    pub bytes: u64,
    /// How many bytes flow control allows from the oldest byte that is not known to have arrived: as far as
    /// we know, the size of the peer's buffers.
    pub peer_buffer: u64,
    /// The last message announced on the last of the streams.
    pub message: Option<Message>,
}

impl Unsent {
    /// The data that a stream still has to send.
    pub(super) fn of(send: &SendHalf) -> Self {
        let UnsentCounts { is_sendable, bytes, peer_buffer } = UnsentCounts::of(send);
        let message = send.messages.as_ref().and_then(|messages| messages.newest());
        Self { is_sendable, bytes, peer_buffer, message }
    }

    /// The sum of this data and the data of a stream that joined later.
    #[cfg(feature = "testing")]
    fn and(self, other: Self) -> Self {
        Self {
            is_sendable: self.is_sendable || other.is_sendable,
            bytes: self.bytes.saturating_add(other.bytes),
            peer_buffer: self.peer_buffer.saturating_add(other.peer_buffer),
            message: other.message.or(self.message),
        }
    }
}

/// What changes with each frame of the data that a stream still has to send: all of [`Unsent`] but the message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct UnsentCounts {
    pub(super) is_sendable: bool,
    pub(super) bytes: u64,
    pub(super) peer_buffer: u64,
}

impl UnsentCounts {
    /// The counts of a stream.
    pub(super) fn of(send: &SendHalf) -> Self {
        Self {
            is_sendable: send.has_new_bytes(),
            bytes: send.unsent_bytes(),
            peer_buffer: send.max_data().saturating_sub(send.buffer.acked_prefix()),
        }
    }
}

impl Streams {
    /// The data that the stream still has to send; no data if it has no sending part.
    #[must_use]
    pub fn unsent(&self, id: StreamId) -> Unsent {
        self.send_half(id).map(Unsent::of).unwrap_or_default()
    }

    /// The data that the streams of a coding session still have to send. The last of the streams is the
    /// stream that joined last.
    #[must_use]
    pub fn unsent_of(&self, session: u16) -> Unsent {
        work::steps(1);
        let unsent = self.known_unsent(session);
        #[cfg(test)]
        assert_eq!(unsent, self.visit_unsent(session).1);
        unsent
    }

    /// What is known of the data of a session's streams without a visit of all of them.
    pub(super) fn known_unsent(&self, session: u16) -> Unsent {
        match self.out.members.only(session) {
            Some(id) => self.unsent(id),
            None => self.out.members.unsent(session),
        }
    }

    /// Streams with `protection` that have data to send and are in no coding session, by number. Visits
    /// all streams. Messages and streams of the protocol itself are left out.
    #[must_use]
    pub fn unsent_without_session(&self, protection: &Protection) -> Vec<StreamId> {
        work::steps(self.table.len());
        let waits = |send: &SendHalf| {
            send.protection.as_ref() == Some(protection)
                && send.session().is_none()
                && send.message.is_none()
                && !send.is_control()
                && send.has_unsent()
        };
        let all = self.table.iter().filter(|stream| stream.halves.send().is_some_and(waits));
        let mut ids: Vec<_> = all.map(|stream| stream.id).collect();
        ids.sort_unstable();
        ids
    }

    /// A number that changes with any change of the data that the streams of any session have to send.
    #[must_use]
    pub fn unsent_version(&self) -> u64 {
        self.out.members.version()
    }

    /// The number of streams of a session and their unsent data, computed by visiting every stream, to check
    /// the sums.
    #[cfg(feature = "testing")]
    pub(super) fn visit_unsent(&self, session: u16) -> (usize, Unsent) {
        let sending = self.table.iter().filter_map(|stream| stream.halves.send());
        let mut members: Vec<_> = sending.filter(|send| send.session() == Some(session)).collect();
        members.sort_by_key(|send| send.turn());
        let count = members.len();
        (count, members.into_iter().map(Unsent::of).fold(Unsent::default(), Unsent::and))
    }

    /// Number of streams that belong to a coding session.
    #[must_use]
    pub fn members(&self, session: u16) -> usize {
        self.out.members.count(session)
    }

    /// Number of streams that belong to any coding session.
    #[cfg(test)]
    pub fn session_members(&self) -> usize {
        self.out.members.sessions().map(|session| self.members(session)).sum()
    }
}
