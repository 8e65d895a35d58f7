//! An observer that counts the packets and symbols of a connection.

use crate::tally::Tally;
use std::fmt;
use std::time::Instant;
use sutura::wire_format::{Carrier, Frame, FrameIter};
use sutura::{Observation, Observer, SpaceId};

/// Counts on the connections to which it is given with `Connection::observe`. Clones count together.
#[derive(Debug, Clone, Default)]
pub struct Counter {
    /// Packets that were sent.
    pub sent: Tally,
    /// Packets that were received.
    pub received: Tally,
    /// Sent packets that were declared lost.
    pub lost: Tally,
    /// Source symbols that were sent.
    pub sources: Tally,
    /// Repair symbols that were sent.
    pub repairs: Tally,
    /// Source symbols that were lost on the way here, and computed from repair symbols.
    pub recovered: Tally,
}

impl Counter {
    fn count_symbols(&self, payload: &[u8]) {
        // Reading stops at malformed bytes, which our own packets do not contain.
        for frame in FrameIter::new(payload, Carrier::OneRtt).map_while(Result::ok) {
            match frame {
                Frame::SourceSymbol(_) => self.sources.add(1),
                Frame::Repair(_) => self.repairs.add(1),
                _ => {}
            }
        }
    }
}

impl Observer for Counter {
    fn observe(&mut self, _now: Instant, observation: &Observation<'_>) {
        match observation {
            Observation::PacketSent { space, payload, .. } => {
                self.sent.add(1);
                if *space == SpaceId::Data {
                    self.count_symbols(payload);
                }
            }
            Observation::PacketReceived { .. } => self.received.add(1),
            Observation::PacketLost { .. } => self.lost.add(1),
            Observation::SymbolRecovered { .. } => self.recovered.add(1),
            // There are further events, and later versions may add more.
            _ => {}
        }
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sent, received, lost, sources, repairs, recovered } = self;
        write!(f, "packets: {sent} sent, {lost} of them lost, {received} received; ")?;
        write!(f, "symbols: {sources} source, {repairs} repair, {recovered} recovered here")
    }
}
