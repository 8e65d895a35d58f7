//! What the protections of classes are worth: moves of a game, 60 a second of 200 bytes, over lossy paths.
//!
//! `cargo test -p sutura-tunnel --test classes -- --nocapture --include-ignored` prints a table of protections that
//! were compared.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, also in helpers")]

use std::time::Duration;

use sutura::{Protection, TransportConfig, registry};
use sutura_sim::{MessagePlan, MessagesOutcome, Scenario, TimedMessage};
use sutura_tunnel::flow::{Class, Treatment};

/// The paths: the loss on both ways.
const LOSSES: [(&str, &str); 4] = [
    ("none", ""),
    ("1 %", " loss=bern:0.01"),
    ("5 %", " loss=bern:0.05"),
    ("bursts of 3, 3 %", " loss=ge:0.01,0.33,1,0"),
];
const PATH: &str = "rate=50mbit delay=25ms";
/// What comes later is late: the deadline of the class.
const LIMIT: Duration = Duration::from_millis(100);
/// A game that is played for a minute.
const MOVES: u32 = 60 * 60;

/// How it went: the share of moves that were lost or late, a quantile of the times of the others, and how many
/// bytes were sent for each byte without protection.
struct Went {
    late: f64,
    p99: Duration,
    bytes: u64,
}

fn play(loss: &str, protection: Option<&Protection>, seed: u64) -> MessagesOutcome {
    let path = format!("{PATH}{loss}").parse().unwrap();
    let plan = MessagePlan::steady(MOVES, 200, Duration::from_micros(16_667));
    let protection = protection.cloned();
    let plan = MessagePlan { unreliable: true, protection, deadline: Some(LIMIT), ..plan };
    let scenario = Scenario::new(seed).link(&path, &path).transport(&TransportConfig::default());
    scenario.messages(plan).unwrap()
}

fn went(loss: &str, protection: Option<&Protection>) -> Went {
    let (mut late, mut all, mut bytes, mut times) = (0, 0, 0, Vec::new());
    for seed in 1..=5 {
        let outcome = play(loss, protection, seed);
        all += outcome.delays.len();
        late +=
            outcome.delays.iter().filter(|delay| delay.is_none_or(|delay| delay > LIMIT)).count();
        times.extend(outcome.delays.iter().flatten());
        bytes += outcome.ends.down.sent_bytes;
    }
    times.sort();
    Went { late: late as f64 / all as f64, p99: times[times.len() * 99 / 100], bytes }
}

fn found(policy: &str) -> Option<Protection> {
    (policy != "none").then(|| Protection::new(registry::redundancy().find(policy).unwrap()))
}

#[test]
#[ignore = "a table for docs/tunnel-classes.md"]
fn protections_compared() {
    println!("| loss | protection | lost or late | p99 | bytes |\n|---|---|---|---|---|");
    for (name, loss) in LOSSES {
        let plain = went(loss, None).bytes as f64;
        for policy in [
            "none",
            "auto",
            "auto:within=60ms",
            "auto:within=100ms",
            "auto:within=100ms,budget=0.5",
            "auto:within=100ms,budget=1",
            "auto:within=60ms,budget=1",
            "auto:within=100ms,budget=1,expect=0.02",
            "auto:within=100ms,budget=1,share=0.9999",
            "incremental:burst=1",
            "auto:beyond=125ms,expect=0.02",
            "auto:within=100ms,expect=0.02",
            "auto:within=60ms,budget=0.5,expect=0.02",
            "auto:beyond=35ms,budget=1,expect=0.02",
            "auto:beyond=50ms,budget=0.5,expect=0.02",
            "tail:burst=1",
            "tail:burst=2",
            "block:source=2,parity=1",
        ] {
            let Went { late, p99, bytes } = went(loss, found(policy).as_ref());
            let more = bytes as f64 / plain;
            println!("| {name} | `{policy}` | {:.2} % | {p99:.1?} | {more:.2} |", late * 100.0);
        }
    }
}

/// Paths with room for some such videos, and milliseconds of their delays.
const VIDEO_PATHS: [(&str, u64); 2] =
    [("rate=20mbit delay=25ms", 25), ("rate=10mbit delay=300ms", 300)];
/// A video: 30 frames a second of 14 datagrams of 1,100 bytes each, for 20 seconds.
const FRAME: usize = 14;
/// How much later than the path's own delay a frame may be complete.
const FRAME_LIMIT: Duration = Duration::from_millis(175);

/// Frames: the share that was not complete in time, and the bytes that were sent.
fn watched(path: &str, way: Duration, protection: Option<&Protection>) -> (f64, u64) {
    let (mut bad, mut all, mut bytes) = (0, 0, 0);
    for seed in 1..=3 {
        let frames = (0..600_u32).flat_map(|n| {
            std::iter::repeat_n(
                TimedMessage { at: Duration::from_micros(33_333) * n, size: 1100 },
                FRAME,
            )
        });
        let (protection, deadline) = (protection.cloned(), Some(way + Duration::from_millis(500)));
        let plan =
            MessagePlan { unreliable: true, protection, deadline, ..MessagePlan::new(frames) };
        let path = path.parse().unwrap();
        let scenario =
            Scenario::new(seed).link(&path, &path).transport(&TransportConfig::default());
        let outcome = scenario.messages(plan).unwrap();
        // The path is explored at first, which takes some round trips.
        let frames = outcome.delays.chunks(FRAME).skip(150);
        all += frames.len();
        let is_late =
            |delay: &Option<Duration>| delay.is_none_or(|delay| delay > way + FRAME_LIMIT);
        bad += frames.filter(|frame| frame.iter().any(is_late)).count();
        bytes += outcome.ends.down.sent_bytes;
    }
    (bad as f64 / all as f64, bytes)
}

#[test]
#[ignore = "a table for docs/tunnel-classes.md"]
fn protections_of_video_compared() {
    println!(
        "| path | loss | protection | frames not complete in time | bytes |\n|---|---|---|---|---|"
    );
    for (path, way) in VIDEO_PATHS {
        for (name, loss) in LOSSES {
            let (link, way) = (format!("{path}{loss}"), Duration::from_millis(way));
            let plain = watched(&link, way, None).1 as f64;
            for policy in [
                "none",
                "auto",
                "auto:within=150ms",
                "auto:beyond=125ms,expect=0.02",
                "auto:beyond=35ms,budget=1,expect=0.02",
                "tail:burst=1",
                "tail:burst=2",
            ] {
                let (bad, bytes) = watched(&link, way, found(policy).as_ref());
                let more = bytes as f64 / plain;
                println!("| {path} | {name} | `{policy}` | {:.1} % | {more:.2} |", bad * 100.0);
            }
        }
    }
}

#[test]
fn frames_of_a_video_that_is_taken_for_bulk_are_complete() {
    let protection = Treatment::of(Class::Bulk).protection.unwrap();
    for (path, way) in VIDEO_PATHS {
        for (name, loss) in LOSSES {
            let (link, way) = (format!("{path}{loss}"), Duration::from_millis(way));
            let (plain, with) = (watched(&link, way, None), watched(&link, way, Some(&protection)));
            let more = with.1 as f64 / plain.1 as f64;
            println!(
                "{path} {name}: {:.4} not complete, plain {:.4}, {more:.2} times",
                with.0, plain.0
            );
            // Over a long path the loss is known too late to be mended then: what is lost is mended beforehand.
            let most = if way.as_millis() > 100 { 1.3 } else { 1.1 };
            assert!(more < most, "{path} {name}: {more}");
            // With 5 % lost on a long way, congestion control does not come to a window that the video fits into.
            assert!(with.0 <= 0.02 || plain.0 >= 1.0, "{path} {name}: {}", with.0);
        }
    }
}

#[test]
fn real_time_data_is_in_time_at_the_cost_that_is_said() {
    let protection = Treatment::of(Class::RealTime).protection.unwrap();
    for (name, loss) in LOSSES {
        let (plain, with) = (went(loss, None), went(loss, Some(&protection)));
        let more = with.bytes as f64 / plain.bytes as f64;
        println!(
            "{name}: {:.4} late, plain {:.4}, {more:.2} times the bytes",
            with.late, plain.late
        );
        // A burst takes what covers its datagrams as well.
        let most = if loss.contains("ge:") { 0.01 } else { 0.001 };
        assert!(with.late <= most, "{name}: {}", with.late);
        assert!(more < if loss.is_empty() { 1.2 } else { 2.1 }, "{name}: {more}");
    }
}
