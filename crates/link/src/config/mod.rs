//! The configuration of a link.

#[cfg(test)]
mod tests;
mod text;

use std::time::Duration;

use crate::{
    Background, Jitter, Loss, Opportunities, Outage, Probability, Queue, Rate, Reorder, Step,
};

pub use text::PRESETS;

/// One direction of a path. The default is a perfect link: no delay, no rate limit, no loss.
///
/// The text form is an optional name from [`PRESETS`], followed by settings that change it,
/// separated by white space: `paper delay=20ms loss=bern:0.01`. The keys are the names of the
/// fields below, except that each `outage=1s..2s` and each `step=2s,rate=5mbit` adds one to its list.
/// Optional settings may be `none`; of `rate` and `trace`, the last one counts.
///
/// A packet passes the stages in this order, which is the order of Linux's netem on an egress interface:
///
/// 1. It is dropped if it is too long, or by an outage or the loss model, before it uses any capacity
///    or room.
/// 2. It may be duplicated. The copy follows directly and is a separate packet from here on.
/// 3. It waits in the queue, perhaps marked, or is dropped if that is full, and is then sent at the
///    rate.
/// 4. It is subject to delay and jitter, may be held back, and may be damaged.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// Capacity; `None` is unlimited, and means that there is no queue.
    pub rate: Option<Rate>,
    /// When the link can send, as recorded. Neither the rate nor those of the steps count then.
    pub trace: Option<Opportunities>,
    /// Bytes that each packet takes in the queue and on the link in addition to its own. 28 by
    /// default, which is the size of the IPv4 and UDP headers; with IPv6 they have 48.
    pub overhead: u32,
    /// The longest packet that passes, in bytes with the overhead; `None` is unlimited.
    pub mtu: Option<u64>,
    /// The queue for packets that arrive while the link is busy.
    pub queue: Queue,
    /// Packets that find at least this many bytes waiting in the queue are marked instead of dropped
    /// later, if they are ECN-capable (RFC 3168).
    pub mark: Option<u64>,
    /// Propagation delay.
    pub delay: Duration,
    /// Variation of the delay.
    pub jitter: Jitter,
    /// Some packets are held back, so that others overtake them.
    pub reorder: Option<Reorder>,
    /// Probability that a packet is duplicated.
    pub duplicate: Probability,
    /// Probability that a packet arrives damaged.
    pub corrupt: Probability,
    /// Loss that does not depend on the queue.
    pub loss: Loss,
    /// Cross traffic that steps the loss model.
    pub background: Option<Background>,
    /// Times during which everything is lost, in any order.
    pub outages: Vec<Outage>,
    /// Changes of rate, delay, longest packet and loss, in any order. A link without a rate has one from the first
    /// that names one.
    pub steps: Vec<Step>,
}

impl LinkConfig {
    /// The overhead of UDP over IPv4 without options.
    pub const DEFAULT_OVERHEAD: u32 = 28;

    /// The configuration with this name in [`PRESETS`].
    #[must_use]
    pub fn preset(name: &str) -> Option<Self> {
        let (_, settings) = PRESETS.iter().find(|(known, _)| *known == name)?;
        Self::default().with(settings.split_whitespace()).ok()
    }
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self {
            rate: None,
            trace: None,
            overhead: Self::DEFAULT_OVERHEAD,
            mtu: None,
            queue: Queue::default(),
            mark: None,
            delay: Duration::ZERO,
            jitter: Jitter::default(),
            reorder: None,
            duplicate: Probability::ZERO,
            corrupt: Probability::ZERO,
            loss: Loss::None,
            background: None,
            outages: Vec::new(),
            steps: Vec::new(),
        }
    }
}
