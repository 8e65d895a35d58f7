//! The invariants of the sending part of a stream.

use super::SendHalf;
use crate::invariant::ensure;

impl SendHalf {
    /// Checks the invariants that hold between any two calls.
    ///
    /// # Errors
    /// The first contradiction.
    pub(in crate::streams) fn check(&self) -> Result<(), String> {
        ensure(self.fresh == (self.new_bytes() > 0), || "new bytes are counted wrong".to_owned())?;
        ensure(self.pooled == self.buffer.retained(), || {
            format!("{} bytes count in the pool, {} are held", self.pooled, self.buffer.retained())
        })?;
        ensure(!self.wants_bare_fin() || self.fin_queued, || "its FIN is not queued".to_owned())?;
        self.buffer.check()
    }
}
