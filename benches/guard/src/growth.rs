//! The curves: their points, the page and the charts.

use crate::{count, fit};
use std::path::PathBuf;
use sutura_analysis::figure::{Axis, Chart, Panel, Series as Drawn};
use sutura_analysis::report::{Origin, Place, Report};
use sutura_analysis::table::{Cell, Table};
use sutura_guard::{CURVES, Curve, Error, Kind, SEED};

/// Which curves are measured, and where they go.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The curves; all without a name
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(CURVES.iter().map(|c| c.name)))]
    names: Vec<String>,
    /// Write results/curves.md and figures/curves-*.svg into this folder as well
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// A curve with what was counted: for each series, the points.
struct Counted {
    curve: &'static Curve,
    series: Vec<Vec<(f64, f64)>>,
}

/// Measures curves, prints them and writes the page and the charts.
pub fn run(options: &Options) -> Result<(), Error> {
    let is_chosen =
        |curve: &Curve| options.names.is_empty() || options.names.iter().any(|n| n == curve.name);
    let chosen = CURVES.iter().enumerate().filter(|(_, curve)| is_chosen(curve));
    let counted =
        chosen.map(|(number, curve)| counted(number, curve)).collect::<Result<Vec<_>, _>>()?;
    let report = report(&counted);
    print!("{}", report.to_markdown());
    let Some(out) = &options.out else { return Ok(()) };
    let (results, figures) = (out.join("results"), out.join("figures"));
    std::fs::create_dir_all(&results)?;
    std::fs::create_dir_all(&figures)?;
    let place = Place::Machine(count::toolchain()?);
    let origin = Origin::of_this_process("target/release/guard", place);
    report.save(&results.join("curves.md"), &origin)?;
    for picture in report.all_pictures()? {
        std::fs::write(figures.join(format!("{}.svg", picture.name)), picture.svg)?;
    }
    Ok(())
}

fn counted(number: usize, curve: &'static Curve) -> Result<Counted, Error> {
    let of_series = |series: usize| {
        let point = |(point, x): (usize, &f64)| {
            eprintln!("{}: {}: {x}", curve.name, curve.series[series].name);
            Ok((*x, count::point(number, series, point)?))
        };
        curve.points.iter().enumerate().map(point).collect::<Result<Vec<_>, Error>>()
    };
    let series = (0..curve.series.len()).map(of_series).collect::<Result<_, _>>()?;
    Ok(Counted { curve, series })
}

fn report(counted: &[Counted]) -> Report {
    let charts = counted.iter().flat_map(|c| [c.chart(Kind::Work), c.chart(Kind::State)]);
    let charts: Vec<_> = charts.flatten().collect();
    let links = charts
        .iter()
        .map(|chart| format!("![{}](../figures/curves-{}.svg)", chart.title, chart.name));
    let mut report = Report {
        name: "curves".to_owned(),
        title: "How costs grow".to_owned(),
        text: vec![
            "Instructions, counted by callgrind, and bytes that are held, by one thing that grows while all \
             others stay the same. Two ends exchange datagrams in memory, in virtual time, without TLS, \
             ciphers and sockets; the set-up is not counted. The cost of a packet includes acknowledgements."
                .to_owned(),
            format!(
                "The exponent is b of the power a x^b with the least squares through the logarithms: 0 is \
                 flat, 1 linear. Points at 0 are left out. The word is that of the last decade. Losses are \
                 drawn with the seed {SEED}. The random seeds of maps move instructions by less than 0.5 %."
            ),
            "In `window`, `gaps` and `losses` the rate is what fills the window: where it is low, a packet has \
             a timer of its own, which costs more than many packets at once. `rtt` has the same rate at each \
             of its points, and holds the data in flight for longer."
                .to_owned(),
        ],
        tables: vec![exponents(counted)],
        charts: charts.clone(),
        ..Report::default()
    };
    report.text.extend(links);
    report.tables.extend(counted.iter().map(Counted::table));
    report
}

/// The name of a kind of cost.
fn unit(kind: Kind) -> &'static str {
    match kind {
        Kind::Work => "instructions",
        Kind::State => "bytes held",
    }
}

/// Without a sign at zero.
fn two_decimals(exponent: f64) -> String {
    format!("{:.2}", (exponent * 100.0).round() / 100.0 + 0.0)
}

fn exponents(counted: &[Counted]) -> Table {
    let columns = ["curve", "cost", "exponent", "in the last decade", "that is"];
    let mut table = Table::new("Exponents", columns);
    for one in counted {
        for (series, points) in one.curve.series.iter().zip(&one.series) {
            let (all, end) = (fit::exponent(points), fit::exponent(&fit::last_decade(points)));
            let figure = |exponent: Option<f64>| Cell::from(exponent.map(two_decimals));
            let cost = format!("{}, {}", unit(series.kind), series.name);
            let word = Cell::from(end.map(fit::word));
            table.row([one.curve.name.into(), cost.into(), figure(all), figure(end), word]);
        }
    }
    table
}

impl Counted {
    fn table(&self) -> Table {
        let heads = self.curve.series.iter().map(|s| format!("{}, {}", unit(s.kind), s.name));
        let columns = std::iter::once(self.curve.growing.to_owned()).chain(heads);
        let mut table = Table::new(format!("`{}`: {}", self.curve.name, self.curve.title), columns);
        for (row, x) in self.curve.points.iter().enumerate() {
            let figures = self.series.iter().map(|points| points.get(row).map(|point| point.1));
            let x = Cell::Text(((x * 10.0).round() / 10.0).to_string());
            let cells = figures.map(|figure| figure.map(|f| format!("{f:.0}")).into());
            table.row(std::iter::once(x).chain(cells));
        }
        table
    }

    /// A chart of the series of one kind, if there are any.
    fn chart(&self, kind: Kind) -> Option<Chart> {
        let lines = self.curve.series.iter().zip(&self.series).filter(|(s, _)| s.kind == kind);
        let lines: Vec<_> = lines.map(|(s, points)| Drawn::line(s.name, points.clone())).collect();
        (!lines.is_empty()).then(|| Chart {
            name: format!("{} {}", self.curve.name, unit(kind)).replace(' ', "-"),
            title: self.curve.title.to_owned(),
            x: Axis::log(self.curve.growing),
            y: Axis::log(unit(kind)),
            baseline: None,
            panels: vec![Panel::of(lines)],
        })
    }
}
