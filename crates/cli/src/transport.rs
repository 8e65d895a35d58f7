//! Transport options that commands share.

use std::sync::Arc;
use std::time::Duration;

use sutura::TransportConfig;
use sutura::policy::{CongestionFactory, LossReactionFactory};
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
            max_idle_timeout: Some(idle_timeout),
            ..TransportConfig::default()
        }
    }
}
