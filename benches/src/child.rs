//! A server or a client, as the parent asks.

use crate::Error;
use crate::job::{self, Account, Done, Job, Listening, Role, Subject, Task, say};
use crate::usage::{self, since};
use crate::{affinity, floor, workers};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use sutura::{Algorithm, TransportConfig};
#[cfg(feature = "quiche")]
use sutura_benches::stack::Quiche;
#[cfg(feature = "s2n-quic")]
use sutura_benches::stack::S2nQuic;
#[cfg(feature = "aws-lc-rs")]
use sutura_benches::stack::SuturaAwsLc;
use sutura_benches::stack::{self, Name, Newest, Quinn, Setting, Settings, Stack, Sutura};
use sutura_benches::tls;
use sutura_proto::policy::RedundancyFactory;
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};
use tokio::runtime::{Builder, LocalOptions};

/// Handshakes that a client has under way at a time.
const HANDSHAKES: usize = 20;
/// Time for acknowledgements and announcements to settle before memory is read.
const SETTLE: Duration = Duration::from_millis(1500);

/// Longer than any idle measurement.
const IDLE_TIMEOUT: Duration = Duration::from_secs(300);

/// Bytes of UDP payload that every path carries (RFC 9000 section 14).
const LEAST_PAYLOAD: u16 = 1200;

/// The redundancy policy of a subject.
pub type Policy = Option<Arc<dyn RedundancyFactory>>;

fn policy(subject: &Subject) -> Result<Policy, Error> {
    match subject.policy.as_deref() {
        None => Ok(TransportConfig::default().redundancy),
        Some("none") => Ok(None),
        Some(text) => Ok(Some(sutura_research::redundancy().find(text)?)),
    }
}

pub fn settings<'a>(of_job: &'a job::Settings, policy: &'a Policy) -> Settings<'a> {
    Settings {
        identity: &of_job.identity,
        setting: of_job.subject.setting,
        provider: tls::aes_128_gcm,
        payload: of_job.payload.unwrap_or(LEAST_PAYLOAD),
        congestion: Algorithm::CUBIC,
        redundancy: policy.as_ref(),
        stream_send_buffer: 4 << 20,
        connection_send_buffer: 8 << 20,
        idle_timeout: IDLE_TIMEOUT,
        qlog: None,
    }
}

/// The lines that the parent writes.
pub type Input = Lines<BufReader<Stdin>>;

/// Does `work` in one thread if the settings are those of the bench, and in as many as tokio likes if they are each
/// stack's own. quiche has no runtime of its own; its loop takes one thread.
fn block_on(
    setting: Setting,
    stack: Name,
    work: impl Future<Output = Result<(), Error>>,
) -> Result<(), Error> {
    match (setting, stack) {
        (Setting::Tuned, _) | (Setting::Default, Name::Quiche) => {
            let mut builder = Builder::new_current_thread();
            builder.enable_all().build_local(LocalOptions::default())?.block_on(work)
        }
        (Setting::Default, _) => Builder::new_multi_thread().enable_all().build()?.block_on(work),
    }
}

/// Reads a job from the standard input and does it.
pub fn run() -> Result<(), Error> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    let job: Job = serde_json::from_str(&line)?;
    if let Some(core) = job.core {
        affinity::stay_on(core)?;
    }
    let Subject { stack: name, setting, .. } = job.settings.subject;
    if name == Name::Floor {
        return floor::work(&job);
    }
    block_on(setting, name, async {
        let lines = BufReader::new(tokio::io::stdin()).lines();
        match name {
            Name::Sutura => work::<Sutura>(job, lines).await,
            #[cfg(feature = "aws-lc-rs")]
            Name::SuturaAwsLc => work::<SuturaAwsLc>(job, lines).await,
            Name::Quinn => work::<Quinn>(job, lines).await,
            #[cfg(feature = "quiche")]
            Name::Quiche => work::<Quiche>(job, lines).await,
            #[cfg(feature = "s2n-quic")]
            Name::S2nQuic => work::<S2nQuic>(job, lines).await,
            _ => Err(format!("{name} is not built in").into()),
        }
    })
}

async fn work<S: Stack>(job: Job, mut lines: Input) -> Result<(), Error> {
    let policy = policy(&job.settings.subject)?;
    let settings = &settings(&job.settings, &policy);
    match job.role {
        Role::Server => {
            let (endpoint, address) = S::server(settings)?;
            let newest = Newest::<S>::default();
            tokio::spawn(stack::serve::<S>(endpoint, None, newest.clone()));
            say(&Listening { address })?;
            while lines.next_line().await?.is_some() {
                let (repairs, _) = stack::newest::<S>(&newest).as_ref().map_or((0, 0), S::repairs);
                say(&Account { usage: usage::now()?, repairs })?;
            }
            Ok(())
        }
        Role::Client { server, task } => match task {
            Task::Bulk { bytes } => {
                let extra = bytes * job.settings.subject.extra / 100;
                bulk::<S>(settings, server, bytes, extra).await
            }
            Task::Idle { connections } => {
                idle::<S>(settings, server, connections, &mut lines).await
            }
            Task::Concurrent { connections, bytes } => {
                concurrent::<S>(settings, server, connections, bytes).await
            }
            Task::Requests { count, at_once } => {
                requests::<S>(settings, server, count, at_once).await
            }
            Task::Handshakes { count } => handshakes::<S>(settings, server, count).await,
        },
        Role::Workers { workers, together } => {
            workers::run_server(settings, workers, together, lines).await
        }
        Role::Clients { server, threads, connections, moves, task } => {
            let plan = workers::Plan { server, threads, connections, moves };
            workers::run_client(&job.settings, plan, task)
        }
    }
}

/// One download, with `extra` bytes that do not count.
async fn bulk<S: Stack>(
    settings: &Settings<'_>,
    server: SocketAddr,
    bytes: u64,
    extra: u64,
) -> Result<(), Error> {
    let before = usage::now()?;
    let endpoint = S::client(settings)?;
    let connection = S::connect(&endpoint, server).await?;
    let start = Instant::now();
    stack::download::<S>(&connection, bytes + extra).await?;
    let (seconds, usage) = (start.elapsed().as_secs_f64(), since(before)?);
    let (_, repairs) = S::repairs(&connection);
    say(&Done { repairs, ..Done::new(seconds, bytes, usage) })
}

async fn connect_all<S: Stack>(
    endpoint: Arc<S::Endpoint>,
    server: SocketAddr,
    count: usize,
) -> Result<Vec<S::Connection>, Error> {
    let mut connections = Vec::with_capacity(count);
    while connections.len() < count {
        let batch: Vec<_> = (connections.len()..count)
            .take(HANDSHAKES)
            .map(|_| {
                let endpoint = endpoint.clone();
                tokio::spawn(async move { S::connect(&endpoint, server).await })
            })
            .collect();
        for handshake in batch {
            connections.push(handshake.await??);
        }
    }
    Ok(connections)
}

async fn idle<S: Stack>(
    settings: &Settings<'_>,
    server: SocketAddr,
    count: usize,
    lines: &mut Input,
) -> Result<(), Error> {
    let endpoint = Arc::new(S::client(settings)?);
    // The first connections also allocate memory that is allocated only once, and is not theirs.
    let first = connect_all::<S>(endpoint.clone(), server, HANDSHAKES).await?;
    tokio::time::sleep(SETTLE).await;
    say(&usage::now()?)?;
    lines.next_line().await?;
    let connections = connect_all::<S>(endpoint, server, count).await?;
    tokio::time::sleep(SETTLE).await;
    say(&usage::now()?)?;
    lines.next_line().await?;
    drop((first, connections));
    Ok(())
}

async fn concurrent<S: Stack>(
    settings: &Settings<'_>,
    server: SocketAddr,
    count: usize,
    bytes: u64,
) -> Result<(), Error> {
    let before = usage::now()?;
    let endpoint = Arc::new(S::client(settings)?);
    let connections = connect_all::<S>(endpoint, server, count).await?;
    let start = Instant::now();
    let downloads: Vec<_> = connections
        .into_iter()
        .map(|connection| {
            tokio::spawn(async move { stack::download::<S>(&connection, bytes).await })
        })
        .collect();
    let all = downloads.len() as u64 * bytes;
    for download in downloads {
        download.await??;
    }
    say(&Done::new(start.elapsed().as_secs_f64(), all, since(before)?))
}

/// Small requests on one connection. A tenth of them go before the measurement, as a warm-up.
async fn requests<S: Stack>(
    settings: &Settings<'_>,
    server: SocketAddr,
    count: u64,
    at_once: u64,
) -> Result<(), Error> {
    let endpoint = S::client(settings)?;
    let connection = Arc::new(S::connect(&endpoint, server).await?);
    ask::<S>(&connection, count / 10, at_once).await?;
    let (before, start) = (usage::now()?, Instant::now());
    let times = ask::<S>(&connection, count, at_once).await?;
    let (seconds, usage) = (start.elapsed().as_secs_f64(), since(before)?);
    say(&Done::of_many(seconds, times.len() as u64 * job::ANSWER, usage, times))
}

/// Sends requests, `at_once` at a time, and receives all answers. Returns the time of each.
async fn ask<S: Stack>(
    connection: &Arc<S::Connection>,
    count: u64,
    at_once: u64,
) -> Result<Vec<Duration>, Error> {
    let each = count.div_ceil(at_once);
    let askers: Vec<_> = (0..at_once)
        .map(|_| {
            let connection = connection.clone();
            tokio::spawn(async move {
                let mut times = Vec::with_capacity(each as usize);
                for _ in 0..each {
                    let start = Instant::now();
                    stack::download::<S>(&connection, job::ANSWER).await?;
                    times.push(start.elapsed());
                }
                Ok::<_, Error>(times)
            })
        })
        .collect();
    let mut times = Vec::with_capacity((each * at_once) as usize);
    for asker in askers {
        times.append(&mut asker.await??);
    }
    Ok(times)
}

/// Handshakes, one after another.
async fn handshakes<S: Stack>(
    settings: &Settings<'_>,
    server: SocketAddr,
    count: u64,
) -> Result<(), Error> {
    let endpoint = S::client(settings)?;
    drop(S::connect(&endpoint, server).await?);
    let mut times = Vec::with_capacity(count as usize);
    let (before, start) = (usage::now()?, Instant::now());
    for _ in 0..count {
        let start = Instant::now();
        drop(S::connect(&endpoint, server).await?);
        times.push(start.elapsed());
    }
    say(&Done::of_many(start.elapsed().as_secs_f64(), count, since(before)?, times))
}
