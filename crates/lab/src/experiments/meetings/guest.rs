//! An application that makes random calls of the transport, and checks every byte.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use sutura_proto::{
    Connection, Dir, Event, MessageId, MessageOptions, Priority, Protection, ReadError, StreamId,
    WriteError,
};
use sutura_random::Rng;
use sutura_sim::{App, AppError, Pattern};

use super::super::campaign::settings;

/// Streams, messages and datagrams begin with the key of their pattern and their length, 8 bytes each.
const HEADER: usize = 16;
/// Bytes that are written or read at a time.
const PIECE: usize = 16 * 1024;
/// The most streams of its own that an end has open at once.
const MAX_OPEN: usize = 30;

/// The code of a reset without a promise.
const NO_PROMISE: u64 = 3;
/// The code of a reset that promises the stream's first bytes: this number plus the number of promised bytes.
const PROMISE: u64 = 1000;

/// The header of `length` bytes.
fn header(key: u64, length: u64) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    let (first, second) = header.split_at_mut(8);
    first.copy_from_slice(&key.to_be_bytes());
    second.copy_from_slice(&length.to_be_bytes());
    header
}

/// Bytes `at..at + out.len()` of the data with this key and length.
fn fill(key: u64, length: u64, at: u64, out: &mut [u8]) {
    Pattern::new(key).fill(at, out);
    let header = header(key, length);
    let known = header.get(at.min(HEADER as u64) as usize..).unwrap_or_default();
    out.iter_mut().zip(known).for_each(|(to, from)| *to = *from);
}

/// A whole message or datagram.
fn body(key: u64, length: usize) -> Bytes {
    let mut body = vec![0; length.max(HEADER)];
    fill(key, body.len() as u64, 0, &mut body);
    body.into()
}

/// A stream that is being written.
#[derive(Debug)]
struct Writing {
    key: u64,
    length: u64,
    written: u64,
}

/// A stream that is being read.
#[derive(Debug, Default)]
struct Reading {
    /// The first bytes, until they tell key and length.
    header: Vec<u8>,
    at: u64,
}

impl Reading {
    fn word(&self, index: usize) -> Option<u64> {
        let bytes = self.header.get(8 * index..8 * index + 8)?;
        Some(u64::from_be_bytes(bytes.try_into().ok()?))
    }

    /// Checks the next bytes.
    fn take(&mut self, bytes: &[u8]) -> Result<(), AppError> {
        let begin = bytes.len().min(HEADER - self.header.len());
        let (begin, rest) = bytes.split_at(begin);
        self.header.extend_from_slice(begin);
        self.at += begin.len() as u64;
        if let Some(wrong) = self.word(0).and_then(|key| Pattern::new(key).mismatch(self.at, rest))
        {
            return Err(AppError(format!("byte {wrong} is wrong")));
        }
        self.at += rest.len() as u64;
        match self.word(1) {
            Some(length) if self.at > length => Err(AppError("too many bytes".to_owned())),
            _ => Ok(()),
        }
    }

    /// Checks that all has arrived that a reset with this code promised. Returns whether the code is a
    /// promise.
    fn reset(&self, code: u64) -> Result<bool, AppError> {
        match code.checked_sub(PROMISE) {
            Some(promised) if promised > self.at => {
                Err(AppError(format!("reset after {} bytes instead of {promised}", self.at)))
            }
            promise => Ok(promise.is_some()),
        }
    }

    /// Checks that this is the end.
    fn end(&self) -> Result<(), AppError> {
        if self.word(1) == Some(self.at) {
            return Ok(());
        }
        Err(AppError(format!("ends after {} bytes instead of {:?}", self.at, self.word(1))))
    }
}

fn some_key<V>(rng: &mut Rng, of: &BTreeMap<StreamId, V>) -> Option<StreamId> {
    of.keys().nth(rng.below(of.len().max(1) as u64) as usize).copied()
}

/// An end of a meeting.
pub struct Guest {
    rng: Rng,
    /// Actions that are still to come.
    left: u64,
    /// When the next one happens.
    next: Option<Instant>,
    /// The mean time between two.
    pace: Duration,
    writing: BTreeMap<StreamId, Writing>,
    reading: BTreeMap<StreamId, Reading>,
    /// The bytes of each stream that was written to its end.
    finished: BTreeMap<StreamId, u64>,
    /// Streams that were reset with a promise, and the least number of bytes to which the promise can still
    /// shrink.
    promised: BTreeMap<StreamId, u64>,
    messages: Vec<MessageId>,
    /// Bytes that were read and are right.
    pub bytes: u64,
    /// Streams of the peer's that were reset and whose beginning arrived as promised.
    pub promises: u64,
}

impl Guest {
    /// An end that acts this often.
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let (left, pace) = (10 + rng.below(60), Duration::from_millis(1 + rng.below(200)));
        Self {
            rng,
            left,
            next: None,
            pace,
            writing: BTreeMap::new(),
            reading: BTreeMap::new(),
            finished: BTreeMap::new(),
            promised: BTreeMap::new(),
            messages: Vec::new(),
            bytes: 0,
            promises: 0,
        }
    }

    /// Whether all calls are made, and all streams written and read.
    pub fn is_done(&self) -> bool {
        self.left == 0 && self.writing.is_empty() && self.reading.is_empty()
    }

    /// A stream that is being written.
    fn some_writing(&mut self) -> Option<StreamId> {
        some_key(&mut self.rng, &self.writing)
    }

    fn some_reading(&mut self) -> Option<StreamId> {
        some_key(&mut self.rng, &self.reading)
    }

    fn protection(&mut self) -> Result<Option<Protection>, AppError> {
        let policy = settings::redundancy(&mut self.rng).map_err(|e| AppError(e.to_string()))?;
        Ok(policy.map(Protection::new))
    }

    fn priority(&mut self) -> Priority {
        let (urgency, incremental) = (self.rng.below(8) as u8, self.rng.below(2) == 0);
        Priority::new(urgency, incremental).unwrap_or_default()
    }

    /// Begins to write on a stream.
    fn begin(&mut self, id: StreamId) {
        let most = [2_000, 20_000, 200_000][self.rng.below(3) as usize];
        let length = HEADER as u64 + self.rng.below(most);
        let key = self.rng.next_u64();
        self.writing.insert(id, Writing { key, length, written: 0 });
    }

    fn open(&mut self, quic: &mut Connection) -> Result<(), AppError> {
        let dir = if self.rng.below(2) == 0 { Dir::Uni } else { Dir::Bi };
        if self.writing.len() >= MAX_OPEN {
            return Ok(());
        }
        let Some(id) = quic.open(dir) else { return Ok(()) };
        self.begin(id);
        if dir == Dir::Bi {
            self.reading.insert(id, Reading::default());
        }
        if self.rng.below(2) == 0 {
            let protection = self.protection()?;
            let _ = quic.send_stream(id).protect(protection);
        }
        let priority = self.priority();
        let _ = quic.send_stream(id).set_priority(priority);
        Ok(())
    }

    /// Resets a stream beyond some of its written data.
    fn promise(&mut self, quic: &mut Connection) {
        let unfinished = self.writing.iter().map(|(id, writing)| (*id, writing.written));
        let finished = self.finished.iter().map(|(id, length)| (*id, *length));
        let streams: BTreeMap<StreamId, u64> = unfinished.chain(finished).collect();
        let Some(id) = some_key(&mut self.rng, &streams) else { return };
        let written = streams.get(&id).copied().unwrap_or_default();
        let least = self.rng.below(written + 1);
        let first = least + self.rng.below(2 * (written - least) + 1);
        if quic.send_stream(id).reset_at(PROMISE + least, first).is_ok() {
            self.writing.remove(&id);
            self.finished.remove(&id);
            self.promised.insert(id, least);
        }
    }

    /// Promises no more of a stream than its code told.
    fn promise_less(&mut self, quic: &mut Connection) {
        let Some(id) = some_key(&mut self.rng, &self.promised) else { return };
        let Some(least) = self.promised.remove(&id) else { return };
        // The stream may be over.
        let _ = quic.send_stream(id).reset_at(PROMISE + least, least);
    }

    fn send_message(&mut self, now: Instant, quic: &mut Connection) {
        let deadline = now + Duration::from_millis(self.rng.below(800));
        let options = MessageOptions::default()
            .with_deadline((self.rng.below(2) == 0).then_some(deadline))
            .with_cancel_late((self.rng.below(2) == 0).then_some(5))
            .with_unreliable(self.rng.below(3) == 0)
            .with_priority(self.priority());
        let most = [200, 3_000][self.rng.below(2) as usize];
        let size = HEADER + self.rng.below(most) as usize;
        self.messages.extend(quic.send_message(body(self.rng.next_u64(), size), options));
    }

    /// Makes random calls.
    fn act(&mut self, now: Instant, quic: &mut Connection) -> Result<(), AppError> {
        match self.rng.below(18) {
            0..=4 => self.open(quic)?,
            5 => {
                let protection = self.protection()?;
                if let Some(id) = self.some_writing() {
                    let _ = quic.send_stream(id).protect(protection);
                }
            }
            6 => {
                let priority = self.priority();
                if let Some(id) = self.some_writing() {
                    let _ = quic.send_stream(id).set_priority(priority);
                }
            }
            7 => {
                if let Some(id) = self.some_writing() {
                    self.writing.remove(&id);
                    let _ = quic.send_stream(id).reset(NO_PROMISE);
                }
            }
            8 => {
                if let Some(id) = self.some_reading() {
                    self.reading.remove(&id);
                    let _ = quic.recv_stream(id).stop(4);
                }
            }
            9..=11 => (0..=self.rng.below(8)).for_each(|_| self.send_message(now, quic)),
            12 => {
                let size = HEADER + self.rng.below(800) as usize;
                for _ in 0..=self.rng.below(8) {
                    let _ = quic.datagrams().send(body(self.rng.next_u64(), size));
                }
            }
            13 => {
                let protection = self.protection()?;
                quic.datagrams().protect(protection);
            }
            14 => {
                quic.update_keys();
            }
            15 => self.promise(quic),
            16 => self.promise_less(quic),
            _ => {
                let index = self.rng.below(self.messages.len().max(1) as u64) as usize;
                if let Some(id) = self.messages.get(index) {
                    quic.cancel_message(*id, 6);
                }
            }
        }
        Ok(())
    }

    /// Writes as much as fits, and ends complete streams.
    fn write(&mut self, quic: &mut Connection) {
        let mut piece = vec![0; PIECE];
        self.writing.retain(|id, writing| {
            let Writing { key, length, written } = writing;
            while written < length {
                let len = (*length - *written).min(PIECE as u64) as usize;
                let piece = &mut piece[..len];
                fill(*key, *length, *written, piece);
                match quic.send_stream(*id).write(piece) {
                    Ok(n) => *written += n as u64,
                    Err(WriteError::Blocked) => return true,
                    // The peer stopped it.
                    Err(_) => return false,
                }
            }
            let _ = quic.send_stream(*id).finish();
            self.finished.insert(*id, *length);
            false
        });
    }

    /// Accepts the peer's streams; a bidirectional stream is answered.
    fn accept(&mut self, quic: &mut Connection) {
        for dir in Dir::ALL {
            while let Some(id) = quic.accept(dir) {
                self.reading.insert(id, Reading::default());
                if dir == Dir::Bi {
                    self.begin(id);
                }
            }
        }
    }

    fn read(&mut self, quic: &mut Connection) -> Result<(), AppError> {
        let ids: Vec<StreamId> = self.reading.keys().copied().collect();
        for id in ids {
            let Some(reading) = self.reading.get_mut(&id) else { continue };
            let about = |error: AppError| AppError(format!("{id:?}: {error}"));
            loop {
                match quic.recv_stream(id).read_chunk(PIECE, true) {
                    Ok(Some(chunk)) => {
                        reading.take(&chunk.bytes).map_err(about)?;
                        self.bytes += chunk.bytes.len() as u64;
                    }
                    Ok(None) => {
                        reading.end().map_err(about)?;
                        self.reading.remove(&id);
                        break;
                    }
                    Err(ReadError::Blocked) => break,
                    Err(ReadError::Reset(code)) => {
                        self.promises += u64::from(reading.reset(code).map_err(about)?);
                        self.reading.remove(&id);
                        break;
                    }
                    Err(ReadError::Closed) => {
                        self.reading.remove(&id);
                        break;
                    }
                    Err(error) => return Err(AppError(error.to_string())),
                }
            }
        }
        while let Some(datagram) = quic.datagrams().recv() {
            let mut whole = Reading::default();
            whole.take(&datagram).and_then(|()| whole.end())?;
            self.bytes += datagram.len() as u64;
        }
        Ok(())
    }
}

impl App<Connection> for Guest {
    fn on_event(&mut self, now: Instant, _: &mut Connection, event: Event) -> Result<(), AppError> {
        if event == Event::Connected {
            self.next.get_or_insert(now);
        }
        Ok(())
    }

    fn poll(&mut self, now: Instant, quic: &mut Connection) -> Result<Option<Instant>, AppError> {
        while self.left > 0
            && let Some(next) = self.next.filter(|at| *at <= now)
        {
            self.act(now, quic)?;
            self.left -= 1;
            let pause = self.rng.below(2 * self.pace.as_micros() as u64);
            self.next = Some(next + Duration::from_micros(pause));
        }
        self.accept(quic);
        self.read(quic)?;
        self.write(quic);
        while quic.poll_message_outcome().is_some() {}
        Ok(self.next.filter(|_| self.left > 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reset_stream_holds_what_its_code_promises() {
        let mut reading = Reading::default();
        reading.take(&body(5, 100)).unwrap();
        assert!(!reading.reset(NO_PROMISE).unwrap());
        assert!(reading.reset(PROMISE + 100).unwrap());
        let broken = reading.reset(PROMISE + 101).unwrap_err();
        assert_eq!(broken.0, "reset after 100 bytes instead of 101");
    }
}
