//! Shows what connections do while they do it: a page for people (`--dashboard`) and figures for Prometheus
//! (`--metrics`).

mod metrics;
mod server;
mod watched;

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::task::JoinSet;

use crate::failure::Failure;
use crate::listen::Listen;
use crate::output;
use server::{Pages, serve};
pub use watched::Watched;

/// The options, for commands that keep connections open.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct MonitorArgs {
    /// Show a page at this TCP address, live: losses, what was recovered and what was sent again, redundancy and
    /// its reason. A port alone is one of 127.0.0.1, which only this machine reaches
    #[arg(long, value_name = "[ADDR:]PORT", help_heading = "Monitoring")]
    #[arg(value_parser = Listen::on_loopback)]
    dashboard: Option<SocketAddr>,
    /// Give Prometheus figures at this TCP address, at /metrics; it may be that of --dashboard
    #[arg(long, value_name = "[ADDR:]PORT", help_heading = "Monitoring")]
    #[arg(value_parser = Listen::on_loopback)]
    metrics: Option<SocketAddr>,
}

/// The connections that are shown, and the servers that show them, which end when this is dropped.
#[derive(Debug)]
pub struct Monitor {
    /// `None` if nobody wants to see them.
    watched: Option<Arc<Watched>>,
    _servers: JoinSet<()>,
}

impl MonitorArgs {
    /// Begins to show connections of the command with this title, if that is asked for.
    ///
    /// # Errors
    /// An address cannot be listened on.
    pub async fn start(self, title: &'static str) -> Result<Monitor, Failure> {
        let mut servers = JoinSet::new();
        let mut pages: Vec<(SocketAddr, Pages)> = Vec::new();
        let asked = [
            (self.dashboard, Pages { board: true, metrics: false }),
            (self.metrics, Pages { board: false, metrics: true }),
        ];
        for (address, what) in asked {
            let Some(address) = address else { continue };
            match pages.iter_mut().find(|(other, _)| *other == address && address.port() != 0) {
                Some((_, both)) => both.metrics = true,
                None => pages.push((address, what)),
            }
        }
        let watched = (!pages.is_empty()).then(|| Arc::new(Watched::new(title)));
        for (address, pages) in pages {
            let Some(watched) = watched.clone() else { continue };
            let listener = tokio::net::TcpListener::bind(address)
                .await
                .map_err(|error| Failure::local(format!("cannot listen on {address}: {error}")))?;
            let bound = listener.local_addr().unwrap_or(address);
            for path in pages.paths() {
                output::note(&format!("http://{bound}{path} shows the connections"));
            }
            servers.spawn(serve(listener, bound, pages, watched));
        }
        Ok(Monitor { watched, _servers: servers })
    }
}

impl Monitor {
    /// Shows a connection until it ends.
    pub fn follow(&self, connection: &sutura::Connection) {
        if let Some(watched) = &self.watched {
            watched.follow(connection);
        }
    }
}
