//! A UDP socket, and waiting for it.

use crate::Error;
use mio::net::UdpSocket;
use mio::unix::pipe::Receiver;
use mio::{Events, Interest, Poll, Token};
use quiche::{Connection, RecvInfo};
use signal_hook::consts::SIGTERM;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

/// More bytes than a UDP datagram can have.
const BUFFER: usize = 65_536;

const SOCKET: Token = Token(0);
const STOP: Token = Token(1);

/// A socket, the signal to stop, and buffers.
pub struct Udp {
    socket: UdpSocket,
    local: SocketAddr,
    poll: Poll,
    events: Events,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    /// The pipe to which SIGTERM writes a byte.
    _stop: Receiver,
}

impl Udp {
    pub fn bind(address: SocketAddr) -> Result<Self, Error> {
        let mut socket = UdpSocket::bind(address)?;
        let poll = Poll::new()?;
        poll.registry().register(&mut socket, SOCKET, Interest::READABLE)?;
        let (sender, mut stop) = mio::unix::pipe::new()?;
        signal_hook::low_level::pipe::register(SIGTERM, sender)?;
        poll.registry().register(&mut stop, STOP, Interest::READABLE)?;
        Ok(Self {
            local: socket.local_addr()?,
            socket,
            poll,
            events: Events::with_capacity(2),
            incoming: vec![0; BUFFER],
            outgoing: vec![0; BUFFER],
            _stop: stop,
        })
    }

    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Waits for datagrams, no longer than `timeout`. Returns whether to go on; false after SIGTERM.
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<bool, Error> {
        match self.poll.poll(&mut self.events, timeout) {
            Err(error) if error.kind() != ErrorKind::Interrupted => Err(error.into()),
            _ => Ok(self.events.iter().all(|event| event.token() != STOP)),
        }
    }

    /// The next datagram, if there is one.
    pub fn receive(&mut self) -> Result<Option<(&mut [u8], RecvInfo)>, Error> {
        match self.socket.recv_from(&mut self.incoming) {
            Ok((len, from)) => {
                Ok(Some((&mut self.incoming[..len], RecvInfo { from, to: self.local })))
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            // The peer's socket is not open, perhaps not yet.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends a datagram that belongs to no connection, if the socket takes it.
    pub fn send_to(&self, datagram: &[u8], to: SocketAddr) -> Result<(), Error> {
        match self.socket.send_to(datagram, to) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Sends the datagrams of a connection. Datagrams that the socket does not take are lost.
    pub fn send_all(&mut self, connection: &mut Connection) -> Result<(), Error> {
        loop {
            match connection.send(&mut self.outgoing) {
                Ok((len, info)) => self.send_to(&self.outgoing[..len], info.to)?,
                Err(quiche::Error::Done) => return Ok(()),
                Err(error) => {
                    // This fails only if the connection is closed already.
                    connection.close(false, 0x1, b"").ok();
                    return Err(error.into());
                }
            }
        }
    }
}
