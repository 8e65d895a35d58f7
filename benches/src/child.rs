//! A server or a client, as the parent asks for it.

use crate::Error;
use crate::job::{Done, Job, Listening, Role, Settings, StackName, Task, Usage};
use crate::stack::Stack;
use crate::stacks::{Quinn, Sutura};
use crate::usage;
use serde::Serialize;
use std::io::Write;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};

/// Handshakes that a client has under way at a time.
const HANDSHAKES: usize = 20;
/// Lets acknowledgements and announcements settle before memory is read.
const SETTLE: Duration = Duration::from_millis(1500);

/// Reads a job from the standard input and does it.
pub fn run() -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let mut lines = BufReader::new(tokio::io::stdin()).lines();
        let line = lines.next_line().await?.ok_or("no job")?;
        let job: Job = serde_json::from_str(&line)?;
        match job.settings.stack {
            StackName::Sutura => work::<Sutura>(job, lines).await,
            StackName::Quinn => work::<Quinn>(job, lines).await,
        }
    })
}

fn say(answer: &impl Serialize) -> Result<(), Error> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, answer)?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}

async fn work<S: Stack + 'static>(
    job: Job,
    mut lines: Lines<BufReader<Stdin>>,
) -> Result<(), Error> {
    match job.role {
        Role::Server => {
            let (endpoint, address) = S::server(&job.settings)?;
            tokio::task::spawn_local(S::serve(endpoint));
            say(&Listening { address })?;
            while lines.next_line().await?.is_some() {
                say(&usage::now()?)?;
            }
            Ok(())
        }
        Role::Client { server, task } => match task {
            Task::Bulk { bytes } => bulk::<S>(&job.settings, server, bytes).await,
            Task::Idle { connections } => {
                idle::<S>(&job.settings, server, connections, &mut lines).await
            }
            Task::Concurrent { connections, bytes } => {
                concurrent::<S>(&job.settings, server, connections, bytes).await
            }
        },
    }
}

fn since(before: Usage) -> Result<Usage, Error> {
    let mut now = usage::now()?;
    now.cpu_seconds -= before.cpu_seconds;
    Ok(now)
}

fn check(received: u64, wanted: u64) -> Result<(), Error> {
    if received == wanted {
        return Ok(());
    }
    Err(format!("received {received} bytes of {wanted}").into())
}

async fn bulk<S: Stack>(settings: &Settings, server: SocketAddr, bytes: u64) -> Result<(), Error> {
    let before = usage::now()?;
    let endpoint = S::client(settings)?;
    let connection = S::connect(&endpoint, server).await?;
    let start = Instant::now();
    let received = S::download(&connection, bytes).await?;
    let seconds = start.elapsed().as_secs_f64();
    check(received, bytes)?;
    say(&Done { seconds, bytes: received, usage: since(before)? })
}

async fn connect_all<S: Stack + 'static>(
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

async fn idle<S: Stack + 'static>(
    settings: &Settings,
    server: SocketAddr,
    count: usize,
    lines: &mut Lines<BufReader<Stdin>>,
) -> Result<(), Error> {
    let endpoint = Rc::new(S::client(settings)?);
    // What is allocated once, by the first connections, is not theirs.
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

async fn concurrent<S: Stack + 'static>(
    settings: &Settings,
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
            tokio::task::spawn_local(async move {
                let received = S::download(&connection, bytes).await?;
                check(received, bytes)?;
                Ok::<_, Error>(received)
            })
        })
        .collect();
    let mut received = 0;
    for download in downloads {
        received += download.await??;
    }
    say(&Done { seconds: start.elapsed().as_secs_f64(), bytes: received, usage: since(before)? })
}
