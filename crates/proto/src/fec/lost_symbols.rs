//! The lost symbols of a session: which symbols wait for repair symbols, for how long, and which symbols are
//! sent again.
//!
//! A *held* symbol waits for a repair symbol, or for a copy of another symbol that lets an arrived repair
//! symbol mend the held symbol. A *copy* is a lost symbol that is sent again, or is queued to be. A symbol that
//! left the window waits for the repair symbols that were sent before then; it cannot be sent again as a symbol.

use super::repairs::Repairs;
#[cfg(feature = "testing")]
use crate::invariant::ensure;
use crate::loss_reaction::RepairOutlook;
use crate::work;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::{Duration, Instant};

/// The state of a symbol that was lost, or that is sent again as a probe.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum LostState {
    /// The last packet with the symbol is in flight, or its loss is just being handled.
    #[default]
    InFlight,
    /// The packet with the symbol was lost, but a repair symbol may recover the symbol.
    Held {
        /// When the waiting ends.
        until: Instant,
    },
    /// The symbol waits to be sent again.
    Resend,
}

/// The loss of a symbol.
#[derive(Debug, Clone, Copy)]
struct LossTimes {
    /// When the symbol was declared lost for the first time.
    first: Instant,
    /// When the last packet with the symbol was sent, or declared lost.
    changed: Instant,
}

/// A symbol that was lost, or that is sent again as a probe.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LossRecord {
    state: LostState,
    /// `None` if the symbol was never lost.
    loss: Option<LossTimes>,
    /// How long the symbol waits after the last packet was sent that may mend it.
    patience: Duration,
    /// The number of the last repair symbol that may bring the symbol, once the symbol left the window.
    last_repair: Option<u64>,
}

impl LossRecord {
    /// Whether the peer misses the symbol, which is in the window, and no packet with it is in flight.
    fn is_missing(&self) -> bool {
        match self.state {
            LostState::Held { .. } | LostState::Resend => self.last_repair.is_none(),
            LostState::InFlight => false,
        }
    }

    /// The time by which copies are ordered: if the symbol was lost, and was sent again or waits to be, when
    /// its last packet was sent or declared lost. `None` for other symbols.
    fn copied(&self) -> Option<Instant> {
        let loss = self.loss.filter(|_| self.last_repair.is_none());
        match self.state {
            LostState::InFlight | LostState::Resend => loss.map(|loss| loss.changed),
            LostState::Held { .. } => None,
        }
    }
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct LostSymbols {
    symbols: BTreeMap<u64, LossRecord>,
    /// The symbols of the window that are held, by the end of their waiting.
    held: BTreeSet<(Instant, u64)>,
    /// The symbols that left the window and are held, by the end of their waiting.
    held_beyond: BTreeSet<(Instant, u64)>,
    /// The symbols that left the window and are held, by [`LossRecord::last_repair`].
    by_repair: BTreeSet<(u64, u64)>,
    /// The symbols of the window that are held or wait to be sent again.
    missing: BTreeSet<u64>,
    /// The copies, by [`LossRecord::copied`].
    copies: BTreeSet<(Instant, u64)>,
    /// The last value of `awaited` in [`overdue`](Self::overdue).
    awaited: bool,
}

impl LostSymbols {
    /// Bytes of memory for each symbol, in trees whose nodes are half full.
    pub(super) const SYMBOL_COST: usize = 2 * size_of::<(u64, LossRecord)>();

    /// The state of a symbol. `None` if it was never lost or sent again, or is done.
    pub(super) fn state(&self, id: u64) -> Option<LostState> {
        self.symbols.get(&id).map(|symbol| symbol.state)
    }

    /// Whether no symbol is known that was lost or is sent again.
    pub(super) fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// When a symbol was declared lost for the first time.
    pub(super) fn lost_at(&self, id: u64) -> Option<Instant> {
        self.symbols.get(&id)?.loss.map(|loss| loss.first)
    }

    /// The symbols of the window that are held or wait to be sent again, in ascending order.
    pub(super) fn missing(&self) -> &BTreeSet<u64> {
        &self.missing
    }

    /// Number of symbols of the window that are held.
    pub(super) fn held_len(&self) -> usize {
        self.held.len()
    }

    /// Whether any symbol is held.
    pub(super) fn holds_any(&self) -> bool {
        !self.held.is_empty() || !self.held_beyond.is_empty()
    }

    /// When the first of the held symbols stops waiting.
    pub(super) fn held_until(&self) -> Option<Instant> {
        let first = self.held.first().into_iter().chain(self.held_beyond.first());
        first.map(|(until, _)| *until).min()
    }

    /// The oldest symbol in `span` that is held; one that left the window before others.
    pub(super) fn oldest_held(&self, span: &Range<u64>) -> Option<u64> {
        let beyond = self.held_beyond.iter().map(|(_, id)| *id).filter(|id| span.contains(id));
        let window = || self.held().map(|(id, _)| id).find(|id| span.contains(id));
        beyond.min().or_else(window)
    }

    /// The held symbols of the window in ascending order, each with the end of its waiting.
    fn held(&self) -> impl Iterator<Item = (u64, Instant)> + '_ {
        let any = !self.held.is_empty();
        self.missing.iter().take_while(move |_| any).filter_map(move |id| {
            work::steps(1);
            match self.state(*id)? {
                LostState::Held { until } => Some((*id, until)),
                LostState::InFlight | LostState::Resend => None,
            }
        })
    }

    /// Adds or removes a symbol in the orders by state and time.
    fn index(&mut self, id: u64, present: bool) {
        fn put<T: Ord>(set: &mut BTreeSet<T>, entry: T, present: bool) {
            if present {
                set.insert(entry);
            } else {
                set.remove(&entry);
            }
        }
        let Some(symbol) = self.symbols.get(&id) else { return };
        match (symbol.state, symbol.last_repair) {
            (LostState::Held { until }, None) => put(&mut self.held, (until, id), present),
            (LostState::Held { until }, Some(last)) => {
                put(&mut self.held_beyond, (until, id), present);
                put(&mut self.by_repair, (last, id), present);
            }
            (LostState::InFlight | LostState::Resend, _) => {}
        }
        if symbol.is_missing() {
            put(&mut self.missing, id, present);
        }
        if let Some(changed) = symbol.copied() {
            put(&mut self.copies, (changed, id), present);
        }
    }

    /// Changes the state of a symbol.
    fn change(&mut self, id: u64, act: impl FnOnce(&mut LossRecord)) {
        self.index(id, false);
        act(self.symbols.entry(id).or_default());
        self.index(id, true);
    }

    /// The packet of a symbol was declared lost at `now`. If the symbol left the window, `last_repair` is the
    /// number of the last repair symbol that may bring it.
    pub(super) fn on_lost(&mut self, now: Instant, id: u64, last_repair: Option<u64>) {
        self.change(id, |symbol| {
            let first = symbol.loss.map_or(now, |loss| loss.first);
            symbol.loss = Some(LossTimes { first, changed: now });
            symbol.last_repair = last_repair;
        });
    }

    /// A lost symbol waits until `until`.
    pub(super) fn hold(&mut self, id: u64, until: Instant, repairs: &Repairs) {
        let help = self.newest_help(id, repairs);
        self.change(id, |symbol| {
            symbol.state = LostState::Held { until };
            if let Some(help) = help {
                symbol.patience = until.saturating_duration_since(help);
            }
        });
    }

    /// A symbol waits to be sent again.
    pub(super) fn queue(&mut self, id: u64) {
        self.change(id, |symbol| symbol.state = LostState::Resend);
    }

    /// What is known of the loss of a symbol.
    pub(super) fn record(&self, id: u64) -> Option<LossRecord> {
        self.symbols.get(&id).copied()
    }

    /// A symbol with this record left the window. The repair symbol with the number `last_repair` is the last
    /// that may bring it.
    pub(super) fn leave(&mut self, id: u64, record: LossRecord, last_repair: u64) {
        self.symbols.insert(id, LossRecord { last_repair: Some(last_repair), ..record });
        self.index(id, true);
    }

    /// A symbol that left the window waits no longer, because its frames are sent bare.
    pub(super) fn sent_bare(&mut self, id: u64) {
        if self.symbols.contains_key(&id) {
            self.change(id, |symbol| symbol.state = LostState::InFlight);
        }
    }

    /// A symbol was sent again.
    pub(super) fn sent_again(&mut self, now: Instant, id: u64) {
        self.change(id, |symbol| {
            symbol.state = LostState::InFlight;
            symbol.loss = symbol.loss.map(|loss| LossTimes { changed: now, ..loss });
        });
        if self.lost_at(id).is_none() {
            self.symbols.remove(&id);
        }
    }

    /// Forgets a symbol: it arrived, was recovered, or is no longer needed. Returns whether it had been lost.
    pub(super) fn remove(&mut self, id: u64) -> bool {
        // Mostly no symbol was lost.
        if self.symbols.is_empty() {
            return false;
        }
        self.index(id, false);
        self.symbols.remove(&id).is_some_and(|symbol| symbol.loss.is_some())
    }

    /// The chance of repair symbols to recover `id`, which left the window: no more repair symbols are to come
    /// for it.
    pub(super) fn outlook_beyond(&self, id: u64, repairs: &Repairs) -> RepairOutlook {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        RepairOutlook {
            newest_repair: repairs.newest(id),
            repairs: count(repairs.bringing(id)),
            held: count(self.held_beyond.len()),
            mends: false,
        }
    }

    /// The chance of repair symbols to recover `id`. `mends` tells whether more repair symbols are to come.
    pub(super) fn outlook(&self, id: u64, repairs: &Repairs, mends: bool) -> RepairOutlook {
        let Some(newest) = self.newest_help(id, repairs) else {
            return RepairOutlook { newest_repair: None, repairs: 0, held: 0, mends };
        };
        // Held symbols take repair symbols first. To count the repair symbols that are left for this symbol,
        // it is entered once for each repair symbol over it.
        let covering = repairs.covering(id);
        let held = || self.held().map(|(id, _)| id);
        let copies = std::iter::repeat_n(id, covering);
        let all =
            held().take_while(|h| *h < id).chain(copies).chain(held().skip_while(|h| *h < id));
        let taken = repairs.beyond(all).len().saturating_sub(repairs.beyond(held()).len());
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let (repairs, held) = (count(covering), count(taken));
        RepairOutlook { newest_repair: Some(newest), repairs, held, mends }
    }

    /// The first held symbol of `span` for which no repair symbol is left.
    pub(super) fn unmended(&self, repairs: &Repairs, span: &Range<u64>) -> Option<u64> {
        let held = self.held().map(|(id, _)| id).take_while(|id| *id < span.end);
        repairs.beyond(held).into_iter().find(|id| *id >= span.start)
    }

    /// When the newest packet was sent that may mend a lost symbol: a packet with a repair symbol over it or,
    /// if an arrived repair symbol lacks further symbols besides this symbol, a packet with a copy of a
    /// further symbol. A copy that waits to be sent counts from its loss on. `None` if no such packet is to
    /// come.
    fn newest_help(&self, id: u64, repairs: &Repairs) -> Option<Instant> {
        repairs.newest(id).max(self.newest_copy_for(id, repairs))
    }

    /// When the newest copy was sent that lets an arrived repair symbol mend `id`.
    fn newest_copy_for(&self, id: u64, repairs: &Repairs) -> Option<Instant> {
        let newest_first = self.copies.iter().rev().inspect(|_| work::steps(1));
        let mut newest_first = newest_first.filter(|(_, copy)| *copy != id);
        newest_first.find(|(_, copy)| repairs.have_arrived_over(id, *copy)).map(|(at, _)| *at)
    }

    /// Held symbols that left the window and must wait no longer: their time is over, or no repair symbol in
    /// flight can bring them.
    pub(super) fn overdue_beyond(&self, now: Instant, repairs: &Repairs) -> SmallVec<[u64; 4]> {
        if self.held_beyond.is_empty() {
            return SmallVec::new();
        }
        let late = self.held_beyond.iter().take_while(|(until, _)| *until <= now);
        let oldest = repairs.oldest_number().unwrap_or(u64::MAX);
        let hopeless = self.by_repair.iter().take_while(|(last, _)| *last < oldest);
        let ids = late.map(|(_, id)| *id).chain(hopeless.map(|(_, id)| *id));
        ids.collect::<BTreeSet<u64>>().into_iter().collect()
    }

    /// Held symbols of the window that must wait no longer: first the symbols whose time is over. Unless
    /// further repair symbols are `awaited`, also symbols that no repair symbol in flight covers, and symbols that are too
    /// many for the repair symbols over them. Visits all held symbols only if they or the repair symbols have
    /// `changed`.
    pub(super) fn overdue(
        &mut self,
        now: Instant,
        repairs: &Repairs,
        awaited: bool,
        changed: bool,
    ) -> SmallVec<[u64; 4]> {
        self.wait_for_copies(now, repairs);
        let despairs = std::mem::replace(&mut self.awaited, awaited) && !awaited;
        if !despairs && (awaited || !changed) {
            return self.late(now);
        }
        let (late, rest): (SmallVec<[_; 4]>, SmallVec<[_; 4]>) =
            self.held().partition(|(_, until)| *until <= now);
        let mut due: SmallVec<[u64; 4]> = late.iter().map(|(id, _)| *id).collect();
        let surplus = repairs.beyond(rest.iter().map(|(id, _)| *id));
        due.extend_from_slice(&surplus);
        // The repair symbols suffice for the remaining symbols, which wait for repair symbols in flight, and
        // for the copies that arrived repair symbols lack.
        let copies = due.iter().chain(self.copies.iter().map(|(_, id)| id));
        let lacking = repairs.arrived_over(&copies);
        // `surplus` and `rest` are in ascending order.
        let mut surplus = surplus.into_iter().peekable();
        for (id, _) in rest {
            let is_due = surplus.next_if_eq(&id).is_some();
            let waits = || lacking.iter().any(|span| span.contains(&id));
            if !is_due && repairs.newest(id).is_none() && !waits() {
                due.push(id);
            }
        }
        due
    }

    /// Lets held symbols whose time is over wait for copies that were sent since then and may mend them.
    fn wait_for_copies(&mut self, now: Instant, repairs: &Repairs) {
        for id in self.late(now) {
            let Some(patience) = self.symbols.get(&id).map(|symbol| symbol.patience) else {
                continue;
            };
            let until = self.newest_copy_for(id, repairs).map(|sent| sent + patience);
            if let Some(until) = until.filter(|until| *until > now) {
                self.change(id, |symbol| symbol.state = LostState::Held { until });
            }
        }
    }

    /// Held symbols of the window whose time is over, in ascending order.
    fn late(&self, now: Instant) -> SmallVec<[u64; 4]> {
        let late = self.held.iter().take_while(|(until, _)| *until <= now);
        let mut late: SmallVec<[u64; 4]> = late.map(|(_, id)| *id).collect();
        late.sort_unstable();
        late
    }

    /// Checks that the orders by state and time agree with the symbols, and that all symbols are open.
    ///
    /// # Errors
    /// The first contradiction.
    #[cfg(feature = "testing")]
    pub(super) fn check(&self, is_open: impl Fn(u64) -> bool) -> Result<(), String> {
        let mut all = Self { symbols: self.symbols.clone(), ..Self::default() };
        let ids: Vec<u64> = all.symbols.keys().copied().collect();
        ids.iter().for_each(|id| all.index(*id, true));
        let closed = ids.iter().find(|id| !is_open(**id));
        ensure(closed.is_none(), || format!("symbol {closed:?} is done and counts as lost"))?;
        let times =
            |lost: &Self| (lost.held.clone(), lost.held_beyond.clone(), lost.copies.clone());
        let numbers = |lost: &Self| (lost.missing.clone(), lost.by_repair.clone());
        let orders = |lost: &Self| (times(lost), numbers(lost));
        let (kept, expected) = (orders(self), orders(&all));
        ensure(kept == expected, || format!("the orders are {kept:?}, not {expected:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_left_the_window_is_overdue_after_its_time_or_its_last_repair_symbol() {
        let now = Instant::now();
        let at = |ms| now + Duration::from_millis(ms);
        let (mut lost, mut repairs) = (LostSymbols::default(), Repairs::default());
        (0..3).for_each(|_| repairs.on_sent(now, 3..7, 100));
        for (id, last_repair) in [(3, 0), (4, 0), (5, 2), (6, 2)] {
            lost.on_lost(now, id, Some(last_repair));
        }
        for (id, until) in [(3, 30), (4, 10), (5, 20)] {
            lost.hold(id, at(until), &repairs);
        }
        let overdue =
            |lost: &LostSymbols, ms, repairs: &Repairs| lost.overdue_beyond(at(ms), repairs);
        assert_eq!(overdue(&lost, 5, &repairs)[..], []);
        assert_eq!(overdue(&lost, 10, &repairs)[..], [4]);
        repairs.on_lost(&(3..7));
        assert_eq!(overdue(&lost, 10, &repairs)[..], [3, 4]);
        let none = Repairs::default();
        assert_eq!(overdue(&lost, 10, &none)[..], [3, 4, 5], "6 is in flight");
        assert_eq!((lost.held_until(), lost.holds_any()), (Some(at(10)), true));
        lost.hold(4, at(40), &repairs);
        assert_eq!((lost.held_until(), lost.oldest_held(&(4..9))), (Some(at(20)), Some(4)));
        assert_eq!((lost.held_len(), lost.missing().len()), (0, 0), "none is in the window");
        assert!(lost.remove(5) && !lost.remove(5));
        lost.sent_bare(3);
        assert_eq!((lost.state(3), lost.lost_at(3)), (Some(LostState::InFlight), Some(now)));
        assert_eq!(overdue(&lost, 50, &none)[..], [4]);
        assert_eq!(lost.check(|_| true), Ok(()));
    }

    #[test]
    fn a_symbol_that_leaves_the_window_waits_as_before() {
        let now = Instant::now();
        let until = now + Duration::from_millis(10);
        let (mut lost, repairs) = (LostSymbols::default(), Repairs::default());
        for id in [1, 2] {
            lost.on_lost(now, id, None);
            lost.hold(id, until, &repairs);
        }
        let record = lost.record(1).unwrap();
        assert!(lost.remove(1));
        lost.leave(1, record, 0);
        assert_eq!(lost.state(1), Some(LostState::Held { until }));
        assert_eq!((lost.held_len(), lost.held_until()), (1, Some(until)));
        assert!(lost.missing().iter().eq(&[2]));
        assert_eq!(lost.check(|_| true), Ok(()));
    }
}
