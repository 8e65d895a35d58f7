//! Helpers shared by the tests, such as quinn-proto as a node, and TLS for both implementations.
#![allow(dead_code, reason = "each test uses its part")]

pub mod datagrams;
pub mod quinn;
pub mod supply;
pub mod tls;

use std::time::Duration;

use sutura_link::LinkConfig;
use sutura_proto::{Algorithm, Protection};

pub const MS: Duration = Duration::from_millis(1);

/// The algorithms that come with the transport.
pub const ALGORITHMS: [Algorithm; 3] = [Algorithm::NEW_RENO, Algorithm::CUBIC, Algorithm::BBR];

pub fn link(text: &str) -> LinkConfig {
    text.parse().unwrap()
}

/// Repair symbols at the end of the data.
pub fn tail(burst: u32) -> Option<Protection> {
    Some(Protection::tail(burst, Duration::ZERO))
}

/// Repair symbols after each piece of the data.
pub fn incremental(burst: u32, delay: Duration) -> Option<Protection> {
    Some(Protection::incremental(burst, delay))
}
