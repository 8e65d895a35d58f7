//! Connections that somebody recorded, beside the downloads of the stacks.

use sutura_analysis::figure::{Picture, multiplexing};
use sutura_analysis::{Direction, head_of_line_blocking};

use super::{FileTrace, Sample};
use crate::own::OwnTrace;
use crate::report::{Cell, Table};

/// A recorded connection, and its figures.
pub(super) struct OwnRecord<'a> {
    pub(super) name: &'a str,
    trace: FileTrace,
    pub(super) figures: Sample,
}

impl<'a> OwnRecord<'a> {
    pub(super) fn of(own: &'a OwnTrace) -> Self {
        let trace = FileTrace {
            received: sutura_analysis::multiplexing(&own.trace, Direction::Received),
            blocking: head_of_line_blocking(&own.trace, &own.order),
            completion: Vec::new(),
        };
        Self { name: &own.name, figures: Sample::of(&trace), trace }
    }

    /// Its frames in the order of their arrival.
    pub(super) fn picture(&self) -> Picture {
        let name = format!("own {}", self.name);
        Picture { svg: multiplexing(&self.trace.received, &[], self.name), name }
    }
}

/// The table; `None` without recorded connections.
pub(super) fn table(recorded: &[OwnRecord<'_>]) -> Option<Table> {
    let table = || {
        Table::of(
            "Your own traces, as each end received them (runs in frames)",
            recorded,
            &[
                ("trace", &|own| own.name.into()),
                ("frames", &|own| own.trace.received.arrivals.len().into()),
                ("median run", &|own| own.trace.run_lengths()[1].into()),
                ("longest", &|own| own.trace.received.longest_run().into()),
                ("gaps", &|own| own.trace.blocking.gaps.into()),
                ("ratio", &|own| own.figures.ratio.map(Cell::Number).into()),
                ("QUIC bytes", &|own| Cell::Count(own.figures.max_quic as u64)),
                ("TCP bytes", &|own| Cell::Count(own.figures.max_tcp as u64)),
                ("waited QUIC", &|own| Cell::Share(own.figures.waited_quic)),
                ("waited TCP", &|own| Cell::Share(own.figures.waited_tcp)),
                ("in a row", &|own| Cell::Number(own.figures.retransmitted_run)),
            ],
        )
    };
    (!recorded.is_empty()).then(table)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sutura_analysis::{Event, EventKind, Packet, Space, StreamFrame, Trace};

    use super::*;

    fn frame(stream: u64, offset: u64) -> StreamFrame {
        StreamFrame { stream, offset, length: 100, fin: false }
    }

    /// Packets with 100 bytes of a stream each: number, stream and offset.
    fn trace(packets: &[(u64, u64, u64)]) -> OwnTrace {
        let packet = |(at, (number, stream, offset)): (u64, &(u64, u64, u64))| Event {
            at: std::time::Duration::from_millis(at),
            kind: EventKind::PacketReceived(Packet {
                space: Space::Data,
                number: Some(*number),
                size: 130,
                frames: vec![frame(*stream, *offset)],
                symbols: Vec::new(),
                repairs: 0,
            }),
        };
        let events = (0..).zip(packets).map(packet).collect();
        let trace = Arc::new(Trace { events, ..Trace::default() });
        OwnTrace { name: "mine".to_owned(), trace, order: Vec::new().into() }
    }

    #[test]
    fn what_a_loss_holds_up_is_told_of_a_recorded_connection() {
        // Packet 1, with the second 100 bytes of stream 0, is lost and sent again.
        let estimated = trace(&[(0, 0, 0), (2, 4, 0), (3, 0, 200), (4, 4, 100), (5, 0, 100)]);
        let sent = [frame(0, 0), frame(0, 100), frame(4, 0), frame(0, 200), frame(4, 100)];
        let own = OwnTrace { order: sent.into(), ..estimated.clone() };
        let recorded = [&own, &estimated].map(OwnRecord::of);
        let table = table(&recorded).unwrap();
        let cell = |column: &str| {
            let at = table.columns.iter().position(|name| name == column).unwrap();
            table.rows[0][at].to_string()
        };
        assert_eq!(["trace", "frames", "gaps"].map(cell), ["mine", "5", "1"]);
        // QUIC hands over the 200 bytes of stream 0 that wait for it, TCP all that came since as well.
        assert_eq!(["QUIC bytes", "TCP bytes"].map(cell), ["200", "400"]);
        assert_eq!(["ratio", "in a row"].map(cell), ["0.500", "1.000"]);
        // Without the order of sending, what was lost may have been right before the next of its stream.
        assert_eq!(table.rows[1][7].to_string(), "300");
        assert!(recorded[0].picture().svg.contains("mine"));
    }

    #[test]
    fn there_is_no_table_without_recorded_connections() {
        assert_eq!(table(&[]), None);
    }
}
