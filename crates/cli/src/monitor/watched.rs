//! The connections that are shown, and what those did that are over.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sutura::{Connection, ConnectionStats};

use crate::output::millis;
use crate::stats::{Statistics, peer};

/// Most connections on the page, the newest: all count.
const MAX_SHOWN: usize = 100;

/// Connections that are open, and counts of those that are over.
#[derive(Debug)]
pub struct Watched {
    /// The command, for people.
    title: &'static str,
    started: Instant,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// By their order.
    open: BTreeMap<u64, (Instant, Connection)>,
    next: u64,
    ended: Counts,
}

/// What connections did, in all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub packets_sent: u64,
    pub packets_received: u64,
    pub packets_lost: u64,
    /// Stream data.
    pub bytes_resent: u64,
    pub repair_symbols_sent: u64,
    pub repair_bytes_sent: u64,
    pub repair_symbols_received: u64,
    /// By this end.
    pub recovered: u64,
    pub recovered_by_peer: u64,
    pub time_saved: Duration,
}

impl Counts {
    fn of(stats: &ConnectionStats) -> Self {
        let ConnectionStats { sent, received, fec, .. } = stats;
        Self {
            bytes_sent: sent.bytes,
            bytes_received: received.bytes,
            packets_sent: sent.packets,
            packets_received: received.packets,
            packets_lost: stats.packets_lost,
            bytes_resent: stats.stream_bytes_retransmitted,
            repair_symbols_sent: fec.repair_symbols_sent,
            repair_bytes_sent: fec.repair_bytes_sent,
            repair_symbols_received: fec.repair_symbols_received,
            recovered: fec.recovered,
            recovered_by_peer: fec.recovered_by_peer,
            time_saved: fec.time_saved,
        }
    }

    fn add(&mut self, other: &Self) {
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.packets_sent += other.packets_sent;
        self.packets_received += other.packets_received;
        self.packets_lost += other.packets_lost;
        self.bytes_resent += other.bytes_resent;
        self.repair_symbols_sent += other.repair_symbols_sent;
        self.repair_bytes_sent += other.repair_bytes_sent;
        self.repair_symbols_received += other.repair_symbols_received;
        self.recovered += other.recovered;
        self.recovered_by_peer += other.recovered_by_peer;
        self.time_saved += other.time_saved;
    }

    fn to_json(self) -> Value {
        json!({
            "bytes_sent": self.bytes_sent,
            "bytes_received": self.bytes_received,
            "packets_sent": self.packets_sent,
            "packets_received": self.packets_received,
            "packets_lost": self.packets_lost,
            "bytes_resent": self.bytes_resent,
            "repair_symbols_sent": self.repair_symbols_sent,
            "repair_bytes_sent": self.repair_bytes_sent,
            "repair_symbols_received": self.repair_symbols_received,
            "recovered": self.recovered,
            "recovered_by_peer": self.recovered_by_peer,
            "time_saved_ms": millis(self.time_saved),
        })
    }
}

/// All connections at a time.
#[derive(Debug)]
pub struct Summary {
    /// Of all that ever were.
    pub counts: Counts,
    /// How many ever were.
    pub accepted: u64,
    /// Smoothed round-trip times of those that are open.
    pub round_trips: Vec<Duration>,
    /// Bytes in flight.
    pub in_flight: u64,
}

impl Watched {
    pub fn new(title: &'static str) -> Self {
        Self { title, started: Instant::now(), inner: Mutex::default() }
    }

    /// Watches a connection until it ends; then its counts stay.
    pub fn follow(self: &Arc<Self>, connection: &Connection) {
        let number = {
            let mut inner = self.lock();
            inner.next += 1;
            let number = inner.next;
            inner.open.insert(number, (Instant::now(), connection.clone()));
            number
        };
        let (watched, connection) = (self.clone(), connection.clone());
        tokio::spawn(async move {
            connection.closed().await;
            let mut inner = watched.lock();
            inner.open.remove(&number);
            inner.ended.add(&Counts::of(&connection.stats()));
        });
    }

    /// All connections together.
    pub fn summary(&self) -> Summary {
        let inner = self.lock();
        let mut summary = Summary {
            counts: inner.ended,
            accepted: inner.next,
            round_trips: Vec::with_capacity(inner.open.len()),
            in_flight: 0,
        };
        for (_, connection) in inner.open.values() {
            let stats = connection.stats();
            summary.counts.add(&Counts::of(&stats));
            summary.round_trips.push(stats.rtt);
            summary.in_flight += stats.bytes_in_flight;
        }
        summary
    }

    /// What the page shows.
    pub fn to_json(&self) -> Value {
        let summary = self.summary();
        let inner = self.lock();
        let shown = inner.open.iter().rev().take(MAX_SHOWN);
        let shown: Vec<_> = shown.map(|(number, open)| (*number, open.clone())).collect();
        drop(inner);
        let connections: Vec<Value> = shown
            .iter()
            .map(|(number, (since, connection))| {
                let stats = connection.stats();
                let mut value = Statistics::of(connection).to_json();
                value["number"] = (*number).into();
                value["remote"] = peer(connection).into();
                value["seconds"] = since.elapsed().as_secs_f64().into();
                value["congestion_window"] = stats.congestion_window.into();
                value["bytes_in_flight"] = stats.bytes_in_flight.into();
                value["bytes_resent"] = stats.stream_bytes_retransmitted.into();
                value["streams"] = stats.streams.streams.into();
                value
            })
            .collect();
        json!({
            "title": self.title,
            "version": env!("CARGO_PKG_VERSION"),
            "seconds": self.started.elapsed().as_secs_f64(),
            "open": summary.round_trips.len(),
            "accepted": summary.accepted,
            "in_flight": summary.in_flight,
            "totals": summary.counts.to_json(),
            "connections": connections,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
