//! Reports of a connection to its application and its endpoint.

use crate::error::ConnectionError;
use crate::ids::ConnectionId;
use crate::loss_floor::LossMemory;
use crate::reset::ResetToken;
use crate::streams::StreamEvent;
use std::net::IpAddr;
use std::time::Instant;

/// An event for the application.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The handshake is complete: the peer is authenticated and data may flow.
    Connected,
    /// The server does not accept the 0-RTT packets of this client. All streams, messages and datagrams
    /// until now are gone: no further event mentions those streams, and the identifiers are used again.
    /// [`Connected`](Self::Connected) follows.
    ZeroRttRejected,
    /// The connection is over, or will be once the peer has been told.
    ConnectionLost(ConnectionError),
    /// An event of a stream.
    Stream(StreamEvent),
    /// A datagram can be read.
    DatagramReceived,
    /// The fate of messages or datagrams is known. Call
    /// [`poll_message_outcome`](crate::Connection::poll_message_outcome) until there is none left.
    MessageOutcomes,
    /// Messages are accepted again, after one was refused.
    MessagesWritable,
    /// There is room for the shortest datagram for which [`Datagrams::want_room`](crate::Datagrams::want_room) found
    /// none.
    DatagramsWritable,
}

/// An event for the endpoint.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum EndpointEvent {
    /// Route datagrams for this identifier to the connection.
    AddCid(ConnectionId),
    /// Stop routing datagrams for this identifier to the connection.
    RemoveCid(ConnectionId),
    /// The client has shown that it receives packets at its address.
    AddressValidated,
    /// The server gave this client a token for its next connection (RFC 9000 section 8.1.3).
    NewToken(Vec<u8>),
    /// Pass a datagram that ends with this token to the connection if it belongs to none; `None` for no
    /// such datagrams. Replaces the previous token (RFC 9000 section 10.3).
    ResetToken(Option<ResetToken>),
    /// The handshake is complete; the connection no longer counts as pending.
    HandshakeDone,
    /// The handshake has failed. The connection counts as pending until it is drained, but makes room
    /// before any other.
    HandshakeFailed,
    /// The connection's knowledge of the losses on the path to this address. Later connections to it start
    /// from there.
    Learned(IpAddr, Box<LossMemory>),
    /// The peer at this address made this end work in vain at this time.
    Blamed(IpAddr, Instant, Offence),
    /// The connection has nothing left to do and may be dropped.
    Drained,
}

/// Behaviour of a peer that makes this end work in vain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Offence {
    /// The peer cancelled a request before it was answered.
    Request,
    /// The peer broke the protocol, which ended its connection.
    Connection,
}
