//! The gains and costs of redundancy, for applications and on links that people know.
//!
//! Four [applications](App) on the [links](App::links) where people use them, each without redundancy, with a
//! fixed policy, with `auto`, and with `auto` that is told the needs of the application, always over the same
//! losses as far as these depend on time. Beside them stand, where they are known: a bound, which no sender
//! can beat; for the stream, the result of a [model](crate::ideal) with a perfect code that sends the same
//! number of repair symbols at times that are fixed beforehand, which policies that look at the path do beat;
//! and plain QUIC over the same link without loss, which is no bound either: repair changes when a small
//! buffer is refilled.

mod apps;
mod bound;
mod links;
mod report;
mod summary;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use sutura_analysis::statistics::{Distribution, millis};

pub use apps::{App, Run, Setup};
pub use links::{GAME_LINKS, LINKS, Link};
pub use summary::{Measure, Summary, Verdict};

use crate::comparison::{Runs, seed};
use crate::{Error, Options, parallel};

/// Connections of each configuration, unless the options say otherwise.
pub const CONNECTIONS: u64 = 4;
/// How long the stream and the feed run on each and count, in seconds.
pub const SECONDS: u32 = 45;
/// All measurements.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Demo {
    /// The seed from which all randomness derives.
    pub seed: u64,
    /// How long the stream and the feed ran on each connection, in seconds, after a few in which the
    /// congestion window opened.
    pub seconds: u32,
    /// Connections of each configuration.
    pub connections: u64,
    /// The parts, one for each application.
    pub parts: Vec<Part>,
}

/// An application.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    /// The application.
    pub app: App,
    /// The links, with the measurements.
    pub links: Vec<OnLink>,
}

/// An application on a link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OnLink {
    /// The link.
    pub link: Link,
    /// After how many milliseconds data is late; `None` if there is no such limit.
    pub late_after_ms: Option<f64>,
    /// The least share of late data that any sender can reach; `None` if that is not known.
    pub late_bound: Option<f64>,
    /// The shortest possible time of a file in milliseconds; `None` if there is no such bound.
    pub time_bound_ms: Option<f64>,
    /// A row for each [`Redundancy`], and for messages and downloads a row without loss.
    pub rows: Vec<Row>,
    /// One policy compared with plain QUIC.
    pub summary: Summary,
    /// The conclusion from the figures, in a sentence.
    pub finding: String,
}

named! {
    /// The kinds of redundancy that are compared.
    #[derive(PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Redundancy {
        /// Plain QUIC.
        None = "none",
        /// [`App::fixed`].
        Fixed = "fixed",
        /// The policy that sets itself, without a target.
        Auto = "auto",
        /// The same, told after what time data is late.
        Target = "auto+target",
        /// Plain QUIC over the same link without loss.
        Lossless = "none, no loss",
    }
}

impl Redundancy {
    /// The kinds that are compared for `app`.
    const fn all(app: App) -> &'static [Self] {
        match app {
            App::Game | App::Stream => &[Self::None, Self::Fixed, Self::Auto, Self::Target],
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
    /// The kind of redundancy.
    pub redundancy: Redundancy,
    /// The redundancy policy, as `sutura get --redundancy` takes it; `None` for none.
    pub policy: Option<String>,
    /// The share of bytes or messages that are late; `None` if there is no such limit.
    pub late: Option<f64>,
    /// The least share with the same number of repair symbols whose times are fixed beforehand, and a perfect
    /// code, if that was modelled. This is no bound: a policy that sees losses does better.
    pub late_in_model: Option<f64>,
    /// The share of messages or answers that never came.
    pub lost: f64,
    /// Quantiles of how long bytes, messages, answers or files take, in milliseconds; `None` for data that
    /// never came.
    pub times_ms: BTreeMap<&'static str, Option<f64>>,
    /// Bytes of UDP payload that the server sent; of the game, that both ends sent.
    pub bytes: u64,
    /// Of these, how many more than without redundancy, as a share.
    pub extra: f64,
    /// Repair symbols among them.
    pub repairs: u64,
    /// Repair symbols with which data was recovered.
    pub useful: u64,
    /// Why repair symbols were sent or not at the end of most connections, as the policy says.
    pub reason: Option<String>,
    #[serde(skip)]
    times: Distribution,
}

/// The connections of one configuration.
struct Trials<'a> {
    app: App,
    link: &'a Link,
    redundancy: Redundancy,
    setup: Setup,
    runs: Vec<Run>,
}

impl Trials<'_> {
    fn sum(&self, value: impl Fn(&Run) -> u64) -> u64 {
        self.runs.iter().map(value).sum()
    }

    /// The reason of most connections; of equally many, the first in alphabetical order.
    fn reason(&self) -> Option<String> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for reason in self.runs.iter().filter_map(|run| run.reason.as_deref()) {
            *counts.entry(reason).or_default() += 1;
        }
        let most = counts.into_iter().rev().max_by_key(|(_, count)| *count);
        most.map(|(reason, _)| reason.to_owned())
    }

    fn row(&self, plain: u64, late_in_model: Option<f64>) -> Result<Row, Error> {
        let times = self.runs.iter().flat_map(|run| run.times.iter().copied());
        let times = Distribution::weighted(times);
        let tolerance = self.app.tolerance(self.link)?;
        let quantiles = self.app.quantiles().iter();
        let bytes = self.sum(|run| run.bytes);
        Ok(Row {
            redundancy: self.redundancy,
            policy: self.setup.policy.clone(),
            late: tolerance.map(|tolerance| times.share_above(tolerance)),
            late_in_model,
            lost: times.share_above(NEVER),
            times_ms: quantiles.map(|(name, q)| (*name, took(times.quantile(*q)))).collect(),
            bytes,
            extra: bytes as f64 / plain.max(1) as f64 - 1.0,
            repairs: self.sum(|run| run.repairs),
            useful: self.sum(|run| run.useful),
            reason: self.reason(),
            times,
        })
    }
}

/// Longer than a message or byte takes that comes at all.
const NEVER: Duration = Duration::from_secs(1_000_000);

/// A time in milliseconds; `None` for a message or byte that never came.
fn took(time: Duration) -> Option<f64> {
    (time < NEVER).then(|| millis(time))
}

/// Measures all applications on their links: [`Options::seeds`] connections of each configuration, on
/// which the game, the stream and the feed run for `seconds` each.
///
/// # Errors
/// A simulation fails.
pub fn run(seconds: u32, options: &Options) -> Result<Demo, Error> {
    let pairs = App::ALL.iter().flat_map(|app| app.links().iter().map(|link| (*app, *link)));
    measure(&pairs.collect::<Vec<_>>(), seconds, options)
}

/// Measures some applications, each on a link. Pairs of the same application must be neighbours.
pub fn measure(pairs: &[(App, Link)], seconds: u32, options: &Options) -> Result<Demo, Error> {
    let connections = options.seeds(CONNECTIONS);
    let mut outcomes = outcomes(pairs)?;
    let setups: Vec<_> = outcomes.iter().map(|outcome| outcome.setup.clone()).collect();
    let measured = Runs::measure(options, &setups, connections, |setup, connection| {
        setup.run(seconds, seed(options.seed, connection))
    })?;
    outcomes.iter_mut().zip(measured).for_each(|(outcome, of)| outcome.runs = of.runs);
    let models = parallel::map(options, &outcomes, |outcome| {
        let known = outcome.app == App::Stream;
        let model = known.then(|| bound::Model::new(outcome, seconds, options));
        // One bound for the link, whatever the redundancy.
        let bound = model.as_ref().filter(|_| outcome.redundancy == Redundancy::None);
        Ok::<_, Error>((
            model.as_ref().map(bound::Model::open_loop),
            bound.map(bound::Model::bound),
        ))
    })?;
    let outcomes: Vec<_> = outcomes.into_iter().zip(models).collect();
    let mut parts: Vec<Part> = Vec::new();
    for (app, link) in pairs {
        let on_link = on_link(&outcomes, *app, link)?;
        match parts.last_mut().filter(|part| part.app == *app) {
            Some(part) => part.links.push(on_link),
            None => parts.push(Part { app: *app, links: vec![on_link] }),
        }
    }
    Ok(Demo { seed: options.seed, seconds, connections, parts })
}

/// The configurations to be measured, without runs.
fn outcomes(pairs: &[(App, Link)]) -> Result<Vec<Trials<'_>>, Error> {
    let mut outcomes = Vec::new();
    for (app, link) in pairs {
        for redundancy in Redundancy::all(*app) {
            let (app, redundancy) = (*app, *redundancy);
            let setup = redundancy.setup(app, link)?;
            outcomes.push(Trials { app, link, redundancy, setup, runs: Vec::new() });
        }
    }
    Ok(outcomes)
}

/// An outcome, the result of the model's open loop, and the bound of the link.
type TrialsInModel<'a> = (Trials<'a>, (Option<f64>, Option<f64>));

/// The rows of one application on one link.
fn on_link(outcomes: &[TrialsInModel<'_>], app: App, link: &Link) -> Result<OnLink, Error> {
    let here = || outcomes.iter().filter(|(o, _)| o.app == app && o.link == link);
    let plain = here().find(|(o, _)| o.redundancy == Redundancy::None);
    let plain = plain.map_or(0, |(o, _)| o.sum(|run| run.bytes));
    let rows = here().map(|(outcome, (model, _))| outcome.row(plain, *model));
    let rows = rows.collect::<Result<Vec<_>, Error>>()?;
    Ok(OnLink {
        link: *link,
        late_after_ms: app.tolerance(link)?.map(millis),
        late_bound: here().find_map(|(_, (_, bound))| *bound),
        time_bound_ms: bound::least_time(app, link)?.map(millis),
        summary: Summary::of(app, &rows),
        finding: report::finding(app, &rows),
        rows,
    })
}
