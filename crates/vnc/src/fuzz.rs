//! Entry points for fuzzers: each panics when a promise is broken.

pub use crate::bridge::fuzz::bridge;
pub use crate::rfb::fuzz::{server, viewer};
