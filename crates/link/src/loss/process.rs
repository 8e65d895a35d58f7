//! The state of a loss model at run time.

use sutura_random::Rng;

use super::{Background, Loss, share, sojourn};
use crate::power::power;
use crate::{Probability, Trace};

/// Numbers of the random streams; the numbers of the link's streams are smaller.
const LOSS: u64 = 0x100;
const STATE: u64 = 0x101;
const OTHERS: u64 = 0x102;

/// Decides for each packet whether it is lost.
#[derive(Clone, Debug)]
pub(crate) struct LossProcess {
    model: Model,
    /// Used for one draw per packet, in the models that draw at all.
    loss: Rng,
    /// Drives the state: one draw per packet, or several each time the state changes.
    state: Rng,
}

#[derive(Clone, Debug)]
enum Model {
    None,
    Bernoulli(Probability),
    Packets { chain: Chain, losses: Losses, background: Option<Passing> },
    Time { sojourns: Sojourns, losses: Losses },
    Trace { trace: Trace, next: usize },
}

impl LossProcess {
    pub(crate) fn new(loss: &Loss, background: Option<Background>, seed: u64) -> Self {
        let mut state = Rng::stream(seed, STATE);
        let model = match *loss {
            Loss::None => Model::None,
            Loss::Bernoulli(p) => Model::Bernoulli(p),
            Loss::GilbertElliott { p, r, loss_bad, loss_good } => Model::Packets {
                chain: Chain::new(p.value(), r.value(), &mut state),
                losses: Losses { bad: loss_bad, good: loss_good },
                background: background.map(|traffic| Passing::new(traffic, seed)),
            },
            Loss::GilbertElliottTime { mean_good, mean_bad, loss_bad, loss_good } => Model::Time {
                sojourns: Sojourns::new(sojourn(mean_good), sojourn(mean_bad), &mut state),
                losses: Losses { bad: loss_bad, good: loss_good },
            },
            Loss::Trace(ref trace) => Model::Trace { trace: trace.clone(), next: 0 },
        };
        Self { model, loss: Rng::stream(seed, LOSS), state }
    }

    /// Whether the packet that is sent now is lost. `now` is in nanoseconds and never goes back.
    pub(crate) fn is_lost(&mut self, now: u64) -> bool {
        match &mut self.model {
            Model::None => false,
            Model::Bernoulli(p) => self.loss.chance(p.value()),
            Model::Packets { chain, losses, background } => {
                if let Some(background) = background {
                    background.step(chain, now);
                }
                let lost = losses.draw(chain.bad, &mut self.loss);
                chain.step(&mut self.state);
                lost
            }
            Model::Time { sojourns, losses } => {
                let bad = sojourns.is_bad(now, &mut self.state);
                losses.draw(bad, &mut self.loss)
            }
            Model::Trace { trace, next } => {
                let recorded = trace.as_slice();
                let lost = recorded.get(*next).copied().unwrap_or_default();
                *next = (*next + 1) % recorded.len();
                lost
            }
        }
    }
}

/// The probabilities of loss in the two states.
#[derive(Clone, Copy, Debug)]
struct Losses {
    bad: Probability,
    good: Probability,
}

impl Losses {
    fn draw(self, bad: bool, rng: &mut Rng) -> bool {
        rng.chance(if bad { self.bad } else { self.good }.value())
    }
}

/// A two-state chain with one step per packet.
#[derive(Clone, Debug)]
struct Chain {
    p: f64,
    r: f64,
    bad: bool,
}

impl Chain {
    fn new(p: f64, r: f64, rng: &mut Rng) -> Self {
        Self { p, r, bad: rng.chance(share(p, r)) }
    }

    fn step(&mut self, rng: &mut Rng) {
        let change = if self.bad { self.r } else { self.p };
        self.bad ^= rng.chance(change);
    }

    /// Takes this many steps at once, with a single draw.
    fn leap(&mut self, steps: u64, rng: &mut Rng) {
        self.bad = rng.chance(self.bad_after(steps));
    }

    /// The probability of the bad state after this many steps. Its difference from the long-term
    /// probability shrinks by the factor 1 - p - r with every step.
    fn bad_after(&self, steps: u64) -> f64 {
        let present = f64::from(u8::from(self.bad));
        if self.p + self.r > 0.0 {
            let in_the_end = share(self.p, self.r);
            in_the_end + (present - in_the_end) * power(1.0 - self.p - self.r, steps)
        } else {
            present
        }
    }
}

/// The background traffic that has been counted.
#[derive(Clone, Debug)]
struct Passing {
    traffic: Background,
    passed: u64,
    rng: Rng,
}

impl Passing {
    fn new(traffic: Background, seed: u64) -> Self {
        Self { traffic, passed: 0, rng: Rng::stream(seed, OTHERS) }
    }

    fn step(&mut self, chain: &mut Chain, now: u64) {
        let total = self.traffic.packets_until(now);
        let steps = total.saturating_sub(self.passed);
        if steps > 0 {
            chain.leap(steps, &mut self.rng);
            self.passed = total;
        }
    }
}

/// Two states that alternate in time.
#[derive(Clone, Debug)]
struct Sojourns {
    mean_good: u64,
    mean_bad: u64,
    bad: bool,
    until: u64,
}

impl Sojourns {
    fn new(mean_good: u64, mean_bad: u64, rng: &mut Rng) -> Self {
        let bad = rng.chance(share(mean_bad as f64, mean_good as f64));
        // The rest of an exponentially distributed duration has the same distribution as a whole
        // one.
        let until = rng.exponential(if bad { mean_bad } else { mean_good });
        Self { mean_good, mean_bad, bad, until }
    }

    fn is_bad(&mut self, now: u64, rng: &mut Rng) -> bool {
        while self.until <= now && self.until < u64::MAX {
            self.bad = !self.bad;
            let mean = if self.bad { self.mean_bad } else { self.mean_good };
            self.until = self.until.saturating_add(rng.exponential(mean).max(1));
        }
        self.bad
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn many_steps_at_once_lead_where_single_steps_lead(
            p in 0.0..=1.0f64, r in 0.0..=1.0f64, bad: bool, steps in 0..60u64,
        ) {
            let chain = Chain { p, r, bad };
            let step = |now: f64, _| now * (1.0 - r) + (1.0 - now) * p;
            let expected = (0..steps).fold(f64::from(u8::from(bad)), step);
            prop_assert!((chain.bad_after(steps) - expected).abs() < 1e-9);
        }
    }

    #[test]
    fn a_chain_that_never_changes_is_not_moved_by_any_number_of_steps() {
        for bad in [false, true] {
            let chain = Chain { p: 0.0, r: 0.0, bad };
            assert_eq!(chain.bad_after(u64::MAX), f64::from(u8::from(bad)));
        }
    }
}
