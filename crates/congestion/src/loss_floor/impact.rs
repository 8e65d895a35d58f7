//! What redundancy does to a path: where it is too much, none is to be sent, or less.

use super::experiments::{Experiments, Leg, Trials};
use super::headroom::{Headroom, RoundFates};
use super::queue::Nanos;
use super::room::Room;
use super::tally::Tally;
use std::time::Instant;

/// The evidence of a path that carries redundancy.
#[derive(Debug)]
pub(super) struct Impact {
    headroom: Headroom,
    trials: Trials,
    room: Room,
}

impl Impact {
    /// `bare` is what was lost of the data so far, without redundancy; `seed` draws what experiments leave to chance.
    pub(super) fn new(bare: Tally, seed: u64) -> Self {
        Self {
            headroom: Headroom::default(),
            trials: Trials::new(bare, seed),
            room: Room::default(),
        }
    }

    /// A round begins: which leg of an experiment it is of.
    pub(super) fn on_round(&mut self) -> Option<Leg> {
        self.trials.on_round()
    }

    /// Handles a round-trip time on a path whose minimum is `min`.
    #[inline]
    pub(super) fn on_rtt(&mut self, now: Instant, rtt: Nanos, min: Nanos) {
        self.room.on_rtt(now, rtt, min);
    }

    /// A packet with repair symbols was sent, whose fate is known now.
    pub(super) fn on_repair(&mut self) {
        self.room.on_repair();
    }

    /// The fates of all packets of a round are known. Returns whether they prove that redundancy is too much for the
    /// path.
    pub(super) fn on_fates(&mut self, now: Instant, fates: &RoundFates, leg: Option<Leg>) -> bool {
        let proven = self.headroom.on_round(now, fates) | self.trials.on_fates(now, fates, leg);
        if proven {
            self.room.cut(now);
        }
        proven
    }

    /// Whether no redundancy is to be sent for now because it is too much for the path.
    pub(super) fn is_crowded(&self, now: Instant) -> bool {
        let (headroom, trials) = (self.headroom.is_crowded(now), self.trials.is_crowded(now));
        headroom || trials || self.room.is_filled()
    }

    /// See [`Room::share`].
    pub(super) fn room(&self) -> f64 {
        self.room.share()
    }

    /// Whether an experiment leaves out redundancy for now.
    pub(super) fn withholds(&self) -> bool {
        self.trials.withholds()
    }

    /// What experiments have shown so far.
    pub(super) fn experiments(&self) -> Experiments {
        self.trials.results()
    }
}
