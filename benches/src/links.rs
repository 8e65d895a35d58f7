//! How well emulated links kept to time.

use sutura_analysis::statistics::{Distribution, millis};
use sutura_relay::Stats;

/// A sentence for a report about the relays of all its measurements.
pub fn conditions<'a>(relays: impl Iterator<Item = &'a Stats> + Clone) -> String {
    let means = Distribution::of(relays.clone().map(|stats| stats.late_mean()));
    let worst = Distribution::of(relays.clone().map(|stats| stats.late_max));
    let missed: u64 = relays.map(|stats| stats.unsent + stats.refused).sum();
    format!(
        "Relays sent datagrams on late by {:.2} ms on average (the median relay; {:.2} ms the \
         worst one), and by {:.1} ms at most (the median; {:.1} ms the worst). {missed} \
         datagrams found no room in a socket.",
        millis(means.quantile(0.5)),
        millis(means.quantile(1.0)),
        millis(worst.quantile(0.5)),
        millis(worst.quantile(1.0)),
    )
}
