//! The path of Holzinger et al., "Advancing HTTP/3 with FEC and HMM" (2025), section V-B: 10 Mbit/s,
//! 50 ms one way, bursts of loss in both directions, and cross traffic that moves them on.

use std::sync::Arc;
use std::time::Duration;

use sutura_link::{LinkConfig, ParseError};
use sutura_proto::{Algorithm, Protection, TransportConfig};

/// The delay of the path, one way.
pub const ONE_WAY: Duration = Duration::from_millis(50);

named! {
    /// How the published numbers of the loss model are read.
    pub enum Channel {
        /// As shares: 2.35 % of packets are lost, in bursts of four packets of all traffic.
        Fractions = "fractions",
        /// As percentages, as netem takes them: 0.0235 % of packets are lost, in bad periods of four
        /// hundred packets.
        Percentages = "percentages",
        /// As shares, with bad periods that take as long as four packets of cross traffic, whatever is
        /// sent: mean 4.8 ms bad, 240 ms good.
        Time = "time-stepped",
        /// Without loss, for comparison.
        Lossless = "lossless",
    }
}

impl Channel {
    /// One direction of the path.
    ///
    /// # Errors
    /// None, as long as the link crate keeps its presets.
    pub fn link(self) -> Result<LinkConfig, ParseError> {
        match self {
            Self::Fractions => "paper-background",
            Self::Percentages => "paper-percent background=10mbit",
            Self::Time => "paper-time",
            Self::Lossless => "paper loss=none",
        }
        .parse()
    }
}

/// The settings of both ends: BBR, as in the paper, no redundancy unless it is asked for, and otherwise the
/// defaults.
pub fn transport() -> TransportConfig {
    TransportConfig::default().with_congestion(Arc::new(Algorithm::BBR)).with_redundancy(None)
}

/// The protection of a burst loss tolerance; none if that is 0.
pub fn protection(burst: u32, delay: Duration, incremental: bool) -> Option<Protection> {
    let make = if incremental { Protection::incremental } else { Protection::tail };
    (burst > 0).then(|| make(burst, delay))
}
