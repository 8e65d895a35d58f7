//! Packet number spaces.

/// A packet number space (RFC 9000 section 12.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SpaceId {
    /// Initial packets.
    Initial,
    /// Handshake packets.
    Handshake,
    /// 0-RTT and 1-RTT packets.
    Data,
}

impl SpaceId {
    /// All three, in the order in which a connection uses them.
    pub const ALL: [Self; 3] = [Self::Initial, Self::Handshake, Self::Data];
}
