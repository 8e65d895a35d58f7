//! Transport options that commands share.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use sutura::TransportConfig;
use sutura::policy::{CongestionFactory, LossReactionFactory, RedundancyFactory};
use sutura::registry::{self, UnknownPolicy};

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
    /// auto:within=80ms for data that is to arrive within 80 ms
    #[arg(long, value_name = "NAME", default_value = "auto")]
    redundancy: Redundancy,
}

/// A redundancy policy, or none.
#[derive(Debug, Clone)]
pub struct Redundancy(Option<Arc<dyn RedundancyFactory>>);

impl FromStr for Redundancy {
    type Err = UnknownPolicy;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "none" => Ok(Self(None)),
            _ => registry::redundancy().find(text).map(|factory| Self(Some(factory))),
        }
    }
}

/// Finds a congestion control algorithm by name.
///
/// # Errors
/// No algorithm has that name; the error lists those that exist.
pub fn congestion(name: &str) -> Result<Arc<dyn CongestionFactory>, UnknownPolicy> {
    registry::congestion().find(name)
}

fn reaction(name: &str) -> Result<Arc<dyn LossReactionFactory>, UnknownPolicy> {
    registry::loss_reactions().find(name)
}

impl TransportArgs {
    /// The configuration of connections with this idle timeout.
    pub fn config(&self, idle_timeout: Duration) -> TransportConfig {
        TransportConfig {
            congestion: self.congestion.clone(),
            loss_reaction: self.loss_reaction.clone(),
            redundancy: self.redundancy.0.clone(),
            max_idle_timeout: Some(idle_timeout),
            ..TransportConfig::default()
        }
    }
}
