//! Entry points for fuzzing: each takes arbitrary bytes and must neither panic nor exceed the
//! limits.

mod datagrams;
mod pieces;
mod qpack;
mod sessions;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use bytes::Bytes;
use sutura_proto::{Dir, Protection, Side, StreamId};
use sutura_schedule::{MAX_DEPTH, Priority};

use crate::{
    CapsuleReader, Code, Config, Connection, Event, Fields, FrameEvent, MAX_BURST, MAX_CLASS_NAME,
    MAX_DELAY, PriorityParameters, Read, ReadError, Transport, WriteError,
};

pub use self::datagrams::datagrams;
pub use self::pieces::pieces;
pub use self::qpack::{qpack, qpack_pair};
pub use self::sessions::sessions;

/// Reads capsules from data that arrives in pieces, whose size is the first byte. Encoded and read again, the
/// capsules are the same.
pub fn capsules(data: &[u8]) {
    let [step, rest @ ..] = data else { return };
    let mut reader = CapsuleReader::new(&[0, 1, 2, 3]);
    for piece in rest.chunks(usize::from(*step) + 1) {
        reader.push(piece);
        loop {
            match reader.read() {
                Ok(Some(capsule)) => {
                    let mut again = CapsuleReader::new(&[capsule.kind]);
                    again.push(&capsule.encode());
                    assert_eq!(again.read(), Ok(Some(capsule)));
                }
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
    let _ = reader.finish();
}

/// Parses priority field values separated by line feeds. The parameters of each value are within bounds and
/// survive a round trip, as do the parameters of the first value overridden by the others.
pub fn priority(data: &[u8]) {
    let mut merged = PriorityParameters::default();
    for value in data.split(|byte| *byte == b'\n') {
        let Some(parameters) = PriorityParameters::parse(value) else {
            continue;
        };
        check_priority(&parameters);
        let both = merged.overridden_by(&parameters);
        // Absent parameters change nothing, and overriding twice equals overriding once.
        assert_eq!(both.overridden_by(&PriorityParameters::default()), both);
        assert_eq!(both.overridden_by(&parameters), both);
        assert_eq!(PriorityParameters::default().overridden_by(&parameters), parameters);
        check_priority(&both);
        merged = both;
    }
}

fn check_priority(parameters: &PriorityParameters) {
    let said = parameters.to_string();
    assert_eq!(said.parse().as_ref(), Ok(parameters), "{said}");
    let priority = parameters.clone().resolve();
    assert!(
        priority.urgency <= 7 && priority.burst <= Some(MAX_BURST) && priority.delay <= MAX_DELAY
    );
    assert!(priority.parents.len() <= MAX_DEPTH);
    let names = priority.parents.iter().filter_map(|class| class.name.as_ref());
    assert!(names.into_iter().all(|name| name.len() <= MAX_CLASS_NAME));
    let again = PriorityParameters::parse(priority.to_field_value().as_bytes());
    assert_eq!(again.map(PriorityParameters::resolve), Some(priority));
}

/// Feeds a connection. The first byte picks the side and the most bytes that a read returns, the
/// second splits the rest into a unidirectional and a request stream.
pub fn frames(data: &[u8]) {
    let [first, split, rest @ ..] = data else {
        return;
    };
    let side = if first & 1 == 0 { Side::Server } else { Side::Client };
    let (uni, request) = rest.split_at(usize::from(*split).min(rest.len()));
    let mut feed = Feed::new(side, usize::from(first >> 1) + 1);
    feed.offer(StreamId::new(side.peer(), Dir::Uni, 0), uni);
    let mut connection = match side {
        Side::Client => Connection::client(Config::default()),
        Side::Server => Connection::server(Config::default()),
    };
    if side.is_client() {
        let fields = Fields::request("GET", "https", "example.com", "/");
        let _ = connection.send_request(&mut feed, &fields, None, true);
    }
    feed.offer(StreamId::new(Side::Client, Dir::Bi, 0), request);
    // Each pass reads all that is available; the second one finds the ends.
    for _ in 0..2 {
        if connection.process(&mut feed).is_err() {
            return;
        }
        while let Some(event) = connection.poll_event() {
            if let Event::Data { stream } = event {
                let mut buffer = [0; 64];
                while connection.read_body(&mut feed, stream, &mut buffer).is_ok_and(|n| n > 0) {}
            }
        }
        for id in feed.streams.keys() {
            connection.readable(*id);
        }
    }
}

/// A byte of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cell {
    Missing(u8),
    Here(u8),
    Read,
}

/// A transport with some finished streams to read, which discards written data.
struct Feed {
    side: Side,
    step: usize,
    streams: BTreeMap<StreamId, Vec<Cell>>,
    accepted: [u64; 2],
    opened: [u64; 2],
    datagrams: VecDeque<Bytes>,
}

impl Feed {
    fn new(side: Side, step: usize) -> Self {
        Self {
            side,
            step,
            streams: BTreeMap::new(),
            accepted: [0; 2],
            opened: [0; 2],
            datagrams: VecDeque::new(),
        }
    }

    /// All of a stream, which has arrived.
    fn offer(&mut self, id: StreamId, bytes: &[u8]) {
        self.streams.insert(id, bytes.iter().map(|byte| Cell::Here(*byte)).collect());
    }

    /// Adds a stream of which nothing has arrived.
    fn promise(&mut self, id: StreamId, bytes: &[u8]) {
        self.streams.insert(id, bytes.iter().map(|byte| Cell::Missing(*byte)).collect());
    }

    /// A part of a stream arrives.
    fn arrive(&mut self, id: StreamId, range: Range<usize>) {
        let cells = self.streams.get_mut(&id);
        for cell in cells.and_then(|cells| cells.get_mut(range)).unwrap_or_default() {
            if let Cell::Missing(byte) = *cell {
                *cell = Cell::Here(byte);
            }
        }
    }

    /// Takes the bytes that are there from offset `at` on.
    fn take(&mut self, id: StreamId, at: usize, buffer: &mut [u8]) -> Result<Read, ReadError> {
        let cells = self.streams.get_mut(&id).ok_or(ReadError::Closed)?;
        let mut bytes = 0;
        let rest = cells.get_mut(at..).unwrap_or_default();
        for (to, cell) in buffer.iter_mut().zip(rest).take(self.step) {
            let Cell::Here(byte) = *cell else { break };
            (*to, *cell) = (byte, Cell::Read);
            bytes += 1;
        }
        let finished = cells.iter().all(|cell| *cell == Cell::Read);
        if bytes == 0 && !finished { Err(ReadError::Blocked) } else { Ok(Read { bytes, finished }) }
    }

    /// The first byte from offset `at` on that is as `test` says, or the end.
    fn find(&self, id: StreamId, at: usize, test: fn(Cell) -> bool) -> usize {
        let Some(cells) = self.streams.get(&id) else { return at };
        let is_found = |at: &usize| cells.get(*at).copied().is_some_and(test);
        (at..cells.len()).find(is_found).unwrap_or(cells.len())
    }
}

impl Transport for Feed {
    fn side(&self) -> Side {
        self.side
    }

    fn open(&mut self, dir: Dir) -> Option<StreamId> {
        let index = self.opened[dir.index()];
        self.opened[dir.index()] += 1;
        Some(StreamId::new(self.side, dir, index))
    }

    fn accept(&mut self, dir: Dir) -> Option<StreamId> {
        let id = StreamId::new(self.side.peer(), dir, self.accepted[dir.index()]);
        self.streams.contains_key(&id).then(|| {
            self.accepted[dir.index()] += 1;
            id
        })
    }

    fn stream_limit(&self, _: Dir) -> u64 {
        100
    }

    fn write(&mut self, _: StreamId, data: &[u8]) -> Result<usize, WriteError> {
        Ok(data.len())
    }

    fn write_chunk(&mut self, _: StreamId, chunk: Bytes) -> Result<usize, WriteError> {
        Ok(chunk.len())
    }

    fn finish(&mut self, _: StreamId) -> Result<(), WriteError> {
        Ok(())
    }

    fn reset(&mut self, _: StreamId, _: Code) {}

    fn read(&mut self, id: StreamId, buffer: &mut [u8]) -> Result<Read, ReadError> {
        let front = self.find(id, 0, |cell| cell != Cell::Read);
        let scattered = self.find(id, front, |cell| cell == Cell::Read);
        let length = self.streams.get(&id).map_or(0, Vec::len);
        assert_eq!(scattered, length, "read in order although bytes are missing");
        self.take(id, front, buffer)
    }

    fn read_ahead(
        &mut self,
        id: StreamId,
        range: Range<u64>,
        buffer: &mut [u8],
    ) -> Result<(u64, Read), ReadError> {
        let front = self.find(id, 0, |cell| cell != Cell::Read);
        let first = self.find(id, front, |cell| matches!(cell, Cell::Here(_))) as u64;
        let at = if first < range.end { first } else { front as u64 };
        let room = usize::try_from(range.end.saturating_sub(at)).unwrap_or(usize::MAX);
        let room = room.min(buffer.len());
        let read = self.take(id, at as usize, buffer.get_mut(..room).unwrap_or_default())?;
        Ok((at, read))
    }

    fn stop(&mut self, id: StreamId, _: Code) {
        self.streams.remove(&id);
    }

    fn recv_datagram(&mut self) -> Option<Bytes> {
        self.datagrams.pop_front()
    }

    fn max_datagram_size(&mut self) -> Option<usize> {
        Some(1200)
    }

    fn set_priority(&mut self, _: StreamId, _: Priority) {}

    fn protect(&mut self, _: StreamId, _: Option<Protection>) {}

    fn protect_by_default(&mut self, _: StreamId) {}

    fn observe(&mut self, event: impl FnOnce() -> FrameEvent) {
        event();
    }

    fn close(&mut self, _: Code, _: &[u8]) {}
}
