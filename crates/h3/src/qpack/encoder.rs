//! Encodes field sections (RFC 9204 section 4.5) and reads the peer's decoder stream (section 4.4).

use super::huffman;
use super::integer::{self, Partial, Step};
use super::static_table::{self, Match};
use crate::error::{Code, Error};
use crate::fields::Field;

/// Indexed field line, static table.
const INDEXED_STATIC: u8 = 0b1100_0000;
/// Literal field line with name reference into the static table.
const NAME_REFERENCE_STATIC: u8 = 0b0101_0000;
const NAME_REFERENCE_NEVER: u8 = 0b0010_0000;
/// Literal field line with literal name.
const LITERAL_NAME: u8 = 0b0010_0000;
const LITERAL_NAME_NEVER: u8 = 0b0001_0000;

/// Appends an encoded field section that refers only to the static table.
pub(crate) fn encode<'a>(fields: impl IntoIterator<Item = &'a Field>, out: &mut Vec<u8>) {
    // Required Insert Count and Base (section 4.5.1).
    out.extend_from_slice(&[0, 0]);
    for field in fields {
        encode_line(field, out);
    }
}

fn encode_line(field: &Field, out: &mut Vec<u8>) {
    match static_table::find(&field.name, &field.value) {
        Match::Line(index) if !field.sensitive => {
            integer::encode(out, INDEXED_STATIC, 6, index);
        }
        Match::Line(index) | Match::Name(index) => {
            let never = if field.sensitive { NAME_REFERENCE_NEVER } else { 0 };
            integer::encode(out, NAME_REFERENCE_STATIC | never, 4, index);
            encode_string(&field.value, 0, 7, out);
        }
        Match::None => {
            let never = if field.sensitive { LITERAL_NAME_NEVER } else { 0 };
            encode_string(&field.name, LITERAL_NAME | never, 3, out);
            encode_string(&field.value, 0, 7, out);
        }
    }
}

/// Appends a string literal whose length has a `prefix`-bit prefix. The bit above it says whether
/// the string is Huffman coded, which it is if that is shorter.
fn encode_string(string: &[u8], flags: u8, prefix: u32, out: &mut Vec<u8>) {
    let size = huffman::encoded_size(string);
    if size < string.len() {
        integer::encode(out, flags | 1 << prefix, prefix, size as u64);
        huffman::encode(string, out);
    } else {
        integer::encode(out, flags, prefix, string.len() as u64);
        out.extend_from_slice(string);
    }
}

/// The peer's decoder stream (RFC 9204 section 4.4). Nothing is ever inserted into a dynamic table,
/// so cancellations are the only valid instructions.
#[derive(Debug, Default)]
pub(crate) struct DecoderStream {
    cancellation: Option<Partial>,
}

impl DecoderStream {
    /// Processes the stream's next bytes.
    pub(crate) fn receive(&mut self, bytes: &[u8]) -> Result<(), Error> {
        const fn error(reason: &'static str) -> Error {
            Error::new(Code::QPACK_DECODER_STREAM_ERROR, reason)
        }
        for &byte in bytes {
            let step = match self.cancellation.take() {
                Some(partial) => partial.push(byte),
                None => match byte >> 6 {
                    0b01 => Ok(integer::start(byte, 6)),
                    0b00 => return Err(error("Insert Count Increment without an insert")),
                    _ => return Err(error("Section Acknowledgment without a reference")),
                },
            };
            match step {
                Ok(Step::More(partial)) => self.cancellation = Some(partial),
                // Stream Cancellation: the stream holds no references to release.
                Ok(Step::Done(_)) => {}
                Err(_) => return Err(error("stream identifier beyond 62 bits")),
            }
        }
        Ok(())
    }
}
