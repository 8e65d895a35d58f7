//! The sutura command.
#![forbid(unsafe_code)]
fn main() {}
