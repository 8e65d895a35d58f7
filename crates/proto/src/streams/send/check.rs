//! What must hold of the sending part of a stream.

use super::{Fin, SendHalf};
use crate::invariant::ensure;
use crate::wire::range_set::RangeSet;

impl SendHalf {
    /// Checks what must hold between any two calls.
    ///
    /// # Errors
    /// The first contradiction.
    pub(in crate::streams) fn check(&self) -> Result<(), String> {
        let over = !self.is_sending();
        ensure(!over || self.lost.is_empty(), || "it is over and has lost data".to_owned())?;
        let first = self.lost.front();
        ensure(first.is_none_or(|frame| self.is_wanted(frame)), || {
            format!("the first of its lost data is not missing: {first:?}")
        })?;
        ensure(self.fresh == (self.new_bytes() > 0), || "new bytes are counted wrong".to_owned())?;
        ensure(self.pooled == self.buffer.retained(), || {
            format!("{} bytes count in the pool, {} are held", self.pooled, self.buffer.retained())
        })?;
        ensure(!self.wants_bare_fin() || self.fin_queued, || "its FIN is not queued".to_owned())?;
        self.buffer.check()?;
        self.check_lost()
    }

    /// What is marked as lost has an entry that will send it.
    fn check_lost(&self) -> Result<(), String> {
        if !self.is_sending() {
            return Ok(());
        }
        let mut bare = RangeSet::default();
        let mut fin = false;
        for frame in self.lost.iter().filter(|frame| frame.symbol.is_none()) {
            bare.insert(frame.range.clone());
            fin |= frame.fin;
        }
        let orphan = self.buffer.lost().find(|range| !bare.contains_range(range));
        ensure(orphan.is_none(), || format!("nobody sends the lost bytes {orphan:?}"))?;
        let fin_lost = self.fin == Fin::Lost && self.reset.is_none();
        ensure(!fin_lost || fin, || "nobody sends the lost FIN".to_owned())
    }
}
