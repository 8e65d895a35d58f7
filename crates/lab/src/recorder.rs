//! Records the packets that a client receives, as a trace for `sutura-analysis`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use sutura_analysis::{Event, EventKind, Packet, Space, StreamFrame, Trace};
use sutura_proto::wire_format::{Carrier, Frame, FrameIter};
use sutura_proto::{Observation, Observer, SpaceId};

/// Records the STREAM frames of the packets that a connection receives. Source symbols and recovered
/// data are left out. Clones share the record.
#[derive(Clone, Debug, Default)]
pub struct Recorder(Arc<Mutex<Record>>);

#[derive(Debug, Default)]
struct Record {
    start: Option<Instant>,
    trace: Trace,
}

impl Recorder {
    /// Takes the trace recorded so far.
    #[must_use]
    pub fn take(&self) -> Trace {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner)).trace
    }
}

impl Observer for Recorder {
    fn observe(&mut self, at: Instant, observation: &Observation<'_>) {
        let Observation::PacketReceived { space: SpaceId::Data, pn, payload, .. } = observation
        else {
            return;
        };
        let frames = FrameIter::new(payload, Carrier::OneRtt).flatten().filter_map(|frame| {
            let Frame::Stream(frame) = frame else { return None };
            let (stream, length) = (frame.id.0, frame.data.len() as u64);
            Some(StreamFrame { stream, offset: frame.offset, length, fin: frame.fin })
        });
        let packet = Packet {
            space: Space::Data,
            number: Some(*pn),
            size: payload.len() as u64,
            frames: frames.collect(),
            symbols: Vec::new(),
            repairs: 0,
        };
        let mut record = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = at - *record.start.get_or_insert(at);
        record.trace.duration = at;
        record.trace.events.push(Event { at, kind: EventKind::PacketReceived(packet) });
    }
}
