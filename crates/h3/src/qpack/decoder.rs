//! Decodes field sections (RFC 9204 section 4.5) and the peer's encoder stream (section 4.3).

use bytes::Bytes;

use super::integer::{self, IntegerError, Partial, Step};
use super::{huffman, static_table};
use crate::error::{Code, Error};
use crate::fields::{FIELD_OVERHEAD, Field, Fields};

/// Limits on a decoded field section.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FieldLimits {
    /// Bytes, as SETTINGS_MAX_FIELD_SECTION_SIZE counts them.
    pub(crate) size: u64,
    /// Field lines.
    pub(crate) lines: usize,
}

/// Why a field section was not decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SectionError {
    /// The encoding is broken or refers to the dynamic table: QPACK_DECOMPRESSION_FAILED.
    Malformed(&'static str),
    /// It exceeds the limits, which is not a connection error.
    TooLarge,
}

impl From<IntegerError> for SectionError {
    fn from(error: IntegerError) -> Self {
        Self::Malformed(match error {
            IntegerError::Incomplete => "field section cut short",
            IntegerError::Overflow => "integer beyond 62 bits",
        })
    }
}

/// Decodes one field section, checking its size before storing anything.
#[derive(Debug)]
pub(crate) struct Decoder<'a> {
    /// The whole section; literals may be slices of it.
    block: &'a Bytes,
    rest: &'a [u8],
    /// Bytes left within the limit.
    budget: u64,
}

impl<'a> Decoder<'a> {
    /// Decodes the section `block`.
    pub(crate) fn decode(block: &'a Bytes, limits: FieldLimits) -> Result<Fields, SectionError> {
        let mut decoder = Self { block, rest: block, budget: limits.size };
        decoder.prefix()?;
        let mut fields = Fields::new();
        while let Some(&first) = decoder.rest.first() {
            if fields.len() == limits.lines {
                return Err(SectionError::TooLarge);
            }
            decoder.spend(FIELD_OVERHEAD)?;
            fields.push(decoder.line(first)?);
        }
        Ok(fields)
    }

    /// Required Insert Count and Base (section 4.5.1): the former must be zero, and then the sign
    /// bit of Base must not be set.
    fn prefix(&mut self) -> Result<(), SectionError> {
        if integer::decode(&mut self.rest, 8)? != 0 {
            return Err(SectionError::Malformed("Required Insert Count without a dynamic table"));
        }
        let sign = self.rest.first().is_some_and(|&first| first & 0x80 != 0);
        integer::decode(&mut self.rest, 7)?;
        if sign {
            return Err(SectionError::Malformed("negative Base"));
        }
        Ok(())
    }

    fn line(&mut self, first: u8) -> Result<Field, SectionError> {
        const DYNAMIC: SectionError =
            SectionError::Malformed("reference into a dynamic table of capacity zero");
        match first {
            // Indexed field line (section 4.5.2).
            0b1100_0000.. => {
                let (name, value) = self.entry(6)?;
                self.spend((name.len() + value.len()) as u64)?;
                Ok(Field::new(name, value))
            }
            // Literal field line with name reference (section 4.5.4).
            0b0100_0000..=0b0111_1111 if first & 0b0001_0000 != 0 => {
                let (name, _) = self.entry(4)?;
                self.spend(name.len() as u64)?;
                let value = self.string(7)?;
                let sensitive = first & 0b0010_0000 != 0;
                Ok(Field { name: Bytes::from_static(name.as_bytes()), value, sensitive })
            }
            // Literal field line with literal name (section 4.5.6).
            0b0010_0000..=0b0011_1111 => {
                let sensitive = first & 0b0001_0000 != 0;
                let name = self.string(3)?;
                let value = self.string(7)?;
                Ok(Field { name, value, sensitive })
            }
            _ => Err(DYNAMIC),
        }
    }

    /// Reads a static table index and returns the entry.
    fn entry(&mut self, prefix: u32) -> Result<(&'static str, &'static str), SectionError> {
        let index = integer::decode(&mut self.rest, prefix)?;
        static_table::get(index).ok_or(SectionError::Malformed("no such entry in the static table"))
    }

    /// Reads a string literal (section 4.1.2); the bit above the length's prefix selects its
    /// coding.
    fn string(&mut self, prefix: u32) -> Result<Bytes, SectionError> {
        let coded = self.rest.first().is_some_and(|&first| first & 1 << prefix != 0);
        let len = integer::decode(&mut self.rest, prefix)?;
        let cut = SectionError::Malformed("field section cut short");
        let len = usize::try_from(len).map_err(|_| cut)?;
        let start = self.block.len() - self.rest.len();
        let (string, rest) = self.rest.split_at_checked(len).ok_or(cut)?;
        self.rest = rest;
        if !coded {
            self.spend(len as u64)?;
            return Ok(self.block.slice(start..start + len));
        }
        let limit = usize::try_from(self.budget).unwrap_or(usize::MAX);
        // A code has at least five bits.
        let mut decoded = Vec::with_capacity((len.saturating_mul(8) / 5).min(limit));
        huffman::decode(string, limit, &mut decoded).map_err(|error| match error {
            huffman::HuffmanError::Invalid => SectionError::Malformed("invalid Huffman code"),
            huffman::HuffmanError::TooLong => SectionError::TooLarge,
        })?;
        self.spend(decoded.len() as u64)?;
        Ok(decoded.into())
    }

    fn spend(&mut self, bytes: u64) -> Result<(), SectionError> {
        self.budget = self.budget.checked_sub(bytes).ok_or(SectionError::TooLarge)?;
        Ok(())
    }
}

/// The peer's encoder stream (RFC 9204 section 4.3). Our decoder announced a capacity of zero, so
/// the only valid instruction is to set the capacity to zero.
#[derive(Debug, Default)]
pub(crate) struct EncoderStream {
    capacity: Option<Partial>,
}

impl EncoderStream {
    /// Processes the stream's next bytes.
    pub(crate) fn receive(&mut self, bytes: &[u8]) -> Result<(), Error> {
        const fn error(reason: &'static str) -> Error {
            Error::new(Code::QPACK_ENCODER_STREAM_ERROR, reason)
        }
        for &byte in bytes {
            let step = match self.capacity.take() {
                Some(partial) => partial.push(byte),
                None => match byte >> 5 {
                    0b001 => Ok(integer::start(byte, 5)),
                    0b000 => return Err(error("Duplicate in a dynamic table of capacity zero")),
                    _ => return Err(error("insert into a dynamic table of capacity zero")),
                },
            };
            match step {
                Ok(Step::More(partial)) => self.capacity = Some(partial),
                Ok(Step::Done(0)) => {}
                Ok(Step::Done(_)) => return Err(error("dynamic table capacity above the limit")),
                Err(_) => return Err(error("dynamic table capacity beyond 62 bits")),
            }
        }
        Ok(())
    }
}
