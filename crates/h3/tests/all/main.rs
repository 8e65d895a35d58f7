//! HTTP/3 between two ends, or with a peer that writes arbitrary bytes. One program, so that it is linked
//! once and its tests run side by side.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;
mod connect;
mod datagrams;
mod errors;
mod exchange;
mod h3spec;
mod limits;
mod priority;
mod qpack;
mod webtransport;
mod work;
