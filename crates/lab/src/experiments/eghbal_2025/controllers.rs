//! What redundancy gains with each congestion controller (section 6: BBR gains more than CUBIC).

use std::time::Duration;

use sutura_analysis::statistics::millis;
use sutura_analysis::table::{Cell, Table};

use super::{BASELINE, Path, Summary, Workload};

/// A controller's runs over the baseline path.
struct Compared<'a> {
    total: &'a Summary,
    partial: &'a Summary,
    repaired: &'a Summary,
}

impl Compared<'_> {
    /// The 99th percentile of what the paper measures of a workload.
    fn waits(summary: &Summary) -> Duration {
        match summary.setup.workload {
            Workload::Streaming => summary.blocked.quantile(0.99),
            Workload::Interactive => summary.responses.quantile(0.99),
        }
    }

    /// By how much less `RS 1.05` waits than `total`, in milliseconds.
    fn gain(&self) -> f64 {
        millis(Self::waits(self.total)) - millis(Self::waits(self.repaired))
    }
}

/// The table.
pub(super) fn table(summaries: &[Summary]) -> Table {
    let on_baseline = |s: &&Summary| {
        s.setup.path
            == Path {
                congestion: s.setup.path.congestion,
                figures: s.setup.path.figures,
                ..BASELINE
            }
    };
    let rows: Vec<&Summary> = summaries.iter().filter(on_baseline).collect();
    let of_path =
        rows.chunk_by(|a, b| (a.setup.workload, a.setup.path) == (b.setup.workload, b.setup.path));
    let compared = of_path.filter_map(|rows| {
        let named = |name| rows.iter().copied().find(|s| s.setup.scheme.name == name);
        let (total, partial, repaired) = (named("total")?, named("partial")?, named("RS 1.05")?);
        Some(Compared { total, partial, repaired })
    });
    let waits = |s: &Summary| Cell::Millis(millis(Compared::waits(s)));
    Table::of(
        "What redundancy gains with each congestion controller: 99th percentiles, blocked or response",
        compared.collect::<Vec<_>>().as_slice(),
        &[
            ("updates", &|c| c.total.setup.workload.name().into()),
            ("controller", &|c| c.total.setup.path.congestion.to_string().into()),
            ("total", &|c| waits(c.total)),
            ("partial", &|c| waits(c.partial)),
            ("RS 1.05", &|c| waits(c.repaired)),
            ("gain", &|c| Cell::Millis(c.gain())),
            ("gain, share", &|c| {
                Cell::Share(c.gain() / millis(Compared::waits(c.total)).max(1e-9))
            }),
            ("complete, total", &|c| Cell::Number(c.total.complete)),
            ("complete, RS 1.05", &|c| Cell::Number(c.repaired.complete)),
        ],
    )
}
