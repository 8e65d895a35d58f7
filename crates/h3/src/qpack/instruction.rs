//! Instructions of the peer's encoder and decoder streams (RFC 9204 sections 4.3 and 4.4).

use bytes::{Buf, Bytes, BytesMut};

use super::integer::{self, IntegerError, Partial, Step};
use super::static_table;
use super::string::{Literal, LiteralError};
use crate::error::{Code, Error};

/// Most bytes of a Huffman code for one byte.
const MAX_CODE_SIZE: usize = 4;

/// An instruction of the encoder stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EncoderInstruction {
    /// Set Dynamic Table Capacity, in bytes.
    SetCapacity(u64),
    /// Insert with the name of an entry of the dynamic table, by its relative index.
    InsertNamed { index: u64, value: Bytes },
    /// Insert with a name from the static table or a literal one.
    Insert { name: Bytes, value: Bytes },
    /// Duplicate an entry, by its relative index.
    Duplicate(u64),
}

/// Reads the encoder stream. It holds less than one instruction, whose strings are limited by the
/// capacity of the table.
#[derive(Debug)]
pub(super) struct InstructionReader {
    bytes: BytesMut,
    /// The largest capacity of the table in bytes, and so the length of the longest string.
    max_capacity: usize,
}

/// Why no instruction was read.
enum InstructionError {
    Incomplete,
    Invalid(&'static str),
}

impl From<LiteralError> for InstructionError {
    fn from(error: LiteralError) -> Self {
        match error {
            LiteralError::Incomplete => Self::Incomplete,
            LiteralError::Overflow => Self::Invalid("integer beyond 62 bits"),
            LiteralError::TooLong => Self::Invalid(LARGER),
        }
    }
}

impl From<IntegerError> for InstructionError {
    fn from(error: IntegerError) -> Self {
        LiteralError::from(error).into()
    }
}

const LARGER: &str = "entry larger than the dynamic table";

impl InstructionReader {
    /// A reader for a table of at most `max_capacity` bytes.
    pub(super) fn new(max_capacity: u64) -> Self {
        let max_capacity = usize::try_from(max_capacity).unwrap_or(usize::MAX);
        Self { bytes: BytesMut::new(), max_capacity }
    }

    /// Adds the stream's next bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next instruction, once it is complete. `scratch` is memory for decoding.
    pub(super) fn next(
        &mut self,
        scratch: &mut Vec<u8>,
    ) -> Result<Option<EncoderInstruction>, Error> {
        let mut rest = self.bytes.as_ref();
        match self.read(&mut rest, scratch) {
            Ok(instruction) => {
                let read = self.bytes.len() - rest.len();
                self.bytes.advance(read);
                if self.bytes.is_empty() {
                    // Memory is held only while part of an instruction waits for its rest.
                    self.bytes = BytesMut::new();
                }
                Ok(Some(instruction))
            }
            Err(InstructionError::Incomplete) => Ok(None),
            Err(InstructionError::Invalid(reason)) => {
                Err(Error::new(Code::QPACK_ENCODER_STREAM_ERROR, reason))
            }
        }
    }

    fn read(
        &self,
        input: &mut &[u8],
        scratch: &mut Vec<u8>,
    ) -> Result<EncoderInstruction, InstructionError> {
        let first = *input.first().ok_or(InstructionError::Incomplete)?;
        if self.max_capacity == 0 && first >> 5 != 0b001 {
            return Err(InstructionError::Invalid("insert into a dynamic table of capacity zero"));
        }
        // Nothing is decoded before the instruction is complete, so that a peer who sends single bytes does
        // not cause more work than other peers.
        let longest = self.max_capacity.saturating_mul(MAX_CODE_SIZE);
        match first {
            0b1000_0000.. => {
                let index = integer::decode(input, 6)?;
                let value = Literal::take(input, 7, longest)?;
                let value = self.decode(value, scratch)?;
                if first & 0b0100_0000 == 0 {
                    return Ok(EncoderInstruction::InsertNamed { index, value });
                }
                let missing = InstructionError::Invalid("no such entry in the static table");
                let (name, _) = static_table::get(index).ok_or(missing)?;
                Ok(EncoderInstruction::Insert { name: name.into(), value })
            }
            0b0100_0000..0b1000_0000 => {
                let name = Literal::take(input, 5, longest)?;
                let value = Literal::take(input, 7, longest)?;
                let name = self.decode(name, scratch)?;
                let value = self.decode(value, scratch)?;
                Ok(EncoderInstruction::Insert { name, value })
            }
            0b0010_0000..0b0100_0000 => {
                Ok(EncoderInstruction::SetCapacity(integer::decode(input, 5)?))
            }
            0b0000_0000..0b0010_0000 => {
                Ok(EncoderInstruction::Duplicate(integer::decode(input, 5)?))
            }
        }
    }

    fn decode(
        &self,
        literal: Literal<'_>,
        scratch: &mut Vec<u8>,
    ) -> Result<Bytes, InstructionError> {
        use super::huffman::HuffmanError;
        literal.decode(self.max_capacity, scratch).map_err(|error| {
            InstructionError::Invalid(match error {
                HuffmanError::Invalid => "invalid Huffman code",
                HuffmanError::TooLong => LARGER,
            })
        })
    }
}

/// An instruction of the decoder stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DecoderInstruction {
    /// Section Acknowledgment, with the stream's identifier.
    Acknowledge(u64),
    /// Stream Cancellation, with the stream's identifier.
    Cancel(u64),
    /// Insert Count Increment.
    Increment(u64),
}

/// Makes an instruction of its integer.
type MakeInstruction = fn(u64) -> DecoderInstruction;

/// Reads the decoder stream, whose instructions are one integer each.
#[derive(Debug, Default)]
pub(super) struct DecoderStreamReader {
    partial: Option<(MakeInstruction, Partial)>,
}

impl DecoderStreamReader {
    /// Takes the stream's next byte.
    pub(super) fn push(&mut self, byte: u8) -> Result<Option<DecoderInstruction>, Error> {
        let (kind, step) = match self.partial.take() {
            Some((kind, partial)) => (kind, partial.push(byte)),
            None => {
                let (kind, prefix): (MakeInstruction, _) = match byte {
                    0b1000_0000.. => (DecoderInstruction::Acknowledge, 7),
                    0b0100_0000..0b1000_0000 => (DecoderInstruction::Cancel, 6),
                    0b0000_0000..0b0100_0000 => (DecoderInstruction::Increment, 6),
                };
                (kind, Ok(integer::start(byte, prefix)))
            }
        };
        match step {
            Ok(Step::Done(value)) => Ok(Some(kind(value))),
            Ok(Step::More(partial)) => {
                self.partial = Some((kind, partial));
                Ok(None)
            }
            Err(_) => Err(Error::new(Code::QPACK_DECODER_STREAM_ERROR, "integer beyond 62 bits")),
        }
    }
}
