//! Decodes field sections (RFC 9204 section 4.5).

use bytes::Bytes;

use super::huffman::HuffmanError;
use super::integer::{self, IntegerError};
use super::prefix::{Prefix, PrefixError};
use super::static_table;
use super::string::{Literal, LiteralError};
use super::table::{DynamicTable, Entry};
use crate::fields::{FIELD_OVERHEAD, Field, Fields};

/// The lines for which there is room before more are found.
const FIRST_LINES: usize = 8;

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
    /// The section refers to entries that are still to come.
    Blocked,
    /// The encoding is broken or refers to entries that do not exist: QPACK_DECOMPRESSION_FAILED.
    Malformed(&'static str),
    /// The section exceeds the limits, which is not a connection error.
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

impl From<PrefixError> for SectionError {
    fn from(error: PrefixError) -> Self {
        match error {
            PrefixError::Integer(error) => error.into(),
            PrefixError::RequiredInsertCount => Self::Malformed("impossible Required Insert Count"),
            PrefixError::NegativeBase => Self::Malformed("negative Base"),
        }
    }
}

impl From<LiteralError> for SectionError {
    fn from(error: LiteralError) -> Self {
        match error {
            LiteralError::Incomplete | LiteralError::TooLong => IntegerError::Incomplete.into(),
            LiteralError::Overflow => IntegerError::Overflow.into(),
        }
    }
}

impl From<HuffmanError> for SectionError {
    fn from(error: HuffmanError) -> Self {
        match error {
            HuffmanError::Invalid => Self::Malformed("invalid Huffman code"),
            HuffmanError::TooLong => Self::TooLarge,
        }
    }
}

/// Decodes one field section, checking its size before storing anything.
#[derive(Debug)]
pub(super) struct SectionReader<'a> {
    table: &'a DynamicTable,
    prefix: Prefix,
    /// The whole section; literals may be slices of it.
    block: &'a Bytes,
    rest: &'a [u8],
    /// Bytes left within the limit.
    budget: u64,
    /// Memory for decoding strings.
    scratch: &'a mut Vec<u8>,
}

impl<'a> SectionReader<'a> {
    /// Starts with the prefix of the section `block`. The table was announced with `max_capacity`
    /// bytes. `scratch` is memory for decoding.
    pub(super) fn new(
        block: &'a Bytes,
        table: &'a DynamicTable,
        max_capacity: u64,
        scratch: &'a mut Vec<u8>,
    ) -> Result<Self, SectionError> {
        let mut rest = block.as_ref();
        let prefix = Prefix::decode(&mut rest, max_capacity, table.inserted())?;
        Ok(Self { table, prefix, block, rest, budget: 0, scratch })
    }

    /// The Required Insert Count.
    pub(super) const fn required(&self) -> u64 {
        self.prefix.required
    }

    /// Decodes the lines, once all required entries have been inserted.
    pub(super) fn lines(mut self, limits: FieldLimits) -> Result<Fields, SectionError> {
        self.budget = limits.size;
        // A line has at least one byte.
        let mut fields = Fields::with_capacity(self.rest.len().min(FIRST_LINES));
        while let Some(&first) = self.rest.first() {
            if fields.len() == limits.lines {
                return Err(SectionError::TooLarge);
            }
            self.spend(FIELD_OVERHEAD)?;
            fields.push(self.line(first)?);
        }
        Ok(fields)
    }

    fn line(&mut self, first: u8) -> Result<Field, SectionError> {
        match first {
            // Indexed field line (section 4.5.2).
            0b1100_0000.. => {
                let (name, value) = self.static_entry(6)?;
                self.spend((name.len() + value.len()) as u64)?;
                Ok(Field::new(name, value))
            }
            0b1000_0000..0b1100_0000 => {
                let entry = self.entry_before_base(6)?;
                self.indexed(entry)
            }
            // Literal field line with name reference (section 4.5.4).
            0b0100_0000..0b1000_0000 => {
                let name = if first & 0b0001_0000 != 0 {
                    Bytes::from_static(self.static_entry(4)?.0.as_bytes())
                } else {
                    self.entry_before_base(4)?.name.clone()
                };
                self.named(name, first & 0b0010_0000 != 0)
            }
            // Literal field line with literal name (section 4.5.6).
            0b0010_0000..0b0100_0000 => {
                let sensitive = first & 0b0001_0000 != 0;
                let name = self.string(3)?;
                let value = self.string(7)?;
                Ok(Field { name, value, sensitive })
            }
            // Indexed field line with post-Base index (section 4.5.3).
            0b0001_0000..0b0010_0000 => {
                let entry = self.entry_after_base(4)?;
                self.indexed(entry)
            }
            // Literal field line with post-Base name reference (section 4.5.5).
            0b0000_0000..0b0001_0000 => {
                let name = self.entry_after_base(3)?.name.clone();
                self.named(name, first & 0b0000_1000 != 0)
            }
        }
    }

    fn indexed(&mut self, entry: &Entry) -> Result<Field, SectionError> {
        self.spend((entry.name.len() + entry.value.len()) as u64)?;
        Ok(Field::new(entry.name.clone(), entry.value.clone()))
    }

    /// Reads the value that follows a reference to a name.
    fn named(&mut self, name: Bytes, sensitive: bool) -> Result<Field, SectionError> {
        self.spend(name.len() as u64)?;
        let value = self.string(7)?;
        Ok(Field { name, value, sensitive })
    }

    /// Reads a static table index and returns the entry.
    fn static_entry(&mut self, prefix: u32) -> Result<(&'static str, &'static str), SectionError> {
        let index = integer::decode(&mut self.rest, prefix)?;
        static_table::get(index).ok_or(SectionError::Malformed("no such entry in the static table"))
    }

    /// Reads an index relative to Base and returns the entry (section 3.2.5).
    fn entry_before_base(&mut self, prefix: u32) -> Result<&'a Entry, SectionError> {
        let index = integer::decode(&mut self.rest, prefix)?;
        let absolute = self.prefix.base.checked_sub(index).and_then(|index| index.checked_sub(1));
        self.entry(absolute)
    }

    /// Reads a post-Base index and returns the entry (section 3.2.6).
    fn entry_after_base(&mut self, prefix: u32) -> Result<&'a Entry, SectionError> {
        let index = integer::decode(&mut self.rest, prefix)?;
        self.entry(self.prefix.base.checked_add(index))
    }

    fn entry(&self, index: Option<u64>) -> Result<&'a Entry, SectionError> {
        const MISSING: SectionError = SectionError::Malformed("no such entry in the dynamic table");
        // A section may not use entries beyond those that it announced (section 2.2.3).
        let index = index.filter(|index| *index < self.prefix.required).ok_or(MISSING)?;
        self.table.get(index).ok_or(MISSING)
    }

    /// Reads a string literal whose length has a `prefix`-bit prefix.
    fn string(&mut self, prefix: u32) -> Result<Bytes, SectionError> {
        let literal = Literal::take(&mut self.rest, prefix, usize::MAX)?;
        let limit = usize::try_from(self.budget).unwrap_or(usize::MAX);
        let string = if literal.coded {
            literal.decode(limit, self.scratch)?
        } else {
            self.block.slice_ref(literal.bytes)
        };
        self.spend(string.len() as u64)?;
        Ok(string)
    }

    fn spend(&mut self, bytes: u64) -> Result<(), SectionError> {
        self.budget = self.budget.checked_sub(bytes).ok_or(SectionError::TooLarge)?;
        Ok(())
    }
}
