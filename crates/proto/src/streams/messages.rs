//! Messages on a stream: metadata that the application gives for the pieces it writes, and messages that have
//! a stream to themselves.

use super::{ClosedStream, Streams};
use crate::fec::redundancy::{Message, Stage};
use crate::ids::{Dir, MessageId, StreamId};
use bytes::Bytes;
use std::collections::VecDeque;
use std::time::Instant;
use sutura_schedule::Priority;

/// Number of messages remembered per stream; the oldest are forgotten first.
pub(super) const MAX_MESSAGES: usize = 64;

/// The newest messages of a stream, oldest first, with the offset at which each begins.
#[derive(Debug, Default)]
pub(super) struct StreamMessages(VecDeque<(u64, Message)>);

impl StreamMessages {
    /// Announces a message that starts at stream offset `start`.
    pub(super) fn announce(&mut self, start: u64, message: Message) {
        // A message of which no byte was written is replaced.
        self.0.pop_back_if(|(before, _)| *before >= start);
        if self.0.len() == MAX_MESSAGES {
            self.0.pop_front();
        }
        self.0.push_back((start, message));
    }

    /// The newest message.
    pub(super) fn newest(&self) -> Option<Message> {
        self.0.back().map(|(_, message)| *message)
    }

    /// The message to which the byte at `offset` belongs.
    pub(super) fn at(&self, offset: u64) -> Option<Message> {
        let index = self.0.partition_point(|(start, _)| *start <= offset).checked_sub(1)?;
        let (start, message) = self.0.get(index)?;
        Some(*message).filter(|_| offset - start < message.size)
    }

    /// The deadline of the message to which the byte at `offset` belongs.
    pub(super) fn deadline(&self, offset: u64) -> Option<Instant> {
        self.at(offset)?.deadline
    }
}

/// A message for a stream of its own.
#[derive(Debug)]
pub struct NewMessage {
    /// Its identifier.
    pub id: MessageId,
    /// Its bytes.
    pub data: Bytes,
    /// When the message must be at the receiver.
    pub deadline: Option<Instant>,
    /// The priority of the stream.
    pub priority: Priority,
    /// The place of the message in an ordered group.
    pub stage: Stage,
}

/// A message whose stream is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedMessage {
    /// Its identifier.
    pub id: MessageId,
    /// Whether the peer has all of the message.
    pub complete: bool,
}

impl Streams {
    /// The largest message that a stream can hold.
    #[must_use]
    pub fn max_message(&self) -> usize {
        self.limits.send_buffer
    }

    /// Opens a unidirectional stream, writes a message to it and finishes it. Returns `None` and
    /// does nothing if the peer allows no more streams for now, or if the send buffers lack room.
    pub fn send_message(&mut self, message: NewMessage) -> Option<StreamId> {
        let NewMessage { id, data, deadline, priority, stage } = message;
        if self.out.pool.room_of_new() < data.len() {
            return None;
        }
        let stream = self.open(Dir::Uni)?;
        let size = data.len() as u64;
        // The stream is new and has room, so that none of these calls fails.
        let _ = self.set_priority(stream, priority);
        let _ = self.announce(stream, Message { deadline, size, stage });
        let _: Result<(), ClosedStream> = self.sending(stream, |send| {
            send.message = Some(id);
            Ok(())
        });
        let written = self.write_chunk(stream, data);
        debug_assert_eq!(written.ok(), usize::try_from(size).ok(), "there was room");
        let _ = self.finish(stream);
        Some(stream)
    }

    /// The message for which a stream was opened.
    #[must_use]
    pub fn message_id(&self, id: StreamId) -> Option<MessageId> {
        self.send_half(id)?.message
    }

    /// Withdraws a stream's deadline from the scheduler, because the deadline can no longer be met.
    pub fn withdraw_deadline(&mut self, id: StreamId) {
        if let Some(priority) = self.priority(id).filter(|priority| priority.deadline.is_some()) {
            // A stream with a priority exists.
            let _ = self.set_priority(id, priority.with_deadline(None));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_deadline_is_that_of_the_message_that_holds_the_byte() {
        let now = Instant::now();
        let at = |ms| now + Duration::from_millis(ms);
        let mut messages = StreamMessages::default();
        assert_eq!((messages.newest(), messages.deadline(0)), (None, None));
        let (first, second) = (
            Message { deadline: Some(at(10)), size: 100, ..Message::default() },
            Message { deadline: Some(at(20)), size: 50, ..Message::default() },
        );
        messages.announce(0, first);
        messages.announce(200, second);
        assert_eq!(messages.newest(), Some(second));
        let expected = [(0, Some(10)), (99, Some(10)), (100, None), (200, Some(20)), (250, None)];
        for (offset, deadline) in expected {
            assert_eq!(messages.deadline(offset), deadline.map(at), "{offset}");
        }
        messages.announce(200, Message { size: 1, ..Message::default() });
        assert_eq!(messages.deadline(200), None, "the announcement was replaced");
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let mut messages = StreamMessages::default();
        let message = Message { deadline: Some(Instant::now()), size: 1, ..Message::default() };
        (0..1_000).for_each(|start| messages.announce(start, message));
        assert_eq!(messages.0.len(), MAX_MESSAGES);
        assert_eq!((messages.deadline(0), messages.deadline(999)), (None, message.deadline));
    }
}
