//! The client: threads that have endpoints and connections of their own, and take from one count.

use crate::Error;
use crate::affinity::stay_on;
use crate::child::{Policy, settings};
use crate::job::{self, ANSWER, Done, Task, say};
use crate::usage::{self, since};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::rc::Rc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Instant;
use sutura::{Connection, Endpoint};
use sutura_benches::stack::{self, Stack, Sutura};
use tokio::runtime::Builder;
use tokio::task::{LocalSet, spawn_local};

/// Handshakes that are under way at a time, by all threads together.
const HANDSHAKES: usize = 32;

/// What the client is to do.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub server: SocketAddr,
    /// Threads, each on a core of its own.
    pub threads: usize,
    /// Connections of all threads, each from an endpoint of its own.
    pub connections: usize,
    /// Whether each connection goes over to another port before the measurement.
    pub moves: bool,
}

/// What the threads have in common.
struct Common {
    settings: job::Settings,
    plan: Plan,
    /// How many endpoints each thread has.
    endpoints: usize,
    is_requests: bool,
    /// How many operations are left to do.
    left: AtomicI64,
    /// Where the threads, and the one that measures, wait before the measurement and after it.
    barrier: Barrier,
}

impl Common {
    /// Takes an operation that is left to do.
    fn take(&self) -> bool {
        self.left.fetch_sub(1, Ordering::Relaxed) > 0
    }
}

/// Sends requests on a connection, one after another, until none is left.
async fn ask(connection: Connection, common: Arc<Common>) -> Result<(), Error> {
    while common.take() {
        stack::download::<Sutura>(&connection, ANSWER).await?;
    }
    Ok(())
}

/// Opens connections one after another until none is left, by turns from those of a thread's endpoints
/// whose numbers are `first`, `first + step` and so on.
async fn open(
    first: usize,
    step: usize,
    endpoints: Rc<Vec<Endpoint>>,
    common: Arc<Common>,
) -> Result<(), Error> {
    let mut turns = (first..endpoints.len()).step_by(step).cycle();
    while let Some(turn) = turns.next().filter(|_| common.take()) {
        drop(Sutura::connect(&endpoints[turn], common.plan.server).await?);
    }
    Ok(())
}

/// A connection that goes on from another port than the one it came from. The server has answered from both.
async fn move_away(endpoint: &Endpoint, connection: &Connection) -> Result<(), Error> {
    stack::download::<Sutura>(connection, ANSWER).await?;
    endpoint.rebind(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?)?;
    stack::download::<Sutura>(connection, ANSWER).await
}

/// The part of one thread.
async fn work(common: Arc<Common>) -> Result<(), Error> {
    let policy: Policy = sutura::TransportConfig::default().redundancy;
    let settings = settings(&common.settings, &policy);
    let endpoints = (0..common.endpoints).map(|_| Sutura::client(&settings));
    let endpoints = Rc::new(endpoints.collect::<Result<Vec<Endpoint>, Error>>()?);
    let mut parts = Vec::new();
    if common.is_requests {
        let mut connections = Vec::new();
        for endpoint in &*endpoints {
            let connection = Sutura::connect(endpoint, common.plan.server).await?;
            if common.plan.moves {
                move_away(endpoint, &connection).await?;
            }
            connections.push(connection);
        }
        common.barrier.wait();
        let asking = connections.into_iter().map(|open| ask(open, common.clone()));
        parts.extend(asking.map(spawn_local));
    } else {
        common.barrier.wait();
        let step = (HANDSHAKES / common.plan.threads).clamp(1, endpoints.len());
        let opening = (0..step).map(|first| open(first, step, endpoints.clone(), common.clone()));
        parts.extend(opening.map(spawn_local));
    }
    for part in parts {
        part.await??;
    }
    common.barrier.wait();
    Ok(())
}

/// Runs one thread. Without it the others would wait for ever, so an error ends the process.
fn run_thread(core: usize, common: Arc<Common>) {
    let run = || -> Result<(), Error> {
        stay_on(core)?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        LocalSet::new().block_on(&runtime, work(common))
    };
    if let Err(error) = run() {
        eprintln!("client: {error}");
        std::process::exit(1);
    }
}

/// Does a task as the plan says.
pub fn run(settings: &job::Settings, plan: Plan, task: Task) -> Result<(), Error> {
    let Plan { threads, connections, .. } = plan;
    let (is_requests, count) = match task {
        Task::Requests { count, .. } => (true, count),
        Task::Handshakes { count } => (false, count),
        _ => return Err("workers do requests and handshakes only".into()),
    };
    let common = Arc::new(Common {
        settings: settings.clone(),
        plan,
        endpoints: (connections / threads).max(1),
        is_requests,
        left: AtomicI64::new(count.try_into()?),
        barrier: Barrier::new(threads + 1),
    });
    for core in 0..threads {
        let common = common.clone();
        thread::spawn(move || run_thread(core, common));
    }
    common.barrier.wait();
    let (before, start) = (usage::now()?, Instant::now());
    common.barrier.wait();
    let seconds = start.elapsed().as_secs_f64();
    let amount = if is_requests { count * ANSWER } else { count };
    say(&Done::new(seconds, amount, since(before)?))
}
