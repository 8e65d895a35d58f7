//! The pattern of frames that is broadcast.

use bytes::Bytes;
use std::time::Duration;

/// Frames in a second.
pub const RATE: u32 = 60;
/// Frames of a group, which lasts a second.
pub const GROUP: u64 = 60;
/// Bytes of a key frame, the first of its group.
pub const KEY: usize = 20_000;
/// Bytes of the other frames: they go through these sizes in turn, 3 kB on average.
pub const DELTAS: [usize; 5] = [3000, 2000, 4000, 2500, 3500];

/// When a frame is due after the first one.
pub fn due(number: u64) -> Duration {
    Duration::from_nanos(number * 1_000_000_000 / u64::from(RATE))
}

/// Bytes of a frame.
pub fn size(number: u64) -> usize {
    match number % GROUP {
        0 => KEY,
        place => DELTAS[place as usize % DELTAS.len()],
    }
}

/// A frame, which begins with its number.
pub fn frame(number: u64) -> Bytes {
    let mut frame = vec![0; size(number)];
    frame[..8].copy_from_slice(&number.to_be_bytes());
    frame.into()
}

/// The number of a frame that [`frame`] made; `None` for other bytes.
pub fn number(frame: &[u8]) -> Option<u64> {
    let number = u64::from_be_bytes(*frame.first_chunk()?);
    (frame.len() == size(number)).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_last_a_second_and_begin_with_a_key_frame() {
        assert_eq!(due(GROUP), Duration::from_secs(1));
        assert_eq!([59, 60, 61, 120].map(size), [DELTAS[4], KEY, DELTAS[1], KEY]);
        let group: usize = (0..GROUP).map(size).sum();
        assert_eq!(group, KEY + 59 * 3000);
    }

    #[test]
    fn a_frame_tells_its_number() {
        assert_eq!(number(&frame(61)), Some(61));
        assert_eq!(number(&frame(61)[..1999]), None);
        assert_eq!(number(&[0; 7]), None);
    }
}
