//! A server or a client, as the parent asks.

use crate::Error;
use crate::job::{self, Account, Done, Job, Listening, Role, Subject, Task, Usage};
use crate::{usage, workers};
use serde::Serialize;
use std::io::Write;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use sutura::{Algorithm, TransportConfig};
use sutura_benches::stack::{self, Name, Newest, Quinn, Settings, Stack, Sutura};
use sutura_benches::tls;
use sutura_proto::policy::RedundancyFactory;
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};
use tokio::runtime::LocalOptions;

/// Handshakes that a client has under way at a time.
const HANDSHAKES: usize = 20;
/// Time for acknowledgements and announcements to settle before memory is read.
const SETTLE: Duration = Duration::from_millis(1500);

/// Longer than any idle measurement.
const IDLE_TIMEOUT: Duration = Duration::from_secs(300);

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
        provider: tls::aes_128_gcm,
        payload: of_job.payload,
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

/// Reads a job from the standard input and does it.
pub fn run() -> Result<(), Error> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build_local(LocalOptions::default())?;
    runtime.block_on(async {
        let mut lines = BufReader::new(tokio::io::stdin()).lines();
        let line = lines.next_line().await?.ok_or("no job")?;
        let job: Job = serde_json::from_str(&line)?;
        match job.settings.subject.stack {
            Name::Sutura => work::<Sutura>(job, lines).await,
            Name::Quinn => work::<Quinn>(job, lines).await,
        }
    })
}

/// Writes an answer to the standard output.
pub fn say(answer: &impl Serialize) -> Result<(), Error> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, answer)?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}

async fn work<S: Stack>(job: Job, mut lines: Input) -> Result<(), Error> {
    let policy = policy(&job.settings.subject)?;
    let settings = &settings(&job.settings, &policy);
    match job.role {
        Role::Server => {
            let (endpoint, address) = S::server(settings)?;
            let newest = Newest::<S>::default();
            tokio::task::spawn_local(stack::serve::<S>(endpoint, None, newest.clone()));
            say(&Listening { address })?;
            while lines.next_line().await?.is_some() {
                let (repairs, _) = newest.borrow().as_ref().map_or((0, 0), S::repairs);
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
        Role::Clients { server, threads, connections, task } => {
            workers::run_client(&job.settings, server, threads, connections, task)
        }
    }
}

/// What was used since then.
pub fn since(before: Usage) -> Result<Usage, Error> {
    let mut now = usage::now()?;
    now.cpu_seconds -= before.cpu_seconds;
    Ok(now)
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
    let seconds = start.elapsed().as_secs_f64();
    let (_, repairs) = S::repairs(&connection);
    say(&Done { seconds, amount: bytes, usage: since(before)?, repairs })
}

async fn connect_all<S: Stack>(
    endpoint: Rc<S::Endpoint>,
    server: SocketAddr,
    count: usize,
) -> Result<Vec<S::Connection>, Error> {
    let mut connections = Vec::with_capacity(count);
    while connections.len() < count {
        let batch: Vec<_> = (connections.len()..count)
            .take(HANDSHAKES)
            .map(|_| {
                let endpoint = endpoint.clone();
                tokio::task::spawn_local(async move { S::connect(&endpoint, server).await })
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
    let endpoint = Rc::new(S::client(settings)?);
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
    let endpoint = Rc::new(S::client(settings)?);
    let connections = connect_all::<S>(endpoint, server, count).await?;
    let start = Instant::now();
    let downloads: Vec<_> = connections
        .into_iter()
        .map(|connection| {
            tokio::task::spawn_local(async move { stack::download::<S>(&connection, bytes).await })
        })
        .collect();
    let all = downloads.len() as u64 * bytes;
    for download in downloads {
        download.await??;
    }
    say(&Done {
        seconds: start.elapsed().as_secs_f64(),
        amount: all,
        usage: since(before)?,
        repairs: 0,
    })
}

/// Small requests on one connection. A tenth of them go before the measurement, as a warm-up.
async fn requests<S: Stack>(
    settings: &Settings<'_>,
    server: SocketAddr,
    count: u64,
    at_once: u64,
) -> Result<(), Error> {
    let endpoint = S::client(settings)?;
    let connection = Rc::new(S::connect(&endpoint, server).await?);
    ask::<S>(&connection, count / 10, at_once).await?;
    let (before, start) = (usage::now()?, Instant::now());
    let amount = ask::<S>(&connection, count, at_once).await?;
    say(&Done { seconds: start.elapsed().as_secs_f64(), amount, usage: since(before)?, repairs: 0 })
}

/// Sends requests, `at_once` at a time, and receives all answers. Returns their bytes.
async fn ask<S: Stack>(
    connection: &Rc<S::Connection>,
    count: u64,
    at_once: u64,
) -> Result<u64, Error> {
    let each = count.div_ceil(at_once);
    let askers: Vec<_> = (0..at_once)
        .map(|_| {
            let connection = connection.clone();
            tokio::task::spawn_local(async move {
                for _ in 0..each {
                    stack::download::<S>(&connection, job::ANSWER).await?;
                }
                Ok::<(), Error>(())
            })
        })
        .collect();
    for asker in askers {
        asker.await??;
    }
    Ok(each * at_once * job::ANSWER)
}

/// Handshakes, one after another.
async fn handshakes<S: Stack>(
    settings: &Settings<'_>,
    server: SocketAddr,
    count: u64,
) -> Result<(), Error> {
    let endpoint = S::client(settings)?;
    drop(S::connect(&endpoint, server).await?);
    let (before, start) = (usage::now()?, Instant::now());
    for _ in 0..count {
        drop(S::connect(&endpoint, server).await?);
    }
    say(&Done {
        seconds: start.elapsed().as_secs_f64(),
        amount: count,
        usage: since(before)?,
        repairs: 0,
    })
}
