//! QPACK (RFC 9204) without a dynamic table: both ends announce a capacity of zero, so that a field
//! section never waits for another stream.

mod decoder;
mod encoder;
mod huffman;
mod integer;
mod static_table;

pub(crate) use decoder::{Decoder, EncoderStream, FieldLimits, SectionError};
pub(crate) use encoder::{DecoderStream, encode};
#[cfg(test)]
mod tests;
