//! What QUIC stacks do with streams of which they know nothing (Marx 2020, section 2).

mod multiplexer;
mod preset;
#[cfg(test)]
mod tests;

pub use multiplexer::{Block, Discipline, Multiplexer};
pub use preset::{Preset, resend_order};
