//! Head-of-line blocking: the data that QUIC held back, and the data that TCP would have held back.
//!
//! Data is held back from the moment it is received until all earlier bytes have arrived: in QUIC, the
//! earlier bytes of its stream; in TCP, the earlier bytes of the single byte stream. The simulated TCP puts
//! the bytes of all streams into one sequence, in the order in which they were first sent. If only the
//! receiver's record is available, that order is a guess: a STREAM frame beyond the known end of its stream
//! is placed at the end of the sequence, after the gap that it opens; data that fills the gap later already
//! has its place.

use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use crate::arrivals::{Arrival, Direction, arrivals};
use crate::coverage::{self, Coverage};
use crate::millis;
use crate::trace::{StreamFrame, Trace};

/// Data that was held back.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Held {
    /// The most bytes released to the application at once: a frame's own data and the data that had
    /// waited for it.
    pub largest_release: u64,
    /// Bytes that could not be released on arrival.
    pub bytes: u64,
    /// The most bytes waiting at any one time.
    pub peak: u64,
    /// Total time during which anything waited.
    #[serde(rename = "time_ms", serialize_with = "millis::serialize")]
    pub time: Duration,
    /// Bytes waiting, integrated over time in seconds.
    pub byte_seconds: f64,
    /// Bytes still waiting at the end of the trace.
    pub left: u64,
}

/// Data held back by QUIC and by the simulated TCP.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Blocking {
    /// Bytes of stream data received, each counted once.
    pub received: u64,
    /// Gaps that opened in streams.
    pub gaps: u64,
    /// Data held back by QUIC: in each stream, everything behind a gap.
    pub quic: Held,
    /// Data that TCP would have held back: everything behind a gap in any stream.
    pub tcp: Held,
    /// Data held back by QUIC, for each stream that had a gap.
    pub streams: BTreeMap<u64, Held>,
    /// Bytes held back after each change: time since the first event of the trace, QUIC, TCP.
    #[serde(skip)]
    pub history: Vec<(Duration, u64, u64)>,
}

impl Blocking {
    /// QUIC's largest release over TCP's (Marx et al. 2020, section 3.3): near 0 if QUIC released
    /// data much earlier, 1 if it did no better. `None` if neither held anything back, as both
    /// releases are then the size of a frame.
    pub fn ratio(&self) -> Option<f64> {
        (self.tcp.bytes > 0 && self.tcp.largest_release > 0)
            .then(|| self.quic.largest_release as f64 / self.tcp.largest_release as f64)
    }

    /// The mean delay of a byte between its arrival and its release to the application, in QUIC and
    /// in TCP. Bytes still waiting at the end count until then.
    pub fn mean_delays(&self) -> [Duration; 2] {
        let received = self.received.max(1) as f64;
        [&self.quic, &self.tcp].map(|held| {
            Duration::try_from_secs_f64(held.byte_seconds / received).unwrap_or_default()
        })
    }
}

/// Compares the bytes that QUIC held back at the receiver of a trace with the bytes that TCP would have held
/// back. `order` lists the STREAM frames in the order in which the other end sent them ([`sent_frames()`]);
/// it is empty if that end's record is missing.
///
/// Only data that the recording end received is analysed. Without `order`, a gap becomes known with
/// the first later frame of the same stream, and other streams wait for it in TCP only from then
/// on. They never wait for the lost last packet of a stream, so TCP looks better than it would be.
/// With `order`, data that never arrived blocks TCP to the end, even data of a stream that was reset.
pub fn head_of_line_blocking(trace: &Trace, order: &[StreamFrame]) -> Blocking {
    let mut state = BlockingState::default();
    for frame in order {
        let stream = state.streams.entry(frame.stream).or_default();
        state.end = stream.place(frame.end(), state.end);
    }
    for arrival in arrivals(trace, Direction::Received) {
        state.take(&arrival);
    }
    state.finish(trace.duration)
}

/// The STREAM frames with new data that the recording end sent, in order.
pub fn sent_frames(trace: &Trace) -> Vec<StreamFrame> {
    let mut sent = arrivals(trace, Direction::Sent);
    sent.retain(|arrival| arrival.new_bytes > 0);
    sent.into_iter().map(|arrival| arrival.frame).collect()
}

#[derive(Debug, Default)]
struct BlockingState {
    streams: BTreeMap<u64, Stream>,
    quic: Account,
    tcp: Account,
    /// The bytes of the simulated TCP that have arrived.
    sequence: Coverage,
    /// The end of the sequence.
    end: u64,
    gaps: u64,
    history: Vec<(Duration, u64, u64)>,
    new: Vec<Range<u64>>,
    placed: Vec<Range<u64>>,
}

#[derive(Debug, Default)]
struct Stream {
    coverage: Coverage,
    account: Account,
    has_gap: bool,
    /// Start of each part of the stream, as stream offset and as position in the sequence; both
    /// ascend.
    places: Vec<(u64, u64)>,
    /// Stream offset up to which data has a place in the sequence.
    placed: u64,
}

impl BlockingState {
    fn take(&mut self, arrival: &Arrival) {
        let (at, frame) = (arrival.at, arrival.frame);
        let stream = self.streams.entry(frame.stream).or_default();
        let (known, before) = (stream.coverage.highest(), stream.coverage.contiguous());
        stream.coverage.insert(frame.offset..frame.end(), &mut self.new);
        if self.new.is_empty() {
            return;
        }
        let has_gap = frame.offset > known;
        self.gaps += u64::from(has_gap);
        stream.has_gap |= has_gap;
        self.end = stream.place(frame.end(), self.end);
        let arrived = coverage::length(&self.new);
        let contiguous = stream.coverage.contiguous();
        let held = beyond(&self.new, contiguous);
        stream.account.step(at, arrived, contiguous - before, held);
        self.quic.step(at, arrived, contiguous - before, held);

        let before = self.sequence.contiguous();
        let (mut placed, mut parts) = (std::mem::take(&mut self.placed), Vec::new());
        placed.clear();
        for part in &self.new {
            stream.places_of(part, &mut placed);
        }
        for place in &placed {
            self.sequence.insert(place.clone(), &mut parts);
        }
        let contiguous = self.sequence.contiguous();
        self.tcp.step(at, arrived, contiguous - before, beyond(&placed, contiguous));
        self.placed = placed;
        let last = self.history.last().map_or((0, 0), |(_, quic, tcp)| (*quic, *tcp));
        if last != (self.quic.waiting, self.tcp.waiting) {
            self.history.push((at, self.quic.waiting, self.tcp.waiting));
        }
    }

    fn finish(self, end: Duration) -> Blocking {
        let received = self.streams.values().map(|s| s.coverage.bytes()).sum();
        let with_gaps = self.streams.into_iter().filter(|(_, stream)| stream.has_gap);
        Blocking {
            received,
            gaps: self.gaps,
            quic: self.quic.finish(end),
            tcp: self.tcp.finish(end),
            streams: with_gaps.map(|(id, stream)| (id, stream.account.finish(end))).collect(),
            history: self.history,
        }
    }
}

impl Stream {
    /// Gives the stream's data up to `end` a place in the sequence, whose end is `sequence` so far.
    /// Returns the new end.
    fn place(&mut self, end: u64, sequence: u64) -> u64 {
        if end <= self.placed {
            return sequence;
        }
        let start = self.placed;
        let follows = self.places.last().is_some_and(|(o, p)| start - o == sequence - p);
        if !follows {
            self.places.push((start, sequence));
        }
        self.placed = end;
        sequence.saturating_add(end - start)
    }

    /// The positions of a part of the stream in the sequence.
    fn places_of(&self, part: &Range<u64>, placed: &mut Vec<Range<u64>>) {
        let mut start = part.start;
        let mut next = self.places.partition_point(|(offset, _)| *offset <= start);
        while start < part.end {
            let Some((offset, place)) = next.checked_sub(1).and_then(|n| self.places.get(n)) else {
                return;
            };
            let end = self.places.get(next).map_or(part.end, |(offset, _)| part.end.min(*offset));
            placed.push(place + (start - offset)..place + (end - offset));
            start = end;
            next += 1;
        }
    }
}

/// How many bytes of `ranges` lie at or beyond `end`.
fn beyond(ranges: &[Range<u64>], end: u64) -> u64 {
    ranges.iter().map(|r| r.end.saturating_sub(r.start.max(end))).sum()
}

/// Sums up waiting data.
#[derive(Debug, Default)]
struct Account {
    held: Held,
    waiting: u64,
    /// When `waiting` last changed.
    since: Duration,
}

impl Account {
    fn step(&mut self, at: Duration, arrived: u64, released: u64, held: u64) {
        self.pass(at);
        self.waiting = self.waiting.saturating_add(arrived).saturating_sub(released);
        self.held.bytes = self.held.bytes.saturating_add(held);
        self.held.peak = self.held.peak.max(self.waiting);
        self.held.largest_release = self.held.largest_release.max(released);
    }

    fn pass(&mut self, at: Duration) {
        let passed = at.saturating_sub(self.since);
        if self.waiting > 0 {
            self.held.time = self.held.time.saturating_add(passed);
            self.held.byte_seconds += self.waiting as f64 * passed.as_secs_f64();
        }
        self.since = at;
    }

    fn finish(mut self, end: Duration) -> Held {
        self.pass(end);
        self.held.left = self.waiting;
        self.held
    }
}

#[cfg(test)]
mod tests;
