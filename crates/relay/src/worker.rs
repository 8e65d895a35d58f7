//! The relay's worker thread.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn_udp::EcnCodepoint;
use rustix::event::{PollFd, PollFlags, Timespec};
use sutura_link::{Arrival, Fate, Pipe, corrupt};

use crate::clients::{ClientId, Clients, DoorId};
use crate::datagrams::{Datagram, Room};
use crate::socket::{Batch, Socket};
use crate::tap::{self, Spectator};
use crate::{Config, Rebinding, Seen, Shared, Stats, Way};

/// Number of batches of datagrams received from one socket before the other sockets, and datagrams that are
/// due, have their turn.
const MAX_BATCH: usize = 64;
/// The interval between checks for idle clients, and the longest sleep.
const HOUSEKEEPING: Duration = Duration::from_secs(1);

/// An address that the relay listens on.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) socket: Socket,
    /// The destination of its datagrams.
    pub(crate) to: SocketAddr,
}

/// The sockets with datagrams to be received.
#[derive(Debug, Default)]
struct Readable {
    /// From clients, at these doors.
    doors: Vec<DoorId>,
    /// From the destinations of these clients.
    clients: Vec<ClientId>,
}

#[derive(Debug)]
pub(crate) struct Worker {
    start: Instant,
    doors: Vec<Door>,
    spectator: Spectator,
    waker: UdpSocket,
    shared: Arc<Shared>,
    clients: Clients,
    room: Room,
    up: Pipe<Arc<Datagram>>,
    down: Pipe<Arc<Datagram>>,
    /// The rebindings to come, the next one last.
    rebindings: Vec<Rebinding>,
    stats: Stats,
    batch: Option<Batch>,
    damaged: Vec<u8>,
    last_housekeeping: Duration,
}

impl Worker {
    pub(crate) fn new(
        config: &Config,
        doors: Vec<Door>,
        spectator: Spectator,
        waker: UdpSocket,
        shared: Arc<Shared>,
    ) -> io::Result<Self> {
        waker.set_nonblocking(true)?;
        let mut rebindings = config.rebindings.clone();
        rebindings.sort_unstable_by_key(|rebinding| std::cmp::Reverse(rebinding.at));
        Ok(Self {
            start: Instant::now(),
            spectator,
            waker,
            shared,
            up: Pipe::new(&config.up, config.up_seed()),
            down: Pipe::new(&config.down, config.down_seed()),
            clients: Clients::new(
                doors.iter().map(|door| door.to),
                config.max_clients,
                config.idle_timeout,
            ),
            doors,
            room: Room::default(),
            rebindings,
            stats: Stats::default(),
            batch: Some(Batch::new()),
            damaged: Vec::new(),
            last_housekeeping: Duration::ZERO,
        })
    }

    pub(crate) fn run(mut self) {
        while self.publish() {
            let readable = self.wait();
            self.rebind();
            self.forward_due();
            for door in readable.doors {
                self.receive_from_clients(door);
            }
            for client in readable.clients {
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

    /// Sleeps until a datagram arrives, or a packet or a rebinding is due.
    fn wait(&self) -> Readable {
        let rebinding = self.rebindings.last().map(|rebinding| rebinding.at);
        let due = [self.up.next_time(), self.down.next_time(), rebinding];
        let due = due.into_iter().flatten().min();
        let sleep =
            due.map_or(HOUSEKEEPING, |due| due.saturating_sub(self.now()).min(HOUSEKEEPING));
        let timeout = Timespec {
            tv_sec: i64::try_from(sleep.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: sleep.subsec_nanos().into(),
        };
        let (ids, clients): (Vec<_>, Vec<_>) = self.clients.iter().unzip();
        let doors = self.doors.iter().map(|door| door.socket.io());
        let sockets = doors.chain(clients.iter().map(|client| client.socket.io()));
        let mut polled = vec![PollFd::new(&self.waker, PollFlags::IN)];
        polled.extend(sockets.map(|socket| PollFd::new(socket, PollFlags::IN)));
        // If the sleep was interrupted, nothing is ready.
        if rustix::event::poll(&mut polled, Some(&timeout)).is_err() {
            return Readable::default();
        }
        let mut ready = polled.iter().skip(1).map(|fd| !fd.revents().is_empty());
        let doors = (0..self.doors.len()).zip(ready.by_ref());
        let doors = doors.filter_map(|(door, ready)| ready.then_some(door)).collect();
        let clients = ids.into_iter().zip(ready);
        let clients = clients.filter_map(|(id, ready)| ready.then_some(id)).collect();
        Readable { doors, clients }
    }

    /// Carries out the rebindings that are due. If new sockets cannot be had, the old ones stay.
    fn rebind(&mut self) {
        let now = self.now();
        while let Some(rebinding) = self.rebindings.pop_if(|rebinding| rebinding.at <= now) {
            if self.clients.rebind(rebinding.change).is_ok() {
                self.stats.rebindings += 1;
            }
        }
    }

    fn receive_from_clients(&mut self, id: DoorId) {
        let Some(mut batch) = self.batch.take() else { return };
        for _ in 0..MAX_BATCH {
            let Some(door) = self.doors.get(id) else { break };
            match door.socket.receive(&mut batch) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // For example, the report that an earlier datagram could not be delivered.
                Err(_) => continue,
            }
            let now = self.now();
            match self.clients.find_or_insert(id, batch.from(), now) {
                Ok(Some(client)) => self.enter_all(Way::Up, now, &batch, client),
                Ok(None) | Err(_) => self.stats.refused += batch.datagrams().count() as u64,
            }
        }
        self.batch = Some(batch);
    }

    fn receive_from_destination(&mut self, id: ClientId) {
        let Some(mut batch) = self.batch.take() else { return };
        for _ in 0..MAX_BATCH {
            let Some(client) = self.clients.get(id) else { break };
            match client.socket.receive(&mut batch) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => continue,
            }
            // Nobody else has a way to this client.
            if self.doors.get(client.door).is_some_and(|door| door.to == batch.from()) {
                let now = self.now();
                self.clients.touch(id, now);
                self.enter_all(Way::Down, now, &batch, id);
            }
        }
        self.batch = Some(batch);
    }

    fn enter_all(&mut self, way: Way, now: Duration, batch: &Batch, client: ClientId) {
        for data in batch.datagrams() {
            self.enter(way, now, batch.ecn(), data, client);
        }
    }

    /// Sends a datagram over the link.
    fn enter(
        &mut self,
        way: Way,
        now: Duration,
        ecn: Option<EcnCodepoint>,
        data: &[u8],
        client: ClientId,
    ) {
        let Some(datagram) = self.room.hold(data, ecn, client) else {
            self.stats.refused += 1;
            return;
        };
        let pipe = match way {
            Way::Up => &mut self.up,
            Way::Down => &mut self.down,
        };
        // The pipe counts the outcome.
        let fate = pipe.send(now, data.len(), datagram);
        let (Some(tap), Some(client)) = (&mut self.spectator.0, self.clients.get(client)) else {
            return;
        };
        let dropped = match fate {
            Fate::Dropped(cause) => Some(cause),
            Fate::Delivered(_) => None,
        };
        let port = client.socket.io().local_addr().map_or(0, |local| local.port());
        let (door, client, ecn) = (client.door, client.address, tap::bits(ecn));
        tap.see(&Seen { at: now, way, door, client, port, ecn, data, dropped });
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
        if self.send(way, arrival) {
            self.stats.on_forwarded(self.now().saturating_sub(arrival.at));
        } else {
            self.stats.unsent += 1;
        }
    }

    fn send(&mut self, way: Way, arrival: &Arrival<Arc<Datagram>>) -> bool {
        let datagram = &arrival.payload;
        let Some(client) = self.clients.get(datagram.client) else { return false };
        let Some(door) = self.doors.get(client.door) else { return false };
        let mut data = &datagram.data[..];
        if let Some(seed) = arrival.corrupt {
            self.damaged.clear();
            self.damaged.extend_from_slice(data);
            corrupt(seed, &mut self.damaged);
            data = &self.damaged;
        }
        // Only ECN-capable datagrams are marked (RFC 3168 section 5).
        let ecn = datagram.ecn.map(|ecn| if arrival.marked { EcnCodepoint::Ce } else { ecn });
        let send = || match way {
            Way::Up => client.socket.send(door.to, ecn, data),
            Way::Down => door.socket.send(client.address, ecn, data),
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
