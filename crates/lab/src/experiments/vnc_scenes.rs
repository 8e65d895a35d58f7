//! Recordings of a remote desktop, replayed over a lossy path in total order, with fences between updates, and in
//! the order that geometry demands.

use std::sync::Arc;
use std::time::Duration;

use sutura_analysis::figure::{Axis, Chart, Panel, Series};
use sutura_analysis::report::Report;
use sutura_analysis::statistics::{Distribution, mean, millis};
use sutura_analysis::table::{Cell, Table};
use sutura_link::LinkConfig;
use sutura_proto::{CodeSet, FecConfig, TransportConfig};
use sutura_sim::{Pace, Scenario, Update, UpdateOrder, UpdatePlan, UpdatesOutcome};

use super::Experiment;
use super::paper_path::seed;
use crate::screens::{SCENES, parse};
use crate::{Error, Options, parallel};

/// Runs of each configuration.
const SEEDS: u64 = 20;
/// An update that takes longer counts as a freeze.
const FREEZE: Duration = Duration::from_millis(200);
/// The path of the measurement with programs.
const PATH: &str = "rate=20mbit delay=25ms queue=100p";
/// 2 % of packets in bursts: of 4.8 ms on average, or of four packets.
const CHANNELS: [(&str, &str); 2] =
    [("time", "gt:300,4.8,0.95,0.005"), ("packets", "ge:0.004,0.25,0.95,0.005")];

/// How pieces are delivered and protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scheme {
    name: &'static str,
    order: UpdateOrder,
    policy: Option<&'static str>,
    ideal: bool,
}

impl Scheme {
    const fn new(name: &'static str, order: UpdateOrder, policy: Option<&'static str>) -> Self {
        Self { name, order, policy, ideal: false }
    }
}

const SCHEMES: [Scheme; 9] = [
    Scheme::new("total", UpdateOrder::Total, None),
    Scheme::new("fences", UpdateOrder::Partial, None),
    Scheme::new("geometry", UpdateOrder::Named, None),
    Scheme::new("total, auto", UpdateOrder::Total, Some("auto")),
    Scheme::new("geometry, auto", UpdateOrder::Named, Some("auto")),
    Scheme::new("geometry, auto expecting", UpdateOrder::Named, Some(INTERACTIVE)),
    Scheme::new("geometry, tail 1", UpdateOrder::Named, Some("tail:burst=1")),
    Scheme::new("geometry, tail 3", UpdateOrder::Named, Some("tail:burst=3")),
    Scheme { ideal: true, ..Scheme::new("no loss", UpdateOrder::Named, None) },
];

/// What the bridge uses.
const INTERACTIVE: &str = "auto:budget=1,expect=0.02";

/// A scene with a scheme.
#[derive(Clone, Debug)]
struct Setup {
    scene: &'static str,
    updates: Arc<[Update]>,
    channel: &'static str,
    loss: &'static str,
    scheme: Scheme,
}

impl Setup {
    fn run(&self, seed: u64) -> Result<UpdatesOutcome, Error> {
        let loss = if self.scheme.ideal { "none" } else { self.loss };
        let link: LinkConfig = format!("{PATH} loss={loss}").parse()?;
        let policy =
            self.scheme.policy.map(|name| sutura_research::redundancy().find(name)).transpose()?;
        let transport = TransportConfig {
            redundancy: policy,
            max_concurrent_uni_streams: 4096,
            fec: Some(FecConfig { codes: CodeSet::all(), ..FecConfig::default() }),
            ..TransportConfig::default()
        };
        let plan = UpdatePlan {
            updates: self.updates.clone(),
            order: self.scheme.order,
            pace: Pace::Streaming,
            deadline: None,
            ends: false,
        };
        Ok(Scenario::new(seed).link(&link, &link).transport(&transport).updates(&plan)?)
    }
}

/// What is measured of one run.
#[derive(Clone, Debug)]
struct Run {
    blocked: Vec<Duration>,
    /// For each update, the time from when it was made until all of it was painted.
    updates: Vec<Duration>,
    wire: f64,
    recovered: f64,
}

impl Run {
    fn new(updates: &[Update], outcome: &UpdatesOutcome) -> Self {
        let mut messages = outcome.delivered.clone();
        messages.sort_by_key(|message| message.number);
        let blocked =
            messages.iter().map(|message| message.delivered - message.completed).collect();
        let mut rest = &messages[..];
        let times = updates.iter().map(|update| {
            let (these, others) = rest.split_at(update.messages.len().min(rest.len()));
            rest = others;
            these.iter().map(|message| message.delivered - message.made).max().unwrap_or_default()
        });
        Self {
            blocked,
            updates: times.collect(),
            wire: outcome.ends.down.sent_bytes as f64,
            recovered: outcome.ends.client.fec.recovered as f64,
        }
    }
}

/// All runs of a setup.
struct Summary {
    scene: &'static str,
    channel: &'static str,
    scheme: &'static str,
    blocked: Distribution,
    updates: Distribution,
    kilobytes: f64,
    recovered: f64,
}

impl Summary {
    fn new(setup: &Setup, runs: &[Run]) -> Self {
        let all = |value: fn(&Run) -> &Vec<Duration>| {
            Distribution::of(runs.iter().flat_map(move |run| value(run).iter().copied()))
        };
        Self {
            scene: setup.scene,
            channel: setup.channel,
            scheme: setup.scheme.name,
            blocked: all(|run| &run.blocked),
            updates: all(|run| &run.updates),
            kilobytes: mean(runs.iter().map(|run| run.wire / 1000.0)),
            recovered: mean(runs.iter().map(|run| run.recovered)),
        }
    }
}

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "vnc-scenes",
    about: "Recordings of a remote desktop in total order and in that of geometry",
    run,
};

fn run(options: &Options) -> Result<Report, Error> {
    let mut setups = Vec::new();
    for (scene, text) in SCENES {
        let updates: Arc<[Update]> = parse(text)?.into();
        for (channel, loss) in CHANNELS {
            let setup = |scheme| Setup { scene, updates: updates.clone(), channel, loss, scheme };
            setups.extend(SCHEMES.map(setup));
        }
    }
    let runs = parallel::repeat(options, &setups, options.seeds(SEEDS), |setup, n| {
        setup.run(seed(options.seed, n)).map(|outcome| Run::new(&setup.updates, &outcome))
    })?;
    let summaries: Vec<Summary> =
        setups.iter().zip(&runs).map(|(setup, runs)| Summary::new(setup, runs)).collect();
    Ok(report(&summaries))
}

fn report(summaries: &[Summary]) -> Report {
    let rows: Vec<&Summary> = summaries.iter().collect();
    let time = |distribution: &Distribution, q| Cell::Millis(millis(distribution.quantile(q)));
    let table = Table::of(
        "Updates of a screen",
        &rows,
        &[
            ("scene", &|s| s.scene.into()),
            ("bursts", &|s| s.channel.into()),
            ("scheme", &|s| s.scheme.into()),
            ("update p50", &|s| time(&s.updates, 0.5)),
            ("update p90", &|s| time(&s.updates, 0.9)),
            ("update p99", &|s| time(&s.updates, 0.99)),
            ("above 200 ms", &|s| Cell::Share(s.updates.share_above(FREEZE))),
            ("blocked p90", &|s| time(&s.blocked, 0.9)),
            ("blocked p99", &|s| time(&s.blocked, 0.99)),
            ("kB", &|s| Cell::Number(s.kilobytes)),
            ("recovered", &|s| Cell::Number(s.recovered)),
        ],
    );
    let same = |a: &&Summary, b: &&Summary| (a.scene, a.channel) == (b.scene, b.channel);
    let charts = rows.chunk_by(same).filter_map(|rows| {
        let first = rows.first()?;
        let series = rows.iter().map(|s| {
            let at = |q: u32| {
                let share = f64::from(q) / 1000.0;
                (millis(s.updates.quantile(share)).max(1.0), share)
            };
            Series::line(s.scheme, (500..1000).step_by(5).map(at).collect())
        });
        Some(Chart {
            name: format!("{}-{}", first.scene, first.channel),
            title: format!("{}, bursts in {}", first.scene, first.channel),
            x: Axis::log("time until an update is painted, in ms"),
            y: Axis::linear("share"),
            baseline: None,
            panels: vec![Panel::of(series)],
        })
    });
    Report {
        title: "A remote desktop on a lossy path".to_owned(),
        text: text(),
        tables: vec![table],
        charts: charts.collect(),
        ..Report::default()
    }
}

fn text() -> Vec<String> {
    let [(_, time), (_, packets)] = CHANNELS;
    vec![
        format!(
            "Ten seconds each of typing, scrolling, a film of 240x160 pixels and a window that is dragged, \
             recorded from a TigerVNC server as the pieces that `sutura vnc` makes of them, and replayed in \
             virtual time over a path of 20 Mbit/s and 25 ms each way that loses 2 % of packets in bursts: \
             of 4.8 ms on average ({time}), or of four packets however far apart they are ({packets}), \
             which is hard on what is sent now and then."
        ),
        "*total* delivers pieces as they were sent, like one stream; *fences* delivers those of an update in \
         any order; *geometry* lets a piece wait only for those whose cells of 64x64 pixels it paints over \
         or copies, as the bridge does. Nothing is superseded or held back for the path here. *auto \
         expecting* is what the bridge uses: it takes 2 % of packets to be lost until it knows better, and may send \
         as many repair symbols as packets. An *update* \
         takes from when it was made until all of it is painted; a piece is *blocked* from when it is complete \
         until it is painted."
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(scene: &str, scheme: &str) -> Summary {
        let (scene, text) = SCENES.into_iter().find(|(name, _)| *name == scene).unwrap();
        let scheme = SCHEMES.into_iter().find(|of| of.name == scheme).unwrap();
        let [(channel, loss), _] = CHANNELS;
        let updates: Arc<[Update]> = parse(text).unwrap().into();
        let setup = Setup { scene, updates: updates.clone(), channel, loss, scheme };
        let run = |n| Run::new(&updates, &setup.run(seed(1, n)).unwrap());
        Summary::new(&setup, &(0..4).map(run).collect::<Vec<_>>())
    }

    /// The slowest of a hundred updates of what comes now and then waits for a retransmission in one order and
    /// does not with what the bridge uses.
    #[test]
    fn what_the_bridge_uses_mends_what_is_sent_now_and_then() {
        for scene in ["typing", "scrolling"] {
            let [total, bridge] =
                ["total", "geometry, auto expecting"].map(|scheme| summary(scene, scheme));
            let [slow, fast] = [&total, &bridge].map(|s| millis(s.updates.quantile(0.99)));
            assert!(slow > 90.0 && fast < 0.8 * slow, "{scene}: {slow} {fast}");
            assert!(bridge.recovered > 0.0 && bridge.kilobytes < 4.0 * total.kilobytes);
        }
    }

    /// In the order that geometry demands, pieces wait less for others than in one order.
    #[test]
    fn geometry_lets_pieces_of_a_film_pass() {
        let [total, geometry] = ["total", "geometry"].map(|scheme| summary("film", scheme));
        let blocked = |s: &Summary, q| millis(s.blocked.quantile(q));
        assert!(blocked(&total, 0.9) > 2.0, "{}", blocked(&total, 0.9));
        for q in [0.9, 0.99] {
            assert!(blocked(&geometry, q) < 0.8 * blocked(&total, q), "{q}");
        }
    }
}
