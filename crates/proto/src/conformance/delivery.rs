//! Checks whether a delivery keeps the contract of [`Delivery`].

use crate::policy::{Delivery, DeliveryFactory, Held};
use crate::streams::{Assembler, Fresh};
use std::ops::Range;
use sutura_random::Rng;

/// Number of streams tested.
const CASES: u64 = 300;
/// Maximum stream length in bytes: more than a stream holds contiguously in memory.
const MAX_LENGTH: u64 = 80_000;

/// Tests the deliveries of `factory` with streams whose pieces are lost, late, reordered and
/// duplicated, while an application reads random amounts at random times. The test is
/// deterministic.
///
/// It checks the contract of [`Delivery`]: every range that the delivery returns is held,
/// undelivered and contiguous in memory; asking twice gives the same answer; an ordered delivery
/// returns the front; and once everything has arrived, nothing is left undelivered. A delivery may be
/// installed when data is held already.
///
/// ```
/// use sutura_proto::{conformance, policy};
///
/// conformance::delivery(&policy::ArrivalOrder);
/// ```
///
/// # Panics
/// The delivery violates the contract.
pub fn delivery(factory: &dyn DeliveryFactory) {
    assert!(!factory.name().is_empty(), "the factory has no name");
    for seed in 0..CASES {
        Case::new(factory, seed).run();
    }
}

/// The state of a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ByteState {
    Missing,
    Held,
    Delivered,
}

/// One stream with the delivery under test.
struct Case {
    /// The name of the delivery, for messages.
    name: String,
    rng: Rng,
    policy: Box<dyn Delivery>,
    /// Whether the stream uses the delivery already.
    installed: bool,
    store: Assembler,
    /// The length of the stream, once it is known.
    final_size: Option<u64>,
    bytes: Vec<ByteState>,
}

impl Case {
    fn new(factory: &dyn DeliveryFactory, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let most = if seed.is_multiple_of(2) { 200 } else { MAX_LENGTH };
        let length = rng.range(0..most + 1) as usize;
        Self {
            name: format!("delivery `{}`, case {seed}", factory.name()),
            installed: rng.chance(0.7),
            rng,
            policy: factory.build(),
            store: Assembler::default(),
            final_size: None,
            bytes: vec![ByteState::Missing; length],
        }
    }

    fn run(mut self) {
        let name = self.name.clone();
        assert_eq!(self.ask(), None, "{name}: names something before anything arrived");
        for frame in self.arrivals() {
            if self.rng.chance(0.1) {
                self.final_size = Some(self.bytes.len() as u64);
            }
            self.receive(&frame);
            if self.rng.chance(0.3) {
                self.install();
                self.read();
            }
        }
        self.final_size = Some(self.bytes.len() as u64);
        self.install();
        while self.read() > 0 {}
        if let Some(at) = self.bytes.iter().position(|fate| *fate == ByteState::Held) {
            let ended = self.bytes.iter().all(|fate| *fate != ByteState::Missing);
            assert!(!ended, "{name}: byte {at} is left undelivered, though all have arrived");
        }
    }

    /// Frames of the whole stream, in order of arrival. Some are late, and some are duplicated.
    fn arrivals(&mut self) -> Vec<Range<u64>> {
        let length = self.bytes.len() as u64;
        let mut frames = Vec::new();
        let mut late = Vec::new();
        // A long stream in short pieces would exceed the number of gaps allowed.
        let largest = self.rng.range(1 + length / 400..2000);
        for copies in [1, self.rng.range(0..2)] {
            let mut at = 0;
            while copies > 0 && at < length {
                let frame = at..(at + self.rng.range(1..largest + 1)).min(length);
                at = frame.end;
                let lost = self.rng.chance(0.2);
                if lost { late.push(frame) } else { frames.push(frame) }
            }
        }
        let window = 1 + self.rng.index(19);
        frames.chunks_mut(window).for_each(|chunk| self.rng.shuffle(chunk));
        self.rng.shuffle(&mut late);
        frames.append(&mut late);
        frames
    }

    fn receive(&mut self, frame: &Range<u64>) {
        let data = vec![0; (frame.end - frame.start) as usize];
        let last = self.final_size.unwrap_or(u64::MAX);
        let mut fresh = Fresh::new();
        let result = self.store.insert(frame.start, &data, last, &mut fresh);
        assert!(result.is_ok(), "{}: more gaps than a stream may have", self.name);
        for range in fresh {
            self.set(&range, ByteState::Held);
            if self.installed {
                self.policy.on_received(range, &Held::new(&self.store, self.final_size));
            }
        }
    }

    fn set(&mut self, range: &Range<u64>, fate: ByteState) {
        let range = range.start as usize..range.end as usize;
        self.bytes.get_mut(range).unwrap_or_default().fill(fate);
    }

    /// Installs the delivery, if that has not happened yet.
    fn install(&mut self) {
        if !std::mem::replace(&mut self.installed, true) {
            let held = Held::new(&self.store, self.final_size);
            for range in held.ranges() {
                self.policy.on_received(range, &held);
            }
        }
    }

    /// Reads some pieces; returns how many.
    fn read(&mut self) -> usize {
        let calls = 1 + self.rng.index(9);
        for call in 0..calls {
            let Some(range) = self.ask() else { return call };
            self.check(&range);
            let part = range.start..self.rng.range(range.start + 1..range.end + 1);
            let range = if self.rng.chance(0.5) { part } else { range };
            self.set(&range, ByteState::Delivered);
            let taken = self.store.take(range.clone()).is_some();
            assert!(taken, "{}: {range:?} cannot be delivered", self.name);
            self.policy.on_delivered(range, &Held::new(&self.store, self.final_size));
        }
        calls
    }

    fn ask(&self) -> Option<Range<u64>> {
        let held = Held::new(&self.store, self.final_size);
        let answers = [self.policy.next(&held), self.policy.next(&held)];
        let [first, second] = answers;
        let name = &self.name;
        assert_eq!(first, second, "{name}: another answer to the same question");
        first
    }

    /// Checks a range that the delivery returned.
    fn check(&self, range: &Range<u64>) {
        let name = &self.name;
        assert!(!range.is_empty(), "{name}: names {range:?}, which is empty");
        for at in range.clone() {
            let fate = usize::try_from(at).ok().and_then(|at| self.bytes.get(at));
            let fate = fate.unwrap_or(&ByteState::Missing);
            assert_ne!(*fate, ByteState::Missing, "{name}: names {range:?}, but {at} is not held");
            assert_ne!(
                *fate,
                ByteState::Delivered,
                "{name}: names {range:?}, but {at} was delivered"
            );
        }
        let together = self.store.range_of(range.start).unwrap_or_default();
        let end = together.end;
        assert!(
            range.end <= end,
            "{name}: names {range:?}, which does not lie together past {end}"
        );
        let front = self.store.read_offset();
        let in_turn = !self.policy.is_ordered() || range.start == front;
        assert!(in_turn, "{name}: says that it is ordered, but names {range:?} before {front}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// A delivery whose answers come from a function.
    #[derive(Clone, Copy)]
    struct Broken {
        ordered: bool,
        next: fn(&Held<'_>) -> Option<Range<u64>>,
    }

    impl std::fmt::Debug for Broken {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("Broken")
        }
    }

    impl Delivery for Broken {
        fn is_ordered(&self) -> bool {
            self.ordered
        }

        fn next(&self, held: &Held<'_>) -> Option<Range<u64>> {
            (self.next)(held)
        }
    }

    impl DeliveryFactory for Broken {
        fn name(&self) -> &str {
            "broken"
        }

        fn build(&self) -> Box<dyn Delivery> {
            Box::new(*self)
        }
    }

    fn broken(next: fn(&Held<'_>) -> Option<Range<u64>>) {
        delivery(&Broken { ordered: false, next });
    }

    #[test]
    fn any_order_will_do_and_so_will_waiting() {
        broken(|held| held.ranges().last());
        broken(|held| held.ranges().next().filter(|_| held.final_size().is_some()));
        // Returns the last byte of a piece first.
        broken(|held| held.ranges().last().map(|range| range.end - 1..range.end));
    }

    #[test]
    #[should_panic(expected = "is not held")]
    fn what_is_missing_must_not_be_named() {
        broken(|held| held.ranges().last().map(|range| range.start..range.end + 1));
    }

    #[test]
    #[should_panic(expected = "was delivered")]
    fn what_was_delivered_must_not_be_named() {
        broken(|held| held.ranges().next().map(|range| range.start.saturating_sub(1)..range.end));
    }

    #[test]
    #[should_panic(expected = "before anything arrived")]
    fn nothing_must_be_named_in_vain() {
        broken(|held| Some(held.front()..held.front() + 1));
    }

    #[test]
    #[should_panic(expected = "is empty")]
    fn an_empty_range_is_no_answer() {
        broken(|held| held.ranges().next().map(|range| range.end..range.end));
    }

    #[test]
    #[should_panic(expected = "is left undelivered")]
    fn nothing_may_be_held_back_for_ever() {
        broken(|held| held.ranges().find(|range| range.start > 0));
    }

    #[test]
    #[should_panic(expected = "says that it is ordered")]
    fn order_is_not_promised_in_vain() {
        delivery(&Broken { ordered: true, next: |held| held.ranges().next() });
    }

    #[test]
    #[should_panic(expected = "does not lie together")]
    fn a_range_must_lie_together() {
        broken(|held| {
            let first = held.ranges().next()?;
            let touching = held.range_of(first.end).map_or(first.end, |next| next.end);
            Some(first.start..touching)
        });
    }

    #[derive(Debug)]
    struct Fickle(Cell<bool>);

    impl Delivery for Fickle {
        fn next(&self, held: &Held<'_>) -> Option<Range<u64>> {
            self.0.set(!self.0.get());
            held.ranges().next().filter(|_| self.0.get())
        }
    }

    #[derive(Debug)]
    struct MakesFickle;

    impl DeliveryFactory for MakesFickle {
        fn name(&self) -> &str {
            "fickle"
        }

        fn build(&self) -> Box<dyn Delivery> {
            Box::new(Fickle(Cell::new(false)))
        }
    }

    #[test]
    #[should_panic(expected = "another answer to the same question")]
    fn asking_changes_nothing() {
        delivery(&MakesFickle);
    }
}
