//! Loads the page once, like a browser.

use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use sutura::http;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::page::Page;
use crate::failure::{Exit, Failure};
use crate::fec::Fec;
use crate::get::connect::broken;

/// The result of a load.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    /// For each resource, from its request to its end.
    pub resources: Vec<Duration>,
    /// From the first request to the end of the last response.
    pub page: Duration,
    /// Pauses within responses of at least a round trip, the time that a retransmission takes.
    pub waits: u64,
}

/// Loads the page: a resource is requested as soon as enough of the page has arrived for a browser
/// to discover it.
///
/// # Errors
/// The page did not arrive completely.
pub async fn load(
    client: &http::Client,
    page: &Page,
    fec: Option<Fec>,
    progress: &ProgressBar,
) -> Result<Loaded, Failure> {
    let start = Instant::now();
    let mut loaded = Loaded::default();
    let mut requests = page.requests();
    let mut under_way = JoinSet::new();
    let (sender, mut arrivals) = mpsc::unbounded_channel();
    while !requests.is_done() || !under_way.is_empty() {
        while let Some(index) = requests.next(start.elapsed()) {
            let asked = ask(client, page, index, fec).await?;
            under_way.spawn(asked.receive(index, page.bytes(index), sender.clone()));
        }
        let until_due = requests.next_due().map(|due| due.saturating_sub(start.elapsed()));
        tokio::select! {
            Some((index, bytes)) = arrivals.recv() => {
                requests.arrive(index, bytes, start.elapsed());
                progress.inc(bytes);
            }
            Some(received) = under_way.join_next() => {
                let received = received.map_err(|e| {
                    Failure::new(Exit::Other, format!("a task ended unexpectedly: {e}"))
                })?;
                let (took, waits) = received?;
                loaded.resources.push(took);
                loaded.waits += waits;
            }
            () = tokio::time::sleep(until_due.unwrap_or_default()), if until_due.is_some() => {}
        }
    }
    loaded.page = start.elapsed();
    Ok(loaded)
}

/// A request that was sent.
struct Asked {
    stream: http::RequestStream,
    path: String,
    at: Instant,
    round_trip: Duration,
}

async fn ask(
    client: &http::Client,
    page: &Page,
    index: usize,
    fec: Option<Fec>,
) -> Result<Asked, Failure> {
    let path = page.path(index).to_owned();
    let mut priority = page.priority(index);
    if let Some(fec) = fec {
        priority.burst = fec.burst;
        priority.delay = fec.delay;
    }
    let round_trip = client.connection().stats().min_rtt;
    let at = Instant::now();
    let stream = client.request("GET", "localhost", &path, &[], Some(priority)).await;
    let stream = stream.map_err(|e| broken(&path, &e))?;
    Ok(Asked { stream, path, at, round_trip })
}

impl Asked {
    /// Reads the response to its end and reports the bytes of resource `index` as they arrive.
    /// Returns how long it took, and the number of pauses.
    async fn receive(
        mut self,
        index: usize,
        size: u64,
        arrivals: mpsc::UnboundedSender<(usize, u64)>,
    ) -> Result<(Duration, u64), Failure> {
        let failed = |e: http::Error| broken(&self.path, &e);
        self.stream.finish().await.map_err(failed)?;
        let response = self.stream.recv_response().await.map_err(failed)?;
        if response.status != 200 {
            let message = format!("{}: status {}", self.path, response.status);
            return Err(Failure::new(Exit::Status, message));
        }
        // The receiver has been dropped if the load was abandoned.
        let tell = |bytes: u64| {
            let _ = arrivals.send((index, bytes));
        };
        let mut last = Instant::now();
        let (mut bytes, mut waits) = (0, 0);
        while let Some(data) = self.stream.recv_data().await.map_err(failed)? {
            let now = Instant::now();
            waits += u64::from(now - last >= self.round_trip);
            last = now;
            bytes += data.len() as u64;
            tell(data.len() as u64);
        }
        // The end may come later than the last byte.
        waits += u64::from(last.elapsed() >= self.round_trip);
        if bytes != size {
            let message = format!("{} ended after {bytes} of {size} bytes", self.path);
            return Err(Failure::new(Exit::Broken, message));
        }
        // A resource without bytes is complete as well.
        tell(0);
        Ok((self.at.elapsed(), waits))
    }
}
