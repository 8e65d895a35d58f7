//! The demo as text for a terminal, and as figures.

use crate::report::{Axis, Chart, Panel, Report, Series, Table, panels_of};
use std::fmt::Write as _;

use super::apps::WARM_UP;
use super::summary::SOME_BYTES;
use super::{App, Demo, Link, Measure, OnLink, Part, Redundancy, Row, Verdict};

/// The columns of a terminal.
const WIDTH: usize = 80;
/// The end of the tail that charts show.
const SMALLEST_SHARE: f64 = 1e-4;

impl Demo {
    /// All tables with their conclusions, and the summary, for a terminal of 80 columns.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = fill(&self.introduction());
        for link in self.links() {
            text += &fill(&format!("{}: {}; {}.", link.name, link.about, link.source));
        }
        for part in &self.parts {
            text.push('\n');
            text += &part.to_text();
        }
        text.push('\n');
        text + &self.summary()
    }

    /// The distributions as charts, in a report named `demo`.
    #[must_use]
    pub fn figures(&self) -> Report {
        let charts = self.parts.iter().map(Part::chart).collect();
        let title = "What redundancy gains".to_owned();
        Report { name: "demo".to_owned(), title, charts, ..Report::default() }
    }

    fn introduction(&self) -> String {
        format!(
            "Plain QUIC (none), a fixed redundancy, the policy that sets itself (auto) and the same \
             told when data is late (auto+target), on a virtual clock: {} connections each, {} s of \
             stream and of messages on each after {WARM_UP} s in which the congestion window opens, \
             seed {}. Times are in ms. `extra` is the cost: bytes sent beyond those of plain QUIC; \
             `repairs` are repair symbols, `useful` those that brought back something lost. The \
             bounds hold for everything that a sender can do. The links, and where their figures come from:",
            self.connections, self.seconds, self.seed
        )
    }

    /// The links, each once.
    fn links(&self) -> Vec<&Link> {
        let mut links = Vec::new();
        for on in self.parts.iter().flat_map(|part| &part.links) {
            if !links.contains(&&on.link) {
                links.push(&on.link);
            }
        }
        links
    }
}

impl Part {
    fn to_text(&self) -> String {
        let app = self.app;
        let beside = match app {
            App::Game => "",
            App::Stream => {
                " `model` is what a perfect code reaches with as many repair symbols at times that are \
                 fixed beforehand; who looks at the path can do better."
            }
            App::Messages | App::Download => {
                " `none, no loss` is plain QUIC over the same link without loss: no bound, as repair \
                 can also make up for queues or a small buffer."
            }
        };
        let about = format!("{} Fixed redundancy: {}.{beside}", app.about(), app.fixed());
        let mut text = format!("{}\n{}", app.title().to_uppercase(), fill(&about));
        for link in &self.links {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n{}", link.to_text(app));
        }
        text
    }

    /// The tails of the times, or for downloads the whole distribution, one panel for each link.
    fn chart(&self) -> Chart {
        let panel = |on_link: &OnLink| {
            let series = on_link.rows.iter().map(|row| {
                let points = match self.app {
                    App::Game | App::Stream | App::Messages => row.times.tail(SMALLEST_SHARE),
                    App::Download => row.times.curve(),
                };
                Series::line(row.redundancy.name(), points)
            });
            Panel { title: on_link.link.name.to_owned(), series: series.collect() }
        };
        let (name, x, y) = match self.app {
            App::Game => ("game", "time from input to answer in ms", None),
            App::Stream => ("stream", "delay of a byte in ms", None),
            App::Messages => ("messages", "delay of a message in ms", None),
            App::Download => ("download", "time of a download in ms", Some("share")),
        };
        let tail = || Axis::log("share that takes longer");
        panels_of(
            name,
            self.app.title(),
            [Axis::linear(x), y.map_or_else(tail, Axis::linear)],
            self.links.iter().map(panel),
        )
    }
}

impl OnLink {
    fn to_text(&self, app: App) -> String {
        let late = self.late_after_ms.map(|late| format!("late after {late:.0} ms"));
        let least = self.late_bound.map(|least| format!("bound: {} late", percent(least)));
        let time = self.time_bound_ms.map(|ms| format!("bound: {ms:.1} ms"));
        let said: Vec<_> = [late, least, time].into_iter().flatten().collect();
        let head = format!("{}: {}\n", self.link.name, said.join("; "));
        head + &self.table(app).to_text(1) + &fill(&format!("=> {}", self.finding))
    }

    /// The figures, without columns that this application does not have.
    fn table(&self, app: App) -> Table {
        let late = app != App::Download;
        let model = app == App::Stream;
        let lost = app == App::Game;
        let mut columns = vec![""];
        columns.extend(late.then_some("late"));
        columns.extend(lost.then_some("lost"));
        columns.extend(model.then_some("model"));
        columns.extend(app.quantiles().iter().map(|(name, _)| *name));
        columns.extend(["extra", "repairs", "useful"]);
        let mut table = Table::new(self.link.name, columns);
        for row in &self.rows {
            let mut cells = vec![row.redundancy.name().to_owned()];
            cells.extend(late.then(|| share(row.late)));
            cells.extend(lost.then(|| percent(row.lost)));
            cells.extend(model.then(|| share(row.late_in_model)));
            cells.extend(app.quantiles().iter().map(|(name, _)| time(row, name)));
            cells.push(format!("{:+.1} %", row.extra * 100.0));
            cells.extend([row.repairs, row.useful].map(|count| count.to_string()));
            table.row(cells);
        }
        table
    }
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

fn share(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), percent)
}

/// A quantile of the times; "lost" if the quantile falls on a message that never came.
fn time(row: &Row, quantile: &str) -> String {
    let time = row.times_ms.get(quantile);
    time.map_or("-".to_owned(), |ms| ms.map_or("lost".to_owned(), |ms| format!("{ms:.1}")))
}

/// The conclusion from the figures: the gain and the cost of the summary's policy. Names only differences
/// that a person can notice.
pub(super) fn finding(app: App, rows: &[Row]) -> String {
    let of = |redundancy| rows.iter().find(|row| row.redundancy == redundancy);
    let (Some(plain), Some(main)) = (of(Redundancy::None), of(Redundancy::of_summary(app))) else {
        return String::new();
    };
    let summary = super::Summary::of(app, rows);
    let name = &summary.policy;
    let gain = match app {
        App::Game => changed("inputs have no answer in time", plain, main),
        App::Stream => changed("bytes are late", plain, main),
        App::Messages => changed("messages are late", plain, main),
        App::Download => format!(
            "half of the files arrive within {} instead of {} ms",
            time(main, "p50"),
            time(plain, "p50")
        ),
    };
    let cost = cost(main.extra);
    match summary.verdict {
        Verdict::NotNeeded => {
            let reason = main.reason.as_deref().unwrap_or("it gives no reason");
            format!("{name} sends no redundancy: {reason}.")
        }
        Verdict::Helps => format!("{name} helps: {gain}, {cost}."),
        Verdict::DoesHarm => format!("{name} does harm: {gain}, {cost}."),
        Verdict::Costs => format!("{name} costs more than it gains: {gain}, {cost}."),
        Verdict::NoDifference => format!("{name} makes no difference: {gain}, {cost}."),
    }
}

/// The share of late data, and its p99 if that became noticeably less.
fn changed(what: &str, plain: &Row, main: &Row) -> String {
    let [after, before] = [main.late, plain.late].map(share);
    let late = format!("{after} of the {what} instead of {before}");
    let p99 = |row: &Row| row.times_ms.get("p99").copied().flatten();
    match (p99(plain), p99(main)) {
        (Some(before), Some(after)) if Measure::MedianMs.improved(before, after) => {
            format!("{late}, p99 is {after:.1} instead of {before:.1} ms")
        }
        _ => late,
    }
}

fn cost(extra: f64) -> String {
    let percent = extra.abs() * 100.0;
    if extra >= SOME_BYTES {
        format!("for {percent:.1} % more bytes")
    } else if extra <= -SOME_BYTES {
        format!("with {percent:.1} % fewer bytes")
    } else {
        "for no more bytes".to_owned()
    }
}

/// Breaks text into lines that fit a terminal.
pub(super) fn fill(text: &str) -> String {
    let mut lines = String::new();
    let mut width = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if width > 0 && width + 1 + length > WIDTH {
            lines.push('\n');
            width = 0;
        } else if width > 0 {
            lines.push(' ');
            width += 1;
        }
        lines += word;
        width += length;
    }
    lines + "\n"
}

#[cfg(test)]
pub(super) mod tests {
    use sutura_analysis::statistics::Distribution;

    use super::*;

    /// A row in which the model has half of the late data, and nothing is lost.
    pub(in super::super) fn row(
        redundancy: Redundancy,
        late: f64,
        p50: f64,
        extra: f64,
        repairs: u64,
    ) -> Row {
        Row {
            redundancy,
            policy: match redundancy {
                Redundancy::None | Redundancy::Lossless => None,
                Redundancy::Fixed => Some("tail:burst=1".to_owned()),
                Redundancy::Auto => Some("auto".to_owned()),
                Redundancy::Target => Some("auto:within=80ms".to_owned()),
            },
            late: Some(late),
            late_in_model: Some(late / 2.0),
            lost: 0.0,
            times_ms: [("p50", Some(p50)), ("p99", Some(3.0 * p50)), ("p99.9", None)].into(),
            bytes: 1000,
            extra,
            repairs,
            useful: repairs / 2,
            reason: Some("retransmission is fast enough".to_owned()),
            times: Distribution::default(),
        }
    }

    #[test]
    fn the_sentence_says_what_the_figures_do() {
        let plain = row(Redundancy::None, 0.04, 50.0, 0.0, 0);
        let auto = |late, p50, extra| row(Redundancy::Auto, late, p50, extra, 10);
        let of = |app, rows: &[Row]| finding(app, rows);
        assert_eq!(
            of(App::Stream, &[plain.clone(), auto(0.01, 40.0, 0.123)]),
            "auto helps: 1.00 % of the bytes are late instead of 4.00 %, for 12.3 % more bytes."
        );
        assert_eq!(
            of(App::Stream, &[plain.clone(), auto(0.01, 10.0, 0.123)]),
            "auto helps: 1.00 % of the bytes are late instead of 4.00 %, p99 is 30.0 instead of \
             150.0 ms, for 12.3 % more bytes."
        );
        let worse = of(App::Stream, &[plain.clone(), auto(0.05, 40.0, -0.01)]);
        assert!(worse.starts_with("auto does harm: "), "{worse}");
        assert!(worse.ends_with(", with 1.0 % fewer bytes."), "{worse}");
        assert_eq!(
            of(App::Download, &[plain.clone(), auto(0.0, 49.0, 0.0)]),
            "auto makes no difference: half of the files arrive within 49.0 instead of 50.0 ms, for \
             no more bytes."
        );
        // For messages, the summary takes the policy that is told the deadline.
        let told = row(Redundancy::Target, 0.04, 50.0, 0.0, 0);
        assert_eq!(
            of(App::Messages, &[plain, auto(0.01, 40.0, 0.1), told]),
            "auto:within=80ms sends no redundancy: retransmission is fast enough."
        );
    }

    #[test]
    fn text_fits_a_terminal() {
        let rows = [
            row(Redundancy::None, 0.9999, 1234.5, 0.0, 0),
            row(Redundancy::Target, 0.9999, 1234.5, 0.999, 99_999),
        ];
        let on = |app: App, link: &Link| OnLink {
            link: *link,
            late_after_ms: Some(100.0),
            late_bound: Some(0.9999),
            time_bound_ms: Some(12345.6),
            rows: rows.to_vec(),
            summary: crate::demo::Summary::of(app, &rows),
            finding: finding(App::Messages, &rows),
        };
        let part =
            |app: App| Part { app, links: app.links().iter().map(|link| on(app, link)).collect() };
        let parts = App::ALL.map(part).to_vec();
        let demo = Demo { seed: u64::MAX, seconds: 600, connections: 1000, parts };
        let text = demo.to_text();
        for line in text.lines() {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
        for link in crate::demo::LINKS {
            let source = link.source.split_whitespace().next().unwrap();
            assert!(text.contains(source), "{text}");
        }
        assert_eq!(demo.figures().charts.len(), App::ALL.len());
        assert!(demo.summary().lines().count() < 24, "it fits a screen");
        assert_eq!(fill("a b"), "a b\n");
    }
}
