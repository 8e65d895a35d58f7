//! One job: a server, a relay and a client.

use crate::Error;
use crate::plan::{Job, Workload};
use crate::{download, stream};
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;
use sutura_benches::stack::{self, Name, Newest, Quinn, Setting, Settings, Stack, Sutura};
use sutura_benches::tls::{self, Identity};
use sutura_link::LinkStats;
use sutura_relay::{Config, Relay, Stats};

/// Bytes of UDP payload per datagram: all peers know it and do not search for the path MTU.
const UDP_PAYLOAD: u16 = 1200;
/// Bytes that wait to be sent or acknowledged: more than a stream leaves unsent or unacknowledged, so that
/// the application never waits.
const SEND_BUFFER: u32 = 32 << 20;
/// Silence after which a connection is given up: the default of both implementations.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// The outcome of a job.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Times to completion of downloads with weight 1, or delays of bytes with their number as the weight.
    pub times: Vec<(Duration, u64)>,
    /// Bytes that the application read while the link was counted.
    pub payload: u64,
    /// The packets that the server sent in that time.
    pub wire: Wire,
    /// Why the rest of the job is missing, if it failed.
    pub failure: Option<String>,
    /// The relay's counters from the start to the end.
    pub relay: Stats,
}

/// A server's packets on the link.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wire {
    pub packets: u64,
    /// UDP payload of the packets.
    pub bytes: u64,
    /// Packets that the loss model dropped.
    pub lost: u64,
    /// Packets that found the queue full.
    pub overflow: u64,
}

impl Wire {
    /// The packets between `before` and `after`.
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
    let title = job.to_string();
    let settings = Settings {
        identity,
        setting: Setting::Tuned,
        provider: tls::defaults,
        payload: UDP_PAYLOAD,
        congestion: job.peer.congestion,
        redundancy: None,
        stream_send_buffer: SEND_BUFFER,
        connection_send_buffer: SEND_BUFFER,
        idle_timeout: IDLE_TIMEOUT,
        qlog: qlog.map(|directory| (directory, title.as_str())),
    };
    match job.peer.name {
        Name::Sutura => local.block_on(&runtime, session::<Sutura>(job, &settings)),
        Name::Quinn => local.block_on(&runtime, session::<Quinn>(job, &settings)),
        name @ (Name::SuturaAwsLc | Name::Quiche | Name::S2nQuic | Name::Floor) => {
            Err(format!("{name} is not compared").into())
        }
    }
}

async fn session<S: Stack>(job: &Job, settings: &Settings<'_>) -> Result<Outcome, Error> {
    let (server, address) = S::server(settings)?;
    let config = Config::new((Ipv4Addr::LOCALHOST, 0).into(), address);
    let relay = Relay::start(&config.link(&job.channel.link()?).seed(job.seed))?;
    let client = S::client(settings)?;
    let mut outcome = Outcome::default();
    let work = async {
        let made = stream::Made::default();
        let protection = job.peer.protection(matches!(job.workload, Workload::Stream { .. }));
        match job.workload {
            Workload::Downloads { .. } => {
                tokio::task::spawn_local(stack::serve::<S>(
                    server,
                    protection,
                    Newest::<S>::default(),
                ));
            }
            Workload::Stream { .. } => {
                tokio::task::spawn_local(stream::serve::<S>(server, protection, made.clone()));
            }
        }
        let connection = S::connect(&client, relay.local_addr()).await?;
        match job.workload {
            Workload::Downloads { bytes, count } => {
                download::run::<S>(&connection, &relay, bytes, count, &mut outcome).await
            }
            Workload::Stream { messages } => {
                stream::run::<S>(&connection, &relay, messages, &made, &mut outcome).await
            }
        }
    };
    // A connection that is lost is a result, not a defect of the bench.
    outcome.failure = work.await.err().map(|error| error.to_string());
    outcome.relay = relay.stop();
    Ok(outcome)
}
