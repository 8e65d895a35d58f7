//! The report.

use crate::report::{Axis, Cell, Chart, Report, Series, Table, chart_of, report_of};
use sutura_analysis::statistics::millis;

use super::{MESSAGES, Mode, ScreenFigures, ScreenPath, UPDATES, controllers, gaps};

/// Schemes that are not drawn, so that a chart can be read.
const OMITTED: [&str; 5] =
    ["RS 1.03", "window 1.03", "LDPC 1.05", "RS 1.05 at once", "RS 1.10 stopped"];

pub(super) fn path_name(path: &ScreenPath) -> String {
    let ScreenPath { loss, rtt, mbit, congestion, .. } = path;
    format!("{loss} %, {rtt} ms, {mbit} Mbit/s, {congestion}")
}

pub(super) fn figure(summary: &ScreenFigures) -> &'static str {
    let [streaming, interactive] = summary.setup.path.figures;
    match summary.setup.workload {
        Mode::Streaming => streaming,
        Mode::Interactive => interactive,
    }
}

fn table(caption: &str, rows: &[&ScreenFigures], workload: Mode) -> Table {
    let waits = |s: &ScreenFigures, q| match workload {
        Mode::Streaming => s.measured.blocked.cell(q),
        Mode::Interactive => s.measured.responses.cell(q),
    };
    let gap = |s: &ScreenFigures, q| s.measured.gaps.cell(q);
    let named = |q: &str| match workload {
        Mode::Streaming => format!("blocked {q}"),
        Mode::Interactive => format!("response {q}"),
    };
    let [p50, p80, p99] = ["p50", "p80", "p99"].map(named);
    Table::of(
        caption,
        rows,
        &[
            ("figure", &|s| figure(s).into()),
            ("path", &|s| path_name(&s.setup.path).into()),
            ("scheme", &|s| s.setup.scheme.name.into()),
            (&p50, &|s| waits(s, 0.5)),
            (&p80, &|s| waits(s, 0.8)),
            (&p99, &|s| waits(s, 0.99)),
            ("gap p99", &|s| gap(s, 0.99)),
            ("gap p99.95", &|s| gap(s, 0.9995)),
            ("long gaps", &|s| Cell::NumberWithin(s.measured.long_gaps)),
            ("complete", &|s| Cell::NumberWithin(s.measured.complete)),
            ("wire/byte", &|s| Cell::NumberWithin(s.measured.wire)),
            ("sent again", &|s| Cell::ShareWithin(s.measured.again.as_share())),
            ("n/k", &|s| Cell::NumberWithin(s.measured.rate)),
            ("repairs", &|s| Cell::NumberWithin(s.measured.repairs)),
            ("recovered", &|s| Cell::NumberWithin(s.measured.recovered)),
        ],
    )
}

pub(super) fn report(summaries: &[ScreenFigures]) -> Report {
    let of = |workload| {
        let rows = summaries.iter().filter(move |s| s.setup.workload == workload);
        rows.collect::<Vec<_>>()
    };
    let (streaming, interactive) = (of(Mode::Streaming), of(Mode::Interactive));
    report_of(
        "Screen updates in partial order",
        &text(),
        [
            table("Streaming updates", &streaming, Mode::Streaming),
            table("Non-streaming updates", &interactive, Mode::Interactive),
            controllers::table(summaries),
        ],
        charts(&streaming).into_iter().chain(charts(&interactive)).collect::<Vec<_>>(),
    )
}

/// Two charts for each figure of the paper: the distribution of the time for which messages are blocked, or
/// of responses, and the gaps between deliveries.
fn charts(rows: &[&ScreenFigures]) -> Vec<Chart> {
    let figures = rows.chunk_by(|a, b| figure(a) == figure(b));
    figures.flat_map(|rows| distributions(rows).into_iter().chain(gaps::chart(rows))).collect()
}

fn distributions(rows: &[&ScreenFigures]) -> Option<Chart> {
    let first = rows.first()?;
    let (label, least) = match first.setup.workload {
        Mode::Streaming => ("time for which a message is blocked, in ms", 0.01),
        Mode::Interactive => ("time to respond, in ms", 1.0),
    };
    let series = rows.iter().filter(|s| !OMITTED.contains(&s.setup.scheme.name)).map(|s| {
        let distribution = match s.setup.workload {
            Mode::Streaming => &s.measured.blocked,
            Mode::Interactive => &s.measured.responses,
        };
        let at = |q: u32| {
            let time = distribution.quantile(f64::from(q) / 1000.0);
            (millis(time).max(least), f64::from(q) / 1000.0)
        };
        Series::line(s.setup.scheme.name, (0..1000).step_by(5).map(at).collect())
    });
    Some(chart_of(
        figure(first).to_lowercase().replace(". ", "-"),
        format!("{}: {}", figure(first), path_name(&first.setup.path)),
        [Axis::log(label), Axis::linear("share")],
        series,
    ))
}

fn text() -> Vec<String> {
    let gap = millis(super::GAP);
    vec![
        format!(
            "Eghbal and Lu 2025, section 6: {UPDATES} updates of {MESSAGES} messages of 1400 bytes over the \
             paths of Table 1, with a queue of 9 MB. The paper's losses are of both directions together, so \
             that each direction loses half as many. Streaming updates follow each other as fast as \
             congestion control lets them; the others are sent when the user acts, {gap} ms after the one \
             before was complete."
        ),
        "Messages are those of an ordered group, each on a stream of its own. With `total` there is a fence \
         behind each, with all others behind each update. `RS` and `LDPC` have an update as the block and \
         the paper's n/k: k symbols get k (n/k - 1) parity symbols, rounded up. `window` is the \
         sliding-window code over the same blocks. `2D` are matrices of ten rows and columns, which give \
         1.20 for 100 symbols, and more for the last ones of an update that has more. `auto` sets itself. `ideal` is `partial` on the same path without its \
         losses; what the queue drops stays."
            .to_owned(),
        "Lost data waits for repair symbols in flight, and the congestion controllers know the floor of the \
         path's loss. The paper's do neither: with `at once` lost data is sent again when its loss is known, \
         and with `stopped` the client stops besides each stream that repair has completed (STOP_SENDING, \
         section 4.2). `floor=off` has the paths of Figs. 9, 16, 18 and 25 again, with controllers that answer \
         every loss."
            .to_owned(),
        "A message is *blocked* from when it is complete until it is delivered; a *gap* is the time from one \
         delivery to the next, without the pauses between updates where the user acts, and long if it \
         exceeds a round trip; a *response* is the time from the user's action until the update is complete. \
         `complete` is in seconds; `sent again` is the share of the messages' bytes that was retransmitted; \
         `n/k` is what was reached."
            .to_owned(),
        "In the last table, updates of the same bytes are cut into a stream for each message, or each is one as in \
         the paper. `permitted` is how many streams may be open, `back/byte` what the client sends for each byte \
         of the messages."
            .to_owned(),
    ]
}
