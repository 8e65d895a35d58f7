//! Erasure codes.
#![forbid(unsafe_code)]
