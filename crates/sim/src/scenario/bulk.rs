//! Bulk transfers, with the cost of each.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sutura_proto::Connection;

use super::drive::{Progress, View};
use super::{Ends, Scenario};
use crate::{App, BulkClient, BulkServer, Clock, Completed, Failure};

/// The outcome of a series of transfers.
#[derive(Clone, Debug)]
pub struct BulkOutcome {
    /// The transfers, in the order in which they began.
    pub transfers: Vec<TransferReport>,
    /// The statistics of the whole run.
    pub ends: Ends,
}

/// The outcome of one transfer. Its counters cover the time from its beginning to the beginning of
/// the next transfer, or to the closing of the connection, so they add up to the totals. They count all
/// packets in this time, including packets of parallel transfers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferReport {
    /// When the transfer began, since the start of the simulation.
    pub started: Duration,
    /// How long it took to complete, as the client saw it.
    pub time: Duration,
    /// Bytes of stream data that the server retransmitted.
    pub retransmitted_down: u64,
    /// Bytes of stream data that the client retransmitted.
    pub retransmitted_up: u64,
    /// Bytes that the server sent, excluding UDP and IP headers.
    pub wire_down: u64,
    /// Bytes that the client sent, excluding UDP and IP headers.
    pub wire_up: u64,
    /// Datagrams that the server sent.
    pub datagrams_down: u64,
    /// Repair symbols that the server sent.
    pub repair_symbols: u64,
    /// Source symbols that the client recovered with repair symbols.
    pub recovered: u64,
    /// Datagrams to the client that the link lost.
    pub lost_down: u64,
}

impl TransferReport {
    /// Whether the transfer waited for a retransmission, that is, whether it took at least half a
    /// round trip longer than without loss. Every retransmission delays it by more than that, every
    /// repair by less.
    #[must_use]
    pub fn waited(&self, lossless: Duration, rtt: Duration) -> bool {
        self.time >= lossless + rtt / 2
    }
}

/// The counters as they stand now.
fn counters(ends: &Ends) -> TransferReport {
    TransferReport {
        started: Duration::ZERO,
        time: Duration::ZERO,
        retransmitted_down: ends.server.stream_bytes_retransmitted,
        retransmitted_up: ends.client.stream_bytes_retransmitted,
        wire_down: ends.down.sent_bytes,
        wire_up: ends.up.sent_bytes,
        datagrams_down: ends.down.sent,
        repair_symbols: ends.server.fec.repair_symbols_sent,
        recovered: ends.client.fec.recovered,
        lost_down: ends.down.lost + ends.down.outage + ends.down.overflow,
    }
}

fn difference(later: &TransferReport, earlier: &TransferReport) -> TransferReport {
    TransferReport {
        started: earlier.started,
        time: earlier.time,
        retransmitted_down: later.retransmitted_down - earlier.retransmitted_down,
        retransmitted_up: later.retransmitted_up - earlier.retransmitted_up,
        wire_down: later.wire_down - earlier.wire_down,
        wire_up: later.wire_up - earlier.wire_up,
        datagrams_down: later.datagrams_down - earlier.datagrams_down,
        repair_symbols: later.repair_symbols - earlier.repair_symbols,
        recovered: later.recovered - earlier.recovered,
        lost_down: later.lost_down - earlier.lost_down,
    }
}

/// Takes a snapshot at the beginning of each transfer.
#[derive(Default)]
struct Recorder {
    snapshots: Vec<TransferReport>,
    completed: Vec<Completed>,
}

impl Recorder {
    fn watch<C, S>(&mut self, client: &BulkClient, view: &View<'_, C, S>) -> Progress {
        if client.started() > self.snapshots.len() {
            // The cost of the handshake counts towards the first transfer.
            let now = if self.snapshots.is_empty() { Ends::default() } else { view.ends() };
            self.snapshots.resize(client.started(), counters(&now));
        }
        if client.completed().len() > self.completed.len() {
            self.completed = client.completed().to_vec();
        }
        Progress { done: client.is_done(), busy: client.is_busy() || client.started() == 0 }
    }

    fn reports(mut self, clock: Clock, ends: &Ends) -> Vec<TransferReport> {
        for completed in &self.completed {
            if let Some(report) = self.snapshots.get_mut(completed.index) {
                report.started = clock.since_start(completed.started);
                report.time = completed.completed - completed.started;
            }
        }
        let last = counters(ends);
        let later = self.snapshots.iter().skip(1).chain([&last]);
        self.snapshots
            .iter()
            .zip(later)
            .map(|(earlier, later)| difference(later, earlier))
            .collect()
    }
}

pub(super) fn run<C: App<Connection>, S: App<Connection>>(
    scenario: &Scenario,
    client: impl FnOnce(BulkClient) -> C,
    server: impl Fn(BulkServer) -> S + 'static,
    within: fn(&C) -> &BulkClient,
) -> Result<BulkOutcome, Failure> {
    let clock = Clock::default();
    let (inner, mut make) = scenario.bulk_apps();
    let mut recorder = Recorder::default();
    let watch = |view: &View<'_, C, S>| recorder.watch(within(view.client), view);
    let ends = scenario.drive(clock, client(inner), move || server(make()), watch)?;
    Ok(BulkOutcome { transfers: recorder.reports(clock, &ends), ends })
}
