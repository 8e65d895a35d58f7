//! How QUIC stacks schedule streams without any priority information (Marx 2020, section 2).

mod multiplexer;
mod preset;
#[cfg(test)]
mod tests;

pub use multiplexer::{Block, Discipline, Multiplexer};
pub use preset::{Preset, resend_order};
