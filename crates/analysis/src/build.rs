//! Builds traces by hand, for tests.

use std::time::Duration;

use crate::trace::{Event, EventKind, Packet, Space, StreamFrame, Trace};

/// A STREAM frame without FIN.
pub(crate) const fn frame(stream: u64, offset: u64, length: u64) -> StreamFrame {
    StreamFrame { stream, offset, length, fin: false }
}

/// A STREAM frame with FIN.
pub(crate) const fn last(stream: u64, offset: u64, length: u64) -> StreamFrame {
    StreamFrame { stream, offset, length, fin: true }
}

/// A trace under construction. Times are in milliseconds and must not decrease.
#[derive(Debug, Clone, Default)]
pub(crate) struct Build(Trace);

impl Build {
    pub(crate) fn event(mut self, at: u64, kind: EventKind) -> Self {
        let at = Duration::from_millis(at);
        assert!(self.0.duration <= at);
        self.0.duration = at;
        self.0.events.push(Event { at, kind });
        self
    }

    pub(crate) fn packet(number: u64, frames: &[StreamFrame]) -> Packet {
        Packet {
            space: Space::Data,
            number: Some(number),
            size: 30 + frames.iter().map(|f| f.length).sum::<u64>(),
            frames: frames.to_vec(),
            symbols: Vec::new(),
            repairs: 0,
        }
    }

    pub(crate) fn received(self, at: u64, number: u64, frames: &[StreamFrame]) -> Self {
        self.event(at, EventKind::PacketReceived(Self::packet(number, frames)))
    }

    pub(crate) fn sent(self, at: u64, number: u64, frames: &[StreamFrame]) -> Self {
        self.event(at, EventKind::PacketSent(Self::packet(number, frames)))
    }

    pub(crate) fn recovered(self, at: u64, frames: &[StreamFrame]) -> Self {
        self.event(at, EventKind::SymbolRecovered { session: 0, id: 0, frames: frames.to_vec() })
    }

    pub(crate) fn trace(self) -> Trace {
        self.0
    }
}
