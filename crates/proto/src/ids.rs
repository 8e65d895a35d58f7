//! Basic names: sides, directions, streams, packet number spaces, identifiers; the sizes of datagrams.

pub use sutura_cid::{ConnectionId, MAX_CID_SIZE};
pub use sutura_congestion::SpaceId;

use std::fmt;

/// The smallest UDP payload that a QUIC path must carry (RFC 9000 section 14).
pub const MIN_UDP_PAYLOAD: u16 = 1200;
/// The largest UDP payload that this implementation builds.
pub const MAX_UDP_PAYLOAD: u16 = 9000;

/// An end of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The end that opened the connection.
    Client,
    /// The end that accepted it.
    Server,
}

impl Side {
    /// The other end.
    #[must_use]
    pub const fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// Whether this is the client.
    #[must_use]
    pub const fn is_client(self) -> bool {
        matches!(self, Self::Client)
    }

    /// Whether this is the server.
    #[must_use]
    pub const fn is_server(self) -> bool {
        matches!(self, Self::Server)
    }
}

/// Whether both ends of a stream may send or only one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dir {
    /// Both ends send.
    Bi,
    /// Only the initiator sends.
    Uni,
}

impl Dir {
    /// Both directions, for loops over per-direction state.
    pub const ALL: [Self; 2] = [Self::Bi, Self::Uni];

    /// 0 for bidirectional and 1 for unidirectional: an index into per-direction arrays.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// Identifies a connection at its endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionHandle(pub usize);

/// A stream identifier (RFC 9000 section 2.1), at most 2^62 - 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

impl StreamId {
    /// The stream with this index among the streams of direction `dir` opened by `initiator`.
    #[must_use]
    pub const fn new(initiator: Side, dir: Dir, index: u64) -> Self {
        let dir = (dir as u64) << 1;
        Self(index << 2 | dir | initiator as u64)
    }

    /// The end that opened the stream.
    #[must_use]
    pub const fn initiator(self) -> Side {
        if self.0 & 1 == 0 { Side::Client } else { Side::Server }
    }

    /// The direction of the stream.
    #[must_use]
    pub const fn dir(self) -> Dir {
        if self.0 & 2 == 0 { Dir::Bi } else { Dir::Uni }
    }

    /// The stream's index among the streams of its initiator and direction.
    #[must_use]
    pub const fn index(self) -> u64 {
        self.0 >> 2
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Identifies a source symbol by its session and its number within the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SymbolRef {
    /// The session's number, chosen by the sender.
    pub session: u16,
    /// The symbol's identifier, counted from 0 in each session.
    pub id: u64,
}

/// A message or datagram that the application sent on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub(crate) u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_id_bits_follow_rfc9000_table_1() {
        assert_eq!(StreamId::new(Side::Client, Dir::Bi, 0).0, 0);
        assert_eq!(StreamId::new(Side::Server, Dir::Bi, 0).0, 1);
        assert_eq!(StreamId::new(Side::Client, Dir::Uni, 0).0, 2);
        let id = StreamId::new(Side::Server, Dir::Uni, 7);
        assert_eq!((id.0, id.initiator(), id.dir(), id.index()), (31, Side::Server, Dir::Uni, 7));
    }
}
