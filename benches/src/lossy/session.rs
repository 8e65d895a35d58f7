//! One job: a server, a relay and a client.

use crate::Error;
use crate::library::{Library, Setup};
use crate::plan::{Job, Name, Workload};
use crate::quinn::Quinn;
use crate::sutura::Sutura;
use crate::{download, stream};
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;
use sutura_benches::tls::Identity;
use sutura_link::LinkStats;
use sutura_relay::{Config, Relay, Stats};

/// What came of a job.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Times to completion of downloads with weight 1, or delays of so many bytes.
    pub times: Vec<(Duration, u64)>,
    /// Bytes that the application read while the link was counted.
    pub payload: u64,
    /// What the server sent in that time.
    pub wire: Wire,
    /// Why the rest is missing.
    pub failure: Option<String>,
    /// What the relay did from the start to the end.
    pub relay: Stats,
}

/// A server's packets on the link.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wire {
    pub packets: u64,
    /// Their UDP payload.
    pub bytes: u64,
    /// Those that the loss model took.
    pub lost: u64,
    /// Those that found the queue full.
    pub overflow: u64,
}

impl Wire {
    /// From `before` to `after`.
    pub fn between(before: &LinkStats, after: &LinkStats) -> Self {
        Self {
            packets: after.sent - before.sent,
            bytes: after.sent_bytes - before.sent_bytes,
            lost: after.lost - before.lost,
            overflow: after.overflow - before.overflow,
        }
    }
}

/// Does a job in the calling thread.
pub fn run(job: &Job, identity: &Identity, qlog: Option<&Path>) -> Result<Outcome, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = tokio::task::LocalSet::new();
    let setup = Setup { job, identity, qlog };
    match job.peer.name {
        Name::Sutura => local.block_on(&runtime, session::<Sutura>(setup)),
        Name::Quinn => local.block_on(&runtime, session::<Quinn>(setup)),
    }
}

async fn session<L: Library>(setup: Setup<'_>) -> Result<Outcome, Error> {
    let job = setup.job;
    let (server, address) = L::server(&setup)?;
    let config = Config::new((Ipv4Addr::LOCALHOST, 0).into(), address);
    let relay = Relay::start(&config.link(&job.channel.link()?).seed(job.seed))?;
    let client = L::client(&setup)?;
    let mut outcome = Outcome::default();
    let work = async {
        let made = stream::Made::default();
        let protection = job.peer.protection(matches!(job.workload, Workload::Stream { .. }));
        match job.workload {
            Workload::Downloads { .. } => {
                tokio::task::spawn_local(download::serve::<L>(server, protection));
            }
            Workload::Stream { .. } => {
                tokio::task::spawn_local(stream::serve::<L>(server, protection, made.clone()));
            }
        }
        let connection = L::connect(&client, relay.local_addr()).await?;
        match job.workload {
            Workload::Downloads { bytes, count } => {
                download::run::<L>(&connection, &relay, bytes, count, &mut outcome).await
            }
            Workload::Stream { messages } => {
                stream::run::<L>(&connection, &relay, messages, &made, &mut outcome).await
            }
        }
    };
    // A connection that is lost is a result, not a defect of the bench.
    outcome.failure = work.await.err().map(|error| error.to_string());
    outcome.relay = relay.stop();
    Ok(outcome)
}
