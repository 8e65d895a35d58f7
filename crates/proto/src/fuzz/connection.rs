//! Two connections whose packets are rewritten by a fuzzer: their contents, not only the
//! ciphertext.
//!
//! With null cryptography a packet's payload is readable, and anyone with the sender's keys can
//! seal it again after a change. Hostile frames therefore get past packet protection, as the frames of a
//! hostile peer would.

use crate::cid_generator::USUAL_CID_SIZE;
use crate::connection::{Connection, EndpointEvent, TAG_SIZE};
use crate::crypto::null::{NullClientConfig, NullServerConfig};
use crate::endpoint::{DatagramEvent, Endpoint};
use crate::fec::redundancy::stand_in::Mender;
use crate::ids::{ConnectionHandle, Dir, Side, StreamId};
use crate::wire::packet::{Coalesced, DecodedPacket, HeaderRules, ProtectedPacket};
use crate::{
    AckFrequencyConfig, ClientConfig, CodeSet, EndpointConfig, FecConfig, MAX_UDP_PAYLOAD,
    MIN_UDP_PAYLOAD, MessageOptions, Priority, Protection, ServerConfig, SocketFeatures,
    Standstill, TransportConfig,
};
use bytes::Bytes;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// This bit of the first byte asks for a connection that begins in 0-RTT.
const EARLY: u8 = 0x80;
/// This bit of the first byte lets both ends search for larger packets.
const SEARCH: u8 = 0x40;
/// Steps that are enough for an undisturbed handshake.
const HANDSHAKE_STEPS: usize = 30;
/// The most steps in one run.
const MAX_STEPS: usize = 600;
/// How often a connection may need its timers handled at one instant.
const MAX_TIMEOUTS: usize = 8;
/// How many datagrams a connection may send at one instant.
const MAX_DATAGRAMS: usize = 2_000;
const LATENCY: Duration = Duration::from_millis(10);
/// Time passes in steps of at most this, so that applications act while packets are in transit.
const STEP: Duration = Duration::from_millis(4);

/// Reads actions from the fuzzer's input; yields zeros once it is used up.
pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl<'a> Input<'a> {
    /// Whether it is used up.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let Some((&byte, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        byte
    }

    pub(crate) fn index(&mut self, len: usize) -> usize {
        let value = usize::from(self.byte()) << 8 | usize::from(self.byte());
        value.checked_rem(len).unwrap_or(0)
    }

    pub(crate) fn bytes(&mut self, max: usize) -> &'a [u8] {
        let len = usize::from(self.byte()).min(max).min(self.0.len());
        let (bytes, rest) = self.0.split_at(len);
        self.0 = rest;
        bytes
    }
}

/// Lets a connection send all that it has to send now, and gives each datagram with its destination to
/// `sent`. Panics if it never stops, and if it has nothing to send and waits for nothing.
pub(crate) fn transmit(
    connection: &mut Connection,
    now: Instant,
    mut sent: impl FnMut(&Connection, SocketAddr, &[u8]),
) {
    let mut out = Vec::new();
    for calls in 0.. {
        assert!(calls < MAX_DATAGRAMS, "a connection never stops sending");
        out.clear();
        let Some(transmit) = connection.poll_transmit(now, 10, &mut out) else {
            assert_ne!(connection.standstill(now), Standstill::Stuck);
            assert_eq!(connection.check(), Ok(()));
            return;
        };
        assert_eq!(transmit.size, out.len());
        for datagram in out.chunks(transmit.segment_size.unwrap_or(out.len())) {
            sent(connection, transmit.destination, datagram);
        }
    }
}

/// Lets the timers of a connection fire that are due. Panics if one spins.
pub(crate) fn fire(connection: &mut Connection, now: Instant) {
    let mut fired = 0;
    while connection.poll_timeout().is_some_and(|at| at <= now) {
        connection.handle_timeout(now);
        fired += 1;
        assert!(fired < MAX_TIMEOUTS, "a timer spins");
    }
}

struct End {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Box<Connection>)>,
    address: SocketAddr,
    streams: Vec<StreamId>,
}

struct World {
    ends: [End; 2],
    now: Instant,
    /// Datagrams in transit: arrival time, receiver and bytes.
    wire: VecDeque<(Instant, Side, Vec<u8>)>,
    config: ClientConfig,
    /// Longer datagrams are lost.
    longest: usize,
}

/// Runs two connections while `data` decides about their packets and the actions of their applications.
pub fn connection(data: &[u8]) {
    let mut input = Input(data);
    let seed = input.byte();
    let Some(mut world) = World::new(seed) else { return };
    if seed & EARLY != 0 && world.resume().is_none() {
        return;
    }
    for _ in 0..MAX_STEPS {
        world.meddle(&mut input);
        for side in [Side::Client, Side::Server] {
            world.act(side, &mut input);
            world.transmit(side, &mut input);
        }
        let patience = if input.is_empty() { Duration::MAX } else { STEP };
        if !world.advance(patience) {
            break;
        }
    }
}

/// A protection that the fuzzer chooses.
fn protection(input: &mut Input<'_>) -> Protection {
    let burst = u32::from(input.byte() % 5);
    let delay = Duration::from_millis(u64::from(input.byte() % 30));
    match burst {
        0 => Protection::new(Arc::new(Mender)),
        1 | 3 => Protection::incremental(burst, delay),
        _ => Protection::tail(burst, delay),
    }
}

/// Sends a message, and cancels it or not.
fn send_message(now: Instant, connection: &mut Connection, input: &mut Input<'_>) {
    let later = |byte: u8| Some(now + Duration::from_millis(4 * u64::from(byte)));
    let kind = input.byte();
    let options = MessageOptions {
        deadline: later(input.byte()).filter(|_| kind & 1 > 0),
        cancel_late: (kind & 2 > 0).then_some(9),
        unreliable: kind & 4 > 0,
        ..MessageOptions::default()
    };
    connection.next_message_at(later(kind).filter(|_| kind & 8 > 0));
    let size = 40 * usize::from(input.byte());
    if let Ok(id) = connection.send_message(Bytes::from(vec![8; size]), options)
        && kind & 48 == 48
    {
        connection.cancel_message(id, 9);
    }
}

impl World {
    fn new(seed: u8) -> Option<Self> {
        let alpn = vec![b"fuzz".to_vec()];
        let fec = Some(FecConfig { codes: CodeSet::all(), ..FecConfig::default() });
        let ack_frequency = Some(AckFrequencyConfig { acks_per_window: 2, max_packets: 9 });
        let transport =
            Arc::new(TransportConfig { fec, ack_frequency, ..TransportConfig::default() });
        let crypto = Arc::new(NullServerConfig::new(alpn.clone()).with_early_data());
        let server = Arc::new(ServerConfig { crypto, transport: transport.clone() });
        let socket =
            SocketFeatures { unfragmented: seed & SEARCH != 0, ..SocketFeatures::default() };
        let endpoint = EndpointConfig { socket, ..EndpointConfig::default() };
        let end = |server, port, seed| End {
            endpoint: Endpoint::new(Arc::new(endpoint.clone()), server, [seed; 32]),
            connection: None,
            address: ([127, 0, 0, 1], port).into(),
            streams: Vec::new(),
        };
        let ends = [end(None, 1, seed), end(Some(server), 2, !seed)];
        let now = Instant::now();
        let crypto = Arc::new(NullClientConfig::new(alpn).with_early_data());
        let config = ClientConfig { crypto, transport };
        let (wire, longest) = (VecDeque::new(), usize::MAX);
        let mut world = Self { ends, now, wire, config, longest };
        world.connect()?;
        Some(world)
    }

    fn connect(&mut self) -> Option<()> {
        let (config, remote) = (self.config.clone(), self.ends[1].address);
        let opened = self.ends[0].endpoint.connect(self.now, config, remote, "localhost");
        self.ends[0].connection = Some(opened.ok()?);
        Some(())
    }

    /// Completes the handshake, forgets the connection, and begins another one in 0-RTT.
    fn resume(&mut self) -> Option<()> {
        for _ in 0..HANDSHAKE_STEPS {
            for side in [Side::Client, Side::Server] {
                self.transmit(side, &mut Input(&[]));
            }
            self.advance(STEP);
        }
        for end in &mut self.ends {
            let (handle, _) = end.connection.take()?;
            end.endpoint.handle_event(handle, EndpointEvent::Drained);
        }
        self.wire.clear();
        self.connect()?;
        let (_, client) = self.ends[0].connection.as_mut()?;
        client.start_0rtt(self.now).then_some(())
    }

    /// Changes the path: the client moves, noticing it or not, or longer datagrams are lost from now on.
    fn meddle(&mut self, input: &mut Input<'_>) {
        let kind = input.byte();
        let [client, _] = &mut self.ends;
        match kind {
            200..210 => client.address.set_port(client.address.port().wrapping_add(1).max(1)),
            210..220 => {
                client.address = ([198, 51, 100, kind], 1).into();
                if let Some((_, connection)) = &mut client.connection {
                    connection.local_address_changed(self.now);
                }
            }
            220..230 => self.longest = MIN_UDP_PAYLOAD.into(),
            230..240 => self.longest = MAX_UDP_PAYLOAD.into(),
            _ => {}
        }
    }

    /// Performs one action of the application.
    fn act(&mut self, side: Side, input: &mut Input<'_>) {
        let (now, End { connection, streams, .. }) = (self.now, &mut self.ends[side as usize]);
        let Some((_, connection)) = connection else { return };
        while connection.poll_event().is_some() {}
        streams.extend(Dir::ALL.into_iter().filter_map(|dir| connection.accept(dir)));
        match input.byte() % 16 {
            1 | 2 => streams.extend(connection.open(Dir::Uni)),
            3 => streams.extend(connection.open(Dir::Bi)),
            4 => {
                let mut datagrams = connection.datagrams();
                let longest = datagrams.max_size().unwrap_or(0);
                let size = longest.saturating_sub(input.index(longest + 1).min(longest));
                let _ = datagrams.send(Bytes::from(vec![7; size]));
            }
            5 if input.byte() == 255 => connection.close(now, 3, b"fuzz"),
            6 => connection.datagrams().protect(Some(protection(input))),
            7 => send_message(now, connection, input),
            8 => while connection.poll_message_outcome().is_some() {},
            9 => drop(connection.update_keys()),
            _ => {}
        }
        let index = input.index(streams.len());
        let Some(&id) = streams.get(index) else { return };
        match input.byte() % 15 {
            0..=3 => {
                let _ = connection.send_stream(id).write(&[1; 2_500]);
            }
            4 | 5 => {
                let _ = connection.send_stream(id).protect(Some(protection(input)));
            }
            6 => drop(connection.send_stream(id).finish()),
            7 => drop(connection.send_stream(id).reset(1)),
            8 => drop(connection.recv_stream(id).stop(1)),
            12 => drop(connection.send_stream(id).reset_at(1, 10 * u64::from(input.byte()))),
            13 => drop(connection.send_stream(id).protect(None)),
            14 => {
                let priority = Priority::new(input.byte() % 8, false).unwrap_or_default();
                let _ = connection.send_stream(id).set_priority(priority);
            }
            9 => while let Ok(Some(_)) = connection.recv_stream(id).read_chunk(1_000, false) {},
            _ => while let Ok(Some(_)) = connection.recv_stream(id).read_chunk(1_000, true) {},
        }
    }

    /// Lets one end send and the fuzzer tamper with its datagrams.
    fn transmit(&mut self, side: Side, input: &mut Input<'_>) {
        let (now, end) = (self.now, &mut self.ends[side as usize]);
        let Some((handle, connection)) = &mut end.connection else { return };
        transmit(connection, now, |sender, _, datagram| {
            let mut datagram = datagram.to_vec();
            let arrives = datagram.len() <= self.longest;
            let copies = tamper(sender, &mut datagram, input) * usize::from(arrives);
            for _ in 0..copies {
                self.wire.push_back((now + LATENCY, side.peer(), datagram.clone()));
            }
        });
        while let Some(event) = connection.poll_endpoint_event() {
            end.endpoint.handle_event(*handle, event);
        }
    }

    /// Advances to the next event, or by `patience`; returns false if nothing will ever happen.
    fn advance(&mut self, patience: Duration) -> bool {
        let connections = self.ends.iter().filter_map(|end| end.connection.as_ref());
        let timer = connections.filter_map(|(_, connection)| connection.poll_timeout()).min();
        let arrival = self.wire.front().map(|(at, ..)| *at);
        let Some(next) = timer.into_iter().chain(arrival).min() else { return false };
        let latest = self.now.checked_add(patience).unwrap_or(next);
        self.now = self.now.max(next.min(latest));
        while let Some((_, side, datagram)) = self.wire.pop_front_if(|entry| entry.0 <= self.now) {
            self.receive(side, datagram);
        }
        for end in &mut self.ends {
            if let Some((_, connection)) = &mut end.connection {
                fire(connection, self.now);
            }
        }
        true
    }

    fn receive(&mut self, side: Side, mut datagram: Vec<u8>) {
        let remote = self.ends[side.peer() as usize].address;
        let end = &mut self.ends[side as usize];
        match end.endpoint.handle(self.now, remote, &datagram) {
            DatagramEvent::Drop | DatagramEvent::Elsewhere(_) => return,
            DatagramEvent::Respond(bytes) => {
                self.wire.push_back((self.now + LATENCY, side.peer(), bytes));
                return;
            }
            DatagramEvent::NewConnection(incoming) if end.connection.is_none() => {
                let handle = incoming.handle();
                let connection = end.endpoint.accept(self.now, incoming);
                end.connection = connection.map(|connection| (handle, connection));
            }
            DatagramEvent::NewConnection(incoming) => end.endpoint.ignore(incoming),
            DatagramEvent::Connection(_) => {}
        }
        if let Some((_, connection)) = &mut end.connection {
            connection.handle_datagram(self.now, remote, None, &mut datagram);
        }
    }
}

/// Modifies a datagram of `sender`; returns how many copies of it arrive.
fn tamper(sender: &Connection, datagram: &mut [u8], input: &mut Input<'_>) -> usize {
    match input.byte() {
        0..=150 => return 1,
        151..=170 => return 0,
        171..=180 => return 2,
        181..=190 => {
            let at = input.index(datagram.len());
            if let Some(byte) = datagram.get_mut(at) {
                *byte ^= 1 << (input.byte() % 8);
            }
            return 1;
        }
        _ => {}
    }
    let mut packets = Coalesced::new(HeaderRules { local_cid_len: USUAL_CID_SIZE, greased: true });
    while let Some(Ok(packet)) = packets.next(datagram) {
        if let DecodedPacket::Protected(packet) = packet {
            let _ = rewrite(sender, &packet, datagram, input);
        }
    }
    1
}

/// Modifies the payload of a packet and seals it again, if the sender still has the keys.
fn rewrite(
    sender: &Connection,
    packet: &ProtectedPacket,
    datagram: &mut [u8],
    input: &mut Input<'_>,
) -> Option<()> {
    let (keys, next) = sender.sealer_of(packet.ty)?;
    let whole = datagram.get_mut(packet.start..packet.end)?;
    let pn_len = keys.header.unprotect(whole, packet.number - packet.start).ok()?;
    let header = packet.unprotected(datagram).ok()?;
    let pn = header.number.expand(next);
    let end = header.payload.end.checked_sub(TAG_SIZE)?;
    let payload = datagram.get_mut(header.payload.start..end)?;
    match input.byte() % 3 {
        // Replace all of the payload, a few bytes of it, or its end; the rest of a replaced part is
        // padding.
        0 => {
            payload.fill(0);
            overwrite(payload, 0, input.bytes(200));
        }
        1 => overwrite(payload, input.index(payload.len()), input.bytes(20)),
        _ => {
            let (at, frames) = (input.index(payload.len()), input.bytes(200));
            payload.get_mut(at..)?.fill(0);
            overwrite(payload, at, frames);
        }
    }
    let whole = datagram.get_mut(packet.start..packet.end)?;
    keys.protect(pn, whole, packet.number - packet.start, pn_len).ok()
}

fn overwrite(payload: &mut [u8], at: usize, bytes: &[u8]) {
    let room = payload.get_mut(at..).unwrap_or_default();
    room.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
}
