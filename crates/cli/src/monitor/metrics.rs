//! Figures of all connections for Prometheus.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use sutura_analysis::statistics::{quantile, sorted};

use super::Watched;

/// The media type of the format.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The figures of this moment.
///
/// # Errors
/// Never with figures that have names.
pub fn text(watched: &Arc<Watched>) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("sutura");
    registry.register_collector(Box::new(Figures(watched.clone())));
    let mut all = String::new();
    text::encode(&mut all, &registry)?;
    Ok(all)
}

#[derive(Debug)]
struct Figures(Arc<Watched>);

impl Collector for Figures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let summary = self.0.summary();
        let counts = summary.counts;
        for (name, help, count) in [
            ("connections_opened", "Connections that were opened", summary.accepted),
            ("sent_bytes", "UDP payload sent", counts.bytes_sent),
            ("received_bytes", "UDP payload received", counts.bytes_received),
            ("sent_packets", "Packets sent", counts.packets_sent),
            ("received_packets", "Packets received", counts.packets_received),
            ("lost_packets", "Packets declared lost", counts.packets_lost),
            ("resent_bytes", "Stream data sent again", counts.bytes_resent),
            ("sent_repair_symbols", "Repair symbols sent", counts.repair_symbols_sent),
            ("sent_repair_bytes", "Bytes of repair symbols sent", counts.repair_bytes_sent),
            ("received_repair_symbols", "Repair symbols received", counts.repair_symbols_received),
            ("recovered_packets", "Packets that this end recovered", counts.recovered),
            ("peer_recovered_packets", "Packets that peers recovered", counts.recovered_by_peer),
        ] {
            write(&mut encoder, name, help, &ConstCounter::new(count))?;
        }
        let saved = ConstCounter::new(counts.time_saved.as_secs_f64());
        let help = "Time that recovery was sooner than sending again";
        write(&mut encoder, "saved_seconds", help, &saved)?;
        let round_trips = sorted(summary.round_trips.iter().map(std::time::Duration::as_secs_f64));
        let at = |q| if round_trips.is_empty() { 0.0 } else { quantile(&round_trips, q) };
        for (name, help, value) in [
            ("connections_open", "Connections that are open", round_trips.len() as f64),
            ("in_flight_bytes", "Bytes in flight", summary.in_flight as f64),
            ("round_trip_median_seconds", "Median of the smoothed round-trip times", at(0.5)),
            ("round_trip_p90_seconds", "Ninth decile of the smoothed round-trip times", at(0.9)),
        ] {
            write(&mut encoder, name, help, &ConstGauge::new(value))?;
        }
        Ok(())
    }
}

fn write(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    metric: &impl EncodeMetric,
) -> Result<(), fmt::Error> {
    let encoder = encoder.encode_descriptor(name, help, None, metric.metric_type())?;
    metric.encode(encoder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_names_and_units() {
        let text = text(&Arc::new(Watched::new("test"))).unwrap();
        for line in [
            "# TYPE sutura_lost_packets counter",
            "sutura_lost_packets_total 0",
            "sutura_saved_seconds_total 0.0",
            "# TYPE sutura_connections_open gauge",
            "sutura_connections_open 0.0",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}: {text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }
}
