//! Coding windows, also on paths with more in flight than fits into them: the server credits the data that
//! the client recovers, and sends none of it again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::common::{Beside, link};
use sutura_proto::{Connection, Protection, TransportConfig, registry};
use sutura_sim::{BulkClient, BulkServer, Clock, Ends, Progress, Scenario, Transfer};

const SEED: u64 = 31;
/// The most that the decoders of a connection hold.
const MOST_DECODED: usize = 8 << 20;
/// The most that its coding windows hold: 8 MiB, and the memory of 16,384 symbols that left them.
const MOST_ENCODED: usize = 13 << 20;

/// Notes the most memory that coding takes of a connection.
fn weighed<A>(app: A, held: Arc<AtomicUsize>) -> Beside<A, impl FnMut(Instant, &mut Connection)> {
    Beside(app, move |_: Instant, quic: &mut Connection| {
        held.fetch_max(quic.memory().coding, Ordering::Relaxed);
    })
}

/// A download over a path.
struct Download {
    mbit: u32,
    rtt: u32,
    bytes: u64,
    policy: &'static str,
    /// Whether the sender fills the path from the start, as `fixed` does, or finds out how much the path
    /// holds.
    fixed: bool,
}

struct Outcome {
    ends: Ends,
    /// The most memory that coding took of the client and of the server.
    held: [usize; 2],
}

/// Buffers that do not limit the data in flight.
fn transport(download: &Download) -> TransportConfig {
    let name = if download.fixed { format!("fixed:{}mbit", download.mbit) } else { "bbr".into() };
    TransportConfig::default()
        .with_congestion(registry::congestion().find(&name).unwrap())
        .with_redundancy(None)
        .with_stream_receive_window(64 << 20)
        .with_max_stream_receive_window(64 << 20)
        .with_receive_window(64 << 20)
        .with_max_receive_window(64 << 20)
        .with_send_buffer(32 << 20)
        .with_connection_send_buffer(64 << 20)
}

fn run(download: &Download) -> Outcome {
    let Download { mbit, rtt, bytes, policy, .. } = *download;
    let protection = Protection::new(sutura_research::redundancy().find(policy).unwrap());
    let path = format!("rate={mbit}mbit delay={}ms queue=32mb", rtt / 2);
    let held = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
    let client = BulkClient::new([Transfer::download(bytes)], 1, Duration::ZERO);
    let server = {
        let held = held[1].clone();
        move || weighed(BulkServer::new(Some(protection.clone())), held.clone())
    };
    let ends = Scenario::new(SEED)
        .link(&link(&path), &link(&format!("{path} loss=bern:0.01")))
        .transport(&transport(download))
        .drive(Clock::default(), weighed(client, held[0].clone()), server, |view| {
            let client = &view.client.0;
            let busy = client.is_busy() || client.started() == 0;
            Progress { done: client.is_done(), busy }
        })
        .unwrap_or_else(|failure| panic!("{failure}"));
    Outcome { ends, held: held.map(|held| held.load(Ordering::Relaxed)) }
}

/// The fates of the lost symbols of all downloads with a policy.
#[derive(Default)]
struct Tally {
    recovered: u64,
    credited: u64,
    useful: u64,
    /// Symbols that were sent again, and symbols that had to be: neither recovered nor sent again by a probe.
    resent: u64,
    needed: u64,
}

impl Tally {
    /// Checks the invariants of a download, and counts it in.
    fn add(&mut self, download: &Download) {
        let Outcome { ends, held } = run(download);
        let [client, server] = [&ends.client.fec, &ends.server.fec];
        let Download { mbit, rtt, policy, .. } = download;
        let lost_repairs = server.repair_symbols_sent - client.repair_symbols_received;
        let lost = ends.down.lost + ends.down.overflow - lost_repairs;
        let size = server.source_bytes_sent / server.source_symbols_sent;
        let resent = ends.server.stream_bytes_retransmitted / size;
        let what = format!(
            "{mbit} Mbit/s, {rtt} ms, {policy}, seed {SEED}: {lost} lost, {} recovered, {} credited, {} of {} \
             repair symbols useful, {resent} sent again, {} probes, {held:?} bytes, {:?}",
            client.recovered,
            server.recovered_by_peer,
            server.repair_symbols_useful,
            server.repair_symbols_sent,
            ends.server.probe_timeouts,
            ends.duration,
        );
        println!("{what}");
        assert!(server.recovered_by_peer <= client.recovered, "{what}");
        assert!(held[0] <= MOST_DECODED && held[1] <= MOST_ENCODED, "{what}");
        self.recovered += client.recovered;
        self.credited += server.recovered_by_peer;
        self.useful += server.repair_symbols_useful;
        self.resent += resent;
        // A probe sends up to two packets.
        self.needed += lost - client.recovered.min(lost) + 2 * ends.server.probe_timeouts;
    }

    /// The data that the client recovered is credited, and hardly any of it was sent again: only data that
    /// the client recovers at the moment when the server no longer waits for it.
    fn check(&self) {
        let Self { recovered, credited, useful, resent, needed } = *self;
        let what = format!(
            "{recovered} recovered, {credited} credited, {useful} useful, {resent} of {needed}"
        );
        println!("{what}");
        assert!(recovered > 0, "{what}");
        assert!(credited * 100 >= recovered * 99 && useful * 100 >= recovered * 99, "{what}");
        assert!(resent <= needed + recovered / 20, "{what}");
    }
}

/// With each policy, on paths with 25 kB to 19 MB in flight.
fn check_paths(policy: &'static str) {
    let paths = [(10, 20), (10, 300), (100, 20), (100, 100), (500, 20), (500, 100), (500, 300)];
    let mut tally = Tally::default();
    for (mbit, rtt) in paths {
        let bytes = if mbit == 10 { 4_000_000 } else { 20_000_000 };
        tally.add(&Download { mbit, rtt, bytes, policy, fixed: true });
    }
    let bytes = 20_000_000;
    tally.add(&Download { mbit: 100, rtt: 100, bytes, policy, fixed: false });
    tally.check();
}

#[test]
fn what_sr_arq_recovers_is_credited_and_not_sent_again() {
    check_paths("sr-arq");
}

#[test]
fn what_incremental_repair_symbols_recover_is_credited_and_not_sent_again() {
    check_paths("incremental");
}

#[test]
fn what_is_recovered_at_the_end_is_credited_and_not_sent_again() {
    check_paths("bulk");
}

#[test]
fn what_tail_recovers_is_credited_and_not_sent_again() {
    let mut tally = Tally::default();
    for (mbit, rtt, bytes) in [(10, 300, 4), (100, 100, 20), (500, 100, 20), (500, 300, 20)] {
        let bytes = bytes * 1_000_000;
        tally.add(&Download { mbit, rtt, bytes, policy: "tail", fixed: true });
    }
    tally.check();
}
