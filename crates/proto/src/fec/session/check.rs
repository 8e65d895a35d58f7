//! What must hold of a coding session.

use super::{Carried, CodingSession, Symbol, SymbolState};
use crate::invariant::ensure;
use crate::recovery::token::StreamToken;
use crate::wire::range_set::RangeSet;
use std::collections::BTreeSet;

impl CodingSession {
    /// Checks what must hold between any two calls: what is counted is what the window holds.
    ///
    /// # Errors
    /// The first contradiction.
    pub(in crate::fec) fn check(&self) -> Result<(), String> {
        let (mut missing, mut copies) = (BTreeSet::new(), BTreeSet::new());
        let (mut done, mut carried) = (RangeSet::default(), Carried::default());
        let (mut open, mut held) = (0, BTreeSet::new());
        for (id, symbol) in self.symbols() {
            if let SymbolState::Held { until } = symbol.state {
                held.insert((until, id));
            }
            if symbol.state.is_missing() {
                missing.insert(id);
            }
            if symbol.is_copy() {
                copies.insert((symbol.changed, id));
            }
            let empty = symbol.contents.frames.is_empty() && symbol.contents.datagrams.is_empty();
            ensure(empty == (symbol.state == SymbolState::Done), || {
                format!("symbol {id} is {:?} and has {:?}", symbol.state, symbol.contents)
            })?;
            if symbol.state == SymbolState::Done {
                done.insert(id..id + 1);
            } else {
                open += 1;
                carried.add(&symbol.contents.frames);
            }
        }
        ensure(self.open == open, || format!("{} are open, not {open}", self.open))?;
        ensure(self.held == held, || format!("held {:?}, not {held:?}", self.held))?;
        ensure(self.missing == missing, || format!("missing {:?}, not {missing:?}", self.missing))?;
        ensure(self.copies == copies, || format!("copies {:?}, not {copies:?}", self.copies))?;
        ensure(self.done.iter().eq(done.iter()), || format!("done {:?}, not {done:?}", self.done))?;
        ensure(self.carried == carried, || format!("carries {:?}, not {carried:?}", self.carried))?;
        let below =
            self.beyond.within(0..u64::MAX).all(|id| (self.told..self.first()).contains(&id));
        ensure(below, || {
            "a symbol is beyond the window and in it, or no longer reported".to_owned()
        })?;
        let first = self.symbols().next().map(|(_, symbol)| symbol.state);
        ensure(first != Some(SymbolState::Done), || "the first symbol is done".to_owned())
    }

    fn symbols(&self) -> impl Iterator<Item = (u64, &Symbol)> {
        (self.first()..).zip(&self.symbols)
    }

    /// The symbols that wait to be sent again, with their frames.
    pub(in crate::fec) fn queued(&self) -> impl Iterator<Item = (u64, &[StreamToken])> {
        let queued = self.symbols().filter(|(_, symbol)| symbol.state == SymbolState::Resend);
        queued.map(|(id, symbol)| (id, &symbol.contents.frames[..]))
    }
}
