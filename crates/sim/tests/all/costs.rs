//! The costs of protection, and the properties that it must not change.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{ALGORITHMS, MS, incremental, link, over, tail};
use sutura_proto::{Algorithm, Protection, TransportConfig};
use sutura_sim::{BulkOutcome, DatagramPlan, FailureKind, Scenario, StreamPlan, Transfer};

const MEGABYTE: u64 = 1_000_000;

fn without_fec() -> TransportConfig {
    TransportConfig::default().with_fec(None)
}

fn download(
    seed: u64,
    path: &str,
    bytes: u64,
    protection: Option<Protection>,
    config: &TransportConfig,
) -> BulkOutcome {
    over(seed, path)
        .transport(config)
        .protect(protection)
        .transfer(Transfer::download(bytes))
        .run()
        .unwrap_or_else(|failure| panic!("{failure}"))
}

/// Sequential transfers of 32 kB on one warm connection: with BBR and after a first, larger
/// transfer, each of them fits into the window.
fn downloads(seed: u64, down: &str, count: usize, protection: Option<Protection>) -> BulkOutcome {
    Scenario::new(seed)
        .link(&link("rate=20mbit delay=25ms"), &link(down))
        .transport(&TransportConfig::default().with_congestion(Arc::new(Algorithm::BBR)))
        .protect(protection)
        .transfer(Transfer::download(MEGABYTE))
        .transfers(std::iter::repeat_n(Transfer::download(32_000), count))
        .gap(200 * MS)
        .run()
        .unwrap_or_else(|failure| panic!("{failure}"))
}

const CLEAN: &str = "rate=100mbit delay=10ms queue=10000p";

#[test]
fn protection_that_is_idle_costs_not_one_packet() {
    for (seed, bytes) in [(1, 1), (2, 1150), (3, 32_000), (4, MEGABYTE), (5, 5 * MEGABYTE)] {
        let with = download(seed, CLEAN, bytes, None, &TransportConfig::default()).ends;
        let without = download(seed, CLEAN, bytes, None, &without_fec()).ends;
        assert!(with.client.fec.negotiated && with.server.fec.negotiated);
        assert!(!without.client.fec.negotiated && !without.server.fec.negotiated);
        assert_eq!((with.down.lost, with.down.overflow), (0, 0));
        assert_eq!(with.down.sent, without.down.sent, "{bytes} bytes, downwards");
        assert_eq!(with.up.sent, without.up.sent, "{bytes} bytes, upwards");
        // Only the transport parameter may add bytes.
        let more = with.down.sent_bytes.saturating_sub(without.down.sent_bytes);
        assert!(more < 64, "{bytes} bytes: {more} more on the wire");
    }
}

#[test]
fn protection_of_the_tail_costs_a_percent() {
    let config = TransportConfig::default();
    for seed in 0..5 {
        let with = download(seed, CLEAN, MEGABYTE, tail(3), &config).ends;
        let without = download(seed, CLEAN, MEGABYTE, None, &config).ends;
        assert_eq!(with.server.fec.repair_symbols_sent, 3, "seed {seed}");
        assert_eq!(with.client.fec.repair_symbols_received, 3, "seed {seed}");
        let (with, without) = (with.down.sent_bytes, without.down.sent_bytes);
        assert!(with > without, "seed {seed}: {with} and {without}");
        // The headers of 868 source symbols, and three repair symbols.
        assert!(with * 1_000 <= without * 1_011, "seed {seed}: {with} and {without}");
    }
}

#[test]
fn congestion_control_hears_of_every_loss() {
    let path = "rate=50mbit delay=20ms queue=10000p loss=bern:0.03";
    let protections = [None, tail(3), incremental(3, Duration::ZERO)];
    for congestion in ALGORITHMS {
        for (seed, protection) in (0..9).zip(protections.iter().cycle()) {
            let config = TransportConfig::default().with_congestion(Arc::new(congestion));
            let ends = download(seed, path, MEGABYTE, protection.clone(), &config).ends;
            assert!(ends.down.lost > 10, "seed {seed}: {} drops", ends.down.lost);
            let incremental =
                protection.as_ref().is_some_and(|p| p.factory().name() == "incremental");
            assert!(!incremental || ends.client.fec.recovered > 3, "seed {seed}");
            let noticed = ends.server.packets_lost - ends.server.spurious_losses;
            let (sent, lost) = (ends.down.sent, ends.down.lost);
            // During the handshake, a datagram may hold several packets. Packets that only hold
            // acknowledgements are not ack-eliciting, so their loss goes unnoticed.
            assert!(
                noticed.abs_diff(lost) <= 3,
                "seed {seed}, {congestion:?}, {protection:?}: {noticed} of {lost} losses noticed, \
                 {sent} sent"
            );
        }
    }
}

#[test]
fn what_was_recovered_is_not_sent_again() {
    let path = "rate=20mbit delay=25ms loss=bern:0.02";
    for seed in 0..4 {
        let again = |outcome: &BulkOutcome| -> u64 {
            outcome.transfers[1..].iter().map(|t| t.retransmitted_down).sum()
        };
        let plain = downloads(seed, path, 200, None);
        let protected = downloads(seed, path, 200, tail(3));
        let (plain, with) = (again(&plain), again(&protected));
        let stats = protected.ends;
        assert!(stats.client.fec.recovered > 20, "seed {seed}: {:?}", stats.client.fec);
        assert!(with * 4 < plain, "seed {seed}: {with} bytes again, {plain} without protection");
        // A transfer that lost packets and repaired all of the losses retransmits nothing.
        let mended =
            |t: &&sutura_sim::TransferReport| t.recovered > 0 && t.recovered >= t.lost_down;
        for transfer in protected.transfers[1..].iter().filter(mended) {
            assert_eq!(transfer.retransmitted_down, 0, "seed {seed}: {transfer:?}");
        }
    }
}

#[test]
fn a_scenario_repeats_itself() {
    let run = |seed| {
        let path = "rate=10mbit delay=20ms jitter=3ms,reorder loss=bern:0.05 corrupt=0.01";
        let config = TransportConfig::default();
        let outcome = download(seed, path, 300_000, tail(2), &config);
        (outcome.transfers, outcome.ends.duration, outcome.ends.up, outcome.ends.down)
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}

#[test]
fn a_stream_takes_the_delay_of_the_path_where_nothing_is_lost() {
    let path = link("rate=10mbit delay=50ms");
    let plan = StreamPlan::frames(120);
    let outcome = Scenario::new(1).link(&path, &path).stream(plan).unwrap();
    assert_eq!(outcome.delays.iter().map(|d| d.bytes).sum::<u64>(), 120 * 5000);
    // In the beginning, the congestion window delays messages.
    let settled = || outcome.delays[outcome.delays.len() / 2..].iter().map(|d| d.delay);
    let (min, max) = (settled().min().unwrap(), settled().max().unwrap());
    // Sending the first datagram of a message takes 1 ms, sending all of them 4.2 ms.
    assert!(min > 50 * MS && max < 60 * MS, "{min:?} to {max:?}");
}

#[test]
fn datagrams_arrive_or_are_lost_with_their_packets() {
    let up = link("rate=10mbit delay=30ms loss=bern:0.03");
    let plan = DatagramPlan { size: 900, interval: 20 * MS, count: 1000 };
    // With BBR, the window stays larger than the load.
    let config = TransportConfig::default().with_congestion(Arc::new(Algorithm::BBR));
    let down = link("rate=10mbit delay=30ms");
    let outcome = Scenario::new(1).link(&up, &down).transport(&config).datagrams(plan).unwrap();
    let arrived = outcome.delays.len() as u64;
    assert!((940..1000).contains(&arrived), "{arrived} arrived");
    let lost = 1000 - arrived;
    assert!(lost.abs_diff(outcome.ends.up.lost) <= 5, "{lost}, {}", outcome.ends.up.lost);
    assert!(outcome.delays.is_sorted_by_key(|(number, _)| *number));
    let delays = outcome.delays.iter().map(|(_, delay)| *delay);
    let (min, max) = (delays.clone().min().unwrap(), delays.max().unwrap());
    assert!(min > 30 * MS && max < 60 * MS, "{min:?} to {max:?}");
}

#[test]
fn echoes_take_both_ways_and_are_lost_on_either() {
    let plan = DatagramPlan { size: 200, interval: 20 * MS, count: 500 };
    let clear = link("rate=10mbit delay=30ms");
    let outcome = Scenario::new(1).link(&clear, &clear).echoes(plan, None).unwrap();
    let numbers: Vec<u64> = outcome.delays.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (0..500).collect::<Vec<_>>());
    assert!(outcome.delays.iter().all(|(_, delay)| *delay > 60 * MS && *delay < 80 * MS));
    let lossy = link("rate=10mbit delay=30ms loss=bern:0.1");
    let arrived = |protection| {
        let scenario = Scenario::new(1).link(&lossy, &lossy);
        scenario.echoes(plan, protection).unwrap().delays.len()
    };
    let (plain, with) = (arrived(None), arrived(Some(Protection::tail(1, Duration::ZERO))));
    // 0.9 * 0.9 of them.
    assert!((370..440).contains(&plain), "{plain}");
    assert!(with > 490, "{with}");
}

#[test]
fn a_failure_says_its_seed() {
    let dead = link("loss=bern:1");
    let scenario = Scenario::new(99).link(&dead, &dead).transfer(Transfer::download(1)).trace(5);
    let failure = scenario.run().unwrap_err();
    assert!(matches!(failure.kind, FailureKind::ConnectionLost(_)), "{failure}");
    assert!(failure.to_string().starts_with("seed 99, at "), "{failure}");
    assert!(failure.trace.contains("dropped (Loss)"), "{failure}");
}
