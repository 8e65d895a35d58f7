//! The policies of Michel 2022 (FlEC) at work: what was lost is sent again as repair symbols.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{link, tail};
use sutura_proto::{Algorithm, Protection, TransportConfig, registry};
use sutura_sim::{Ends, Scenario, Transfer};

const BYTES: u64 = 1_000_000;
const SEEDS: u64 = 10;
const POLICIES: [&str; 4] = ["sr-arq", "ac-rlnc", "bulk", "buffer"];
const PATHS: [&str; 3] = [
    "rate=10mbit delay=25ms loss=bern:0.02",
    "rate=10mbit delay=25ms loss=ge:0.01,0.33,1,0",
    "rate=10mbit delay=25ms queue=60kb",
];

fn protection(name: &str) -> Option<Protection> {
    Some(Protection::new(registry::redundancy().find(name).unwrap()))
}

fn download(seed: u64, algorithm: Algorithm, path: &str, protection: Option<Protection>) -> Ends {
    let config = TransportConfig { congestion: Arc::new(algorithm), ..TransportConfig::default() };
    let outcome = Scenario::new(seed)
        .link(&link("rate=10mbit delay=25ms"), &link(path))
        .transport(&config)
        .protect(protection)
        .transfer(Transfer::download(BYTES))
        .run();
    outcome.unwrap_or_else(|failure| panic!("{algorithm}, {path}, seed {seed}: {failure}")).ends
}

/// The time, the bytes on the wire, the repair symbols, and those of use, of all seeds together.
fn total(algorithm: Algorithm, path: &str, protection: Option<&Protection>) -> [f64; 4] {
    let mut sum = [0.0; 4];
    for seed in 0..SEEDS {
        let ends = download(seed, algorithm, path, protection.cloned());
        let bytes = ends.server.sent.bytes as f64;
        let fec = (ends.server.fec.repair_symbols_sent as f64, ends.client.fec.recovered as f64);
        let figures = [ends.duration.as_secs_f64(), bytes, fec.0, fec.1];
        sum.iter_mut().zip(figures).for_each(|(sum, figure)| *sum += figure);
    }
    sum
}

#[test]
fn lost_data_is_sent_again_as_repair_symbols() {
    for algorithm in [Algorithm::BBR, Algorithm::CUBIC] {
        for path in PATHS {
            let plain = total(algorithm, path, None);
            for name in POLICIES {
                let [time, bytes, repairs, recovered] =
                    total(algorithm, path, protection(name).as_ref());
                let (slower, more) = (time / plain[0], bytes / plain[1]);
                println!(
                    "{algorithm}, {path}, {name}: {slower:.3} times as long, {more:.3} times the \
                     bytes, {recovered} recovered by {repairs} repair symbols"
                );
                // Policies that protect the end may have nothing to recover if the queue drops
                // packets only at the beginning.
                let protects_all = ["sr-arq", "ac-rlnc"].contains(&name);
                assert!(recovered > 0.0 || !protects_all, "{algorithm}, {path}, {name}");
                assert!(slower < 1.1, "{algorithm}, {path}, {name}: {slower}");
                assert!(more < 1.2, "{algorithm}, {path}, {name}: {more}");
                if name == "sr-arq" {
                    assert!(recovered > repairs * 0.8, "{recovered} recovered by {repairs}");
                    assert!(more < 1.03, "{algorithm}, {path}: {more}");
                }
            }
        }
    }
}

/// At the end of a transfer a repair symbol saves the time to find out about a loss.
#[test]
fn a_protected_end_is_sooner_there() {
    let path = "rate=10mbit delay=50ms loss=bern:0.05";
    let small = |protection: Option<Protection>| {
        let times = (0..200).map(|seed| {
            let outcome = Scenario::new(seed)
                .link(&link("rate=10mbit delay=50ms"), &link(path))
                .protect(protection.clone())
                .transfer(Transfer::download(40_000))
                .run();
            outcome.unwrap().ends.duration
        });
        times.sum::<Duration>()
    };
    let (plain, bulk, tail) = (small(None), small(protection("bulk")), small(tail(3)));
    println!("none {plain:?}, bulk {bulk:?}, tail {tail:?}");
    assert!(bulk < plain * 97 / 100, "{bulk:?} {plain:?}");
}
