//! Random meetings: two ends do whatever an application can do, at random, over random paths and while
//! things happen to their hosts. Nothing may be wrong, stuck or left.

mod case;
mod guest;

use sutura_analysis::report::Report;
use sutura_analysis::table::Table;

use self::case::Case;
use super::Experiment;
use super::campaign::caught;
use crate::{Error, Options, parallel};

/// Seeds of a whole run.
const SEEDS: u64 = 10_000;
/// The most failures that are described.
const MAX_DESCRIBED: usize = 20;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "meetings",
    about: "Two ends do anything at random: nothing is wrong, stuck or left",
    run,
};

/// What a meeting came to, if nothing went wrong.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Datagrams that both ends sent.
    pub datagrams: u64,
    /// Datagrams that the links dropped, for whatever reason.
    pub dropped: u64,
    /// Source symbols that were recovered.
    pub recovered: u64,
    /// Bytes that were read, each compared.
    pub bytes: u64,
    /// Virtual time until nothing was left.
    pub seconds: f64,
}

type Outcome = (Case, Result<Tally, String>);

fn run(options: &Options) -> Result<Report, Error> {
    let count = options.seeds(SEEDS);
    let seeds: Vec<u64> = (0..count).map(|n| options.seed.wrapping_add(n)).collect();
    let outcomes = parallel::map(options, &seeds, |seed| {
        let case = Case::of(*seed)?;
        let outcome = caught(|| case.run());
        Ok::<_, Error>((case, outcome))
    })?;
    Ok(report(options.seed, &outcomes))
}

fn report(first: u64, outcomes: &[Outcome]) -> Report {
    let failed =
        outcomes.iter().filter_map(|(case, outcome)| Some((case, outcome.as_ref().err()?)));
    let describe = |(case, error): (&Case, &String)| format!("seed {}: {error}\n{case}", case.seed);
    Report {
        title: "Random meetings".to_owned(),
        text: vec![
            format!(
                "{} seeds from {first}, a connection each. Both ends open streams, change their \
                 protection and priority, reset and stop them, send messages and datagrams, cancel \
                 messages, change the protection of datagrams and update keys, at random times. The \
                 paths, the settings and what happens to the hosts are those of the \
                 [campaign](campaign.md): loss, reordering, duplication, corruption, outages, \
                 changes of packet size, moves and sleep.",
                outcomes.len()
            ),
            "A seed fails if a byte is wrong, a connection breaks, has something to send and never \
             does, or contradicts itself (`Connection::check`, whenever it has nothing to send), or \
             if 15 minutes of virtual time after the start anything is left \
             (`Connection::check_nothing_left`)."
                .to_owned(),
        ],
        tables: vec![table(outcomes)],
        failures: failed.take(MAX_DESCRIBED).map(describe).collect(),
        ..Report::default()
    }
}

/// What may happen in a meeting, and whether it does.
type Kind = (&'static str, fn(&Case) -> bool);

/// A line of the table: what the meetings have in common.
type Line<'a> = (&'static str, Vec<&'a Outcome>);

fn table(outcomes: &[Outcome]) -> Table {
    let kinds: [Kind; 4] = [
        ("all", |_| true),
        ("a host moves or sleeps", Case::is_disturbed),
        ("outage", |case| case.has("outage=")),
        ("the path changes", |case| case.has("step=")),
    ];
    let lines: Vec<Line<'_>> = kinds
        .iter()
        .map(|(name, holds)| (*name, outcomes.iter().filter(|(case, _)| holds(case)).collect()))
        .collect();
    let sum = |(_, all): &Line<'_>, value: fn(&Tally) -> u64| -> u64 {
        all.iter().filter_map(|(_, outcome)| outcome.as_ref().ok()).map(value).sum()
    };
    let failed = |(_, all): &Line<'_>| all.iter().filter(|(_, o)| o.is_err()).count() as u64;
    Table::of(
        "By what happens (a seed may be in several lines)",
        &lines,
        &[
            ("meetings", &|(name, _)| (*name).into()),
            ("seeds", &|(_, all)| (all.len() as u64).into()),
            ("failed", &|line| failed(line).into()),
            ("datagrams", &|line| sum(line, |t| t.datagrams).into()),
            ("dropped", &|line| sum(line, |t| t.dropped).into()),
            ("recovered", &|line| sum(line, |t| t.recovered).into()),
            ("bytes", &|line| sum(line, |t| t.bytes).into()),
            ("virtual hours", &|line| sum(line, |t| t.seconds as u64).div_euclid(3600).into()),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The beginning of what the command runs as a whole.
    #[test]
    fn the_first_meetings_leave_nothing() {
        let options = Options { seeds: Some(300), ..Options::default() };
        assert_eq!(run(&options).unwrap().failures, Vec::<String>::new());
    }

    #[test]
    fn seeds_differ_and_repeat() {
        let text = |seed| Case::of(seed).unwrap().to_string();
        assert_eq!(text(3), text(3));
        assert_ne!(text(3), text(4));
    }
}
