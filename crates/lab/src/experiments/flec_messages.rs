//! Messages with deadlines (Michel et al. 2022, section VIII-B, Figs. 12 to 16): the frames of a video
//! conference over 8 Mbit/s with 1 % of loss each way, which are to arrive within 250 ms.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sutura_analysis::interval::Estimate;
use sutura_analysis::statistics::millis;
use sutura_proto::{Algorithm, TransportConfig};
use sutura_sim::{MessagePlan, Scenario, TimedMessage};

use super::flec_path::Path;
use crate::comparison::{Runs, Values, redundancy, seed};
use crate::report::{Axis, Cell, Chart, Report, Series, Table, chart_of, report_of};
use crate::{Error, Options, message_trace};

/// How long a message may take.
const DEADLINE: Duration = Duration::from_millis(250);
/// The rate of the path in Mbit/s.
const MBITS: f64 = 8.0;
/// The share of packets that each direction loses, in percent.
const LOSS: f64 = 1.0;
/// The delays of the path, one way, in milliseconds.
const ONE_WAY: [u64; 23] = [
    5, 10, 20, 30, 40, 50, 60, 65, 70, 75, 80, 90, 100, 110, 120, 130, 140, 150, 160, 170, 180,
    190, 200,
];
/// Connections for each delay.
const SEEDS: u64 = 5;

named! {
    /// The treatment of the messages by the transport.
    pub enum Variant {
        /// A stream for each message, without erasure coding.
        Quic = "QUIC",
        /// The same with the paper's scheduler, in which all streams take turns.
        RoundRobin = "QUIC, round robin",
        /// Repair symbols just before the deadline, where a retransmission is not in time.
        Messages = "messages",
        /// The same policy, told neither deadlines nor when the next message comes.
        NoApi = "messages, no API",
        /// Algorithm 4 as it is written.
        Literal = "messages:literal",
        /// The same, told neither deadlines nor when the next message comes, with the paper's scheduler.
        LiteralNoApi = "messages:literal, no API",
        /// Repair symbols where the policy that sets itself sees a use, by the deadlines.
        Auto = "auto",
        /// The earliest deadline first on a path without losses: no policy can be sooner.
        Ideal = "ideal",
    }
}

impl Variant {
    /// Its redundancy policy and its scheduler.
    const fn policies(self) -> (Option<&'static str>, &'static str) {
        match self {
            Self::Quic => (None, "eps"),
            Self::RoundRobin => (None, "rr"),
            Self::Messages => (Some("messages"), "deadline"),
            Self::NoApi => (Some("messages"), "eps"),
            Self::Literal => (Some("messages:literal"), "deadline"),
            Self::LiteralNoApi => (Some("messages:literal"), "rr"),
            Self::Auto => (Some("auto"), "deadline"),
            Self::Ideal => (None, "deadline"),
        }
    }

    fn transport(self) -> Result<TransportConfig, Error> {
        let (policy, scheduler) = self.policies();
        Ok(TransportConfig::default()
            .with_congestion(Arc::new(Algorithm::BBR))
            .with_scheduler(sutura_research::schedulers().find(scheduler)?)
            .with_redundancy(redundancy(policy)?))
    }

    fn plan(self, trace: &[TimedMessage]) -> MessagePlan {
        let plan = MessagePlan::new(trace.iter().copied());
        match self {
            Self::Quic | Self::RoundRobin | Self::NoApi | Self::LiteralNoApi => plan,
            Self::Messages | Self::Literal | Self::Auto | Self::Ideal => {
                MessagePlan { deadline: Some(DEADLINE), announce: true, ..plan }
            }
        }
    }
}

/// A conference over a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conference {
    /// The treatment of the messages by the transport.
    pub variant: Variant,
    /// The delay of the path.
    pub one_way: Duration,
}

/// The outcome of one connection.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Messages {
    /// The delays of messages in milliseconds; infinite if one did not arrive.
    delays: Values,
    /// Bytes of UDP payload that the server sent.
    bytes: u64,
    /// Repair symbols that it sent.
    pub repairs: u64,
}

impl Messages {
    /// A percentile of the delays in milliseconds.
    #[must_use]
    pub fn percentile(&self, q: f64) -> f64 {
        self.delays.at(q)
    }

    /// Bytes that the server sent.
    pub(super) fn bytes(&self) -> f64 {
        self.bytes as f64
    }

    /// The share of messages that arrived within the deadline.
    #[must_use]
    pub fn on_time(&self) -> f64 {
        self.delays.share(|delay| delay <= millis(DEADLINE))
    }
}

/// The connections of a conference.
pub type Conferences = Runs<Conference, Messages>;

/// Bytes that were sent, for each byte that QUIC sent over the same path.
#[must_use]
pub fn bytes_by_quic(summaries: &[Conferences], of: &Conferences) -> Estimate {
    let quic = Conference { variant: Variant::Quic, ..of.setup };
    let quic = summaries.iter().find(|summary| summary.setup == quic).unwrap_or(of);
    of.mean_ratio_to(quic, |run| run.bytes as f64)
}

/// The path of a configuration.
fn path(one_way: Duration) -> Path {
    Path::random([MBITS, millis(one_way), LOSS, LOSS])
}

/// Sends the messages over `path` once.
pub(super) fn run_once(
    variant: Variant,
    path: Path,
    trace: &[TimedMessage],
    seed: u64,
) -> Result<Messages, Error> {
    let path = if variant == Variant::Ideal { path.lossless() } else { path };
    let (up, down) = (path.link(path.loss_up, !seed)?, path.link(path.loss_down, seed)?);
    let scenario = Scenario::new(seed).link(&up, &down).transport(&variant.transport()?);
    let outcome = scenario.messages(variant.plan(trace))?;
    let delays = outcome.delays.iter().map(|delay| delay.map_or(f64::INFINITY, millis));
    Ok(Messages {
        delays: Values::of(delays),
        bytes: outcome.ends.down.sent_bytes,
        repairs: outcome.ends.server.fec.repair_symbols_sent,
    })
}

/// Sends the messages of `trace` over paths with each of these delays, in each way, with the same seeds.
///
/// # Errors
/// A simulation fails.
pub fn measure(
    delays: &[Duration],
    trace: &[TimedMessage],
    seeds: u64,
    options: &Options,
) -> Result<Vec<Conferences>, Error> {
    let of_delay = |one_way: &Duration| {
        let one_way = *one_way;
        Variant::ALL.map(|variant| Conference { variant, one_way })
    };
    let setups: Vec<Conference> = delays.iter().flat_map(of_delay).collect();
    Runs::measure(options, &setups, seeds, |setup, n| {
        run_once(setup.variant, path(setup.one_way), trace, seed(options.seed, n))
    })
}

experiment! {
    "flec-messages": "Messages with deadlines over paths of up to 200 ms, with lazy repair symbols" (Seeds),
    one in 1 takes 57 s
}

fn run(options: &Options) -> Result<Report, Error> {
    let delays = ONE_WAY.map(Duration::from_millis);
    let trace = message_trace::tixeo()?;
    Ok(report(&measure(&delays, &trace, options.seeds(SEEDS), options)?))
}

fn report(summaries: &[Conferences]) -> Report {
    let table = Table::of(
        "Messages",
        summaries,
        &[
            ("one way", &|s| s.setup.one_way.into()),
            ("variant", &|s| s.setup.variant.name().into()),
            ("p95 ms", &|s| s.mean_cell(|run| run.percentile(0.95))),
            ("p98 ms", &|s| s.mean_cell(|run| run.percentile(0.98))),
            ("p99 ms", &|s| s.mean_cell(|run| run.percentile(0.99))),
            ("worst p99", &|s| Cell::Number(s.most(|run| run.percentile(0.99)))),
            ("on time", &|s| s.mean_share_cell(Messages::on_time)),
            ("worst on time", &|s| Cell::Share(-s.most(|run| -run.on_time()))),
            ("bytes/QUIC", &|s| Cell::NumberWithin(bytes_by_quic(summaries, s))),
            ("repairs", &|s| s.mean_cell(|run| run.repairs as f64)),
        ],
    );
    let text = [
        "Michel et al. 2022 (FlEC), section VIII-B: the first 2416 frames of a video conference, \
         86.6 s, each a message on a stream of its own that is to arrive within 250 ms. 8 Mbit/s, \
         1 % of packets lost at random each way, BBR.",
        "A delay is that of a whole message, from when the application made it until the other \
         one has read it. `QUIC` sends without erasure coding, with the default scheduler; the \
         paper's has all streams take turns, `round robin`. \
         `messages` knows the deadlines and when the next message comes, and sends the earliest \
         deadline first; with `no API` it knows neither, and has the default scheduler. \
         `messages:literal` is the paper's Algorithm 4 to the letter: it mends losses by repair \
         symbols, and does not leave to retransmissions what these bring in time; with `no API` \
         it has the paper's scheduler. `auto` knows as much as `messages`, \
         and nothing of the path when a connection begins. `ideal` is the path without losses \
         and the earliest deadline first: no policy can be sooner. Percentiles are means over \
         the connections, `worst` is of one connection. Bytes are UDP payload from the server \
         for each that QUIC sent.",
        &findings(summaries),
    ];
    let percentile = |name: &str, q| {
        let label = format!("{}th percentile of the delay in ms", &name[1..]);
        chart(summaries, name, &label, |s| s.mean(|run| run.percentile(q)))
    };
    let charts = [
        percentile("p95", 0.95),
        percentile("p98", 0.98),
        percentile("p99", 0.99),
        chart(summaries, "on-time", "share of messages in time", |s| s.mean(Messages::on_time)),
        chart(summaries, "bytes", "bytes for each that QUIC sent", |s| {
            bytes_by_quic(summaries, s).value
        }),
    ];
    report_of("Messages with deadlines", &text, [table], charts)
}

/// Sums up each variant.
fn findings(summaries: &[Conferences]) -> String {
    let sentence = |variant: Variant| {
        let of_variant = || summaries.iter().filter(move |s| s.setup.variant == variant);
        let late = |s: &&Conferences| s.most(|run| run.percentile(0.99)) > millis(DEADLINE);
        let failed = of_variant().find(late).map_or_else(
            || "is within the deadline on every connection".to_owned(),
            |s| format!("misses the deadline from {} ms on", s.setup.one_way.as_millis()),
        );
        let coded = of_variant().find(|s| s.most(|run| run.repairs as f64) > 0.0);
        let coded = coded.map_or_else(
            || "no repair symbol is sent".to_owned(),
            |s| format!("repair symbols are sent from {} ms on", s.setup.one_way.as_millis()),
        );
        let bytes = of_variant().map(|s| bytes_by_quic(summaries, s).value).fold(0.0, f64::max);
        format!(
            "With `{}` the 99th percentile {failed}, {coded}, and at most {bytes:.2} times as many \
             bytes as with QUIC.",
            variant.name()
        )
    };
    let measured = Variant::ALL.iter().filter(|variant| **variant != Variant::Ideal);
    measured.map(|variant| sentence(*variant)).collect::<Vec<_>>().join(" ")
}

fn chart(
    summaries: &[Conferences],
    name: &str,
    label: &str,
    value: impl Fn(&Conferences) -> f64,
) -> Chart {
    let series = Variant::ALL.map(|variant| {
        let of_variant = summaries.iter().filter(|s| s.setup.variant == variant);
        let points = of_variant.map(|s| (millis(s.setup.one_way), value(s)));
        Series::line(variant.name(), points.collect())
    });
    let axes = [Axis::linear("delay of the path, one way, in ms"), Axis::linear(label)];
    chart_of(name, format!("Messages with deadlines: {label}"), axes, series)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(
        variant: Variant,
        one_way: u64,
        late: usize,
        repairs: u64,
        bytes: u64,
    ) -> Conferences {
        let one_way = Duration::from_millis(one_way);
        let delays = [vec![millis(one_way); 1000 - late], vec![f64::INFINITY; late]].concat();
        let runs = vec![Messages { delays: Values::of(delays), bytes, repairs }];
        Conferences { setup: Conference { variant, one_way }, runs }
    }

    #[test]
    fn the_text_says_what_the_figures_do() {
        let summaries = [
            summary(Variant::Quic, 10, 0, 0, 100),
            summary(Variant::Quic, 80, 20, 0, 100),
            summary(Variant::Messages, 10, 9, 0, 100),
            summary(Variant::Messages, 80, 9, 3, 125),
        ];
        let text = findings(&summaries);
        for expected in [
            "With `QUIC` the 99th percentile misses the deadline from 80 ms on, no repair symbol",
            "With `messages` the 99th percentile is within the deadline on every connection",
            "repair symbols are sent from 80 ms on, and at most 1.25 times",
        ] {
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn the_queue_is_that_of_the_paper() {
        let path = path(Duration::from_millis(200));
        let up = path.link(path.loss_up, 1).unwrap();
        assert!(up.to_string().contains("524"), "{up}");
    }
}
