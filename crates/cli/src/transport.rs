//! Settings of the transport that commands share.

use std::sync::Arc;
use std::time::Duration;

use sutura::{Algorithm, TransportConfig};

#[derive(Debug, Clone, clap::Args)]
pub struct TransportArgs {
    /// Congestion control: newreno, cubic or bbr
    #[arg(long = "cc", value_name = "NAME", default_value = "cubic", value_parser = parse_algorithm)]
    pub congestion: Algorithm,
}

/// A congestion control algorithm by its name.
///
/// # Errors
/// There is none of that name; says which there are.
pub fn parse_algorithm(name: &str) -> Result<Algorithm, String> {
    let names = || Algorithm::ALL.map(Algorithm::name).join(", ");
    let mut all = Algorithm::ALL.into_iter();
    all.find(|a| a.name() == name).ok_or_else(|| format!("expected one of {}", names()))
}

impl TransportArgs {
    /// The settings of a connection that is given up after `idle_timeout` of silence.
    pub fn config(&self, idle_timeout: Duration) -> TransportConfig {
        TransportConfig {
            congestion: Arc::new(self.congestion),
            max_idle_timeout: Some(idle_timeout),
            ..TransportConfig::default()
        }
    }
}
