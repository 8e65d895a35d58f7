//! Other systems than Linux have no store of descriptors: flows end with the process.

use sutura_tunnel::server::FlowAtRest;

use crate::passed::Stored;

/// Nothing is stored.
pub const NAMES: [&str; 0] = [];

/// Never.
pub const fn is_possible() -> bool {
    false
}

/// Nothing was left.
#[derive(Debug, Default)]
pub struct Left {
    pub flows: Vec<FlowAtRest>,
    pub complaints: Vec<String>,
}

impl Left {
    pub fn read(_: Vec<Stored>) -> Self {
        Self::default()
    }

    pub const fn taken(&self) {}
}

/// The flows are reset.
#[expect(clippy::unused_async, reason = "elsewhere the supervisor is waited for")]
pub async fn store(_: Vec<FlowAtRest>) {}
