//! How the fate of packets depends on that of those shortly before them.
//!
//! Losses of a radio link come in bursts. A repair symbol is of no use if the burst that took the
//! data takes it as well, so what counts is how likely a packet is lost some time after another was.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Lags up to this count.
const LONGEST: Duration = Duration::from_millis(32);
/// The upper ends of the classes of lags, in milliseconds.
const CLASSES: [f64; 7] = [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
/// How many acknowledged packets are remembered, and how many lost ones.
const MAX_ACKED: usize = 256;
const MAX_LOST: usize = 16;
/// After so many losses the older ones count less.
const MEMORY: f64 = 200.0;

/// What can be told from how losses follow each other, as far as it is tried: correlations at once,
/// and how long they last, in milliseconds.
const CORRELATIONS: [f64; 7] = [0.0, 0.2, 0.4, 0.6, 0.75, 0.87, 0.95];
const TIMES: [f64; 9] = [0.7, 1.3, 2.0, 3.2, 5.0, 8.0, 12.0, 20.0, 40.0];
/// Before there is evidence: bad periods of links are some milliseconds long, give or take a factor
/// of three.
const USUAL_TIME: f64 = 5.0;
const USUAL_SPREAD: f64 = 1.1;
const USUAL_CORRELATION: f64 = 0.6;
/// How much less likely than no correlation at all any other is, as a logarithm.
const BURSTS_ARE_RARE: f64 = 1.0;

/// Pairs of a lost packet and a later one, by the time between them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Class {
    pairs: f64,
    /// Pairs of which the later one was lost, too.
    both: f64,
    /// Sum of the lags in milliseconds.
    lags: f64,
}

/// How losses follow each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bursts {
    /// How much the fate of a packet depends on that of the one right before it: 0 if not at all, 1
    /// if it is the same.
    pub(super) correlation: f64,
    /// How long that lasts on average.
    pub(super) time: Duration,
}

impl Default for Bursts {
    fn default() -> Self {
        Self { correlation: USUAL_CORRELATION, time: millis(USUAL_TIME) }
    }
}

fn millis(ms: f64) -> Duration {
    Duration::from_secs_f64(ms / 1e3)
}

/// Counts pairs.
#[derive(Debug, Clone, Default)]
pub(super) struct Lags {
    /// When the newest acknowledged packets and the newest lost packets were sent.
    acked: VecDeque<Instant>,
    lost: VecDeque<Instant>,
    classes: [Class; CLASSES.len()],
    /// Lost packets, of which older ones count less.
    losses: f64,
}

impl Lags {
    /// Handles the acknowledgement of a packet that was sent at `sent`.
    pub(super) fn on_acked(&mut self, sent: Instant) {
        for index in 0..self.lost.len() {
            let before = self.lost[index];
            self.count(before, sent, false);
        }
        if self.acked.len() == MAX_ACKED {
            self.acked.pop_front();
        }
        self.acked.push_back(sent);
    }

    /// Handles the loss of a packet that was sent at `sent`. If it was `queued`, the queue may have
    /// dropped it, and what was lost after it says nothing about bursts.
    pub(super) fn on_lost(&mut self, sent: Instant, queued: bool) {
        for index in 0..self.lost.len() {
            let before = self.lost[index];
            self.count(before, sent, true);
        }
        if queued {
            return;
        }
        let kept = 1.0 - 1.0 / MEMORY;
        for class in &mut self.classes {
            *class = Class {
                pairs: class.pairs * kept,
                both: class.both * kept,
                lags: class.lags * kept,
            };
        }
        self.losses = self.losses * kept + 1.0;
        for index in 0..self.acked.len() {
            let later = self.acked[index];
            self.count(sent, later, false);
        }
        if self.lost.len() == MAX_LOST {
            self.lost.pop_front();
        }
        self.lost.push_back(sent);
    }

    fn count(&mut self, lost: Instant, later: Instant, both: bool) {
        let Some(lag) = later.checked_duration_since(lost).filter(|lag| *lag <= LONGEST) else {
            return;
        };
        let lag = lag.as_secs_f64() * 1e3;
        let index = CLASSES.partition_point(|end| *end < lag).min(CLASSES.len() - 1);
        let class = &mut self.classes[index];
        class.pairs += 1.0;
        class.both += f64::from(u8::from(both));
        class.lags += lag;
    }

    /// Forgets what was counted.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// What explains the pairs best, if this share of all packets is lost.
    pub(super) fn estimate(&self, loss: f64) -> Bursts {
        if self.losses == 0.0 || loss <= 0.0 {
            return Bursts::default();
        }
        let (mut best, mut most) = (Bursts::default(), f64::NEG_INFINITY);
        for correlation in CORRELATIONS {
            for time in TIMES {
                let unusual = (time / USUAL_TIME).ln() / USUAL_SPREAD;
                let prior = match correlation {
                    0.0 => 0.0,
                    _ => -BURSTS_ARE_RARE - unusual * unusual / 2.0,
                };
                let likely = prior + self.likelihood(loss, correlation, time);
                if likely > most {
                    (best, most) = (Bursts { correlation, time: millis(time) }, likely);
                }
            }
        }
        best
    }

    /// The logarithm of how likely the pairs are, given these parameters.
    fn likelihood(&self, loss: f64, correlation: f64, time: f64) -> f64 {
        let of_class = |class: &Class| {
            let lag = class.lags / class.pairs;
            let again = loss + (1.0 - loss) * correlation * (-lag / time).exp();
            let again = again.clamp(1e-6, 1.0 - 1e-6);
            class.both * again.ln() + (class.pairs - class.both) * (1.0 - again).ln()
        };
        // The pairs of one burst are not independent of each other.
        let pairs: f64 = self.classes.iter().map(|class| class.pairs).sum();
        let weight = (self.losses / pairs.max(1.0)).min(1.0) * 2.0;
        let sum: f64 = self.classes.iter().filter(|class| class.pairs > 0.0).map(of_class).sum();
        sum * weight.min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sutura_random::Rng;

    /// Feeds `packets` packets of a channel, in clumps of `clump` every 16 ms, a millisecond apart.
    fn feed(loss: f64, correlation: f64, time: f64, clump: u32, packets: u32) -> Lags {
        let (mut lags, mut random) = (Lags::default(), Rng::new(7));
        let (mut now, mut lost) = (Instant::now(), false);
        let mut outcomes = VecDeque::new();
        for index in 0..packets {
            let gap = if index % clump == 0 { 17.0 - f64::from(clump) } else { 1.0 };
            now += millis(gap);
            if random.unit() >= correlation * (-gap / time).exp() {
                lost = random.unit() < loss;
            }
            outcomes.push_back((now, lost));
            // Losses are known later than acknowledgements.
            if !lost {
                lags.on_acked(now);
            }
            while outcomes.front().is_some_and(|(sent, _)| *sent + millis(12.0) < now) {
                if let Some((sent, true)) = outcomes.pop_front() {
                    lags.on_lost(sent, false);
                }
            }
        }
        lags
    }

    #[test]
    fn independent_losses_are_told_from_bursts() {
        let estimate = feed(0.03, 0.0, 1.0, 5, 5_000).estimate(0.03);
        assert_eq!(estimate.correlation, 0.0);
        for time in [2.0, 5.0, 12.0] {
            let estimate = feed(0.03, 0.9, time, 5, 20_000).estimate(0.03);
            assert!(estimate.correlation >= 0.6, "{time}: {estimate:?}");
            let ratio = estimate.time.as_secs_f64() * 1e3 / time;
            assert!((0.4..=2.5).contains(&ratio), "{time}: {estimate:?}");
        }
    }

    #[test]
    fn nothing_known_is_what_links_usually_do() {
        assert_eq!(Lags::default().estimate(0.0), Bursts::default());
        let mut lags = Lags::default();
        (0..100).for_each(|_| lags.on_acked(Instant::now()));
        assert_eq!(lags.estimate(0.0), Bursts::default());
    }

    #[test]
    fn floods_of_losses_are_bounded() {
        let (mut lags, now) = (Lags::default(), Instant::now());
        for _ in 0..10_000 {
            lags.on_acked(now);
            lags.on_lost(now, false);
        }
        assert!(lags.lost.len() <= MAX_LOST && lags.acked.len() <= MAX_ACKED);
        assert!(lags.losses <= MEMORY + 1.0);
        let estimate = lags.estimate(0.5);
        assert!((0.0..=1.0).contains(&estimate.correlation), "{estimate:?}");
    }
}
