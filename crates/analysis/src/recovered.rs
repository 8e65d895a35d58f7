//! Finds the STREAM frames that a recovered symbol contained: its sender knows them.

use std::collections::BTreeMap;

use crate::trace::{EventKind, StreamFrame, Trace};

/// Fills in the STREAM frames of recovered symbols in `trace` where the file lacks them, from
/// `peer`, the sender's record. Returns the number of symbols filled in.
pub fn resolve_recovered(trace: &mut Trace, peer: &Trace) -> u64 {
    let mut sent: BTreeMap<(u64, u64), &[StreamFrame]> = BTreeMap::new();
    for event in &peer.events {
        let EventKind::PacketSent(packet) = &event.kind else { continue };
        for symbol in &packet.symbols {
            let end = symbol.first_frame.saturating_add(symbol.frames);
            let frames = packet.frames.get(symbol.first_frame..end).unwrap_or_default();
            sent.insert((symbol.session, symbol.id), frames);
        }
    }
    let mut found = 0;
    for event in &mut trace.events {
        let EventKind::SymbolRecovered { session, id, frames } = &mut event.kind else { continue };
        if !frames.is_empty() {
            continue;
        }
        if let Some(known) = sent.get(&(*session, *id)) {
            *frames = known.to_vec();
            found += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{Build, frame};
    use crate::trace::Symbol;
    use crate::{Class, Direction, arrivals, head_of_line_blocking};

    #[test]
    fn the_sender_knows_what_was_recovered() {
        // The second of two symbols in a packet contains stream 4; it was lost and recovered.
        let mut packet = Build::packet(1, &[frame(0, 0, 10), frame(4, 0, 10)]);
        let symbol =
            |id, first_frame| Symbol { session: 7, id, length: 13, first_frame, frames: 1 };
        packet.symbols = vec![symbol(20, 0), symbol(21, 1)];
        let sender = Build::default().event(0, EventKind::PacketSent(packet)).trace();
        let recovered = |id| EventKind::SymbolRecovered { session: 7, id, frames: Vec::new() };
        let mut receiver = Build::default()
            .received(0, 2, &[frame(4, 10, 10)])
            .event(3, recovered(21))
            .event(4, recovered(99))
            .trace();
        assert_eq!(head_of_line_blocking(&receiver, &[]).quic.left, 10);
        assert_eq!(resolve_recovered(&mut receiver, &sender), 1);
        assert_eq!(resolve_recovered(&mut receiver, &sender), 0);
        assert_eq!(head_of_line_blocking(&receiver, &[]).quic.left, 0);
        let last = arrivals(&receiver, Direction::Received)[1];
        assert_eq!((last.frame, last.class), (frame(4, 0, 10), Class::Recovered));
    }
}
