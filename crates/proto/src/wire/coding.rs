//! Variable-length integers (RFC 9000 section 16) and a checked cursor over received bytes.

use std::fmt;

/// The largest value that a QUIC variable-length integer can hold: 2^62 - 1.
pub const VARINT_MAX: u64 = (1 << 62) - 1;

/// The input ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnexpectedEnd;

impl fmt::Display for UnexpectedEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unexpected end of input")
    }
}

impl std::error::Error for UnexpectedEnd {}

/// Bytes that `value` takes as a variable-length integer: 1, 2, 4 or 8.
///
/// Values above [`VARINT_MAX`] cannot be encoded; callers must bound their values.
#[inline]
#[must_use]
pub const fn varint_size(value: u64) -> usize {
    match value {
        0..=0x3f => 1,
        0x40..=0x3fff => 2,
        0x4000..=0x3fff_ffff => 4,
        _ => 8,
    }
}

/// Appends `value` in the shortest variable-length encoding. Values above [`VARINT_MAX`] are
/// clamped to it: should a bug of ours cause one, a limit that the peer can never reach does no
/// harm.
#[inline]
pub fn put_varint(out: &mut Vec<u8>, value: u64) {
    match varint_size(value) {
        1 => out.push(value as u8),
        2 => out.extend_from_slice(&(0x4000 | value as u16).to_be_bytes()),
        4 => out.extend_from_slice(&(0x8000_0000 | value as u32).to_be_bytes()),
        _ => {
            debug_assert!(value <= VARINT_MAX);
            let value = value.min(VARINT_MAX);
            out.extend_from_slice(&((0b11 << 62) | value).to_be_bytes());
        }
    }
}

/// Appends `value` in exactly two bytes, even if one would do, so that it can be patched later. `value` must
/// be below 2^14.
#[inline]
pub fn put_varint2(out: &mut Vec<u8>, value: u16) {
    debug_assert!(value < 1 << 14);
    out.extend_from_slice(&(0x4000 | (value & 0x3fff)).to_be_bytes());
}

/// A cursor over received bytes. Every read is bounds-checked, and none panics.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts at the beginning of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Bytes not yet read.
    #[must_use]
    pub const fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Whether everything was read.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The bytes not yet read; does not consume them.
    #[must_use]
    pub const fn peek_rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Reads all that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// Reads `n` bytes.
    ///
    /// # Errors
    /// Fewer than `n` bytes are left; nothing is consumed then.
    #[inline]
    pub fn bytes(&mut self, n: usize) -> Result<&'a [u8], UnexpectedEnd> {
        let (head, tail) = self.rest.split_at_checked(n).ok_or(UnexpectedEnd)?;
        self.rest = tail;
        Ok(head)
    }

    /// Reads a fixed-size array.
    ///
    /// # Errors
    /// Fewer than `N` bytes are left.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], UnexpectedEnd> {
        let (head, tail) = self.rest.split_first_chunk::<N>().ok_or(UnexpectedEnd)?;
        self.rest = tail;
        Ok(*head)
    }

    /// Reads one byte.
    ///
    /// # Errors
    /// Nothing is left.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, UnexpectedEnd> {
        self.array::<1>().map(|[b]| b)
    }

    /// Reads a big-endian 32-bit integer.
    ///
    /// # Errors
    /// Fewer than four bytes are left.
    pub fn u32(&mut self) -> Result<u32, UnexpectedEnd> {
        self.array().map(u32::from_be_bytes)
    }

    /// Reads a variable-length integer.
    ///
    /// # Errors
    /// The input ends within the integer.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, UnexpectedEnd> {
        let first = *self.rest.first().ok_or(UnexpectedEnd)?;
        match first >> 6 {
            0 => self.u8().map(u64::from),
            1 => self.array().map(|b| u64::from(u16::from_be_bytes(b) & 0x3fff)),
            2 => self.array().map(|b| u64::from(u32::from_be_bytes(b) & 0x3fff_ffff)),
            _ => self.array().map(|b| u64::from_be_bytes(b) & VARINT_MAX),
        }
    }

    /// Reads a variable-length integer and then that many bytes.
    ///
    /// # Errors
    /// The length or the bytes are cut short.
    pub fn varint_bytes(&mut self) -> Result<&'a [u8], UnexpectedEnd> {
        let n = self.varint()?;
        self.bytes(usize::try_from(n).map_err(|_| UnexpectedEnd)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc9000_a1_samples() {
        for (bytes, value) in [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ] {
            let mut r = Reader::new(bytes);
            assert_eq!(r.varint(), Ok(value));
            assert!(r.is_empty());
        }
    }

    #[test]
    fn round_trip_at_every_boundary() {
        for v in [0, 0x3f, 0x40, 0x3fff, 0x4000, 0x3fff_ffff, 0x4000_0000, VARINT_MAX] {
            let mut out = Vec::new();
            put_varint(&mut out, v);
            assert_eq!(out.len(), varint_size(v));
            assert_eq!(Reader::new(&out).varint(), Ok(v));
            for cut in 0..out.len() {
                assert_eq!(Reader::new(&out[..cut]).varint(), Err(UnexpectedEnd));
            }
        }
    }

    #[test]
    fn length_beyond_input_is_an_error() {
        let mut out = Vec::new();
        put_varint(&mut out, VARINT_MAX);
        assert_eq!(Reader::new(&out).varint_bytes(), Err(UnexpectedEnd));
    }
}
