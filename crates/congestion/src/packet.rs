//! The facts about a packet that a controller is told, and its note about the packet.
//!
//! A packet is identified by its packet number space and its number: a controller sees packets of all spaces,
//! and their numbers may be equal.

use crate::SpaceId;
use std::time::Instant;

/// A controller's note about a packet. The controller returns it when the packet is sent and gets
/// it back unchanged with the packet's outcome. Only that controller knows the meaning of the words. The core
/// stores a note with every packet in flight, so its size is fixed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PacketState([u64; 5]);

impl PacketState {
    /// Creates a note of these words.
    #[inline]
    #[must_use]
    pub const fn from_words(words: [u64; 5]) -> Self {
        Self(words)
    }

    /// The words of the note; zeros for an empty note.
    #[inline]
    #[must_use]
    pub const fn words(&self) -> [u64; 5] {
        self.0
    }
}

/// A packet that counts as in flight and is being sent.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Sent {
    /// Its packet number space.
    pub space: SpaceId,
    /// Its packet number, unique within its space.
    pub pn: u64,
    /// Its size in bytes of UDP payload.
    pub bytes: u64,
    /// Bytes in flight, not counting this packet.
    pub in_flight: u64,
    /// Whether the sender was application-limited at any moment since the previous packet.
    pub app_limited: bool,
}

impl Sent {
    /// A packet of `bytes` bytes, sent while nothing is in flight by a sender that is not
    /// application-limited.
    #[inline]
    #[must_use]
    pub const fn new(space: SpaceId, pn: u64, bytes: u64) -> Self {
        Self { space, pn, bytes, in_flight: 0, app_limited: false }
    }
}

/// A packet that counted as in flight and was then acknowledged, lost or discarded.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Packet {
    /// Its packet number space.
    pub space: SpaceId,
    /// Its packet number, unique within its space.
    pub pn: u64,
    /// Its size in bytes of UDP payload.
    pub bytes: u64,
    /// When it was sent.
    pub sent: Instant,
    /// The note that [`CongestionController::on_packet_sent`](super::CongestionController::on_packet_sent)
    /// returned for the packet.
    pub state: PacketState,
}

impl Packet {
    /// The packet that was sent at `at`, for which the controller returned `state`.
    #[inline]
    #[must_use]
    pub const fn new(sent: &Sent, at: Instant, state: PacketState) -> Self {
        Self { space: sent.space, pn: sent.pn, bytes: sent.bytes, sent: at, state }
    }
}

/// A packet that was acknowledged.
pub type Acked = Packet;
/// A packet that was declared lost.
pub type Lost = Packet;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_small() {
        assert!(size_of::<PacketState>() <= 40);
    }

    #[test]
    fn a_note_keeps_its_words() {
        let words = [1, u64::MAX, 3, 0, 5];
        assert_eq!(PacketState::from_words(words).words(), words);
        assert_eq!(PacketState::default().words(), [0; 5]);
    }
}
