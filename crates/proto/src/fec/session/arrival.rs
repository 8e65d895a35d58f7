//! What arrives of a session: symbols that are done, and what the policy and the peer are told of it.

use super::CodingSession;
use crate::fec::redundancy::Arrival;
use crate::fec::surroundings::Surroundings;
use crate::fec::symbol::Contents;
use std::ops::Range;
use std::time::Instant;

/// The most symbols that the peer's decoder keeps because it was not told that they are no longer needed.
const MOST_UNTOLD: u64 = 128;

impl CodingSession {
    /// Marks a symbol as done. Returns its contents if it was not done before.
    pub(in crate::fec) fn done(&mut self, id: u64) -> Option<Contents> {
        match self.index(id) {
            Some(index) => self.settle(id, index).map(std::mem::take),
            None => self.remove_beyond(id),
        }
    }

    /// Marks the symbol of the window with this identifier and index as done. Returns its contents, which the
    /// caller takes or drops, if it was not done before. The caller lets the window [slide](Self::slide).
    fn settle(&mut self, id: u64, index: usize) -> Option<&mut Contents> {
        let symbol = self.symbols.get_mut(index)?;
        if std::mem::replace(&mut symbol.done, true) {
            return None;
        }
        self.carried.remove(&symbol.contents.frames);
        self.uncovered.remove(id, symbol.deadline);
        let was_lost = self.lost.remove(id);
        if index > 0 {
            self.done.insert(id..id + 1);
        }
        self.open -= 1;
        self.overdue -= u32::from(id < self.timely);
        // With this symbol, the peer may recover symbols that wait for it.
        self.overheld |= was_lost && self.lost.holds_any();
        Some(&mut symbol.contents)
    }

    /// Removes the records of symbols that are done from the old end of the window.
    fn drop_done(&mut self) {
        while self.symbols.front().is_some_and(|symbol| symbol.done) {
            self.symbols.pop_front();
        }
        while self.get(self.timely).is_some_and(|symbol| symbol.done) {
            self.timely += 1;
        }
    }

    /// Removes symbols that are done from the old end of the window.
    pub(in crate::fec) fn slide(&mut self) {
        self.drop_done();
        let first = self.first();
        self.done.remove(0..first);
        self.release_kept();
    }

    /// The lower bound of the symbols that the peer may still report, if the peer should be told because it
    /// could free half a window or [`MOST_UNTOLD`] symbols.
    pub(in crate::fec) fn lower_bound_to_tell(&self, window: u64) -> Option<u64> {
        let due = self.told.saturating_add((window / 2).min(MOST_UNTOLD));
        // The oldest symbol is the first of the window, or one before it.
        if self.first() < due {
            return None;
        }
        Some(self.oldest()).filter(|oldest| *oldest >= due)
    }

    pub(in crate::fec) fn told(&mut self, lower_bound: u64) {
        self.told = self.told.max(lower_bound);
    }

    /// Tells the policy that the peer has a symbol. Returns the size of the repair symbol that recovered the
    /// symbol, if a repair symbol did.
    pub(in crate::fec) fn arrived(
        &mut self,
        now: Instant,
        id: u64,
        how: Arrival,
        around: &Surroundings<'_>,
    ) -> Option<usize> {
        let mended = match how {
            Arrival::Recovered => {
                self.overheld = self.lost.holds_any();
                self.repairs.on_recovered(id)
            }
            Arrival::Acked | Arrival::Late => None,
        };
        let view = self.view(around);
        self.policy.on_arrived(now, id, how, &view);
        mended
    }

    /// The packets with these symbols were acknowledged.
    pub(in crate::fec) fn acked(&mut self, mut ids: Range<u64>, how: Arrival) {
        self.settle_oldest(&mut ids, how);
        for id in ids {
            let was_open = match self.index(id) {
                Some(index) => self.settle(id, index).map(Contents::clear).is_some(),
                None => self.remove_beyond(id).is_some(),
            };
            self.drop_done();
            if was_open {
                self.arrivals.push((id, how));
            }
        }
    }

    /// Takes acknowledged symbols off the old end of the window, as far as they are there and no symbol of the
    /// session was lost. Most symbols arrive in this way.
    fn settle_oldest(&mut self, ids: &mut Range<u64>, how: Arrival) {
        if !self.lost.is_empty() || ids.start != self.first() {
            return;
        }
        while !ids.is_empty()
            && let Some(symbol) = self.symbols.pop_front_if(|symbol| !symbol.done)
        {
            let id = ids.start;
            self.carried.remove(&symbol.contents.frames);
            self.uncovered.remove(id, symbol.deadline);
            self.open -= 1;
            self.overdue -= u32::from(id < self.timely);
            self.arrivals.push((id, how));
            ids.start += 1;
        }
        self.drop_done();
    }

    /// Whether the policy has to be [told](Self::tell_arrived) of acknowledged symbols.
    pub(in crate::fec) fn has_arrivals(&self) -> bool {
        !self.arrivals.is_empty()
    }

    /// Tells the policy of the symbols that were acknowledged since the last call.
    pub(in crate::fec) fn tell_arrived(&mut self, now: Instant, around: &Surroundings<'_>) {
        self.slide();
        let mut arrivals = std::mem::take(&mut self.arrivals);
        let view = self.view(around);
        for (id, how) in arrivals.drain(..) {
            self.policy.on_arrived(now, id, how, &view);
        }
        self.arrivals = arrivals;
        self.release_repairs();
    }
}
