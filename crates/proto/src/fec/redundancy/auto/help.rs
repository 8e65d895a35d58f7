//! Whether repair symbols were of use lately.

use super::super::View;

/// Repair symbols are judged after this many pieces should have needed them. They did not help if the mended
/// pieces are fewer than the share [`HELPED`].
const TRIAL: f64 = 16.0;
const HELPED: f64 = 0.1;
/// Number of source symbols for which no repair symbols are sent after repair symbols did not help.
pub(super) const PAUSE: u64 = 500;

/// Compares how many losses repair symbols should have mended with how many they mended.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Help {
    /// In how many pieces repair symbols should have mended a loss, and how many symbols they mended.
    expected: f64,
    mended: f64,
    /// Pieces whose outcome is not known yet: pieces below `settles_at`, and newer pieces.
    open: f64,
    newer: f64,
    settles_at: u64,
    /// No repair symbols are sent before this source symbol.
    paused_until: u64,
}

impl Help {
    /// A repair symbol was sent for a piece, which should mend this many of such pieces.
    pub(super) fn expect(&mut self, pieces: f64, view: &View) {
        self.newer += pieces;
        self.settle(view);
    }

    /// A repair symbol mended a source symbol.
    pub(super) fn on_mended(&mut self) {
        self.mended += 1.0;
    }

    /// Judges the pieces that have arrived, many at a time: with fences, many pieces follow within a round
    /// trip.
    pub(super) fn settle(&mut self, view: &View) {
        if view.first < self.settles_at {
            return;
        }
        self.expected += std::mem::take(&mut self.open);
        self.open = std::mem::take(&mut self.newer);
        self.settles_at = view.next;
        if self.expected < TRIAL {
            return;
        }
        if self.mended < HELPED * self.expected {
            self.paused_until = view.next.saturating_add(PAUSE);
        }
        (self.expected, self.mended) = (self.expected / 2.0, self.mended / 2.0);
    }

    /// Whether no repair symbols are sent for now, because they did not help.
    pub(super) fn pauses(&self, view: &View) -> bool {
        view.next < self.paused_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_becomes_of_a_piece_is_known_before_it_counts() {
        let view = View { next: 10_000, ..View::default() };
        let mut help = Help::default();
        (0..1_000).for_each(|_| help.expect(0.9, &view));
        assert!(!help.pauses(&view), "nothing has arrived");
        for first in [10_000, 20_000] {
            help.settle(&View { first, next: first + 10_000, ..view });
        }
        assert!(help.pauses(&View { next: 30_000, ..view }), "no repair symbol was of use");
    }
}
