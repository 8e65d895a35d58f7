//! Random calls that are the same in every run.

use std::ops::Range;
use std::sync::Arc;

use sutura_random::Rng;

use super::{Call, Extend};
use crate::{Class, Grant, MAX_DEPTH, Priority, StreamKey, Urgency, Weight};

/// Few keys, so that unknown and repeated keys are common.
const KEYS: u64 = 14;

/// A generator that draws calls and their arguments.
pub(super) struct Random<'a> {
    rng: Rng,
    extend: Extend<'a>,
}

impl<'a> Random<'a> {
    pub(super) fn new(seed: u64, extend: Extend<'a>) -> Self {
        Self { rng: Rng::new(seed), extend }
    }

    /// A number from 0 to `end - 1`.
    fn below(&mut self, end: u64) -> u64 {
        self.rng.below(end)
    }

    /// `true` with a probability of 1 in `times`.
    fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    fn bytes(&mut self, end: usize) -> usize {
        self.below(end as u64) as usize
    }

    fn key(&mut self) -> StreamKey {
        // Includes the largest possible keys.
        let key = self.below(KEYS);
        if key < 2 { StreamKey::MAX - key } else { key }
    }

    /// Any key: every other time a usual key, otherwise a random number.
    pub(super) fn any_key(&mut self) -> StreamKey {
        if self.once_in(2) { self.key() } else { self.rng.next_u64() }
    }

    /// The room in a packet. Rarely zero, and rarely larger than any packet.
    pub(super) fn room(&mut self) -> usize {
        match self.below(20) {
            0 => 0,
            1 => usize::MAX,
            _ => 1 + self.bytes(1500),
        }
    }

    /// The charge for a part of a grant, or for all of it.
    pub(super) fn charge(&mut self, Grant { stream, bytes }: Grant) -> Call {
        Call::Charge(stream, self.bytes(bytes.saturating_add(1)))
    }

    pub(super) fn call(&mut self) -> Call {
        let stream = self.key();
        match self.below(29) {
            0..4 => Call::Insert(stream, self.priority(0..KEYS)),
            4 => Call::Remove(stream),
            5..8 => Call::Reprioritize(stream, self.priority(0..KEYS)),
            8..14 => Call::Activate(stream),
            14..17 => Call::Deactivate(stream),
            17 => Call::Charge(stream, if self.once_in(4) { usize::MAX } else { self.bytes(3000) }),
            18 => {
                Call::Window(if self.once_in(4) { self.rng.next_u64() } else { self.below(20_000) })
            }
            19 => Call::Rest,
            _ => {
                let used = if self.once_in(2) { usize::MAX } else { self.bytes(1500) };
                Call::Serve { turns: 1 + self.bytes(5), room: self.room(), used }
            }
        }
    }

    /// A random priority with parameters for every scheme. Any stream that its extension refers to is
    /// one of `streams`.
    pub(super) fn priority(&mut self, streams: Range<StreamKey>) -> Priority {
        let depth = if self.once_in(20) { 2 * MAX_DEPTH } else { self.bytes(4) };
        let parents: Arc<[Class]> = (0..depth).map(|_| self.class()).collect();
        Priority {
            urgency: self.urgency(),
            incremental: !self.once_in(3),
            weight: self.weight(),
            parents: (!parents.is_empty()).then_some(parents),
            deadline: self.once_in(3).then(|| self.below(5)),
            extension: (self.extend)(self.rng.next_u64(), streams),
        }
    }

    fn urgency(&mut self) -> Urgency {
        match self.below(12) {
            0 => Urgency::CONTROL,
            1..4 => Urgency::new(self.below(8) as u8).unwrap_or_default(),
            _ => Urgency::default(),
        }
    }

    fn weight(&mut self) -> Weight {
        match self.below(8) {
            0 => Weight::MIN,
            1 => Weight::MAX,
            2..5 => Weight::new(500 * (1 + self.below(8) as u32)).unwrap_or_default(),
            _ => Weight::default(),
        }
    }

    fn class(&mut self) -> Class {
        let name = self.below(4);
        Class {
            name: (name > 0).then(|| Arc::from(name.to_string())),
            urgency: self.urgency(),
            incremental: !self.once_in(4),
            weight: self.weight(),
        }
    }
}
