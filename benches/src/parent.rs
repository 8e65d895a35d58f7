//! Starts the children and collects their answers.

use crate::job::{ANSWER, Account, Done, Job, Listening, Role, Settings, Task, Usage};
use crate::report::{Bulk, Load, Measurements, Memory, Small};
use crate::{Error, Options, workers};
use serde::de::DeserializeOwned;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use sutura_benches::tls::Identity;

/// Bytes of each of the concurrent downloads.
const CONCURRENT_BYTES: u64 = 1_000_000;

/// A child process, which ends when the value is dropped.
pub struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Process {
    pub fn start(job: &Job) -> Result<Self, Error> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("--child")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().ok_or("no standard input")?;
        let output = child.stdout.take().ok_or("no standard output")?;
        let mut process = Self { child, input, output: BufReader::new(output) };
        serde_json::to_writer(&mut process.input, job)?;
        process.go_on()?;
        Ok(process)
    }

    /// Sends the line for which the child waits.
    fn go_on(&mut self) -> Result<(), Error> {
        self.input.write_all(b"\n")?;
        Ok(self.input.flush()?)
    }

    pub fn answer<T: DeserializeOwned>(&mut self) -> Result<T, Error> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            return Err("a child ended without an answer".into());
        }
        Ok(serde_json::from_str(&line)?)
    }

    /// The answer to the next line.
    pub fn ask<T: DeserializeOwned>(&mut self) -> Result<T, Error> {
        self.go_on()?;
        self.answer()
    }

    /// The usage of a client.
    fn usage(&mut self) -> Result<Usage, Error> {
        self.ask()
    }

    /// The account of a server.
    fn account(&mut self) -> Result<Account, Error> {
        self.ask()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The child may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server, its usage before the client came, and a client for it.
fn pair(settings: &Settings, task: Task) -> Result<(Process, Usage, Process), Error> {
    let mut server = Process::start(&Job { settings: settings.clone(), role: Role::Server })?;
    let Listening { address } = server.answer()?;
    let before = server.account()?.usage;
    let role = Role::Client { server: address, task };
    let client = Process::start(&Job { settings: settings.clone(), role })?;
    Ok((server, before, client))
}

/// The result of the client, and the account of the server with the CPU seconds of the task.
fn measure(settings: &Settings, task: Task) -> Result<(Done, Account), Error> {
    let (mut server, before, mut client) = pair(settings, task)?;
    let done: Done = client.answer()?;
    let mut account = server.account()?;
    account.usage.cpu_seconds -= before.cpu_seconds;
    Ok((done, account))
}

fn bulk(settings: &Settings, bytes: u64) -> Result<Bulk, Error> {
    let (done, server) = measure(settings, Task::Bulk { bytes })?;
    Ok(Bulk {
        subject: settings.subject.clone(),
        payload: settings.payload,
        seconds: done.seconds,
        bytes: done.amount,
        server_cpu: server.usage.cpu_seconds,
        client_cpu: done.usage.cpu_seconds,
        repairs_sent: server.repairs,
        repairs_received: done.repairs,
    })
}

fn small(settings: &Settings, load: Load, count: u64) -> Result<Small, Error> {
    let task = match load {
        Load::Requests { at_once } => Task::Requests { count, at_once },
        Load::Handshakes => Task::Handshakes { count },
    };
    let (done, server) = measure(settings, task)?;
    let per = match load {
        Load::Requests { .. } => done.amount / ANSWER,
        Load::Handshakes => done.amount,
    };
    Ok(Small {
        subject: settings.subject.clone(),
        load,
        seconds: done.seconds / per as f64,
        server_cpu: server.usage.cpu_seconds / per as f64,
        client_cpu: done.usage.cpu_seconds / per as f64,
    })
}

fn idle(settings: &Settings, connections: usize) -> Result<(f64, f64), Error> {
    let (mut server, _, mut client) = pair(settings, Task::Idle { connections })?;
    let client_before: Usage = client.answer()?;
    let server_before = server.account()?.usage;
    let client_after = client.usage()?;
    let server_after = server.account()?.usage;
    let each = |before: Usage, after: Usage| {
        (after.resident_kib as f64 - before.resident_kib as f64) / connections as f64
    };
    Ok((each(server_before, server_after), each(client_before, client_after)))
}

fn concurrent(settings: &Settings, connections: usize) -> Result<(u64, u64), Error> {
    let task = Task::Concurrent { connections, bytes: CONCURRENT_BYTES };
    let (mut server, before, mut client) = pair(settings, task)?;
    let _: Done = client.answer()?;
    Ok((before.resident_kib, server.account()?.usage.peak_kib))
}

fn memory(settings: &Settings, options: &Options) -> Result<Memory, Error> {
    let idle = (options.idle > 0).then(|| idle(settings, options.idle)).transpose()?;
    let concurrent =
        (options.concurrent > 0).then(|| concurrent(settings, options.concurrent)).transpose()?;
    let ((idle_server_kib, idle_client_kib), (base_kib, peak_kib)) =
        (idle.unzip(), concurrent.unzip());
    let stack = settings.subject.stack;
    Ok(Memory { stack, idle_server_kib, idle_client_kib, base_kib, peak_kib })
}

/// Measures and prints.
pub fn run(options: &Options) -> Result<(), Error> {
    if let Some(workers) = options.workers {
        return workers::run(options, usize::from(workers));
    }
    let identity = Identity::new()?;
    let settings = |subject, payload| Settings { subject, payload, identity: identity.clone() };
    let subjects = options.subjects();
    // Of the measurements that depend little on it.
    let payload = options.payload.first().copied().unwrap_or(1200);
    let mut measurements = Measurements::default();
    for round in 0..options.rounds {
        let mut order = subjects.clone();
        // The order of the subjects should not matter, so each round begins with another subject.
        order.rotate_left(round % subjects.len().max(1));
        for &payload in &options.payload {
            for subject in order.clone() {
                measurements.bulk.push(bulk(&settings(subject, payload), options.bytes)?);
            }
        }
        for (load, count) in options.loads() {
            for subject in order.clone() {
                measurements.small.push(small(&settings(subject, payload), load, count)?);
            }
        }
        eprintln!("round {} of {}", round + 1, options.rounds);
    }
    // Without traffic, redundancy policies make no difference to memory.
    if options.policies.is_empty() && options.idle + options.concurrent > 0 {
        for &stack in &options.stacks {
            measurements.memory.push(memory(&settings(stack.into(), payload), options)?);
        }
    }
    options.output.write("loopback", &measurements.report(options), &measurements)
}
