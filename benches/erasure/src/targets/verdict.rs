//! Whether a target is met.

use super::{Criterion, Question};
use crate::{
    args::Section,
    cases::Case,
    measure::{Kind, Metric},
    results::{Results, Row, Table, Time},
};
use std::fmt;
use sutura_erasure::kernel::{Kernel, Tier};

/// The verdict on a criterion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Met,
    Missed,
    /// The criterion would be met, but does not decide.
    InformationMet,
    /// The criterion would be missed, but does not decide.
    InformationMissed,
    /// One of the figures was not measured.
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

/// A figure with its name.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Named {
    pub label: String,
    pub kind: Kind,
    pub time: Time,
    /// Bytes that count for the figure; none for the last part of a decode.
    pub bytes: Option<f64>,
}

/// A criterion and its result.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Finding {
    #[serde(serialize_with = "as_text")]
    pub target: Section,
    pub what: String,
    pub ours: Option<Named>,
    pub against: Option<Named>,
    /// The comparison of the best times, which decides.
    pub seen: String,
    /// The comparison of the medians.
    pub seen_of_medians: String,
    pub wanted: String,
    pub verdict: Verdict,
}

fn as_text<S: serde::Serializer>(section: &Section, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(section)
}

/// Compares the results with a criterion.
pub fn judge(results: &Results, criterion: &Criterion) -> Finding {
    let ours = fastest(results, criterion, criterion.ours);
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
        ours: ours.map(|(row, time)| name(row, criterion.metric, time)),
        against: against_of(results, criterion),
        seen: show(best),
        seen_of_medians: show(median),
        wanted: criterion.question.wanted(),
        verdict,
    }
}

/// The targets were set on a CPU with AVX-512 and GFNI; the targets of narrower tiers hold on any CPU.
fn decides(target: Section) -> bool {
    matches!(target, Section::E6 | Section::E7) || Kernel::best().tier() == Tier::Avx512Gfni
}

/// The fastest of some entries in the race of a criterion.
fn fastest<'r>(
    results: &'r Results,
    criterion: &Criterion,
    ids: &[&str],
) -> Option<(&'r Row, Time)> {
    let race = table(results, criterion, criterion.bout.case)?;
    let found = ids.iter().filter_map(|id| timed(race, id, criterion.metric));
    found.min_by(|(_, a), (_, b)| a.best.total_cmp(&b.best))
}

/// A race in the kind of memory to which a criterion applies.
fn table<'r>(results: &'r Results, criterion: &Criterion, case: Case) -> Option<&'r Table> {
    results.table(case, criterion.bout.pages)
}

fn timed<'r>(table: &'r Table, id: &str, metric: Metric) -> Option<(&'r Row, Time)> {
    let row = table.row(id)?;
    Some((row, row.time(metric)?))
}

fn name(row: &Row, metric: Metric, time: Time) -> Named {
    let bytes = (metric == Metric::Total).then_some(row.bytes);
    Named { label: row.label.clone(), kind: row.kind, time, bytes }
}

/// The figure with which the question compares.
fn against_of(results: &Results, criterion: &Criterion) -> Option<Named> {
    let (metric, (row, time)) = match criterion.question {
        Question::Faster { than, .. } => (criterion.metric, fastest(results, criterion, than)?),
        Question::Takes { of: (case, id, metric), .. } => {
            (metric, timed(table(results, criterion, case)?, id, metric)?)
        }
        Question::Share { limit, .. } => {
            let row = limit_of(results, criterion, limit)?;
            (Metric::Total, (row, row.total?))
        }
        Question::Alike { .. } | Question::Micros { .. } | Question::Absent { .. } => return None,
    };
    Some(name(row, metric, time))
}

/// A limit of the race of a criterion.
fn limit_of<'r>(results: &'r Results, criterion: &Criterion, id: &str) -> Option<&'r Row> {
    results.limit(table(results, criterion, criterion.bout.case)?, id)
}

/// The number for the question, and whether it meets the target; `pick` chooses the time of each compared
/// row.
fn compare(
    results: &Results,
    criterion: &Criterion,
    (row, time): (&Row, Time),
    pick: fn(Time) -> f64,
) -> Option<(f64, bool)> {
    let ours = pick(time);
    let is_share = matches!(criterion.question, Question::Share { .. });
    debug_assert!(criterion.metric == Metric::Total || !is_share);
    match criterion.question {
        Question::Faster { than, times } => {
            let (_, other) = fastest(results, criterion, than)?;
            let ratio = pick(other) / ours;
            Some((ratio, ratio >= times))
        }
        Question::Takes { of: (case, id, metric), times } => {
            let (_, other) = timed(table(results, criterion, case)?, id, metric)?;
            let ratio = ours / pick(other);
            Some((ratio, ratio <= times))
        }
        Question::Share { limit, at_least } => {
            let limit = limit_of(results, criterion, limit)?;
            let share = row.bytes / ours / (limit.bytes / pick(limit.total?));
            Some((share, share >= at_least))
        }
        Question::Micros { at_most } => {
            let micros = ours * 1e6;
            Some((micros, micros <= at_most))
        }
        Question::Alike { with, times } => {
            let (mut low, mut high) = (ours, ours);
            for case in with {
                let (_, other) = timed(table(results, criterion, case)?, row.id, criterion.metric)?;
                (low, high) = (low.min(pick(other)), high.max(pick(other)));
            }
            Some((high / low, high / low <= times))
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
    use crate::{measure::Series, memory::Pages};

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
        let early = vec![row("ours", 90.0, 1.5)];
        let tables = vec![limits, table(Case::RsEncode, race), table(Case::RsDecode, early)];
        Results { rounds: 1, tables }
    }

    fn seen(question: Question) -> (String, Verdict) {
        let criterion = Criterion {
            // A target that decides on any CPU.
            target: Section::E6,
            what: String::new(),
            bout: Case::RsEncode.into(),
            metric: Metric::Total,
            ours: &["ours"],
            question,
            binding: true,
        };
        let finding = judge(&results(), &criterion);
        (finding.seen, finding.verdict)
    }

    #[test]
    fn what_is_seen_decides() {
        let faster = |times| Question::Faster { than: &["a", "b"], times };
        assert_eq!(seen(faster(1.2)), ("1.20 x".into(), Verdict::Met));
        assert_eq!(seen(faster(1.3)), ("1.20 x".into(), Verdict::Missed));
        let share = |at_least| Question::Share { limit: "read", at_least };
        assert_eq!(seen(share(0.9)), ("90 %".into(), Verdict::Met));
        assert_eq!(seen(share(0.91)).1, Verdict::Missed);
        let takes = |times| Question::Takes { of: (Case::RsEncode, "a", Metric::Total), times };
        assert_eq!(seen(takes(0.7)), ("0.67 x".into(), Verdict::Met));
        assert_eq!(seen(takes(0.6)).1, Verdict::Missed);
        let alike = |times| Question::Alike { with: [Case::RsEncode, Case::RsDecode], times };
        assert_eq!(seen(alike(1.5)), ("1.50 x".into(), Verdict::Met));
        assert_eq!(seen(alike(1.4)).1, Verdict::Missed);
        assert_eq!(seen(Question::Micros { at_most: 1e6 }).1, Verdict::Met);
        assert_eq!(seen(Question::Micros { at_most: 9e5 }).1, Verdict::Missed);
    }

    #[test]
    fn what_is_not_there_is_not_judged() {
        let faster = Question::Faster { than: &["c"], times: 1.0 };
        assert_eq!(seen(faster), ("-".into(), Verdict::NotMeasured));
        let share = Question::Share { limit: "none", at_least: 0.1 };
        assert_eq!(seen(share).1, Verdict::NotMeasured);
        let absent = Question::Absent { what: "a library", times: 2.0 };
        assert_eq!(seen(absent).1, Verdict::NotMeasured);
    }
}
