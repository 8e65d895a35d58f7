//! One connection of a client that follows the protocol just far enough to be let in, and then sends
//! whichever frames it is told to send.
//!
//! The client completes the handshake, acknowledges received packets and repeats lost ones. It has no
//! congestion control, heeds no limit of the server, and remembers only the number of streams.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use sutura_benches::Error;
use sutura_proto::crypto::{ClientCrypto, KeyChange, Keys, Session, SessionVersions};
use sutura_proto::fuzz::encode_ack;
use sutura_proto::fuzz::packet::{
    Coalesced, DecodedPacket, HeaderRules, LongHeader, LongType, PacketType, ProtectedPacket,
    ShortHeader, TruncatedNumber,
};
use sutura_proto::fuzz::range_set::RangeSet;
use sutura_proto::wire_format::{Carrier, Close, Frame, FrameIter, TransportParameters};
use sutura_proto::{ConnectionId, Dir, Side, SpaceId, StreamId, Version};

/// Bytes of frames that fit into a packet of 1200 bytes.
pub const ROOM: usize = 1150;
/// Bytes of the identifiers of these clients.
pub const CID_SIZE: usize = 8;
/// Bytes that sealing adds.
const TAG_SIZE: usize = 16;
/// Bytes of CRYPTO data in a packet.
const CRYPTO_CHUNK: usize = 1100;
/// The smallest datagram with an Initial packet (RFC 9000 section 14.1).
const INITIAL_SIZE: usize = 1200;
/// How long the client waits for an answer or an acknowledgement before it repeats packets.
const PATIENCE: Duration = Duration::from_millis(400);
/// How many later packets may be acknowledged before a packet counts as lost. Loopback does not reorder.
const REORDERING: u64 = 64;
/// Ranges of packet numbers that are remembered and acknowledged.
const MAX_RANGES: usize = 32;
/// The client's identifiers have [`CID_SIZE`] bytes, and the fixed bit of its packets must be set.
const RULES: HeaderRules = HeaderRules { local_cid_len: CID_SIZE, greased: false };

/// The settings that all clients of an attack have in common.
pub struct Setup {
    pub crypto: ClientCrypto,
    pub parameters: TransportParameters,
}

/// How far a client has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Handshake,
    Established,
    /// The server has closed the connection with this code.
    Closed(u64),
}

#[derive(Default)]
struct Space {
    keys: Option<Keys>,
    next: u64,
    received: RangeSet,
    ack_due: bool,
    /// CRYPTO data to send, and how much of it was sent.
    crypto: Vec<u8>,
    crypto_sent: usize,
    /// CRYPTO data received ahead of its turn, and how much was read.
    early: BTreeMap<u64, Vec<u8>>,
    crypto_read: u64,
    /// Payloads that are repeated until they are acknowledged, with the time of their sending.
    unacknowledged: BTreeMap<u64, (Instant, Vec<u8>)>,
}

/// A client's connection.
pub struct Puppet {
    session: Box<dyn Session>,
    crypto: ClientCrypto,
    spaces: [Space; 3],
    dcid: ConnectionId,
    scid: ConnectionId,
    token: Vec<u8>,
    pub state: State,
    pub opened_at: Instant,
    /// How many bidirectional streams the server lets the client open, and how many the client has opened.
    pub max_streams: u64,
    pub streams: u64,
    /// Streams whose end was received.
    pub answered: u64,
    /// The largest offset of connection identifiers that the server has issued.
    pub newest_cid: u64,
    /// Whether packets are acknowledged.
    pub acknowledges: bool,
    /// Source symbols that were received.
    pub heard_symbols: u64,
    /// Packets of the attack so far.
    pub packets: u64,
    /// A number for the attack's own use, such as the next offset.
    pub counter: u64,
    /// The server's transport parameters, and the limits that it has raised since.
    theirs: TransportParameters,
    stream_credit: BTreeMap<StreamId, u64>,
    max_data: u64,
    last_heard: Instant,
    /// Whether the server has said that the handshake is done.
    confirmed: bool,
}

impl Puppet {
    /// A client that calls itself `scid` and the server `dcid`.
    pub fn new(
        setup: &Setup,
        now: Instant,
        scid: ConnectionId,
        dcid: ConnectionId,
    ) -> Result<Self, Error> {
        let mut parameters = setup.parameters.clone();
        parameters.initial_source_connection_id = Some(scid);
        let mut encoded = Vec::new();
        parameters.encode(Side::Client, &mut encoded);
        let version = Version::V1.number();
        let versions = SessionVersions::fixed(version);
        let session = setup.crypto.start_session(versions, "localhost", encoded)?;
        let mut puppet = Self {
            session,
            crypto: Arc::clone(&setup.crypto),
            spaces: Default::default(),
            dcid,
            scid,
            token: Vec::new(),
            state: State::Handshake,
            opened_at: now,
            max_streams: 0,
            streams: 0,
            answered: 0,
            newest_cid: 0,
            acknowledges: true,
            heard_symbols: 0,
            packets: 0,
            counter: 0,
            theirs: TransportParameters::default(),
            stream_credit: BTreeMap::new(),
            max_data: 0,
            last_heard: now,
            confirmed: false,
        };
        puppet.space(SpaceId::Initial).keys = Some(setup.crypto.initial_keys(version, &dcid)?);
        puppet.take_handshake();
        Ok(puppet)
    }

    /// Whether frames can be sent.
    pub fn is_established(&self) -> bool {
        self.state == State::Established
    }

    /// The first flight: the CRYPTO data of TLS before the server has answered.
    pub fn hello(&self) -> &[u8] {
        &self.spaces[SpaceId::Initial as usize].crypto
    }

    /// A 1-RTT packet with these frames; `None` before the handshake is complete or after the end.
    pub fn packet(&mut self, payload: &[u8]) -> Option<Vec<u8>> {
        if !self.is_established() {
            return None;
        }
        let mut out = Vec::with_capacity(payload.len() + 64);
        self.seal(SpaceId::Data, payload, 0, &mut out)?;
        Some(out)
    }

    /// A 1-RTT packet with these frames, which are sent again if the packet is lost.
    pub fn reliable(&mut self, now: Instant, payload: Vec<u8>) -> Option<Vec<u8>> {
        let out = self.packet(&payload)?;
        let space = self.space(SpaceId::Data);
        space.unacknowledged.insert(space.next - 1, (now, payload));
        Some(out)
    }

    /// The offset up to which a unidirectional stream may be written, if no other stream is.
    pub fn credit(&self, stream: StreamId) -> u64 {
        let initial = self.theirs.initial_max_stream_data_uni;
        let credit = self.stream_credit.get(&stream).copied().unwrap_or(initial);
        // The other streams have taken little of the connection's credit.
        credit.min(self.max_data.saturating_sub(ROOM as u64))
    }

    /// Appends an ACK of the received packets, with at most `ranges` ranges, each of a single packet if more
    /// than one range is allowed.
    pub fn ack_again(&self, ranges: usize, out: &mut Vec<u8>) {
        let received = &self.spaces[SpaceId::Data as usize].received;
        let Some(largest) = received.max() else { return Frame::Ping.encode(out) };
        let every_second = (0..ranges as u64).map_while(|n| largest.checked_sub(2 * n));
        let known = every_second.filter(|number| received.contains(*number));
        let known: Vec<_> = known.map(|number| number..number + 1).collect();
        encode_ack(known.into_iter(), 0, None, ROOM, out);
    }

    /// Appends an ACK of packets that were not sent yet.
    pub fn ack_unsent(&self, out: &mut Vec<u8>) {
        let received = &self.spaces[SpaceId::Data as usize].received;
        let next = received.max().unwrap_or(0) + 1000;
        encode_ack(std::iter::once(next..next + 1), 0, None, ROOM, out);
    }

    fn space(&mut self, space: SpaceId) -> &mut Space {
        &mut self.spaces[space as usize]
    }

    /// Appends a packet; the datagram is padded to `size` bytes.
    fn seal(&mut self, id: SpaceId, payload: &[u8], size: usize, out: &mut Vec<u8>) -> Option<()> {
        let (dcid, scid) = (self.dcid, self.scid);
        let token = std::mem::take(&mut self.token);
        let space = &mut self.spaces[id as usize];
        let keys = space.keys.as_ref()?;
        let start = out.len();
        let number = TruncatedNumber::with_size(space.next, 4);
        let long = |ty| LongHeader { version: Version::V1, ty, dcid, scid };
        let layout = match id {
            SpaceId::Initial => long(LongType::Initial { token: &token }).encode(number, out),
            SpaceId::Handshake => long(LongType::Handshake).encode(number, out),
            SpaceId::Data => {
                ShortHeader { dcid, spin: false, key_phase: false }.encode(number, out)
            }
        };
        self.token = token;
        out.extend_from_slice(payload);
        let least = size.saturating_sub(TAG_SIZE).max(layout.payload + 4);
        out.resize(out.len().max(least), 0);
        layout.finish(TAG_SIZE, out).ok()?;
        out.resize(out.len() + TAG_SIZE, 0);
        let (number, length) = (layout.number - start, layout.payload - layout.number);
        keys.local.protect(space.next, out.get_mut(start..)?, number, length).ok()?;
        space.next += 1;
        Some(())
    }

    /// Sends the packets that are due: handshake, acknowledgements and repetitions.
    pub fn flush(&mut self, now: Instant, send: &mut impl FnMut(&[u8])) {
        for id in SpaceId::ALL {
            while let Some(payload) = self.due(now, id) {
                let size = if id == SpaceId::Initial { INITIAL_SIZE } else { 0 };
                let mut out = Vec::with_capacity(INITIAL_SIZE + 64);
                if self.seal(id, &payload, size, &mut out).is_none() {
                    break;
                }
                send(&out);
            }
        }
    }

    /// The frames of the next packet of this space.
    fn due(&mut self, now: Instant, id: SpaceId) -> Option<Vec<u8>> {
        let acknowledges = self.acknowledges || id != SpaceId::Data;
        let space = &mut self.spaces[id as usize];
        space.keys.as_ref()?;
        let mut payload = Vec::new();
        if std::mem::take(&mut space.ack_due) && acknowledges {
            let ranges = space.received.iter().rev();
            encode_ack(ranges, 0, None, 300, &mut payload);
        }
        if let Some(rest) = space.crypto.get(space.crypto_sent..).filter(|rest| !rest.is_empty()) {
            let data = rest.get(..CRYPTO_CHUNK.min(rest.len())).unwrap_or_default();
            Frame::Crypto { offset: space.crypto_sent as u64, data }.encode(&mut payload);
            space.crypto_sent += data.len();
        } else if let Some(mut first) = space.unacknowledged.first_entry()
            && now.saturating_duration_since(first.get().0) > PATIENCE
        {
            // The payload gets a new packet number, and thereby moves to the end of the list.
            let (_, again) = std::mem::replace(first.get_mut(), (now, Vec::new()));
            first.remove();
            payload.extend_from_slice(&again);
            space.unacknowledged.insert(space.next, (now, again));
        }
        (!payload.is_empty()).then_some(payload)
    }

    /// Repeats the handshake after some time without an answer.
    pub fn tick(&mut self, now: Instant) {
        let over = self.confirmed || matches!(self.state, State::Closed(_));
        if !over && now - self.last_heard > PATIENCE {
            self.last_heard = now;
            self.spaces.iter_mut().for_each(|space| space.crypto_sent = 0);
        }
    }

    /// Takes a datagram of the server.
    pub fn handle(&mut self, now: Instant, datagram: &mut [u8]) {
        self.last_heard = now;
        let mut packets = Coalesced::new(RULES);
        while let Some(Ok(packet)) = packets.next(datagram) {
            match packet {
                DecodedPacket::Protected(packet) => drop(self.open(&packet, datagram)),
                DecodedPacket::Retry(retry) => {
                    self.token = datagram.get(retry.token).unwrap_or_default().to_vec();
                    self.dcid = retry.scid;
                    let keys = self.crypto.initial_keys(Version::V1.number(), &retry.scid);
                    let space = self.space(SpaceId::Initial);
                    space.keys = keys.ok();
                    space.crypto_sent = 0;
                }
                DecodedPacket::VersionNegotiation(_) => {}
            }
        }
    }

    fn open(&mut self, packet: &ProtectedPacket, datagram: &mut [u8]) -> Option<()> {
        let id = packet.ty.space();
        if id == SpaceId::Initial && self.state == State::Handshake {
            self.dcid = packet.scid;
        }
        let space = &mut self.spaces[id as usize];
        let remote = &space.keys.as_ref()?.remote;
        let whole = datagram.get_mut(packet.start..packet.end)?;
        remote.header.unprotect(whole, packet.number - packet.start).ok()?;
        let header = packet.unprotected(datagram).ok()?;
        let number = header.number.expand(space.received.max().map_or(0, |max| max + 1));
        let (head, payload) = datagram.split_at_mut_checked(header.payload.start)?;
        let payload = payload.get_mut(..packet.end - header.payload.start)?;
        let head = head.get(header.header.start..)?;
        let size = remote.packet.open(number, head, payload).ok()?;
        if space.received.contains(number) {
            return None;
        }
        space.received.insert(number..number + 1);
        while space.received.len() > MAX_RANGES
            && let Some(oldest) = space.received.first()
        {
            space.received.remove(oldest);
        }
        self.frames(packet.ty, payload.get(..size)?);
        Some(())
    }

    fn frames(&mut self, ty: PacketType, payload: &[u8]) {
        let id = ty.space();
        for frame in FrameIter::new(payload, ty.carrier()) {
            let Ok(frame) = frame else { return };
            if !matches!(frame, Frame::Ack(_) | Frame::Padding | Frame::Close(_)) {
                self.space(id).ack_due = true;
            }
            match frame {
                Frame::Ack(ack) => self.on_ack(id, ack.largest, ack.ranges()),
                Frame::Crypto { offset, data } => self.on_crypto(id, offset, data),
                Frame::MaxStreams { dir: Dir::Bi, max } => {
                    self.max_streams = self.max_streams.max(max);
                }
                Frame::MaxData(max) => self.max_data = self.max_data.max(max),
                Frame::MaxStreamData { id, max } => {
                    let credit = self.stream_credit.entry(id).or_default();
                    *credit = max.max(*credit);
                }
                Frame::Stream(stream) => self.answered += u64::from(stream.fin),
                Frame::NewConnectionId(new) => self.newest_cid = self.newest_cid.max(new.sequence),
                Frame::HandshakeDone => self.confirmed = true,
                Frame::Close(Close::Transport { code, .. }) => self.state = State::Closed(code.0),
                Frame::Close(Close::Application { code, .. }) => self.state = State::Closed(code),
                Frame::SourceSymbol(symbol) => {
                    self.heard_symbols += 1;
                    let inner = FrameIter::new(symbol.frames, Carrier::SourceSymbol);
                    let ends = inner
                        .flatten()
                        .filter(|frame| matches!(frame, Frame::Stream(stream) if stream.fin));
                    self.answered += ends.count() as u64;
                }
                _ => {}
            }
        }
    }

    fn on_ack(
        &mut self,
        id: SpaceId,
        largest: u64,
        ranges: impl Iterator<Item = std::ops::Range<u64>>,
    ) {
        let space = self.space(id);
        for range in ranges {
            let within = space.unacknowledged.range(range).map(|(number, _)| *number);
            let within: Vec<u64> = within.collect();
            within.iter().for_each(|number| drop(space.unacknowledged.remove(number)));
        }
        // Packets that this many later packets have overtaken are sent again at once.
        let lost = space.unacknowledged.range_mut(..largest.saturating_sub(REORDERING));
        for (_, (sent, _)) in lost {
            *sent = sent.checked_sub(PATIENCE * 2).unwrap_or(*sent);
        }
    }

    fn on_crypto(&mut self, id: SpaceId, offset: u64, data: &[u8]) {
        let space = self.space(id);
        if offset + data.len() as u64 > space.crypto_read {
            space.early.insert(offset, data.to_vec());
        }
        while let Some(entry) = self.space(id).early.first_entry() {
            let (offset, data) = (*entry.key(), entry.get().clone());
            let space = self.space(id);
            if offset > space.crypto_read {
                return;
            }
            space.early.remove(&offset);
            let skip = usize::try_from(space.crypto_read - offset).unwrap_or(usize::MAX);
            let Some(news) = data.get(skip..) else { continue };
            space.crypto_read += news.len() as u64;
            if self.session.read_handshake(id, news).is_err() {
                return;
            }
            self.take_handshake();
        }
    }

    /// Takes the CRYPTO data and the keys from TLS.
    fn take_handshake(&mut self) {
        loop {
            let level = match &self.spaces {
                [_, _, data] if data.keys.is_some() => SpaceId::Data,
                [_, handshake, _] if handshake.keys.is_some() => SpaceId::Handshake,
                _ => SpaceId::Initial,
            };
            let mut out = Vec::new();
            let change = self.session.write_handshake(&mut out);
            self.space(level).crypto.append(&mut out);
            match change {
                Some(KeyChange::Handshake(keys)) => {
                    self.space(SpaceId::Handshake).keys = Some(keys);
                }
                Some(KeyChange::OneRtt(keys)) => {
                    self.space(SpaceId::Data).keys = Some(keys);
                }
                None => break,
            }
        }
        if self.state == State::Handshake && !self.session.is_handshaking() {
            self.state = State::Established;
            let theirs = self.session.transport_parameters().unwrap_or_default();
            if let Ok(theirs) = TransportParameters::decode(theirs, Side::Server) {
                self.max_streams = theirs.initial_max_streams_bidi;
                self.max_data = theirs.initial_max_data;
                self.theirs = theirs;
            }
        }
    }
}

/// A datagram with an Initial packet that carries `hello`, from a client that calls itself `scid`.
pub fn first_flight(
    setup: &Setup,
    scid: ConnectionId,
    dcid: ConnectionId,
    hello: &[u8],
) -> Result<Vec<u8>, Error> {
    let keys = setup.crypto.initial_keys(Version::V1.number(), &dcid)?;
    let mut out = Vec::with_capacity(INITIAL_SIZE);
    let header =
        LongHeader { version: Version::V1, ty: LongType::Initial { token: &[] }, dcid, scid };
    let layout = header.encode(TruncatedNumber::with_size(0, 4), &mut out);
    Frame::Crypto { offset: 0, data: hello }.encode(&mut out);
    out.resize(out.len().max(INITIAL_SIZE - TAG_SIZE), 0);
    layout.finish(TAG_SIZE, &mut out).map_err(|error| error.to_string())?;
    out.resize(out.len() + TAG_SIZE, 0);
    keys.local.protect(0, &mut out, layout.number, layout.payload - layout.number)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{bidi, whole};
    use sutura_benches::tls::{ALPN, Identity, aes_128_gcm};
    use sutura_proto::crypto::rustls::{RustlsClientConfig, RustlsServerConfig};
    use sutura_proto::{
        Connection, ConnectionError, DatagramEvent, Endpoint, EndpointConfig, Event, ServerConfig,
        TransportConfig,
    };

    /// A puppet and a server, in memory.
    struct World {
        now: Instant,
        puppet: Puppet,
        endpoint: Endpoint,
        server: Option<Box<Connection>>,
    }

    impl World {
        fn new(retry: bool) -> Self {
            let identity = Identity::new().unwrap();
            let tls = identity.server_tls(aes_128_gcm()).unwrap();
            let crypto = Arc::new(RustlsServerConfig::new(tls).unwrap());
            let config = ServerConfig::new(crypto, Arc::new(TransportConfig::default()));
            let limits = EndpointConfig::default().with_retry_above(retry.then_some(0));
            let endpoint = Endpoint::new(Arc::new(limits), Some(Arc::new(config)), [1; 32]);
            let tls = identity.client_tls(aes_128_gcm()).unwrap();
            let setup = Setup {
                crypto: Arc::new(RustlsClientConfig::new(tls).unwrap()),
                parameters: TransportParameters::default(),
            };
            let id = |n| ConnectionId::new(&[n; CID_SIZE]).unwrap();
            let now = Instant::now();
            let puppet = Puppet::new(&setup, now, id(1), id(2)).unwrap();
            Self { now, puppet, endpoint, server: None }
        }

        /// Moves the datagrams of both ends, for a second of their time.
        fn exchange(&mut self) {
            for _ in 0..100 {
                let mut up = Vec::new();
                self.puppet.tick(self.now);
                self.puppet.flush(self.now, &mut |datagram: &[u8]| up.push(datagram.to_vec()));
                up.into_iter().for_each(|datagram| self.deliver_up(datagram));
                self.deliver_down();
                self.now += Duration::from_millis(10);
            }
        }

        fn deliver_up(&mut self, mut datagram: Vec<u8>) {
            let from = ([192, 0, 2, 1], 1).into();
            match self.endpoint.handle(self.now, from, &datagram) {
                DatagramEvent::NewConnection(incoming) => {
                    self.server = self.endpoint.accept(self.now, incoming);
                }
                DatagramEvent::Respond(mut answer) => self.puppet.handle(self.now, &mut answer),
                DatagramEvent::Connection(_)
                | DatagramEvent::Drop
                | DatagramEvent::Elsewhere(_) => {}
            }
            if let Some(server) = &mut self.server {
                server.handle_datagram(self.now, from, None, &mut datagram);
            }
        }

        fn deliver_down(&mut self) {
            let Some(server) = &mut self.server else { return };
            if server.poll_timeout().is_some_and(|at| at <= self.now) {
                server.handle_timeout(self.now);
            }
            let mut out = Vec::new();
            while server.poll_transmit(self.now, 1, &mut out).is_some() {
                self.puppet.handle(self.now, &mut out);
                out.clear();
            }
        }

        fn events(&mut self) -> Vec<Event> {
            let server = self.server.as_mut().unwrap();
            std::iter::from_fn(|| server.poll_event()).collect()
        }
    }

    #[test]
    fn a_puppet_is_let_in_and_says_what_it_is_told() {
        assert_eq!(ALPN, b"perf");
        for retry in [false, true] {
            let mut world = World::new(retry);
            world.exchange();
            assert!(world.puppet.is_established() && world.puppet.confirmed, "retry: {retry}");
            assert!(world.events().contains(&Event::Connected));
            assert!(world.puppet.max_streams > 0);
            let mut payload = Vec::new();
            whole(bidi(0), b"hello", true, &mut payload);
            // The first packet is lost.
            assert!(world.puppet.reliable(world.now, payload).is_some());
            world.exchange();
            assert_eq!(world.server.as_mut().unwrap().accept(Dir::Bi), Some(bidi(0)));
            let unacknowledged = &world.puppet.spaces[SpaceId::Data as usize].unacknowledged;
            assert!(unacknowledged.is_empty());
        }
    }

    #[test]
    fn a_puppet_learns_that_its_connection_is_over() {
        let mut world = World::new(false);
        world.exchange();
        let mut payload = Vec::new();
        world.puppet.ack_unsent(&mut payload);
        let packet = world.puppet.packet(&payload).unwrap();
        world.deliver_up(packet);
        world.exchange();
        assert_eq!(world.puppet.state, State::Closed(0x0a));
        let lost =
            |event: &Event| matches!(event, Event::ConnectionLost(ConnectionError::Transport(_)));
        assert!(world.events().iter().any(lost));
    }
}
