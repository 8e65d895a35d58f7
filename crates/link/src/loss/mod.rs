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

/// Which packets are lost.
///
/// Reads and writes `none`, `bern:0.02`, `ge:0.005,0.25,0.95,0.005`, `gt:240,4.8,0.95,0.005` (times
/// in milliseconds) and `trace:0001100`.
///
/// Both Gilbert-Elliott models begin as if they had always been running: in the bad state with
/// its long-term probability.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Loss {
    /// No packet.
    #[default]
    None,
    /// Each packet with the same probability, independent of the others.
    Bernoulli(Probability),
    /// Two states, stepped by packets, as Linux's netem does (`loss gemodel p r 1-h 1-k`): a packet
    /// is lost with the probability of the present state, and then the state may change.
    ///
    /// A sender that sends more leaves the bad state sooner, and one that pauses stays in it.
    /// [`Background`] and [`Loss::GilbertElliottTime`] avoid that.
    GilbertElliott {
        /// From good to bad, per packet.
        p: Probability,
        /// From bad to good, per packet.
        r: Probability,
        /// Of loss in the bad state (netem's 1-h).
        loss_bad: Probability,
        /// Of loss in the good state (netem's 1-k).
        loss_good: Probability,
    },
    /// Two states that last for exponentially distributed times, whatever is sent. Which times are
    /// bad depends on the seed alone, so that different senders can be compared on the same ones.
    GilbertElliottTime {
        /// How long the good state lasts on average. Below 1 µs counts as 1 µs.
        mean_good: Duration,
        /// How long the bad state lasts on average. Below 1 µs counts as 1 µs.
        mean_bad: Duration,
        /// Of loss in the bad state.
        loss_bad: Probability,
        /// Of loss in the good state.
        loss_good: Probability,
    },
    /// As recorded, packet by packet, and again from the start when the record ends.
    Trace(Trace),
}

impl Loss {
    /// The share of packets that is lost in the long run, if they come at a steady pace.
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

/// `part` of `part + rest`; nothing of nothing.
fn share(part: f64, rest: f64) -> f64 {
    if part > 0.0 { part / (part + rest) } else { 0.0 }
}

/// The mean of a sojourn in nanoseconds. The lower bound keeps the work per packet in proportion to
/// the time that passed.
fn sojourn(mean: Duration) -> u64 {
    crate::text::nanos(mean).max(1_000)
}

/// Cross traffic of constant rate, whose only effect is that its packets step the chain of
/// [`Loss::GilbertElliott`]. It takes no capacity and no room in the queue, and changes no other
/// model. Reads and writes `10mbit` or `10mbit,1200`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Background {
    /// Rate of the other traffic.
    pub rate: Rate,
    /// Bytes of each of its packets, all included. 0 counts as 1.
    pub packet_size: u32,
}

impl Background {
    /// The packet size of a background of which only the rate is given.
    pub const DEFAULT_PACKET_SIZE: u32 = 1500;

    /// How many packets of it came from the start up to and including `now`, in nanoseconds.
    fn packets_until(self, now: u64) -> u64 {
        let bits = u128::from(self.packet_size.max(1)) * 8;
        let sent = u128::from(now) * u128::from(self.rate.bits_per_second());
        u64::try_from(sent / (bits * 1_000_000_000)).unwrap_or(u64::MAX)
    }
}
