//! Which received bytes the application gets next: the bytes with the highest offsets.

use crate::tally::Tally;
use std::collections::BTreeSet;
use std::ops::Range;
use sutura::policy::{Delivery, DeliveryFactory, Held};

/// The newest bytes of the peer come first: for applications to which the present matters more than the past.
/// No byte waits for lost bytes, and every byte is delivered in the end.
#[derive(Debug, Clone, Default)]
pub struct NewestFirst {
    /// Pieces that were delivered.
    pub delivered: Tally,
}

impl DeliveryFactory for NewestFirst {
    fn name(&self) -> &str {
        "newest-first"
    }

    fn build(&self) -> Box<dyn Delivery> {
        Box::new(Pieces { starts: BTreeSet::new(), delivered: self.delivered.clone() })
    }
}

/// The pieces of one stream that wait for the application.
#[derive(Debug)]
struct Pieces {
    /// The start of each piece: one offset for each held range, so that the bound on held ranges bounds the
    /// offsets, too, no matter how many frames the peer sends.
    starts: BTreeSet<u64>,
    delivered: Tally,
}

impl Delivery for Pieces {
    fn on_received(&mut self, range: Range<u64>, held: &Held<'_>) {
        // The piece to which the range belongs may have grown together with other pieces.
        let Some(piece) = held.range_of(range.start) else { return };
        while let Some(&inner) = self.starts.range(piece.clone()).next_back() {
            self.starts.remove(&inner);
        }
        self.starts.insert(piece.start);
    }

    // A pure query: only `on_delivered` removes the piece.
    fn next(&self, held: &Held<'_>) -> Option<Range<u64>> {
        held.range_of(*self.starts.last()?)
    }

    fn on_delivered(&mut self, range: Range<u64>, held: &Held<'_>) {
        self.delivered.add(1);
        self.starts.remove(&range.start);
        // The application may have asked for fewer bytes than the piece has.
        if held.range_of(range.end).is_some() {
            self.starts.insert(range.end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_contract() {
        sutura::conformance::delivery(&NewestFirst::default());
    }
}
