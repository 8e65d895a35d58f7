//! A summary of a trace.

use serde::Serialize;
use std::time::Duration;

use crate::arrivals::Direction;
use crate::millis;
use crate::streams::stream_table;
use crate::trace::{EventKind, LossEstimate, Packet, Redundancy, Trace};

/// Coding sessions whose policies are listed.
pub const MAX_POLICIES: usize = 64;

/// Packets in one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct PacketCounts {
    /// Packets.
    pub packets: u64,
    /// Their bytes, if the file has sizes.
    pub bytes: u64,
    /// Packets that carried a source symbol.
    pub source_symbols: u64,
    /// Repair symbols that they carried.
    pub repair_symbols: u64,
}

impl PacketCounts {
    fn add(&mut self, packet: &Packet) {
        self.packets += 1;
        self.bytes = self.bytes.saturating_add(packet.size);
        self.source_symbols += packet.symbols.len() as u64;
        self.repair_symbols += u64::from(packet.repairs);
    }
}

/// Source symbols that were recovered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct SymbolCounts {
    /// Symbols recovered by the recording end.
    pub recovered: u64,
    /// Recovered symbols whose STREAM frames are unknown; see
    /// [`resolve_recovered`](crate::resolve_recovered).
    pub unresolved: u64,
    /// Symbols recovered by the peer, as it reported.
    pub by_peer: u64,
}

/// A summary of a trace in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Overview {
    /// The title in the file; free text.
    pub title: String,
    /// The qlog version.
    pub version: String,
    /// The format of the file.
    pub format: &'static str,
    /// The end that recorded it: `client`, `server` or `unknown`.
    pub vantage: &'static str,
    /// The group identifier, the same for both ends of a connection.
    pub group: Option<String>,
    /// From the first event to the last.
    #[serde(rename = "duration_ms", serialize_with = "millis::serialize")]
    pub duration: Duration,
    /// The direction of the numbers below.
    pub direction: Direction,
    /// Streams with data in this direction.
    pub streams: u64,
    /// Their bytes, each counted once.
    pub bytes: u64,
    /// Bytes sent again; see [`StreamSummary`](crate::StreamSummary).
    pub retransmitted: u64,
    /// Bytes computed from repair symbols.
    pub recovered: u64,
    /// Packets sent.
    pub sent: PacketCounts,
    /// Packets received.
    pub received: PacketCounts,
    /// Packets declared lost.
    pub lost: u64,
    /// Recovered symbols.
    pub symbols: SymbolCounts,
    /// The recording end's last estimate of the losses of its path.
    pub loss: Option<LossEstimate>,
    /// The last states of redundancy policies, for at most [`MAX_POLICIES`] sessions in the order in which
    /// they began.
    pub redundancy: Vec<Redundancy>,
    /// Malformed records.
    pub malformed: u64,
    /// Whether the file ends early.
    pub truncated: bool,
}

/// Summarises a trace.
pub fn overview(trace: &Trace, direction: Direction) -> Overview {
    let table = stream_table(trace, direction);
    let mut overview = Overview {
        title: trace.title.clone(),
        version: trace.version.clone(),
        format: trace.format.name(),
        vantage: trace.vantage.name(),
        group: trace.group.clone(),
        duration: trace.duration,
        direction,
        streams: table.iter().filter(|row| row.frames > 0).count() as u64,
        bytes: table.iter().map(|row| row.bytes).fold(0, u64::saturating_add),
        retransmitted: table.iter().map(|row| row.retransmitted).fold(0, u64::saturating_add),
        recovered: table.iter().map(|row| row.recovered).fold(0, u64::saturating_add),
        sent: PacketCounts::default(),
        received: PacketCounts::default(),
        lost: 0,
        symbols: SymbolCounts::default(),
        loss: None,
        redundancy: Vec::new(),
        malformed: trace.malformed,
        truncated: trace.truncated,
    };
    for event in &trace.events {
        match &event.kind {
            EventKind::PacketSent(packet) => overview.sent.add(packet),
            EventKind::PacketReceived(packet) => overview.received.add(packet),
            EventKind::PacketLost { .. } => overview.lost += 1,
            EventKind::SymbolRecovered { frames, .. } => {
                overview.symbols.recovered += 1;
                overview.symbols.unresolved += u64::from(frames.is_empty());
            }
            EventKind::RecoveredByPeer { count } => {
                overview.symbols.by_peer = overview.symbols.by_peer.saturating_add(*count);
            }
            EventKind::LossEstimateUpdated(loss) => overview.loss = Some(*loss),
            EventKind::RedundancyUpdated(news) => overview.update(news),
            EventKind::DataMoved { .. }
            | EventKind::Request { .. }
            | EventKind::Response { .. }
            | EventKind::PriorityUpdate { .. } => {}
        }
    }
    overview
}

impl Overview {
    /// Notes the present state of a session's policy.
    fn update(&mut self, news: &Redundancy) {
        let sessions = self.redundancy.len();
        match self.redundancy.iter_mut().find(|known| known.session == news.session) {
            Some(known) => news.clone_into(known),
            None if sessions < MAX_POLICIES => self.redundancy.push(news.clone()),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{Build, frame};
    use crate::trace::Space;

    #[test]
    fn everything_is_counted() {
        let mut repair = Build::packet(3, &[]);
        repair.repairs = 2;
        let trace = Build::default()
            .sent(0, 0, &[frame(0, 0, 10)])
            .received(1, 0, &[frame(0, 0, 100), frame(3, 0, 50)])
            .event(2, EventKind::PacketReceived(repair))
            .event(3, EventKind::SymbolRecovered { session: 0, id: 1, frames: Vec::new() })
            .recovered(4, &[frame(0, 100, 10)])
            .event(5, EventKind::RecoveredByPeer { count: 3 })
            .event(6, EventKind::PacketLost { space: Space::Data, number: Some(0) })
            .trace();
        let overview = overview(&trace, Direction::Received);
        assert_eq!((overview.streams, overview.bytes, overview.recovered), (2, 160, 10));
        let sent = PacketCounts { packets: 1, bytes: 40, ..PacketCounts::default() };
        assert_eq!(overview.sent, sent);
        let received =
            PacketCounts { packets: 2, bytes: 210, source_symbols: 0, repair_symbols: 2 };
        assert_eq!(overview.received, received);
        assert_eq!(overview.symbols, SymbolCounts { recovered: 2, unresolved: 1, by_peer: 3 });
        assert_eq!((overview.lost, overview.duration), (1, Duration::from_millis(6)));
        assert_eq!((overview.loss, overview.redundancy.len()), (None, 0));
    }

    #[test]
    fn the_last_word_on_losses_and_redundancy_counts() {
        let loss = |rate| {
            let estimate =
                LossEstimate { rate, low: 0.0, high: 0.1, burst: 2.0, burst_ms: Some(5.0) };
            EventKind::LossEstimateUpdated(estimate)
        };
        let says = |session, reason: &str| {
            let (policy, reason) = ("auto".into(), Some(reason.into()));
            Box::new(Redundancy { session, policy, reason, repairs: None })
        };
        let mut build = Build::default()
            .event(1, loss(0.02))
            .event(2, EventKind::RedundancyUpdated(says(3, "unknown")))
            .event(3, EventKind::RedundancyUpdated(says(1, "lossless")))
            .event(4, loss(0.03))
            .event(5, EventKind::RedundancyUpdated(says(3, "no_use")));
        let overview = overview(&build.clone().trace(), Direction::Sent);
        assert_eq!(overview.loss.map(|loss| loss.rate), Some(0.03));
        assert_eq!(overview.redundancy, [*says(3, "no_use"), *says(1, "lossless")]);
        let text = crate::text::overview(&overview);
        let expected = "loss 3.0 % (0.0 to 10.0 %), 2.0 packets in a row for 5.0 ms\n\
                        session 3: auto, no_use\nsession 1: auto, lossless\n";
        assert!(text.ends_with(expected), "{text}");
        // A file may name any number of sessions.
        for session in 0..1_000 {
            build = build.event(6, EventKind::RedundancyUpdated(says(session, "x")));
        }
        let overview = super::overview(&build.trace(), Direction::Sent);
        assert_eq!(overview.redundancy.len(), MAX_POLICIES);
    }
}
