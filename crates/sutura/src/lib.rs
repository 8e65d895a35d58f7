//! Async QUIC.
#![forbid(unsafe_code)]
