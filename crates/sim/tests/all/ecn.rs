//! Explicit congestion notification at a real bottleneck: queues that mark instead of dropping.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{ALGORITHMS, incremental, link, tail};
use sutura_proto::{Algorithm, Protection, SocketFeatures, TransportConfig};
use sutura_sim::{BulkOutcome, Scenario, Transfer};

const BYTES: u64 = 5_000_000;

fn download(
    seed: u64,
    algorithm: Algorithm,
    protection: Option<Protection>,
    marks: bool,
    path: &str,
) -> BulkOutcome {
    let config = TransportConfig::default().with_congestion(Arc::new(algorithm));
    Scenario::new(seed)
        .link(&link("rate=10mbit delay=25ms"), &link(path))
        .transport(&config)
        .protect(protection)
        .sockets(SocketFeatures::default().with_ecn(marks))
        .transfer(Transfer::download(BYTES))
        .run()
        .unwrap_or_else(|failure| panic!("{failure}"))
}

#[test]
fn a_queue_that_marks_need_not_drop() {
    // A bandwidth-delay product of 62 kB; the queue marks at half of it and holds twice as much.
    let path = "rate=10mbit delay=25ms queue=125kb mark=31kb";
    for algorithm in ALGORITHMS {
        for protection in [None, tail(2), incremental(1, Duration::from_millis(25))] {
            let [without, with] =
                [false, true].map(|marks| download(5, algorithm, protection.clone(), marks, path));
            let (before, after) =
                (&without.ends.server.packets_lost, &with.ends.server.packets_lost);
            let text = format!(
                "{algorithm:?}, {protection:?}: {:?} and {before} lost without marks, {:?} and {after} with",
                without.transfers[0].time, with.transfers[0].time
            );
            println!("{text}");
            assert!(with.ends.server.ecn_capable && !without.ends.server.ecn_capable, "{text}");
            assert!(after <= before, "{text}");
            assert!(with.transfers[0].time < without.transfers[0].time.mul_f64(1.1), "{text}");
        }
    }
}
