//! Parity symbols of blocks: the number that n/k demands, and all of them, at any rate of the link.

use std::sync::Arc;

use crate::common::link;
use sutura_proto::{Algorithm, CodeSet, FecConfig, FecStats, TransportConfig, registry};
use sutura_sim::{Scenario, UpdatePlan};

/// Updates of a run, and the messages of each. Most messages are one packet, and so one symbol.
const UPDATES: usize = 20;
const MESSAGES: usize = 100;
const BYTES: usize = 1300;

/// The counts of a sender of updates that are protected by `policy`, over a path with a round-trip time of
/// 100 ms.
fn updates(policy: &str, mbit: u64, algorithm: Algorithm) -> FecStats {
    let config = TransportConfig::default()
        .with_redundancy(Some(registry::redundancy().find(policy).unwrap()))
        .with_congestion(Arc::new(algorithm))
        .with_udp_payload_size(1472)
        .with_max_concurrent_uni_streams(4096)
        .with_fec(Some(FecConfig::default().with_codes(CodeSet::all())));
    let path = link(&format!("rate={mbit}mbit delay=50ms queue=9mb loss=bern:0.0025"));
    let plan = UpdatePlan::equal(UPDATES, MESSAGES, BYTES);
    let outcome = Scenario::new(7).link(&path, &path).transport(&config).updates(&plan);
    outcome.unwrap_or_else(|failure| panic!("{policy}: {failure}")).ends.server.fec
}

/// At 10 Mbit/s the first symbols of an update are acknowledged long before its parity symbols are sent.
#[test]
fn all_parity_symbols_of_an_update_are_sent() {
    let policies = [
        ("block:rate=1.05", 5),
        ("block:rate=1.1", 10),
        ("block:rate=1.05,code=ldpc", 5),
        ("block:rate=1.05,code=window", 5),
        ("block:code=2d,rows=10,columns=10", 20),
        ("block:source=100,parity=5", 5),
    ];
    let controllers = [Algorithm::BBR, Algorithm::CUBIC];
    let paths = [10, 100].map(|mbit| controllers.map(|algorithm| (mbit, algorithm)));
    for (mbit, algorithm) in paths.into_iter().flatten() {
        for (policy, each) in policies {
            let fec = updates(policy, mbit, algorithm);
            let first = fec.source_symbols_sent - fec.source_symbols_resent;
            let (updates, sent) = (UPDATES as u64, fec.repair_symbols_sent);
            let at = format!("{policy}, {mbit} Mbit/s, {algorithm}: {sent} for {first}");
            assert!((updates * 100..updates * 102).contains(&first), "{at}");
            assert!(sent >= updates * each, "{at}");
            // An update in which a message took two packets may get another repair symbol.
            let by_rate = policy.contains("rate=");
            assert!(!by_rate || sent <= updates * (each + 1), "{at}");
        }
    }
}
