//! What the loads of both kinds add up to.

use std::time::Duration;

use serde_json::{Value, json};
use sutura::ConnectionStats;

use super::load::Loaded;
use crate::output::{self, millis};

/// One load, and what the two ends of its connection counted.
#[derive(Debug, Clone)]
pub struct Sample {
    pub loaded: Loaded,
    pub server: ConnectionStats,
    pub client: ConnectionStats,
}

/// All loads of one kind.
#[derive(Debug, Clone, Default)]
pub struct Samples(pub Vec<Sample>);

impl Samples {
    fn sum(&self, of: impl Fn(&Sample) -> u64) -> f64 {
        self.0.iter().map(|sample| of(sample) as f64).sum()
    }

    fn per_load(&self, of: impl Fn(&Sample) -> u64) -> f64 {
        self.sum(of) / (self.0.len().max(1) as f64)
    }

    fn resources(&self) -> Vec<Duration> {
        self.0.iter().flat_map(|sample| sample.loaded.resources.iter().copied()).collect()
    }

    fn pages(&self) -> Vec<Duration> {
        self.0.iter().map(|sample| sample.loaded.page).collect()
    }

    /// Bytes of repair symbols per byte that the server sent otherwise.
    fn overhead(&self) -> f64 {
        let repair = self.sum(|s| s.server.fec.repair_bytes_sent);
        let rest = self.sum(|s| s.server.sent.bytes) - repair;
        if rest > 0.0 { repair / rest } else { 0.0 }
    }

    fn to_json(&self) -> Value {
        let times = |mut times: Vec<Duration>| {
            let p50 = millis(percentile(&mut times, 50));
            json!({ "p50": p50, "p99": millis(percentile(&mut times, 99)) })
        };
        let pages: Vec<f64> = self.pages().into_iter().map(millis).collect();
        json!({
            "resource_ms": times(self.resources()),
            "page_ms": times(self.pages()),
            "page_samples_ms": pages,
            "waits": self.sum(|s| s.loaded.waits),
            "packets_sent": self.sum(|s| s.server.sent.packets),
            "bytes_sent": self.sum(|s| s.server.sent.bytes),
            "packets_lost": self.sum(|s| s.server.packets_lost),
            "packets_recovered": self.sum(|s| s.client.fec.recovered),
            "bytes_sent_again": self.sum(|s| s.server.stream_bytes_retransmitted),
            "probe_timeouts": self.sum(|s| s.server.probe_timeouts),
            "repair_symbols_sent": self.sum(|s| s.server.fec.repair_symbols_sent),
            "repair_bytes_sent": self.sum(|s| s.server.fec.repair_bytes_sent),
            "overhead": self.overhead(),
        })
    }
}

/// The nearest-rank percentile; zero if there is nothing.
fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    let rank = (times.len() * percent).div_ceil(100);
    times.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

/// Loads of both kinds over the same links.
#[derive(Debug, Clone, Default)]
pub struct Comparison {
    pub without: Samples,
    pub with: Samples,
}

impl Comparison {
    /// A table for people to read.
    pub fn table(&self) -> String {
        let mut table =
            format!("{:56}{:>12}{:>12}{:>10}\n", "", "without FEC", "with FEC", "change");
        type Times = fn(&Samples) -> Vec<Duration>;
        let times: [(&str, Times, usize); 4] = [
            ("resource, request to end, median", Samples::resources, 50),
            ("resource, request to end, 99th percentile", Samples::resources, 99),
            ("whole page, median", Samples::pages, 50),
            ("whole page, 99th percentile", Samples::pages, 99),
        ];
        for (name, of, percent) in times {
            let [a, b] = self.both(|s| millis(percentile(&mut of(s), percent)));
            table += &row(name, &format!("{a:.0} ms"), &format!("{b:.0} ms"), Some((a, b)));
        }
        type Count = fn(&Sample) -> u64;
        let counts: [(&str, Count); 5] = [
            ("retransmission waits (a round trip or more)", |s| s.loaded.waits),
            ("packets lost", |s| s.server.packets_lost),
            ("packets recovered without waiting", |s| s.client.fec.recovered),
            ("probe timeouts", |s| s.server.probe_timeouts),
            ("repair packets sent", |s| s.server.fec.repair_symbols_sent),
        ];
        for (name, of) in counts {
            let [a, b] = self.both(|s| s.per_load(of));
            table +=
                &row(&format!("{name}, per load"), &format!("{a:.1}"), &format!("{b:.1}"), None);
        }
        let [a, b] = self.both(|s| s.per_load(|s| s.server.stream_bytes_retransmitted));
        let [a, b] = [a, b].map(|bytes| output::bytes(bytes as u64));
        table += &row("data sent again, per load", &a, &b, None);
        let [a, b] = self.both(|s| s.overhead() * 100.0);
        table +=
            &row("repair bytes to other bytes", &format!("{a:.1} %"), &format!("{b:.1} %"), None);
        table.truncate(table.trim_end().len());
        table
    }

    pub fn to_json(&self) -> Value {
        json!({ "without_fec": self.without.to_json(), "with_fec": self.with.to_json() })
    }

    fn both(&self, of: impl Fn(&Samples) -> f64) -> [f64; 2] {
        [of(&self.without), of(&self.with)]
    }
}

fn row(name: &str, without: &str, with: &str, change: Option<(f64, f64)>) -> String {
    let change = match change {
        Some((a, b)) if a > 0.0 => format!("{:+.0} %", (b / a - 1.0) * 100.0),
        _ => String::new(),
    };
    let row = format!("{name:56}{without:>12}{with:>12}{change:>10}");
    format!("{}\n", row.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let mut times: Vec<Duration> = (1..=200).rev().map(Duration::from_millis).collect();
        assert_eq!(percentile(&mut times, 50), Duration::from_millis(100));
        assert_eq!(percentile(&mut times, 99), Duration::from_millis(198));
        assert_eq!(percentile(&mut times[..1], 99), Duration::from_millis(1));
        assert_eq!(percentile(&mut [], 50), Duration::ZERO);
    }

    #[test]
    fn rows_line_up_and_tell_the_change() {
        let text = row("page", "200 ms", "150 ms", Some((200.0, 150.0)));
        assert_eq!(text, format!("{:56}{:>12}{:>12}{:>10}\n", "page", "200 ms", "150 ms", "-25 %"));
        assert!(!row("x", "0", "1", Some((0.0, 1.0))).contains('%'));
    }
}
