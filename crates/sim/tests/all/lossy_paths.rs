//! Transfers over paths that lose packets at any rate.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{MS, link, linked, median, over, quinn_connects, tail};
use sutura_proto::{Algorithm, Protection, TransportConfig};
use sutura_sim::quinn::{QuinnHost, null_client, null_server};
use sutura_sim::{BulkClient, BulkOutcome, BulkServer, Transfer};

const PATH: &str = "rate=10mbit delay=50ms loss=bern:0.0235";
const SEEDS: u64 = 24;

fn mean(times: &[Duration]) -> Duration {
    times.iter().sum::<Duration>() / u32::try_from(times.len()).unwrap()
}

fn run(
    seed: u64,
    transport: &TransportConfig,
    protection: Option<Protection>,
    transfers: Vec<Transfer>,
) -> BulkOutcome {
    let scenario = over(seed, PATH)
        .transport(transport)
        .protect(protection)
        .transfers(transfers)
        .gap(200 * MS);
    scenario.run().unwrap_or_else(|failure| panic!("{failure}"))
}

/// The mean time of a download of 1 MB with BBR.
fn megabyte(protection: Option<&Protection>) -> Duration {
    let transport = TransportConfig::default().with_congestion(Arc::new(Algorithm::BBR));
    let times = (0..SEEDS).map(|seed| {
        let plan = vec![Transfer::download(1_000_000)];
        run(seed, &transport, protection.cloned(), plan).transfers[0].time
    });
    mean(&times.collect::<Vec<_>>())
}

#[test]
fn waiting_for_repair_costs_no_time() {
    let plain = megabyte(None);
    for burst in [1, 2, 3] {
        let protected = megabyte(tail(burst).as_ref());
        println!("{burst} repair symbols: {protected:?}, none: {plain:?}");
        // Which packets are lost is not the same with and without repair symbols.
        assert!(protected < plain * 101 / 100, "{burst}: {protected:?}, {plain:?}");
    }
}

/// A download that warms the connection up, and 50 of 32 kB.
fn plan() -> Vec<Transfer> {
    let mut plan = vec![Transfer::download(1_000_000)];
    plan.extend(vec![Transfer::download(32_000); 50]);
    plan
}

/// Times of quinn's downloads of 32 kB after a download of 1 MB.
fn pages_of_quinn(seed: u64) -> Vec<Duration> {
    let accept = Box::new(|| Box::new(BulkServer::default()) as _);
    let server = QuinnHost::server(Arc::new(null_server(b"perf")), accept, seed);
    let (mut network, client, _) = linked(seed, &link(PATH), QuinnHost::client(seed), server);
    let app = BulkClient::new(plan(), 1, 200 * MS);
    let handle = quinn_connects(&mut network, client, null_client(b"perf"), app);
    loop {
        assert!(network.step().unwrap());
        let host = network.node::<QuinnHost>(client).unwrap();
        let app = host.app::<BulkClient>(handle).unwrap();
        if app.is_done() {
            let times = app.completed().iter().skip(1);
            return times.map(|c| c.completed - c.started).collect();
        }
    }
}

/// Times of our downloads of the same sizes: the time of the first download, and the times of the later ones.
fn pages_of_ours(seed: u64) -> (Duration, Vec<Duration>) {
    let transport = TransportConfig::default().with_congestion(Arc::new(Algorithm::CUBIC));
    let times: Vec<_> =
        run(seed, &transport, None, plan()).transfers.iter().map(|t| t.time).collect();
    (times[0], times[1..].to_vec())
}

#[test]
fn cubic_is_not_ruined_by_losses_that_it_does_not_cause() {
    let (mut warm_up, mut ours, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    for seed in 0..6 {
        let (first, pages) = pages_of_ours(seed);
        warm_up.push(first);
        ours.extend(pages);
        theirs.extend(pages_of_quinn(seed));
    }
    let (first, ours, theirs) = (median(warm_up), median(ours), median(theirs));
    println!("1 MB in {first:?}; 32 kB in {ours:?}, quinn {theirs:?}");
    // A loss-free link takes 0.95 s, and plain CUBIC needs seven and more.
    assert!(first < Duration::from_secs(2), "{first:?}");
    assert!(ours < theirs, "{ours:?}, {theirs:?}");
}

/// The share of the path's rate at which 20 MB arrive, in percent: the median of some seeds.
fn share_of(path: &str, mbit: u32) -> u32 {
    const BYTES: u64 = 20_000_000;
    let transport = TransportConfig::default().with_congestion(Arc::new(Algorithm::BBR));
    let times = (0..3).map(|seed| {
        let scenario = over(seed, path).transport(&transport);
        let outcome = scenario.transfer(Transfer::download(BYTES)).run();
        outcome.unwrap_or_else(|failure| panic!("{failure}")).transfers[0].time
    });
    let least = BYTES as f64 * 8e-6 / f64::from(mbit);
    let time: Duration = median(times.collect::<Vec<_>>());
    (100.0 * least / time.as_secs_f64()) as u32
}

#[test]
fn long_paths_are_filled_whatever_they_lose() {
    // Such a path holds 0.75 or 1 MB: a window of flow control has to grow while data in it waits for repairs. Two thirds
    // of the time without losses are Startup.
    for (path, mbit, least) in [
        ("rate=20mbit queue=500p delay=150ms", 20, 60),
        ("rate=20mbit queue=500p delay=150ms loss=bern:0.01", 20, 52),
        ("rate=20mbit queue=500p delay=150ms loss=bern:0.05", 20, 40),
        ("rate=20mbit queue=500p delay=150ms loss=bern:0.1", 20, 30),
        ("rate=40mbit queue=500p delay=100ms loss=gt:100,4.8,0.95,0.006", 40, 33),
    ] {
        let share = share_of(path, mbit);
        println!("{path}: {share} %");
        assert!(share >= least, "{path}: {share} %");
    }
}
