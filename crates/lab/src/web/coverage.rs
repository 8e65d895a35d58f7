//! Counts the bytes that were sent in source symbols.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use sutura_proto::wire_format::{Carrier, Frame, FrameIter};
use sutura_proto::{Observation, Observer, SpaceId, StreamId};

/// Bytes of a stream that were sent, including retransmissions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamBytes {
    /// In source symbols.
    pub protected: u64,
    /// In bare STREAM frames.
    pub bare: u64,
}

/// Counts the bytes of each stream that a connection sends inside and outside of source symbols.
/// Clones share the counts.
#[derive(Clone, Debug, Default)]
pub struct Coverage(Arc<Mutex<BTreeMap<StreamId, StreamBytes>>>);

impl Coverage {
    /// The bytes sent so far.
    #[must_use]
    pub fn streams(&self) -> BTreeMap<StreamId, StreamBytes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn count(&self, payload: &[u8], carrier: Carrier) {
        for frame in FrameIter::new(payload, carrier).flatten() {
            match frame {
                Frame::SourceSymbol(symbol) => self.count(symbol.frames, Carrier::SourceSymbol),
                Frame::Stream(frame) => {
                    let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                    let bytes = streams.entry(frame.id).or_default();
                    let size = frame.data.len() as u64;
                    match carrier {
                        Carrier::SourceSymbol => bytes.protected += size,
                        _ => bytes.bare += size,
                    }
                }
                _ => {}
            }
        }
    }
}

impl Observer for Coverage {
    fn observe(&mut self, _: Instant, observation: &Observation<'_>) {
        if let Observation::PacketSent { space: SpaceId::Data, payload, .. } = observation {
            self.count(payload, Carrier::OneRtt);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_bytes_count_where_they_stand() {
        let coverage = Coverage::default();
        // STREAM frames with a length: three bytes on stream 4, two on stream 8.
        let bare = [0x0a, 4, 3, 1, 2, 3, 0x0a, 8, 2, 1, 2];
        coverage.count(&bare, Carrier::OneRtt);
        // PING, and a SOURCE_SYMBOL with a STREAM frame up to the end: four bytes on stream 4.
        let protected = [0x01, 0x7f, 0x53, 0, 0, 0x08, 4, 1, 2, 3, 4];
        coverage.clone().count(&protected, Carrier::OneRtt);
        let expected = [
            (StreamId(4), StreamBytes { protected: 4, bare: 3 }),
            (StreamId(8), StreamBytes { protected: 0, bare: 2 }),
        ];
        assert_eq!(coverage.streams(), expected.into());
    }
}
