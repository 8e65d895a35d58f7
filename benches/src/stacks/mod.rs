//! The implementations.

mod quinn;
mod sutura;

pub use quinn::Quinn;
pub use sutura::Sutura;
