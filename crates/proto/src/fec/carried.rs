//! How much data of each stream the open symbols of a session carry.

use crate::ids::StreamId;
use crate::recovery::token::StreamToken;
use std::collections::BTreeMap;

/// Counts the data that repair symbols protect, stream by stream, so that no query has to visit the window.
/// The window bounds the number of streams.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Carried(BTreeMap<StreamId, Load>);

/// The frames of one stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Load {
    /// Number of frames. A frame may be empty: it ends its stream.
    frames: u64,
    bytes: u64,
}

impl Carried {
    /// A symbol with these frames was sent.
    pub(super) fn add<'a>(&mut self, frames: impl IntoIterator<Item = &'a StreamToken>) {
        for frame in frames {
            let bytes = u64::from(frame.len);
            // Mostly data of the stream is on its way already.
            if let Some(load) = self.0.get_mut(&frame.id) {
                load.frames += 1;
                load.bytes += bytes;
            } else {
                self.0.insert(frame.id, Load { frames: 1, bytes });
            }
        }
    }

    /// A symbol with these frames, which were added before, is settled.
    pub(super) fn remove(&mut self, frames: &[StreamToken]) {
        for frame in frames {
            let Some(load) = self.0.get_mut(&frame.id) else { continue };
            load.frames -= 1;
            load.bytes -= u64::from(frame.len);
            if load.frames == 0 {
                self.0.remove(&frame.id);
            }
        }
    }

    /// The streams, each once.
    pub(super) fn streams(&self) -> impl Iterator<Item = StreamId> + '_ {
        self.0.keys().copied()
    }

    /// Divides `bytes` among the streams in proportion to their data.
    pub(super) fn share(&self, bytes: usize, mut charge: impl FnMut(StreamId, usize)) {
        let total: u64 = self.0.values().map(|load| load.bytes).sum();
        if total == 0 {
            return;
        }
        // Each charge is the difference of cumulative shares, so that rounding loses nothing.
        let due = |sum: u64| (u128::from(sum) * bytes as u128 / u128::from(total)) as usize;
        let (mut sum, mut charged) = (0, 0);
        for (id, load) in &self.0 {
            sum += load.bytes;
            let share = due(sum) - charged;
            charged += share;
            charge(*id, share);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(id: u64, len: u32) -> StreamToken {
        StreamToken { id: StreamId(id), offset: 0, len, fin: len == 0, symbol: None }
    }

    fn shares(carried: &Carried, bytes: usize) -> Vec<(u64, usize)> {
        let mut shares = Vec::new();
        carried.share(bytes, |id, share| shares.push((id.0, share)));
        shares
    }

    #[test]
    fn each_stream_pays_for_its_data() {
        let mut carried = Carried::default();
        carried.add(&[frame(4, 100), frame(0, 200)]);
        carried.add(&[frame(4, 300)]);
        assert_eq!(shares(&carried, 601), [(0, 200), (4, 401)], "nothing is lost by rounding");
        carried.remove(&[frame(4, 300)]);
        assert_eq!(shares(&carried, 30), [(0, 20), (4, 10)]);
    }

    #[test]
    fn a_stream_is_there_as_long_as_a_frame_of_it_is() {
        let mut carried = Carried::default();
        carried.add(&[frame(0, 10), frame(8, 0)]);
        carried.add(&[frame(0, 10)]);
        carried.remove(&[frame(0, 10)]);
        assert!(carried.streams().eq([0, 8].map(StreamId)));
        carried.remove(&[frame(0, 10)]);
        assert!(carried.streams().eq([StreamId(8)]));
        assert_eq!(shares(&carried, 100), [], "the end of a stream takes no room");
        carried.remove(&[frame(8, 0)]);
        assert_eq!(carried.streams().count(), 0);
    }
}
