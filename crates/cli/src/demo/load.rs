//! Loading the page once, as a browser would.

use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use sutura::http;
use tokio::task::JoinSet;

use super::page::{Page, Resource};
use crate::failure::{Exit, Failure};
use crate::fec::Fec;
use crate::get::connect::broken;

/// What it took.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    /// For each resource, from its request to its end.
    pub resources: Vec<Duration>,
    /// From the first request to the end of the last response.
    pub page: Duration,
    /// Pauses within responses of a round trip or more, which is what a retransmission takes.
    pub waits: u64,
}

/// One response.
#[derive(Debug)]
struct Fetched {
    index: usize,
    took: Duration,
    waits: u64,
}

/// Loads the page: a resource is asked for as soon as the one that names it is there.
///
/// # Errors
/// Not all of it arrived.
pub async fn load(
    client: &http::Client,
    page: &Page,
    fec: Option<Fec>,
    progress: &ProgressBar,
) -> Result<Loaded, Failure> {
    let start = Instant::now();
    let mut loaded = Loaded::default();
    let mut under_way = JoinSet::new();
    let ask_for_children_of = |parent: Option<usize>, under_way: &mut JoinSet<_>| {
        for (index, resource) in page.resources.iter().enumerate() {
            if resource.parent == parent {
                let (client, progress) = (client.clone(), progress.clone());
                let resource = resource.clone();
                under_way.spawn(async move { fetch(client, index, resource, fec, progress).await });
            }
        }
    };
    ask_for_children_of(None, &mut under_way);
    while let Some(fetched) = under_way.join_next().await {
        let fetched: Fetched = fetched
            .map_err(|e| Failure::new(Exit::Other, format!("a task ended unexpectedly: {e}")))??;
        loaded.resources.push(fetched.took);
        loaded.waits += fetched.waits;
        ask_for_children_of(Some(fetched.index), &mut under_way);
    }
    loaded.page = start.elapsed();
    Ok(loaded)
}

async fn fetch(
    client: http::Client,
    index: usize,
    resource: Resource,
    fec: Option<Fec>,
    progress: ProgressBar,
) -> Result<Fetched, Failure> {
    let failed = |e: http::Error| broken(&resource.path, &e);
    let mut priority = resource.priority.clone();
    if let Some(fec) = fec {
        priority.burst = fec.burst;
        priority.delay_ms = u64::try_from(fec.delay.as_millis()).unwrap_or(u64::MAX);
    }
    let round_trip = client.connection().stats().min_rtt;
    let start = Instant::now();
    let mut stream = client
        .request("GET", "localhost", &resource.path, &[], Some(priority))
        .await
        .map_err(failed)?;
    stream.finish().await.map_err(failed)?;
    let response = stream.recv_response().await.map_err(failed)?;
    if response.status != 200 {
        let message = format!("{}: status {}", resource.path, response.status);
        return Err(Failure::new(Exit::Status, message));
    }
    let mut last = Instant::now();
    let (mut bytes, mut waits) = (0, 0);
    while let Some(data) = stream.recv_data().await.map_err(failed)? {
        let now = Instant::now();
        waits += u64::from(now - last >= round_trip);
        last = now;
        bytes += data.len() as u64;
        progress.inc(data.len() as u64);
    }
    // The end may come later than the last byte.
    waits += u64::from(last.elapsed() >= round_trip);
    if bytes != resource.size {
        let message = format!("{} ended after {bytes} of {} bytes", resource.path, resource.size);
        return Err(Failure::new(Exit::Broken, message));
    }
    Ok(Fetched { index, took: start.elapsed(), waits })
}
