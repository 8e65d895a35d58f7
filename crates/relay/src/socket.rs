//! UDP sockets that keep ECN marks.

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};

use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use rustix::net::sockopt;

/// The size of the largest possible datagram, or batch of datagrams that the kernel has joined.
const MAX_PAYLOAD: usize = 65_535;
/// The socket buffer size requested from the kernel, so that no burst is lost before it reaches the
/// link. The kernel may grant less.
const BUFFER: usize = 4 << 20;

/// A socket that does not block.
#[derive(Debug)]
pub(crate) struct Socket {
    io: UdpSocket,
    state: UdpSocketState,
}

/// Memory for the data that a socket receives at once: a datagram, or several of one sender that the kernel
/// has joined.
#[derive(Debug)]
pub(crate) struct Batch {
    bytes: Vec<u8>,
    meta: RecvMeta,
}

impl Socket {
    /// Binds a socket to `address`.
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        let io = UdpSocket::bind(address)?;
        let state = UdpSocketState::new((&io).into())?;
        // The time stamps that quinn-udp 0.6.2 and newer ask for leave no room for the ECN marks of joined
        // datagrams. Where they cannot be turned off, they are not there.
        #[cfg(target_os = "linux")]
        let _ = nix::sys::socket::setsockopt(
            &io,
            nix::sys::socket::sockopt::ReceiveTimestampns,
            &false,
        );
        // A smaller buffer than requested is not an error.
        let _ = sockopt::set_socket_recv_buffer_size(&io, BUFFER);
        let _ = sockopt::set_socket_send_buffer_size(&io, BUFFER);
        Ok(Self { io, state })
    }

    pub(crate) fn io(&self) -> &UdpSocket {
        &self.io
    }

    /// Receives the next datagrams.
    pub(crate) fn receive(&self, batch: &mut Batch) -> io::Result<()> {
        let mut buffers = [IoSliceMut::new(&mut batch.bytes)];
        let metas = std::slice::from_mut(&mut batch.meta);
        self.state.recv((&self.io).into(), &mut buffers, metas).map(drop)
    }

    /// Sends one datagram.
    pub(crate) fn send(
        &self,
        destination: SocketAddr,
        ecn: Option<EcnCodepoint>,
        contents: &[u8],
    ) -> io::Result<()> {
        let transmit = Transmit { destination, ecn, contents, segment_size: None, src_ip: None };
        self.state.try_send((&self.io).into(), &transmit)
    }
}

impl Batch {
    pub(crate) fn new() -> Self {
        Self { bytes: vec![0; MAX_PAYLOAD], meta: RecvMeta::default() }
    }

    /// Their sender.
    pub(crate) fn from(&self) -> SocketAddr {
        self.meta.addr
    }

    /// Their mark.
    pub(crate) fn ecn(&self) -> Option<EcnCodepoint> {
        self.meta.ecn
    }

    /// The datagrams. An empty one comes alone.
    pub(crate) fn datagrams(&self) -> impl Iterator<Item = &[u8]> {
        let filled = self.bytes.get(..self.meta.len).unwrap_or_default();
        let empty = filled.is_empty().then_some(filled);
        empty.into_iter().chain(filled.chunks(self.meta.stride.max(1)))
    }
}
