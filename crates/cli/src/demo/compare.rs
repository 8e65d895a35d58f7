//! Compares the loads without and with erasure coding.

use serde_json::{Value, json};
use sutura::ConnectionStats;
use sutura_analysis::statistics::Distribution;
use sutura_analysis::table::Table;

use super::load::Loaded;
use crate::output::{self, millis};

/// One load, and the counters of both ends of its connection.
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

    fn resources(&self) -> Distribution {
        let all = self.0.iter().flat_map(|sample| sample.loaded.resources.iter().copied());
        Distribution::of(all)
    }

    fn pages(&self) -> Distribution {
        Distribution::of(self.0.iter().map(|sample| sample.loaded.page))
    }

    /// Repair symbol bytes per other byte that the server sent.
    fn overhead(&self) -> f64 {
        let repair = self.sum(|s| s.server.fec.repair_bytes_sent);
        let rest = self.sum(|s| s.server.sent.bytes) - repair;
        if rest > 0.0 { repair / rest } else { 0.0 }
    }

    fn to_json(&self) -> Value {
        let times = |times: Distribution| {
            let [p50, p99] = [0.5, 0.99].map(|q| millis(times.quantile(q)));
            json!({ "p50": p50, "p99": p99 })
        };
        let pages: Vec<f64> = self.0.iter().map(|sample| millis(sample.loaded.page)).collect();
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

/// Loads of both kinds over the same links.
#[derive(Debug, Clone, Default)]
pub struct Comparison {
    pub without: Samples,
    pub with: Samples,
}

impl Comparison {
    /// The comparison as text for a terminal.
    pub fn table(&self) -> String {
        let mut table = Table::new("Loads", ["", "without FEC", "with FEC", "change"]);
        type Times = fn(&Samples) -> Distribution;
        let times: [(&str, Times, f64); 4] = [
            ("resource, request to end, median", Samples::resources, 0.5),
            ("resource, request to end, 99th percentile", Samples::resources, 0.99),
            ("whole page, median", Samples::pages, 0.5),
            ("whole page, 99th percentile", Samples::pages, 0.99),
        ];
        for (name, of, q) in times {
            let [a, b] = self.both(|s| millis(of(s).quantile(q)));
            let change =
                if a > 0.0 { format!("{:+.0} %", (b / a - 1.0) * 100.0) } else { String::new() };
            table.row([name.to_owned(), format!("{a:.0} ms"), format!("{b:.0} ms"), change]);
        }
        type Count = fn(&Sample) -> u64;
        let counts: [(&str, Count); 5] = [
            ("retransmission waits (a round trip or more)", |s| s.loaded.waits),
            ("packets lost", |s| s.server.packets_lost),
            ("packets recovered without waiting", |s| s.client.fec.recovered),
            ("probe timeouts", |s| s.server.probe_timeouts),
            ("repair packets sent", |s| s.server.fec.repair_symbols_sent),
        ];
        let mut row = |name: &str, [a, b]: [String; 2]| {
            table.row([name.to_owned(), a, b, String::new()]);
        };
        for (name, of) in counts {
            let both = self.both(|s| s.per_load(of)).map(|count| format!("{count:.1}"));
            row(&format!("{name}, per load"), both);
        }
        let again = self.both(|s| s.per_load(|s| s.server.stream_bytes_retransmitted));
        row("data sent again, per load", again.map(|bytes| output::bytes(bytes as u64)));
        let overhead = self.both(|s| s.overhead() * 100.0);
        row("repair bytes to other bytes", overhead.map(|share| format!("{share:.1} %")));
        table.to_text(1).trim_end().to_owned()
    }

    pub fn to_json(&self) -> Value {
        json!({ "without_fec": self.without.to_json(), "with_fec": self.with.to_json() })
    }

    fn both(&self, of: impl Fn(&Samples) -> f64) -> [f64; 2] {
        [of(&self.without), of(&self.with)]
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn rows_line_up_and_say_how_much_changed() {
        let samples = |page: u64| {
            let page = Duration::from_millis(page);
            let loaded = Loaded { resources: vec![page], page, waits: 3 };
            let (server, client) = (ConnectionStats::default(), ConnectionStats::default());
            Samples(vec![Sample { loaded, server, client }])
        };
        let comparison = Comparison { without: samples(200), with: samples(150) };
        let text = comparison.table();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[3].starts_with("whole page, median "), "{text}");
        assert!(lines[3].ends_with("200 ms    150 ms   -25 %"), "{text}");
        let waits = lines.iter().find(|line| line.starts_with("retransmission waits")).unwrap();
        assert!(waits.ends_with("3.0       3.0"), "{text}");
        let nothing = Comparison::default().table();
        assert!(nothing.contains("0 ms") && !nothing.contains("NaN"), "{nothing}");
    }
}
