//! Endpoints on sockets, or on a network in memory. One program, so that it is linked once and its tests run
//! side by side.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod budget;
mod common;
mod early;
mod endpoint;
mod groups;
mod http;
mod incoming;
mod interop_quinn;
mod migration;
mod opening;
mod qlog;
mod quic;
mod resumption;
mod timeouts;
mod turns;
mod versions;
#[cfg(target_os = "linux")]
mod workers;
