//! QPACK (RFC 9204).
//!
//! An [`Encoder`] writes field sections and the instructions that fill the peer's dynamic table; a
//! [`Decoder`] reads them. Each learns from the other's stream which entries or sections have arrived.

mod decoder;
mod encoder;
mod huffman;
mod instruction;
mod integer;
mod outstanding;
mod prefix;
mod section;
mod static_table;
mod string;
mod table;

pub(crate) use decoder::Decoder;
pub(crate) use encoder::Encoder;
pub use outstanding::MAX_UNACKNOWLEDGED_SECTIONS;
pub(crate) use prefix::MAX_PREFIX_SIZE;
pub(crate) use section::{FieldLimits, SectionError};

#[cfg(test)]
mod tests;
