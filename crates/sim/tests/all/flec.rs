//! The policies of Michel 2022 (FlEC) at work: lost data is sent again as repair symbols; and beside them the
//! policies of QUIRL, which must not make a download slower either.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{link, median, tail};
use sutura_proto::{Algorithm, Protection, TransportConfig};
use sutura_sim::{Ends, Scenario, Transfer};

const BYTES: u64 = 1_000_000;
const SEEDS: u64 = 20;
const POLICIES: [&str; 6] = ["sr-arq", "ac-rlnc", "bulk", "buffer", "background", "burst"];
const PATHS: [&str; 3] = [
    "rate=10mbit delay=25ms loss=bern:0.02",
    "rate=10mbit delay=25ms loss=ge:0.01,0.33,1,0",
    "rate=10mbit delay=25ms queue=60kb",
];

fn protection(name: &str) -> Option<Protection> {
    Some(Protection::new(sutura_research::redundancy().find(name).unwrap()))
}

fn download(seed: u64, algorithm: Algorithm, path: &str, protection: Option<Protection>) -> Ends {
    let config = TransportConfig::default().with_congestion(Arc::new(algorithm));
    let outcome = Scenario::new(seed)
        .link(&link("rate=10mbit delay=25ms"), &link(path))
        .transport(&config)
        .protect(protection)
        .transfer(Transfer::download(BYTES))
        .run();
    outcome.unwrap_or_else(|failure| panic!("{algorithm}, {path}, seed {seed}: {failure}")).ends
}

/// The median time of all seeds, and their bytes on the wire, repair symbols and recovered symbols
/// together. CUBIC takes 1 to 3 s, depending on where in its start the first loss falls, so that a sum would
/// tell more of the start than of the policy.
fn measured(algorithm: Algorithm, path: &str, protection: Option<&Protection>) -> [f64; 4] {
    let mut times = Vec::new();
    let (mut bytes, mut repairs, mut recovered) = (0, 0, 0);
    for seed in 0..SEEDS {
        let ends = download(seed, algorithm, path, protection.cloned());
        times.push(ends.duration.as_secs_f64());
        bytes += ends.server.sent.bytes;
        repairs += ends.server.fec.repair_symbols_sent;
        recovered += ends.client.fec.recovered;
    }
    [median(times), bytes as f64, repairs as f64, recovered as f64]
}

#[test]
fn lost_data_is_sent_again_as_repair_symbols() {
    for algorithm in [Algorithm::BBR, Algorithm::CUBIC] {
        for path in PATHS {
            let plain = measured(algorithm, path, None);
            for name in POLICIES {
                let [time, bytes, repairs, recovered] =
                    measured(algorithm, path, protection(name).as_ref());
                let (slower, more) = (time / plain[0], bytes / plain[1]);
                println!(
                    "{algorithm}, {path}, {name}: {slower:.3} times as long, {more:.3} times the \
                     bytes, {recovered} recovered by {repairs} repair symbols"
                );
                // Policies that protect the end may have nothing to recover if the queue drops
                // packets only at the beginning.
                let protects_all = ["sr-arq", "ac-rlnc"].contains(&name);
                assert!(recovered > 0.0 || !protects_all, "{algorithm}, {path}, {name}");
                // Causal coding adds one repair symbol for each lost packet, also where the queue drops
                // repair symbols. The other policies add none for which the path has no room; the remaining
                // losses are other packets that meet the full queue, which are most with `burst`.
                let most = match name {
                    "ac-rlnc" => 1.3,
                    "burst" => 1.06,
                    _ => 1.05,
                };
                assert!(slower < most, "{algorithm}, {path}, {name}: {slower}");
                assert!(more < most, "{algorithm}, {path}, {name}: {more}");
                if name == "sr-arq" {
                    assert!(recovered > repairs * 0.8, "{recovered} recovered by {repairs}");
                    assert!(more < 1.04, "{algorithm}, {path}: {more}");
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
