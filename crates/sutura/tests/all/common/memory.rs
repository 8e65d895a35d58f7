//! Sockets that are connected by memory.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use sutura::{AsyncUdpSocket, Received, Transmit};

/// Datagrams on their way to an address, and who waits for them.
#[derive(Debug, Default)]
struct Mailbox {
    datagrams: VecDeque<(SocketAddr, Vec<u8>)>,
    waker: Option<Waker>,
}

/// A network that connects sockets: a mailbox for each address.
#[derive(Debug, Clone, Default)]
pub struct Memory(Arc<Mutex<HashMap<SocketAddr, Mailbox>>>);

impl Memory {
    /// A socket of one host, with an address of its own for each port.
    pub fn socket(&self, port: u16) -> MemorySocket {
        self.socket_at(([192, 0, 2, 1], port).into())
    }

    pub fn socket_at(&self, address: SocketAddr) -> MemorySocket {
        MemorySocket { address, memory: self.clone() }
    }
}

#[derive(Debug)]
pub struct MemorySocket {
    pub address: SocketAddr,
    memory: Memory,
}

impl AsyncUdpSocket for MemorySocket {
    fn poll_send(
        &self,
        _cx: &mut Context<'_>,
        transmit: &mut Transmit<'_>,
    ) -> Poll<io::Result<()>> {
        assert_eq!((transmit.segment_size, transmit.ecn), (None, None), "it announces neither");
        let mut boxes = self.memory.0.lock().unwrap();
        let theirs = boxes.entry(transmit.destination).or_default();
        theirs.datagrams.push_back((self.address, transmit.contents.to_vec()));
        theirs.waker.take().into_iter().for_each(Waker::wake);
        transmit.contents = &[];
        Poll::Ready(Ok(()))
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        each: &mut dyn FnMut(Received, &mut [u8]),
    ) -> Poll<io::Result<usize>> {
        let mut boxes = self.memory.0.lock().unwrap();
        let ours = boxes.entry(self.address).or_default();
        let Some((remote, mut datagram)) = ours.datagrams.pop_front() else {
            ours.waker = Some(cx.waker().clone());
            return Poll::Pending;
        };
        drop(boxes);
        each(Received::new(remote), &mut datagram);
        Poll::Ready(Ok(1))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}
