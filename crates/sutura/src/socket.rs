//! The socket of an endpoint as it sees it: the operating system's, or the application's own.

use std::fmt::Debug;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::task::{Context, Poll};
use sutura_proto::{EcnCodepoint, SocketFeatures};

/// Datagrams to send to one destination: one, or several of equal size.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Transmit<'a> {
    /// The destination address.
    pub destination: SocketAddr,
    /// The local address to send from; `None` leaves the choice to the socket.
    pub source: Option<IpAddr>,
    /// The ECN mark to set (RFC 3168). Only asked for if the socket can do it.
    pub ecn: Option<EcnCodepoint>,
    /// The payloads, concatenated.
    pub contents: &'a [u8],
    /// The length of each datagram except the last, which may be shorter. `None` means that
    /// `contents` is one datagram.
    pub segment_size: Option<usize>,
}

/// The addresses and the ECN mark of a received datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Received {
    /// Its sender.
    pub remote: SocketAddr,
    /// The local address that it was sent to, if known.
    pub local: Option<IpAddr>,
    /// Its ECN mark, if it has one.
    pub ecn: Option<EcnCodepoint>,
}

impl Received {
    sutura_proto::setters! {
        with_local: local = Option<IpAddr>,
        with_ecn: ecn = Option<EcnCodepoint>,
    }

    /// A datagram of this sender, of which no more is known.
    #[must_use]
    pub const fn new(remote: SocketAddr) -> Self {
        Self { remote, local: None, ecn: None }
    }
}

/// An endpoint's means to send and receive: UDP, or a replacement by the application, such as a tunnel. Only
/// the endpoint's driver calls it, one call at a time.
pub trait AsyncUdpSocket: Debug + Send + Sync {
    /// Sends `transmit`, or registers the task to be woken when there is room. Sent bytes are removed from
    /// the front of its `contents`, by whole datagrams, and the call is then repeated with the rest.
    /// Datagrams that cannot be delivered are dropped, as on any network.
    ///
    /// # Errors
    /// The socket can no longer be used; all connections end.
    fn poll_send(&self, cx: &mut Context<'_>, transmit: &mut Transmit<'_>) -> Poll<io::Result<()>>;

    /// Passes received datagrams to `each`, which may change their bytes, and returns how many there
    /// were; at least one. If there are none, registers the task to be woken when there are.
    ///
    /// # Errors
    /// The socket can no longer be used; all connections end.
    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        each: &mut dyn FnMut(Received, &mut [u8]),
    ) -> Poll<io::Result<usize>>;

    /// The address that peers send to.
    ///
    /// # Errors
    /// It is not known.
    fn local_addr(&self) -> io::Result<SocketAddr>;

    /// How many datagrams of equal size a [`Transmit`] may have. By default 1.
    fn max_segments(&self) -> usize {
        1
    }

    /// The abilities of the socket beyond sending and receiving. None by default.
    fn features(&self) -> SocketFeatures {
        SocketFeatures::default()
    }
}
