//! What became of a broadcast.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use sutura_relay::Stats;

/// How long a frame took that never came: longer than any that did.
pub const NEVER: Duration = Duration::from_secs(3600);

/// When each frame came to a viewer, complete.
pub type Came = BTreeMap<u64, Instant>;

/// What became of a broadcast.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// For each viewer how long each frame that counts took from the publisher, [`NEVER`] for those that were skipped.
    pub delays: Vec<Vec<Duration>>,
    /// UDP payload that the publisher gave to the viewers' links while frames were made, in bytes.
    pub down: u64,
    /// The same of the viewers.
    pub up: u64,
    /// Bytes of all frames of that time.
    pub payload: u64,
    /// Processor time of both ends.
    pub cpu: Duration,
    /// The links of the viewers from the start to the end.
    pub relays: Vec<Stats>,
}

impl Outcome {
    /// Adds a viewer, for whom frame `number` counts if it is `first` or later. `made` says when each frame was made.
    pub fn add_viewer(&mut self, came: &Came, made: &[Instant], first: u64) {
        let counting = (0..).zip(made).filter(|(number, _)| *number >= first);
        let delay = |(number, made): (u64, &Instant)| {
            came.get(&number).map_or(NEVER, |at| at.saturating_duration_since(*made))
        };
        self.delays.push(counting.map(delay).collect());
    }
}

/// The share of frames that took longer than `limit`, among them those that never came.
pub fn share_late(delays: &[Duration], limit: Duration) -> f64 {
    let late = delays.iter().filter(|delay| **delay > limit).count();
    late as f64 / delays.len().max(1) as f64
}

/// How many frames never came.
pub fn skipped(delays: &[Duration]) -> u64 {
    delays.iter().filter(|delay| **delay == NEVER).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_on_time_late_or_skipped() {
        let ms = Duration::from_millis;
        let start = Instant::now();
        let made: Vec<_> = (0..6).map(|n| start + ms(10 * n)).collect();
        // Frame 1 does not count, 3 is skipped, 5 is late.
        let came = Came::from([
            (0, start + ms(500)),
            (2, start + ms(60)),
            (4, start + ms(81)),
            (5, start + ms(150)),
        ]);
        let mut outcome = Outcome::default();
        outcome.add_viewer(&came, &made, 2);
        let delays = &outcome.delays[0];
        assert_eq!(delays[..], [ms(40), NEVER, ms(41), ms(100)]);
        assert_eq!(skipped(delays), 1);
        assert_eq!(share_late(delays, ms(40)), 0.75);
        assert_eq!(share_late(delays, ms(100)), 0.25);
        assert_eq!(share_late(&[], ms(1)), 0.0);
    }
}
