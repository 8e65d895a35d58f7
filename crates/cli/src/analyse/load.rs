//! Reads qlog files.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget};
use sutura_analysis::{Reader, StreamFrame, Trace, resolve_recovered, sent_frames};

use crate::failure::Failure;
use crate::output;

/// Bytes read at a time.
const CHUNK: usize = 256 * 1024;

/// How long reading may take before a progress bar is shown.
const PATIENCE: Duration = Duration::from_secs(1);

/// A trace and its origin.
#[derive(Debug)]
pub struct Record {
    /// The file.
    pub file: PathBuf,
    /// The file's name without extension, with a number appended if it would not be unique.
    pub name: String,
    pub trace: Trace,
    /// The STREAM frames that the other end sent, in order, if its record is available.
    pub order: Option<Vec<StreamFrame>>,
}

/// Reads the traces of all files.
///
/// # Errors
/// A file cannot be read, or is not qlog.
pub fn load(files: &[PathBuf]) -> Result<Vec<Record>, Failure> {
    let sizes = files.iter().filter_map(|file| file.metadata().ok()).map(|m| m.len()).sum();
    let mut progress = Progress::new(sizes);
    let mut names = BTreeSet::new();
    let mut records = Vec::new();
    for file in files {
        let failure = |e: &dyn std::fmt::Display| {
            Failure::local(format!("cannot read {}: {e}", file.display()))
        };
        let traces = read(file, &mut progress, &failure)?;
        if traces.is_empty() {
            return Err(failure(&"there is no connection in it"));
        }
        for trace in traces {
            let name = unique(file, &mut names);
            records.push(Record { file: file.clone(), name, trace, order: None });
        }
    }
    progress.bar.finish_and_clear();
    Ok(records)
}

fn read(
    path: &Path,
    progress: &mut Progress,
    failure: &dyn Fn(&dyn std::fmt::Display) -> Failure,
) -> Result<Vec<Trace>, Failure> {
    let mut file = File::open(path).map_err(|e| failure(&e))?;
    let mut reader = Reader::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        let length = file.read(&mut chunk).map_err(|e| failure(&e))?;
        let Some(part) = chunk.get(..length).filter(|part| !part.is_empty()) else { break };
        reader.push(part).map_err(|e| failure(&e))?;
        progress.add(part.len() as u64);
    }
    reader.finish().map_err(|e| failure(&e))
}

fn unique(file: &Path, names: &mut BTreeSet<String>) -> String {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let mut name = stem.to_string();
    let mut number = 2;
    while !names.insert(name.clone()) {
        name = format!("{stem}-{number}");
        number += 1;
    }
    name
}

/// Completes each record with the record of the other end.
pub fn resolve(records: &mut [Record]) {
    for at in 0..records.len() {
        let (before, rest) = records.split_at_mut(at);
        let Some((own, after)) = rest.split_first_mut() else { return };
        for peer in before.iter().chain(after.iter()) {
            if own.trace.is_peer_of(&peer.trace) {
                resolve_recovered(&mut own.trace, &peer.trace);
                own.order = Some(sent_frames(&peer.trace));
            }
        }
    }
}

/// A progress bar that appears only if reading takes long.
#[derive(Debug)]
struct Progress {
    bar: ProgressBar,
    start: Instant,
    shown: bool,
}

impl Progress {
    fn new(total: u64) -> Self {
        let bar = output::bar(total, "{bar:40} {bytes:>10}/{total_bytes}");
        bar.set_draw_target(ProgressDrawTarget::hidden());
        Self { bar, start: Instant::now(), shown: false }
    }

    fn add(&mut self, bytes: u64) {
        self.bar.inc(bytes);
        if !self.shown && self.start.elapsed() > PATIENCE {
            self.shown = true;
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names = BTreeSet::new();
        let files = ["a/x.qlog", "b/x.sqlog", "x-2.qlog", "x.qlog"];
        let found = files.map(|file| unique(Path::new(file), &mut names));
        assert_eq!(found, ["x", "x-2", "x-2-2", "x-3"]);
    }
}
