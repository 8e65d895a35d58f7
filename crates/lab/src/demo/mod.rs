//! What redundancy gains and what it costs, for applications and on links that people know.
//!
//! Three [applications](App) on three [links](LINKS), each without redundancy, with one that is fixed,
//! with `auto`, and with `auto` that is told what the application needs, always over the same losses as
//! far as these depend on time. Beside it stands the best that could be: for the stream, what a perfect
//! code reaches with as many repair symbols ([`ideal`](crate::ideal)); for the others, the same link
//! without loss.

mod apps;
mod links;
mod report;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Serialize;
use sutura_analysis::statistics::{Distribution, millis};
use sutura_proto::Reason;
use sutura_random::Rng;
use sutura_sim::StreamPlan;

pub use apps::{App, Run, Setup};
pub use links::{LINKS, Link};

use crate::ideal::{Cut, Trace, Workload, least_late};
use crate::{Error, Options, parallel};

/// Connections of each configuration, unless the options say otherwise.
pub const CONNECTIONS: u64 = 4;
/// How long the stream and the feed run on each and count, in seconds.
pub const SECONDS: u32 = 45;
/// How the frames of the stream travel: the packets of 1200 bytes that the connections send have room
/// for this much of a protected stream.
const CUT: Cut = Cut { payload: 1162, overhead: 38 };

/// Everything that was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Demo {
    /// The seed from which all randomness derives.
    pub seed: u64,
    /// How long the stream and the feed ran on each connection, in seconds, after a few in which the
    /// congestion window opened.
    pub seconds: u32,
    /// Connections of each configuration.
    pub connections: u64,
    /// One for each application.
    pub parts: Vec<Part>,
}

/// An application.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    /// The application.
    pub app: App,
    /// One for each link.
    pub links: Vec<OnLink>,
}

/// An application on a link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OnLink {
    /// The link.
    pub link: Link,
    /// After how many milliseconds data is late; `None` if there is no such limit.
    pub late_after_ms: Option<f64>,
    /// One for each [`Redundancy`], and for messages and downloads one without loss.
    pub rows: Vec<Row>,
    /// What follows from the figures, in a sentence.
    pub finding: String,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Redundancy {
    /// Plain QUIC.
    None,
    /// [`App::fixed`].
    Fixed,
    /// The policy that sets itself, without being told anything.
    Auto,
    /// The same, told after what time data is late.
    Target,
    /// Plain QUIC over the same link without loss.
    Lossless,
}

impl Redundancy {
    /// Its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Fixed => "fixed",
            Self::Auto => "auto",
            Self::Target => "auto+target",
            Self::Lossless => "without loss",
        }
    }

    /// What is compared for `app`.
    const fn all(app: App) -> &'static [Self] {
        match app {
            App::Stream => &[Self::None, Self::Fixed, Self::Auto, Self::Target],
            App::Messages => &[Self::None, Self::Fixed, Self::Auto, Self::Target, Self::Lossless],
            App::Download => &[Self::None, Self::Fixed, Self::Auto, Self::Lossless],
        }
    }

    fn setup(self, app: App, link: &Link) -> Result<Setup, Error> {
        let within = || -> Result<Option<String>, Error> {
            let tolerance = app.tolerance(link)?;
            Ok(tolerance.map(|tolerance| format!("auto:within={}ms", tolerance.as_millis())))
        };
        let policy = match self {
            Self::None | Self::Lossless => None,
            Self::Fixed => Some(app.fixed().to_owned()),
            Self::Auto => Some("auto".to_owned()),
            Self::Target => within()?,
        };
        let setup = Setup::new(app, link, policy)?;
        Ok(if self == Self::Lossless { setup.lossless() } else { setup })
    }
}

/// The outcome of one configuration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// What was done against losses.
    pub redundancy: Redundancy,
    /// The redundancy policy, as `sutura get --redundancy` takes it; `None` for none.
    pub policy: Option<String>,
    /// The share of bytes or messages that are late; `None` if there is no such limit.
    pub late: Option<f64>,
    /// The least that it could be with as many repair symbols, if that is known.
    pub late_at_best: Option<f64>,
    /// Quantiles of how long bytes, messages or files take, in milliseconds.
    pub times_ms: BTreeMap<&'static str, f64>,
    /// Bytes of UDP payload that the server sent.
    pub bytes: u64,
    /// Of these, how many more than without redundancy, as a share.
    pub extra: f64,
    /// Repair symbols that it sent.
    pub repairs: u64,
    /// Those with which the client recovered something.
    pub useful: u64,
    /// Why repair symbols were sent or not at the end of most connections, as the policy says.
    pub reason: Option<String>,
    #[serde(skip)]
    times: Distribution,
}

/// One job: a configuration, and which of its connections.
struct Job {
    setup: Setup,
    connection: u64,
}

/// The connections of one configuration.
struct Outcome<'a> {
    app: App,
    link: &'a Link,
    redundancy: Redundancy,
    setup: Setup,
    runs: Vec<Run>,
}

impl Outcome<'_> {
    fn sum(&self, value: impl Fn(&Run) -> u64) -> u64 {
        self.runs.iter().map(value).sum()
    }

    /// The reason of most connections; of equally many, the first in alphabetical order.
    fn reason(&self) -> Option<String> {
        let mut counts: BTreeMap<&str, (usize, Reason)> = BTreeMap::new();
        for reason in self.runs.iter().filter_map(|run| run.reason) {
            counts.entry(reason.name()).or_insert((0, reason)).0 += 1;
        }
        let most = counts.values().rev().max_by_key(|(count, _)| *count);
        most.map(|(_, reason)| reason.to_string())
    }

    /// The least share of late bytes with as many repair symbols, on the losses of these connections.
    fn late_at_best(&self, seconds: u32, options: &Options) -> f64 {
        let plan = StreamPlan::frames(apps::frames(seconds));
        let workload = Workload {
            link: self.setup.path.clone(),
            size: plan.size,
            interval: plan.interval,
            count: plan.count,
            warm_up: apps::frames(apps::WARM_UP),
            cut: CUT,
        };
        let traces = (0..).zip(&self.runs).map(|(connection, run)| {
            let [_, down] = self.setup.scenario(seed(options, connection)).link_seeds();
            Trace { seed: down, start: run.began }
        });
        let frames = (plan.count + workload.warm_up) * self.runs.len() as u64;
        let repairs = self.sum(|run| run.repairs) as f64 / frames.max(1) as f64;
        least_late(&workload, &traces.collect::<Vec<_>>(), repairs, apps::slack())
    }

    fn row(&self, plain: u64, late_at_best: Option<f64>) -> Result<Row, Error> {
        let times = self.runs.iter().flat_map(|run| run.times.iter().copied());
        let times = Distribution::weighted(times);
        let tolerance = self.app.tolerance(self.link)?;
        let quantiles = self.app.quantiles().iter();
        let bytes = self.sum(|run| run.bytes);
        Ok(Row {
            redundancy: self.redundancy,
            policy: self.setup.policy.clone(),
            late: tolerance.map(|tolerance| times.share_above(tolerance)),
            late_at_best,
            times_ms: quantiles.map(|(name, q)| (*name, millis(times.quantile(*q)))).collect(),
            bytes,
            extra: bytes as f64 / plain.max(1) as f64 - 1.0,
            repairs: self.sum(|run| run.repairs),
            useful: self.sum(|run| run.useful),
            reason: self.reason(),
            times,
        })
    }
}

/// The seed of a connection, which is the same for all configurations.
fn seed(options: &Options, connection: u64) -> u64 {
    Rng::stream(options.seed, connection).next_u64()
}

/// Measures all applications on all links: [`Options::seeds`] connections of each configuration, on
/// which the stream and the feed run for `seconds` each.
///
/// # Errors
/// A simulation fails.
pub fn run(seconds: u32, options: &Options) -> Result<Demo, Error> {
    measure(&App::ALL, &LINKS, seconds, options)
}

/// Measures some applications on some links.
///
/// # Errors
/// As for [`run`].
pub fn measure(
    apps: &[App],
    links: &[Link],
    seconds: u32,
    options: &Options,
) -> Result<Demo, Error> {
    let connections = options.seeds(CONNECTIONS);
    let mut outcomes = Vec::new();
    for (app, link) in apps.iter().flat_map(|app| links.iter().map(move |link| (*app, link))) {
        for redundancy in Redundancy::all(app) {
            let setup = redundancy.setup(app, link)?;
            outcomes.push(Outcome { app, link, redundancy: *redundancy, setup, runs: Vec::new() });
        }
    }
    let jobs = outcomes.iter().flat_map(|outcome| {
        (0..connections).map(|connection| Job { setup: outcome.setup.clone(), connection })
    });
    let mut runs = parallel::map(options, &jobs.collect::<Vec<_>>(), |job| {
        job.setup.run(seconds, seed(options, job.connection))
    })?
    .into_iter();
    for outcome in &mut outcomes {
        outcome.runs = runs.by_ref().take(usize::try_from(connections).unwrap_or(0)).collect();
    }
    let best = parallel::map(options, &outcomes, |outcome| {
        let known = outcome.app == App::Stream;
        Ok::<_, Error>(known.then(|| outcome.late_at_best(seconds, options)))
    })?;
    let outcomes: Vec<_> = outcomes.into_iter().zip(best).collect();
    let part = |app: &App| {
        let on_link = |link: &Link| on_link(&outcomes, *app, link);
        let links = links.iter().map(on_link).collect::<Result<_, Error>>()?;
        Ok(Part { app: *app, links })
    };
    let parts = apps.iter().map(part).collect::<Result<_, Error>>()?;
    Ok(Demo { seed: options.seed, seconds, connections, parts })
}

/// The rows of one application on one link.
fn on_link(
    outcomes: &[(Outcome<'_>, Option<f64>)],
    app: App,
    link: &Link,
) -> Result<OnLink, Error> {
    let here = || outcomes.iter().filter(|(o, _)| o.app == app && o.link == link);
    let plain = here().find(|(o, _)| o.redundancy == Redundancy::None);
    let plain = plain.map_or(0, |(o, _)| o.sum(|run| run.bytes));
    let rows = here().map(|(outcome, best)| outcome.row(plain, *best));
    let rows = rows.collect::<Result<Vec<_>, Error>>()?;
    let finding = report::finding(app, &rows);
    Ok(OnLink { link: *link, late_after_ms: app.tolerance(link)?.map(millis), rows, finding })
}
