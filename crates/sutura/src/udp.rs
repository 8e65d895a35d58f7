//! UDP on tokio: sends and receives batches of datagrams by segmentation offload, with ECN marks.
//!
//! One system call sends up to 64 datagrams of equal size (GSO), and receives up to 32 buffers that
//! the kernel has filled with up to 64 datagrams each (GRO). On systems without offload, the same
//! calls move one datagram at a time.

mod readiness;
mod shared;

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::task::{Context, Poll, ready};
use std::{array, fmt};

use self::readiness::ReadySocket;
use crate::socket::{Received, Transmit};
use quinn_udp::{BATCH_SIZE, RecvMeta, UdpSocketState};
use socket2::{Domain, Protocol, Socket, Type};
use sutura_proto::{EcnCodepoint, SocketFeatures};

/// Bytes of one receive buffer: no UDP payload or coalesced batch is longer.
const RECEIVE_BUFFER_SIZE: usize = 1 << 16;

/// The longest UDP payload that fits an IPv4 packet, and so the longest batch to send at once.
const MAX_PAYLOAD: usize = 65_507;

/// Requested size of the kernel's receive buffer, in bytes: 30 ms at 1 Gbit/s.
const SOCKET_RECEIVE_BUFFER: usize = 4 << 20;

/// Requested size of the kernel's send buffer, in bytes. Pacing decides when to send, so it needs
/// to hold only a few batches.
const SOCKET_SEND_BUFFER: usize = 1 << 20;

/// Reusable memory for receiving: 2 MiB on systems that receive in batches.
pub struct ReceiveBuffers {
    bytes: Box<[u8]>,
    metas: [RecvMeta; BATCH_SIZE],
}

impl ReceiveBuffers {
    /// Allocates the buffers.
    #[must_use]
    pub fn new() -> Self {
        Self {
            bytes: vec![0; RECEIVE_BUFFER_SIZE * BATCH_SIZE].into_boxed_slice(),
            metas: [RecvMeta::default(); BATCH_SIZE],
        }
    }

    /// Hands out the datagrams of the first `count` buffers. Returns their number.
    fn deliver(&mut self, count: usize, mut each: impl FnMut(Received, &mut [u8])) -> usize {
        let mut datagrams = 0;
        let buffers = self.bytes.chunks_exact_mut(RECEIVE_BUFFER_SIZE);
        for (buffer, meta) in buffers.zip(&self.metas).take(count) {
            let ecn = meta.ecn.and_then(|mark| EcnCodepoint::from_bits(mark as u8));
            let received = Received { remote: meta.addr, local: meta.dst_ip, ecn };
            let filled = buffer.get_mut(..meta.len).unwrap_or_default();
            if filled.is_empty() {
                datagrams += 1;
                each(received, filled);
                continue;
            }
            for datagram in filled.chunks_mut(meta.stride.max(1)) {
                datagrams += 1;
                each(received, datagram);
            }
        }
        datagrams
    }
}

impl Default for ReceiveBuffers {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ReceiveBuffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceiveBuffers").finish_non_exhaustive()
    }
}

/// A UDP socket. At most one task may wait to send and one to receive at a time; further tasks would not be
/// woken.
#[derive(Debug)]
pub struct UdpSocket {
    io: ReadySocket,
    state: UdpSocketState,
    segment_limit: usize,
}

impl UdpSocket {
    /// Binds a socket to `local`. An IPv6 socket also serves IPv4 where the system allows it; peers
    /// then have IPv4-mapped addresses. Kernel buffers are enlarged as far as the system permits.
    ///
    /// # Errors
    /// The address cannot be bound.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O enabled, as all of tokio's sockets do.
    pub fn bind(local: SocketAddr) -> io::Result<Self> {
        let socket = open(local)?;
        socket.bind(&local.into())?;
        Self::from_std(socket.into())
    }

    /// Takes over a bound socket.
    ///
    /// # Errors
    /// The socket cannot be configured or registered with tokio.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O enabled.
    pub fn from_std(socket: std::net::UdpSocket) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        without_timestamps(&socket);
        enlarge_buffers(&state, &socket);
        let io = ReadySocket::new(socket)?;
        Ok(Self { io, state, segment_limit: usize::MAX })
    }

    /// Sends at most `segments` datagrams in one system call, for devices with broken segmentation
    /// offload. 1 turns it off.
    #[cfg(test)]
    pub fn with_segment_limit(mut self, segments: usize) -> Self {
        self.segment_limit = segments.max(1);
        self
    }

    /// The address that the socket is bound to.
    ///
    /// # Errors
    /// The system call fails.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.get().local_addr()
    }

    /// The abilities of the socket beyond sending and receiving.
    #[must_use]
    pub fn features(&self) -> SocketFeatures {
        SocketFeatures::default().with_ecn(true).with_unfragmented(!self.state.may_fragment())
    }

    /// How many datagrams of a [`Transmit`] one system call sends. More datagrams take several calls. The
    /// number is 1 where offload is missing, and becomes 1 when a device turns out not to support it.
    #[must_use]
    pub fn max_segments(&self) -> usize {
        self.state.max_gso_segments().min(self.segment_limit)
    }

    /// Sends `transmit`, waiting for room in the kernel. Sent bytes are removed from the front of its
    /// `contents`, so that the call can be repeated.
    ///
    /// Datagrams that the system refuses to send (too long, unreachable) are dropped, as if lost on
    /// the way.
    ///
    /// # Errors
    /// The runtime is shutting down, or the process has no file descriptor left to wait with.
    pub fn poll_send(
        &self,
        cx: &mut Context<'_>,
        transmit: &mut Transmit<'_>,
    ) -> Poll<io::Result<()>> {
        self.io.poll_send(cx, || {
            send_all(
                transmit,
                || self.max_segments(),
                |part| self.state.try_send(self.io.get().into(), part),
            )
        })
    }

    /// Receives a batch of datagrams, waiting for the first, and calls `each` with every one; it
    /// may modify them. Returns their number, at most 2048.
    ///
    /// # Errors
    /// The socket is broken, or the runtime is shutting down.
    pub fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut ReceiveBuffers,
        each: impl FnMut(Received, &mut [u8]),
    ) -> Poll<io::Result<usize>> {
        loop {
            match ready!(self.poll_fill(cx, buffers)) {
                Ok(count) => return Poll::Ready(Ok(buffers.deliver(count, each))),
                Err(error) if is_passing(&error) => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Fills buffers and returns their number.
    fn poll_fill(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut ReceiveBuffers,
    ) -> Poll<io::Result<usize>> {
        let mut last = None;
        let more = ready!(self.io.poll_recv(cx, || {
            let mut chunks = buffers.bytes.chunks_exact_mut(RECEIVE_BUFFER_SIZE);
            let mut slices: [IoSliceMut<'_>; BATCH_SIZE] =
                array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
            let count = self.state.recv(self.io.get().into(), &mut slices, &mut buffers.metas)?;
            if count < BATCH_SIZE {
                // The kernel has no more. To say so now spares the call that would find nothing.
                last = Some(count);
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Ok(count)
        }));
        Poll::Ready(last.map_or(more, Ok))
    }
}

/// A socket for `local`, not bound yet.
fn open(local: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(local), Type::DGRAM, Some(Protocol::UDP))?;
    if local.is_ipv6()
        && let Err(error) = socket.set_only_v6(false)
    {
        tracing::debug!(%error, "IPv6 only");
    }
    Ok(socket)
}

/// Receive errors that do not affect the next call. Some systems report here that an earlier
/// datagram could not be delivered, which any host can provoke with a forged ICMP message.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock
            | io::ErrorKind::Interrupted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
    )
}

/// Turns off the time stamps that quinn-udp 0.6.2 and newer ask for: with them, the control messages of a
/// coalesced datagram do not fit into its buffer, and the kernel leaves out the ECN mark.
fn without_timestamps(socket: &std::net::UdpSocket) {
    #[cfg(target_os = "linux")]
    if let Err(error) =
        nix::sys::socket::setsockopt(socket, nix::sys::socket::sockopt::ReceiveTimestampns, &false)
    {
        tracing::debug!(%error, "datagrams keep their time stamps");
    }
    #[cfg(not(target_os = "linux"))]
    let _ = socket;
}

/// Enlarges the kernel's buffers as far as permitted; never shrinks them.
fn enlarge_buffers(state: &UdpSocketState, socket: &std::net::UdpSocket) {
    let receive = state.recv_buffer_size(socket.into());
    if receive.is_ok_and(|size| size < SOCKET_RECEIVE_BUFFER)
        && let Err(error) = state.set_recv_buffer_size(socket.into(), SOCKET_RECEIVE_BUFFER)
    {
        tracing::debug!(%error, "the receive buffer stays small");
    }
    let send = state.send_buffer_size(socket.into());
    if send.is_ok_and(|size| size < SOCKET_SEND_BUFFER)
        && let Err(error) = state.set_send_buffer_size(socket.into(), SOCKET_SEND_BUFFER)
    {
        tracing::debug!(%error, "the send buffer stays small");
    }
}

/// Sends `transmit` in as few calls of `send` as `max_segments` and the IP layer allow, removing sent bytes
/// from its contents. `max_segments` is checked before each call: `send` lowers it when the device cannot
/// segment, and the same datagrams are then sent one by one.
fn send_all(
    transmit: &mut Transmit<'_>,
    max_segments: impl Fn() -> usize,
    mut send: impl FnMut(&quinn_udp::Transmit<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let segment = match transmit.segment_size {
        Some(size @ 1..) => size,
        _ => transmit.contents.len(),
    };
    loop {
        let segments = MAX_PAYLOAD
            .checked_div(segment)
            .map_or(1, |fitting| fitting.clamp(1, max_segments().max(1)));
        let len = transmit.contents.len().min(segments.saturating_mul(segment));
        let (part, rest) = transmit.contents.split_at(len);
        let sent = send(&quinn_udp::Transmit {
            destination: transmit.destination,
            ecn: transmit.ecn.and_then(|mark| quinn_udp::EcnCodepoint::from_bits(mark as u8)),
            contents: part,
            segment_size: (part.len() > segment).then_some(segment),
            src_ip: transmit.source,
        });
        match sent {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(error),
            Err(_) if part.len() > segment && segments > max_segments() => continue,
            Err(error) => {
                tracing::debug!(%error, destination = %transmit.destination, "not sent");
            }
            Ok(()) => {}
        }
        transmit.contents = rest;
        if rest.is_empty() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests;
