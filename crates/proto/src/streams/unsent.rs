//! What streams still have to send, for those who plan ahead.

use super::Streams;
use crate::fec::redundancy::Message;
use crate::ids::StreamId;

/// What one stream, or several of them, still have to send.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unsent {
    /// Whether there are new bytes to send that the streams' own flow control allows.
    pub is_sendable: bool,
    /// Bytes that were written and never sent.
    pub bytes: u64,
    /// How many bytes flow control lets the streams have from the oldest one that is not known to have
    /// arrived: as far as we know, what the peer buffers.
    pub peer_buffer: u64,
    /// The last message announced on the last of the streams.
    pub message: Option<Message>,
}

impl Unsent {
    /// This and what a later stream has to send.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            is_sendable: self.is_sendable || other.is_sendable,
            bytes: self.bytes.saturating_add(other.bytes),
            peer_buffer: self.peer_buffer.saturating_add(other.peer_buffer),
            message: other.message.or(self.message),
        }
    }
}

impl Streams {
    /// What the stream still has to send; nothing if it has no sending part.
    #[must_use]
    pub fn unsent(&self, id: StreamId) -> Unsent {
        let Some(send) = self.send_half(id) else { return Unsent::default() };
        let unsent = || send.buffer.end().saturating_sub(send.buffer.unsent());
        Unsent {
            is_sendable: send.new_bytes() > 0,
            bytes: if send.is_sending() { unsent() } else { 0 },
            peer_buffer: send.max_data().saturating_sub(send.buffer.acked_prefix()),
            message: send.messages.newest(),
        }
    }
}
