//! Transport options that commands share.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use sutura::policy::{CongestionFactory, LossReactionFactory, RedundancyFactory};
use sutura::registry::{self, UnknownPolicy};
use sutura::{FecConfig, MAX_WINDOW_SYMBOLS, TransportConfig};

#[derive(Debug, Clone, clap::Args)]
pub struct TransportArgs {
    /// Congestion control: bbr, cubic, newreno, or fixed:RATE as in fixed:20mbit, which yields to
    /// nobody and is for links of your own only
    #[arg(long = "cc", value_name = "NAME", default_value = "bbr", value_parser = congestion)]
    pub congestion: Arc<dyn CongestionFactory>,
    /// Loss reaction: what to do with lost data, as `sutura policies` lists
    #[arg(long, value_name = "NAME", default_value = "hold-for-repair", value_parser = reaction)]
    loss_reaction: Arc<dyn LossReactionFactory>,
    /// Redundancy of all that has none of its own by exp_b or --fec: none, or as `sutura policies`
    /// lists, such as auto:budget=0.5 for half as many repair symbols as packets at most, or
    /// auto:within=80ms for data that is to arrive within 80 ms [default: auto; for vnc,
    /// auto:budget=1,expect=0.02]
    #[arg(long, value_name = "NAME")]
    redundancy: Option<Redundancy>,
    /// The most packets that a coding window holds, sent or received, 1 to 8192: what is in flight, as
    /// far as 6 MiB go, unless this is less. A repair symbol covers the window, so a shorter one is
    /// cheaper, and mends less
    #[arg(long, value_name = "PACKETS", default_value_t = MAX_WINDOW_SYMBOLS,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_WINDOW_SYMBOLS)))]
    coding_window: u32,
}

/// The redundancy of all that names none.
const DEFAULT: &str = "auto";
/// The redundancy of remote desktops: most of their data is single packets for which somebody waits, too few
/// of them to learn of losses soon or to be a burden if each is followed by a repair symbol.
const INTERACTIVE: &str = "auto:budget=1,expect=0.02";

/// A redundancy policy, or none.
#[derive(Debug, Clone)]
pub struct Redundancy(Option<Arc<dyn RedundancyFactory>>);

impl FromStr for Redundancy {
    type Err = UnknownPolicy;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "none" => Ok(Self(None)),
            _ => sutura_research::redundancy().find(text).map(|factory| Self(Some(factory))),
        }
    }
}

/// Finds a congestion control algorithm by name.
///
/// # Errors
/// No algorithm has that name; the error lists the existing ones.
pub fn congestion(name: &str) -> Result<Arc<dyn CongestionFactory>, UnknownPolicy> {
    registry::congestion().find(name)
}

fn reaction(name: &str) -> Result<Arc<dyn LossReactionFactory>, UnknownPolicy> {
    registry::loss_reactions().find(name)
}

impl TransportArgs {
    /// The configuration of connections with this idle timeout.
    pub fn config(&self, idle_timeout: Duration) -> TransportConfig {
        self.config_with(DEFAULT, idle_timeout)
    }

    /// The same for a remote desktop.
    pub fn interactive(&self, idle_timeout: Duration) -> TransportConfig {
        self.config_with(INTERACTIVE, idle_timeout)
    }

    fn config_with(&self, redundancy: &str, idle_timeout: Duration) -> TransportConfig {
        let redundancy = match &self.redundancy {
            Some(Redundancy(chosen)) => chosen.clone(),
            // Built in, as a test says.
            None => registry::redundancy().find(redundancy).ok(),
        };
        TransportConfig::default()
            .with_congestion(self.congestion.clone())
            .with_loss_reaction(self.loss_reaction.clone())
            .with_redundancy(redundancy)
            .with_max_idle_timeout(Some(idle_timeout))
            .with_fec(Some(FecConfig::with_window(self.coding_window)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_built_in() {
        for name in [DEFAULT, INTERACTIVE] {
            assert!(registry::redundancy().find(name).is_ok(), "{name}");
        }
    }
}
