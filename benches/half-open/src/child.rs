//! The process of one server.

use crate::clients::first_datagrams;
use crate::heap;
use crate::server::Name;
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::Instant;
use sutura_benches::Error;
use sutura_benches::tls::Identity;

/// The job of the process.
#[derive(Debug, Serialize, Deserialize)]
pub struct Job {
    pub server: Name,
    pub clients: usize,
    pub identity: Identity,
}

/// The result of a job.
#[derive(Debug, Serialize, Deserialize)]
struct Found {
    waiting: Option<f64>,
    answered: f64,
}

/// The memory that a server takes.
#[derive(Debug, Serialize)]
pub struct Measurement {
    pub server: &'static str,
    /// Bytes for each client whose datagram waits for a decision, if the server has that state.
    pub waiting: Option<f64>,
    /// Bytes for each client that was answered.
    pub answered: f64,
}

/// Starts a process and has it do a job.
pub fn measure(job: &Job) -> Result<Measurement, Error> {
    let (variable, value) = heap::WITHOUT_CACHES;
    let mut child = Command::new(std::env::current_exe()?)
        .arg("--child")
        .env(variable, value)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    child.stdin.take().ok_or("no standard input")?.write_all(&serde_json::to_vec(job)?)?;
    let output = child.wait_with_output()?;
    let server = job.server.text();
    if !output.status.success() {
        return Err(format!("{server}: {}", output.status).into());
    }
    let Found { waiting, answered } = serde_json::from_slice(&output.stdout)?;
    Ok(Measurement { server, waiting, answered })
}

/// Does the job that the standard input describes.
pub fn run() -> Result<(), Error> {
    let mut input = String::new();
    std::io::stdin().read_to_string(&mut input)?;
    let job: Job = serde_json::from_str(&input)?;
    let clients = first_datagrams(&job.identity, job.clients, Instant::now())?;
    let mut server = job.server.start(&job.identity, job.clients)?;
    let before = heap::in_use();
    let each = || heap::in_use().saturating_sub(before) as f64 / job.clients as f64;
    let waiting = server.receive(&clients)?.then(each);
    let count = server.answer(&clients)?;
    let answered = each();
    if count != job.clients {
        return Err(format!("let in {count} of {}", job.clients).into());
    }
    println!("{}", serde_json::to_string(&Found { waiting, answered })?);
    Ok(())
}
