//! The nodes at the ends of links.

use std::any::Any;
use std::net::SocketAddr;
use std::time::Instant;

use sutura_proto::{EcnCodepoint, Transmit};

/// Identifies a node of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeId(pub usize);

/// A host that sends and receives datagrams.
///
/// After [`receive`](Self::receive) and [`timeout`](Self::timeout), the network calls
/// [`transmit`](Self::transmit) until it returns `None`.
pub trait Node: Any {
    /// Handles a datagram that arrived from `from`.
    fn receive(
        &mut self,
        now: Instant,
        from: SocketAddr,
        ecn: Option<EcnCodepoint>,
        payload: &mut [u8],
    );

    /// Appends the next datagrams to `out`. Returns `None` if there is nothing to send for now.
    fn transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit>;

    /// Called when the time returned by [`next_timeout`](Self::next_timeout) is reached.
    fn timeout(&mut self, now: Instant);

    /// When [`timeout`](Self::timeout) should be called next.
    fn next_timeout(&self) -> Option<Instant>;
}
