//! Turns events into traces: one for each connection, with times since its first event.

use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use super::event::{self, Read};
use super::header::{Header, TimeFormat};
use super::json;
use crate::error::{Error, ErrorKind, Position};
use crate::limits::{MAX_EVENTS, MAX_FRAMES, MAX_STREAM_DATA, MAX_STREAMS, MAX_TRACES};
use crate::trace::{Event, EventKind, StreamFrame, Trace};

/// Times further from the first event than this, in milliseconds, are malformed.
const LONGEST: f64 = 1e12;

/// How much of a file has been kept.
#[derive(Debug, Default)]
pub(super) struct Kept {
    events: usize,
    frames: usize,
    /// The highest offset of each stream, by index of the trace in the file and stream identifier.
    streams: HashMap<(usize, u64), u64>,
    /// The sum of these offsets.
    data: u64,
    /// Finished traces.
    pub(super) traces: usize,
}

/// A trace and the time of its first event in milliseconds.
#[derive(Debug)]
struct Collected {
    trace: Trace,
    origin: Option<f64>,
}

/// Collects the events of a trace of the file; of several, if events name other groups.
#[derive(Debug)]
pub(super) struct Collector {
    header: Header,
    /// The time of the previous event, in milliseconds.
    time: f64,
    traces: Vec<Collected>,
    /// The index in `traces` of each other group.
    groups: BTreeMap<String, usize>,
    pub(super) kept: Kept,
}

impl Collector {
    pub(super) fn new(header: Header) -> Self {
        let first = Collected { trace: header.to_trace(), origin: None };
        Self {
            header,
            time: 0.0,
            traces: vec![first],
            groups: BTreeMap::new(),
            kept: Kept::default(),
        }
    }

    /// Adds an event.
    pub(super) fn event(&mut self, event: Value, position: Position) -> Result<(), Error> {
        let event = &self.header.named(event);
        let time = json::float(event.get("time")).map(|time| time * self.header.unit);
        let index = self.trace_of(event).map_err(|kind| kind.at(position))?;
        let Some(collected) = self.traces.get_mut(index) else { return Ok(()) };
        let Some(time) = time else {
            malformed(&mut collected.trace, position);
            return Ok(());
        };
        self.time = match self.header.time_format {
            TimeFormat::Fixed => time,
            TimeFormat::Delta => self.time + time,
        };
        let since = self.time - *collected.origin.get_or_insert(self.time);
        if !(-LONGEST..=LONGEST).contains(&since) {
            malformed(&mut collected.trace, position);
            return Ok(());
        }
        let at = Duration::from_micros((since.max(0.0) * 1000.0).round() as u64);
        let trace = &mut collected.trace;
        trace.duration = trace.duration.max(at);
        match event::read(event) {
            Read::Event(kind) => {
                self.kept.add(index, &kind).map_err(|kind| kind.at(position))?;
                trace.events.push(Event { at, kind });
            }
            Read::Other => trace.other_events += 1,
            Read::Malformed => malformed(trace, position),
        }
        Ok(())
    }

    /// Records that a record is not JSON.
    pub(super) fn broken(&mut self, position: Position, truncated: bool) {
        let Some(first) = self.traces.first_mut() else { return };
        if truncated {
            first.trace.truncated = true;
        } else {
            malformed(&mut first.trace, position);
        }
    }

    /// The index of the trace that an event belongs to. A file may hold several connections, whose
    /// events name their group.
    fn trace_of(&mut self, event: &Value) -> Result<usize, ErrorKind> {
        let Some(group) = json::text(event.get("group_id")) else { return Ok(0) };
        if self.header.group.as_deref().is_none_or(|own| own == group) {
            // The first group named is the group of the trace.
            if self.header.group.is_none() {
                self.header.group = Some(group.to_owned());
                if let Some(first) = self.traces.first_mut() {
                    first.trace.group = self.header.group.clone();
                }
            }
            return Ok(0);
        }
        if let Some(index) = self.groups.get(group) {
            return Ok(*index);
        }
        if self.kept.traces + self.traces.len() >= MAX_TRACES {
            return Err(ErrorKind::TooManyTraces);
        }
        let trace = Trace { group: Some(group.to_owned()), ..self.header.to_trace() };
        self.groups.insert(group.to_owned(), self.traces.len());
        self.traces.push(Collected { trace, origin: None });
        Ok(self.traces.len() - 1)
    }

    /// The traces, with events in order of time.
    pub(super) fn finish(self) -> Vec<Trace> {
        let mut traces: Vec<_> = self.traces.into_iter().map(|c| c.trace).collect();
        for trace in &mut traces {
            trace.events.sort_by_key(|event| event.at);
        }
        traces
    }
}

impl Kept {
    fn add(&mut self, trace: usize, kind: &EventKind) -> Result<(), ErrorKind> {
        let none: &[StreamFrame] = &[];
        let (frames, symbols, stream) = match kind {
            EventKind::PacketSent(packet) | EventKind::PacketReceived(packet) => {
                (packet.frames.as_slice(), packet.symbols.len(), None)
            }
            EventKind::SymbolRecovered { frames, .. } => (frames.as_slice(), 0, None),
            EventKind::DataMoved { stream, .. }
            | EventKind::Request { stream, .. }
            | EventKind::Response { stream, .. }
            | EventKind::PriorityUpdate { stream, .. } => (none, 0, Some(*stream)),
            EventKind::PacketLost { .. }
            | EventKind::RecoveredByPeer { .. }
            | EventKind::LossEstimateUpdated(_)
            | EventKind::RedundancyUpdated(_) => (none, 0, None),
        };
        self.events += 1;
        self.frames += frames.len() + symbols;
        let streams = frames.iter().map(|frame| (frame.stream, frame.end()));
        for (stream, end) in streams.chain(stream.map(|stream| (stream, 0))) {
            let reach = self.streams.entry((self.traces + trace, stream)).or_default();
            self.data = self.data.saturating_add(end.saturating_sub(*reach));
            *reach = end.max(*reach);
        }
        let limits = [
            (self.events > MAX_EVENTS, ErrorKind::TooManyEvents),
            (self.frames > MAX_FRAMES, ErrorKind::TooManyFrames),
            (self.streams.len() > MAX_STREAMS, ErrorKind::TooManyStreams),
            (self.data > MAX_STREAM_DATA, ErrorKind::TooMuchData),
        ];
        limits.into_iter().find(|(exceeded, _)| *exceeded).map_or(Ok(()), |(_, kind)| Err(kind))
    }
}

fn malformed(trace: &mut Trace, position: Position) {
    trace.malformed += 1;
    trace.first_malformed.get_or_insert(position);
}
