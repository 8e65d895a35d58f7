//! Many hostile clients at several addresses of the loopback device.

use crate::puppet::{self, CID_SIZE, Puppet, Setup, State};
use socket2::{Domain, Socket, Type};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};
use sutura_benches::Error;
use sutura_proto::ConnectionId;
use sutura_random::Rng;

/// Addresses from which the attack comes.
pub const ADDRESSES: usize = 16;
/// Datagrams taken from a socket before another socket gets its turn.
const BATCH: usize = 256;
/// Bytes of each socket's buffers.
const SOCKET_BUFFER: usize = 4 << 20;
/// How often every client checks whether it has to repeat packets.
const TICK: Duration = Duration::from_millis(100);

/// Counters of sent and received data.
#[derive(Debug, Default, Clone, Copy)]
pub struct Tally {
    /// Bytes of UDP payload sent.
    pub bytes: u64,
    pub datagrams: u64,
    /// The events of the attack: connections, requests or frames.
    pub events: u64,
    pub received_bytes: u64,
    /// Connections that were opened, that were established, and that the server closed.
    pub opened: u64,
    pub established: u64,
    pub closed: u64,
    /// The code of the last connection that the server closed.
    pub last_code: Option<u64>,
}

struct Member {
    puppet: Puppet,
    was_established: bool,
}

/// Clients, their sockets, and the server that they attack.
pub struct Fleet {
    sockets: Vec<UdpSocket>,
    pub server: SocketAddr,
    setup: Setup,
    members: Vec<Option<Member>>,
    free: Vec<usize>,
    /// Clients that may have a packet to send.
    dirty: Vec<usize>,
    pub tally: Tally,
    pub rng: Rng,
    ticked: Instant,
    buffer: Vec<u8>,
    /// A ClientHello.
    hello: Option<Vec<u8>>,
}

fn socket(address: Ipv4Addr) -> Result<UdpSocket, Error> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
    socket.bind(&SocketAddr::from((address, 0)).into())?;
    socket.set_nonblocking(true)?;
    socket.set_recv_buffer_size(SOCKET_BUFFER)?;
    socket.set_send_buffer_size(SOCKET_BUFFER)?;
    Ok(socket.into())
}

impl Fleet {
    /// Clients of `server`, which must be at the loopback device.
    pub fn new(server: SocketAddr, setup: Setup) -> Result<Self, Error> {
        if !server.ip().is_loopback() {
            return Err(format!("{server} is not at the loopback device").into());
        }
        let address = |n| Ipv4Addr::new(127, 0, 1, n);
        let all = (1..=ADDRESSES as u8).map(|n| socket(address(n)));
        Ok(Self {
            sockets: all.collect::<Result<_, _>>()?,
            server,
            setup,
            members: Vec::new(),
            free: Vec::new(),
            dirty: Vec::new(),
            tally: Tally::default(),
            rng: Rng::new(7),
            ticked: Instant::now(),
            buffer: vec![0; 65_536],
            hello: None,
        })
    }

    /// Opens a connection; returns its number.
    pub fn open(&mut self, now: Instant) -> Result<usize, Error> {
        let at = self.free.pop().unwrap_or(self.members.len());
        let mut scid = [0; CID_SIZE];
        self.rng.fill(&mut scid);
        scid[..4].copy_from_slice(&u32::try_from(at)?.to_be_bytes());
        let mut dcid = [0; CID_SIZE];
        self.rng.fill(&mut dcid);
        let id = |bytes: &[u8]| ConnectionId::new(bytes).ok_or("no identifier");
        let puppet = Puppet::new(&self.setup, now, id(&scid)?, id(&dcid)?)?;
        let member = Some(Member { puppet, was_established: false });
        match self.members.get_mut(at) {
            Some(slot) => *slot = member,
            None => self.members.push(member),
        }
        self.tally.opened += 1;
        self.dirty.push(at);
        Ok(at)
    }

    /// The first datagram of a client that never sends a second one: the ClientHello is always the same, the
    /// rest is new.
    pub fn first_flight(&mut self) -> Result<Vec<u8>, Error> {
        let mut id = [0; CID_SIZE];
        self.rng.fill(&mut id);
        let dcid = ConnectionId::new(&id).ok_or("no identifier")?;
        // An identifier that no member has.
        let nobody = ConnectionId::new(&[0xff; CID_SIZE]).ok_or("no identifier")?;
        if self.hello.is_none() {
            let puppet = Puppet::new(&self.setup, Instant::now(), nobody, dcid)?;
            self.hello = Some(puppet.hello().to_vec());
        }
        let hello = self.hello.as_deref().unwrap_or_default();
        puppet::first_flight(&self.setup, nobody, dcid, hello)
    }

    /// Forgets a connection. The server is not told.
    pub fn forget(&mut self, at: usize) {
        if self.members.get_mut(at).and_then(Option::take).is_some() {
            self.free.push(at);
        }
    }

    /// The connection of this number.
    pub fn puppet(&mut self, at: usize) -> Option<&mut Puppet> {
        Some(&mut self.members.get_mut(at)?.as_mut()?.puppet)
    }

    /// How many connections are not established yet.
    pub fn opening(&self) -> usize {
        let all = self.members.iter().flatten();
        all.filter(|member| member.puppet.state == State::Handshake).count()
    }

    /// Sends a datagram from the address of this number. A datagram that the network does not take is simply
    /// not counted.
    pub fn send(&mut self, from: usize, datagram: &[u8]) {
        let socket = self.sockets.get(from % ADDRESSES);
        if socket.is_some_and(|socket| socket.send_to(datagram, self.server).is_ok()) {
            self.tally.bytes += datagram.len() as u64;
            self.tally.datagrams += 1;
        }
    }

    /// Sends a packet with these frames on a connection; returns whether the connection could.
    pub fn say(&mut self, at: usize, payload: &[u8]) -> bool {
        let packet = self.puppet(at).and_then(|puppet| puppet.packet(payload));
        packet.inspect(|packet| self.send(at, packet)).is_some()
    }

    /// Sends a packet that is repeated if it is lost; returns whether the connection could.
    pub fn insist(&mut self, now: Instant, at: usize, payload: Vec<u8>) -> bool {
        let packet = self.puppet(at).and_then(|puppet| puppet.reliable(now, payload));
        packet.inspect(|packet| self.send(at, packet)).is_some()
    }

    /// Takes the received datagrams, and sends the packets that the protocol demands.
    pub fn turn(&mut self, now: Instant) {
        for at in 0..self.sockets.len() {
            self.receive(now, at);
        }
        if now - self.ticked >= TICK {
            self.ticked = now;
            self.members.iter_mut().flatten().for_each(|member| member.puppet.tick(now));
            self.dirty.extend(0..self.members.len());
        }
        self.dirty.sort_unstable();
        self.dirty.dedup();
        for at in std::mem::take(&mut self.dirty) {
            let Some(Some(member)) = self.members.get_mut(at) else { continue };
            let mut datagrams = Vec::new();
            member.puppet.flush(now, &mut |datagram: &[u8]| datagrams.push(datagram.to_vec()));
            datagrams.iter().for_each(|datagram| self.send(at, datagram));
        }
    }

    fn receive(&mut self, now: Instant, socket: usize) {
        let mut buffer = std::mem::take(&mut self.buffer);
        for _ in 0..BATCH {
            let Some(received) = self.sockets.get(socket).map(|socket| socket.recv(&mut buffer))
            else {
                break;
            };
            match received {
                Ok(size) => {
                    self.tally.received_bytes += size as u64;
                    self.dispatch(now, buffer.get_mut(..size).unwrap_or_default());
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // The server may be gone, as ICMP reports.
                Err(_) => {}
            }
        }
        self.buffer = buffer;
    }

    fn dispatch(&mut self, now: Instant, datagram: &mut [u8]) {
        let is_long = datagram.first().is_some_and(|first| first & 0x80 != 0);
        let start = if is_long { 6 } else { 1 };
        let Some(slot) = datagram.get(start..).and_then(|rest| rest.first_chunk()) else { return };
        let at = u32::from_be_bytes(*slot) as usize;
        let Some(Some(member)) = self.members.get_mut(at) else { return };
        let before = member.puppet.state;
        member.puppet.handle(now, datagram);
        if member.puppet.is_established() && !member.was_established {
            member.was_established = true;
            self.tally.established += 1;
        }
        if let State::Closed(code) = member.puppet.state
            && before != member.puppet.state
        {
            self.tally.closed += 1;
            self.tally.last_code = Some(code);
        }
        self.dirty.push(at);
    }
}
