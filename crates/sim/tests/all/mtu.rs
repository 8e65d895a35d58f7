//! Paths whose longest packet changes during a transfer.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{ALGORITHMS, incremental, link, tail};
use sutura_proto::policy::Block;
use sutura_proto::{Algorithm, MtuDiscovery, Protection, SocketFeatures, TransportConfig};
use sutura_sim::{BulkOutcome, Scenario, Transfer};

const BYTES: u64 = 8_000_000;

/// Sockets that do everything.
fn sockets() -> SocketFeatures {
    SocketFeatures::default().with_ecn(true).with_unfragmented(true)
}

fn download(algorithm: Algorithm, protection: Option<Protection>, path: &str) -> BulkOutcome {
    let discovery = MtuDiscovery::default().with_retry_interval(Duration::from_secs(1));
    let config = TransportConfig::default()
        .with_congestion(Arc::new(algorithm))
        .with_mtu_discovery(Some(discovery));
    Scenario::new(9)
        .link(&link("rate=10mbit delay=25ms"), &link(path))
        .transport(&config)
        .protect(protection)
        .sockets(sockets())
        .transfer(Transfer::download(BYTES))
        .run()
        .unwrap_or_else(|failure| panic!("{failure}"))
}

#[test]
fn a_path_may_come_to_carry_less_and_more_again() {
    for algorithm in ALGORITHMS {
        let blocks = Protection::new(Arc::new(Block::new(10, 2).unwrap()));
        let others = [None, tail(2), incremental(2, Duration::from_millis(25))];
        for protection in others.into_iter().chain([Some(blocks.clone())]) {
            for loss in ["", " loss=bern:1%"] {
                let path = format!("rate=10mbit delay=25ms queue=60p{loss}");
                let steady = download(algorithm, protection.clone(), &path);
                let steps = format!("{path} step=2s,mtu=1228b step=4s,mtu=1500b");
                let changing = download(algorithm, protection.clone(), &steps);
                let [before, after] = [&steady, &changing].map(|run| run.transfers[0].time);
                let server = &changing.ends.server;
                let text = format!(
                    "{algorithm:?}, {protection:?},{loss}: {before:?} and {after:?}, {} black holes",
                    server.black_holes
                );
                println!("{text}");
                assert_eq!(steady.ends.server.udp_payload_size, 1452, "{text}");
                assert_eq!(server.udp_payload_size, 1452, "{text}");
                assert!(server.black_holes >= 1, "{text}");
                assert!(after < before + Duration::from_secs(2), "{text}");
                let recovered = changing.ends.client.fec.recovered;
                let mends = protection == Some(blocks.clone()) && !loss.is_empty();
                assert!(!mends || recovered > 0, "{text}");
            }
        }
    }
}
