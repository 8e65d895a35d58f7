//! Starts the children and collects their answers.

use crate::job::{ANSWER, Account, Done, Job, Listening, Role, Settings, Subject, Task, Usage};
use crate::profile::{self, Profile};
use crate::report::{Bulk, Load, Measurements, Memory, Small};
use crate::{Error, Options, workers};
use serde::de::DeserializeOwned;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use sutura_benches::costs::Costs;
use sutura_benches::stack::Setting;
use sutura_benches::tls::Identity;

/// Bytes of each of the concurrent downloads.
const CONCURRENT_BYTES: u64 = 1_000_000;

/// A child process, which ends when the value is dropped.
pub struct Process {
    child: Child,
    /// `None` once the child has been asked to end.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    profiled: bool,
}

impl Process {
    pub fn start(job: &Job, profile: Option<Profile<'_>>) -> Result<Self, Error> {
        let profiled = profile.is_some();
        let mut child = profile::command(profile)?
            .arg("--child")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().ok_or("no standard input")?;
        let output = child.stdout.take().ok_or("no standard output")?;
        let (input, output) = (Some(input), BufReader::new(output));
        let mut process = Self { child, input, output, profiled };
        let input = process.input.as_mut().ok_or("ended already")?;
        serde_json::to_writer(input, job)?;
        process.go_on()?;
        Ok(process)
    }

    /// Sends the line for which the child waits.
    fn go_on(&mut self) -> Result<(), Error> {
        let input = self.input.as_mut().ok_or("ended already")?;
        input.write_all(b"\n")?;
        Ok(input.flush()?)
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
        drop(self.input.take());
        // A profiled child ends at the end of its input, and then its profile is written. Another may have
        // ended by itself.
        if !self.profiled {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// How two processes are run.
#[derive(Clone, Copy)]
struct Pair<'a> {
    settings: &'a Settings,
    /// The only core of both.
    core: Option<usize>,
    /// The profile of the server.
    profile: Option<Profile<'a>>,
}

impl<'a> Pair<'a> {
    fn plain(settings: &'a Settings) -> Self {
        Self { settings, core: None, profile: None }
    }

    /// A server, its usage before the client came, and a client for it.
    fn start(self, task: Task) -> Result<(Process, Usage, Process), Error> {
        let job = |role| Job { settings: self.settings.clone(), role, core: self.core };
        let mut server = Process::start(&job(Role::Server), self.profile)?;
        let Listening { address } = server.answer()?;
        let before = server.account()?.usage;
        let client = Process::start(&job(Role::Client { server: address, task }), None)?;
        Ok((server, before, client))
    }

    /// The result of the client, and the account of the server with the CPU seconds of the task.
    fn measure(self, task: Task) -> Result<(Done, Account), Error> {
        let (mut server, before, mut client) = self.start(task)?;
        let done: Done = client.answer()?;
        let mut account = server.account()?;
        let cpu_seconds = account.usage.cpu_seconds - before.cpu_seconds;
        account.usage.cpu_seconds = done.server_cpu.unwrap_or(cpu_seconds);
        Ok((done, account))
    }
}

/// The costs of a client's task together, of which the server's part took `server_cpu` seconds.
pub fn costs(done: &Done, server_cpu: f64) -> Costs {
    Costs { seconds: done.seconds, server_cpu, client_cpu: done.usage.cpu_seconds }
}

fn bulk(settings: &Settings, options: &Options) -> Result<Bulk, Error> {
    let name = profile::name(&settings.subject, &"bulk", settings.payload);
    let profile = Profile::new(options.profile.as_deref(), &name);
    let pair = Pair { profile, ..Pair::plain(settings) };
    let (done, server) = pair.measure(Task::Bulk { bytes: options.bytes })?;
    Ok(Bulk {
        subject: settings.subject.clone(),
        payload: settings.payload,
        bytes: done.amount,
        costs: costs(&done, server.usage.cpu_seconds),
        repairs_sent: server.repairs,
        repairs_received: done.repairs,
    })
}

fn small(
    settings: &Settings,
    (load, count): (Load, u64),
    options: &Options,
) -> Result<Small, Error> {
    let (task, core) = match load {
        Load::Requests { at_once } => (Task::Requests { count, at_once }, None),
        Load::Handshakes => (Task::Handshakes { count }, None),
        Load::HandshakesOnOneCore => (Task::Handshakes { count }, Some(options.core)),
    };
    let name = profile::name(&settings.subject, &load, settings.payload);
    let profile = Profile::new(options.profile.as_deref(), &name);
    let (done, server) = Pair { settings, core, profile }.measure(task)?;
    let count = match load {
        Load::Requests { .. } => done.amount / ANSWER,
        Load::Handshakes | Load::HandshakesOnOneCore => done.amount,
    };
    Ok(Small {
        subject: settings.subject.clone(),
        load,
        costs: costs(&done, server.usage.cpu_seconds).over(count as f64),
        latency: done.latency,
    })
}

fn idle(settings: &Settings, connections: usize) -> Result<(f64, f64), Error> {
    let (mut server, _, mut client) = Pair::plain(settings).start(Task::Idle { connections })?;
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
    let (mut server, before, mut client) = Pair::plain(settings).start(task)?;
    let _: Done = client.answer()?;
    Ok((before.resident_kib, server.account()?.usage.peak_kib))
}

fn memory(settings: &Settings, options: &Options) -> Result<Memory, Error> {
    let idle = (options.idle > 0).then(|| idle(settings, options.idle)).transpose()?;
    let concurrent =
        (options.concurrent > 0).then(|| concurrent(settings, options.concurrent)).transpose()?;
    let ((idle_server_kib, idle_client_kib), (base_kib, peak_kib)) =
        (idle.unzip(), concurrent.unzip());
    let subject = settings.subject.clone();
    Ok(Memory { subject, idle_server_kib, idle_client_kib, base_kib, peak_kib })
}

/// What cannot be measured, before anything is.
fn check(subjects: &[Subject], options: &Options) -> Result<(), Error> {
    if let Some(subject) = subjects.iter().find(|subject| !subject.stack.is_built_in()) {
        let stack = subject.stack;
        return Err(format!("build with `--features {stack}` to measure {stack}").into());
    }
    options.profile.as_deref().map_or(Ok(()), |path| Ok(std::fs::create_dir_all(path)?))
}

/// Measures and prints.
pub fn run(options: &Options) -> Result<(), Error> {
    if let Some(workers) = options.workers {
        return workers::run(options, usize::from(workers));
    }
    let identity = Identity::new()?;
    let settings = |subject, payload| Settings { subject, payload, identity: identity.clone() };
    let subjects = options.subjects();
    check(&subjects, options)?;
    // Of the measurements that depend little on it.
    let payload = options.payload.first().copied().unwrap_or(1200);
    let usual = |subject: Subject| {
        let payload = (subject.setting == Setting::Tuned).then_some(payload);
        settings(subject, payload)
    };
    let mut measurements = Measurements::default();
    for round in 0..options.rounds {
        let mut order = subjects.clone();
        // The order of the subjects should not matter, so each round begins with another subject.
        order.rotate_left(round % subjects.len().max(1));
        for payload in options.payloads() {
            for subject in order.iter().filter(|subject| subject.takes(payload)) {
                measurements.bulk.push(bulk(&settings(subject.clone(), payload), options)?);
            }
        }
        for load in options.loads() {
            for subject in order.iter().filter(|subject| load.0.suits(subject)) {
                measurements.small.push(small(&usual(subject.clone()), load, options)?);
            }
        }
        eprintln!("round {} of {}", round + 1, options.rounds);
    }
    // Without traffic, redundancy policies make no difference to memory.
    if options.policies.is_empty() && options.idle + options.concurrent > 0 {
        for subject in subjects.into_iter().filter(|subject| !subject.is_floor()) {
            measurements.memory.push(memory(&usual(subject), options)?);
        }
    }
    options.output.write("loopback", &measurements.report(options), &measurements)
}
