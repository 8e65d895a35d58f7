//! The tables of the zoo.

mod distances;
mod kinds;
mod listed;
mod one;
mod ratios;
mod single;
mod summary;

use super::apps::ZooApp;
use super::compare::{BySeed, Lineup};
use super::{SEEDS, ZooArm};
use crate::Options;
use crate::report::{Cell, Report, Table, report_of};

#[cfg(test)]
pub use self::kinds::groups;

/// How a case is run alone with the same seeds and policies.
pub struct Alone {
    seed: u64,
    seeds: u64,
    /// The policies and the files of traces that the options name.
    policies: Vec<String>,
    traces: Vec<String>,
}

impl Alone {
    pub fn of(options: &Options) -> Self {
        let policies = options.policies.clone();
        let traces = options.traces.iter().map(ToString::to_string).collect();
        Self { seed: options.seed, seeds: options.seeds(SEEDS), policies, traces }
    }

    fn command(&self, number: u64) -> String {
        let Self { seed, seeds, policies, traces } = self;
        let policies: String = policies.iter().map(|name| format!(" --policy {name}")).collect();
        let traces: String = traces.iter().map(|file| format!(" --trace {file}")).collect();
        format!(
            "sutura lab auto-zoo --seed {seed} --seeds {seeds} --only {number}{policies}{traces}"
        )
    }
}

/// The report on one case.
pub fn of_one(rows: &[Lineup<'_>], alone: &Alone) -> Report {
    let text: Vec<String> = rows.iter().map(|row| format!("`{}`", row.case)).collect();
    let tables: Vec<Table> = rows.iter().map(one::table).collect();
    let report = report_of("A case of the zoo", &text, tables, []);
    Report { data: Some(single::table(rows, alone)), ..report }
}

/// The report on all cases. The details are of the first policy. `further` are the cases that it seems to harm, with
/// further seeds.
pub fn of_all(
    rows: &[Lineup<'_>],
    further: &[Lineup<'_>],
    policies: &[String],
    alone: &Alone,
) -> Report {
    let first = policies.first().map_or("", String::as_str);
    let mut tables = vec![summary::table(rows, policies)];
    for feed in [true, false] {
        for plain in [true, false] {
            let of = |row: &&Lineup<'_>| row.is_feed() == feed && row.case.is_plain() == plain;
            let own: Vec<Lineup<'_>> = rows.iter().filter(of).copied().collect();
            if !own.is_empty() {
                tables.push(distances::table(&own, policies, (feed, plain)));
            }
        }
    }
    tables.push(ratios::to_ideal(rows, policies));
    if rows.iter().any(Lineup::has_fixed) {
        tables.push(ratios::to_fixed(rows, policies));
    }
    tables.push(summary::neighbours(rows, policies));
    tables.push(kinds::table(rows, first));
    tables.extend(listed::harmed(rows, further, first, alone));
    tables.push(listed::slowed(rows, further, first, alone));
    tables.push(listed::far_from_ideal(rows, first, alone));
    tables.push(listed::behind(rows, first, alone));
    let title = "Redundancy on paths that nobody tuned it for";
    let report = report_of(title, &text(rows, further, alone), tables, []);
    Report { data: Some(single::table(rows, alone)), ..report }
}

pub fn name(arm: &ZooArm) -> &str {
    arm.policy.as_deref().unwrap_or("none")
}

/// None and the policies, each with the number of its arm.
fn arms(policies: &[String]) -> impl Iterator<Item = (usize, &str)> {
    std::iter::once("none").chain(policies.iter().map(String::as_str)).enumerate()
}

/// The rows of feeds, of files, and both.
fn by_application<'a>(rows: &[Lineup<'a>]) -> [(&'static str, Vec<Lineup<'a>>); 3] {
    let of = |feed| rows.iter().filter(|row| row.is_feed() == feed).copied().collect();
    [("messages", of(true)), ("files", of(false)), ("all", rows.to_vec())]
}

pub fn interval(change: &BySeed, unit: &str) -> String {
    let [low, high] = change.interval();
    format!("{:+.2} {unit} ({low:+.2}..{high:+.2})", change.mean())
}

fn count(rows: &[Lineup<'_>], holds: impl Fn(&Lineup<'_>) -> bool) -> usize {
    rows.iter().filter(|row| holds(row)).count()
}

fn share_of(rows: &[Lineup<'_>], holds: impl Fn(&Lineup<'_>) -> bool) -> Cell {
    Cell::Share(crate::comparison::share(rows, holds))
}

fn text(rows: &[Lineup<'_>], further: &[Lineup<'_>], alone: &Alone) -> Vec<String> {
    let feeds = count(rows, |row| matches!(row.case.app, ZooApp::Feed(_)));
    let harmed = count(rows, |row| row.is_harmed(1));
    let beside = count(rows, |row| row.case.beside.is_some());
    let slowed = count(rows, |row| row.is_slowed(1));
    let still_harmed = count(further, |row| row.is_harmed(1));
    let still_slowed = count(further, |row| row.is_slowed(1));
    let seeds = further.first().map_or(0, |row| row.score(0).0.len());
    let rates = match alone.traces.len() {
        0 => "1 to 200 Mbit/s".to_owned(),
        traces => format!("the rates of {traces} traces"),
    };
    vec![
        format!(
            "{} random cases: {feeds} feeds of messages or datagrams and {} series of files, each on a fresh \
             connection to the same host, on random paths of {rates} and 2 to 800 ms, a quarter of \
             them beside another flow. Each policy runs with the same {} seeds as none. The first \
             policy harms {harmed} cases, and neighbours are slowed on {slowed} of {beside}. Chance makes some look so: \
             with {seeds} other seeds, {still_harmed} and {still_slowed} of these cases are. `--only K` runs case K \
             alone.",
            rows.len(),
            rows.len() - feeds,
            alone.seeds,
        ),
        "A message is late after its deadline, or 10 ms later than a path without losses and queues brings it. \
         Distances are in percentage points of late messages, or in percent of the mean time of files \
         without redundancy; less than 0 is better. In brackets behind a distance is the same \
         quantile of the single seeds, the smallest and the largest."
            .to_owned(),
        "*Ideal* is what a perfect code could have made of the repair symbols at the times at which the policy \
         sent them, with the same losses; *fixed* is the best fixed policy, or none, that sends no more bytes, \
         and *any fixed* the best of all, which stands for the ideal where other packets would have met \
         other losses. A case is *harmed* if it is worse than none by more than 0.1 percentage points or 2 % \
         of the time at the lower end of the interval that holds nine times in ten, and *perhaps* if the mean is \
         so much worse. A neighbour is *slowed* if the 95th percentile of its downloads or messages is more than \
         2 % longer than beside none, likewise. *None* is the difference to no redundancy, *bytes* are those that \
         the server sent for each of the application."
            .to_owned(),
        "A *ratio* is the mean share of late messages, or time of files, with a policy over that of what it is \
         compared with. Many shares are 0, so 0.1 percentage points are added to both sides: 1 for two policies \
         without late messages, and 2 for one with 0.1 percentage points beside one with none. Times of files are \
         never 0, and nothing is added. The best fixed policy of a case is chosen afterwards, on the same seeds, so \
         that chance favours it. The *foreseen* one is chosen for each seed by the others, as by somebody who has \
         measured the path before. Where no fixed policy runs, neither is known."
            .to_owned(),
    ]
}
