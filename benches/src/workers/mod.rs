//! What more workers are worth: a server with one worker and with several, each on a core of its own, and
//! a client that uses as many cores.
//!
//! Worker `n` of the server and thread `n` of the client share core `n`, so that one worker has one core
//! and two have two, client included. The client has an endpoint for each of its connections, because the
//! system chooses the worker by the client's port.

mod client;
mod model;
mod report;
mod server;

pub use client::{Plan, run as run_client};
pub use server::run as run_server;

use crate::job::{ANSWER, Done, Job, Listening, Role, Served, Settings, Task};
use crate::parent::{Process, costs};
use crate::{Error, Options};
use report::{Load, Measurements, Run};
use sutura_benches::stack::Name;
use sutura_benches::tls::Identity;

/// One run of a load with this many workers.
fn run_once(
    settings: &Settings,
    options: &Options,
    load: Load,
    workers: usize,
) -> Result<Run, Error> {
    let together = options.accept_together;
    let job = |role| Job { settings: settings.clone(), role, core: None };
    let role = Role::Workers { workers, together };
    let mut server = Process::start(&job(role), None)?;
    let Listening { address } = server.answer()?;
    let before: Served = server.ask()?;
    let task = match load {
        Load::Requests | Load::Moved => Task::Requests { count: options.requests, at_once: 1 },
        Load::Handshakes => Task::Handshakes { count: options.handshakes },
    };
    let (connections, moves) = (options.connections, load == Load::Moved);
    let role = Role::Clients { server: address, threads: workers, connections, moves, task };
    let mut client = Process::start(&job(role), None)?;
    let done: Done = client.answer()?;
    let after: Served = server.ask()?;
    let count = match load {
        Load::Requests | Load::Moved => done.amount / ANSWER,
        Load::Handshakes => done.amount,
    } as f64;
    let server_cpu = after.usage.cpu_seconds - before.usage.cpu_seconds;
    Ok(Run {
        load,
        workers,
        costs: costs(&done, server_cpu).over(count),
        connections: after.connections,
    })
}

/// Measures and prints.
pub fn run(options: &Options, workers: usize) -> Result<(), Error> {
    let settings = Settings {
        subject: Name::Sutura.into(),
        payload: Some(options.payload.first().copied().unwrap_or(1200)),
        identity: Identity::new()?,
    };
    let mut measurements = Measurements::default();
    for round in 0..options.rounds {
        let mut order = [1, workers];
        // The order should not matter, so the rounds begin with one and with the other by turns.
        order.rotate_left(round % 2);
        for load in Load::ALL {
            for workers in order {
                measurements.runs.push(run_once(&settings, options, load, workers)?);
            }
        }
        eprintln!("round {} of {}", round + 1, options.rounds);
    }
    options.output.write("loopback", &measurements.report(options, workers), &measurements)
}
