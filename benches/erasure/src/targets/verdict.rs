//! Whether a target is met.

use super::{Criterion, Figure, Question};
use crate::{
    args::Section,
    measure::{Kind, Metric},
    results::{Results, Row, Table, Time},
};
use std::fmt;
use sutura_erasure::kernel::{Kernel, Tier};

/// What became of a criterion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Met,
    Missed,
    /// It would be met, but does not decide.
    InformationMet,
    /// It would be missed, but does not decide.
    InformationMissed,
    /// One of the figures is not there.
    NotMeasured,
}

impl Verdict {
    fn new(met: bool, binding: bool) -> Self {
        match (met, binding) {
            (true, true) => Self::Met,
            (false, true) => Self::Missed,
            (true, false) => Self::InformationMet,
            (false, false) => Self::InformationMissed,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Met => "**met**",
            Self::Missed => "**missed**",
            Self::InformationMet => "(met)",
            Self::InformationMissed => "(missed)",
            Self::NotMeasured => "-",
        })
    }
}

/// A figure with what it is called.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Named {
    pub label: String,
    pub kind: Kind,
    pub time: Time,
    /// Bytes that it counts for; none for the last part of a decode.
    pub bytes: Option<f64>,
}

/// A criterion and what was seen of it.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Finding {
    #[serde(serialize_with = "as_text")]
    pub target: Section,
    pub what: String,
    pub ours: Option<Named>,
    pub against: Option<Named>,
    /// Best compared with best, which decides.
    pub seen: String,
    /// Medians compared.
    pub seen_of_medians: String,
    pub wanted: String,
    pub verdict: Verdict,
}

fn as_text<S: serde::Serializer>(section: &Section, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(section)
}

/// Compares what was measured with a criterion.
pub fn judge(results: &Results, criterion: &Criterion) -> Finding {
    let ours = fastest(results, &criterion.ours);
    let named = ours.map(|(figure, row, time)| name(figure, row, time));
    let against = against_of(results, criterion);
    let compared = |pick| compare(results, criterion, ours?, pick);
    let (best, median) = (compared(|time| time.best), compared(|time| time.median));
    let verdict = match best {
        Some((_, met)) => Verdict::new(met, criterion.binding && decides(criterion.target)),
        None => Verdict::NotMeasured,
    };
    let show = |seen: Option<(f64, bool)>| {
        seen.map_or_else(|| "-".into(), |(seen, _)| criterion.question.show(seen))
    };
    Finding {
        target: criterion.target,
        what: criterion.what.clone(),
        ours: named,
        against,
        seen: show(best),
        seen_of_medians: show(median),
        wanted: criterion.question.wanted(),
        verdict,
    }
}

/// The targets were set on a CPU with AVX-512 and GFNI; those of narrower tiers hold anywhere.
fn decides(target: Section) -> bool {
    matches!(target, Section::E6 | Section::E7) || Kernel::best().tier() == Tier::Avx512Gfni
}

fn fastest<'r>(results: &'r Results, figures: &[Figure]) -> Option<(Figure, &'r Row, Time)> {
    let found = figures.iter().filter_map(|&figure| {
        let row = table(results, figure)?.row(figure.id)?;
        Some((figure, row, row.time(figure.metric)?))
    });
    found.min_by(|(.., a), (.., b)| a.best.total_cmp(&b.best))
}

fn table(results: &Results, figure: Figure) -> Option<&Table> {
    results.table(figure.bout.case, figure.bout.pages)
}

fn name(figure: Figure, row: &Row, time: Time) -> Named {
    let bytes = (figure.metric == Metric::Total).then_some(row.bytes);
    Named { label: row.label.clone(), kind: row.kind, time, bytes }
}

/// What the question compares with.
fn against_of(results: &Results, criterion: &Criterion) -> Option<Named> {
    match &criterion.question {
        Question::Faster { than: others, .. } => {
            fastest(results, others).map(|(figure, row, time)| name(figure, row, time))
        }
        Question::Takes { of, .. } => {
            fastest(results, &[*of]).map(|(figure, row, time)| name(figure, row, time))
        }
        Question::Share { limit, .. } => {
            let row = limit_of(results, criterion, limit)?;
            let (label, bytes) = (row.label.clone(), Some(row.bytes));
            Some(Named { label, kind: row.kind, time: row.total?, bytes })
        }
        Question::Alike { .. } | Question::Micros { .. } | Question::Absent { .. } => None,
    }
}

/// The limit of our figures, which are all of one race.
fn limit_of<'r>(results: &'r Results, criterion: &Criterion, id: &str) -> Option<&'r Row> {
    results.limit(table(results, *criterion.ours.first()?)?, id)
}

/// The number that the question is about, and whether it is as wanted; `pick` says which time of each
/// row is compared.
fn compare(
    results: &Results,
    criterion: &Criterion,
    (figure, row, time): (Figure, &Row, Time),
    pick: fn(Time) -> f64,
) -> Option<(f64, bool)> {
    debug_assert!(
        figure.metric == Metric::Total || !matches!(criterion.question, Question::Share { .. })
    );
    let ours = pick(time);
    match &criterion.question {
        Question::Faster { than, times } => {
            let (.., other) = fastest(results, than)?;
            let ratio = pick(other) / ours;
            Some((ratio, ratio >= *times))
        }
        Question::Takes { of, times } => {
            let (.., other) = fastest(results, &[*of])?;
            let ratio = ours / pick(other);
            Some((ratio, ratio <= *times))
        }
        Question::Share { limit, at_least } => {
            let limit = limit_of(results, criterion, limit)?;
            let share = row.bytes / ours / (limit.bytes / pick(limit.total?));
            Some((share, share >= *at_least))
        }
        Question::Micros { at_most } => {
            let micros = ours * 1e6;
            Some((micros, micros <= *at_most))
        }
        Question::Alike { with, times } => {
            let (mut low, mut high) = (ours, ours);
            for &other in with {
                let (.., other) = fastest(results, &[other])?;
                (low, high) = (low.min(pick(other)), high.max(pick(other)));
            }
            Some((high / low, high / low <= *times))
        }
        Question::Absent { .. } => None,
    }
}

impl Question {
    fn show(&self, seen: f64) -> String {
        match self {
            Self::Share { .. } => format!("{:.0} %", seen * 100.0),
            Self::Micros { .. } => format!("{seen:.1} us"),
            _ => format!("{seen:.2} x"),
        }
    }

    fn wanted(&self) -> String {
        match self {
            Self::Faster { times, .. } => format!(">= {times} x as fast"),
            Self::Takes { times, .. } => format!("<= {times} x its time"),
            Self::Share { at_least, .. } => format!(">= {:.0} % of it", at_least * 100.0),
            Self::Micros { at_most } => format!("<= {at_most} us"),
            Self::Alike { times, .. } => format!("<= {times} x apart"),
            Self::Absent { what, times } => format!(">= {times} x as fast as {what}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cases::Case, measure::Series, memory::Pages};

    fn row(id: &'static str, bytes: f64, best: f64) -> Row {
        let total = Some(Time { best, median: best });
        Row {
            id,
            label: id.to_owned(),
            kind: Kind::Ours,
            bytes,
            total,
            last: None,
            total_rounds: Series::default(),
            last_rounds: Series::default(),
        }
    }

    fn results() -> Results {
        let table = |case, rows| Table {
            case,
            pages: Pages::Ordinary,
            title: String::new(),
            last_bytes: 0.0,
            limit: None,
            last_limit: None,
            rows,
        };
        let limits = table(Case::Limits, vec![row("read", 100.0, 1.0)]);
        let race = vec![row("ours", 90.0, 1.0), row("a", 90.0, 1.5), row("b", 90.0, 1.2)];
        Results { rounds: 1, tables: vec![limits, table(Case::RsEncode, race)] }
    }

    fn figure(case: Case, id: &'static str) -> Figure {
        Figure { bout: case.into(), id, metric: Metric::Total }
    }

    fn seen(question: Question) -> (String, Verdict) {
        let ours = vec![figure(Case::RsEncode, "ours")];
        // A target that decides on any CPU.
        let target = Section::E6;
        let criterion = Criterion { target, what: String::new(), ours, question, binding: true };
        let finding = judge(&results(), &criterion);
        (finding.seen, finding.verdict)
    }

    #[test]
    fn what_is_seen_decides() {
        let other = |id| figure(Case::RsEncode, id);
        let both = vec![other("a"), other("b")];
        let faster = |times| Question::Faster { than: both.clone(), times };
        assert_eq!(seen(faster(1.2)), ("1.20 x".into(), Verdict::Met));
        assert_eq!(seen(faster(1.3)), ("1.20 x".into(), Verdict::Missed));
        let share = |at_least| Question::Share { limit: "read", at_least };
        assert_eq!(seen(share(0.9)), ("90 %".into(), Verdict::Met));
        assert_eq!(seen(share(0.91)).1, Verdict::Missed);
        let takes = |times| Question::Takes { of: other("a"), times };
        assert_eq!(seen(takes(0.7)), ("0.67 x".into(), Verdict::Met));
        assert_eq!(seen(takes(0.6)).1, Verdict::Missed);
        let alike = |times| Question::Alike { with: both.clone(), times };
        assert_eq!(seen(alike(1.5)), ("1.50 x".into(), Verdict::Met));
        assert_eq!(seen(alike(1.4)).1, Verdict::Missed);
        assert_eq!(seen(Question::Micros { at_most: 1e6 }).1, Verdict::Met);
        assert_eq!(seen(Question::Micros { at_most: 9e5 }).1, Verdict::Missed);
    }

    #[test]
    fn what_is_not_there_is_not_judged() {
        let nobody = figure(Case::GridEncode, "ours");
        let faster = Question::Faster { than: vec![nobody], times: 1.0 };
        assert_eq!(seen(faster), ("-".into(), Verdict::NotMeasured));
        let share = Question::Share { limit: "none", at_least: 0.1 };
        assert_eq!(seen(share).1, Verdict::NotMeasured);
        let absent = Question::Absent { what: "a library", times: 2.0 };
        assert_eq!(seen(absent).1, Verdict::NotMeasured);
    }
}
