//! What stands at the ends of links.

use std::any::Any;
use std::net::SocketAddr;
use std::time::Instant;

use sutura_proto::{EcnCodepoint, Transmit};

/// Something that sends and receives datagrams.
///
/// After [`receive`](Self::receive) and [`timeout`](Self::timeout) the network asks for what is to
/// be sent until there is nothing.
pub trait Node: Any {
    /// A datagram arrived from `from`.
    fn receive(
        &mut self,
        now: Instant,
        from: SocketAddr,
        ecn: Option<EcnCodepoint>,
        payload: &mut [u8],
    );

    /// Appends the next datagrams to `out`; `None` when there is nothing to send for now.
    fn transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit>;

    /// Time has come to one of the instants of [`next_timeout`](Self::next_timeout).
    fn timeout(&mut self, now: Instant);

    /// When [`timeout`](Self::timeout) wants to be called.
    fn next_timeout(&self) -> Option<Instant>;
}
