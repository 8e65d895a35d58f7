//! A congestion controller defined outside the transport: it fulfils the contract, is told exactly the
//! outcome of every packet, recovered or not (RFC 9265), and alone determines how much is sent.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::common::{ALGORITHMS, incremental, link, tail};
use sutura_proto::policy::{
    Acked, CongestionController, CongestionFactory, LossFloor, Lost, Packet, PacketState,
    PathParameters, RttEstimator, Sent,
};
use sutura_proto::{Algorithm, Protection, SpaceId, TransportConfig, conformance};
use sutura_sim::{BulkOutcome, Ends, Scenario, Transfer};

/// Creates controllers that delegate to another algorithm and keep track of every packet.
#[derive(Debug)]
struct Ledgers {
    algorithm: Algorithm,
    /// The totals of each controller.
    totals: Mutex<Vec<Arc<Totals>>>,
}

impl Ledgers {
    fn new(algorithm: Algorithm) -> Self {
        Self { algorithm, totals: Mutex::default() }
    }
}

/// How many packets had which outcome.
#[derive(Debug, Default)]
struct Totals {
    sent: AtomicU64,
    acked: AtomicU64,
    lost: AtomicU64,
    refuted: AtomicU64,
}

fn count(of: &AtomicU64, packets: usize) {
    of.fetch_add(packets as u64, Ordering::Relaxed);
}

impl CongestionFactory for Ledgers {
    fn name(&self) -> &str {
        "ledger"
    }

    fn build(&self, path: &PathParameters) -> Box<dyn CongestionController> {
        let totals = Arc::new(Totals::default());
        self.totals.lock().unwrap().push(totals.clone());
        Box::new(Ledger {
            inner: self.algorithm.build(path),
            totals,
            written: 0,
            flight: Entries::new(),
            lost: Entries::new(),
            gone: Entries::new(),
        })
    }
}

/// The controller's note about a packet.
#[derive(Debug)]
struct Entry {
    bytes: u64,
    /// The state that the connection stores for this controller.
    note: PacketState,
    /// The state that the inner algorithm asked to store.
    inner: PacketState,
}

type Entries = BTreeMap<(SpaceId, u64), Entry>;

#[derive(Debug)]
struct Ledger {
    inner: Box<dyn CongestionController>,
    totals: Arc<Totals>,
    /// The number of states handed out, which makes each of them unique.
    written: u64,
    flight: Entries,
    lost: Entries,
    /// Packets of discarded packet number spaces.
    gone: Entries,
}

impl Ledger {
    fn in_flight(&self) -> u64 {
        self.flight.values().map(|entry| entry.bytes).sum()
    }
}

/// Removes `packets` from `account`, which must contain all of them.
fn settle(account: &mut Entries, packets: &[Packet]) -> Vec<(Packet, Entry)> {
    let settle = |packet: &Packet| {
        let entry = account.remove(&(packet.space, packet.pn)).expect("a packet of the account");
        assert_eq!((entry.bytes, entry.note), (packet.bytes, packet.state));
        let mut packet = *packet;
        packet.state = entry.inner;
        (packet, entry)
    };
    packets.iter().map(settle).collect()
}

/// The packets with the state of the inner algorithm.
fn inner(settled: &[(Packet, Entry)]) -> Vec<Packet> {
    settled.iter().map(|(packet, _)| *packet).collect()
}

impl CongestionController for Ledger {
    fn on_packet_sent(&mut self, now: Instant, packet: &Sent) -> PacketState {
        assert_eq!(packet.in_flight, self.in_flight());
        count(&self.totals.sent, 1);
        self.written += 1;
        let words = [self.written, packet.pn, packet.bytes, packet.space as u64, !self.written];
        let note = PacketState::from_words(words);
        let inner = self.inner.on_packet_sent(now, packet);
        let entry = Entry { bytes: packet.bytes, note, inner };
        assert!(self.flight.insert((packet.space, packet.pn), entry).is_none());
        note
    }

    fn on_packets_acked(
        &mut self,
        now: Instant,
        acked: &[Acked],
        rtt: &RttEstimator,
        in_flight: u64,
        app_limited: bool,
    ) {
        count(&self.totals.acked, acked.len());
        let keys = acked.iter().map(|packet| (packet.space, packet.pn));
        let late = keys.filter_map(|key| Some((key, self.gone.remove(&key)?)));
        self.flight.extend(late);
        let settled = settle(&mut self.flight, acked);
        assert_eq!(in_flight, self.in_flight());
        self.inner.on_packets_acked(now, &inner(&settled), rtt, in_flight, app_limited);
    }

    fn on_packets_lost(&mut self, now: Instant, lost: &[Lost], persistent: bool, in_flight: u64) {
        count(&self.totals.lost, lost.len());
        let settled = settle(&mut self.flight, lost);
        self.inner.on_packets_lost(now, &inner(&settled), persistent, in_flight);
        self.lost.extend(settled.into_iter().map(|(packet, e)| ((packet.space, packet.pn), e)));
    }

    fn on_ecn_ce(&mut self, now: Instant, sent: Instant, newly_marked: u64, in_flight: u64) {
        self.inner.on_ecn_ce(now, sent, newly_marked, in_flight);
    }

    fn on_loss_floor(&mut self, floor: &LossFloor) {
        self.inner.on_loss_floor(floor);
    }

    fn on_spurious_loss(&mut self, now: Instant, packets: &[Lost]) {
        count(&self.totals.refuted, packets.len());
        let settled = settle(&mut self.lost, packets);
        self.inner.on_spurious_loss(now, &inner(&settled));
    }

    fn on_discarded(&mut self, space: SpaceId, bytes: u64) {
        let before = self.in_flight();
        self.gone.extend(self.flight.extract_if(.., |(of, _), _| *of == space));
        // The packet that caused the discard may have acknowledged some of these packets. These are not in
        // flight any more, but not part of `bytes` either.
        assert!(before - self.in_flight() >= bytes);
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
        "ledger"
    }
}

#[test]
fn a_controller_from_outside_conforms() {
    for algorithm in ALGORITHMS {
        conformance::congestion(&Ledgers::new(algorithm));
    }
}

fn transfer(seed: u64, congestion: Arc<dyn CongestionFactory>) -> BulkOutcome {
    let path = link("rate=20mbit delay=20ms jitter=4ms,reorder loss=bern:0.02");
    let config = TransportConfig::default().with_congestion(congestion);
    Scenario::new(seed)
        .link(&path, &path)
        .transport(&config)
        .protect(incremental(3, crate::common::MS))
        .transfer(Transfer::both(1_000_000))
        .run()
        .unwrap_or_else(|failure| panic!("{failure}"))
}

#[test]
fn accounts_of_every_packet_balance() {
    for algorithm in ALGORITHMS {
        for seed in 0..4 {
            let plain = transfer(seed, Arc::new(algorithm));
            let kept = transfer(seed, Arc::new(Ledgers::new(algorithm)));
            let server = &kept.ends.server;
            assert!(server.packets_lost > 10 && server.spurious_losses > 0, "seed {seed}");
            assert_eq!(plain.transfers, kept.transfers, "{algorithm}, seed {seed}");
            assert_eq!(plain.ends.up, kept.ends.up, "{algorithm}, seed {seed}");
            assert_eq!(plain.ends.down, kept.ends.down, "{algorithm}, seed {seed}");
        }
    }
}

/// Downloads over a path that disturbs the server's packets; the counts of both ends and the server's totals.
fn download(
    algorithm: Algorithm,
    down: &str,
    protection: Option<Protection>,
) -> (Ends, Arc<Totals>) {
    let factory = Arc::new(Ledgers::new(algorithm));
    let config = TransportConfig::default().with_congestion(factory.clone());
    let outcome = Scenario::new(1)
        .link(&link("rate=10mbit delay=25ms"), &link(down))
        .transport(&config)
        .protect(protection)
        .transfers(vec![Transfer::download(50_000); 40])
        .gap(Duration::from_millis(300))
        .run();
    let ends = outcome.unwrap_or_else(|failure| panic!("{algorithm}, {down}: {failure}")).ends;
    let totals = factory.totals.lock().unwrap();
    let busiest = totals.iter().max_by_key(|totals| totals.sent.load(Ordering::Relaxed));
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
                let (ends, totals) = download(algorithm, down, protection);
                let [sent, acked, lost, refuted] =
                    [&totals.sent, &totals.acked, &totals.lost, &totals.refuted]
                        .map(|of| of.load(Ordering::Relaxed));
                let dropped = ends.down.lost + ends.down.overflow;
                assert!(lost - refuted <= dropped, "{what}: {lost}, {refuted}, {dropped}");
                // Acknowledgements alone are not under congestion control. Packets that are still on their
                // way in the end, or not yet known to be lost, have no outcome.
                let beside = ends.server.sent.packets - sent;
                let open = sent - acked - lost;
                let untold = ends.server.spurious_losses - refuted;
                assert!(untold <= beside, "{what}: {untold} refutations are hidden");
                let hidden = dropped - (lost - refuted);
                println!("{what}: {dropped} dropped, {lost} lost, {refuted} refuted, {open} open");
                assert!(hidden <= beside + open, "{what}: {hidden} of {dropped} are hidden");
                // The hidden losses are fewer than the symbols that redundancy recovered, so that redundancy
                // hides nothing.
                let recovered = ends.client.fec.recovered;
                assert_eq!(recovered > 0, fec != "none", "{what}");
                assert!(fec == "none" || beside + open < recovered, "{what}: {beside}, {open}");
            }
        }
    }
}
