//! Starts the children and collects what they say.

use crate::job::{Done, Job, Listening, Role, Settings, StackName, Task, Usage};
use crate::report::{Bulk, Measurements, Memory};
use crate::{Error, Options};
use serde::de::DeserializeOwned;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Bytes of each of the concurrent downloads.
const CONCURRENT_BYTES: u64 = 1_000_000;

/// A child process; it ends with the value.
struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Process {
    fn start(job: &Job) -> Result<Self, Error> {
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

    /// Ends the line that the child waits for.
    fn go_on(&mut self) -> Result<(), Error> {
        self.input.write_all(b"\n")?;
        Ok(self.input.flush()?)
    }

    fn answer<T: DeserializeOwned>(&mut self) -> Result<T, Error> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            return Err("a child ended without an answer".into());
        }
        Ok(serde_json::from_str(&line)?)
    }

    fn usage(&mut self) -> Result<Usage, Error> {
        self.go_on()?;
        self.answer()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server, what it has used before the client came, and a client for it.
fn pair(settings: &Settings, task: Task) -> Result<(Process, Usage, Process), Error> {
    let mut server = Process::start(&Job { settings: settings.clone(), role: Role::Server })?;
    let Listening { address } = server.answer()?;
    let before = server.usage()?;
    let role = Role::Client { server: address, task };
    let client = Process::start(&Job { settings: settings.clone(), role })?;
    Ok((server, before, client))
}

fn bulk(settings: &Settings, bytes: u64) -> Result<Bulk, Error> {
    let (mut server, before, mut client) = pair(settings, Task::Bulk { bytes })?;
    let done: Done = client.answer()?;
    let after = server.usage()?;
    Ok(Bulk {
        stack: settings.stack,
        payload: settings.payload,
        seconds: done.seconds,
        bytes: done.bytes,
        server_cpu: after.cpu_seconds - before.cpu_seconds,
        client_cpu: done.usage.cpu_seconds,
    })
}

fn idle(settings: &Settings, connections: usize) -> Result<(f64, f64), Error> {
    let (mut server, _, mut client) = pair(settings, Task::Idle { connections })?;
    let client_before: Usage = client.answer()?;
    let server_before = server.usage()?;
    let client_after = client.usage()?;
    let server_after = server.usage()?;
    let each = |before: Usage, after: Usage| {
        (after.resident_kib as f64 - before.resident_kib as f64) / connections as f64
    };
    Ok((each(server_before, server_after), each(client_before, client_after)))
}

fn concurrent(settings: &Settings, connections: usize) -> Result<(u64, u64), Error> {
    let task = Task::Concurrent { connections, bytes: CONCURRENT_BYTES };
    let (mut server, before, mut client) = pair(settings, task)?;
    let _: Done = client.answer()?;
    Ok((before.resident_kib, server.usage()?.peak_kib))
}

fn memory(settings: &Settings, options: &Options) -> Result<Memory, Error> {
    let mut memory = Memory { stack: settings.stack, ..Memory::default() };
    if options.idle > 0 {
        let (server, client) = idle(settings, options.idle)?;
        memory.idle_server_kib = Some(server);
        memory.idle_client_kib = Some(client);
    }
    if options.concurrent > 0 {
        let (base, peak) = concurrent(settings, options.concurrent)?;
        memory.base_kib = Some(base);
        memory.peak_kib = Some(peak);
    }
    Ok(memory)
}

/// Measures and prints.
pub fn run(options: &Options) -> Result<(), Error> {
    let certificate = rcgen::generate_simple_self_signed(vec!["localhost".into()])?;
    let settings = |stack: StackName, payload: u16| Settings {
        stack,
        payload,
        certificate: certificate.cert.der().to_vec(),
        key: certificate.signing_key.serialize_der(),
    };
    let mut measurements = Measurements::default();
    for round in 0..options.rounds {
        for &payload in &options.payload {
            let mut order = options.stacks.clone();
            // Who comes first should not matter.
            order.rotate_left(round % options.stacks.len().max(1));
            for stack in order {
                measurements.bulk.push(bulk(&settings(stack, payload), options.bytes)?);
            }
        }
        eprintln!("round {} of {}", round + 1, options.rounds);
    }
    if options.idle + options.concurrent > 0 {
        for &stack in &options.stacks {
            let payload = options.payload.first().copied().unwrap_or(1200);
            measurements.memory.push(memory(&settings(stack, payload), options)?);
        }
    }
    options.output.write("loopback", &measurements.report(options), &measurements)
}
