//! The relay's worker thread.

use std::io;
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::sockopt;
use sutura_link::{Arrival, Pipe, corrupt};

use crate::clients::{ClientId, Clients};
use crate::datagrams::{Datagram, Room};
use crate::{Config, Shared, Stats};

/// Size of the largest possible datagram.
const MAX_DATAGRAM: usize = 65_535;
/// Number of datagrams received from one socket before the others, and datagrams that are due, have
/// their turn.
const MAX_BATCH: usize = 64;
/// The socket buffer size requested from the kernel, so that no burst is lost before it reaches the
/// link. The kernel may grant less.
const SOCKET_BUFFER: usize = 4 << 20;
/// The interval between checks for idle clients, and the longest sleep.
const HOUSEKEEPING: Duration = Duration::from_secs(1);

/// Configures a socket for the relay.
pub(crate) fn prepare(socket: &UdpSocket) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    // A smaller buffer than requested is not an error.
    let _ = sockopt::set_socket_recv_buffer_size(socket, SOCKET_BUFFER);
    let _ = sockopt::set_socket_send_buffer_size(socket, SOCKET_BUFFER);
    Ok(())
}

/// The direction of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}

#[derive(Debug)]
pub(crate) struct Worker {
    start: Instant,
    socket: UdpSocket,
    waker: UdpSocket,
    shared: Arc<Shared>,
    clients: Clients,
    room: Room,
    up: Pipe<Arc<Datagram>>,
    down: Pipe<Arc<Datagram>>,
    stats: Stats,
    scratch: Vec<u8>,
    damaged: Vec<u8>,
    last_housekeeping: Duration,
}

impl Worker {
    pub(crate) fn new(
        config: &Config,
        socket: UdpSocket,
        waker: UdpSocket,
        shared: Arc<Shared>,
    ) -> io::Result<Self> {
        prepare(&socket)?;
        waker.set_nonblocking(true)?;
        Ok(Self {
            start: Instant::now(),
            socket,
            waker,
            shared,
            up: Pipe::new(&config.up, config.up_seed()),
            down: Pipe::new(&config.down, config.down_seed()),
            clients: Clients::new(config.to, config.max_clients, config.idle_timeout),
            room: Room::default(),
            stats: Stats::default(),
            scratch: vec![0; MAX_DATAGRAM],
            damaged: Vec::new(),
            last_housekeeping: Duration::ZERO,
        })
    }

    pub(crate) fn run(mut self) {
        let mut readable = Vec::new();
        while self.publish() {
            readable.clear();
            let from_clients = self.wait(&mut readable);
            self.forward_due();
            if from_clients {
                self.receive_from_clients();
            }
            for &client in &readable {
                self.receive_from_destination(client);
            }
            self.forward_due();
            self.keep_house();
        }
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Publishes the statistics. Returns whether to continue.
    fn publish(&mut self) -> bool {
        self.stats.up = *self.up.link().stats();
        self.stats.down = *self.down.link().stats();
        self.stats.clients = self.clients.len();
        self.stats.clients_seen = self.clients.seen();
        let mut state = self.shared.lock();
        state.stats = self.stats;
        !state.stop
    }

    /// Sleeps until something is due or arrives. Returns whether clients have sent something, and
    /// lists in `readable` the clients for which the destination has.
    fn wait(&self, readable: &mut Vec<ClientId>) -> bool {
        let due = [self.up.next_time(), self.down.next_time()].into_iter().flatten().min();
        let sleep =
            due.map_or(HOUSEKEEPING, |due| due.saturating_sub(self.now()).min(HOUSEKEEPING));
        let timeout = Timespec {
            tv_sec: i64::try_from(sleep.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: sleep.subsec_nanos().into(),
        };
        let mut polled = Vec::with_capacity(self.clients.len() + 2);
        polled.push(PollFd::new(&self.socket, PollFlags::IN));
        polled.push(PollFd::new(&self.waker, PollFlags::IN));
        let (ids, clients): (Vec<_>, Vec<_>) = self.clients.iter().unzip();
        polled.extend(clients.iter().map(|client| PollFd::new(&client.socket, PollFlags::IN)));
        // If the sleep was interrupted, nothing is ready.
        if rustix::event::poll(&mut polled, Some(&timeout)).is_err() {
            return false;
        }
        let ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        let fds = polled.iter().skip(2);
        readable.extend(ids.into_iter().zip(fds).filter(|(_, fd)| ready(fd)).map(|(id, _)| id));
        polled.first().is_some_and(ready)
    }

    fn receive_from_clients(&mut self) {
        for _ in 0..MAX_BATCH {
            let (length, address) = match self.socket.recv_from(&mut self.scratch) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // For example, the report that an earlier datagram could not be delivered.
                Err(_) => continue,
            };
            let now = self.now();
            match self.clients.find_or_insert(address, now) {
                Ok(Some(client)) => self.enter(Way::Up, now, length, client),
                Ok(None) | Err(_) => self.stats.refused += 1,
            }
        }
    }

    fn receive_from_destination(&mut self, id: ClientId) {
        for _ in 0..MAX_BATCH {
            let Some(client) = self.clients.get(id) else { return };
            let length = match client.socket.recv(&mut self.scratch) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => continue,
            };
            let now = self.now();
            self.clients.touch(id, now);
            self.enter(Way::Down, now, length, id);
        }
    }

    /// Sends the first `length` bytes of the scratch buffer over the link.
    fn enter(&mut self, way: Way, now: Duration, length: usize, client: ClientId) {
        let data = self.scratch.get(..length);
        let Some(datagram) = data.and_then(|data| self.room.hold(data, client)) else {
            self.stats.refused += 1;
            return;
        };
        let pipe = match way {
            Way::Up => &mut self.up,
            Way::Down => &mut self.down,
        };
        // The pipe counts the outcome.
        let _ = pipe.send(now, length, datagram);
    }

    /// Forwards everything that has crossed the link.
    fn forward_due(&mut self) {
        loop {
            let now = self.now();
            if let Some(arrival) = self.up.pop(now) {
                self.forward(Way::Up, &arrival);
            } else if let Some(arrival) = self.down.pop(now) {
                self.forward(Way::Down, &arrival);
            } else {
                return;
            }
        }
    }

    fn forward(&mut self, way: Way, arrival: &Arrival<Arc<Datagram>>) {
        if self.send(way, &arrival.payload, arrival.corrupt) {
            self.stats.on_forwarded(self.now().saturating_sub(arrival.at));
        } else {
            self.stats.unsent += 1;
        }
    }

    fn send(&mut self, way: Way, datagram: &Datagram, damage: Option<u64>) -> bool {
        let Some(client) = self.clients.get(datagram.client) else { return false };
        let mut data = &datagram.data[..];
        if let Some(seed) = damage {
            self.damaged.clear();
            self.damaged.extend_from_slice(data);
            corrupt(seed, &mut self.damaged);
            data = &self.damaged;
        }
        let send = || match way {
            Way::Up => client.socket.send(data),
            Way::Down => self.socket.send_to(data, client.address),
        };
        // A socket error may be due to an earlier datagram; the current one was not sent in that
        // case.
        let result = send();
        let refused = |e: &io::Error| e.kind() == io::ErrorKind::ConnectionRefused;
        if result.as_ref().is_err_and(refused) { send().is_ok() } else { result.is_ok() }
    }

    fn keep_house(&mut self) {
        let now = self.now();
        if now.saturating_sub(self.last_housekeeping) >= HOUSEKEEPING {
            self.last_housekeeping = now;
            self.clients.expire(now);
        }
    }
}
