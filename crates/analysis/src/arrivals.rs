//! Classifies each STREAM frame as it arrives: new data, a retransmission, a duplicate.

use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use crate::coverage::{self, Coverage};
use crate::millis;
use crate::trace::{EventKind, Packet, StreamFrame, Trace};

/// Which packets of a trace to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Packets that the recording end sent.
    Sent,
    /// Packets that the recording end received.
    Received,
}

impl Direction {
    /// The direction with more bytes in STREAM frames: for a download, received at a client and
    /// sent at a server. Received if both are equal.
    pub fn busiest(trace: &Trace) -> Self {
        let bytes = |packet: &Packet| packet.frames.iter().map(|f| f.length).sum::<u64>();
        let (mut sent, mut received) = (0u64, 0u64);
        for event in &trace.events {
            match &event.kind {
                EventKind::PacketSent(packet) => sent = sent.saturating_add(bytes(packet)),
                EventKind::PacketReceived(p) => received = received.saturating_add(bytes(p)),
                _ => {}
            }
        }
        if sent > received { Self::Sent } else { Self::Received }
    }

    /// The packet of an event, if it went in this direction.
    pub(crate) fn packet(self, kind: &EventKind) -> Option<&Packet> {
        match (self, kind) {
            (Self::Sent, EventKind::PacketSent(packet))
            | (Self::Received, EventKind::PacketReceived(packet)) => Some(packet),
            _ => None,
        }
    }

    /// The other direction.
    pub const fn opposite(self) -> Self {
        match self {
            Self::Sent => Self::Received,
            Self::Received => Self::Sent,
        }
    }
}

/// The kind of data that a STREAM frame carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// The next bytes of its stream.
    New,
    /// Bytes beyond the next expected one: they opened a gap before them.
    Future,
    /// Bytes that fill a gap, in a packet sent after the packet that opened the gap. At the sender: bytes
    /// sent before.
    Retransmitted,
    /// Bytes that fill a gap, in a packet sent before the packet that opened the gap.
    Reordered,
    /// Bytes that fill a gap, or the next bytes, computed from repair symbols.
    Recovered,
    /// No new bytes.
    Duplicate,
}

/// A STREAM frame that was sent, received, or recovered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Arrival {
    /// Time since the first event of the trace.
    #[serde(rename = "at_ms", serialize_with = "millis::serialize")]
    pub at: Duration,
    /// The frame.
    #[serde(flatten)]
    pub frame: StreamFrame,
    /// Number of its bytes that were new.
    pub new_bytes: u64,
    /// The packet number; `None` if the frame was recovered or the file does not say.
    pub packet: Option<u64>,
    /// The kind of data that it carried.
    pub class: Class,
}

/// Every STREAM frame in one direction, in order of time, including empty ones.
///
/// Packet numbers grow in the order of sending (RFC 9000, section 12.3), so they tell whether a gap
/// was filled by a retransmission or by a late packet. A frame without a packet number counts as a
/// retransmission.
pub fn arrivals(trace: &Trace, direction: Direction) -> Vec<Arrival> {
    let mut streams: BTreeMap<u64, Received> = BTreeMap::new();
    let mut arrivals = Vec::new();
    let mut take = |at: Duration, frame: &StreamFrame, packet, recovered: bool| {
        let stream = streams.entry(frame.stream).or_default();
        let (class, new_bytes) = match direction {
            Direction::Received => stream.receive(frame, packet, recovered),
            Direction::Sent => stream.send(frame),
        };
        arrivals.push(Arrival { at, frame: *frame, new_bytes, packet, class });
    };
    for event in &trace.events {
        if let Some(packet) = direction.packet(&event.kind) {
            packet.frames.iter().for_each(|f| take(event.at, f, packet.number, false));
        }
        if let (EventKind::SymbolRecovered { frames, .. }, Direction::Received) =
            (&event.kind, direction)
        {
            frames.iter().for_each(|f| take(event.at, f, None, true));
        }
    }
    arrivals
}

/// State of a stream.
#[derive(Debug, Default)]
struct Received {
    coverage: Coverage,
    /// The end of each gap and the number of the packet that opened it, by ascending end.
    gaps: Vec<(u64, Option<u64>)>,
    new: Vec<Range<u64>>,
}

impl Received {
    fn receive(
        &mut self,
        frame: &StreamFrame,
        packet: Option<u64>,
        recovered: bool,
    ) -> (Class, u64) {
        let highest = self.coverage.highest();
        self.coverage.insert(frame.offset..frame.end(), &mut self.new);
        if frame.offset > highest {
            self.gaps.push((frame.offset, packet));
        }
        let class = match self.new.first() {
            None if frame.length > 0 => Class::Duplicate,
            None => Class::New,
            Some(_) if recovered => Class::Recovered,
            Some(part) if part.start > highest => Class::Future,
            Some(part) if part.start == highest => Class::New,
            Some(part) => {
                let gap = self.gaps.partition_point(|(end, _)| *end <= part.start);
                let opened = self.gaps.get(gap).and_then(|(_, number)| *number);
                match packet.zip(opened) {
                    Some((packet, opened)) if packet < opened => Class::Reordered,
                    _ => Class::Retransmitted,
                }
            }
        };
        (class, coverage::length(&self.new))
    }

    fn send(&mut self, frame: &StreamFrame) -> (Class, u64) {
        self.coverage.insert(frame.offset..frame.end(), &mut self.new);
        let new = coverage::length(&self.new);
        let class = if new < frame.length { Class::Retransmitted } else { Class::New };
        (class, new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{Build, frame};
    use Class::*;

    fn classes(trace: &Trace, direction: Direction) -> Vec<(Class, u64)> {
        arrivals(trace, direction).iter().map(|a| (a.class, a.new_bytes)).collect()
    }

    #[test]
    fn gaps_are_filled_by_retransmissions_and_by_late_packets() {
        // Packets 2 and 3 are missing at first. 3 arrives late; the data of 2 is sent again in 9.
        let trace = Build::default()
            .received(0, 1, &[frame(0, 0, 100)])
            .received(1, 4, &[frame(0, 300, 100)])
            .received(2, 3, &[frame(0, 200, 100)])
            .received(3, 9, &[frame(0, 100, 100)])
            .received(4, 10, &[frame(0, 50, 100)])
            .received(5, 11, &[frame(0, 350, 100)])
            .trace();
        let expected = [
            (New, 100),
            (Future, 100),
            (Reordered, 100),
            (Retransmitted, 100),
            (Duplicate, 0),
            (New, 50),
        ];
        assert_eq!(classes(&trace, Direction::Received), expected);
        assert!(arrivals(&trace, Direction::Sent).is_empty());
    }

    #[test]
    fn each_gap_has_the_packet_that_opened_it() {
        // Packet 5 opens the gap 0..100, packet 8 the gap 200..300. Packet 6 was sent after 5 but
        // before 8.
        let trace = Build::default()
            .received(0, 5, &[frame(4, 100, 100)])
            .received(1, 8, &[frame(4, 300, 100)])
            .received(2, 6, &[frame(4, 200, 100)])
            .received(3, 7, &[frame(4, 0, 100)])
            .trace();
        let expected = [(Future, 100), (Future, 100), (Reordered, 100), (Retransmitted, 100)];
        assert_eq!(classes(&trace, Direction::Received), expected);
    }

    #[test]
    fn streams_do_not_know_of_each_other() {
        let trace = Build::default()
            .received(0, 0, &[frame(0, 0, 10), frame(4, 0, 10), frame(8, 10, 10)])
            .recovered(1, &[frame(8, 0, 10), frame(4, 0, 10)])
            .trace();
        let expected = [(New, 10), (New, 10), (Future, 10), (Recovered, 10), (Duplicate, 0)];
        assert_eq!(classes(&trace, Direction::Received), expected);
    }

    #[test]
    fn senders_repeat_themselves() {
        let trace = Build::default()
            .sent(0, 0, &[frame(0, 0, 100)])
            .sent(0, 1, &[frame(0, 100, 100)])
            .sent(9, 2, &[frame(0, 50, 100)])
            .received(9, 0, &[frame(0, 0, 1)])
            .trace();
        let expected = [(New, 100), (New, 100), (Retransmitted, 0)];
        assert_eq!(classes(&trace, Direction::Sent), expected);
        assert_eq!(Direction::busiest(&trace), Direction::Sent);
    }
}
