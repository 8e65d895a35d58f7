//! Why a connection could not be opened.

use crate::crypto::StartError;
use crate::error::TransportError;
use std::net::SocketAddr;

/// Why a connection could not be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The server's name or the TLS configuration is invalid.
    #[error(transparent)]
    Start(#[from] StartError),
    /// TLS failed to produce its first message.
    #[error("cannot start the handshake: {0}")]
    Handshake(TransportError),
    /// [`EndpointConfig::max_connections`](crate::EndpointConfig::max_connections) are already open.
    #[error("too many connections")]
    TooManyConnections,
    /// The generator of connection identifiers knows none that is not in use.
    #[error("no connection identifier left")]
    NoConnectionId,
    /// Datagrams cannot be sent to this address.
    #[error("invalid remote address: {0}")]
    InvalidRemoteAddress(SocketAddr),
    /// The endpoint shares its address with others ([`Endpoint::workers`](crate::Endpoint::workers)), and answers
    /// would reach any of them. Open connections from an endpoint with an address of its own.
    #[error("the endpoint shares its address with others")]
    SharedAddress,
}
