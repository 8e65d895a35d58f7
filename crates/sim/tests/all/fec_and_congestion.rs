//! Erasure coding and congestion control at a bottleneck.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::common::datagrams::{Record, Shared, WithDatagrams};
use crate::common::{ALGORITHMS, MS, link, median, over};
use sutura_proto::{Algorithm, Metrics, Protection, TransportConfig};
use sutura_sim::{BulkClient, BulkServer, Clock, Progress, Scenario, Transfer};

const BYTES: u64 = 10_000_000;

fn protections() -> Vec<Protection> {
    let mut all = Vec::new();
    for delay in [Duration::ZERO, 25 * MS] {
        for burst in [1, 3] {
            all.push(Protection::tail(burst, delay));
            all.push(Protection::incremental(burst, delay));
        }
    }
    all
}

/// The outcome of a transfer.
#[derive(Debug)]
struct Outcome {
    time: Duration,
    /// When the sender's pacing rate first fell below three quarters of its peak.
    left_startup: Option<Duration>,
    /// The median of the smoothed round-trip time after the first two seconds, relative to the
    /// minimum round-trip time.
    rtt: f64,
    /// Bytes of repair symbols per byte transferred.
    repairs: f64,
}

fn median_rtt(figures: &[(Duration, Metrics)]) -> f64 {
    let later = figures.iter().filter(|(at, _)| *at > Duration::from_secs(2));
    let ratio = |m: &Metrics| m.smoothed_rtt.as_secs_f64() / m.min_rtt.as_secs_f64();
    median(later.map(|(_, metrics)| ratio(metrics)))
}

fn download(
    seed: u64,
    algorithm: Algorithm,
    loss: &str,
    protection: Option<Protection>,
) -> Outcome {
    let config = TransportConfig::default().with_congestion(Arc::new(algorithm));
    let watched = Scenario::new(seed)
        .link(&link("rate=10mbit delay=50ms"), &link(&format!("rate=10mbit delay=50ms {loss}")))
        .transport(&config)
        .protect(protection)
        .transfer(Transfer::download(BYTES))
        .watched()
        .unwrap_or_else(|failure| panic!("{failure}"));
    Outcome {
        time: watched.ends.duration,
        left_startup: watched.slowed(),
        rtt: median_rtt(&watched.metrics),
        repairs: watched.ends.server.fec.repair_bytes_sent as f64 / BYTES as f64,
    }
}

/// Compares the transfer with each protection to the transfer without protection. `slack` is how much
/// later Startup may end.
fn compare(seed: u64, loss: &str, tolerance: f64, slack: Duration) {
    let plain = download(seed, Algorithm::BBR, loss, None);
    let startup = plain.left_startup.unwrap();
    assert!(startup < Duration::from_secs(2), "{plain:?}");
    for protection in protections() {
        let what = format!("{protection}, {loss}, seed {seed}");
        let outcome = download(seed, Algorithm::BBR, loss, Some(protection));
        let left = outcome.left_startup.unwrap_or(Duration::MAX);
        assert!(left < startup + slack, "{what}: {outcome:?}, {plain:?}");
        assert!(outcome.rtt < 1.1, "{what}: {outcome:?}");
        // Repair symbols are the only cost of protection.
        assert!(outcome.repairs > 0.0 && outcome.repairs < 0.13, "{what}: {outcome:?}");
        let goodput = plain.time.as_secs_f64() / outcome.time.as_secs_f64();
        let expected = 1.0 / (1.0 + outcome.repairs);
        assert!(goodput > expected * (1.0 - tolerance), "{what}: {goodput}, {outcome:?}");
    }
}

#[test]
fn bbr_knows_the_path_as_soon_with_repair_symbols() {
    compare(1, "", 0.02, 50 * MS);
}

/// The comparison with random losses. They affect each transfer differently, hence the tolerance; by chance,
/// Startup may take one round more, and a round with a full queue is long.
#[test]
fn bbr_knows_the_path_as_soon_with_repair_symbols_and_loss() {
    for seed in 1..=3 {
        compare(seed, "loss=bern:0.01", 0.1, 500 * MS);
    }
}

/// The number of datagrams that each end sends.
const DATAGRAMS: u64 = 400;

/// Checks that every datagram written by one end was sent exactly once, and that each datagram that arrived
/// was delivered to the application exactly once.
fn check_datagrams(from: &Record, to: &Record, what: &str) {
    let sent: BTreeSet<u64> = from.packets.values().copied().collect();
    assert_eq!(from.written, DATAGRAMS, "{what}");
    assert!(sent.iter().copied().eq(0..DATAGRAMS), "{what}: {} sent", sent.len());
    assert_eq!(from.packets.len(), sent.len(), "{what}");
    let arrived = from.packets.iter().filter(|(pn, _)| to.arrived.contains(*pn));
    let arrived: BTreeSet<u64> = arrived.map(|(_, number)| *number).collect();
    let received: BTreeSet<u64> = to.received.iter().copied().collect();
    assert_eq!(received.len(), to.received.len(), "{what}");
    assert_eq!(arrived, received, "{what}");
}

/// Protected transfers both ways, interleaved with datagrams that fill whole packets. The simulator
/// fails the run if an end has data to send and does not send it.
fn with_datagrams(seed: u64, algorithm: Algorithm, loss: &str, protection: Protection) {
    let what = format!("{algorithm}, {protection}, {loss}, seed {seed}");
    let [up, down] = [Shared::default(), Shared::default()];
    let config = TransportConfig::default().with_congestion(Arc::new(algorithm));
    let protection = Some(protection);
    let transfer = Transfer { protection: protection.clone(), ..Transfer::both(500_000) };
    let client = BulkClient::new(vec![transfer; 4], 2, Duration::ZERO);
    let client = WithDatagrams::new(client, DATAGRAMS, 10 * MS, up.clone());
    let server = {
        let down = down.clone();
        move || {
            let app = BulkServer::new(protection.clone());
            WithDatagrams::new(app, DATAGRAMS, 10 * MS, down.clone())
        }
    };
    let scenario =
        over(seed, &format!("rate=10mbit delay=20ms queue=2000p {loss}")).transport(&config);
    let ends = scenario.drive(Clock::default(), client, server, |view| {
        let written = view.client.is_done() && view.server.is_some_and(WithDatagrams::is_done);
        let busy = view.client.app.is_busy() || view.client.app.started() == 0;
        Progress { done: written && view.client.app.is_done(), busy }
    });
    let ends = ends.unwrap_or_else(|failure| panic!("{what}: {failure}"));
    let (up, down) = (up.lock(), down.lock());
    check_datagrams(&up, &down, &what);
    check_datagrams(&down, &up, &what);
    for (end, record) in [(&ends.client, &up), (&ends.server, &down)] {
        assert_eq!((end.datagrams_dropped_in, end.datagrams_dropped_out), (0, 0), "{what}");
        assert!(end.fec.repair_symbols_sent > 0, "{what}");
        // The rest of a packet is its header, the frame header and the AEAD tag.
        let full = usize::from(config.udp_payload_size);
        let (min, max) = record.sizes.unwrap();
        assert!(max < full && min > full - 50, "{what}: {min} to {max}");
        if loss.is_empty() {
            assert_eq!(record.received.len() as u64, DATAGRAMS, "{what}");
        }
    }
    assert_eq!(ends.down.lost > 0, !loss.is_empty(), "{what}");
}

#[test]
fn the_largest_datagrams_go_beside_protected_streams() {
    for algorithm in ALGORITHMS {
        for loss in ["", "loss=bern:0.02"] {
            for seed in 1..=2 {
                for protection in protections() {
                    with_datagrams(seed, algorithm, loss, protection);
                }
            }
        }
    }
}
