//! How STREAM frames are bundled in packets (Marx 2020, section 2.3).

use serde::Serialize;
use std::collections::BTreeSet;

use crate::arrivals::Direction;
use crate::trace::{Packet, StreamFrame, Trace};

/// Packets that carried STREAM frames with data, by their contents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Bundling {
    /// All packets.
    pub packets: u64,
    /// Packets with one frame, with two, with three, and with more.
    pub by_frames: [u64; 4],
    /// The most frames in a packet.
    pub most_frames: u64,
    /// Packets with several frames of one stream.
    pub split: u64,
    /// Packets with frames of several streams.
    pub mixed: u64,
    /// Packets with less than half as much stream data as the fullest packet, although no stream ended in
    /// them: where the congestion window or flow control ended, or where the application had no more data for
    /// then.
    pub short: u64,
}

/// Counts the packets of a trace by how they bundle frames.
pub fn bundling(trace: &Trace, direction: Direction) -> Bundling {
    let packets = || trace.events.iter().filter_map(|event| direction.packet(&event.kind));
    let bytes =
        |packet: &Packet| packet.frames.iter().map(|f| f.length).fold(0, u64::saturating_add);
    let fullest = packets().map(bytes).max().unwrap_or(0);
    let mut bundling = Bundling::default();
    for packet in packets() {
        let frames: Vec<&StreamFrame> = packet.frames.iter().filter(|f| f.length > 0).collect();
        if !frames.is_empty() {
            let ended = packet.frames.iter().any(|frame| frame.fin);
            bundling.add(&frames, !ended && bytes(packet) < fullest.div_ceil(2));
        }
    }
    bundling
}

impl Bundling {
    /// Counts a packet with these frames.
    fn add(&mut self, frames: &[&StreamFrame], short: bool) {
        let streams: BTreeSet<u64> = frames.iter().map(|frame| frame.stream).collect();
        let last = self.by_frames.len() - 1;
        if let Some(count) = self.by_frames.get_mut((frames.len() - 1).min(last)) {
            *count += 1;
        }
        self.packets += 1;
        self.most_frames = self.most_frames.max(frames.len() as u64);
        self.split += u64::from(streams.len() < frames.len());
        self.mixed += u64::from(streams.len() > 1);
        self.short += u64::from(short);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{Build, frame, last};

    #[test]
    fn packets_are_counted_by_what_they_carry() {
        let trace = Build::default()
            .received(0, 0, &[frame(0, 0, 1000)])
            .received(1, 1, &[frame(0, 1000, 300), frame(0, 1300, 300), frame(4, 0, 400)])
            .received(2, 2, &[frame(4, 400, 499)])
            .received(3, 3, &[last(4, 899, 1), frame(8, 0, 9)])
            .received(4, 4, &[frame(8, 9, 0)])
            .received(
                5,
                5,
                &[frame(8, 9, 500), frame(4, 0, 1), frame(4, 1, 1), frame(4, 2, 1), frame(4, 3, 1)],
            )
            .trace();
        let expected = Bundling {
            packets: 5,
            by_frames: [2, 1, 1, 1],
            most_frames: 5,
            split: 2,
            mixed: 3,
            short: 1,
        };
        assert_eq!(bundling(&trace, Direction::Received), expected);
        assert_eq!(bundling(&trace, Direction::Sent), Bundling::default());
    }
}
