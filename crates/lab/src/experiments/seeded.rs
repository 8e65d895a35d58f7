//! Experiments that run a case for each of many seeds: no case may fail, and a failure is reported with its
//! seed.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sutura_link::LinkStats;
use sutura_sim::Failure;

use crate::report::{Column, Report, Table};
use crate::{Error, Options, parallel};

/// The most failures that are described.
const MAX_DESCRIBED: usize = 20;

/// A case, which a seed determines.
pub(super) trait Case: fmt::Display + Send + Sized {
    /// The counts of a case in which nothing goes wrong.
    type Tally: AsRef<Traffic> + Serialize + DeserializeOwned + Send;

    /// Assertions of another implementation. If an assertion fails, the case neither passes nor fails.
    const PEER_ASSERTIONS: &'static [&'static str] = &[];

    /// The case of a seed.
    ///
    /// # Errors
    /// The random choices do not make a valid case, which is a bug.
    fn of(seed: u64) -> Result<Self, Error>;

    fn seed(&self) -> u64;

    /// Runs the case.
    ///
    /// # Errors
    /// The failure.
    fn run(&self) -> Result<Self::Tally, Failure>;
}

/// The traffic over the links of a case.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Traffic {
    /// Datagrams that both ends sent.
    pub datagrams: u64,
    /// Datagrams that the links dropped, for whatever reason.
    pub dropped: u64,
    /// Source symbols that were recovered.
    pub recovered: u64,
}

impl Traffic {
    pub fn of(links: &[LinkStats; 2], recovered: u64) -> Self {
        let lost = |link: &LinkStats| link.lost + link.outage + link.overflow + link.too_long;
        Self {
            datagrams: links.iter().map(|link| link.sent).sum(),
            dropped: links.iter().map(lost).sum(),
            recovered,
        }
    }
}

impl AsRef<Self> for Traffic {
    fn as_ref(&self) -> &Self {
        self
    }
}

/// How a case ended.
#[derive(Serialize, Deserialize)]
enum Ending<T> {
    Passed(T),
    /// The other implementation failed by itself.
    PeerFailed,
    Failed(String),
}

/// A case and how it ended.
struct Ended<C: Case> {
    case: C,
    verdict: Ending<C::Tally>,
}

impl<C: Case> Ended<C> {
    fn tally(&self) -> Option<&C::Tally> {
        match &self.verdict {
            Ending::Passed(tally) => Some(tally),
            Ending::PeerFailed | Ending::Failed(_) => None,
        }
    }

    /// The failure, with the seed and the case.
    fn failure(&self) -> Option<String> {
        let Self { case, verdict } = self;
        match verdict {
            Ending::Failed(failure) => Some(format!("seed {}: {failure}\n{case}", case.seed())),
            Ending::Passed(_) | Ending::PeerFailed => None,
        }
    }

    fn has_failed(&self) -> bool {
        matches!(self.verdict, Ending::Failed(_))
    }

    fn is_peers_failure(&self) -> bool {
        matches!(self.verdict, Ending::PeerFailed)
    }
}

/// Runs a case; a panic is a failure like any other.
fn attempt<C: Case>(case: &C) -> Ending<C::Tally> {
    match catch_unwind(AssertUnwindSafe(|| case.run())) {
        Ok(Ok(tally)) => Ending::Passed(tally),
        // The seed is told with the case.
        Ok(Err(failure)) => Ending::Failed(Failure { seed: None, ..failure }.to_string()),
        Err(panic) => match message(&*panic) {
            text if C::PEER_ASSERTIONS.contains(&text) => Ending::PeerFailed,
            text => Ending::Failed(format!("panicked: {text}")),
        },
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}

/// The cases of successive seeds and how they ended.
pub(super) struct Outcomes<C: Case> {
    first: u64,
    all: Vec<Ended<C>>,
}

impl<C: Case> Outcomes<C> {
    /// Runs the number of cases in the options, or else `count`.
    ///
    /// # Errors
    /// A case cannot be drawn.
    pub fn of(options: &Options, count: u64) -> Result<Self, Error> {
        let count = options.seeds(count);
        let seeds: Vec<u64> = (0..count).map(|n| options.seed.wrapping_add(n)).collect();
        let verdicts =
            parallel::map(options, &seeds, |seed| Ok::<_, Error>(attempt(&C::of(*seed)?)))?;
        let ended = |(seed, verdict): (&u64, _)| Ok(Ended { case: C::of(*seed)?, verdict });
        let all = seeds.iter().zip(verdicts).map(ended).collect::<Result<_, Error>>()?;
        Ok(Self { first: options.seed, all })
    }

    /// How many there are, and from which seed.
    pub fn seeds(&self) -> String {
        format!("{} seeds from {}", self.all.len(), self.first)
    }

    /// A line for the cases for which `holds` returns true, under a name.
    pub fn line(&self, name: impl Into<String>, holds: impl Fn(&C) -> bool) -> Line<'_, C> {
        Line { name: name.into(), of: self.all.iter().filter(|o| holds(&o.case)).collect() }
    }

    /// A report on the cases with these texts and tables.
    pub fn report(&self, title: &str, text: Vec<String>, tables: Vec<Table>) -> Report {
        let failures = self.all.iter().filter_map(Ended::failure);
        Report {
            title: title.to_owned(),
            text,
            tables,
            failures: failures.take(MAX_DESCRIBED).collect(),
            ..Report::default()
        }
    }
}

/// A line of a table: cases that have a property in common.
pub(super) struct Line<'a, C: Case> {
    name: String,
    of: Vec<&'a Ended<C>>,
}

impl<C: Case> Line<'_, C> {
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// The sum of a value over the cases that passed.
    pub fn sum(&self, value: impl Fn(&C::Tally) -> u64) -> u64 {
        self.of.iter().filter_map(|outcome| outcome.tally()).map(value).sum()
    }

    fn traffic(&self, value: fn(&Traffic) -> u64) -> u64 {
        self.sum(|tally| value(tally.as_ref()))
    }

    fn count(&self, holds: fn(&Ended<C>) -> bool) -> u64 {
        self.of.iter().filter(|outcome| holds(outcome)).count() as u64
    }
}

/// A table of lines, with `more` columns behind the columns of all experiments.
pub(super) fn table<'a, C: Case>(
    title: &str,
    lines: impl IntoIterator<Item = Line<'a, C>>,
    more: &[Column<'_, Line<'a, C>>],
) -> Table {
    let mut columns: Vec<Column<'_, Line<'a, C>>> = vec![
        ("cases", &|line| line.name.as_str().into()),
        ("seeds", &|line| line.of.len().into()),
        ("failed", &|line| line.count(Ended::has_failed).into()),
    ];
    if !C::PEER_ASSERTIONS.is_empty() {
        columns.push(("peer failed", &|line| line.count(Ended::is_peers_failure).into()));
    }
    columns.push(("datagrams", &|line| line.traffic(|t| t.datagrams).into()));
    columns.push(("dropped", &|line| line.traffic(|t| t.dropped).into()));
    columns.push(("recovered", &|line| line.traffic(|t| t.recovered).into()));
    columns.extend_from_slice(more);
    Table::of(title, lines, &columns)
}

/// An event that may happen in a case, and whether it does.
pub(super) type Occasion<C> = (&'static str, fn(&C) -> bool);

/// A table of events that may happen in a case: a line for each, with the cases in which it does.
pub(super) fn by_event<'a, C: Case, const N: usize>(
    outcomes: &'a Outcomes<C>,
    events: [Occasion<C>; N],
    more: &[Column<'_, Line<'a, C>>],
) -> Table {
    let lines = events.map(|(name, holds)| outcomes.line(name, holds));
    table("By what happens (a seed may be in several lines)", lines, more)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use sutura_sim::FailureKind;

    /// Cases of even seeds pass, and other cases fail in one way or another.
    struct Parity(u64);

    impl fmt::Display for Parity {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "the case of {}", self.0)
        }
    }

    impl Case for Parity {
        type Tally = Traffic;

        const PEER_ASSERTIONS: &'static [&'static str] = &["not ours"];

        fn of(seed: u64) -> Result<Self, Error> {
            Ok(Self(seed))
        }

        fn seed(&self) -> u64 {
            self.0
        }

        fn run(&self) -> Result<Traffic, Failure> {
            match self.0 {
                1 => panic!("not ours"),
                3 => panic!("ours"),
                5 => Err(Failure {
                    seed: Some(5),
                    at: Duration::ZERO,
                    kind: FailureKind::Quiescent,
                    trace: String::new(),
                }),
                _ => Ok(Traffic { datagrams: self.0, ..Traffic::default() }),
            }
        }
    }

    #[test]
    fn failures_are_told_with_seed_and_case_and_those_of_peers_are_counted() {
        let options = Options { seeds: Some(6), ..Options::default() };
        let outcomes = Outcomes::<Parity>::of(&options, 1).unwrap();
        assert_eq!(outcomes.seeds(), "6 seeds from 1");
        let lines = [outcomes.line("all", |_| true), outcomes.line("large", |case| case.0 > 4)];
        let report = outcomes.report("Parity", Vec::new(), vec![table("Sums", lines, &[])]);
        let text = report.to_markdown();
        assert!(text.contains("| all | 6 | 2 | 1 | 12 | 0 | 0 |"), "{text}");
        assert!(text.contains("| large | 2 | 1 | 0 | 6 | 0 | 0 |"), "{text}");
        let [panicked, failed] = &report.failures[..] else { panic!("{:?}", report.failures) };
        assert_eq!(panicked, "seed 3: panicked: ours\nthe case of 3");
        assert!(
            failed.starts_with("seed 5: at ") && failed.ends_with("\nthe case of 5"),
            "{failed}"
        );
    }
}
