//! Which received bytes the application gets next: those furthest on in the stream.

use crate::tally::Tally;
use std::collections::BTreeSet;
use std::ops::Range;
use sutura::policy::{Delivery, DeliveryFactory, Held};

/// What the peer wrote last comes first: for applications to which the present matters more than
/// the past. Nothing waits for what is lost, and every byte is delivered in the end.
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
    /// Where each begins: one offset for each range that is held, and so no more than there may be
    /// of these, however many frames the peer sends.
    starts: BTreeSet<u64>,
    delivered: Tally,
}

impl Delivery for Pieces {
    fn on_received(&mut self, range: Range<u64>, held: &Held<'_>) {
        // The piece that the range belongs to: it may have grown together with others.
        let Some(piece) = held.range_of(range.start) else { return };
        while let Some(&inner) = self.starts.range(piece.clone()).next_back() {
            self.starts.remove(&inner);
        }
        self.starts.insert(piece.start);
    }

    // A question: the piece is gone when `on_delivered` says so.
    fn next(&self, held: &Held<'_>) -> Option<Range<u64>> {
        held.range_of(*self.starts.last()?)
    }

    fn on_delivered(&mut self, range: Range<u64>, held: &Held<'_>) {
        self.delivered.add(1);
        self.starts.remove(&range.start);
        // The application may have asked for less than the piece.
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
