//! Paths that are gone for nearly as long as the idle timeout.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{ALGORITHMS, MS, incremental, link};
use sutura_proto::policy::Auto;
use sutura_proto::{Algorithm, MAX_PROBE_TIMEOUT, Protection, TransportConfig, registry};
use sutura_sim::{
    BulkClient, BulkServer, Clock, MessagePlan, MessagesOutcome, Progress, Scenario, Transfer,
};

const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
const START: Duration = Duration::from_secs(1);
const RTT: Duration = Duration::from_millis(50);
/// A probe timeout sends fewer bytes, so this many show that the transfer goes on.
const FLOWING: u64 = 20_000;

fn transport(algorithm: Algorithm, fec: bool) -> TransportConfig {
    TransportConfig::default()
        .with_congestion(Arc::new(algorithm))
        .with_redundancy(fec.then(|| Arc::new(Auto::default()) as _))
        .with_max_idle_timeout(Some(IDLE_TIMEOUT))
}

/// Runs a transfer through an outage; returns how long after its end data flows again.
fn resumes(
    config: &TransportConfig,
    transfer: Transfer,
    outage: Duration,
    protection: Option<Protection>,
) -> Duration {
    let end = START + outage;
    let text = format!("rate=10mbit delay=25ms queue=60p outage=1s..{}ms", end.as_millis());
    let path = link(&text);
    let down = transfer.download > 0;
    let scenario = Scenario::new(5).link(&path, &path).transport(config);
    let app = BulkClient::new([transfer], 1, Duration::ZERO);
    let (mut before, mut resumed) = (0, None);
    let server = move || BulkServer::new(protection.clone());
    let ends = scenario.drive(Clock::default(), app, server, |view| {
        let progress = Progress { done: view.client.is_done(), busy: view.client.is_busy() };
        if resumed.is_some() {
            return progress;
        }
        let ends = view.ends();
        let received = if down { ends.client.received.bytes } else { ends.server.received.bytes };
        if view.now < end {
            before = received;
        } else if received > before + FLOWING {
            resumed = Some(view.now - end);
        }
        progress
    });
    ends.unwrap_or_else(|failure| panic!("{failure}"));
    resumed.unwrap()
}

#[test]
fn a_transfer_goes_on_when_the_path_is_back() {
    // A probe, its acknowledgement, and some round trips of a window that starts from the least.
    let soon = MAX_PROBE_TIMEOUT + 8 * RTT;
    for algorithm in ALGORITHMS {
        for fec in [false, true] {
            for transfer in [Transfer::download(4_000_000), Transfer::upload(4_000_000)] {
                for outage in [20, 25].map(Duration::from_secs) {
                    let config = transport(algorithm, fec);
                    let resumed = resumes(&config, transfer.clone(), outage, None);
                    println!("{algorithm:?}, FEC {fec}, {transfer:?}, {outage:?}: {resumed:?}");
                    assert!(resumed <= soon, "{algorithm:?}, {fec}, {outage:?}: {resumed:?}");
                }
            }
        }
    }
}

#[test]
fn held_data_does_not_wait_for_longer() {
    let soon = MAX_PROBE_TIMEOUT + 8 * RTT;
    for algorithm in ALGORITHMS {
        let protection = incremental(3, 25 * MS);
        let transfer = Transfer { protection: protection.clone(), ..Transfer::download(4_000_000) };
        let outage = Duration::from_secs(25);
        let resumed = resumes(&transport(algorithm, true), transfer, outage, protection);
        assert!(resumed <= soon, "{algorithm:?}: {resumed:?}");
    }
}

#[test]
fn small_messages_that_were_lost_together_share_packets() {
    let path = link("rate=10mbit delay=25ms outage=2s..2500ms");
    let run = |policy: Option<&str>| {
        let redundancy = policy.map(|policy| registry::redundancy().find(policy).unwrap());
        let config = transport(Algorithm::CUBIC, false).with_redundancy(redundancy);
        let scenario = Scenario::new(5).link(&path, &path).transport(&config);
        scenario.messages(MessagePlan::steady(400, 150, 15 * MS)).unwrap()
    };
    let packets = |outcome: &MessagesOutcome| {
        let server = outcome.ends.server;
        server.sent.datagrams - server.fec.repair_symbols_sent
    };
    let (plain, protected) = (run(None), run(Some("incremental:burst=1")));
    let lost = protected.ends.server.packets_lost;
    println!("{lost} lost, {} packets and {}", packets(&plain), packets(&protected));
    assert!(lost > 30 && packets(&protected) < packets(&plain) + lost / 3);
}
