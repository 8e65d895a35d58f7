//! Variable-length integers (RFC 9000 section 16), read at once or incrementally.

/// The largest value of a variable-length integer: 2^62 - 1.
pub(crate) const VARINT_MAX: u64 = (1 << 62) - 1;

/// Bytes of the longest variable-length integer.
pub(crate) const VARINT_SIZE: usize = 8;

/// The encoded size of an integer whose first byte is `first`: 1, 2, 4 or 8.
pub(crate) const fn varint_size_from(first: u8) -> usize {
    1 << (first >> 6)
}

/// The shortest encoding of `value`, which is at most [`VARINT_MAX`], and its size in bytes.
pub(crate) fn varint(value: u64) -> ([u8; VARINT_SIZE], usize) {
    debug_assert!(value <= VARINT_MAX);
    let exponent = match value {
        0..=0x3f => 0,
        0x40..=0x3fff => 1,
        0x4000..=0x3fff_ffff => 2,
        _ => 3,
    };
    let size = 1 << exponent;
    // The two bits for the size and the value, at the front.
    let shift = 64 - 8 * size as u32;
    let bytes = (exponent << 62) | (value.min(VARINT_MAX) << shift);
    (bytes.to_be_bytes(), size)
}

/// Appends `value`, which is at most [`VARINT_MAX`], in its shortest encoding.
pub(crate) fn put_varint(out: &mut Vec<u8>, value: u64) {
    let (bytes, size) = varint(value);
    out.extend_from_slice(&bytes[..size]);
}

/// Takes one integer off the front of `input`; `None` if it is cut short.
pub(crate) fn take_varint(input: &mut &[u8]) -> Option<u64> {
    let (integer, rest) = input.split_at_checked(varint_size_from(*input.first()?))?;
    *input = rest;
    Some(value_of(integer))
}

/// The value of a complete encoding of 1, 2, 4 or 8 bytes.
fn value_of(integer: &[u8]) -> u64 {
    let bits = integer.len() as u32 * 8 - 2;
    integer.iter().fold(0, |value, &byte| value << 8 | u64::from(byte)) & ((1 << bits) - 1)
}

/// Reads one integer from a stream that may pause anywhere, without reading past its end.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct VarintReader {
    bytes: [u8; VARINT_SIZE],
    len: usize,
}

impl VarintReader {
    /// Buffer for the integer's next bytes. Never empty.
    pub(crate) fn spare(&mut self) -> &mut [u8] {
        let target = if self.len == 0 { 1 } else { varint_size_from(self.bytes[0]) };
        self.bytes.get_mut(self.len..target).unwrap_or_default()
    }

    /// Records that `n` bytes were put into [`Self::spare`]. Returns the value once it is complete.
    pub(crate) fn advance(&mut self, n: usize) -> Option<u64> {
        self.len += n;
        if self.len == 0 || self.len < varint_size_from(self.bytes[0]) {
            return None;
        }
        self.bytes.get(..self.len).map(value_of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rfc9000_a1_samples() {
        for (mut bytes, value) in [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ] {
            assert_eq!(take_varint(&mut bytes), Some(value));
            assert!(bytes.is_empty());
        }
    }

    proptest! {
        #[test]
        fn whole_and_piecemeal_agree(value in 0..=VARINT_MAX, shift in 0u32..62) {
            let value = value >> shift;
            let mut out = Vec::new();
            put_varint(&mut out, value);
            for cut in 0..out.len() {
                prop_assert_eq!(take_varint(&mut &out[..cut]), None);
            }
            prop_assert_eq!(take_varint(&mut &out[..]), Some(value));
            let mut reader = VarintReader::default();
            let mut read = None;
            for &byte in &out {
                prop_assert_eq!(read, None);
                reader.spare()[0] = byte;
                read = reader.advance(1);
            }
            prop_assert_eq!(read, Some(value));
        }
    }
}
