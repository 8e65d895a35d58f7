//! Source symbols that left the coding window before their fate was known.

use super::lost_symbols::LostSymbols;
use super::symbol::Contents;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Instant;

/// Maximum number of symbols that all sessions of a connection remember beyond their windows. A path of 500
/// Mbit/s and 300 ms has fewer packets in flight.
pub const MAX_BEYOND_SYMBOLS: usize = 16_384;

/// A symbol that left the window. Its bytes are gone: no other repair symbol can cover it, and it cannot be
/// sent again as a symbol.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) contents: Contents,
    /// When it was sent for the first time.
    pub(super) sent: Instant,
    /// The number of the last repair symbol that may bring the symbol.
    pub(super) last_repair: u64,
    /// Whether its frames were queued to be sent again as bare data. A report that it was recovered may still
    /// come.
    pub(super) bare: bool,
}

/// The symbols that left the window of a session and may still turn out to have been recovered, because
/// repair symbols that cover them are in flight. The window holds as many bytes as the peer's decoder does;
/// on a long fast path, more bytes than the window holds are in flight. Those that were lost are known to
/// [`LostSymbols`](super::lost_symbols::LostSymbols).
#[derive(Debug, Default)]
pub(super) struct Beyond {
    symbols: BTreeMap<u64, Left>,
    /// The symbols whose frames are sent bare, by the last repair symbol that may bring them.
    bare: BTreeSet<(u64, u64)>,
}

impl Beyond {
    /// Bytes of memory for each symbol, in trees whose nodes are half full.
    pub(super) const SYMBOL_COST: usize = 2 * size_of::<(u64, Left)>() + LostSymbols::SYMBOL_COST;

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
        if left.bare {
            self.bare.insert((left.last_repair, id));
        }
        self.symbols.insert(id, left);
    }

    pub(super) fn get(&self, id: u64) -> Option<&Left> {
        self.symbols.get(&id)
    }

    /// Forgets a symbol.
    pub(super) fn remove(&mut self, id: u64) -> Option<Left> {
        let left = self.symbols.remove(&id)?;
        self.bare.remove(&(left.last_repair, id));
        Some(left)
    }

    /// Gives up a symbol: its contents, which this returns, are only sent bare from now on. A report that the
    /// peer recovered the symbol is still taken, as long as it is [remembered](Self::over), if it carries
    /// frames.
    pub(super) fn send_bare(&mut self, id: u64) -> Option<Contents> {
        let left = self.remove(id)?;
        if !left.contents.frames.is_empty() {
            let contents = Contents { frames: left.contents.frames.clone(), ..Contents::default() };
            self.insert(id, Left { contents, bare: true, ..left });
        }
        Some(left.contents)
    }

    /// Whether any symbol was sent bare and is remembered.
    pub(super) fn has_bare(&self) -> bool {
        !self.bare.is_empty()
    }

    /// A symbol that was sent bare and that no repair symbol in flight can bring: `oldest` is the number of the
    /// oldest repair symbol in flight, if there is any.
    pub(super) fn over(&self, oldest: Option<u64>) -> Option<u64> {
        let (last, id) = self.bare.first()?;
        oldest.is_none_or(|oldest| *last < oldest).then_some(*id)
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

    fn left(now: Instant, last_repair: u64) -> Left {
        let frame = StreamToken { id: StreamId(3), offset: 0, len: 1, fin: false, symbol: None };
        let contents = Contents { frames: smallvec::smallvec![frame], ..Contents::default() };
        Left { contents, sent: now, last_repair, bare: false }
    }

    #[test]
    fn a_symbol_that_was_sent_bare_is_known_until_no_repair_symbol_can_bring_it() {
        let now = Instant::now();
        let mut beyond = Beyond::default();
        for (id, last) in [(3, 7), (4, 8)] {
            beyond.insert(id, left(now, last));
            assert!(beyond.send_bare(id).is_some());
        }
        assert!(beyond.send_bare(5).is_none());
        beyond.insert(6, Left { contents: Contents::default(), ..left(now, 9) });
        assert!(beyond.send_bare(6).is_some() && beyond.get(6).is_none(), "only datagrams");
        assert_eq!((beyond.over(Some(7)), beyond.over(Some(8))), (None, Some(3)));
        assert!(beyond.within(0..4).eq([3]) && beyond.within(4..9).eq([4]));
        assert!(beyond.remove(3).is_some() && beyond.remove(3).is_none() && beyond.has_bare());
        assert_eq!((beyond.over(Some(8)), beyond.over(None)), (None, Some(4)));
        assert!(beyond.remove(4).is_some() && beyond.is_empty() && !beyond.has_bare());
    }
}
