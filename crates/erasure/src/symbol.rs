//! The coded form of a source symbol: its length, then its bytes.

use crate::{kernel, slot::Slot};

/// The number of a source symbol, counted from 0 in each window and never reused.
pub type SymbolId = u64;

/// The largest symbol id: ids travel as QUIC variable-length integers (RFC 9000, section 16).
pub const MAX_SYMBOL_ID: SymbolId = (1 << 62) - 1;

/// Bytes that coding puts before a symbol: its length as a big-endian `u16`.
///
/// A repair symbol is longer than the longest source symbol that it covers by this much.
pub const PREFIX: usize = 2;

/// Makes `buffer` the coded form of `bytes`. The caller has checked the length against its limits,
/// which are never above `u16::MAX`.
pub(crate) fn frame(buffer: &mut Slot, bytes: &[u8]) {
    buffer.write(length(bytes.len()).to_be_bytes(), bytes);
}

/// The length prefix of a symbol of `len` bytes.
pub(crate) fn length(len: usize) -> u16 {
    debug_assert!(len <= usize::from(u16::MAX), "limits keep symbols below 64 KiB");
    u16::try_from(len).unwrap_or(u16::MAX)
}

/// The bytes of a symbol in coded form.
pub(crate) fn content(coded: &Slot) -> &[u8] {
    coded.bytes().get(PREFIX..).unwrap_or_default()
}

/// Cuts the padding off a solved row, which leaves a symbol in coded form.
///
/// `false` if the row is not a symbol: its length is zero or exceeds the row, or the padding is not
/// zero. Then at least one of the symbols combined in it differs from the symbol that its sender coded.
#[must_use]
pub(crate) fn trim(row: &mut Slot) -> bool {
    let Some((prefix, rest)) = row.bytes().split_first_chunk::<PREFIX>() else {
        return false;
    };
    let len = usize::from(u16::from_be_bytes(*prefix));
    let Some((bytes, padding)) = rest.split_at_checked(len) else {
        return false;
    };
    if bytes.is_empty() || !kernel::is_zero(padding) {
        return false;
    }
    row.resize(PREFIX + len);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(bytes: &[u8]) -> Slot {
        let mut row = Slot::default();
        row.extend_from_slice(bytes);
        row
    }

    #[test]
    fn a_framed_and_padded_symbol_is_trimmed_to_itself() {
        let mut row = Slot::default();
        frame(&mut row, b"abc");
        assert_eq!(row.bytes(), [0, 3, b'a', b'b', b'c']);
        row.resize(20);
        assert!(trim(&mut row));
        assert_eq!(content(&row), b"abc");
    }

    #[test]
    fn what_is_no_symbol_is_refused() {
        let rows: [&[u8]; 7] =
            [&[], &[0], &[0, 0], &[0, 0, 0], &[0, 2, 9], &[0xff, 0xff, 9, 9], &[0, 1, 9, 0, 1]];
        for bytes in rows {
            let mut row = row(bytes);
            assert!(!trim(&mut row), "{bytes:?}");
            assert_eq!(row.bytes(), bytes);
        }
    }
}
