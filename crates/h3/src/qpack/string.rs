//! String literals (RFC 9204 section 4.1.2).

use bytes::Bytes;

use super::huffman::{self, HuffmanError};
use super::integer::{self, IntegerError};

/// Bytes of memory that are kept for decoding the next string.
const MAX_SCRATCH: usize = 512;

/// A string literal as it was sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Literal<'a> {
    /// Its bytes, coded or not.
    pub(super) bytes: &'a [u8],
    /// Whether they are Huffman coded.
    pub(super) coded: bool,
}

impl<'a> Literal<'a> {
    /// Takes a literal off the front of `input`. Its length has a `prefix`-bit prefix; the bit above
    /// selects its coding.
    ///
    /// `limit` is the most bytes that it may announce.
    pub(super) fn take(
        input: &mut &'a [u8],
        prefix: u32,
        limit: usize,
    ) -> Result<Self, LiteralError> {
        let coded = input.first().is_some_and(|&first| first & 1 << prefix != 0);
        let len = usize::try_from(integer::decode(input, prefix)?).unwrap_or(usize::MAX);
        if len > limit {
            return Err(LiteralError::TooLong);
        }
        let (bytes, rest) = input.split_at_checked(len).ok_or(LiteralError::Incomplete)?;
        *input = rest;
        Ok(Self { bytes, coded })
    }

    /// A copy of the string, if it has at most `limit` bytes. `scratch` is memory for decoding.
    pub(super) fn decode(
        &self,
        limit: usize,
        scratch: &mut Vec<u8>,
    ) -> Result<Bytes, HuffmanError> {
        if !self.coded {
            let short = self.bytes.len() <= limit;
            let copy = || Bytes::copy_from_slice(self.bytes);
            return if short { Ok(copy()) } else { Err(HuffmanError::TooLong) };
        }
        scratch.clear();
        // A code has at least five bits.
        scratch.reserve((self.bytes.len().saturating_mul(8) / 5).min(limit));
        huffman::decode(self.bytes, limit, scratch)?;
        let string = Bytes::copy_from_slice(scratch);
        if scratch.capacity() > MAX_SCRATCH {
            *scratch = Vec::new();
        }
        Ok(string)
    }
}

/// Why no literal was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LiteralError {
    /// The input ends within it.
    Incomplete,
    /// The length has more than 62 bits.
    Overflow,
    /// The literal is longer than the limit.
    TooLong,
}

impl From<IntegerError> for LiteralError {
    fn from(error: IntegerError) -> Self {
        match error {
            IntegerError::Incomplete => Self::Incomplete,
            IntegerError::Overflow => Self::Overflow,
        }
    }
}

/// Appends a string literal whose length has a `prefix`-bit prefix, Huffman coded if that is shorter.
/// `flags` are the bits above the bit for the coding.
pub(super) fn put_literal(out: &mut Vec<u8>, flags: u8, prefix: u32, string: &[u8]) {
    let size = huffman::encoded_size(string);
    if size < string.len() {
        integer::encode(out, flags | 1 << prefix, prefix, size as u64);
        huffman::encode(string, out);
    } else {
        integer::encode(out, flags, prefix, string.len() as u64);
        out.extend_from_slice(string);
    }
}
