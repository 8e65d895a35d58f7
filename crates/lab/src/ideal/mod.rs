//! The best that redundancy can do for a steady stream of messages: a model of the link and of a perfect
//! code, to compare policies with.
//!
//! The model has no QUIC in it. Messages are cut into packets, which enter the [link](sutura_link) at
//! once; repair symbols follow at times that are fixed beforehand (*open loop*); the receiver decodes
//! with a [perfect code](PerfectDecoder) and hands out bytes in order. A loss becomes known as in RFC
//! 9002, section 6.1: when three later packets are acknowledged or 9/8 of a round trip after sending,
//! whichever is sooner. The packet is then sent again, and again if the copy is lost, unless the sender can
//! know by then that it was recovered. Acknowledgements are never lost and take half a round trip. Only the
//! link limits the rate.
//!
//! The link has the configuration and the seed of the connection that is measured. Where the loss
//! depends on time, it is the same for both; where it depends on sent packets, the model's own packets move
//! it on, as the packets of any policy would.
//!
//! Two bounds come of it, each for a number of repair symbols per message ([`Bound`]):
//!
//! - *ideal*: the best of all schedules of a grid, which differ in how long after a message its repair
//!   symbols are sent and how far apart;
//! - *clairvoyant*: the sender knows the fate of each packet beforehand. It spends a repair symbol only
//!   where a packet is lost, at the first time when the link lets it pass. No policy can do that, so this
//!   bound is loose. A policy that is better than the ideal is so because it adapts, and it cannot be better
//!   than this bound.
//!
//! [`Transfers`] counts, of objects that are of use when complete, how many a perfect code completes in one
//! flight.

mod code;
mod search;
mod sender;
mod transfer;

use std::time::Duration;

pub use code::PerfectDecoder;
pub use search::{BUDGETS, Bound, least_late};
pub use sender::{Plan, late_bytes};
use sutura_link::LinkConfig;
use sutura_sim::StreamPlan;
pub use transfer::Transfers;

/// A stream of equal messages over one direction of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// The link. It must keep packets in order.
    pub link: LinkConfig,
    /// The size of a message in bytes.
    pub size: usize,
    /// The time from one message to the next.
    pub interval: Duration,
    /// The number of messages that count.
    pub count: u64,
    /// The number of messages before the messages that count.
    pub warm_up: u64,
    /// How messages are cut into packets.
    pub cut: Cut,
}

/// How a message is cut into packets: all but the last are full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Bytes of the message in a full packet.
    pub payload: usize,
    /// Bytes of UDP payload that a packet has beyond the bytes of the message.
    pub overhead: usize,
}

impl Workload {
    /// How the frames of a steady stream travel: the packets of 1200 bytes that the connections send
    /// have room for this much of a protected stream.
    const FRAMES: Cut = Cut { payload: 1162, overhead: 38 };

    /// [Frames](StreamPlan::frames) over this link.
    #[must_use]
    pub fn frames(link: LinkConfig, count: u64, warm_up: u64) -> Self {
        let StreamPlan { size, interval, .. } = StreamPlan::frames(0);
        Self { link, size, interval, count, warm_up, cut: Self::FRAMES }
    }

    /// Number of packets of a message.
    fn packets(&self) -> u64 {
        self.size.div_ceil(self.cut.payload.max(1)).max(1) as u64
    }

    /// Bytes of a message in packet `index` of it.
    fn payload(&self, index: u64) -> usize {
        let before = self.cut.payload.saturating_mul(index as usize);
        self.size.saturating_sub(before).min(self.cut.payload)
    }

    /// Number of bytes that count.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.count * self.size as u64
    }
}

/// The properties in which connections differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The seed of the link.
    pub seed: u64,
    /// When the first message is made, since the link came up.
    pub start: Duration,
}

/// When repair symbols are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    /// How many follow each message, on average. A fraction is spread evenly: of 1.5, one and two
    /// alternate.
    pub repairs: f64,
    /// The time from a message to its first repair symbol.
    pub delay: Duration,
    /// The time from one repair symbol to the next.
    pub spacing: Duration,
}

impl Schedule {
    /// No repair symbols.
    pub const NONE: Self = Self { repairs: 0.0, delay: Duration::ZERO, spacing: Duration::ZERO };

    /// How many repair symbols follow message `index`.
    fn after(&self, index: u64) -> u64 {
        let until = |messages: u64| (self.repairs * messages as f64).floor() as u64;
        until(index + 1) - until(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_is_spread_evenly() {
        let counts = |repairs| {
            let schedule = Schedule { repairs, ..Schedule::NONE };
            (0..6).map(|n| schedule.after(n)).collect::<Vec<_>>()
        };
        assert_eq!(counts(0.0), [0; 6]);
        assert_eq!(counts(0.5), [0, 1, 0, 1, 0, 1]);
        assert_eq!(counts(1.5), [1, 2, 1, 2, 1, 2]);
        assert_eq!(counts(3.0), [3; 6]);
    }

    #[test]
    fn the_last_packet_of_a_message_has_the_rest() {
        let workload = Workload {
            link: LinkConfig::default(),
            size: 5000,
            interval: Duration::from_millis(10),
            count: 3,
            warm_up: 0,
            cut: Cut { payload: 1200, overhead: 40 },
        };
        let sizes: Vec<_> = (0..workload.packets()).map(|k| workload.payload(k)).collect();
        assert_eq!(sizes, [1200, 1200, 1200, 1200, 200]);
        assert_eq!(workload.bytes(), 15_000);
    }
}
