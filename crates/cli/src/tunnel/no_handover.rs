//! Other systems than Linux have no store of descriptors: flows end with the process.

use sutura_tunnel::server::FlowAtRest;

use crate::passed::Stored;

/// Nothing is stored.
pub const NAMES: [&str; 0] = [];

/// Never.
pub const fn is_possible() -> bool {
    false
}

/// Nothing was stored.
pub fn read(_: Vec<Stored>) -> (Vec<FlowAtRest>, Vec<String>) {
    (Vec::new(), Vec::new())
}

/// Nobody has copies.
pub const fn taken() {}

/// The flows are reset.
#[expect(clippy::unused_async, reason = "elsewhere the supervisor is waited for")]
pub async fn store(_: Vec<FlowAtRest>) {}
