//! Records of the datagrams that the ends of several scenarios send, exact to the byte and the
//! nanosecond.
//!
//! A change that should not affect the wire must keep all of them, and any other change shows its
//! effect here. [`scenarios::ALL`] lists the scenarios: transfers up, down and both ways, over
//! links that lose, reorder, duplicate and damage packets; each congestion controller; many
//! parallel streams under several schedulers; erasure coding of tails and of everything, with and
//! without loss; datagrams, and messages at 60 Hz.
//!
//! `traces/recorded.txt` has a line per scenario: name, seed, datagrams up and down, bytes up and
//! down, the time at which the work was done, and two digests of all datagrams in order. The first digest
//! covers all bytes. The second leaves out the payloads, so that it stays the same if only the contents of
//! packets change. "Up" are the client's datagrams.
//!
//! `SUTURA_TRACES=dump` writes a file per scenario with a line per datagram, to compare two
//! versions. `SUTURA_TRACES=write` records the current behaviour.

mod recording;
mod scenarios;

use std::path::{Path, PathBuf};

use recording::{Recorder, Summary};
use sutura_sim::Scenario;

/// The task in addition to comparing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Compare,
    /// Writes the datagrams of each scenario to a file, and compares.
    Dump,
    /// Replaces the recorded file.
    Write,
}

impl Mode {
    fn from_env() -> Self {
        match std::env::var("SUTURA_TRACES").as_deref() {
            Err(_) => Self::Compare,
            Ok("dump") => Self::Dump,
            Ok("write") => Self::Write,
            Ok(other) => panic!("SUTURA_TRACES is dump or write, not {other}"),
        }
    }
}

fn recorded_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/traces/recorded.txt")
}

/// A directory next to cargo's build output.
fn dump_directory() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("traces")
}

/// Runs all scenarios, and writes their datagrams to files in `dump` if it is given.
fn play(dump: Option<&Path>) -> Vec<Summary> {
    let play = |&(name, seed, run): &(&'static str, u64, scenarios::Run)| {
        let recorder = Recorder::new(dump.is_some());
        let outcome = run(Scenario::new(seed).tracer({
            let recorder = recorder.clone();
            move || recorder.clone()
        }));
        let ends = outcome.unwrap_or_else(|failure| panic!("{name}: {failure}"));
        let (summary, text) = recorder.finish(name, seed, ends.duration);
        if let Some(directory) = dump {
            std::fs::write(directory.join(format!("{name}.txt")), text).unwrap();
        }
        summary
    };
    scenarios::ALL.iter().map(play).collect()
}

/// A message for each scenario that differs from its record.
fn differences(recorded: &[Summary], played: &[Summary]) -> Vec<String> {
    let find = |list: &[Summary], name: &str| list.iter().find(|s| s.name == name).cloned();
    let changed = played.iter().filter_map(|now| {
        let name = &now.name;
        match find(recorded, name) {
            None => Some(format!("{name}: not recorded\n  now      {now}")),
            Some(before) if before == *now => None,
            Some(before) => {
                let what = if before.same_but_for_payloads(now) {
                    "the same times, sizes and fates, but other payloads"
                } else {
                    "other datagrams"
                };
                Some(format!("{name}: {what}\n  recorded {before}\n  now      {now}"))
            }
        }
    });
    let gone = recorded.iter().filter(|before| find(played, &before.name).is_none());
    changed.chain(gone.map(|before| format!("{}: no such scenario", before.name))).collect()
}

#[test]
fn every_datagram_is_as_recorded() {
    let mode = Mode::from_env();
    let directory = dump_directory();
    if mode == Mode::Dump {
        std::fs::create_dir_all(&directory).unwrap();
    }
    let played = play((mode == Mode::Dump).then_some(&*directory));
    let file = recorded_file();
    if mode == Mode::Write {
        std::fs::write(&file, recording::to_text(&played)).unwrap();
        return;
    }
    let recorded = recording::from_text(&std::fs::read_to_string(&file).unwrap());
    let differences = differences(&recorded, &played);
    assert!(
        differences.is_empty(),
        "{} of {} scenarios are not as in {}:\n\n{}\n\n\
         SUTURA_TRACES=dump cargo test -p sutura-sim --test all traces\n\
         writes all datagrams to {}/NAME.txt. Do so with both versions and compare.\n\
         SUTURA_TRACES=write cargo test -p sutura-sim --test all traces\n\
         records what happens now, if that is what is wanted.\n",
        differences.len(),
        played.len(),
        file.display(),
        differences.join("\n"),
        directory.display(),
    );
}

#[test]
fn a_difference_is_told() {
    let line = "a 1 2 3 400 500 0.600000000 0000000000000007 0000000000000008";
    let before = recording::from_text(line);
    assert_eq!(recording::from_text(&recording::to_text(&before)), before);
    assert_eq!(differences(&before, &before), Vec::<String>::new());
    let told = |now: &str| differences(&before, &recording::from_text(now)).join("\n");
    assert!(told(&line.replace("0007", "0009")).contains("a: the same times"));
    assert!(told(&line.replace("0008", "0009")).contains("a: other datagrams"));
    assert!(told(&line.replace(" 500 ", " 501 ")).contains("a: other datagrams"));
    let renamed = told(&line.replace('a', "b"));
    assert!(renamed.contains("b: not recorded") && renamed.contains("a: no such"), "{renamed}");
}
