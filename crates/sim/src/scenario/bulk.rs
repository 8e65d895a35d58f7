//! Bulk transfers, each with what it cost.

use std::time::Duration;

use super::drive::{Progress, View};
use super::{Ends, Scenario};
use crate::{BulkClient, BulkServer, Clock, Completed, Failure};

/// What came of transfers.
#[derive(Clone, Debug)]
pub struct BulkOutcome {
    /// Each transfer, in the order in which they were begun.
    pub transfers: Vec<TransferReport>,
    /// What all of it took.
    pub ends: Ends,
}

/// What came of one transfer. Counters are from its beginning to the beginning of the next, or to
/// the closing of the connection, so that they sum up; with several transfers at a time they belong
/// to all of those.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransferReport {
    /// When it began, since the start of the simulation.
    pub started: Duration,
    /// How long it took to completion, as its client saw it.
    pub time: Duration,
    /// Bytes of stream data that the server sent again.
    pub retransmitted_down: u64,
    /// Bytes of stream data that the client sent again.
    pub retransmitted_up: u64,
    /// Bytes that the server put on the link, UDP and IP headers not included.
    pub wire_down: u64,
    /// Bytes that the client put on the link, UDP and IP headers not included.
    pub wire_up: u64,
    /// Datagrams that the server put on the link.
    pub datagrams_down: u64,
    /// Repair symbols that the server sent.
    pub repair_symbols: u64,
    /// Source symbols that the client computed from repair symbols.
    pub recovered: u64,
    /// Datagrams on their way to the client that the link lost.
    pub lost_down: u64,
}

impl TransferReport {
    /// Whether the transfer waited for a retransmission: it took at least half a round trip longer
    /// than without loss, which is less than any retransmission costs and more than any repair.
    #[must_use]
    pub fn waited(&self, lossless: Duration, rtt: Duration) -> bool {
        self.time >= lossless + rtt / 2
    }
}

/// Counters at the beginning of a transfer.
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
    fn watch(&mut self, view: &View<'_, BulkClient, BulkServer>) -> Progress {
        let client = view.client;
        if client.started() > self.snapshots.len() {
            // The first transfer pays for the handshake.
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

pub(super) fn run(scenario: &Scenario) -> Result<BulkOutcome, Failure> {
    let clock = Clock::default();
    let (client, server) = scenario.bulk_apps();
    let mut recorder = Recorder::default();
    let ends = scenario.drive(clock, client, server, |view| recorder.watch(view))?;
    Ok(BulkOutcome { transfers: recorder.reports(clock, &ends), ends })
}
