//! Numbers and pixels in few bytes, by a binary range coder with adaptive probabilities.
//!
//! Every piece begins with the same probabilities, so that it can be decoded without the others.

mod mixer;
mod numbers;
mod range;

pub use mixer::{Contexts, Mixer, Table};
pub use numbers::{Adaptive, Number, raw};
pub use range::{Coder, RangeDecoder, RangeEncoder};
