//! What an experiment answers.

use std::fmt::{self, Write};
use std::time::Duration;

use serde::Serialize;

use crate::Error;
use crate::charts::{Picture, charts};
use crate::metrics::millis;
use crate::plot::Plot;

/// The answer of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// The experiment's name.
    pub name: String,
    /// A heading.
    pub title: String,
    /// What was done, and how to read it; a paragraph each.
    pub text: Vec<String>,
    /// The figures.
    pub tables: Vec<Table>,
    /// Curves, to be plotted.
    pub series: Vec<Series>,
    /// Plots.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plots: Vec<Plot>,
    /// Pictures of anything else; not in JSON.
    #[serde(skip)]
    pub pictures: Vec<Picture>,
}

/// Figures in rows and columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Table {
    /// What the table shows.
    pub caption: String,
    /// What stands in the columns.
    pub columns: Vec<String>,
    /// As many cells each as there are columns.
    pub rows: Vec<Vec<Cell>>,
}

/// One figure. In JSON it is a bare number or text, in the unit named here.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Cell {
    /// A label.
    Text(String),
    /// A number of things.
    Count(u64),
    /// A share, 0 to 1. Markdown shows percent.
    Share(f64),
    /// Milliseconds.
    Millis(f64),
    /// A mean or a ratio.
    Number(f64),
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Duration> for Cell {
    fn from(duration: Duration) -> Self {
        Self::Millis(millis(duration))
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Count(n) => write!(f, "{n}"),
            Self::Share(share) => {
                let percent = share * 100.0;
                let digits = if percent >= 10.0 || percent == 0.0 { 1 } else { 3 };
                write!(f, "{percent:.digits$} %")
            }
            Self::Millis(ms) => write!(f, "{ms:.1} ms"),
            Self::Number(number) => write!(f, "{number:.3}"),
        }
    }
}

/// A curve.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Series {
    /// What it shows.
    pub label: String,
    /// What `x` is, with its unit.
    pub x_label: String,
    /// What `y` is, with its unit.
    pub y_label: String,
    /// Its points.
    pub x: Vec<f64>,
    /// Its points.
    pub y: Vec<f64>,
}

impl Report {
    /// The report as Markdown, without the curves.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let mut out = format!("# {}\n", self.title);
        for paragraph in &self.text {
            // Writing to a string cannot fail.
            let _ = write!(out, "\n{paragraph}\n");
        }
        for table in &self.tables {
            out.push('\n');
            table.write_markdown(&mut out);
        }
        out
    }

    /// Everything that can be looked at: charts of the curves, the plots and the pictures.
    ///
    /// # Errors
    /// A chart cannot be drawn.
    pub fn all_pictures(&self) -> Result<Vec<Picture>, Error> {
        let mut all = charts(self)?;
        all.extend(self.plots.iter().map(|p| Picture { name: p.name.clone(), svg: p.to_svg() }));
        all.extend(self.pictures.iter().cloned());
        Ok(all)
    }

    /// The report as JSON.
    ///
    /// # Errors
    /// None with what this crate puts into reports.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }
}

impl Table {
    fn write_markdown(&self, out: &mut String) {
        let line = |cells: &mut dyn Iterator<Item = String>| {
            cells.fold("|".to_owned(), |line, cell| line + " " + &cell + " |") + "\n"
        };
        *out += &format!("{}:\n\n", self.caption);
        *out += &line(&mut self.columns.iter().cloned());
        *out += &line(&mut self.columns.iter().map(|_| "---".to_owned()));
        for row in &self.rows {
            *out += &line(&mut row.iter().map(Cell::to_string));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let row = vec!["a".into(), Cell::Share(0.0123), Duration::from_micros(1500).into()];
        Report {
            name: "x".to_owned(),
            title: "Title".to_owned(),
            text: vec!["Text.".to_owned()],
            tables: vec![Table {
                caption: "Figures".to_owned(),
                columns: ["name", "share", "time"].map(str::to_owned).to_vec(),
                rows: vec![row],
            }],
            series: vec![],
            plots: vec![],
            pictures: vec![],
        }
    }

    #[test]
    fn markdown() {
        let expected = "# Title\n\nText.\n\nFigures:\n\n| name | share | time |\n\
                        | --- | --- | --- |\n| a | 1.230 % | 1.5 ms |\n";
        assert_eq!(report().to_markdown(), expected);
    }

    #[test]
    fn json_has_bare_numbers() {
        let json: serde_json::Value = serde_json::from_str(&report().to_json().unwrap()).unwrap();
        assert_eq!(json["tables"][0]["rows"][0], serde_json::json!(["a", 0.0123, 1.5]));
    }
}
