//! Recordings of a remote desktop, replayed over a lossy path in total order, with fences between updates,
//! and in the order that geometry demands.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sutura_analysis::statistics::{Distribution, millis};
use sutura_link::LinkConfig;
use sutura_proto::{CodeSet, FecConfig, TransportConfig};
use sutura_sim::{Ends, Pace, Scenario, Update, UpdateOrder, UpdatePlan, UpdatesOutcome};

use crate::comparison::{Runs, seed};
use crate::report::{Axis, Report, Series, Table, chart_of, report_of};
use crate::screens::{SCENES, parse};
use crate::{Error, Options};

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
#[derive(Clone, Debug, PartialEq, Eq)]
struct PaintScheme {
    name: Cow<'static, str>,
    order: UpdateOrder,
    policy: Option<Cow<'static, str>>,
    ideal: bool,
}

impl PaintScheme {
    const fn new(name: &'static str, order: UpdateOrder) -> Self {
        Self { name: Cow::Borrowed(name), order, policy: None, ideal: false }
    }

    const fn with(name: &'static str, order: UpdateOrder, policy: &'static str) -> Self {
        Self { name: Cow::Borrowed(name), order, policy: Some(Cow::Borrowed(policy)), ideal: false }
    }

    /// In the order of geometry with a policy of the options.
    fn of_options(policy: &str) -> Self {
        let policy = Cow::Owned(policy.to_owned());
        let name = Cow::Owned(format!("geometry, {policy}"));
        Self { name, order: UpdateOrder::Named, policy: Some(policy), ideal: false }
    }
}

const SCHEMES: [PaintScheme; 10] = [
    PaintScheme::new("total", UpdateOrder::Total),
    PaintScheme::new("fences", UpdateOrder::Partial),
    PaintScheme::new("geometry", UpdateOrder::Named),
    PaintScheme::with("total, auto", UpdateOrder::Total, "auto"),
    PaintScheme::with("geometry, auto", UpdateOrder::Named, "auto"),
    PaintScheme::with("geometry, auto expecting", UpdateOrder::Named, INTERACTIVE),
    PaintScheme::with("geometry, tail 1", UpdateOrder::Named, "tail:burst=1"),
    PaintScheme::with("geometry, tail 3", UpdateOrder::Named, "tail:burst=3"),
    PaintScheme {
        name: Cow::Borrowed("no loss"),
        order: UpdateOrder::Named,
        policy: None,
        ideal: true,
    },
    PaintScheme {
        name: Cow::Borrowed("no loss, auto expecting"),
        order: UpdateOrder::Named,
        policy: Some(Cow::Borrowed(INTERACTIVE)),
        ideal: true,
    },
];

/// The policy of the bridge.
const INTERACTIVE: &str = "auto:budget=1,expect=0.02";

/// A scene with a scheme.
#[derive(Clone, Debug)]
struct Replay {
    scene: &'static str,
    updates: Arc<[Update]>,
    channel: &'static str,
    loss: &'static str,
    scheme: PaintScheme,
}

impl Replay {
    fn run(&self, seed: u64, options: &Options) -> Result<UpdatesOutcome, Error> {
        let loss = if self.scheme.ideal { "none" } else { self.loss };
        let link: LinkConfig = format!("{PATH} loss={loss}").parse()?;
        let transport = TransportConfig::default()
            .with_redundancy(options.redundancy(self.scheme.policy.as_deref())?)
            .with_max_concurrent_uni_streams(4096)
            .with_fec(Some(FecConfig::default().with_codes(CodeSet::all())));
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

/// The measurements of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Painted {
    blocked: Vec<Duration>,
    /// For each update, the time from when it was made until all of it was painted.
    updates: Vec<Duration>,
    wire: f64,
    recovered: f64,
    bytes: Bytes,
}

/// What the server has sent, in UDP's payload, by what it is.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Bytes {
    pieces: f64,
    repairs: f64,
    /// Headers of packets, frames and groups, authentication tags, acknowledgements, and the handshake.
    others: f64,
    packets: f64,
    /// What the client has sent: mostly acknowledgements.
    back: f64,
}

impl Bytes {
    fn new(updates: &[Update], ends: &Ends) -> Self {
        let pieces: usize = updates.iter().flat_map(|update| &update.messages).sum();
        let (pieces, sent) = (pieces as f64, ends.server.sent);
        let repairs = ends.server.fec.repair_bytes_sent as f64;
        Self {
            pieces,
            repairs,
            others: sent.bytes as f64 - pieces - repairs,
            packets: sent.packets as f64,
            back: ends.client.sent.bytes as f64,
        }
    }
}

impl Painted {
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
            bytes: Bytes::new(updates, &outcome.ends),
        }
    }
}

/// All runs of a replay.
type Replays = Runs<Replay, Painted>;

impl Replays {
    fn updates(&self) -> Distribution {
        self.all_times(|run| &run.updates)
    }

    fn blocked(&self) -> Distribution {
        self.all_times(|run| &run.blocked)
    }
}

experiment! {
    "vnc-scenes": "Recordings of a remote desktop in total order and in that of geometry" (Seeds, Policies),
    one in 4 takes 5 s
}

fn run(options: &Options) -> Result<Report, Error> {
    let own: Vec<PaintScheme> =
        options.policies.iter().map(|policy| PaintScheme::of_options(policy)).collect();
    let mut setups = Vec::new();
    for (scene, text) in SCENES {
        let updates: Arc<[Update]> = parse(text)?.into();
        for (channel, loss) in CHANNELS {
            let setup = |scheme| Replay { scene, updates: updates.clone(), channel, loss, scheme };
            setups.extend(SCHEMES.map(setup));
            setups.extend(own.iter().cloned().map(setup));
        }
    }
    let all = Runs::measure(options, &setups, options.seeds(SEEDS), |setup, n| {
        setup
            .run(seed(options.seed, n), options)
            .map(|outcome| Painted::new(&setup.updates, &outcome))
    })?;
    Ok(report(&all))
}

fn report(summaries: &[Replays]) -> Report {
    let table = Table::of(
        "Updates of a screen",
        summaries,
        &[
            ("scene", &|s| s.setup.scene.into()),
            ("bursts", &|s| s.setup.channel.into()),
            ("scheme", &|s| s.setup.scheme.name.as_ref().into()),
            ("update p50", &|s| s.updates().cell(0.5)),
            ("update p90", &|s| s.updates().cell(0.9)),
            ("update p99", &|s| s.updates().cell(0.99)),
            ("above 200 ms", &|s| s.updates().cell_above(FREEZE)),
            ("blocked p90", &|s| s.blocked().cell(0.9)),
            ("blocked p99", &|s| s.blocked().cell(0.99)),
            ("kB", &|s| s.mean_cell(|run| run.wire / 1000.0)),
            ("recovered", &|s| s.mean_cell(|run| run.recovered)),
        ],
    );
    let ideal: Vec<Replays> = summaries
        .iter()
        .filter(|s| s.setup.scheme.ideal && s.setup.channel == CHANNELS[0].0)
        .cloned()
        .collect();
    let causes = Table::of(
        "Kilobytes without loss, by what they are",
        &ideal,
        &[
            ("scene", &|s| s.setup.scene.into()),
            ("scheme", &|s| s.setup.scheme.name.as_ref().into()),
            ("pieces", &|s| s.mean_cell(|run| run.bytes.pieces / 1000.0)),
            ("repair symbols", &|s| s.mean_cell(|run| run.bytes.repairs / 1000.0)),
            ("others", &|s| s.mean_cell(|run| run.bytes.others / 1000.0)),
            ("packets", &|s| s.mean_cell(|run| run.bytes.packets)),
            ("back", &|s| s.mean_cell(|run| run.bytes.back / 1000.0)),
        ],
    );
    let of = |s: &Replays| (s.setup.scene, s.setup.channel);
    let same = |a: &Replays, b: &Replays| of(a) == of(b);
    let charts = summaries.chunk_by(same).filter_map(|rows| {
        let (scene, channel) = of(rows.first()?);
        let series = rows.iter().map(|s| {
            let updates = s.updates();
            let at = |q: u32| {
                let share = f64::from(q) / 1000.0;
                (millis(updates.quantile(share)).max(1.0), share)
            };
            Series::line(s.setup.scheme.name.as_ref(), (500..1000).step_by(5).map(at).collect())
        });
        Some(chart_of(
            format!("{scene}-{channel}"),
            format!("{scene}, bursts in {channel}"),
            [Axis::log("time until an update is painted, in ms"), Axis::linear("share")],
            series,
        ))
    });
    report_of(
        "A remote desktop on a lossy path",
        &text(),
        [table, causes],
        charts.collect::<Vec<_>>(),
    )
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
        "Of the bytes without loss, *pieces* are what the bridge gives to its ordered group, and *others* headers of \
         its messages, of frames and of packets, authentication tags, acknowledgements and the handshake, in UDP's \
         payload. *Back* is what the viewer's end sends."
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first `runs` runs of a scene with a scheme, over the channel whose bursts are limited in `bursts`.
    fn summary(scene: &str, scheme: &str, bursts: &str, runs: u64) -> Replays {
        let (scene, text) = SCENES.into_iter().find(|(name, _)| *name == scene).unwrap();
        let scheme = SCHEMES.into_iter().find(|of| of.name == scheme).unwrap();
        let (channel, loss) = CHANNELS.into_iter().find(|(name, _)| *name == bursts).unwrap();
        let updates: Arc<[Update]> = parse(text).unwrap().into();
        let setup = Replay { scene, updates: updates.clone(), channel, loss, scheme };
        let options = Options::default();
        let run = |n| Painted::new(&updates, &setup.run(seed(1, n), &options).unwrap());
        Runs { runs: (0..runs).map(run).collect(), setup }
    }

    /// Fewer updates of an occasional change wait for a retransmission with the settings of the bridge than in total
    /// order.
    #[test]
    fn what_the_bridge_uses_mends_what_is_sent_now_and_then() {
        for scene in ["typing", "scrolling"] {
            let [total, bridge] = ["total", "geometry, auto expecting"]
                .map(|scheme| summary(scene, scheme, "time", 12));
            let late = Duration::from_millis(90);
            let [slow, fast] = [&total, &bridge].map(|s| s.updates().share_above(late));
            assert!(slow > 0.01 && fast < 0.7 * slow, "{scene}: {slow} {fast}");
            assert!(bridge.mean(|run| run.recovered) > 0.0);
            let [spent, plain] = [&bridge, &total].map(|s| s.mean(|run| run.wire));
            assert!(spent < 3.0 * plain, "{scene}: {spent} {plain}");
        }
    }

    /// A burst that lasts for some packets lasts long where few are sent. The bridge sends repair symbols into it
    /// although no acknowledgement comes, so that fewer updates wait for it to end.
    #[test]
    fn bursts_that_last_for_some_packets_end_sooner_with_what_the_bridge_uses() {
        for scene in ["typing", "scrolling"] {
            let frozen =
                |scheme| summary(scene, scheme, "packets", 8).updates().share_above(FREEZE);
            let [total, bridge] = ["total", "geometry, auto expecting"].map(frozen);
            assert!(total > 0.01 && bridge < 0.55 * total, "{scene}: {total} {bridge}");
        }
    }

    /// Without loss, what is sent is pieces and what carries them, and repair symbols only with a policy.
    #[test]
    fn bytes_are_counted_by_what_they_are() {
        let [plain, expecting] = ["no loss", "no loss, auto expecting"]
            .map(|scheme| summary("dragging", scheme, "time", 1).runs[0].bytes);
        assert_eq!(plain.repairs, 0.0);
        assert_eq!(plain.pieces, expecting.pieces);
        assert!(plain.others > 20.0 * plain.packets && expecting.repairs > 0.0);
        assert!(plain.back > 0.0);
    }

    /// A policy of the options has rows of its own.
    #[test]
    fn any_policy_paints_in_the_order_of_geometry() {
        let policies = vec!["tail:burst=1".to_owned(), "block:rate=1.1".to_owned()];
        let options = Options { policies, seeds: Some(1), ..Options::default() };
        let report = run(&options).unwrap();
        let named = |scheme: &str| {
            let rows = &report.tables[0].rows;
            rows.iter().filter(|row| row[2].to_string() == scheme).cloned().collect::<Vec<_>>()
        };
        let [given, same] = ["geometry, tail:burst=1", "geometry, tail 1"].map(named);
        assert_eq!(given.len(), SCENES.len() * CHANNELS.len());
        assert!(given.iter().zip(&same).all(|(a, b)| a[3..] == b[3..]));
        assert_eq!(named("geometry, block:rate=1.1").len(), given.len());
    }

    /// In the order that geometry demands, pieces wait less for others than in total order.
    #[test]
    fn geometry_lets_pieces_of_a_film_pass() {
        let [total, geometry] =
            ["total", "geometry"].map(|scheme| summary("film", scheme, "time", 4));
        let blocked = |s: &Replays| millis(s.blocked().quantile(0.9));
        assert!(blocked(&total) > 2.0, "{}", blocked(&total));
        assert!(blocked(&geometry) < 0.8 * blocked(&total), "{}", blocked(&geometry));
        let [slow, fast] =
            [&total, &geometry].map(|s| s.blocked().share_above(Duration::from_millis(10)));
        assert!(fast < 0.5 * slow, "{fast} {slow}");
    }
}
