//! The gain of redundancy with each congestion controller (section 6: BBR gains more than CUBIC).

use sutura_analysis::interval::Estimate;

use crate::report::{Cell, Table};

use super::{BASELINE, Mode, ScreenFigures, ScreenPath};

/// A controller's runs over the baseline path.
struct ByController<'a> {
    total: &'a ScreenFigures,
    partial: &'a ScreenFigures,
    repaired: &'a ScreenFigures,
}

impl ByController<'_> {
    /// The 99th percentile of the times that the paper measures of a workload.
    fn waits(summary: &ScreenFigures) -> Estimate {
        match summary.setup.workload {
            Mode::Streaming => summary.measured.blocked.estimate(0.99),
            Mode::Interactive => summary.measured.responses.estimate(0.99),
        }
    }

    /// By how much less `RS 1.05` waits than `total`, in milliseconds.
    fn gain(&self) -> Estimate {
        Self::waits(self.total).minus(Self::waits(self.repaired))
    }

    /// The same as a share of what `total` waits.
    fn share(&self) -> Estimate {
        let one = Estimate::exact(1.0);
        one.minus(Self::waits(self.repaired).over(Self::waits(self.total)))
    }
}

/// The table.
pub(super) fn table(summaries: &[ScreenFigures]) -> Table {
    let on_baseline = |s: &&ScreenFigures| {
        s.setup.path
            == ScreenPath {
                congestion: s.setup.path.congestion,
                figures: s.setup.path.figures,
                ..BASELINE
            }
    };
    let rows: Vec<&ScreenFigures> = summaries.iter().filter(on_baseline).collect();
    let of_path =
        rows.chunk_by(|a, b| (a.setup.workload, a.setup.path) == (b.setup.workload, b.setup.path));
    let compared = of_path.filter_map(|rows| {
        let named = |name| rows.iter().copied().find(|s| s.setup.scheme.name == name);
        let (total, partial, repaired) = (named("total")?, named("partial")?, named("RS 1.05")?);
        Some(ByController { total, partial, repaired })
    });
    let waits = |s: &ScreenFigures| Cell::MillisWithin(ByController::waits(s));
    Table::of(
        "What redundancy gains with each congestion controller: 99th percentiles, blocked or response",
        compared.collect::<Vec<_>>().as_slice(),
        &[
            ("updates", &|c| c.total.setup.workload.name().into()),
            ("controller", &|c| c.total.setup.path.congestion.to_string().into()),
            ("total", &|c| waits(c.total)),
            ("partial", &|c| waits(c.partial)),
            ("RS 1.05", &|c| waits(c.repaired)),
            ("gain", &|c| Cell::MillisWithin(c.gain())),
            ("gain, share", &|c| Cell::ShareWithin(c.share())),
            ("complete, total", &|c| Cell::NumberWithin(c.total.measured.complete)),
            ("complete, RS 1.05", &|c| Cell::NumberWithin(c.repaired.measured.complete)),
        ],
    )
}
