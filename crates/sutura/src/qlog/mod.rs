//! Records what connections do as qlog files, one per connection, for tools such as qvis.
//!
//! The files are JSON text sequences (RFC 7464) in version 0.3 of qlog, the newest that qvis opens.
//! A header is followed by one record for each event: the QUIC schema (`transport`, `recovery`,
//! `connectivity`), requests, responses and their priorities (`http`), and a category `fec` of this
//! project for recovery by erasure coding. Stream data, reset tokens, and HTTP fields other than
//! the pseudo-header fields and `priority` are not recorded. A category `sutura` has the decisions of
//! redundancy policies with their reasons, and the estimated losses of the path. Applications add events of
//! their own with [`Connection::log`](crate::Connection::log).

mod application;
mod frames;
mod http;
mod parameters;
mod path;
mod writer;

#[cfg(test)]
mod tests;

pub use application::ApplicationEvent;
pub use writer::QlogWriter;
