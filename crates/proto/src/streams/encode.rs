//! Fitting STREAM frames into packets.

use crate::wire::frame::StreamHeader;

/// Whether a STREAM frame has a Length field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// The frame has a Length field; other frames may follow.
    Explicit,
    /// The frame extends to the end of its packet (or source symbol): no frame may follow.
    ToEnd,
}

/// How many bytes of `available` fit in a STREAM frame of at most `room` bytes. `None` if not even the header
/// fits, or if bytes are available but not a single byte fits.
pub(super) fn stream_fit(
    header: &StreamHeader,
    available: u64,
    room: usize,
    length: Length,
) -> Option<usize> {
    let capacity = header.capacity(room, length == Length::Explicit)?;
    let len = usize::try_from(available).unwrap_or(usize::MAX).min(capacity);
    (len > 0 || available == 0).then_some(len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::StreamId;

    const fn header(offset: u64) -> StreamHeader {
        StreamHeader { id: StreamId(0x40), offset, fin: false }
    }

    #[test]
    fn frames_never_exceed_their_room_and_waste_at_most_a_length_byte_or_two() {
        for length in [Length::Explicit, Length::ToEnd] {
            for offset in [0, 1, 0x4000, 1 << 40] {
                for room in 0..300 {
                    let header = header(offset);
                    let Some(len) = stream_fit(&header, 1 << 20, room, length) else {
                        assert!(room < 16, "{room} bytes are room enough");
                        continue;
                    };
                    let size = len + header.size((length == Length::Explicit).then_some(len));
                    assert!(size <= room);
                    assert!(room - size <= 2);
                    if length == Length::ToEnd {
                        assert_eq!(size, room);
                    }
                }
            }
        }
    }

    #[test]
    fn all_that_is_available_goes_in_when_it_fits_exactly() {
        // Type, two bytes of id, one or two bytes of length.
        for (available, exact) in [(10, 14), (63, 67), (64, 69), (0, 4)] {
            let fit = |room| stream_fit(&header(0), available, room, Length::Explicit);
            assert_eq!(fit(exact), Some(available as usize));
            assert_ne!(fit(exact - 1), Some(available as usize));
        }
    }
}
