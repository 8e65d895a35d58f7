//! Delay of a steady stream (Holzinger et al. 2025, section V-B4 and Fig. 5): 5 kB at 60 Hz, with
//! repair symbols at the end or behind each message, at once or later, beside the best that a perfect code
//! could do with the same number.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sutura_analysis::statistics::Distribution;
use sutura_proto::Protection;
use sutura_sim::{Ends, Scenario, StreamPlan};

use super::Way;
use super::paper_path::{Channel, ONE_WAY};
use crate::comparison::{Runs, pooled, protection, seed};
use crate::ideal::{Bound, Schedule, Trace, Workload};
use crate::report::{
    Axis, Cell, Chart, Panel, Report, Series, Table, chart_of, panels_of, report_of,
};
use crate::{Error, Options};

/// The loss models.
const CHANNELS: [Channel; 4] =
    [Channel::Lossless, Channel::Fractions, Channel::Percentages, Channel::Time];
/// The policies that take a burst loss tolerance and a repair delay tolerance.
const KINDS: [&str; 3] = ["tail", "incremental", "incremental:literal"];
/// Burst loss tolerances: repair symbols on each occasion.
const BURSTS: [u32; 3] = [1, 3, 5];
/// Repair delay tolerances in milliseconds: how long a repair symbol waits.
const DELAYS: [u64; 4] = [0, 5, 10, 25];
/// The policy that sets itself.
const AUTO: &str = "auto";
/// The budgets of `auto`: repair symbols per source symbol, of which a message takes five.
const BUDGETS: [f64; 6] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6];
/// The number of messages of each configuration.
pub(super) const MESSAGES: u64 = 40 * BATCH;
/// The number of messages on one connection that count.
pub(super) const BATCH: u64 = 2000;
/// Messages before the messages that count: two seconds, in which the congestion window opens.
const WARM_UP: u64 = 120;
/// A byte is late if it takes this much longer than the path. A message takes 4 ms to send.
const SLACK: Duration = Duration::from_millis(10);
/// The end of the tail that charts show.
const SMALLEST_SHARE: f64 = 1e-5;

/// A steady stream, and how it is protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steady {
    /// The loss of both directions.
    pub channel: Channel,
    /// The policy that protects the stream, as text; `None` if nothing does.
    pub policy: Option<String>,
    /// Burst loss tolerance: repair symbols on each occasion. `None` if the policy has no such
    /// parameter.
    pub burst: Option<u32>,
    /// Repair delay tolerance: how long the repair symbols wait; zero if the policy has no such parameter.
    pub delay: Duration,
}

impl Steady {
    /// A stream without protection.
    #[must_use]
    pub const fn bare(channel: Channel) -> Self {
        Self { channel, policy: None, burst: Some(0), delay: Duration::ZERO }
    }

    /// A stream protected by `kind`, which is `tail`, `incremental` or `incremental:literal`.
    #[must_use]
    pub fn of(channel: Channel, kind: &str, burst: u32, delay: Duration) -> Self {
        let separator = if kind.contains(':') { ',' } else { ':' };
        let policy = format!("{kind}{separator}burst={burst},delay={}ms", delay.as_millis());
        let policy = Some(policy);
        Self { channel, policy, burst: Some(burst), delay }
    }

    /// A stream with `burst` repair symbols behind each message, which wait for `ms` milliseconds.
    #[must_use]
    pub fn incremental(channel: Channel, burst: u32, ms: u64) -> Self {
        match burst {
            0 => Self::bare(channel),
            _ => Self::of(channel, "incremental", burst, Duration::from_millis(ms)),
        }
    }

    /// A stream protected by any policy.
    fn other(channel: Channel, policy: &str) -> Self {
        let policy = Some(policy.to_owned());
        Self { channel, policy, burst: None, delay: Duration::ZERO }
    }

    /// A stream protected by the policy that sets itself, which is told what counts as late here, and
    /// to spend its budget.
    fn auto(channel: Channel, budget: f64) -> Self {
        let within = (ONE_WAY + SLACK).as_millis();
        Self::other(channel, &format!("{AUTO}:budget={budget},within={within}ms,share=1"))
    }

    pub(super) fn protection(&self) -> Result<Option<Protection>, Error> {
        protection(self.policy.as_deref())
    }

    /// The name of the policy, without parameters if these have columns of their own.
    fn name(&self) -> &str {
        match self.burst {
            Some(_) => self.kind(),
            None => self.policy.as_deref().unwrap_or("none"),
        }
    }

    /// The policy without the parameters that rows and panels differ in.
    fn kind(&self) -> &str {
        let Some(policy) = self.policy.as_deref() else { return "none" };
        let varied = if self.burst.is_some() { "burst=" } else { ":" };
        policy.split_once(varied).map_or(policy, |(kind, _)| kind.trim_end_matches([':', ',']))
    }

    /// By how much a byte may take longer than the path: the repair delay tolerance of the policy, and a
    /// margin.
    fn tolerance(&self) -> Duration {
        self.delay + SLACK
    }
}

/// The outcome of one configuration.
#[derive(Clone, Debug)]
pub struct Delays {
    /// The configuration.
    pub setup: Steady,
    /// Delays of all bytes.
    pub delays: Distribution,
    /// The counts of each connection.
    counts: Vec<StreamCounts>,
    /// When the first message was made on each connection.
    began: Vec<Duration>,
    /// The largest share of late bytes of a connection.
    worst: f64,
    messages: u64,
}

impl Delays {
    fn of(all: &Runs<Steady, Batch>) -> Self {
        let batches = &all.runs;
        Self {
            setup: all.setup.clone(),
            delays: pooled(batches.iter().map(|batch| batch.delays.as_slice()), |delay| *delay),
            counts: batches.iter().map(|batch| batch.counts).collect(),
            began: batches.iter().map(|batch| batch.began).collect(),
            worst: all.most(Batch::late).max(0.0),
            messages: batches.iter().map(|batch| batch.messages).sum(),
        }
    }

    /// The share of bytes that took 10 ms or more longer than the path.
    #[must_use]
    pub fn late(&self) -> f64 {
        self.delays.share_above(ONE_WAY + SLACK)
    }

    /// The same as a cell of a table, with its interval.
    pub(super) fn late_cell(&self) -> Cell {
        self.delays.cell_above(ONE_WAY + SLACK)
    }

    /// The same share on the connection with the most such bytes.
    #[must_use]
    pub fn worst(&self) -> f64 {
        self.worst
    }

    /// The share of bytes that took 10 ms or more longer than the path and the repair delay tolerance.
    #[must_use]
    pub fn intolerable(&self) -> f64 {
        self.delays.share_above(ONE_WAY + self.setup.tolerance())
    }

    /// Bytes of stream data sent again per byte streamed.
    #[must_use]
    pub fn resent(&self) -> f64 {
        self.per_byte(|counts| counts.resent)
    }

    /// Repair symbols per message.
    #[must_use]
    pub fn repairs(&self) -> f64 {
        self.per_message(|counts| counts.repairs)
    }

    /// Bytes of UDP payload from the server per byte streamed.
    pub(super) fn wire(&self) -> f64 {
        self.per_byte(|counts| counts.wire)
    }

    fn per_byte(&self, value: impl Fn(&StreamCounts) -> u64) -> f64 {
        let bytes = self.messages.max(1) as f64 * StreamPlan::frames(0).size as f64;
        self.sum(value) / bytes
    }

    fn per_message(&self, value: impl Fn(&StreamCounts) -> u64) -> f64 {
        self.sum(value) / self.messages.max(1) as f64
    }

    fn sum(&self, value: impl Fn(&StreamCounts) -> u64) -> f64 {
        self.counts.iter().map(value).sum::<u64>() as f64
    }

    /// The share of the server's datagrams that the link lost.
    pub(super) fn loss(&self) -> f64 {
        self.sum(|counts| counts.lost) / self.sum(|counts| counts.sent).max(1.0)
    }
}

/// The counts of a connection.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct StreamCounts {
    /// Bytes of stream data that the server sent again, and repair symbols that it sent.
    resent: u64,
    repairs: u64,
    /// Source symbols that the client recovered.
    recovered: u64,
    /// Bytes of UDP payload from the server, its datagrams, and those that were lost.
    wire: u64,
    sent: u64,
    lost: u64,
}

impl StreamCounts {
    fn of(ends: &Ends) -> Self {
        Self {
            resent: ends.server.stream_bytes_retransmitted,
            repairs: ends.server.fec.repair_symbols_sent,
            recovered: ends.client.fec.recovered,
            wire: ends.down.sent_bytes,
            sent: ends.down.sent,
            lost: ends.down.lost + ends.down.overflow,
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Batch {
    delays: Vec<(Duration, u64)>,
    counts: StreamCounts,
    began: Duration,
    messages: u64,
}

impl Batch {
    fn late(&self) -> f64 {
        Distribution::weighted(self.delays.iter().copied()).share_above(ONE_WAY + SLACK)
    }
}

fn scenario(channel: Channel, connection: u64, options: &Options) -> Result<Scenario, Error> {
    let path = channel.link()?;
    Ok(Scenario::new(seed(options.seed, 1 + connection)).link(&path, &path))
}

fn batch(
    way: Way,
    setup: &Steady,
    count: u64,
    connection: u64,
    options: &Options,
) -> Result<Batch, Error> {
    let plan = StreamPlan::frames(WARM_UP + count);
    let mut skip = WARM_UP * plan.size as u64;
    let outcome = way.stream(scenario(setup.channel, connection, options)?, setup, plan.clone())?;
    let mut delays = Vec::new();
    for delay in &outcome.delays {
        let counted = delay.bytes.saturating_sub(skip);
        skip -= delay.bytes - counted;
        if counted > 0 {
            delays.push((delay.delay, counted));
        }
    }
    let (counts, began) = (StreamCounts::of(&outcome.ends), outcome.began);
    Ok(Batch { delays, counts, began, messages: WARM_UP + count })
}

/// How many connections stream `count` messages, and how many of them each.
fn divide(count: u64) -> (u64, u64) {
    let connections = count.div_ceil(BATCH).max(1);
    (connections, count / connections)
}

/// Streams `count` messages for each of `setups`, which all get the same seeds, as `way` has them.
///
/// # Errors
/// A simulation fails, or there is no such policy.
pub fn measure(
    way: Way,
    setups: &[Steady],
    count: u64,
    options: &Options,
) -> Result<Vec<Delays>, Error> {
    let (connections, messages) = divide(count);
    let all = Runs::measure(options, setups, connections, |setup, n| {
        batch(way, setup, messages, n, options)
    })?;
    Ok(all.iter().map(Delays::of).collect())
}

/// The bounds of one channel, on the losses that the connections of `summary` met.
///
/// # Errors
/// There is no such link.
pub fn bound(summary: &Delays, count: u64, options: &Options) -> Result<Bound, Error> {
    let channel = summary.setup.channel;
    let workload = Workload::frames(channel.link()?, divide(count).1, WARM_UP);
    let trace = |(connection, start): (u64, &Duration)| {
        let [_, down] = scenario(channel, connection, options)?.link_seeds();
        Ok(Trace { seed: down, start: *start })
    };
    let traces: Result<Vec<_>, Error> = (0..).zip(&summary.began).map(trace).collect();
    let slacks = DELAYS.map(|delay| SLACK + Duration::from_millis(delay));
    Bound::search(&workload, &traces?, &slacks, options)
}

experiment! {
    "holzinger-stream": "Delay of the bytes of a steady stream over a path with bursts of loss, and the bound" (Seeds),
    one in 40 takes 23 s
}

/// The experiment as in the paper, with both readings of its channel, and on the time-stepped one.
fn run(options: &Options) -> Result<Report, Error> {
    let messages = options.seeds.map_or(options.reduced(MESSAGES), |seeds| seeds.max(1) * BATCH);
    let summaries = measure(Way::STREAMS, &setups(), messages, options)?;
    let mut bounds = Vec::new();
    for channel in CHANNELS.into_iter().filter(|channel| *channel != Channel::Lossless) {
        if let Some(bare) = summaries.iter().find(|s| s.setup == Steady::bare(channel)) {
            bounds.push((channel, bound(bare, messages, options)?));
        }
    }
    Ok(report(&summaries, &bounds))
}

fn setups() -> Vec<Steady> {
    let mut setups = Vec::new();
    for channel in CHANNELS {
        setups.push(Steady::bare(channel));
        for kind in KINDS {
            for (burst, delay) in BURSTS.iter().flat_map(|b| DELAYS.iter().map(move |d| (b, d))) {
                // Without loss, one count shows the cost.
                if channel != Channel::Lossless || *burst == 3 {
                    setups.push(Steady::of(channel, kind, *burst, Duration::from_millis(*delay)));
                }
            }
        }
        setups.push(Steady::other(channel, AUTO));
        setups.extend(BUDGETS.map(|budget| Steady::auto(channel, budget)));
    }
    setups
}

type Bounds = [(Channel, Bound)];

/// The bounds of a channel, if there are any.
fn of_channel(bounds: &Bounds, channel: Channel) -> Option<&Bound> {
    bounds.iter().find(|(of, _)| *of == channel).map(|(_, bound)| bound)
}

/// A share divided by its bound.
fn ratio(share: f64, bound: Option<f64>) -> Cell {
    bound.filter(|bound| *bound > 0.0).map_or_else(Cell::none, |bound| Cell::Number(share / bound))
}

fn report(summaries: &[Delays], bounds: &Bounds) -> Report {
    report_of(
        "Delay of the bytes of a steady stream with repair symbols",
        &[
            "Holzinger et al. 2025, V-B4: messages of 5 kB at 60 Hz over 10 Mbit/s, 50 ms one way, \
             BBR, loss in both directions. The published numbers of the loss model (0.005, 0.25, \
             0.95, 0.005, stepped by all packets and by 10 Mbit/s of cross traffic) are read as \
             fractions and as percentages; channel `time-stepped` has the same loss in each state, \
             which lasts 240 ms (good) and 4.8 ms (bad) on average.",
            "BLT is the number of repair symbols on each occasion, RDT how long they wait. A \
             byte is late if it takes more than the path and 10 ms from when its message was \
             made until the application read it in order; `worst` is the share of late bytes of the \
             worst of all connections, of which `--seeds` says how many. Bytes on the wire are UDP \
             payload from the server.",
            "`ideal` is the least share of late bytes that a perfect code can reach with the same \
             number of repair symbols per message, on the same link with the same seeds, if they are \
             sent by a fixed schedule after each message; `same delay` is what it reaches if they are \
             sent as late as the policy is told to; `clairvoyant` is what a sender could do that knows \
             which packets will be lost. A policy with an RDT waits by order; so the last \
             columns count bytes that take more than the path, the RDT and 10 ms.",
            "`incremental:literal` sends BLT repair symbols for each source symbol, of which a message \
             takes five, and does so before new data: the words of II-D5.",
            "`auto` is told nothing, or what counts as late here and a budget in repair symbols per \
             source symbol, of which a message takes five; with a share of 1 it spends all of it.",
            &findings(summaries),
        ],
        [bytes(summaries), against(summaries, bounds), best(bounds)],
        charts(summaries, bounds),
    )
}

fn bytes(summaries: &[Delays]) -> Table {
    let quantile = |s: &Delays, q| s.delays.cell(q);
    Table::of(
        "Bytes",
        summaries,
        &[
            ("channel", &|s| s.setup.channel.name().into()),
            ("policy", &|s| s.setup.name().into()),
            ("BLT", &|s| s.setup.burst.into()),
            ("RDT", &|s| s.setup.delay.into()),
            ("bytes", &|s| s.delays.total().into()),
            ("late", &|s| s.late_cell()),
            ("worst", &|s| Cell::Share(s.worst())),
            ("p50", &|s| quantile(s, 0.5)),
            ("p99", &|s| quantile(s, 0.99)),
            ("p99.9", &|s| quantile(s, 0.999)),
            ("max", &|s| quantile(s, 1.0)),
            ("wire/byte", &|s| Cell::Number(s.wire())),
            ("resent/byte", &|s| Cell::Number(s.resent())),
            ("repairs", &|s| Cell::Number(s.repairs())),
            ("recovered", &|s| Cell::Number(s.per_message(|counts| counts.recovered))),
            ("loss", &|s| Cell::Share(s.loss())),
        ],
    )
}

/// Each policy beside the bounds at its own number of repair symbols.
fn against(summaries: &[Delays], bounds: &Bounds) -> Table {
    let ideal = |s: &Delays, slack| of_channel(bounds, s.setup.channel)?.ideal(s.repairs(), slack);
    let alike = |s: &Delays| {
        let bound = of_channel(bounds, s.setup.channel)?;
        s.setup.burst.and_then(|_| bound.delayed(s.repairs(), s.setup.delay, SLACK))
    };
    let known = |s: &Delays| of_channel(bounds, s.setup.channel)?.clairvoyant(s.repairs(), SLACK);
    Table::of(
        "Against the bounds",
        summaries.iter().filter(|s| of_channel(bounds, s.setup.channel).is_some()),
        &[
            ("channel", &|s| s.setup.channel.name().into()),
            ("policy", &|s| s.setup.name().into()),
            ("BLT", &|s| s.setup.burst.into()),
            ("RDT", &|s| s.setup.delay.into()),
            ("repairs", &|s| Cell::Number(s.repairs())),
            ("late", &|s| s.late_cell()),
            ("ideal", &|s| ideal(s, SLACK).map(Cell::Share).into()),
            ("ratio", &|s| ratio(s.late(), ideal(s, SLACK))),
            ("same delay", &|s| alike(s).map(Cell::Share).into()),
            ("ratio of it", &|s| ratio(s.late(), alike(s))),
            ("clairvoyant", &|s| known(s).map(Cell::Share).into()),
            ("later than RDT", &|s| s.delays.cell_above(ONE_WAY + s.setup.tolerance())),
            ("ideal for RDT", &|s| ideal(s, s.setup.tolerance()).map(Cell::Share).into()),
            ("ratio for RDT", &|s| ratio(s.intolerable(), ideal(s, s.setup.tolerance()))),
        ],
    )
}

/// The schedules that reach the ideal.
fn best(bounds: &Bounds) -> Table {
    let rows = bounds.iter().flat_map(|(channel, bound)| {
        bound.schedules(SLACK).map(|(repairs, late, schedule)| {
            (*channel, repairs, late, schedule, bound.clairvoyant(repairs, SLACK))
        })
    });
    type Best = (Channel, f64, f64, Schedule, Option<f64>);
    let rows: Vec<Best> = rows.collect();
    Table::of(
        "The bounds",
        rows,
        &[
            ("channel", &|(channel, ..)| channel.name().into()),
            ("repairs", &|(_, repairs, ..)| Cell::Number(*repairs)),
            ("ideal", &|(_, _, late, ..)| Cell::Share(*late)),
            ("first after", &|(_, _, _, schedule, _)| schedule.delay.into()),
            ("spacing", &|(_, _, _, schedule, _)| schedule.spacing.into()),
            ("clairvoyant", &|(.., known)| known.map(Cell::Share).into()),
        ],
    )
}

/// Sums up the late bytes.
fn findings(summaries: &[Delays]) -> String {
    let sentence = |channel: Channel| {
        let of_channel = || summaries.iter().filter(move |s| s.setup.channel == channel);
        let without = of_channel().find(|s| s.setup == Steady::bare(channel))?;
        let name = channel.name();
        if of_channel().all(|s| s.late() == 0.0) {
            return Some(format!("On `{name}` no byte is late."));
        }
        let shown = |s: &&Delays| {
            let burst = s.setup.burst.is_none_or(|burst| burst == 3);
            burst && s.setup.name() != "tail" && s.setup.policy.is_some()
        };
        let with = of_channel().filter(shown).map(|s| {
            let share = Cell::Share(s.late());
            let Steady { burst, delay, .. } = s.setup;
            let name = s.setup.name();
            match burst {
                Some(burst) => {
                    format!("{share} with `{name}`, BLT {burst} and RDT {} ms", delay.as_millis())
                }
                None => format!("{share} with `{name}`"),
            }
        });
        let with: Vec<String> = with.collect();
        let without = Cell::Share(without.late());
        Some(format!(
            "On `{name}` {without} of bytes are late without repair symbols, {}.",
            with.join(", ")
        ))
    };
    CHANNELS.into_iter().filter_map(sentence).collect::<Vec<_>>().join(" ")
}

/// For each channel with loss, the tails of the delays, and the late bytes beside the bounds.
fn charts(summaries: &[Delays], bounds: &Bounds) -> Vec<Chart> {
    let mut charts = Vec::new();
    for channel in CHANNELS.into_iter().filter(|channel| *channel != Channel::Lossless) {
        charts.extend(KINDS.map(|kind| tails(summaries, channel, kind)));
        charts.extend(of_channel(bounds, channel).map(|bound| late(summaries, channel, bound)));
    }
    charts
}

/// The tail of the delays on one channel, which repair symbols are meant to shorten: a panel for each
/// burst loss tolerance.
fn tails(summaries: &[Delays], channel: Channel, kind: &str) -> Chart {
    let panel = |burst: u32| {
        let of_panel = summaries.iter().filter(|s| {
            let of_kind = s.setup.name() == kind && s.setup.burst == Some(burst);
            s.setup.channel == channel && (of_kind || s.setup.policy.is_none())
        });
        let series = of_panel.map(|s| {
            let label = match s.setup.policy {
                None => "no repair symbols".to_owned(),
                Some(_) => format!("RDT {} ms", s.setup.delay.as_millis()),
            };
            Series::line(label, s.delays.tail(SMALLEST_SHARE))
        });
        Panel { title: format!("BLT {burst}"), series: series.collect() }
    };
    panels_of(
        format!("{}-{}", channel.name(), kind.replace(':', "-")),
        format!("Delay of the bytes of a steady stream, channel {}, {kind}", channel.name()),
        [Axis::linear("delay of a byte in ms"), Axis::log("share of bytes that take longer")],
        BURSTS.map(panel),
    )
}

/// The late bytes of all policies over the number of repair symbols, and the bounds.
fn late(summaries: &[Delays], channel: Channel, bound: &Bound) -> Chart {
    let points = |kind: &str| {
        let of_kind =
            summaries.iter().filter(|s| s.setup.channel == channel && s.setup.kind() == kind);
        let points = of_kind.map(|s| (s.repairs(), s.late())).collect();
        Series::points(kind.to_owned(), points)
    };
    let schedules = || bound.schedules(SLACK);
    let known = |repairs| Some((repairs, bound.clairvoyant(repairs, SLACK)?));
    let bounds = [
        Series::line("ideal", schedules().map(|(repairs, late, _)| (repairs, late)).collect()),
        Series::line("clairvoyant", schedules().filter_map(|(r, ..)| known(r)).collect()),
    ];
    let policies = ["none"].into_iter().chain(KINDS).chain([AUTO]).map(points);
    chart_of(
        format!("{}-late", channel.name()),
        format!("Late bytes of a steady stream, channel {}", channel.name()),
        [Axis::linear("repair symbols per message"), Axis::log("share of bytes that are late")],
        bounds.into_iter().chain(policies),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ideal::{Plan, late_bytes};

    fn summary(setup: Steady, late: u64) -> Delays {
        let delays = [(ONE_WAY, 10_000 - late), (ONE_WAY + 10 * SLACK, late)];
        let (delays, counts) = (delays.to_vec(), StreamCounts::default());
        let batch = Batch { delays, counts, began: Duration::ZERO, messages: 2 };
        Delays::of(&Runs { setup, runs: vec![batch] })
    }

    fn repaired(channel: Channel, late: u64) -> Delays {
        summary(Steady::of(channel, "incremental", 3, Duration::from_millis(25)), late)
    }

    #[test]
    fn the_text_says_what_the_figures_do() {
        let summaries = [
            summary(Steady::bare(Channel::Lossless), 0),
            repaired(Channel::Lossless, 0),
            summary(Steady::bare(Channel::Time), 2500),
            repaired(Channel::Time, 700),
        ];
        let text = report(&summaries, &[]).text.concat();
        assert!(text.contains("On `lossless` no byte is late."), "{text}");
        let expected = "On `time-stepped` 25.0 % of bytes are late without repair symbols, \
                        7.000 % with `incremental`, BLT 3 and RDT 25 ms.";
        assert!(text.contains(expected), "{text}");
        assert!(!text.contains("doing of BBR"), "no late byte is blamed on anybody");
    }

    #[test]
    fn the_chart_shows_the_tail_from_99_to_99_99_percent() {
        // A byte in ten thousand is late.
        let report = report(&[repaired(Channel::Time, 1)], &[]);
        let chart = report.charts.iter().find(|chart| chart.name == "time-stepped-incremental");
        let chart = chart.unwrap();
        assert_eq!(chart.y.scale, sutura_analysis::figure::Scale::Log);
        let panel = chart.panels.iter().find(|panel| panel.title == "BLT 3").unwrap();
        let points = &panel.series[0].points;
        let in_the_tail = points.iter().filter(|(_, share)| (1e-4..=1e-2).contains(share));
        assert!(in_the_tail.count() > 50, "{points:?}");
        assert!(points.iter().any(|(at, share)| *at == 50.0 && *share < 2e-4), "{points:?}");
    }

    #[test]
    fn every_policy_is_a_policy() {
        for setup in setups() {
            let protection = setup.protection().unwrap();
            assert_eq!(protection.is_some(), setup.policy.is_some(), "{setup:?}");
        }
        let unknown = Steady::other(Channel::Time, "nonsense");
        assert!(matches!(unknown.protection(), Err(Error::Policy(_))));
    }

    #[test]
    fn messages_are_divided_among_connections() {
        assert_eq!(divide(80), (1, 80));
        assert_eq!(divide(2000), (1, 2000));
        assert_eq!(divide(3000), (2, 1500));
        assert_eq!(divide(MESSAGES), (40, BATCH));
    }

    #[test]
    fn the_model_sends_what_a_connection_sends() {
        let count = 60;
        let bare = Steady::bare(Channel::Lossless);
        let summaries =
            measure(Way::STREAMS, std::slice::from_ref(&bare), count, &Options::default()).unwrap();
        let model = Workload::frames(bare.channel.link().unwrap(), count, 0);
        // The bytes of a message are complete after as long as its packets take on the link.
        let last = summaries[0].delays.quantile(1.0);
        let trace = Trace { seed: 0, start: Duration::ZERO };
        let late = |slack| late_bytes(&model, trace, Plan::OpenLoop(Schedule::NONE), &[slack])[0];
        let margin = Duration::from_micros(50);
        assert!(late(last + margin - ONE_WAY) == 0 && late(last - margin - ONE_WAY) > 0);
    }
}
