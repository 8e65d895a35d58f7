//! What a proxy tells of requests.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::Identity;
use crate::masque::{Ask, Cause};

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision<'a> {
    /// A flow begins.
    Begun,
    /// A flow goes on over another connection, or a client has the addresses of an earlier one.
    Resumed,
    /// A flow is handed over to another process. Its end is recorded there.
    Suspended {
        /// Bytes from the client to the target.
        to_target: u64,
        /// Bytes from the target to the client.
        from_target: u64,
        /// How long it has taken so far.
        lasted: Duration,
    },
    /// A flow is over. What another process has carried before counts too.
    Ended {
        /// Bytes from the client to the target.
        to_target: u64,
        /// Bytes from the target to the client.
        from_target: u64,
        /// Datagrams that were dropped on the way.
        dropped: u64,
        /// Whether both directions came to their end.
        complete: bool,
        /// How long it took.
        lasted: Duration,
    },
    /// It was refused.
    Refused {
        /// Why.
        cause: Cause,
        /// Why, in words.
        details: &'a str,
    },
}

/// What a proxy tells of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record<'a> {
    /// Whose request it is.
    pub client: &'a Identity,
    /// Where the client is.
    pub address: SocketAddr,
    /// What it asks for.
    pub ask: &'a Ask,
    /// The address of the target, or of whoever has connected.
    pub resolved: Option<SocketAddr>,
    /// The addresses that the client has in a tunnel of IP packets.
    pub assigned: &'a [IpAddr],
    /// What became of it.
    pub decision: Decision<'a>,
}
