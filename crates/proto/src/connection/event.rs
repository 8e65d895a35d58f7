//! What a connection tells its application and its endpoint.

use crate::error::ConnectionError;
use crate::ids::ConnectionId;
use crate::streams::StreamEvent;

/// What a connection tells its application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The handshake is complete: the peer is who it says it is, and data may flow.
    Connected,
    /// The connection is over, or will be once the peer was told.
    ConnectionLost(ConnectionError),
    /// Something happened to a stream.
    Stream(StreamEvent),
    /// A datagram can be read.
    DatagramReceived,
}

/// What a connection tells its endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndpointEvent {
    /// Datagrams to this identifier are for the connection.
    AddCid(ConnectionId),
    /// They are not any more.
    RemoveCid(ConnectionId),
    /// The handshake is over; the connection does not count as pending any more.
    HandshakeDone,
    /// The connection needs nothing more and may be dropped.
    Drained,
}
