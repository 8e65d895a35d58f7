//! Flows of UDP, at either end: datagrams between a socket and an exchange of HTTP/3 (RFC 9298 section 5).

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use sutura::Connection;
use sutura::http::{Capsule, Datagrams, RequestStream, SendDatagramError};
use tokio::net::UdpSocket;
use tokio::time::{Instant, sleep_until};

use crate::counts::Counts;
use crate::flow::Flow;
use crate::masque::{read_datagram, write_datagram};
use crate::stream::Ending;
use crate::throttle::Throttle;

/// Datagrams of UDP above this size, in bytes, are not read whole: no path carries them in a packet of QUIC.
pub(crate) const MAX_READ: usize = 2048;
/// Bytes that WireGuard adds to a packet: its header and tag.
const WIREGUARD_OVERHEAD: usize = 32;
/// WireGuard fills packets up to a multiple of so many bytes.
const WIREGUARD_PADDING: usize = 16;
/// Most datagrams that are read from a socket before others get a turn.
const MAX_BATCH: usize = 16;

/// The end of a flow that is not the tunnel.
pub(crate) trait Near: Sync {
    /// Waits until there may be a datagram.
    fn ready(&self) -> impl Future<Output = io::Result<()>> + Send;
    /// Appends the next datagram to a buffer that has room for [`MAX_READ`] bytes.
    ///
    /// # Errors
    /// There is none at present (`WouldBlock`), or there are no more (`UnexpectedEof`).
    fn receive(&self, into: &mut Vec<u8>) -> io::Result<()>;
    /// Hands on a datagram.
    ///
    /// # Errors
    /// It was dropped.
    fn deliver(&self, datagram: &Bytes) -> io::Result<()>;
}

impl Near for UdpSocket {
    async fn ready(&self) -> io::Result<()> {
        self.readable().await
    }

    fn receive(&self, into: &mut Vec<u8>) -> io::Result<()> {
        self.try_recv_buf(into).map(drop)
    }

    fn deliver(&self, datagram: &Bytes) -> io::Result<()> {
        self.try_send(datagram).map(drop)
    }
}

/// Whom to tell that datagrams do not fit into packets: they are dropped, not sent as capsules, so that programs can
/// find out what fits (RFC 9298 section 6.1).
pub(crate) struct Oversize<'a> {
    /// Whether it was told.
    pub(crate) said: &'a AtomicBool,
    pub(crate) complain: &'a (dyn Fn(&str) + Sync),
}

/// A flow under way.
struct Carrying<'a, N> {
    near: &'a N,
    datagrams: Datagrams,
    flow: Flow,
    throttle: &'a Throttle,
    oversize: &'a Oversize<'a>,
    counts: &'a Counts,
    buffer: Vec<u8>,
    /// The connection's, lately.
    round_trip: Duration,
}

/// Carries datagrams until the other end finishes, both ends are silent for `idle`, or the connection is lost.
/// Each is sent as its flow's class is treated.
pub(crate) async fn carry<N: Near>(
    mut stream: RequestStream,
    near: &N,
    flow: Flow,
    throttle: &Throttle,
    idle: Duration,
    oversize: &Oversize<'_>,
    counts: &Counts,
) -> Ending {
    let mut carrying = Carrying {
        near,
        datagrams: stream.datagrams(),
        flow,
        throttle,
        oversize,
        counts,
        buffer: Vec::with_capacity(1 + MAX_READ),
        round_trip: Duration::ZERO,
    };
    let connection = stream.connection().clone();
    let mut until = Instant::now() + idle;
    let ending = loop {
        tokio::select! {
            ready = near.ready() => match ready.and_then(|()| carrying.send_some(&connection)) {
                Ok(()) => until = Instant::now() + idle,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    break Ending::Complete;
                }
                // Such as that nobody listens there: somebody may yet.
                Err(_) => {}
            },
            datagram = carrying.datagrams.recv() => match datagram {
                Ok(Some(datagram)) => {
                    carrying.receive(datagram);
                    until = Instant::now() + idle;
                }
                Ok(None) => break Ending::Complete,
                Err(error) => break error.into(),
            },
            capsule = stream.recv_capsule(&[Capsule::DATAGRAM]) => match capsule {
                Ok(Some(capsule)) => {
                    carrying.receive(capsule.value);
                    until = Instant::now() + idle;
                }
                Ok(None) => break Ending::Complete,
                Err(error) => break error.into(),
            },
            () = sleep_until(until) => break Ending::Complete,
        }
    };
    if ending == Ending::Complete {
        // The connection may be lost.
        let _ = stream.finish().await;
    }
    ending
}

impl<N: Near> Carrying<'_, N> {
    /// Sends what has come.
    fn send_some(&mut self, connection: &Connection) -> io::Result<()> {
        self.round_trip = connection.rtt();
        for _ in 0..MAX_BATCH {
            write_datagram(&mut self.buffer);
            match self.near.receive(&mut self.buffer) {
                Ok(()) => self.send(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn send(&mut self) {
        let size = self.buffer.len() - 1;
        if !self.throttle.admits(size) {
            self.counts.add_dropped();
            return;
        }
        let now = std::time::Instant::now();
        let options = self.flow.sent(now, size).datagram_over(now, self.round_trip);
        let sent = if size >= MAX_READ {
            Err(SendDatagramError::TooLarge)
        } else {
            self.datagrams.send(&self.buffer, &options)
        };
        match sent {
            Ok(()) => self.counts.add_sent(size),
            Err(error) => {
                self.counts.add_dropped();
                if error == SendDatagramError::TooLarge {
                    self.oversize.complain(size, self.datagrams.max_size());
                }
            }
        }
    }

    fn receive(&mut self, datagram: Bytes) {
        let delivered = read_datagram(datagram)
            .filter(|payload| self.throttle.admits(payload.len()))
            .is_some_and(|payload| {
                self.flow.received(std::time::Instant::now(), payload.len());
                self.counts.add_received(payload.len());
                self.near.deliver(&payload).is_ok()
            });
        if !delivered {
            self.counts.add_dropped();
        }
    }
}

impl Oversize<'_> {
    /// Says what to set, once.
    fn complain(&self, size: usize, most: Option<usize>) {
        if self.said.swap(true, Relaxed) {
            return;
        }
        let most = most.map_or(0, |most| most.saturating_sub(1));
        (self.complain)(&format!(
            "a datagram of {size} bytes does not fit into a packet, which has room for {most}: it is dropped, as \
             are all such; let the program send smaller ones, such as by `MTU = {}` for WireGuard",
            most.saturating_sub(WIREGUARD_OVERHEAD) / WIREGUARD_PADDING * WIREGUARD_PADDING
        ));
    }
}
