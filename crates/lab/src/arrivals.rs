//! The STREAM frames that a client receives, in their order.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use sutura_proto::wire_format::{Carrier, Frame, FrameIter};
use sutura_proto::{Observation, Observer, SpaceId};

use crate::blocking::Chunk;

/// A STREAM frame that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The number of its packet.
    pub packet: u64,
    /// What it carried; empty if it only ended its stream.
    pub chunk: Chunk,
}

/// Records STREAM frames. Clones share the record.
#[derive(Clone, Debug, Default)]
pub struct Recorder(Arc<Mutex<Vec<Arrival>>>);

impl Recorder {
    /// Takes what was recorded.
    #[must_use]
    pub fn take(&self) -> Vec<Arrival> {
        let mut arrivals = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        std::mem::take(&mut *arrivals)
    }
}

impl Observer for Recorder {
    fn observe(&mut self, _: Instant, observation: &Observation<'_>) {
        let Observation::PacketReceived { space: SpaceId::Data, pn, payload, .. } = observation
        else {
            return;
        };
        let mut arrivals = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for frame in FrameIter::new(payload, Carrier::OneRtt).flatten() {
            if let Frame::Stream(frame) = frame {
                let (stream, start) = (frame.id.0, frame.offset);
                let end = start + frame.data.len() as u64;
                arrivals.push(Arrival { packet: *pn, chunk: Chunk { stream, start, end } });
            }
        }
    }
}
