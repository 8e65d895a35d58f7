//! Two ends of an in-memory transport, with small buffers and reads and writes as short as wanted.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use sutura_h3::{
    Code, Config, Connection, Error, Event, Fields, FrameEvent, Read, ReadError, SendDatagramError,
    SendError, Transport, WriteError,
};
use sutura_proto::{DatagramOptions, Dir, Priority, Protection, Side, StreamId};
use sutura_random::Rng;

/// One direction of a stream.
#[derive(Debug, Default)]
struct Half {
    buffer: VecDeque<u8>,
    fin: bool,
    ended: bool,
    reset: Option<Code>,
    stopped: Option<Code>,
    told_stop: bool,
}

/// The protection that connections are configured with.
pub fn default_protection() -> Protection {
    Protection::tail(9, std::time::Duration::ZERO)
}

/// The transport between two ends.
#[derive(Debug)]
pub struct Pair {
    halves: BTreeMap<(StreamId, bool), Half>,
    opened: [[u64; 2]; 2],
    accepted: [[u64; 2]; 2],
    /// How many streams a side may open, by side and direction.
    pub limits: [[u64; 2]; 2],
    /// Buffer size of one direction of a stream, in bytes.
    pub window: usize,
    /// Makes some reads and writes short and refuses others.
    pub rng: Option<Rng>,
    /// The code with which each side closed.
    pub closed: [Option<Code>; 2],
    pub priorities: Vec<(Side, StreamId, Priority)>,
    pub protections: Vec<(Side, StreamId, Option<Protection>)>,
    /// The observations of each side.
    pub observed: Vec<(Side, FrameEvent)>,
    /// Resets and stops by side, stream and code.
    pub resets: Vec<(Side, StreamId, Code)>,
    pub stops: Vec<(Side, StreamId, Code)>,
    /// Number of operations that moved data.
    pub moved: u64,
    /// Which sides want the connection to be kept alive.
    pub kept_alive: [bool; 2],
    /// Datagrams that each side is to receive; `None` if it supports none.
    pub datagrams: Option<[VecDeque<Bytes>; 2]>,
}

impl Default for Pair {
    fn default() -> Self {
        Self {
            halves: BTreeMap::new(),
            opened: [[0; 2]; 2],
            accepted: [[0; 2]; 2],
            limits: [[100; 2]; 2],
            window: 64 << 10,
            rng: None,
            closed: [None; 2],
            priorities: Vec::new(),
            protections: Vec::new(),
            observed: Vec::new(),
            resets: Vec::new(),
            stops: Vec::new(),
            moved: 0,
            kept_alive: [false; 2],
            datagrams: Some(<[VecDeque<Bytes>; 2]>::default()),
        }
    }
}

impl Pair {
    pub fn end(&mut self, side: Side) -> End<'_> {
        End { pair: self, side }
    }

    fn half(&mut self, id: StreamId, sender: Side) -> Option<&mut Half> {
        self.halves.get_mut(&(id, sender.is_client()))
    }

    /// How many of `wanted` bytes an operation moves; `None` if it is refused.
    fn some_of(&mut self, wanted: usize) -> Option<usize> {
        let Some(rng) = &mut self.rng else {
            return Some(wanted);
        };
        if rng.below(4) == 0 {
            return None;
        }
        let most = if rng.below(2) == 0 { 3 } else { 2000 };
        Some(wanted.min(1 + rng.below(most) as usize))
    }

    /// Writes past the window, as a raw peer.
    pub fn inject(&mut self, side: Side, id: StreamId, bytes: &[u8]) {
        if let Some(half) = self.half(id, side).filter(|half| half.stopped.is_none()) {
            half.buffer.extend(bytes);
        }
    }

    /// Unread bytes on a stream.
    pub fn waiting(&mut self, id: StreamId, sender: Side) -> usize {
        self.half(id, sender).map_or(0, |half| half.buffer.len())
    }

    /// Takes everything that `sender` wrote and nobody has read.
    pub fn take(&mut self, id: StreamId, sender: Side) -> Vec<u8> {
        self.half(id, sender).map_or(Vec::new(), |half| half.buffer.drain(..).collect())
    }

    /// Whether `sender` ended the stream cleanly.
    pub fn is_finished(&mut self, id: StreamId, sender: Side) -> bool {
        self.half(id, sender).is_some_and(|half| half.fin)
    }

    /// Tells `connection` the events of every stream.
    pub fn hint(&mut self, side: Side, connection: &mut Connection) {
        for (&(id, from_client), half) in &mut self.halves {
            if from_client == side.is_client() {
                if let Some(code) = half.stopped.filter(|_| !half.told_stop) {
                    half.told_stop = true;
                    connection.stopped(id, code);
                }
                connection.writable(id);
            } else {
                connection.readable(id);
            }
        }
    }
}

/// One side of the transport.
pub struct End<'a> {
    pair: &'a mut Pair,
    side: Side,
}

impl End<'_> {
    fn writable(&mut self, id: StreamId) -> Result<usize, WriteError> {
        let window = self.pair.window;
        let half = self.pair.half(id, self.side).ok_or(WriteError::Closed)?;
        if let Some(code) = half.stopped {
            return Err(WriteError::Stopped(code));
        }
        if half.fin || half.reset.is_some() {
            return Err(WriteError::Closed);
        }
        Ok(window.saturating_sub(half.buffer.len()))
    }
}

impl Transport for End<'_> {
    fn side(&self) -> Side {
        self.side
    }

    fn open(&mut self, dir: Dir) -> Option<StreamId> {
        let side = self.side as usize;
        let index = self.pair.opened[side][dir.index()];
        if index >= self.pair.limits[side][dir.index()] {
            return None;
        }
        self.pair.opened[side][dir.index()] += 1;
        let id = StreamId::new(self.side, dir, index);
        self.pair.halves.insert((id, self.side.is_client()), Half::default());
        if dir == Dir::Bi {
            self.pair.halves.insert((id, !self.side.is_client()), Half::default());
        }
        Some(id)
    }

    fn accept(&mut self, dir: Dir) -> Option<StreamId> {
        let (side, peer) = (self.side as usize, self.side.peer());
        let index = self.pair.accepted[side][dir.index()];
        (index < self.pair.opened[peer as usize][dir.index()]).then(|| {
            self.pair.accepted[side][dir.index()] += 1;
            StreamId::new(peer, dir, index)
        })
    }

    fn stream_limit(&self, dir: Dir) -> u64 {
        self.pair.limits[self.side.peer() as usize][dir.index()]
    }

    fn write(&mut self, id: StreamId, data: &[u8]) -> Result<usize, WriteError> {
        assert!(!data.is_empty());
        let room = self.writable(id)?.min(data.len());
        let n = self.pair.some_of(room).filter(|&n| n > 0).ok_or(WriteError::Blocked)?;
        self.pair.moved += 1;
        let half = self.pair.half(id, self.side).unwrap();
        half.buffer.extend(&data[..n]);
        Ok(n)
    }

    fn write_chunk(&mut self, id: StreamId, chunk: Bytes) -> Result<usize, WriteError> {
        self.write(id, &chunk)
    }

    fn finish(&mut self, id: StreamId) -> Result<(), WriteError> {
        self.writable(id)?;
        self.pair.moved += 1;
        self.pair.half(id, self.side).unwrap().fin = true;
        Ok(())
    }

    fn reset(&mut self, id: StreamId, code: Code) {
        self.pair.resets.push((self.side, id, code));
        self.pair.moved += 1;
        if let Some(half) = self.pair.half(id, self.side) {
            half.reset.get_or_insert(code);
            half.buffer.clear();
        }
    }

    fn read(&mut self, id: StreamId, buffer: &mut [u8]) -> Result<Read, ReadError> {
        let half = self.pair.half(id, self.side.peer()).ok_or(ReadError::Closed)?;
        if let Some(code) = half.reset {
            return Err(ReadError::Reset(code));
        }
        if half.ended || half.stopped.is_some() {
            return Err(ReadError::Closed);
        }
        let (available, fin) = (half.buffer.len().min(buffer.len()), half.fin);
        if available == 0 && !fin {
            return Err(ReadError::Blocked);
        }
        let n = self.pair.some_of(available).ok_or(ReadError::Blocked)?;
        self.pair.moved += 1;
        let half = self.pair.half(id, self.side.peer()).unwrap();
        for (to, from) in buffer.iter_mut().zip(half.buffer.drain(..n)) {
            *to = from;
        }
        half.ended = fin && half.buffer.is_empty();
        Ok(Read { bytes: n, finished: half.ended })
    }

    fn is_open(&mut self, id: StreamId) -> bool {
        let is_open = |half: &Half| !half.ended && half.reset.is_none() && half.stopped.is_none();
        [true, false].iter().any(|side| self.pair.halves.get(&(id, *side)).is_some_and(is_open))
    }

    fn stop(&mut self, id: StreamId, code: Code) {
        self.pair.stops.push((self.side, id, code));
        self.pair.moved += 1;
        if let Some(half) = self.pair.half(id, self.side.peer()) {
            half.stopped.get_or_insert(code);
            half.buffer.clear();
        }
    }

    fn set_priority(&mut self, id: StreamId, priority: Priority) {
        self.pair.priorities.push((self.side, id, priority));
    }

    fn protect(&mut self, id: StreamId, protection: Option<Protection>) {
        self.pair.protections.push((self.side, id, protection));
    }

    fn protect_by_default(&mut self, id: StreamId) {
        self.pair.protections.push((self.side, id, Some(default_protection())));
    }

    fn send_datagram(
        &mut self,
        data: Bytes,
        _options: &DatagramOptions,
    ) -> Result<(), SendDatagramError> {
        let max = self.max_datagram_size().ok_or(SendDatagramError::Unsupported)?;
        if data.len() > max {
            return Err(SendDatagramError::TooLarge);
        }
        if let Some(queues) = &mut self.pair.datagrams {
            queues[self.side.peer() as usize].push_back(data);
        }
        self.pair.moved += 1;
        Ok(())
    }

    fn recv_datagram(&mut self) -> Option<Bytes> {
        self.pair.datagrams.as_mut()?[self.side as usize].pop_front()
    }

    fn max_datagram_size(&mut self) -> Option<usize> {
        self.pair.datagrams.as_ref().map(|_| 100)
    }

    fn observe(&mut self, event: impl FnOnce() -> FrameEvent) {
        self.pair.observed.push((self.side, event()));
    }

    fn keep_alive(&mut self, kept_alive: bool) {
        self.pair.kept_alive[self.side as usize] = kept_alive;
    }

    fn close(&mut self, code: Code, _: &[u8]) {
        self.pair.closed[self.side as usize].get_or_insert(code);
    }
}

/// A client and a server, both of this crate.
pub struct World {
    pub pair: Pair,
    pub client: Connection,
    pub server: Connection,
}

impl Default for World {
    fn default() -> Self {
        Self::new(Config::default(), Config::default())
    }
}

impl World {
    pub fn new(client: Config, server: Config) -> Self {
        let (client, server) = (Connection::client(client), Connection::server(server));
        Self { pair: Pair::default(), client, server }
    }

    /// Lets both ends work once.
    pub fn turn(&mut self) {
        self.pair.hint(Side::Client, &mut self.client);
        self.client.process(&mut self.pair.end(Side::Client)).unwrap();
        self.pair.hint(Side::Server, &mut self.server);
        self.server.process(&mut self.pair.end(Side::Server)).unwrap();
    }

    /// Runs until nothing moves any more.
    pub fn settle(&mut self) {
        let mut idle = 0;
        while idle < if self.pair.rng.is_some() { 50 } else { 1 } {
            let before = self.pair.moved;
            self.turn();
            idle = if self.pair.moved == before { idle + 1 } else { 0 };
        }
    }

    /// The same when nothing moves any more.
    pub fn settled(mut self) -> Self {
        self.settle();
        self
    }

    /// Ends with default settings, and a GET request that has arrived.
    pub fn asked(fin: bool) -> (Self, StreamId) {
        let mut world = Self::default();
        let stream = world.ask(&get(), fin);
        (world, stream)
    }

    /// Sends a request and lets it arrive.
    pub fn ask(&mut self, fields: &Fields, fin: bool) -> StreamId {
        let stream = self.request(fields, fin);
        self.settle();
        stream
    }

    /// The fields of the request that the server hears of first.
    pub fn requested(&mut self) -> Fields {
        match self.server_events().into_iter().next() {
            Some(Event::Headers { fields, .. }) => fields,
            event => panic!("no request: {event:?}"),
        }
    }

    /// Sends all of a body that is no larger than the window, so that the response is handed over.
    pub fn hand_over(&mut self, stream: StreamId) {
        let mut end = self.pair.end(Side::Server);
        self.server.send_body(&mut end, stream, &[0; 10_000]).unwrap();
        self.server.finish(&mut end, stream).unwrap();
        assert_eq!(self.server.exchanges(), 0);
    }

    pub fn request(&mut self, fields: &Fields, fin: bool) -> StreamId {
        self.client.send_request(&mut self.pair.end(Side::Client), fields, None, fin).unwrap()
    }

    pub fn respond(&mut self, stream: StreamId, fields: &Fields, fin: bool) {
        self.try_respond(stream, fields, fin).unwrap();
    }

    pub fn try_respond(
        &mut self,
        stream: StreamId,
        fields: &Fields,
        fin: bool,
    ) -> Result<(), SendError> {
        self.server.send_response(&mut self.pair.end(Side::Server), stream, fields, fin)
    }

    /// Sends the server a new priority for a request.
    pub fn update(&mut self, stream: StreamId, priority: &sutura_h3::Priority) {
        let mut end = self.pair.end(Side::Client);
        self.client.send_priority_update(&mut end, stream, priority).unwrap();
        self.settle();
    }

    pub fn client_events(&mut self) -> Vec<Event> {
        events(&mut self.client)
    }

    pub fn server_events(&mut self) -> Vec<Event> {
        events(&mut self.server)
    }
}

/// All events but the SETTINGS.
pub fn events(connection: &mut Connection) -> Vec<Event> {
    std::iter::from_fn(|| connection.poll_event())
        .filter(|event| !matches!(event, Event::Settings(_)))
        .collect()
}

pub fn get() -> Fields {
    Fields::request("GET", "https", "example.com", "/")
}

/// HEADERS of a GET for https://a/.
pub const GET: &[u8] = &[0x01, 0x08, 0x00, 0x00, 0xd1, 0xd7, 0xc1, 0x50, 0x01, b'a'];
/// HEADERS with `:status` 200.
pub const OK: &[u8] = &[0x01, 0x03, 0x00, 0x00, 0xd9];

/// A PRIORITY_UPDATE frame for the request with this identifier.
pub fn update_frame(id: u16, value: &str) -> Vec<u8> {
    let header = [0x80, 0x0f, 0x07, 0x00, 0x40, 2 + value.len() as u8];
    [&header, &(0x4000 | id).to_be_bytes()[..], value.as_bytes()].concat()
}

/// The bytes that a raw peer sends on a stream.
#[derive(Debug, Clone)]
pub struct Script {
    pub stream: Stream,
    pub bytes: Vec<u8>,
    pub end: Ending,
}

/// The stream of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// A new unidirectional one.
    Uni,
    /// A new bidirectional one.
    Bi,
    /// The response to the first request.
    Response,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Open,
    Fin,
    Reset,
}

pub fn script(stream: Stream, bytes: &[u8], end: Ending) -> Script {
    Script { stream, bytes: bytes.to_vec(), end }
}

/// One end of this crate against raw bytes.
pub struct Bench {
    pub pair: Pair,
    pub connection: Connection,
    pub events: Vec<Event>,
    pub outcome: Result<(), Error>,
}

impl Bench {
    pub fn new(side: Side) -> Self {
        Self::with(side, &Config::default())
    }

    /// A client that has sent a GET request.
    pub fn asking(fin: bool) -> (Self, StreamId) {
        let mut bench = Self::new(Side::Client);
        let mut end = bench.pair.end(Side::Client);
        let stream = bench.connection.send_request(&mut end, &get(), None, fin).unwrap();
        (bench, stream)
    }

    pub fn with(side: Side, config: &Config) -> Self {
        let config = config.clone().with_grease(None);
        let connection = match side {
            Side::Client => Connection::client(config),
            Side::Server => Connection::server(config),
        };
        let mut bench =
            Self { pair: Pair::default(), connection, events: Vec::new(), outcome: Ok(()) };
        bench.work();
        bench
    }

    fn side(&self) -> Side {
        self.connection.side()
    }

    /// Lets the connection work and reads every body as far as possible.
    pub fn work(&mut self) {
        let side = self.side();
        self.pair.hint(side, &mut self.connection);
        let outcome = self.connection.process(&mut self.pair.end(side));
        if self.outcome.is_ok() {
            self.outcome = outcome;
        }
        while let Some(event) = self.connection.poll_event() {
            if let Event::Data { stream } = event {
                let mut buffer = [0; 100];
                let mut end = self.pair.end(side);
                while self.connection.read_body(&mut end, stream, &mut buffer).is_ok_and(|n| n > 0)
                {
                }
            }
            self.events.push(event);
        }
        if self.outcome.is_ok() {
            self.outcome = self.connection.process(&mut self.pair.end(side));
            self.events.extend(events(&mut self.connection));
        }
    }

    /// Plays the scripts one after the other, `step` bytes at a time.
    pub fn play(&mut self, scripts: &[Script], step: usize) {
        let peer = self.side().peer();
        for script in scripts {
            let id = match script.stream {
                Stream::Uni => self.pair.end(peer).open(Dir::Uni).unwrap(),
                Stream::Bi => self.pair.end(peer).open(Dir::Bi).unwrap(),
                Stream::Response => StreamId::new(Side::Client, Dir::Bi, 0),
            };
            let mut rest = &script.bytes[..];
            loop {
                let (now, later) = rest.split_at(step.min(rest.len()));
                self.pair.inject(peer, id, now);
                rest = later;
                if rest.is_empty() {
                    match script.end {
                        Ending::Open => {}
                        Ending::Fin => drop(self.pair.end(peer).finish(id)),
                        Ending::Reset => {
                            // A reset discards unread bytes, and reads may have been refused.
                            let mut rounds = 0..100;
                            while self.pair.waiting(id, peer) > 0 && rounds.next().is_some() {
                                self.work();
                            }
                            self.pair.end(peer).reset(id, Code::INTERNAL_ERROR);
                        }
                    }
                }
                self.work();
                if rest.is_empty() {
                    break;
                }
            }
        }
    }
}
