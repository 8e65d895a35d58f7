//! Encoding of the frames that streams and flow control send (RFC 9000 sections 19.4, 19.5 and
//! 19.8 to 19.14).

use crate::ids::{Dir, StreamId};
use crate::wire::coding::{put_varint, varint_size};

pub(super) const RESET_STREAM: u64 = 0x04;
pub(super) const STOP_SENDING: u64 = 0x05;
pub(super) const STREAM: u64 = 0x08;
pub(super) const STREAM_FIN: u64 = 0x01;
pub(super) const STREAM_LEN: u64 = 0x02;
pub(super) const STREAM_OFF: u64 = 0x04;
pub(super) const MAX_DATA: u64 = 0x10;
pub(super) const MAX_STREAM_DATA: u64 = 0x11;
pub(super) const MAX_STREAMS_BIDI: u64 = 0x12;
pub(super) const MAX_STREAMS_UNI: u64 = 0x13;
pub(super) const DATA_BLOCKED: u64 = 0x14;
pub(super) const STREAM_DATA_BLOCKED: u64 = 0x15;
pub(super) const STREAMS_BLOCKED_BIDI: u64 = 0x16;
pub(super) const STREAMS_BLOCKED_UNI: u64 = 0x17;

/// Whether a STREAM frame carries its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// The frame says how long it is; others may follow.
    Explicit,
    /// The frame reaches to the end of its packet (or source symbol): nothing may follow it.
    ToEnd,
}

/// The frame type of MAX_STREAMS for a direction.
pub(super) const fn max_streams(dir: Dir) -> u64 {
    match dir {
        Dir::Bi => MAX_STREAMS_BIDI,
        Dir::Uni => MAX_STREAMS_UNI,
    }
}

/// The frame type of STREAMS_BLOCKED for a direction.
pub(super) const fn streams_blocked(dir: Dir) -> u64 {
    match dir {
        Dir::Bi => STREAMS_BLOCKED_BIDI,
        Dir::Uni => STREAMS_BLOCKED_UNI,
    }
}

/// Appends a frame that is nothing but its type and some integers, if it fits in what is left of
/// `room` bytes counted from `start` of `out`; says whether it did.
pub(super) fn integers(out: &mut Vec<u8>, start: usize, room: usize, fields: &[u64]) -> bool {
    let size: usize = fields.iter().map(|&field| varint_size(field)).sum();
    if (out.len() - start).saturating_add(size) > room {
        return false;
    }
    for &field in fields {
        put_varint(out, field);
    }
    true
}

/// How many bytes of `available` fit in a STREAM frame of at most `room` bytes; `None` if not
/// even the frame's header does, or if bytes are there but none fits.
pub(super) fn stream_fit(
    id: StreamId,
    offset: u64,
    available: u64,
    room: usize,
    length: Length,
) -> Option<usize> {
    let offset_size = if offset == 0 { 0 } else { varint_size(offset) };
    let rest = room.checked_sub(1 + varint_size(id.0) + offset_size)?;
    let most = usize::try_from(available).unwrap_or(usize::MAX);
    let len = match length {
        Length::ToEnd => most.min(rest),
        Length::Explicit => {
            // An integer that can count all of `rest` can count every shorter length as well.
            let payload = rest.checked_sub(varint_size(rest as u64))?;
            if varint_size(most as u64).checked_add(most).is_some_and(|size| size <= rest) {
                most
            } else {
                most.min(payload)
            }
        }
    };
    (len > 0 || available == 0).then_some(len)
}

/// Appends the header of a STREAM frame that carries `len` bytes.
pub(super) fn stream_header(
    out: &mut Vec<u8>,
    id: StreamId,
    offset: u64,
    len: usize,
    fin: bool,
    length: Length,
) {
    let mut kind = STREAM;
    if fin {
        kind |= STREAM_FIN;
    }
    if offset > 0 {
        kind |= STREAM_OFF;
    }
    if length == Length::Explicit {
        kind |= STREAM_LEN;
    }
    put_varint(out, kind);
    put_varint(out, id.0);
    if offset > 0 {
        put_varint(out, offset);
    }
    if length == Length::Explicit {
        put_varint(out, len as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The frame that results for `available` bytes in `room`, without its payload.
    fn frame_size(offset: u64, available: u64, room: usize, length: Length) -> Option<usize> {
        let id = StreamId(0x40);
        let len = stream_fit(id, offset, available, room, length)?;
        let mut out = Vec::new();
        stream_header(&mut out, id, offset, len, false, length);
        Some(out.len() + len)
    }

    #[test]
    fn frames_never_exceed_their_room_and_waste_at_most_a_length_byte_or_two() {
        for length in [Length::Explicit, Length::ToEnd] {
            for offset in [0, 1, 0x4000, 1 << 40] {
                for room in 0..300 {
                    let Some(size) = frame_size(offset, 1 << 20, room, length) else {
                        assert!(room < 16, "{room} bytes are room enough");
                        continue;
                    };
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
            let fit = |room| stream_fit(StreamId(0x40), 0, available, room, Length::Explicit);
            assert_eq!(fit(exact), Some(available as usize));
            assert_ne!(fit(exact - 1), Some(available as usize));
        }
    }

    #[test]
    fn integers_respect_the_room_from_the_start_of_the_packet() {
        let mut out = vec![0; 10];
        assert!(!integers(&mut out, 8, 4, &[MAX_DATA, 0x40]));
        assert_eq!(out.len(), 10);
        assert!(integers(&mut out, 8, 5, &[MAX_DATA, 0x40]));
        assert_eq!(out[10..], [0x10, 0x40, 0x40]);
    }
}
