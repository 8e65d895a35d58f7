//! The statistics of a connection, for people and as JSON.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sutura::policy::LossFloor;
use sutura::{Connection, ConnectionStats, ProtectionStats, Reason};
use sutura_tunnel::client::TunnelSocket;

use crate::output::{bytes, millis};

/// The statistics of a connection at some time.
#[derive(Debug, Clone)]
pub struct Statistics {
    at: Instant,
    all: ConnectionStats,
    protections: Vec<ProtectionStats>,
}

impl Statistics {
    /// The statistics of this moment.
    pub fn of(connection: &Connection) -> Self {
        let protections = connection.protections();
        Self { at: Instant::now(), all: connection.stats(), protections }
    }

    /// Lines about the transfer so far, with the rate since `earlier`. The first begins with `name`.
    pub fn live(&self, name: &str, earlier: &Self) -> Vec<String> {
        let took = self.at.saturating_duration_since(earlier.at);
        let received = self.all.received.bytes - earlier.all.received.bytes;
        let sent = self.all.sent.bytes - earlier.all.sent.bytes;
        let (count, direction) =
            if sent > received { (sent, "sent") } else { (received, "received") };
        let first = format!(
            "{name}: {} {direction}, rtt {:.1} ms, {}",
            rate(count, took),
            millis(self.all.rtt),
            loss(&self.all.loss_floor)
        );
        self.with_redundancy(first)
    }

    /// Lines about the whole connection, the first of which begins with `name`.
    pub fn summary(&self, name: &str) -> Vec<String> {
        let ConnectionStats { sent, received, packets_lost, rtt, min_rtt, loss_floor, .. } =
            &self.all;
        let first = format!(
            "{name}: {} received, {} sent, {packets_lost} of {} packets lost, rtt {:.1} ms, at least \
             {:.1} ms, {}",
            bytes(received.bytes),
            bytes(sent.bytes),
            sent.packets,
            millis(*rtt),
            millis(*min_rtt),
            loss(loss_floor)
        );
        self.with_redundancy(first)
    }

    /// Appends lines about redundancy to the first one.
    fn with_redundancy(&self, first: String) -> Vec<String> {
        let redundancy = self.redundancy_received().into_iter().chain(self.redundancy_sent());
        let protections = self.protections.iter().filter(|p| is_used(p)).map(protection);
        let more = redundancy.chain(protections).map(|line| format!("  {line}"));
        std::iter::once(first).chain(more).collect()
    }

    fn redundancy_received(&self) -> Option<String> {
        let fec = &self.all.fec;
        (fec.repair_symbols_received > 0).then(|| {
            let (repairs, recovered) = (fec.repair_symbols_received, fec.recovered);
            format!("{repairs} repair symbols received, {recovered} packets recovered")
        })
    }

    fn redundancy_sent(&self) -> Option<String> {
        let fec = &self.all.fec;
        (fec.repair_symbols_sent > 0).then(|| {
            format!(
                "{} repair symbols ({}) sent, {} useful, {} wasted, {} packets recovered, {:.0} ms \
                 saved",
                fec.repair_symbols_sent,
                bytes(fec.repair_bytes_sent),
                fec.repair_symbols_useful,
                fec.repair_symbols_wasted,
                fec.recovered_by_peer,
                millis(fec.time_saved)
            )
        })
    }

    /// The members of a JSON object about the connection.
    pub fn to_json(&self) -> Value {
        let ConnectionStats { sent, received, fec, loss_floor, .. } = &self.all;
        let (p, r) = loss_floor.gilbert();
        json!({
            "rtt_ms": millis(self.all.rtt),
            "min_rtt_ms": millis(self.all.min_rtt),
            "packets_sent": sent.packets,
            "packets_received": received.packets,
            "bytes_sent": sent.bytes,
            "bytes_received": received.bytes,
            "packets_lost": self.all.packets_lost,
            "loss": {
                "recent": self.all.loss_estimate,
                "rate": loss_floor.rate,
                "low": loss_floor.low,
                "high": loss_floor.high,
                "burst": loss_floor.burst,
                "burst_ms": millis(loss_floor.burst_time),
                "gilbert_p": p,
                "gilbert_r": r,
                "excess": loss_floor.excess,
            },
            "room": {
                // There is no sign of a limit.
                "repairs_per_packet": loss_floor.room.is_finite().then_some(loss_floor.room),
                "crowded": loss_floor.crowded,
                "experiments": {
                    "running": loss_floor.withheld,
                    "harmful": loss_floor.experiments.harmful,
                    "harmless": loss_floor.experiments.harmless,
                    "undecided": loss_floor.experiments.undecided,
                },
            },
            "fec": {
                "negotiated": fec.negotiated,
                "source_symbols_received": fec.source_symbols_received,
                "repair_symbols_received": fec.repair_symbols_received,
                "recovered": fec.recovered,
                "recovered_bytes": fec.recovered_bytes,
                "source_symbols_sent": fec.source_symbols_sent,
                "source_symbols_resent": fec.source_symbols_resent,
                "n_by_k": fec.rate(),
                "source_bytes_sent": fec.source_bytes_sent,
                "repair_symbols_sent": fec.repair_symbols_sent,
                "repair_bytes_sent": fec.repair_bytes_sent,
                "repair_symbols_useful": fec.repair_symbols_useful,
                "repair_bytes_useful": fec.repair_bytes_useful,
                "repair_symbols_wasted": fec.repair_symbols_wasted,
                "repair_bytes_wasted": fec.repair_bytes_wasted,
                "recovered_by_peer": fec.recovered_by_peer,
                "time_saved_ms": millis(fec.time_saved),
            },
            "protections": self.protections.iter().map(protection_json).collect::<Vec<_>>(),
        })
    }
}

/// The address of the peer, without the mapping of IPv4 to IPv6, or how it is reached.
pub fn peer(connection: &Connection) -> String {
    let address = connection.remote_address();
    if TunnelSocket::stands_for_target(address) {
        return "through the proxy".into();
    }
    SocketAddr::new(address.ip().to_canonical(), address.port()).to_string()
}

fn is_used(protection: &ProtectionStats) -> bool {
    protection.counts.source_symbols > 0 || protection.session.is_none()
}

fn protection_json(protection: &ProtectionStats) -> Value {
    let ProtectionStats { session, protection, reason, counts, .. } = protection;
    let (repairs, wait) = match reason {
        Some(Reason::Protects { repairs, wait }) => (Some(repairs), Some(millis(*wait))),
        _ => (None, None),
    };
    json!({
        "session": session,
        "policy": protection.to_string(),
        "reason": reason.map(|reason| reason.name()),
        "repairs": repairs,
        "wait_ms": wait,
        "source_symbols_sent": counts.source_symbols,
        "source_symbols_resent": counts.resent_symbols,
        "n_by_k": counts.rate(),
        "source_bytes_sent": counts.source_bytes,
        "repair_symbols_sent": counts.repair_symbols,
        "repair_bytes_sent": counts.repair_bytes,
        "repair_symbols_useful": counts.useful_symbols,
        "repair_bytes_useful": counts.useful_bytes,
        "repair_symbols_wasted": counts.wasted_symbols(),
        "repair_bytes_wasted": counts.wasted_bytes(),
        "recovered_by_peer": counts.recovered,
        "time_saved_ms": millis(counts.time_saved),
    })
}

/// A policy, the n/k that it has reached if it sent repair symbols, and its reason.
fn protection(protection: &ProtectionStats) -> String {
    let counts = &protection.counts;
    let rate = counts.rate().filter(|_| counts.repair_symbols > 0);
    let rate = rate.map(|rate| format!(" n/k {rate:.2}")).unwrap_or_default();
    let reason = protection.reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("[{}]{rate}{reason}", protection.protection)
}

fn rate(count: u64, took: Duration) -> String {
    let seconds = took.as_secs_f64();
    let mbit = if seconds > 0.0 { count as f64 * 8e-6 / seconds } else { 0.0 };
    format!("{mbit:.2} Mbit/s")
}

/// The share of lost packets with its bounds, and how they are lost.
fn loss(floor: &LossFloor) -> String {
    if floor.high >= 1.0 {
        return "loss unknown".to_owned();
    }
    let percent = |share: f64| format!("{:.1}", share * 100.0);
    let LossFloor { rate, low, high, burst, burst_time, .. } = *floor;
    let mut text = format!("loss {} % ({} to {} %)", percent(rate), percent(low), percent(high));
    if rate > 0.0 {
        text += &format!(" {burst:.1} in a row");
    }
    if !burst_time.is_zero() {
        text += &format!(" for {:.1} ms", millis(burst_time));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floor(rate: f64, burst: f64, time: Duration) -> LossFloor {
        let mut floor = LossFloor::default();
        (floor.rate, floor.low, floor.high) = (rate, rate / 2.0, rate * 2.0);
        (floor.burst, floor.burst_time) = (burst, time);
        floor
    }

    #[test]
    fn loss_is_told_with_what_is_known_of_it() {
        assert_eq!(loss(&LossFloor::default()), "loss unknown");
        let random = floor(0.02, 1.0, Duration::ZERO);
        assert_eq!(loss(&random), "loss 2.0 % (1.0 to 4.0 %) 1.0 in a row");
        let bursty = floor(0.05, 3.3, Duration::from_micros(4_800));
        assert_eq!(loss(&bursty), "loss 5.0 % (2.5 to 10.0 %) 3.3 in a row for 4.8 ms");
        let mut none = floor(0.0, 1.0, Duration::ZERO);
        none.high = 0.001;
        assert_eq!(loss(&none), "loss 0.0 % (0.0 to 0.1 %)");
    }

    /// A second, in which a megabyte was sent with some redundancy.
    fn second() -> (Statistics, Statistics) {
        let earlier =
            Statistics { at: Instant::now(), all: ConnectionStats::default(), protections: vec![] };
        let mut later = earlier.clone();
        later.at += Duration::from_secs(1);
        let all = &mut later.all;
        (all.sent.bytes, all.sent.packets, all.packets_lost) = (1_000_000, 850, 20);
        (all.rtt, all.min_rtt) = (Duration::from_millis(101), Duration::from_millis(100));
        all.loss_floor = floor(0.02, 2.0, Duration::ZERO);
        (all.fec.repair_symbols_sent, all.fec.repair_bytes_sent) = (40, 48_000);
        (all.fec.repair_symbols_useful, all.fec.repair_symbols_wasted) = (15, 25);
        (all.fec.recovered_by_peer, all.fec.time_saved) = (15, Duration::from_millis(1_600));
        (earlier, later)
    }

    #[test]
    fn the_rate_is_that_since_the_last_time() {
        let (earlier, later) = second();
        let live = later.live("there", &earlier);
        let start = "there: 8.00 Mbit/s sent, rtt 101.0 ms, loss 2.0 % (1.0 to 4.0 %)";
        assert!(live[0].starts_with(start), "{live:?}");
        let end = "40 repair symbols (48.0 kB) sent, 15 useful, 25 wasted, 15 packets recovered, \
                   1600 ms saved";
        assert_eq!((live.len(), live[1].trim_start()), (2, end));
        let still = later.live("there", &later);
        assert!(still[0].starts_with("there: 0.00 Mbit/s received"), "{still:?}");
        let summary = later.summary("there");
        assert_eq!(summary.len(), 2);
        assert!(summary[0].starts_with("there: 0 B received, 1.0 MB sent, 20 of 850 packets lost"));
        assert_eq!(summary[1].trim_start(), end);
    }

    #[test]
    fn json_names_every_count() {
        let json = second().1.to_json();
        assert_eq!((&json["loss"]["gilbert_r"], &json["packets_lost"]), (&0.5.into(), &20.into()));
        assert_eq!(json["fec"]["time_saved_ms"], 1_600.0);
        assert_eq!(json["fec"]["repair_symbols_wasted"], 25);
        assert_eq!(json["protections"], json!([]));
    }
}
