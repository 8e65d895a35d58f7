//! The report of an experiment or a benchmark: text, tables and figures.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use serde::Serialize;

use crate::figure::{Chart, ChartError, Picture, slug};
use crate::table::Table;

/// The result of an experiment or a benchmark. Serialised by `serde`, it has everything except the
/// pictures.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// The name of the experiment or benchmark; it prefixes the names of the pictures.
    pub name: String,
    /// A heading.
    pub title: String,
    /// The method, and how to read the report; one entry per paragraph.
    pub text: Vec<String>,
    /// The tables.
    pub tables: Vec<Table>,
    /// The single results behind the tables, where another program may want them: too many for a page, so
    /// that only the CSV and the JSON have them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Table>,
    /// The expectations that do not hold, if this is a test: a text for each.
    pub failures: Vec<String>,
    /// The charts. Their names are unique.
    pub charts: Vec<Chart>,
    /// Other pictures. Their names are unique, among the charts too.
    #[serde(skip)]
    pub pictures: Vec<Picture>,
}

impl Report {
    /// The report as Markdown, without the charts and pictures.
    pub fn to_markdown(&self) -> String {
        let mut out = format!("# {}\n", self.title);
        for paragraph in &self.text {
            // Writing to a string cannot fail.
            let _ = write!(out, "\n{paragraph}\n");
        }
        for table in &self.tables {
            let _ = write!(out, "\n{}", table.to_markdown());
        }
        for failure in &self.failures {
            let _ = write!(out, "\nFailure:\n\n```text\n{failure}\n```\n");
        }
        out
    }

    /// The tables with the names of their files: `table-1` for the first, and `data` for the single results.
    pub fn named_tables(&self) -> impl Iterator<Item = (String, &Table)> {
        let tables =
            (1..).zip(&self.tables).map(|(number, table)| (format!("table-{number}"), table));
        tables.chain(self.data.as_ref().map(|data| ("data".to_owned(), data)))
    }

    /// All charts and pictures, named after the report and the chart or picture.
    ///
    /// # Errors
    /// A chart cannot be drawn.
    pub fn all_pictures(&self) -> Result<Vec<Picture>, ChartError> {
        let name = |name: &str| slug(&format!("{} {name}", self.name));
        let draw = |chart: &Chart| Ok(Picture { name: name(&chart.name), svg: chart.to_svg()? });
        let mut all = self.charts.iter().map(draw).collect::<Result<Vec<_>, ChartError>>()?;
        let drawn = |picture: &Picture| Picture { name: name(&picture.name), ..picture.clone() };
        all.extend(self.pictures.iter().map(drawn));
        Ok(all)
    }

    /// The report as Markdown with a head that says how its figures were made.
    pub fn to_page(&self, origin: &Origin) -> String {
        let Origin { command, place } = origin;
        let place = match place {
            Place::Machine(machine) => format!(" on {machine}"),
            Place::VirtualTime => ", in virtual time: every machine gets the same".to_owned(),
        };
        let head = format!("<!-- Generated. Do not edit. -->\n\nMade by `{command}`{place}.");
        let mut report = self.clone();
        report.text.insert(0, head);
        report.to_markdown()
    }

    /// Writes the [page](Self::to_page) to a file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, path: &Path, origin: &Origin) -> io::Result<()> {
        fs::write(path, self.to_page(origin))
    }
}

/// How the figures of a report were made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The command that makes them.
    pub command: String,
    /// Where it ran.
    pub place: Place,
}

/// The conditions that the figures of a report depend on besides the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// On this machine.
    Machine(String),
    /// On nothing: the command simulates.
    VirtualTime,
}

impl Place {
    /// The machine that this process runs on.
    pub fn this_machine() -> Self {
        Self::Machine(machine())
    }
}

impl Origin {
    /// The origin of this process: `command` starts it, and its arguments are appended.
    pub fn of_this_process(command: &str, place: Place) -> Self {
        let command = std::iter::once(command.to_owned()).chain(std::env::args().skip(1));
        Self { command: command.collect::<Vec<_>>().join(" "), place }
    }
}

/// The CPU model, where Linux reports it, and the number of threads that run in parallel.
pub fn machine() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = info.lines().find(|line| line.starts_with("model name"));
    let model = line.and_then(|line| line.split_once(':')).map_or("an unknown CPU", |(_, m)| m);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{}, {threads} threads, {}", model.trim(), std::env::consts::OS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{Axis, Panel, Series};

    fn report() -> Report {
        let mut table = Table::new("Figures", ["name"]);
        table.row(["a"]);
        let chart = |name: &str| Chart {
            name: name.to_owned(),
            x: Axis::linear("time in ms"),
            panels: vec![Panel::of([Series::line("a", vec![(0.0, 0.0), (1.0, 1.0)])])],
            ..Chart::default()
        };
        Report {
            name: "x".to_owned(),
            title: "Title".to_owned(),
            text: vec!["Text.".to_owned()],
            tables: vec![table],
            data: None,
            failures: Vec::new(),
            charts: vec![chart("First, 1 MB"), chart("first by 2 MB")],
            pictures: vec![Picture { name: "third".to_owned(), svg: "<svg/>".to_owned() }],
        }
    }

    #[test]
    fn markdown_has_text_and_tables() {
        let expected = "# Title\n\nText.\n\nFigures:\n\n| name |\n| --- |\n| a |\n";
        assert_eq!(report().to_markdown(), expected);
    }

    #[test]
    fn markdown_shows_failures() {
        let report = Report { failures: vec!["seed 3: lost".to_owned()], ..report() };
        assert!(report.to_markdown().ends_with("\nFailure:\n\n```text\nseed 3: lost\n```\n"));
    }

    #[test]
    fn charts_of_the_same_axes_have_names_of_their_own() {
        let pictures = report().all_pictures().unwrap();
        let names: Vec<_> = pictures.iter().map(|picture| picture.name.as_str()).collect();
        assert_eq!(names, ["x-first-1-mb", "x-first-by-2-mb", "x-third"]);
    }

    #[test]
    fn tables_have_names_for_files() {
        let data = Some(Table::new("Single results", ["x"]));
        let report = Report { data, ..report() };
        let names: Vec<_> = report.named_tables().map(|(name, _)| name).collect();
        assert_eq!(names, ["table-1", "data"]);
    }

    #[test]
    fn a_file_says_how_it_was_made() {
        let path = std::env::temp_dir().join(format!("sutura-report-{}.md", std::process::id()));
        let places = [
            (Place::this_machine(), "` on "),
            (Place::VirtualTime, "`, in virtual time: every machine gets the same."),
        ];
        for (place, told) in places {
            let origin = Origin { command: "bench --quick".to_owned(), place };
            report().save(&path, &origin).unwrap();
            let text = fs::read_to_string(&path).unwrap();
            fs::remove_file(&path).unwrap();
            let (head, rest) = text.split_once("\n\nText.").unwrap();
            assert!(head.starts_with("# Title\n\n<!-- Generated"), "{head}");
            assert!(head.contains(&format!("Made by `bench --quick{told}")), "{head}");
            assert!(rest.ends_with("| a |\n"), "{rest}");
        }
        let missing = Path::new("/nonexistent/report.md");
        let origin = Origin { command: "bench".to_owned(), place: Place::VirtualTime };
        assert!(report().save(missing, &origin).is_err());
    }
}
