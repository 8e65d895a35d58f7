//! qlog: what a connection did, one file for each, for tools such as qvis.
//!
//! The files are JSON text sequences (RFC 7464) in version 0.3 of qlog, the newest that qvis opens:
//! a header, then one record for each event of the schema for QUIC (`transport`, `recovery`,
//! `connectivity`), of requests, responses and their priorities (`http`), and of a category of its
//! own, `fec`, for what erasure coding recovered. Stream data, reset tokens, and HTTP fields but the
//! pseudo-header fields and `priority` are not recorded.

mod frames;
mod http;
mod parameters;
mod writer;

#[cfg(test)]
mod tests;

pub use writer::QlogWriter;
