//! Models of loss that is not due to congestion.

mod process;
#[cfg(test)]
mod tests;
mod text;
mod trace;

use std::time::Duration;

use crate::{Probability, Rate};

pub(crate) use process::LossProcess;
pub use trace::Trace;

/// Decides which packets are lost.
///
/// Parses and prints as `none`, `bern:0.02`, `ge:0.005,0.25,0.95,0.005`, `gt:240,4.8,0.95,0.005`
/// (times in milliseconds) and `trace:0001100`. A share alone, such as `2%`, is read as `bern:0.02`.
///
/// Both Gilbert-Elliott models start in their steady state: in the bad state with its long-term
/// probability.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Loss {
    /// No packet is lost.
    #[default]
    None,
    /// Each packet is lost with the same probability, independently of the others.
    Bernoulli(Probability),
    /// A two-state chain that is stepped by packets, like Linux's netem (`loss gemodel p r 1-h
    /// 1-k`): a packet is lost with the probability of the current state, and then the state may
    /// change.
    ///
    /// A sender that sends more leaves the bad state sooner, and a sender that pauses stays in it.
    /// [`Background`] and [`Loss::GilbertElliottTime`] avoid that.
    GilbertElliott {
        /// Probability per packet of changing from good to bad.
        p: Probability,
        /// Probability per packet of changing from bad to good.
        r: Probability,
        /// Probability of loss in the bad state (netem's 1-h).
        loss_bad: Probability,
        /// Probability of loss in the good state (netem's 1-k).
        loss_good: Probability,
    },
    /// Two states with exponentially distributed durations, whatever is sent. The seed alone
    /// determines which times are bad, so that different senders can be compared under the same
    /// conditions.
    GilbertElliottTime {
        /// Mean duration of the good state. Below 1 µs counts as 1 µs.
        mean_good: Duration,
        /// Mean duration of the bad state. Below 1 µs counts as 1 µs.
        mean_bad: Duration,
        /// Probability of loss in the bad state.
        loss_bad: Probability,
        /// Probability of loss in the good state.
        loss_good: Probability,
    },
    /// Replays a record packet by packet, and restarts it when it ends.
    Trace(Trace),
}

impl Loss {
    /// The long-term fraction of lost packets, if they are sent at a steady pace.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let mix = |bad: f64, loss_bad: Probability, loss_good: Probability| {
            bad * loss_bad.value() + (1.0 - bad) * loss_good.value()
        };
        match *self {
            Self::None => 0.0,
            Self::Bernoulli(p) => p.value(),
            Self::GilbertElliott { p, r, loss_bad, loss_good } => {
                mix(share(p.value(), r.value()), loss_bad, loss_good)
            }
            Self::GilbertElliottTime { mean_good, mean_bad, loss_bad, loss_good } => {
                let bad = share(sojourn(mean_bad) as f64, sojourn(mean_good) as f64);
                mix(bad, loss_bad, loss_good)
            }
            Self::Trace(ref trace) => trace.mean(),
        }
    }
}

/// The fraction `part / (part + rest)`, or 0 if both are 0.
fn share(part: f64, rest: f64) -> f64 {
    if part > 0.0 { part / (part + rest) } else { 0.0 }
}

/// The mean duration of a state in nanoseconds. The lower bound keeps the work per packet
/// proportional to the time that has passed.
fn sojourn(mean: Duration) -> u64 {
    crate::text::nanos(mean).max(1_000)
}

/// Cross traffic with a constant rate. Its only effect is that its packets step the chain of
/// [`Loss::GilbertElliott`]. It uses no capacity and no room in the queue, and does not affect
/// other models. Parses and prints as `10mbit` or `10mbit,1200`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Background {
    /// Rate of the cross traffic.
    pub rate: Rate,
    /// Size of each of its packets in bytes, including headers. 0 counts as 1.
    pub packet_size: u32,
}

impl Background {
    /// The packet size if only the rate is given.
    pub const DEFAULT_PACKET_SIZE: u32 = 1500;

    /// Number of its packets from the start up to and including `now`, in nanoseconds.
    fn packets_until(self, now: u64) -> u64 {
        let bits = u128::from(self.packet_size.max(1)) * 8;
        let sent = u128::from(now) * u128::from(self.rate.bits_per_second());
        u64::try_from(sent / (bits * 1_000_000_000)).unwrap_or(u64::MAX)
    }
}
