//! The state of the path before its losses last changed, and how long its states last.

use super::Regime;
use super::tally::Tally;
use std::time::{Duration, Instant};

/// The weight of the newest state in the mean length of states.
const NEWEST: u32 = 4;

/// What is remembered of the states of the path before the present one.
#[derive(Debug, Default)]
pub(super) struct Regimes {
    /// The packets of the state before the last change.
    before: Tally,
    /// How long states lasted on average; `None` before the first change.
    length: Option<Duration>,
    /// When the present state began, as far as it is known.
    since: Option<Instant>,
}

impl Regimes {
    /// The losses of the path changed; `before` are the packets before the change, `after` those since. Returns
    /// the packets by which the new state is known: those since, and those of an earlier state if that was alike.
    pub(super) fn on_change(
        &mut self,
        now: Instant,
        before: Tally,
        after: Tally,
        alike: impl Fn(&Tally, &Tally) -> bool,
    ) -> Tally {
        let began = self.since.replace(now);
        if let Some(lasted) = began.map(|began| now.saturating_duration_since(began)) {
            let mean = |mean: Duration| mean * (NEWEST - 1) / NEWEST + lasted / NEWEST;
            self.length = Some(self.length.map_or(lasted, mean));
        }
        let known = std::mem::replace(&mut self.before, before);
        let mut state = after;
        if known.packets > 0.0 && alike(&known, &after) {
            state.add(&known);
        }
        state
    }

    /// The first packets of the path were sent at `now`.
    pub(super) fn begin(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// The state before the present one, unless no change is known.
    pub(super) fn other(&self, now: Instant) -> Option<Regime> {
        let (length, since) = (self.length?, self.since?);
        Some(Regime {
            rate: self.before.rate(),
            burst: self.before.burst(),
            // A state that lasts longer than those before shows that states have become longer.
            length: length.max(now.saturating_duration_since(since)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn tally(packets: f64, lost: f64) -> Tally {
        Tally { packets, lost, runs: lost, squares: lost }
    }

    #[test]
    fn a_state_that_comes_back_is_known_at_once() {
        let (start, mut regimes) = (Instant::now(), Regimes::default());
        let alike = |a: &Tally, b: &Tally| (a.rate() - b.rate()).abs() < 0.05;
        regimes.begin(start);
        assert_eq!(regimes.other(start), None);
        let state =
            regimes.on_change(start + 2 * SECOND, tally(500.0, 0.0), tally(100.0, 20.0), alike);
        assert_eq!((state.packets, state.lost), (100.0, 20.0));
        let other = regimes.other(start + 2 * SECOND).unwrap();
        assert_eq!((other.rate, other.length), (0.0, 2 * SECOND));
        let state =
            regimes.on_change(start + 4 * SECOND, tally(300.0, 60.0), tally(100.0, 0.0), alike);
        assert_eq!((state.packets, state.lost), (600.0, 0.0), "the first state came back");
        let other = regimes.other(start + 5 * SECOND).unwrap();
        assert_eq!((other.rate, other.length), (0.2, 2 * SECOND));
        // The present state lasts longer than those before.
        assert_eq!(regimes.other(start + 14 * SECOND).unwrap().length, 10 * SECOND);
    }
}
