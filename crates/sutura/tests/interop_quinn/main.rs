//! This stack against quinn and h3, in both roles, over loopback and over a lossy link.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod early;
mod http;
mod lossy;
mod migration;
mod peers;
mod quic;
mod transport;
