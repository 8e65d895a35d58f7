//! Source symbols that left the coding window before their fate was known.

use super::session::Contents;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Instant;

/// Maximum number of symbols that all sessions of a connection remember beyond their windows. A path of 500
/// Mbit/s and 300 ms has fewer packets in flight.
pub const MAX_BEYOND_SYMBOLS: usize = 16_384;

/// The fate of a symbol beyond the window, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeftState {
    /// Its packet is in flight.
    InFlight,
    /// Its packet was lost, and the symbol waits until this time for a report that the peer recovered it.
    Held(Instant),
    /// Its frames were queued to be sent again as bare data. A report that it was recovered may still come.
    Bare,
}

/// A symbol that left the window. Its bytes are gone: no other repair symbol can cover it, and it cannot be
/// sent again as a symbol.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) contents: Contents,
    /// When it was sent for the first time.
    pub(super) sent: Instant,
    /// When it was declared lost for the first time.
    pub(super) lost: Option<Instant>,
    pub(super) fate: LeftState,
    /// The number of the last repair symbol that may bring the symbol.
    pub(super) last_repair: u64,
}

/// The symbols that left the window of a session and may still turn out to have been recovered, because
/// repair symbols that cover them are in flight. The window holds as many bytes as the peer's decoder does;
/// on a long fast path, more bytes than the window holds are in flight.
#[derive(Debug, Default)]
pub(super) struct Beyond {
    symbols: BTreeMap<u64, Left>,
    /// The symbols that wait, by the end of their waiting.
    by_time: BTreeSet<(Instant, u64)>,
    /// The symbols that wait, by the last repair symbol that may bring them.
    by_repair: BTreeSet<(u64, u64)>,
    /// The symbols that are [`LeftState::Bare`], by the last repair symbol that may bring them.
    bare: BTreeSet<(u64, u64)>,
}

impl Beyond {
    /// Bytes of memory for each symbol, in trees whose nodes are half full.
    pub(super) const SYMBOL_COST: usize = 2 * size_of::<(u64, Left)>();

    pub(super) fn len(&self) -> usize {
        self.symbols.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// The oldest symbol.
    pub(super) fn first(&self) -> Option<u64> {
        self.symbols.first_key_value().map(|(id, _)| *id)
    }

    /// Remembers a symbol.
    pub(super) fn insert(&mut self, id: u64, left: Left) {
        match left.fate {
            LeftState::InFlight => {}
            LeftState::Held(until) => {
                self.by_time.insert((until, id));
                self.by_repair.insert((left.last_repair, id));
            }
            LeftState::Bare => {
                self.bare.insert((left.last_repair, id));
            }
        }
        self.symbols.insert(id, left);
    }

    pub(super) fn get(&self, id: u64) -> Option<&Left> {
        self.symbols.get(&id)
    }

    /// Forgets a symbol.
    pub(super) fn remove(&mut self, id: u64) -> Option<Left> {
        let left = self.symbols.remove(&id)?;
        self.forget(id, &left);
        Some(left)
    }

    /// Forgets the oldest symbol.
    pub(super) fn pop(&mut self) -> Option<(u64, Left)> {
        let (id, left) = self.symbols.pop_first()?;
        self.forget(id, &left);
        Some((id, left))
    }

    /// Takes a symbol out of the orders by time and by repair symbol.
    fn forget(&mut self, id: u64, left: &Left) {
        match left.fate {
            LeftState::InFlight => {}
            LeftState::Held(until) => {
                self.by_time.remove(&(until, id));
                self.by_repair.remove(&(left.last_repair, id));
            }
            LeftState::Bare => {
                self.bare.remove(&(left.last_repair, id));
            }
        }
    }

    /// The packet of a symbol was declared lost at `now`.
    pub(super) fn on_lost(&mut self, now: Instant, id: u64) {
        if let Some(left) = self.symbols.get_mut(&id) {
            left.lost.get_or_insert(now);
        }
    }

    /// A lost symbol waits until `until`. Returns whether the symbol is remembered.
    pub(super) fn hold(&mut self, id: u64, until: Instant) -> bool {
        let Some(left) = self.remove(id) else { return false };
        self.insert(id, Left { fate: LeftState::Held(until), ..left });
        true
    }

    /// Gives up a symbol: its contents, which this returns, are only sent bare from now on. A report that the
    /// peer recovered the symbol is still taken, until [`forget_bare`](Self::forget_bare), if it carries frames.
    pub(super) fn send_bare(&mut self, id: u64) -> Option<Contents> {
        let left = self.remove(id)?;
        if !left.contents.frames.is_empty() {
            let contents = Contents { frames: left.contents.frames.clone(), ..Contents::default() };
            self.insert(id, Left { contents, fate: LeftState::Bare, ..left });
        }
        Some(left.contents)
    }

    /// Whether any symbol was sent bare and is remembered.
    pub(super) fn has_bare(&self) -> bool {
        !self.bare.is_empty()
    }

    /// Forgets the symbols that were sent bare and that no repair symbol in flight can bring: `oldest` is the
    /// number of the oldest repair symbol in flight, if there is any.
    pub(super) fn forget_bare(&mut self, oldest: Option<u64>) {
        let is_over = |last: u64| oldest.is_none_or(|oldest| last < oldest);
        while let Some((_, id)) = self.bare.first().copied().filter(|(last, _)| is_over(*last)) {
            self.remove(id);
        }
    }

    /// Number of symbols that wait.
    pub(super) fn held(&self) -> usize {
        self.by_time.len()
    }

    /// The symbols that wait, in no particular order.
    pub(super) fn held_symbols(&self) -> impl Iterator<Item = u64> + '_ {
        self.by_time.iter().map(|(_, id)| *id)
    }

    /// When the first symbol stops waiting.
    pub(super) fn held_until(&self) -> Option<Instant> {
        self.by_time.first().map(|(until, _)| *until)
    }

    /// The symbols that wait in vain: their time is over, or no repair symbol in flight can bring them.
    /// `oldest` is the number of the oldest repair symbol in flight, if there is any.
    pub(super) fn overdue(&self, now: Instant, oldest: Option<u64>) -> impl Iterator<Item = u64> {
        let late = self.by_time.iter().take_while(move |(until, _)| *until <= now);
        let oldest = oldest.unwrap_or(u64::MAX);
        let hopeless = self.by_repair.iter().take_while(move |(last, _)| *last < oldest);
        let ids = late.map(|(_, id)| *id).chain(hopeless.map(|(_, id)| *id));
        ids.collect::<BTreeSet<u64>>().into_iter()
    }

    /// The symbols in `range`.
    pub(super) fn within(&self, range: Range<u64>) -> impl Iterator<Item = u64> + '_ {
        let range = range.start..range.end.max(range.start);
        self.symbols.range(range).map(|(id, _)| *id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::StreamId;
    use crate::recovery::token::StreamToken;
    use std::time::Duration;

    fn left(now: Instant, last_repair: u64) -> Left {
        let frame = StreamToken { id: StreamId(3), offset: 0, len: 1, fin: false, symbol: None };
        Left {
            contents: Contents::of(frame),
            sent: now,
            lost: None,
            fate: LeftState::InFlight,
            last_repair,
        }
    }

    #[test]
    fn what_waits_is_overdue_after_its_time_or_its_last_repair_symbol() {
        let now = Instant::now();
        let at = |ms| now + Duration::from_millis(ms);
        let mut beyond = Beyond::default();
        for (id, last) in [(3, 7), (4, 7), (5, 9), (6, 9)] {
            beyond.insert(id, left(now, last));
        }
        assert!(beyond.hold(3, at(30)) && beyond.hold(4, at(10)) && beyond.hold(5, at(20)));
        assert!(!beyond.hold(8, at(10)));
        let overdue =
            |beyond: &Beyond, ms, oldest| beyond.overdue(at(ms), oldest).collect::<Vec<_>>();
        assert_eq!(overdue(&beyond, 5, Some(7)), []);
        assert_eq!(overdue(&beyond, 10, Some(7)), [4]);
        assert_eq!(overdue(&beyond, 10, Some(8)), [3, 4]);
        assert_eq!(overdue(&beyond, 10, None), [3, 4, 5], "6 is in flight");
        assert_eq!((beyond.held(), beyond.held_until()), (3, Some(at(10))));
        assert!(beyond.hold(4, at(40)));
        assert_eq!((beyond.held(), beyond.held_until()), (3, Some(at(20))));
        assert!(beyond.remove(5).is_some() && beyond.remove(5).is_none());
        assert!(beyond.within(0..5).eq([3, 4]) && beyond.within(5..9).eq([6]));
        assert_eq!(beyond.pop().map(|(id, _)| id), Some(3));
        assert_eq!((beyond.first(), beyond.held(), beyond.by_repair.len()), (Some(4), 1, 1));
    }

    #[test]
    fn a_symbol_that_was_sent_bare_is_known_until_no_repair_symbol_can_bring_it() {
        let now = Instant::now();
        let mut beyond = Beyond::default();
        for (id, last) in [(3, 7), (4, 8)] {
            beyond.insert(id, left(now, last));
            assert!(beyond.hold(id, now) && beyond.send_bare(id).is_some());
        }
        assert!(beyond.send_bare(5).is_none());
        beyond.insert(6, Left { contents: Contents::default(), ..left(now, 9) });
        assert!(beyond.send_bare(6).is_some() && beyond.get(6).is_none(), "only datagrams");
        assert_eq!((beyond.held(), beyond.held_until()), (0, None));
        assert_eq!(beyond.overdue(now, None).count(), 0, "nothing waits");
        beyond.forget_bare(Some(7));
        assert!(beyond.within(0..9).eq([3, 4]) && beyond.has_bare());
        beyond.forget_bare(Some(8));
        assert!(beyond.within(0..9).eq([4]) && beyond.has_bare());
        beyond.forget_bare(None);
        assert!(beyond.is_empty() && !beyond.has_bare());
    }
}
