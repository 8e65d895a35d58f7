//! The socket of the operating system as the socket of an endpoint.

use crate::socket::{AsyncUdpSocket, Received, Transmit};
use crate::sync::lock;
use crate::udp::{ReceiveBuffers, UdpSocket};
use std::io;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::task::{Context, Poll};
use sutura_proto::SocketFeatures;

/// A socket of the operating system, with the memory that it receives into.
#[derive(Debug)]
pub(crate) struct SystemSocket {
    socket: UdpSocket,
    buffers: Mutex<ReceiveBuffers>,
}

impl SystemSocket {
    pub(crate) fn new(socket: UdpSocket) -> Self {
        Self { socket, buffers: Mutex::new(ReceiveBuffers::new()) }
    }
}

impl AsyncUdpSocket for SystemSocket {
    fn poll_send(&self, cx: &mut Context<'_>, transmit: &mut Transmit<'_>) -> Poll<io::Result<()>> {
        self.socket.poll_send(cx, transmit)
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        each: &mut dyn FnMut(Received, &mut [u8]),
    ) -> Poll<io::Result<usize>> {
        let mut buffers = lock(&self.buffers);
        self.socket.poll_recv(cx, &mut buffers, each)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    fn max_segments(&self) -> usize {
        self.socket.max_segments()
    }

    fn features(&self) -> SocketFeatures {
        self.socket.features()
    }
}
