//! The invariants of a coding session.

use super::{Carried, CodingSession, LostState, Symbol};
use crate::invariant::ensure;
use crate::recovery::token::StreamToken;
use crate::wire::range_set::RangeSet;

impl CodingSession {
    /// Checks the invariants that hold between any two calls: all counts agree with the symbols of the
    /// window.
    ///
    /// # Errors
    /// The first contradiction.
    pub(in crate::fec) fn check(&self) -> Result<(), String> {
        let (mut done, mut carried) = (RangeSet::default(), Carried::default());
        let (mut open, mut overdue) = (0, 0);
        for (id, symbol) in self.symbols() {
            let empty = symbol.contents.frames.is_empty() && symbol.contents.datagrams.is_empty();
            ensure(empty == symbol.done, || format!("symbol {id} has {:?}", symbol.contents))?;
            if symbol.done {
                done.insert(id..id + 1);
            } else {
                open += 1;
                overdue += u32::from(id < self.timely);
                carried.add(&symbol.contents.frames);
            }
        }
        self.lost.check(|id| self.get(id).map_or(self.is_beyond(id), |symbol| !symbol.done))?;
        ensure(self.open == open, || format!("{} are open, not {open}", self.open))?;
        let right = self.overdue == overdue;
        ensure(right, || format!("{} are overdue, not {overdue}", self.overdue))?;
        ensure(self.done.iter().eq(done.iter()), || format!("done {:?}, not {done:?}", self.done))?;
        ensure(self.carried == carried, || format!("carries {:?}, not {carried:?}", self.carried))?;
        let below =
            self.beyond.within(0..u64::MAX).all(|id| (self.told..self.first()).contains(&id));
        ensure(below, || {
            "a symbol is beyond the window and in it, or no longer reported".to_owned()
        })?;
        let is_done = self.symbols().next().is_some_and(|(_, symbol)| symbol.done);
        ensure(!is_done, || "the first symbol is done".to_owned())
    }

    fn symbols(&self) -> impl Iterator<Item = (u64, &Symbol)> {
        (self.first()..).zip(&self.symbols)
    }

    /// The symbols that wait to be sent again, with their frames.
    pub(in crate::fec) fn queued(&self) -> impl Iterator<Item = (u64, &[StreamToken])> {
        let queued =
            self.symbols().filter(|(id, _)| self.lost.state(*id) == Some(LostState::Resend));
        queued.map(|(id, symbol)| (id, &symbol.contents.frames[..]))
    }
}
