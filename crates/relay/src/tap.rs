//! Taps, which see the datagrams that pass through a relay.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use quinn_udp::EcnCodepoint;
use sutura_link::DropCause;

/// The direction of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Way {
    /// From a client to the destination.
    Up,
    /// From the destination to a client.
    Down,
}

/// A datagram at the beginning of its way over the link.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// When, since the relay has started.
    pub at: Duration,
    /// Its direction.
    pub way: Way,
    /// Which of [`Relay::local_addrs`](crate::Relay::local_addrs) the client uses.
    pub door: usize,
    /// The client that sent it or is to get it.
    pub client: SocketAddr,
    /// The port from which the destination sees this client at present. It changes with a
    /// [`Rebinding`](crate::Rebinding).
    pub port: u16,
    /// Its mark, as two bits.
    pub ecn: u8,
    /// Its contents.
    pub data: &'a [u8],
    /// Why it will not arrive, if so.
    pub dropped: Option<DropCause>,
}

/// Sees every datagram, in the relay's thread.
pub trait Tap: Send {
    /// A datagram is about to be sent over the link, or dropped by it.
    fn see(&mut self, datagram: &Seen<'_>);
}

/// The tap, if there is any.
#[derive(Default)]
pub(crate) struct Spectator(pub(crate) Option<Box<dyn Tap>>);

impl fmt::Debug for Spectator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Spectator" } else { "nobody" })
    }
}

/// The bits of a mark in the IP header (RFC 3168 section 5).
pub(crate) fn bits(ecn: Option<EcnCodepoint>) -> u8 {
    ecn.map_or(0, |ecn| ecn as u8)
}
