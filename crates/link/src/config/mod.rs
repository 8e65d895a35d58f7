//! The configuration of a link.

#[cfg(test)]
mod tests;
mod text;

use std::time::Duration;

use crate::{Background, Jitter, Loss, Outage, Probability, Queue, Rate, Reorder};

pub use text::PRESETS;

/// One direction of a path. The default is a perfect one: no delay, no limit, no loss.
///
/// As text it is a name of [`PRESETS`] or nothing, followed by settings that change it, separated
/// by white space: `paper delay=20ms loss=bern:0.01`. The keys are the names of the fields below,
/// except that each `outage=1s..2s` adds one to the list. A setting of an optional thing may be
/// `none`.
///
/// A packet meets what is configured in this order, which is that of Linux's netem on an egress
/// interface:
///
/// 1. An outage or the loss model takes it, before it used any capacity or room.
/// 2. It may be duplicated. The copy follows directly behind and is a packet of its own from here.
/// 3. It waits in the queue, or is dropped because that is full, and is sent at the rate.
/// 4. It takes the delay and the jitter, may be held back, and may be damaged.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// Capacity; `None` is endless, and makes the queue meaningless.
    pub rate: Option<Rate>,
    /// Bytes that each packet takes in the queue and on the link besides its own. 28 by default,
    /// the headers of IPv4 and UDP; it is 48 with IPv6.
    pub overhead: u32,
    /// What waits when the link is busy.
    pub queue: Queue,
    /// Propagation delay.
    pub delay: Duration,
    /// Variation of the delay.
    pub jitter: Jitter,
    /// Packets held back.
    pub reorder: Option<Reorder>,
    /// Probability that a packet is sent twice.
    pub duplicate: Probability,
    /// Probability that a packet arrives damaged.
    pub corrupt: Probability,
    /// Loss that has nothing to do with the queue.
    pub loss: Loss,
    /// Cross traffic that steps the loss model.
    pub background: Option<Background>,
    /// Times at which everything is lost, in any order.
    pub outages: Vec<Outage>,
}

impl LinkConfig {
    /// The overhead of UDP over IPv4 without options.
    pub const DEFAULT_OVERHEAD: u32 = 28;

    /// The configuration of that name in [`PRESETS`].
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
            overhead: Self::DEFAULT_OVERHEAD,
            queue: Queue::default(),
            delay: Duration::ZERO,
            jitter: Jitter::default(),
            reorder: None,
            duplicate: Probability::ZERO,
            corrupt: Probability::ZERO,
            loss: Loss::None,
            background: None,
            outages: Vec::new(),
        }
    }
}
