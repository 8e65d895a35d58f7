//! Connections that requests share: one to each server at a time.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use indicatif::ProgressBar;
use sutura::{Connection, http};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use super::chatter::Chatter;
use super::report::ConnectionReport;
use super::transfer::broken;
use crate::connect::Connector;
use crate::failure::Failure;
use crate::stats::Statistics;
use crate::url::Authority;

/// How often statistics are shown.
const STATS_INTERVAL: Duration = Duration::from_millis(500);

/// The connections to all servers.
#[derive(Debug)]
pub struct Pool {
    connector: Connector,
    chatter: Chatter,
    /// Whether to show statistics.
    stats: bool,
    /// Whether certificates are verified.
    verifies: bool,
    lanes: StdMutex<BTreeMap<Authority, Arc<Mutex<Lane>>>>,
    /// In the order in which connections were opened; `None` while one is open.
    reports: StdMutex<Vec<Option<ConnectionReport>>>,
}

/// What leads to one server.
#[derive(Debug, Default)]
struct Lane {
    live: Option<Live>,
    /// The address of an earlier connection, to which the next one is to go.
    earlier: Option<SocketAddr>,
    /// Why no connection came about, and at which attempt.
    failure: Option<(u16, Failure)>,
}

/// An open connection.
#[derive(Debug)]
struct Live {
    client: http::Client,
    /// How long opening it took, including name resolution.
    took: Duration,
    /// The place of its report.
    place: usize,
    watching: Option<(ProgressBar, JoinHandle<()>)>,
}

impl Pool {
    pub fn new(connector: Connector, chatter: Chatter, stats: bool, verifies: bool) -> Self {
        let (lanes, reports) = (StdMutex::default(), StdMutex::default());
        Self { connector, chatter, stats, verifies, lanes, reports }
    }

    /// The connection to a server, opened if need be. If none came about at this `attempt` or a later one, it is not
    /// tried again: requests of the same attempt share its outcome.
    ///
    /// # Errors
    /// No connection comes about.
    pub async fn client(
        &self,
        authority: &Authority,
        attempt: u16,
    ) -> Result<http::Client, Failure> {
        let lane = self.lane(authority);
        let mut lane = lane.lock().await;
        if let Some(live) = &lane.live {
            if live.is_usable() {
                return Ok(live.client.clone());
            }
            self.retire(authority, &mut lane);
        }
        if let Some((failed, failure)) = &lane.failure
            && *failed >= attempt
        {
            return Err(failure.clone());
        }
        let place = self.reserve();
        let start = Instant::now();
        match self.open(authority, lane.earlier.take()).await {
            Ok(client) => {
                let took = start.elapsed();
                let connection = client.connection();
                self.chatter.connected(&authority.to_string(), connection, self.verifies);
                let watching = self.stats.then(|| watch(&self.chatter, authority, connection));
                lane.live = Some(Live { client: client.clone(), took, place, watching });
                Ok(client)
            }
            Err(failure) => {
                self.report(place, ConnectionReport::failed(authority, &failure));
                lane.failure = Some((attempt, failure.clone()));
                Err(failure)
            }
        }
    }

    async fn open(
        &self,
        authority: &Authority,
        earlier: Option<SocketAddr>,
    ) -> Result<http::Client, Failure> {
        let connection = match earlier {
            Some(address) => self.connector.reconnect(authority, address).await?,
            None => self.connector.connect(authority).await?,
        };
        http::Client::new(connection, http::Config::default())
            .await
            .map_err(|e| broken(&authority.to_string(), &e))
    }

    /// Closes the connection to a server; the next one goes to the same address, in 0-RTT if possible.
    pub async fn renew(&self, authority: &Authority) {
        let lane = self.lane(authority);
        let mut lane = lane.lock().await;
        lane.earlier = lane.live.as_ref().map(|live| live.client.connection().remote_address());
        self.retire(authority, &mut lane);
    }

    /// Closes all connections, and returns their reports in the order in which they were opened.
    pub async fn finish(&self) -> Vec<ConnectionReport> {
        let lanes = std::mem::take(&mut *locked(&self.lanes));
        for (authority, lane) in lanes {
            self.retire(&authority, &mut *lane.lock().await);
        }
        std::mem::take(&mut *locked(&self.reports)).into_iter().flatten().collect()
    }

    /// Ends everything, and waits until the servers have had time to learn of it.
    pub async fn close(&self) {
        self.connector.close(http::Code::NO_ERROR.0).await;
    }

    fn retire(&self, authority: &Authority, lane: &mut Lane) {
        let Some(Live { client, took, place, watching }) = lane.live.take() else { return };
        if let Some((bar, task)) = watching {
            task.abort();
            bar.finish_and_clear();
        }
        let connection = client.connection();
        self.report(place, ConnectionReport::of(authority, connection, took));
        connection.close(http::Code::NO_ERROR.0, b"");
    }

    fn lane(&self, authority: &Authority) -> Arc<Mutex<Lane>> {
        locked(&self.lanes).entry(authority.clone()).or_default().clone()
    }

    fn reserve(&self) -> usize {
        let mut reports = locked(&self.reports);
        reports.push(None);
        reports.len() - 1
    }

    fn report(&self, place: usize, report: ConnectionReport) {
        if let Some(slot) = locked(&self.reports).get_mut(place) {
            *slot = Some(report);
        }
    }
}

impl Live {
    /// Whether the server accepts further requests on it.
    fn is_usable(&self) -> bool {
        self.client.connection().close_reason().is_none()
            && self.client.going_away().now_or_never().is_none()
    }
}

fn locked<T>(mutex: &StdMutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shows the statistics of a connection below the transfers until the task is aborted.
fn watch(
    chatter: &Chatter,
    authority: &Authority,
    connection: &Connection,
) -> (ProgressBar, JoinHandle<()>) {
    let bar = chatter.bar("{msg}");
    let (shown, connection, name) = (bar.clone(), connection.clone(), authority.to_string());
    let task = tokio::spawn(async move {
        let mut earlier = Statistics::of(&connection);
        loop {
            tokio::time::sleep(STATS_INTERVAL).await;
            let now = Statistics::of(&connection);
            shown.set_message(now.live(&name, &earlier).join("\n"));
            earlier = now;
        }
    });
    (bar, task)
}
