//! What clients of a proxy do, as lines of JSON in a file (`--audit`), and what is refused, on the terminal.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::time::SystemTime;

use serde_json::{Value, json};
use sutura_tunnel::masque::Ask;
use sutura_tunnel::server::{Decision, Observer, Record};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::failure::Failure;
use crate::output::{self, millis};

/// Lines that wait to be written; a disk that is slower loses some, which is said.
const MAX_WAITING_LINES: usize = 16_384;

/// Records what clients do.
#[derive(Debug)]
pub struct Audit {
    lines: Option<SyncSender<Value>>,
}

impl Audit {
    /// Appends to a file, if one is named.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path else { return Ok(Self { lines: None }) };
        let unusable =
            |e: std::io::Error| Failure::local(format!("cannot write {}: {e}", path.display()));
        let file = OpenOptions::new().create(true).append(true).open(path).map_err(unusable)?;
        let (lines, waiting) = sync_channel(MAX_WAITING_LINES);
        let name = path.display().to_string();
        std::thread::Builder::new()
            .name("audit".into())
            .spawn(move || write(file, &waiting, &name))
            .map_err(|e| Failure::local(format!("cannot start a thread: {e}")))?;
        Ok(Self { lines: Some(lines) })
    }
}

/// Writes lines until nobody sends any more.
fn write(file: File, waiting: &Receiver<Value>, name: &str) {
    let mut file = BufWriter::new(file);
    let mut failed = false;
    while let Ok(line) = waiting.recv() {
        let mut next = Ok(line);
        let written = loop {
            match next {
                Ok(line) => {
                    if let Err(error) = writeln!(file, "{line}") {
                        break Err(error);
                    }
                }
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break file.flush(),
            }
            next = waiting.try_recv();
        };
        match written {
            Ok(()) => failed = false,
            Err(error) if !failed => {
                output::complain(&format!("cannot write {name}: {error}"));
                failed = true;
            }
            Err(_) => {}
        }
    }
}

impl Observer for Audit {
    fn record(&self, record: &Record<'_>) {
        if let Decision::Refused { cause, details } = record.decision {
            let Record { client, ask, .. } = record;
            output::complain(&format!("{client}: {ask} refused: {details} ({cause})"));
        }
        let Some(lines) = &self.lines else { return };
        if lines.try_send(line(record)).is_err() {
            output::complain("a line of --audit is lost: the file is written too slowly");
        }
    }

    fn complain(&self, text: &str) {
        output::complain(text);
    }
}

fn line(record: &Record<'_>) -> Value {
    let now = OffsetDateTime::from(SystemTime::now()).format(&Rfc3339).unwrap_or_default();
    let (kind, target) = match record.ask {
        Ask::Tcp(target) => ("tcp", target.to_string()),
        Ask::Udp(target) => ("udp", target.to_string()),
        Ask::Ip(scope) => ("ip", scope.words()),
        Ask::Accept(target) => ("listen", target.to_string()),
        Ask::Flows => ("flows", String::new()),
    };
    let mut line = json!({
        "time": now,
        "client": record.client.to_string(),
        "address": record.address.to_string(),
        "kind": kind,
        "target": target,
        "resolved": record.resolved.map(|resolved| resolved.to_string()),
    });
    if !record.assigned.is_empty() {
        let assigned: Vec<String> = record.assigned.iter().map(ToString::to_string).collect();
        line["assigned"] = assigned.into();
    }
    match record.decision {
        Decision::Begun => line["decision"] = "begun".into(),
        Decision::Resumed => line["decision"] = "resumed".into(),
        Decision::Suspended { to_target, from_target, lasted } => {
            line["decision"] = "suspended".into();
            line["bytes_to_target"] = to_target.into();
            line["bytes_from_target"] = from_target.into();
            line["duration_ms"] = millis(lasted).into();
        }
        Decision::Refused { cause, details } => {
            line["decision"] = "refused".into();
            line["cause"] = cause.token().into();
            line["details"] = details.into();
        }
        Decision::Ended { to_target, from_target, dropped, complete, lasted } => {
            line["decision"] = "ended".into();
            line["bytes_to_target"] = to_target.into();
            line["bytes_from_target"] = from_target.into();
            line["dropped"] = dropped.into();
            line["complete"] = complete.into();
            line["duration_ms"] = millis(lasted).into();
        }
    }
    line
}
