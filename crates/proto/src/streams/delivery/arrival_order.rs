//! Arrival order: received data never waits for lost data.

use super::{Delivery, DeliveryFactory, Held};
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use sutura_schedule::registry::Entry;

pub(super) const ENTRY: Entry<dyn DeliveryFactory> =
    Entry::new("arrival", "every piece as soon as it is there, with its offset", |_| {
        Ok(Arc::new(ArrivalOrder))
    });

/// Every piece is delivered with its offset as soon as it arrives. Pieces that wait for the
/// application are delivered in order of arrival. Adjacent pieces count as one, which is as old as
/// the oldest of them.
#[derive(Debug, Clone, Copy, Default)]
pub struct ArrivalOrder;

impl DeliveryFactory for ArrivalOrder {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn build(&self) -> Box<dyn Delivery> {
        Box::new(Arrivals { offsets: VecDeque::new(), limit: MIN_LIMIT })
    }
}

/// Number of offsets that are kept before useless ones are removed.
const MIN_LIMIT: usize = 64;

/// The pieces that wait for the application.
#[derive(Debug)]
struct Arrivals {
    /// Offsets in the held ranges, oldest first. A range that grew together from several ranges has more than
    /// one offset. Some offsets may be stale, because their bytes were delivered with another offset's range;
    /// the first offset is always held.
    offsets: VecDeque<u64>,
    /// The number of offsets beyond which stale offsets are removed.
    limit: usize,
}

impl Arrivals {
    /// Keeps one offset per held range, so that there are never more than twice as many offsets as there have
    /// been held ranges at once.
    fn clean_up(&mut self, held: &Held<'_>) {
        let mut seen = BTreeSet::new();
        self.offsets.retain(|&at| held.range_of(at).is_some_and(|range| seen.insert(range.start)));
        self.limit = MIN_LIMIT.max(2 * self.offsets.len());
    }
}

impl Delivery for Arrivals {
    fn on_received(&mut self, range: Range<u64>, held: &Held<'_>) {
        // Bytes that touch an older piece are delivered with the piece.
        if held.range_of(range.start).as_ref() == Some(&range) {
            self.offsets.push_back(range.start);
            if self.offsets.len() > self.limit {
                self.clean_up(held);
            }
        }
    }

    fn next(&self, held: &Held<'_>) -> Option<Range<u64>> {
        self.offsets.front().and_then(|&at| held.range_of(at))
    }

    fn on_delivered(&mut self, range: Range<u64>, held: &Held<'_>) {
        // The rest of a piece keeps the age of the piece.
        if let Some(first) = self.offsets.front_mut()
            && range.contains(first)
            && held.range_of(range.end).is_some()
        {
            *first = range.end;
        }
        while self.offsets.pop_front_if(|at| held.range_of(*at).is_none()).is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::assembler::MAX_GAPS;
    use crate::streams::{Assembler, Fresh};
    use proptest::prelude::*;

    /// A stream of zeros, read through a delivery.
    struct Stream {
        store: Assembler,
        delivery: Arrivals,
    }

    impl Stream {
        fn new() -> Self {
            let delivery = Arrivals { offsets: VecDeque::new(), limit: MIN_LIMIT };
            Self { store: Assembler::default(), delivery }
        }

        fn receive(&mut self, range: Range<u64>) {
            let data = vec![0; (range.end - range.start) as usize];
            let mut fresh = Fresh::new();
            self.store.insert(range.start, &data, u64::MAX, &mut fresh).unwrap();
            for range in fresh {
                self.delivery.on_received(range, &Held::new(&self.store, None));
            }
        }

        fn deliver(&mut self, max: u64) -> Option<Range<u64>> {
            let range = self.delivery.next(&Held::new(&self.store, None))?;
            let range = range.start..range.end.min(range.start.saturating_add(max));
            self.store.take(range.clone()).unwrap();
            self.delivery.on_delivered(range.clone(), &Held::new(&self.store, None));
            Some(range)
        }

        fn drain(&mut self) -> Vec<Range<u64>> {
            std::iter::from_fn(|| self.deliver(u64::MAX)).collect()
        }
    }

    #[test]
    fn pieces_leave_in_the_order_in_which_they_came() {
        let mut stream = Stream::new();
        [500..510, 300..310, 700..710, 0..10].into_iter().for_each(|range| stream.receive(range));
        assert_eq!(stream.drain(), [500..510, 300..310, 700..710, 0..10]);
        stream.receive(0..1000);
        assert_eq!(stream.drain(), [10..300, 310..500, 510..700, 710..1000]);
        stream.receive(0..1000);
        assert_eq!(stream.drain(), []);
    }

    #[test]
    fn pieces_that_touch_are_as_old_as_the_oldest() {
        let mut stream = Stream::new();
        [500..510, 300..310, 310..320, 490..500, 320..490]
            .into_iter()
            .for_each(|range| stream.receive(range));
        [800..810, 700..710].into_iter().for_each(|range| stream.receive(range));
        assert_eq!(stream.deliver(4), Some(300..304));
        assert_eq!(stream.deliver(u64::MAX), Some(304..510));
        assert_eq!(stream.drain(), [800..810, 700..710]);
    }

    #[test]
    fn what_is_left_of_a_piece_comes_before_younger_ones() {
        let mut stream = Stream::new();
        [200..210, 100..110].into_iter().for_each(|range| stream.receive(range));
        assert_eq!(stream.deliver(3), Some(200..203));
        stream.receive(50..60);
        assert_eq!(stream.deliver(3), Some(203..206));
        assert_eq!(stream.drain(), [206..210, 100..110, 50..60]);
    }

    #[test]
    fn what_is_remembered_is_bounded_by_the_pieces_and_not_by_the_frames() {
        let mut stream = Stream::new();
        // Single bytes with gaps between them, then the bytes that fill the gaps, repeatedly.
        for round in 0..200 {
            let start = round * 2000;
            for offset in (start..start + 2000).step_by(2) {
                stream.receive(offset..offset + 1);
            }
            for offset in (start + 1..start + 2000).step_by(2) {
                stream.receive(offset..offset + 1);
            }
            assert!(stream.delivery.offsets.len() as u64 <= 4 * MAX_GAPS);
        }
        let total: u64 = stream.drain().iter().map(|range| range.end - range.start).sum();
        assert_eq!((total, stream.delivery.offsets.len()), (400_000, 0));
    }

    /// The piece around the oldest waiting byte. Every byte has the number of the frame that
    /// brought it.
    fn oldest(ages: &[Option<usize>]) -> Option<Range<usize>> {
        let (at, _) =
            ages.iter().enumerate().filter(|(_, age)| age.is_some()).min_by_key(|x| x.1)?;
        let start = ages[..at].iter().rposition(Option::is_none).map_or(0, |gap| gap + 1);
        let end = ages[at..].iter().position(Option::is_none).map_or(ages.len(), |gap| at + gap);
        Some(start..end)
    }

    proptest! {
        /// Within one block, where all adjacent bytes are contiguous in memory.
        #[test]
        fn agrees_with_the_ages_of_bytes(
            ops in prop::collection::vec((0..2u8, 0..400usize, 1..60usize), 1..150),
        ) {
            const START: usize = 2048;
            let mut stream = Stream::new();
            let mut ages = vec![None; 460];
            let mut seen = vec![false; 460];
            for (now, (op, at, len)) in ops.into_iter().enumerate() {
                if op == 0 {
                    for byte in at..at + len {
                        if !std::mem::replace(&mut seen[byte], true) {
                            ages[byte] = Some(now);
                        }
                    }
                    stream.receive((START + at) as u64..(START + at + len) as u64);
                    continue;
                }
                let expected = oldest(&ages);
                let part = expected.map(|piece| {
                    // The rest of a piece keeps the age of the piece.
                    let age = ages[piece.clone()].iter().min().copied().flatten();
                    let part = piece.start..piece.end.min(piece.start + len);
                    ages[part.end..piece.end].fill(age);
                    ages[part.clone()].fill(None);
                    (START + part.start) as u64..(START + part.end) as u64
                });
                prop_assert_eq!(stream.deliver(len as u64), part);
            }
        }
    }
}
