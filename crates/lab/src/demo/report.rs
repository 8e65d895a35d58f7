//! The demo as text for a terminal, and as figures.

use std::fmt::Write as _;

use sutura_analysis::figure::{Axis, Chart, Panel, Series};
use sutura_analysis::report::Report;
use sutura_analysis::table::Table;

use super::apps::WARM_UP;
use super::{App, Demo, Link, OnLink, Part, Redundancy, Row};

/// The columns of a terminal.
const WIDTH: usize = 80;
/// The end of the tail that charts show.
const SMALLEST_SHARE: f64 = 1e-4;
/// A figure that changes by less than this share is as it was.
const NOTABLE: f64 = 0.05;
/// Fewer bytes than this share are none.
const SOME_BYTES: f64 = 0.0005;

impl Demo {
    /// The tables and what follows from them, for a terminal of 80 columns.
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
        text
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
             links, and where their figures come from:",
            self.connections, self.seconds, self.seed
        )
    }

    /// The links, which are the same for all applications.
    fn links(&self) -> impl Iterator<Item = &Link> {
        self.parts.first().into_iter().flat_map(|part| part.links.iter().map(|on| &on.link))
    }
}

impl Part {
    fn to_text(&self) -> String {
        let app = self.app;
        let bound = match app {
            App::Stream => "`best` is what a perfect code reaches with as many repair symbols.",
            App::Messages | App::Download => "The bound is the same link without loss.",
        };
        let about = format!("{} Fixed redundancy: {}. {bound}", app.about(), app.fixed());
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
                    App::Stream | App::Messages => row.times.tail(SMALLEST_SHARE),
                    App::Download => row.times.curve(),
                };
                Series::line(row.redundancy.name(), points)
            });
            Panel { title: on_link.link.name.to_owned(), series: series.collect() }
        };
        let (name, x, y) = match self.app {
            App::Stream => ("stream", "delay of a byte in ms", None),
            App::Messages => ("messages", "delay of a message in ms", None),
            App::Download => ("download", "time of a download in ms", Some("share")),
        };
        let tail = || Axis::log("share that takes longer");
        Chart {
            name: name.to_owned(),
            title: self.app.title().to_owned(),
            x: Axis::linear(x),
            y: y.map_or_else(tail, Axis::linear),
            baseline: None,
            panels: self.links.iter().map(panel).collect(),
        }
    }
}

impl OnLink {
    fn to_text(&self, app: App) -> String {
        let late = self.late_after_ms.map(|late| format!(": late after {late:.0} ms"));
        let head = format!("{}{}\n", self.link.name, late.unwrap_or_default());
        head + &self.table(app).to_text(1) + &fill(&format!("=> {}", self.finding))
    }

    /// The figures, without columns that this application does not have.
    fn table(&self, app: App) -> Table {
        let late = app != App::Download;
        let best = app == App::Stream;
        let mut columns = vec![""];
        columns.extend(late.then_some("late"));
        columns.extend(best.then_some("best"));
        columns.extend(app.quantiles().iter().map(|(name, _)| *name));
        columns.extend(["extra", "repairs", "useful"]);
        let mut table = Table::new(self.link.name, columns);
        for row in &self.rows {
            let mut cells = vec![row.redundancy.name().to_owned()];
            cells.extend(late.then(|| share(row.late)));
            cells.extend(best.then(|| share(row.late_at_best)));
            cells.extend(app.quantiles().iter().map(|(name, _)| time(row, name)));
            cells.push(format!("{:+.1} %", row.extra * 100.0));
            cells.extend([row.repairs, row.useful].map(|count| count.to_string()));
            table.row(cells);
        }
        table
    }
}

fn share(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.2} %", share * 100.0))
}

fn time(row: &Row, quantile: &str) -> String {
    row.times_ms.get(quantile).map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1}"))
}

/// What follows from the figures: what the policy that sets itself gained, and what it cost. Messages
/// come with their deadline, so there it is the one that is told.
pub(super) fn finding(app: App, rows: &[Row]) -> String {
    let of = |redundancy| rows.iter().find(|row| row.redundancy == redundancy);
    let main = match app {
        App::Stream | App::Download => Redundancy::Auto,
        App::Messages => Redundancy::Target,
    };
    let (Some(plain), Some(auto)) = (of(Redundancy::None), of(main)) else { return String::new() };
    let name = auto.policy.as_deref().unwrap_or("none");
    if auto.repairs == 0 {
        let reason = auto.reason.as_deref().unwrap_or("it gives no reason");
        return format!("{name} sends no redundancy: {reason}.");
    }
    let lossless = of(Redundancy::Lossless);
    let (before, after) = match app {
        App::Stream | App::Messages => (plain.late, auto.late),
        App::Download => (plain.times_ms.get("p50").copied(), auto.times_ms.get("p50").copied()),
    };
    let verdict = verdict(before.unwrap_or(0.0), after.unwrap_or(0.0));
    let gain = match app {
        App::Stream => format!(
            "{} of the bytes are late instead of {} ({} at best), p99 is {} instead of {} ms",
            share(auto.late),
            share(plain.late),
            share(auto.late_at_best),
            time(auto, "p99"),
            time(plain, "p99"),
        ),
        App::Messages => format!(
            "{} of the messages are late instead of {}, p99 is {} instead of {} ms",
            share(auto.late),
            share(plain.late),
            time(auto, "p99"),
            time(plain, "p99"),
        ),
        App::Download => format!(
            "half of the files arrive within {} instead of {} ms ({} without loss)",
            time(auto, "p50"),
            time(plain, "p50"),
            lossless.map_or_else(|| "-".to_owned(), |row| time(row, "p50")),
        ),
    };
    format!("{name} {verdict}: {gain}, {}.", cost(auto.extra))
}

/// Whether a figure that should be small became smaller.
fn verdict(before: f64, after: f64) -> &'static str {
    if after < before * (1.0 - NOTABLE) {
        "helps"
    } else if after > before * (1.0 + NOTABLE) {
        "does harm"
    } else {
        "changes little"
    }
}

fn cost(extra: f64) -> String {
    let percent = extra.abs() * 100.0;
    if extra > SOME_BYTES {
        format!("for {percent:.1} % more bytes")
    } else if extra < -SOME_BYTES {
        format!("with {percent:.1} % fewer bytes")
    } else {
        "for no more bytes".to_owned()
    }
}

/// Breaks text into lines that fit a terminal.
fn fill(text: &str) -> String {
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
mod tests {
    use sutura_analysis::statistics::Distribution;

    use super::*;

    fn row(redundancy: Redundancy, late: f64, p50: f64, extra: f64, repairs: u64) -> Row {
        Row {
            redundancy,
            policy: match redundancy {
                Redundancy::None | Redundancy::Lossless => None,
                Redundancy::Fixed => Some("tail:burst=1".to_owned()),
                Redundancy::Auto => Some("auto".to_owned()),
                Redundancy::Target => Some("auto:within=80ms".to_owned()),
            },
            late: Some(late),
            late_at_best: Some(late / 2.0),
            times_ms: [("p50", p50), ("p99", 3.0 * p50), ("p99.9", 4.0 * p50)].into(),
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
            "auto helps: 1.00 % of the bytes are late instead of 4.00 % (0.50 % at best), p99 is \
             120.0 instead of 150.0 ms, for 12.3 % more bytes."
        );
        let worse = of(App::Stream, &[plain.clone(), auto(0.05, 40.0, -0.01)]);
        assert!(worse.starts_with("auto does harm: "), "{worse}");
        assert!(worse.ends_with(", with 1.0 % fewer bytes."), "{worse}");
        let lossless = row(Redundancy::Lossless, 0.0, 48.0, 0.0, 0);
        assert_eq!(
            of(App::Download, &[plain.clone(), auto(0.0, 49.0, 0.0), lossless]),
            "auto changes little: half of the files arrive within 49.0 instead of 50.0 ms (48.0 \
             without loss), for no more bytes."
        );
        // Of messages, the policy that is told the deadline counts.
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
        let links = crate::demo::LINKS.map(|link| OnLink {
            link,
            late_after_ms: Some(100.0),
            rows: rows.to_vec(),
            finding: finding(App::Messages, &rows),
        });
        let part = |app| Part { app, links: links.to_vec() };
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
        assert_eq!(demo.figures().charts.len(), 3);
        assert_eq!(fill("a b"), "a b\n");
    }
}
