//! A summary of each stream.

use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

use crate::arrivals::{Arrival, Class, Direction, arrivals};
use crate::blocking::head_of_line_blocking;
use crate::coverage::Coverage;
use crate::millis;
use crate::trace::{EventKind, Trace};

/// A stream in one direction, seen from one end. Times count from the first event of the trace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct StreamSummary {
    /// The stream.
    pub stream: u64,
    /// `:path` of its request, if the file has it.
    pub path: Option<String>,
    /// `:status` of its response, if the file has it.
    pub status: Option<String>,
    /// The last priority (RFC 9218) in the file.
    pub priority: Option<String>,
    /// When the first bytes went in the other direction, or the request's HEADERS did.
    #[serde(rename = "requested_ms", serialize_with = "millis::option::serialize")]
    pub requested: Option<Duration>,
    /// When its first STREAM frame arrived.
    #[serde(rename = "first_byte_ms", serialize_with = "millis::option::serialize")]
    pub first_byte: Option<Duration>,
    /// When its last new byte arrived.
    #[serde(rename = "last_byte_ms", serialize_with = "millis::option::serialize")]
    pub last_byte: Option<Duration>,
    /// When all bytes and the end (FIN) had arrived. `None` if bytes or the end are missing.
    #[serde(rename = "completed_ms", serialize_with = "millis::option::serialize")]
    pub completed: Option<Duration>,
    /// Its length, if its end was seen.
    pub final_size: Option<u64>,
    /// Bytes, each counted once.
    pub bytes: u64,
    /// Its STREAM frames.
    pub frames: u64,
    /// Packets that carried its STREAM frames.
    pub packets: u64,
    /// At the receiver: retransmitted bytes that filled gaps. At the sender: bytes sent again.
    pub retransmitted: u64,
    /// At the receiver: bytes that had arrived before.
    pub duplicate: u64,
    /// Bytes computed from repair symbols.
    pub recovered: u64,
    /// Bytes that the transport delivered to the application, if the file has them.
    pub delivered: Option<u64>,
    /// How long bytes waited for earlier bytes. Only for received data.
    #[serde(rename = "blocked_ms", serialize_with = "millis::option::serialize")]
    pub blocked: Option<Duration>,
}

impl StreamSummary {
    /// Time from request to first byte.
    pub fn time_to_first_byte(&self) -> Option<Duration> {
        self.first_byte?.checked_sub(self.requested?)
    }

    /// Time from request to completion.
    pub fn time_to_completion(&self) -> Option<Duration> {
        self.completed?.checked_sub(self.requested?)
    }
}

/// Every stream with data in this direction or with a request, by stream identifier.
pub fn stream_table(trace: &Trace, direction: Direction) -> Vec<StreamSummary> {
    let mut rows: BTreeMap<u64, Row> = BTreeMap::new();
    for arrival in arrivals(trace, direction) {
        rows.entry(arrival.frame.stream).or_default().take(&arrival, direction);
    }
    let requested = annotate(trace, direction, &mut rows);
    if direction == Direction::Received {
        for row in rows.values_mut() {
            row.summary.blocked = Some(Duration::ZERO);
        }
        for (stream, held) in head_of_line_blocking(trace, &[]).streams {
            rows.entry(stream).or_default().summary.blocked = Some(held.time);
        }
    }
    for (stream, at) in requested {
        if let Some(row) = rows.get_mut(&stream) {
            row.summary.requested = Some(at);
        }
    }
    let summaries = rows.into_iter().map(|(stream, row)| StreamSummary { stream, ..row.summary });
    summaries.collect()
}

#[derive(Debug, Default)]
struct Row {
    summary: StreamSummary,
    coverage: Coverage,
    packet: Option<u64>,
}

impl Row {
    fn take(&mut self, arrival: &Arrival, direction: Direction) {
        let summary = &mut self.summary;
        let frame = &arrival.frame;
        self.coverage.insert(frame.offset..frame.end(), &mut Vec::new());
        summary.first_byte.get_or_insert(arrival.at);
        summary.frames += 1;
        if arrival.class != Class::Recovered
            && (arrival.packet.is_none() || arrival.packet != self.packet)
        {
            summary.packets += 1;
            self.packet = arrival.packet;
        }
        summary.bytes += arrival.new_bytes;
        let old = frame.length - arrival.new_bytes;
        match (direction, arrival.class) {
            (Direction::Sent, _) => summary.retransmitted += old,
            (_, Class::Recovered) => summary.recovered += arrival.new_bytes,
            (_, Class::Retransmitted) => {
                summary.retransmitted += arrival.new_bytes;
                summary.duplicate += old;
            }
            _ => summary.duplicate += old,
        }
        let first_end = frame.fin && summary.final_size.is_none();
        if first_end {
            summary.final_size = Some(frame.end());
        }
        if arrival.new_bytes > 0 || first_end {
            summary.last_byte = Some(arrival.at);
            let all = self.coverage.contiguous();
            if summary.completed.is_none() && summary.final_size.is_some_and(|size| all >= size) {
                summary.completed = Some(arrival.at);
            }
        }
    }
}

/// Adds information from other events. Returns when each stream was requested.
fn annotate(
    trace: &Trace,
    direction: Direction,
    rows: &mut BTreeMap<u64, Row>,
) -> BTreeMap<u64, Duration> {
    let mut requested = BTreeMap::new();
    for event in &trace.events {
        if let Some(packet) = direction.opposite().packet(&event.kind) {
            for frame in &packet.frames {
                requested.entry(frame.stream).or_insert(event.at);
            }
        }
        match &event.kind {
            EventKind::Request { stream, path, priority } => {
                requested.entry(*stream).or_insert(event.at);
                let summary = &mut rows.entry(*stream).or_default().summary;
                summary.path = Some(path.to_string());
                set(&mut summary.priority, priority.as_deref());
            }
            EventKind::Response { stream, status, priority } => {
                let summary = &mut rows.entry(*stream).or_default().summary;
                summary.status = Some(status.to_string());
                set(&mut summary.priority, priority.as_deref());
            }
            EventKind::PriorityUpdate { stream, priority } => {
                if let Some(row) = rows.get_mut(stream) {
                    set(&mut row.summary.priority, Some(priority));
                }
            }
            EventKind::DataMoved { stream, length } => {
                if let Some(row) = rows.get_mut(stream) {
                    let delivered = row.summary.delivered.get_or_insert(0);
                    *delivered = delivered.saturating_add(*length);
                }
            }
            _ => {}
        }
    }
    requested
}

fn set(slot: &mut Option<String>, value: Option<&str>) {
    if let Some(value) = value {
        *slot = Some(value.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{Build, frame, last};

    const fn ms(millis: u64) -> Option<Duration> {
        Some(Duration::from_millis(millis))
    }

    #[test]
    fn a_download_with_a_loss_and_a_recovery() {
        // Stream 0, 400 bytes: 0..100 at 20, 200..300 at 22, 100..200 recovered at 25, the end
        // 350..400 at 26, 300..350 at 40 together with 50 bytes that had arrived before. Blocked
        // from 22 to 25 and from 26 to 40: 17 ms.
        let request =
            EventKind::Request { stream: 0, path: "/a".into(), priority: Some("u=1".into()) };
        let update = EventKind::PriorityUpdate { stream: 0, priority: "u=5".into() };
        let trace = Build::default()
            .event(4, request)
            .sent(5, 0, &[last(0, 0, 30)])
            .received(20, 0, &[frame(0, 0, 50), frame(0, 50, 50)])
            .received(22, 2, &[frame(0, 200, 100)])
            .event(23, EventKind::DataMoved { stream: 0, length: 60 })
            .recovered(25, &[frame(0, 100, 100)])
            .received(26, 5, &[last(0, 350, 50)])
            .event(30, update)
            .event(31, EventKind::DataMoved { stream: 0, length: 40 })
            .received(40, 6, &[frame(0, 300, 100)])
            .received(41, 7, &[frame(0, 0, 100)])
            .trace();
        let expected = StreamSummary {
            stream: 0,
            path: Some("/a".to_owned()),
            status: None,
            priority: Some("u=5".to_owned()),
            requested: ms(4),
            first_byte: ms(20),
            last_byte: ms(40),
            completed: ms(40),
            final_size: Some(400),
            bytes: 400,
            frames: 7,
            packets: 5,
            retransmitted: 50,
            duplicate: 150,
            recovered: 100,
            delivered: Some(100),
            blocked: ms(17),
        };
        let table = stream_table(&trace, Direction::Received);
        assert_eq!(table, [expected]);
        assert_eq!(table[0].time_to_first_byte(), ms(16));
        assert_eq!(table[0].time_to_completion(), ms(36));
    }

    #[test]
    fn a_server_sends_again() {
        let trace = Build::default()
            .received(1, 0, &[last(4, 0, 30)])
            .sent(2, 0, &[frame(4, 0, 100), frame(3, 0, 5)])
            .sent(3, 1, &[last(4, 100, 100)])
            .sent(9, 2, &[frame(4, 50, 100)])
            .trace();
        let table = stream_table(&trace, Direction::Sent);
        assert_eq!(table.iter().map(|row| row.stream).collect::<Vec<_>>(), [3, 4]);
        let [control, request] = &table[..] else { panic!("{table:?}") };
        assert_eq!((control.requested, control.completed), (None, None));
        assert_eq!((request.requested, request.completed), (ms(1), ms(3)));
        assert_eq!((request.bytes, request.retransmitted, request.packets), (200, 100, 3));
        assert_eq!(request.blocked, None);
    }

    #[test]
    fn an_empty_stream_ends() {
        let trace = Build::default().received(3, 0, &[last(0, 0, 0)]).trace();
        let table = stream_table(&trace, Direction::Received);
        assert_eq!((table[0].completed, table[0].final_size), (ms(3), Some(0)));
    }

    #[test]
    fn the_end_may_come_before_the_rest() {
        let trace = Build::default()
            .received(3, 1, &[last(0, 10, 10)])
            .received(5, 2, &[frame(0, 0, 5)])
            .trace();
        let table = stream_table(&trace, Direction::Received);
        assert_eq!((table[0].last_byte, table[0].completed), (ms(5), None));
    }
}
