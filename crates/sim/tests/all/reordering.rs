//! A path that reorders carries nearly as much as a path that does not, and losses on it are still found.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{ALGORITHMS, link, tail};
use sutura_proto::{Algorithm, Protection, TransportConfig};
use sutura_sim::{Ends, Scenario, Transfer};

const BYTES: u64 = 10_000_000;
const PATH: &str = "rate=50mbit delay=25ms";
/// By how much reordering may lengthen a transfer.
const MOST: f64 = 1.2;
/// The same bound on a path that also loses packets: losses are detected and repaired later there, and
/// controllers respond with lower rates.
const MOST_WITH_LOSS: f64 = 1.6;
const SEEDS: u64 = 3;
const DISORDERS: [&str; 2] = ["reorder=0.3,10ms", "reorder=0.3,50ms"];

/// A download over a path that is disturbed towards the client.
fn download(seed: u64, algorithm: Algorithm, path: &str, protection: Option<Protection>) -> Ends {
    let config = TransportConfig::default().with_congestion(Arc::new(algorithm));
    let outcome = Scenario::new(seed)
        .link(&link(PATH), &link(path))
        .transport(&config)
        .protect(protection)
        .transfer(Transfer::download(BYTES))
        .run();
    outcome.unwrap_or_else(|failure| panic!("{algorithm}, {path}, seed {seed}: {failure}")).ends
}

/// The time of all seeds together.
fn total(algorithm: Algorithm, path: &str, protection: Option<&Protection>) -> Duration {
    let download = |seed| download(seed, algorithm, path, protection.cloned()).duration;
    (0..SEEDS).map(download).sum()
}

fn compare(algorithm: Algorithm, loss: &str, most: f64) {
    let mut slow = Vec::new();
    for protection in [None, tail(3)] {
        let ordered = total(algorithm, &format!("{PATH} {loss}"), protection.as_ref());
        for disorder in DISORDERS {
            let path = format!("{PATH} {disorder} {loss}");
            let taken = total(algorithm, &path, protection.as_ref());
            let ratio = taken.as_secs_f64() / ordered.as_secs_f64();
            let fec = protection.as_ref().map_or("no protection".into(), ToString::to_string);
            let line = format!("{algorithm}, {path}, {fec}: {taken:?}, {ratio:.3} times");
            println!("{line}");
            slow.extend((ratio > most).then_some(line));
        }
    }
    assert!(slow.is_empty(), "longer than {most} times: {slow:#?}");
}

#[test]
fn reordering_costs_little() {
    for algorithm in ALGORITHMS {
        compare(algorithm, "", MOST);
    }
}

#[test]
fn reordering_costs_little_on_a_path_that_loses() {
    // NewReno is left out, because losses alone determine its time.
    for algorithm in [Algorithm::CUBIC, Algorithm::BBR] {
        compare(algorithm, "loss=bern:0.01", MOST_WITH_LOSS);
    }
}
