//! Screen updates in total and in partial order (Eghbal and Lu 2025, section 6, Figs. 9 to 26): 300
//! updates of 100 messages of 1400 bytes each, as a stream and one after the other as the user acts.
//!
//! The paper counts losses of both directions together: each direction loses half as many.

mod controllers;
mod gaps;
mod report;
mod streams;

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sutura_analysis::interval::Estimate;
use sutura_analysis::statistics::Distribution;
use sutura_link::LinkConfig;
use sutura_proto::policy::{LossReactionFactory, ResendAtOnce};
use sutura_proto::{Algorithm, CodeSet, FecConfig, TransportConfig};
use sutura_sim::{Pace, Scenario, UpdateOrder, UpdatePlan, UpdatesOutcome};

use crate::comparison::{Runs, pooled, redundancy, seed};
use crate::report::Report;
use crate::{Error, Options, parallel};
use gaps::Gap;

/// Updates of a run.
const UPDATES: u64 = 300;
/// Messages of an update, and bytes of each.
const MESSAGES: usize = 100;
const BYTES: usize = 1400;
/// The time from the end of an update to the user's next action.
const GAP: Duration = Duration::from_millis(300);
/// Bytes of a packet: a message fits in one.
const PACKET: u16 = 1472;
/// Messages that may be on their way: more than any path here holds.
const STREAMS: u64 = 16_384;
/// The error code of streams that are stopped because repair has completed them.
const RECOVERED: u64 = 1;
/// Runs of each configuration.
const SEEDS: u64 = 5;

named! {
    /// Whether updates follow each other or wait for the user.
    pub enum Mode {
        /// As fast as the path takes them, like a video.
        Streaming = "streaming",
        /// Each when the user acts.
        Interactive = "non-streaming",
    }
}

/// A path, with the paper's figures of it for both workloads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScreenPath {
    /// Share of packets lost in both directions together, in percent.
    pub loss: f64,
    /// Round-trip time in milliseconds.
    pub rtt: u64,
    /// Megabits per second.
    pub mbit: u64,
    /// The congestion controller of both ends.
    pub congestion: Algorithm,
    /// The figures of the paper: streaming, non-streaming.
    pub figures: [&'static str; 2],
}

/// The paper's baseline.
const BASELINE: ScreenPath = ScreenPath {
    loss: 0.5,
    rtt: 100,
    mbit: 100,
    congestion: Algorithm::BBR,
    figures: ["Fig. 9", "Fig. 18"],
};
/// All paths of Table 1: one thing differs from the baseline. The last two have the controllers as the
/// paper's are, which answer every loss.
const PATHS: [ScreenPath; 11] = [
    BASELINE,
    ScreenPath { loss: 0.1, figures: ["Fig. 10", "Fig. 19"], ..BASELINE },
    ScreenPath { loss: 1.0, figures: ["Fig. 11", "Fig. 20"], ..BASELINE },
    ScreenPath { rtt: 50, figures: ["Fig. 12", "Fig. 21"], ..BASELINE },
    ScreenPath { rtt: 200, figures: ["Fig. 13", "Fig. 22"], ..BASELINE },
    ScreenPath { mbit: 10, figures: ["Fig. 14", "Fig. 23"], ..BASELINE },
    ScreenPath { mbit: 1000, figures: ["Fig. 15", "Fig. 24"], ..BASELINE },
    ScreenPath { congestion: Algorithm::CUBIC, figures: ["Fig. 16", "Fig. 25"], ..BASELINE },
    ScreenPath { loss: 0.0, figures: ["Fig. 17", "Fig. 26"], ..BASELINE },
    ScreenPath {
        congestion: Algorithm::BBR_WITHOUT_FLOOR,
        figures: ["Fig. 9 without floor", "Fig. 18 without floor"],
        ..BASELINE
    },
    ScreenPath {
        congestion: Algorithm::CUBIC_WITHOUT_FLOOR,
        figures: ["Fig. 16 without floor", "Fig. 25 without floor"],
        ..BASELINE
    },
];

impl ScreenPath {
    fn link(&self) -> Result<LinkConfig, Error> {
        let Self { loss, rtt, mbit, .. } = self;
        let loss = match loss {
            0.0 => "none".to_owned(),
            loss => format!("bern:{}", loss / 200.0),
        };
        // The paper's queue is of 9 MB.
        let delay = *rtt as f64 / 2.0;
        Ok(format!("rate={mbit}mbit delay={delay}ms queue=9mb loss={loss}").parse()?)
    }
}

/// How messages are delivered and protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheme {
    /// Its name in tables.
    pub name: &'static str,
    /// The order of delivery.
    pub order: UpdateOrder,
    /// The redundancy policy.
    pub policy: Option<&'static str>,
    /// Whether the path itself loses nothing.
    pub ideal: bool,
    /// Whether lost data is sent again at once, as in the paper, and does not wait for repair symbols.
    pub at_once: bool,
    /// Whether the client stops streams that repair has completed, as in the paper.
    pub stops: bool,
}

impl Scheme {
    const fn partial(name: &'static str, policy: &'static str) -> Self {
        Self { name, policy: Some(policy), ..Self::PLAIN }
    }

    /// With the paper's retransmission.
    const fn at_once(name: &'static str, policy: &'static str) -> Self {
        Self { at_once: true, ..Self::partial(name, policy) }
    }

    const PLAIN: Self = Self {
        name: "partial",
        order: UpdateOrder::Partial,
        policy: None,
        ideal: false,
        at_once: false,
        stops: false,
    };
}

/// All schemes. `window` is the sliding-window code over the same blocks as the block codes. Rows and columns
/// are ten by ten: an update's 100 messages.
const SCHEMES: [Scheme; 16] = [
    Scheme { name: "total", order: UpdateOrder::Total, ..Scheme::PLAIN },
    Scheme::PLAIN,
    Scheme::partial("RS 1.03", "block:rate=1.03"),
    Scheme::partial("RS 1.05", RS_5),
    Scheme::partial("RS 1.10", RS_10),
    Scheme::partial("LDPC 1.05", "block:rate=1.05,code=ldpc"),
    Scheme::partial("LDPC 1.10", "block:rate=1.1,code=ldpc"),
    Scheme::partial("2D 1.20", "block:code=2d,rows=10,columns=10"),
    Scheme::partial("window 1.03", "block:rate=1.03,code=window"),
    Scheme::partial("window 1.05", "block:rate=1.05,code=window"),
    Scheme::partial("window 1.10", "block:rate=1.1,code=window"),
    Scheme::partial("auto", "auto"),
    Scheme::at_once("RS 1.05 at once", RS_5),
    Scheme { stops: true, ..Scheme::at_once("RS 1.05 stopped", RS_5) },
    Scheme { stops: true, ..Scheme::at_once("RS 1.10 stopped", RS_10) },
    Scheme { name: "ideal", ideal: true, ..Scheme::PLAIN },
];
const RS_5: &str = "block:rate=1.05";
const RS_10: &str = "block:rate=1.1";

/// Updates over a path, and how they are delivered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Screen {
    /// The workload: which updates are sent when.
    pub workload: Mode,
    /// The path.
    pub path: ScreenPath,
    /// How it is delivered and protected.
    pub scheme: Scheme,
}

impl Screen {
    fn plan(&self, updates: usize) -> UpdatePlan {
        let pace = match self.workload {
            Mode::Streaming => Pace::Streaming,
            Mode::Interactive => Pace::Asked(GAP),
        };
        UpdatePlan { order: self.scheme.order, pace, ..UpdatePlan::equal(updates, MESSAGES, BYTES) }
    }

    fn transport(&self) -> Result<TransportConfig, Error> {
        let window = u64::from(u32::MAX) / 4;
        let defaults = TransportConfig::default();
        let loss_reaction: Arc<dyn LossReactionFactory> = match self.scheme.at_once {
            true => Arc::new(ResendAtOnce),
            false => defaults.loss_reaction.clone(),
        };
        Ok(defaults
            .with_congestion(Arc::new(self.path.congestion))
            .with_redundancy(redundancy(self.scheme.policy)?)
            .with_loss_reaction(loss_reaction)
            .with_stop_recovered(self.scheme.stops.then_some(RECOVERED))
            .with_udp_payload_size(PACKET)
            .with_max_concurrent_uni_streams(STREAMS)
            .with_receive_window(window)
            .with_max_receive_window(window)
            .with_connection_send_buffer(64 << 20)
            .with_fec(Some(FecConfig::default().with_codes(CodeSet::all()))))
    }

    /// The part of a gap between two updates that is there anyway: the user's pause and the round trip of the
    /// request.
    fn pause(&self) -> Duration {
        match self.workload {
            Mode::Streaming => Duration::ZERO,
            Mode::Interactive => GAP + Duration::from_millis(self.path.rtt),
        }
    }

    fn run(&self, updates: usize, seed: u64) -> Result<UpdatesOutcome, Error> {
        let path = match self.scheme.ideal {
            false => self.path,
            true => ScreenPath { loss: 0.0, ..self.path },
        };
        let link = path.link()?;
        let scenario = Scenario::new(seed).link(&link, &link).transport(&self.transport()?);
        Ok(scenario.updates(&self.plan(updates))?)
    }
}

/// The measurements of a run.
#[derive(Clone, Debug)]
struct Deliveries {
    /// For each message, how long it waited for other messages after it was complete.
    blocked: Vec<Duration>,
    /// For each message but the first, the time since the previous delivery.
    gaps: Vec<Gap>,
    /// For each update, the time from the user's action until all of it was delivered.
    responses: Vec<Duration>,
    /// When everything was delivered.
    complete: Duration,
    /// Bytes from the server for each byte of the messages.
    wire: f64,
    /// Bytes of messages that were sent again, as a share of all.
    again: f64,
    /// Source and repair symbols for each source symbol.
    rate: f64,
    repairs: f64,
    recovered: f64,
}

impl Deliveries {
    fn new(outcome: &UpdatesOutcome) -> Self {
        let all = &outcome.delivered;
        let of_update = |chunk: &[sutura_sim::DeliveredMessage]| {
            chunk.iter().map(|message| message.delivered).max().unwrap_or_default()
        };
        let responses = all.chunks(MESSAGES).map(of_update).zip(&outcome.asked_at);
        let began = outcome.asked_at.first().copied().unwrap_or_default();
        let last = all.last().map(|message| message.delivered).unwrap_or_default();
        Self {
            blocked: all.iter().map(|message| message.delivered - message.completed).collect(),
            gaps: gaps::between(all, began),
            responses: responses.map(|(at, asked)| at.saturating_sub(*asked)).collect(),
            complete: last.saturating_sub(began),
            wire: outcome.ends.down.sent_bytes as f64 / (all.len() * BYTES) as f64,
            again: outcome.ends.server.stream_bytes_retransmitted as f64
                / (all.len() * BYTES) as f64,
            rate: outcome.ends.server.fec.rate().unwrap_or(1.0),
            repairs: outcome.ends.server.fec.repair_symbols_sent as f64,
            recovered: outcome.ends.client.fec.recovered as f64,
        }
    }
}

/// The runs of one configuration.
#[derive(Clone, Debug)]
struct ScreenFigures {
    setup: Screen,
    measured: ScreenTimes,
}

/// Their measurements.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct ScreenTimes {
    blocked: Distribution,
    gaps: Distribution,
    /// The gaps of the first run that are drawn: seconds since the start, and milliseconds.
    drawn: Vec<(f64, f64)>,
    responses: Distribution,
    /// Means over the runs: gaps longer than a round trip, seconds until everything was delivered,
    /// bytes, bytes sent again, n/k, repair symbols, recovered symbols.
    long_gaps: Estimate,
    complete: Estimate,
    wire: Estimate,
    again: Estimate,
    rate: Estimate,
    repairs: Estimate,
    recovered: Estimate,
}

impl ScreenTimes {
    fn of(all: &Runs<Screen, Deliveries>) -> Self {
        let Runs { setup, runs } = all;
        let pause = setup.pause();
        let longest = Duration::from_millis(setup.path.rtt);
        let long = |run: &Deliveries| {
            run.gaps.iter().filter(|gap| gap.beyond(pause) > longest).count() as f64
        };
        let inner = |gap: &&Gap| setup.workload == Mode::Streaming || !gap.between_updates;
        let gaps: Vec<Vec<&Gap>> =
            runs.iter().map(|run| run.gaps.iter().filter(inner).collect()).collect();
        Self {
            blocked: all.all_times(|run| &run.blocked),
            gaps: pooled(gaps.iter().map(Vec::as_slice), |gap| (gap.length, 1)),
            drawn: runs.first().map_or_else(Vec::new, |run| gaps::drawn(&run.gaps, pause, longest)),
            responses: all.all_times(|run| &run.responses),
            long_gaps: all.mean_estimate(long),
            complete: all.mean_estimate(|run| run.complete.as_secs_f64()),
            wire: all.mean_estimate(|run| run.wire),
            again: all.mean_estimate(|run| run.again),
            rate: all.mean_estimate(|run| run.rate),
            repairs: all.mean_estimate(|run| run.repairs),
            recovered: all.mean_estimate(|run| run.recovered),
        }
    }
}

experiment! {
    "eghbal-2025": "Screen updates in total and in partial order, with each code" (Seeds),
    one in 5 takes 260 s
}

/// The updates of a run. A quick look leaves out seeds first, since the first updates of a connection are not like
/// the others.
fn updates(options: &Options) -> usize {
    let reduce = (u64::from(options.reduce) / SEEDS).max(1);
    usize::try_from((UPDATES / reduce).max(1)).unwrap_or(usize::MAX)
}

fn measure(setups: &[Screen], seeds: u64, options: &Options) -> Result<Vec<ScreenFigures>, Error> {
    let updates = updates(options);
    // A configuration at a time, since the deliveries of all runs together take gigabytes.
    let measured = parallel::map(options, setups, |setup| {
        let run =
            |n| setup.run(updates, seed(options.seed, n)).map(|outcome| Deliveries::new(&outcome));
        let runs = (0..seeds).map(run).collect::<Result<Vec<_>, Error>>()?;
        Ok::<_, Error>(ScreenTimes::of(&Runs { setup: *setup, runs }))
    })?;
    let figures = |(setup, measured): (&Screen, _)| ScreenFigures { setup: *setup, measured };
    Ok(setups.iter().zip(measured).map(figures).collect())
}

fn run(options: &Options) -> Result<Report, Error> {
    let setups = Mode::ALL.into_iter().flat_map(|workload| {
        let of_path =
            move |path: ScreenPath| SCHEMES.map(|scheme| Screen { workload, path, scheme });
        PATHS.into_iter().flat_map(of_path)
    });
    let setups: Vec<Screen> = setups.collect();
    let mut report = report::report(&measure(&setups, options.seeds(SEEDS), options)?);
    report.tables.push(streams::table(options)?);
    Ok(report)
}

#[cfg(test)]
mod tests;
