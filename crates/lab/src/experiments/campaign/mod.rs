//! A campaign of random transfers: everything that paths, peers, settings and policies can be, mixed by
//! the seed. Nothing may be lost, changed, stalled or left behind.

mod case;
mod mixed;
mod ours;
pub(super) mod paths;
pub(super) mod settings;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use sutura_analysis::report::Report;
use sutura_analysis::table::Table;
use sutura_link::LinkStats;
use sutura_sim::Failure;

pub(super) use self::case::disturbances;
use self::case::{Case, Peers, Work};
use super::Experiment;
use crate::{Error, Options, parallel};

/// Seeds of a whole campaign.
const SEEDS: u64 = 20_000;
/// The most failures that are described.
const MAX_DESCRIBED: usize = 20;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "campaign",
    about: "Random paths, peers, settings and policies: nothing is lost, changed or stalls",
    run,
};

/// What a case came to, if nothing went wrong.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Datagrams that both ends sent.
    pub datagrams: u64,
    /// Datagrams that the links dropped, for whatever reason.
    pub dropped: u64,
    /// Source symbols that were recovered.
    pub recovered: u64,
}

impl Tally {
    fn of(links: &[LinkStats; 2], recovered: u64) -> Self {
        let lost = |link: &LinkStats| link.lost + link.outage + link.overflow + link.too_long;
        Self {
            datagrams: links.iter().map(|link| link.sent).sum(),
            dropped: links.iter().map(lost).sum(),
            recovered,
        }
    }
}

/// How a case ended.
enum Verdict {
    Passed(Tally),
    /// The other implementation failed by itself.
    PeerFailed,
    Failed(String),
}

/// A case and how it ended.
struct Outcome {
    case: Case,
    verdict: Verdict,
}

impl Outcome {
    fn tally(&self) -> Option<&Tally> {
        match &self.verdict {
            Verdict::Passed(tally) => Some(tally),
            Verdict::PeerFailed | Verdict::Failed(_) => None,
        }
    }

    fn failure(&self) -> Option<&str> {
        match &self.verdict {
            Verdict::Failed(failure) => Some(failure),
            Verdict::Passed(_) | Verdict::PeerFailed => None,
        }
    }

    fn is_peers_failure(&self) -> bool {
        matches!(self.verdict, Verdict::PeerFailed)
    }
}

fn run(options: &Options) -> Result<Report, Error> {
    let count = options.seeds(SEEDS);
    let seeds: Vec<u64> = (0..count).map(|n| options.seed.wrapping_add(n)).collect();
    let outcomes = parallel::map(options, &seeds, |seed| {
        let case = Case::of(*seed)?;
        let verdict = attempt(&case);
        Ok::<_, Error>(Outcome { case, verdict })
    })?;
    Ok(report(options.seed, &outcomes))
}

/// Assertions of quinn-proto 0.11 that fail when a client of its server moves. They are not failures of
/// ours, and the cases are not counted.
const PEER_ASSERTIONS: [&str; 1] = ["assertion failed: !self.peer_completed_address_validation()"];

/// Runs a case; a panic is a failure like others.
fn attempt(case: &Case) -> Verdict {
    let run = || match case.peers {
        Peers::Ours => ours::run(case),
        Peers::QuinnServer | Peers::QuinnClient => mixed::run(case),
    };
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(tally)) => Verdict::Passed(tally),
        Ok(Err(failure)) => Verdict::Failed(failure.to_string()),
        Err(panic) => match message(&*panic) {
            text if PEER_ASSERTIONS.contains(&text) => Verdict::PeerFailed,
            text => Verdict::Failed(format!("panicked: {text}")),
        },
    }
}

/// What a run came to; a panic is a failure like others.
pub(super) fn caught<T>(run: impl FnOnce() -> Result<T, Failure>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(outcome) => outcome.map_err(|failure| failure.to_string()),
        Err(panic) => Err(format!("panicked: {}", message(&*panic))),
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}

fn report(first: u64, outcomes: &[Outcome]) -> Report {
    let failed = outcomes.iter().filter_map(|o| Some((&o.case, o.failure()?)));
    let describe = |(case, error): (&Case, &str)| format!("seed {}: {error}\n{case}", case.seed);
    Report {
        title: "A campaign of random transfers".to_owned(),
        text: vec![
            format!(
                "{} seeds from {first}, a connection each. The seed decides on the path each way \
                 (rate, delay, queue, loss up to 20 % independent or in bursts, jitter, reordering, \
                 duplication, corruption, marks, packet size, changes of rate and size, outages), on \
                 what happens to the hosts (other ports and addresses, deliberate or not, sleep), on \
                 the settings of both ends (windows, buffers, packet sizes) and on a policy of every \
                 seam.",
                outcomes.len()
            ),
            "A seed fails if a byte is wrong or missing, a message is delivered out of its turn, the \
             work is not done in time, an end has something to send and neither does for three probe \
             timeouts, a connection breaks, an assertion fails, or anything is left after the end. `peer \
             failed` counts assertions of quinn that fail when a client of its server moves. Clients \
             of quinn have two quiet seconds first: before its handshake is confirmed, quinn does not \
             get over the loss of a whole window."
                .to_owned(),
        ],
        tables: vec![by_peers(outcomes), by_event(outcomes)],
        failures: failed.take(MAX_DESCRIBED).map(describe).collect(),
        ..Report::default()
    }
}

/// A line of a table: what the cases have in common.
type Line<'a> = (String, Vec<&'a Outcome>);

fn table(title: &str, lines: &[Line<'_>]) -> Table {
    let sum = |(_, all): &Line<'_>, value: fn(&Tally) -> u64| -> u64 {
        all.iter().filter_map(|o| o.tally()).map(value).sum()
    };
    let count = |(_, all): &Line<'_>, holds: fn(&Outcome) -> bool| -> u64 {
        all.iter().filter(|o| holds(o)).count() as u64
    };
    Table::of(
        title,
        lines,
        &[
            ("cases", &|(name, _)| name.as_str().into()),
            ("seeds", &|(_, all)| (all.len() as u64).into()),
            ("failed", &|line| count(line, |o| o.failure().is_some()).into()),
            ("peer failed", &|line| count(line, Outcome::is_peers_failure).into()),
            ("datagrams", &|line| sum(line, |t| t.datagrams).into()),
            ("dropped", &|line| sum(line, |t| t.dropped).into()),
            ("recovered", &|line| sum(line, |t| t.recovered).into()),
        ],
    )
}

fn by_peers(outcomes: &[Outcome]) -> Table {
    let line = |peers: Peers, work: Work| {
        let all = outcomes.iter().filter(|o| o.case.peers == peers && o.case.work == work);
        (format!("{peers}, {work}"), all.collect::<Vec<_>>())
    };
    let lines =
        Peers::ALL.iter().flat_map(|peers| Work::ALL.iter().map(|work| line(*peers, *work)));
    let lines: Vec<_> = lines.filter(|(_, all)| !all.is_empty()).collect();
    table("By peers and work", &lines)
}

/// What may happen in a case, and whether it does.
type Kind = (&'static str, fn(&Case) -> bool);

fn by_event(outcomes: &[Outcome]) -> Table {
    let kinds: [Kind; 6] = [
        ("the client's address changes", Case::has_move),
        ("a host sleeps", Case::has_sleep),
        ("outage", |case| case.has("outage=")),
        ("the path changes", |case| case.has("step=")),
        ("path MTU discovery", |case| case.sockets.unfragmented),
        ("ECN", |case| case.sockets.ecn),
    ];
    let lines = kinds.map(|(name, holds)| {
        (name.to_owned(), outcomes.iter().filter(|o| holds(&o.case)).collect::<Vec<_>>())
    });
    table("By what happens (a seed may be in several lines)", &lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The beginning of the campaign that the command runs as a whole.
    #[test]
    fn a_short_campaign() {
        let options = Options { seeds: Some(400), ..Options::default() };
        let report = run(&options).unwrap();
        assert_eq!(report.failures, Vec::<String>::new());
    }

    #[test]
    fn a_failure_is_told_with_its_case() {
        let case = Case::of(7).unwrap();
        let outcomes = [Outcome { case, verdict: Verdict::Failed("it broke".to_owned()) }];
        let report = report(7, &outcomes);
        assert!(report.failures[0].starts_with("seed 7: it broke\n"), "{:?}", report.failures);
    }

    #[test]
    fn seeds_differ_and_repeat() {
        let text = |seed| Case::of(seed).unwrap().to_string();
        assert_eq!(text(3), text(3));
        assert_ne!(text(3), text(4));
    }
}
