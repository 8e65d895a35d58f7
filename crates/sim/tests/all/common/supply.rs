//! A server that sends streams according to a plan, and a record of the frames it sends.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sutura_proto::wire_format::{Carrier, Frame, FrameIter, StreamFrame};
use sutura_proto::{
    Connection, Dir, Observation, Observer, Priority, Protection, Read, StreamId, TransportConfig,
    WriteError,
};
use sutura_sim::{App, AppError, Clock, Ends, Progress, Scenario};

/// The failure of an application for this reason.
pub fn failed(error: impl std::fmt::Debug) -> AppError {
    AppError(format!("{error:?}"))
}

/// A stream that the server sends.
#[derive(Clone, Debug)]
pub struct Supply {
    pub priority: Priority,
    pub protection: Option<Protection>,
    /// When the application writes how many bytes, in order. The times are relative to the end of
    /// the handshake.
    pub writes: Vec<(Duration, usize)>,
}

impl Supply {
    /// A stream whose bytes are all written at once.
    pub fn bulk(priority: Priority, protection: Option<Protection>, bytes: usize) -> Self {
        Self { priority, protection, writes: vec![(Duration::ZERO, bytes)] }
    }

    fn total(&self) -> usize {
        self.writes.iter().map(|(_, bytes)| bytes).sum()
    }
}

/// The contents of a frame.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// New data of a stream: the stream's index and the number of bytes.
    New(usize, u64),
    /// Retransmitted data of a stream: the stream's index and the number of bytes.
    Again(usize, u64),
    /// A repair symbol: the streams that it protects, each with its share of the frame in bytes.
    Repair(Vec<(usize, f64)>),
}

/// A frame that the server sent. Streams are identified by their index in the plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The time since the end of the handshake.
    pub at: Duration,
    pub what: What,
    /// Streams with data that had not been sent before.
    pub waiting: Vec<usize>,
}

/// The data that the server wrote and sent.
#[derive(Debug, Default)]
pub struct Record {
    begin: Option<Instant>,
    streams: Vec<StreamId>,
    written: Vec<u64>,
    sent: Vec<u64>,
    /// The stream and the number of bytes of each source symbol, by session and symbol ID.
    symbols: BTreeMap<(u16, u64), (usize, u64)>,
    pub entries: Vec<Entry>,
}

impl Record {
    fn waiting(&self) -> Vec<usize> {
        (0..self.streams.len()).filter(|i| self.written[*i] > self.sent[*i]).collect()
    }

    fn push(&mut self, now: Instant, what: What) {
        let Some(begin) = self.begin else { return };
        let waiting = self.waiting();
        self.entries.push(Entry { at: now - begin, what, waiting });
    }

    fn stream(&mut self, now: Instant, frame: &StreamFrame<'_>) -> Option<(usize, u64)> {
        let index = self.streams.iter().position(|id| *id == frame.id)?;
        let len = frame.data.len() as u64;
        let is_new = frame.offset >= self.sent[index];
        self.push(now, if is_new { What::New(index, len) } else { What::Again(index, len) });
        self.sent[index] = self.sent[index].max(frame.offset + len);
        Some((index, len))
    }

    fn frame(&mut self, now: Instant, frame: &Frame<'_>) {
        match frame {
            Frame::Stream(frame) => {
                self.stream(now, frame);
            }
            Frame::SourceSymbol(source) => {
                let mut frames = FrameIter::new(source.frames, Carrier::SourceSymbol);
                let Some(Ok(Frame::Stream(frame))) = frames.next() else { panic!("{source:?}") };
                let carried = self.stream(now, &frame);
                let key = (source.symbol.session, source.symbol.id);
                carried.and_then(|carried| self.symbols.insert(key, carried));
            }
            Frame::Repair(repair) => {
                let header = &repair.header;
                let size = (header.size() + repair.payload.len()) as f64;
                let mut shares = vec![0.0; self.streams.len()];
                let span = header.span().filter_map(|id| self.symbols.get(&(header.session, id)));
                span.for_each(|(index, len)| shares[*index] += *len as f64);
                let total: f64 = shares.iter().sum();
                let shares = shares.into_iter().enumerate().filter(|(_, share)| *share > 0.0);
                let shares = shares.map(|(index, share)| (index, share / total * size)).collect();
                self.push(now, What::Repair(shares));
            }
            _ => {}
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Shared(Arc<Mutex<Record>>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Record> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Shared {
    fn observe(&mut self, now: Instant, observation: &Observation<'_>) {
        let Observation::PacketSent { payload, .. } = observation else { return };
        let mut record = self.lock();
        for frame in FrameIter::new(payload, Carrier::OneRtt) {
            // Handshake packets are sent before anything is recorded.
            let Ok(frame) = frame else { return };
            record.frame(now, &frame);
        }
    }
}

/// The application of the server.
struct Writer {
    plan: Vec<Supply>,
    record: Shared,
    /// The bytes per stream that are due but have not been written yet.
    backlog: Vec<usize>,
    /// The number of writes per stream that have become due.
    due: Vec<usize>,
    finished: Vec<bool>,
}

impl Writer {
    fn new(plan: Vec<Supply>, record: Shared) -> Self {
        let n = plan.len();
        Self { plan, record, backlog: vec![0; n], due: vec![0; n], finished: vec![false; n] }
    }

    fn begin(&mut self, now: Instant, quic: &mut Connection) -> Result<(), AppError> {
        for supply in &self.plan {
            let id = quic.open(Dir::Uni).ok_or_else(|| failed("no stream"))?;
            let mut stream = quic.send_stream(id);
            stream.set_priority(supply.priority.clone()).map_err(failed)?;
            stream.protect(supply.protection.clone()).map_err(failed)?;
            let mut record = self.record.lock();
            record.streams.push(id);
            record.written.push(0);
            record.sent.push(0);
        }
        self.record.lock().begin = Some(now);
        quic.set_observer(now, Box::new(self.record.clone()));
        Ok(())
    }

    /// Writes the data of a stream that is due. Returns the time of its next write.
    fn write(
        &mut self,
        index: usize,
        since: Duration,
        quic: &mut Connection,
    ) -> Result<Option<Duration>, AppError> {
        let writes = &self.plan[index].writes;
        while let Some((_, bytes)) = writes.get(self.due[index]).filter(|(at, _)| *at <= since) {
            self.backlog[index] += bytes;
            self.due[index] += 1;
        }
        let id = self.record.lock().streams[index];
        while self.backlog[index] > 0 {
            let chunk = [7; 16_384];
            let n = self.backlog[index].min(chunk.len());
            match quic.send_stream(id).write(&chunk[..n]) {
                Ok(n) => {
                    self.backlog[index] -= n;
                    self.record.lock().written[index] += n as u64;
                }
                Err(WriteError::Blocked) => break,
                Err(error) => return Err(failed(error)),
            }
        }
        let next = writes.get(self.due[index]).map(|(at, _)| *at);
        if next.is_none() && self.backlog[index] == 0 && !self.finished[index] {
            quic.send_stream(id).finish().map_err(failed)?;
            self.finished[index] = true;
        }
        Ok(next)
    }
}

impl App<Connection> for Writer {
    fn poll(&mut self, now: Instant, quic: &mut Connection) -> Result<Option<Instant>, AppError> {
        if quic.is_handshaking() {
            return Ok(None);
        }
        if self.record.lock().begin.is_none() {
            self.begin(now, quic)?;
        }
        let begin = self.record.lock().begin.unwrap_or(now);
        let mut next: Option<Duration> = None;
        for index in 0..self.plan.len() {
            let due = self.write(index, now - begin, quic)?;
            next = next.into_iter().chain(due).min();
        }
        Ok(next.map(|since| begin + since))
    }
}

/// An application that reads everything.
#[derive(Default)]
pub struct Reader {
    received: BTreeMap<StreamId, usize>,
    /// The lengths of the streams that have ended.
    pub ended: Vec<usize>,
}

impl App<Connection> for Reader {
    fn poll(&mut self, _: Instant, quic: &mut Connection) -> Result<Option<Instant>, AppError> {
        while let Some(id) = quic.accept(Dir::Uni) {
            self.received.insert(id, 0);
        }
        let mut buffer = [0; 16_384];
        for (id, received) in &mut self.received {
            while let Ok(read) = quic.recv_stream(*id).read(&mut buffer) {
                match read {
                    Read::Data(n) => *received += n,
                    Read::Fin => self.ended.push(*received),
                }
            }
        }
        Ok(None)
    }
}

/// Settings for both ends with windows and buffers so large that flow control never limits.
pub fn unlimited() -> TransportConfig {
    TransportConfig::default()
        .with_stream_receive_window(64 << 20)
        .with_max_stream_receive_window(64 << 20)
        .with_receive_window(256 << 20)
        .with_max_receive_window(256 << 20)
}

/// Runs the plan, sending down the scenario's link.
pub fn send(scenario: &Scenario, plan: &[Supply]) -> (Vec<Entry>, Ends) {
    let record = Shared::default();
    let mut expected: Vec<usize> = plan.iter().map(Supply::total).collect();
    expected.sort_unstable();
    let server = {
        let (plan, record) = (plan.to_vec(), record.clone());
        move || Writer::new(plan.clone(), record.clone())
    };
    let ends = scenario.drive(Clock::default(), Reader::default(), server, |view| {
        let mut ended = view.client.ended.clone();
        ended.sort_unstable();
        Progress { done: ended == expected, busy: false }
    });
    let ends = ends.unwrap_or_else(|failure| panic!("{failure}"));
    let entries = std::mem::take(&mut record.lock().entries);
    (entries, ends)
}
