//! Transfers whose sender is watched.

use std::time::Duration;

use sutura_proto::Metrics;

use super::{Ends, Scenario};
use crate::apps::observed::{Figures, Observed};
use crate::{Clock, Failure, Progress};

/// Transfers, and the server's metrics of loss recovery while they lasted.
#[derive(Clone, Debug)]
pub struct Watched {
    /// The statistics of both ends and both links.
    pub ends: Ends,
    /// The metrics, with their times since the start.
    pub metrics: Vec<(Duration, Metrics)>,
}

impl Watched {
    /// When the server's pacing rate, or its window if its controller names no rate, had first fallen by a
    /// quarter.
    #[must_use]
    pub fn slowed(&self) -> Option<Duration> {
        let mut peak = 0;
        let mut slowed = self.metrics.iter().filter(|(_, metrics)| {
            let rate = metrics.pacing_rate.unwrap_or(metrics.congestion_window);
            peak = peak.max(rate);
            rate < peak / 4 * 3
        });
        slowed.next().map(|(at, _)| *at)
    }
}

impl Scenario {
    /// Runs the transfers and watches the server.
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    pub fn watched(&self) -> Result<Watched, Failure> {
        let (clock, figures) = (Clock::default(), Figures::default());
        let (client, mut make) = self.bulk_apps();
        let record = figures.clone();
        let server = move || Observed::new(make(), record.clone());
        let ends = self.drive(clock, client, server, |view| {
            let busy = view.client.is_busy() || view.client.started() == 0;
            Progress { done: view.client.is_done(), busy }
        })?;
        let metrics = figures.take().into_iter().map(|(at, m)| (clock.since_start(at), m));
        Ok(Watched { metrics: metrics.filter(|(at, _)| *at < ends.duration).collect(), ends })
    }
}
