//! The time between deliveries (Figs. 9b to 26b).

use std::time::Duration;

use sutura_analysis::figure::{Axis, Chart, Panel, Series};
use sutura_analysis::statistics::millis;
use sutura_sim::DeliveredMessage;

use super::report::{figure, path_name};
use super::{MESSAGES, ScreenFigures};

/// Gaps of less than this share of the round-trip time are not drawn: there is such a gap for each message.
const DRAWN: u32 = 10;
/// The schemes that are drawn: the schemes of the paper, and `auto`.
const SCHEMES: [&str; 5] = ["total", "partial", "RS 1.05", "RS 1.10", "auto"];

/// The time from the delivery of a message to the delivery of the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    /// When it ended, since the first update was asked for.
    pub(super) end: Duration,
    pub(super) length: Duration,
    /// Whether it is between the last message of an update and the first of the next.
    pub(super) between_updates: bool,
}

impl Gap {
    /// How long it is beyond the `pause` that there is between two updates anyway.
    pub(super) fn beyond(&self, pause: Duration) -> Duration {
        self.length.saturating_sub(if self.between_updates { pause } else { Duration::ZERO })
    }
}

/// The gaps between messages, of which the first update was asked for at `began`.
pub(super) fn between(messages: &[DeliveredMessage], began: Duration) -> Vec<Gap> {
    let gap = |(index, two): (usize, &[DeliveredMessage])| Gap {
        end: two[1].delivered.saturating_sub(began),
        length: two[1].delivered - two[0].delivered,
        between_updates: (index + 1).is_multiple_of(MESSAGES),
    };
    messages.windows(2).enumerate().map(gap).collect()
}

/// The gaps that are drawn: seconds since the start, and milliseconds beyond the `pause`.
pub(super) fn drawn(gaps: &[Gap], pause: Duration, rtt: Duration) -> Vec<(f64, f64)> {
    let long = gaps.iter().filter(|gap| gap.beyond(pause) > rtt / DRAWN);
    long.map(|gap| (gap.end.as_secs_f64(), millis(gap.beyond(pause)))).collect()
}

/// The chart of a path.
pub(super) fn chart(rows: &[&ScreenFigures]) -> Option<Chart> {
    let first = rows.first()?;
    let shown = rows.iter().filter(|s| SCHEMES.contains(&s.setup.scheme.name));
    let series = shown.map(|s| {
        let label =
            format!("{}, complete after {:.2} s", s.setup.scheme.name, s.measured.complete.value);
        Series::points(label, s.measured.drawn.clone())
    });
    Some(Chart {
        name: format!("{} gaps", figure(first)).to_lowercase(),
        title: format!("{}: {}", figure(first), path_name(&first.setup.path)),
        x: Axis::linear("time of the delivery in s"),
        y: Axis::linear("time since the delivery before in ms"),
        baseline: Some(first.setup.path.rtt as f64),
        panels: vec![Panel::of(series)],
    })
}
