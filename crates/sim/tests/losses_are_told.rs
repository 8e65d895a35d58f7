//! The controller hears of every lost packet, whether redundancy mends the loss or not (RFC 9265).
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::{ALGORITHMS, incremental, link, tail};
use sutura_proto::policy::{
    Acked, CongestionController, CongestionFactory, LossFloor, Lost, PacketState, PathParameters,
    RttEstimator, Sent,
};
use sutura_proto::{Algorithm, Protection, SpaceId, TransportConfig};
use sutura_sim::{Ends, Scenario, Transfer};

/// How many packets had which outcome.
#[derive(Debug, Default)]
struct Ledger {
    sent: AtomicU64,
    acked: AtomicU64,
    lost: AtomicU64,
    refuted: AtomicU64,
}

fn count(of: &AtomicU64, packets: usize) {
    of.fetch_add(packets as u64, Ordering::Relaxed);
}

/// Builds controllers that keep a ledger each.
#[derive(Debug)]
struct Audited {
    algorithm: Algorithm,
    ledgers: Mutex<Vec<Arc<Ledger>>>,
}

impl CongestionFactory for Audited {
    fn name(&self) -> &str {
        self.algorithm.name()
    }

    fn build(&self, path: &PathParameters) -> Box<dyn CongestionController> {
        let ledger = Arc::new(Ledger::default());
        self.ledgers.lock().unwrap().push(ledger.clone());
        Box::new(Auditor { inner: self.algorithm.build(path), ledger })
    }
}

#[derive(Debug)]
struct Auditor {
    inner: Box<dyn CongestionController>,
    ledger: Arc<Ledger>,
}

impl CongestionController for Auditor {
    fn on_packet_sent(&mut self, now: Instant, packet: &Sent) -> PacketState {
        count(&self.ledger.sent, 1);
        self.inner.on_packet_sent(now, packet)
    }

    fn on_packets_acked(
        &mut self,
        now: Instant,
        acked: &[Acked],
        rtt: &RttEstimator,
        in_flight: u64,
        app_limited: bool,
    ) {
        count(&self.ledger.acked, acked.len());
        self.inner.on_packets_acked(now, acked, rtt, in_flight, app_limited);
    }

    fn on_packets_lost(&mut self, now: Instant, lost: &[Lost], persistent: bool, in_flight: u64) {
        count(&self.ledger.lost, lost.len());
        self.inner.on_packets_lost(now, lost, persistent, in_flight);
    }

    fn on_loss_floor(&mut self, floor: &LossFloor) {
        self.inner.on_loss_floor(floor);
    }

    fn on_ecn_ce(&mut self, now: Instant, sent: Instant, newly_marked: u64, in_flight: u64) {
        self.inner.on_ecn_ce(now, sent, newly_marked, in_flight);
    }

    fn on_spurious_loss(&mut self, now: Instant, packets: &[Lost]) {
        count(&self.ledger.refuted, packets.len());
        self.inner.on_spurious_loss(now, packets);
    }

    fn on_discarded(&mut self, space: SpaceId, bytes: u64) {
        self.inner.on_discarded(space, bytes);
    }

    fn on_mtu_changed(&mut self, mtu: u16) {
        self.inner.on_mtu_changed(mtu);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    fn slow_start_threshold(&self) -> Option<u64> {
        self.inner.slow_start_threshold()
    }

    fn pacing_rate(&self, rtt: &RttEstimator) -> Option<u64> {
        self.inner.pacing_rate(rtt)
    }

    fn name(&self) -> &str {
        self.inner.name()
    }
}

/// Downloads over a path that disturbs what the server sends; what happened and the server's ledger.
fn run(algorithm: Algorithm, down: &str, protection: Option<Protection>) -> (Ends, Arc<Ledger>) {
    let factory = Arc::new(Audited { algorithm, ledgers: Mutex::default() });
    let config = TransportConfig { congestion: factory.clone(), ..TransportConfig::default() };
    let outcome = Scenario::new(1)
        .link(&link("rate=10mbit delay=25ms"), &link(down))
        .transport(&config)
        .protect(protection)
        .transfers(vec![Transfer::download(50_000); 40])
        .gap(Duration::from_millis(300))
        .run();
    let ends = outcome.unwrap_or_else(|failure| panic!("{algorithm}, {down}: {failure}")).ends;
    let ledgers = factory.ledgers.lock().unwrap();
    let busiest = ledgers.iter().max_by_key(|ledger| ledger.sent.load(Ordering::Relaxed));
    (ends, busiest.unwrap().clone())
}

#[test]
fn every_loss_reaches_the_controller() {
    let paths = [
        "rate=10mbit delay=25ms loss=bern:0.05",
        "rate=10mbit delay=25ms loss=bern:0.05 reorder=0.1,10ms",
        "rate=10mbit delay=25ms queue=20kb loss=bern:0.02",
    ];
    for algorithm in ALGORITHMS {
        for down in paths {
            for protection in [None, tail(3), incremental(3, Duration::from_millis(5))] {
                let fec = protection.as_ref().map_or("none".into(), ToString::to_string);
                let what = format!("{algorithm}, {down}, {fec}");
                let (ends, ledger) = run(algorithm, down, protection);
                let [sent, acked, lost, refuted] =
                    [&ledger.sent, &ledger.acked, &ledger.lost, &ledger.refuted]
                        .map(|of| of.load(Ordering::Relaxed));
                let dropped = ends.down.lost + ends.down.overflow;
                assert!(lost - refuted <= dropped, "{what}: {lost}, {refuted}, {dropped}");
                // Acknowledgements alone are not under congestion control. What is still on its way
                // in the end, or not yet known to be lost, has no outcome.
                let beside = ends.server.sent.packets - sent;
                let open = sent - acked - lost;
                let untold = ends.server.spurious_losses - refuted;
                assert!(untold <= beside, "{what}: {untold} refutations are hidden");
                let hidden = dropped - (lost - refuted);
                println!("{what}: {dropped} dropped, {lost} lost, {refuted} refuted, {open} open");
                assert!(hidden <= beside + open, "{what}: {hidden} of {dropped} are hidden");
                // Those are fewer than what redundancy recovered, so that it hides nothing.
                let recovered = ends.client.fec.recovered;
                assert_eq!(recovered > 0, fec != "none", "{what}");
                assert!(fec == "none" || beside + open < recovered, "{what}: {beside}, {open}");
            }
        }
    }
}
