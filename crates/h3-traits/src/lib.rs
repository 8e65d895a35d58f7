//! The traits of [`h3::quic`] for Sutura's connections and streams.
//!
//! Wrap a connection in [`Connection`] and give it to `h3::client` or `h3::server`.
#![forbid(unsafe_code)]

mod connection;
mod error;
mod stream;

pub use connection::{Connection, Opener};
pub use stream::{BidiStream, RecvStream, SendStream};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
