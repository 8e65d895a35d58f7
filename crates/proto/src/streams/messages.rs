//! Messages on a stream: metadata that the application gives for the pieces it writes.

use crate::fec::redundancy::Message;
use std::collections::VecDeque;
use std::time::Instant;

/// Number of messages remembered per stream; the oldest are forgotten first.
pub(super) const MAX_MESSAGES: usize = 64;

/// The newest messages of a stream, oldest first, with the offset at which each begins.
#[derive(Debug, Default)]
pub(super) struct Messages(VecDeque<(u64, Message)>);

impl Messages {
    /// Announces a message that starts at stream offset `start`.
    pub(super) fn announce(&mut self, start: u64, message: Message) {
        // A message of which nothing was written is replaced.
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

    /// The deadline of the message that the byte at `offset` belongs to.
    pub(super) fn deadline(&self, offset: u64) -> Option<Instant> {
        let index = self.0.partition_point(|(start, _)| *start <= offset).checked_sub(1)?;
        let (start, message) = self.0.get(index)?;
        message.deadline.filter(|_| offset - start < message.size)
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
        let mut messages = Messages::default();
        assert_eq!((messages.newest(), messages.deadline(0)), (None, None));
        let (first, second) = (
            Message { deadline: Some(at(10)), size: 100 },
            Message { deadline: Some(at(20)), size: 50 },
        );
        messages.announce(0, first);
        messages.announce(200, second);
        assert_eq!(messages.newest(), Some(second));
        let expected = [(0, Some(10)), (99, Some(10)), (100, None), (200, Some(20)), (250, None)];
        for (offset, deadline) in expected {
            assert_eq!(messages.deadline(offset), deadline.map(at), "{offset}");
        }
        messages.announce(200, Message { deadline: None, size: 1 });
        assert_eq!(messages.deadline(200), None, "the announcement was replaced");
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let mut messages = Messages::default();
        let message = Message { deadline: Some(Instant::now()), size: 1 };
        (0..1_000).for_each(|start| messages.announce(start, message));
        assert_eq!(messages.0.len(), MAX_MESSAGES);
        assert_eq!((messages.deadline(0), messages.deadline(999)), (None, message.deadline));
    }
}
