//! Delay of a steady stream (Holzinger et al. 2025, section V-B4 and Fig. 5): 5 kB at 60 Hz, with no
//! protection, with repair symbols at once, and with repair symbols 25 ms later.

use std::time::Duration;

use sutura_analysis::figure::{Axis, Chart, Panel, Series};
use sutura_analysis::report::Report;
use sutura_analysis::statistics::Distribution;
use sutura_analysis::table::{Cell, Table};
use sutura_sim::{Ends, Scenario, StreamPlan};

use super::Experiment;
use super::paper_path::{Channel, ONE_WAY, protection, seed, transport};
use crate::{Error, Options, parallel};

/// The loss models.
const CHANNELS: [Channel; 4] =
    [Channel::Lossless, Channel::Fractions, Channel::Percentages, Channel::Time];
/// The number of messages of each configuration: 100 MB, as in the paper.
const MESSAGES: u64 = 20_000;
/// The number of messages on one connection that count.
const BATCH: u64 = 2000;
/// Messages before those: two seconds, in which the congestion window opens.
const WARM_UP: u64 = 120;
/// A byte is late if it takes this much longer than the path. A message takes 4 ms to send.
const SLACK: Duration = Duration::from_millis(10);
/// The end of the tail that charts show.
const SMALLEST_SHARE: f64 = 1e-5;

/// One configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The loss of both directions.
    pub channel: Channel,
    /// Burst loss tolerance: repair symbols behind each message.
    pub burst: u32,
    /// Repair delay tolerance: how long after it.
    pub delay: Duration,
}

/// The outcome of one configuration.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The configuration.
    pub setup: Setup,
    /// Delays of all bytes.
    pub delays: Distribution,
    /// One for each connection.
    ends: Vec<Ends>,
    /// The largest share of late bytes of a connection.
    worst: f64,
    messages: u64,
}

impl Summary {
    fn of(setup: Setup, batches: &[Batch]) -> Self {
        Self {
            setup,
            delays: Distribution::weighted(batches.iter().flat_map(|b| b.delays.iter().copied())),
            ends: batches.iter().map(|batch| batch.ends).collect(),
            worst: batches.iter().map(Batch::late).fold(0.0, f64::max),
            messages: batches.iter().map(|batch| batch.messages).sum(),
        }
    }

    /// The share of bytes that took 10 ms or more longer than the path.
    #[must_use]
    pub fn late(&self) -> f64 {
        self.delays.share_above(ONE_WAY + SLACK)
    }

    /// The same of the connection with the most of them.
    #[must_use]
    pub fn worst(&self) -> f64 {
        self.worst
    }

    /// Bytes of stream data sent again per byte streamed.
    #[must_use]
    pub fn resent(&self) -> f64 {
        self.per_byte(|e| e.server.stream_bytes_retransmitted)
    }

    fn per_byte(&self, value: impl Fn(&Ends) -> u64) -> f64 {
        let bytes = self.messages.max(1) as f64 * StreamPlan::frames(0).size as f64;
        self.sum(value) / bytes
    }

    fn per_message(&self, value: impl Fn(&Ends) -> u64) -> f64 {
        self.sum(value) / self.messages.max(1) as f64
    }

    fn sum(&self, value: impl Fn(&Ends) -> u64) -> f64 {
        self.ends.iter().map(value).sum::<u64>() as f64
    }

    /// The share of the server's datagrams that the link lost.
    fn loss(&self) -> f64 {
        self.sum(|e| e.down.lost + e.down.overflow) / self.sum(|e| e.down.sent).max(1.0)
    }
}

struct Batch {
    delays: Vec<(Duration, u64)>,
    ends: Ends,
    messages: u64,
}

impl Batch {
    fn late(&self) -> f64 {
        Distribution::weighted(self.delays.iter().copied()).share_above(ONE_WAY + SLACK)
    }
}

fn batch(setup: Setup, count: u64, seed: u64) -> Result<Batch, Error> {
    let path = setup.channel.link()?;
    let plan = StreamPlan {
        protection: protection(setup.burst, setup.delay, true),
        ..StreamPlan::frames(WARM_UP + count)
    };
    let mut skip = WARM_UP * plan.size as u64;
    let outcome = Scenario::new(seed).link(&path, &path).transport(&transport()).stream(plan)?;
    let mut delays = Vec::new();
    for delay in &outcome.delays {
        let counted = delay.bytes.saturating_sub(skip);
        skip -= delay.bytes - counted;
        if counted > 0 {
            delays.push((delay.delay, counted));
        }
    }
    Ok(Batch { delays, ends: outcome.ends, messages: WARM_UP + count })
}

/// Streams `count` messages for each of `setups`, which all get the same seeds.
///
/// # Errors
/// A simulation fails.
pub fn measure(setups: &[Setup], count: u64, options: &Options) -> Result<Vec<Summary>, Error> {
    let batches = parallel::repeat(options, setups, count.div_ceil(BATCH), |setup, n| {
        batch(*setup, BATCH.min(count - n * BATCH), seed(options.seed, 1 + n))
    })?;
    Ok(setups.iter().zip(&batches).map(|(setup, batches)| Summary::of(*setup, batches)).collect())
}

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "holzinger-stream",
    about: "Delay of the bytes of a steady stream over a path with bursts of loss",
    run,
};

/// The experiment as in the paper, with both readings of its channel, and on the time-stepped one.
fn run(options: &Options) -> Result<Report, Error> {
    let mut setups = Vec::new();
    for channel in CHANNELS {
        let kinds = [(0, 0), (3, 0), (3, 25)];
        setups.extend(kinds.map(|(burst, delay)| Setup {
            channel,
            burst,
            delay: Duration::from_millis(delay),
        }));
    }
    let messages = options.seeds.map_or(options.reduced(MESSAGES), |seeds| seeds * BATCH);
    let summaries = measure(&setups, messages, options)?;
    Ok(report(&summaries))
}

fn report(summaries: &[Summary]) -> Report {
    let quantile = |s: &Summary, q| s.delays.quantile(q).into();
    let bytes = Table::of(
        "Bytes",
        summaries,
        &[
            ("channel", &|s| s.setup.channel.name().into()),
            ("BLT", &|s| s.setup.burst.into()),
            ("RDT", &|s| s.setup.delay.into()),
            ("bytes", &|s| s.delays.total().into()),
            ("on time", &|s| Cell::Share(1.0 - s.late())),
            ("late", &|s| Cell::Share(s.late())),
            ("worst", &|s| Cell::Share(s.worst())),
            ("p50", &|s| quantile(s, 0.5)),
            ("p99", &|s| quantile(s, 0.99)),
            ("p99.9", &|s| quantile(s, 0.999)),
            ("max", &|s| quantile(s, 1.0)),
            ("wire/byte", &|s| Cell::Number(s.per_byte(|e| e.down.sent_bytes))),
            ("resent/byte", &|s| Cell::Number(s.resent())),
            ("repairs", &|s| Cell::Number(s.per_message(|e| e.server.fec.repair_symbols_sent))),
            ("recovered", &|s| Cell::Number(s.per_message(|e| e.client.fec.recovered))),
            ("loss", &|s| Cell::Share(s.loss())),
        ],
    );
    Report {
        title: "Delay of the bytes of a steady stream with repair symbols".to_owned(),
        text: vec![
            "Holzinger et al. 2025, V-B4: messages of 5 kB at 60 Hz over 10 Mbit/s, 50 ms one way, \
             BBR, loss in both directions. The published numbers of the loss model (0.005, 0.25, \
             0.95, 0.005, stepped by all packets and by 10 Mbit/s of cross traffic) are read as \
             fractions and as percentages; channel `time-stepped` has the same loss in each state, \
             which lasts 240 ms (good) and 4.8 ms (bad) on average."
                .to_owned(),
            "BLT is the number of repair symbols behind each message, RDT how long they wait. A \
             byte is on time if it takes no more than the path and 10 ms from when its message was \
             made until the application read it in order; `worst` is the share of late bytes of the \
             worst of all connections, of which `--seeds` says how many. Bytes on the wire are UDP \
             payload from the server."
                .to_owned(),
            findings(summaries),
        ],
        tables: vec![bytes],
        charts: CHANNELS.map(|channel| chart(summaries, channel)).to_vec(),
        ..Report::default()
    }
}

/// Sums up the late bytes.
fn findings(summaries: &[Summary]) -> String {
    let of_channel = |channel| summaries.iter().filter(move |s| s.setup.channel == channel);
    let sentence = |channel: Channel| {
        let without = of_channel(channel).find(|s| s.setup.burst == 0)?;
        let name = channel.name();
        if without.late() == 0.0 && of_channel(channel).all(|s| s.late() == 0.0) {
            return Some(format!("On `{name}` no byte is late."));
        }
        let with = of_channel(channel).filter(|s| s.setup.burst > 0).map(|s| {
            let Setup { burst, delay, .. } = s.setup;
            format!("{} with BLT {burst} and RDT {} ms", Cell::Share(s.late()), delay.as_millis())
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

/// The tail of the delays on one channel, which repair symbols are meant to shorten.
fn chart(summaries: &[Summary], channel: Channel) -> Chart {
    let of_channel = summaries.iter().filter(|s| s.setup.channel == channel);
    let series = of_channel.map(|s| {
        let Setup { burst, delay, .. } = s.setup;
        let label = match burst {
            0 => "no repair symbols".to_owned(),
            _ => format!("BLT {burst}, RDT {} ms", delay.as_millis()),
        };
        Series::line(label, s.delays.tail(SMALLEST_SHARE))
    });
    Chart {
        name: channel.name().to_owned(),
        title: format!("Delay of the bytes of a steady stream, channel {}", channel.name()),
        x: Axis::linear("delay of a byte in ms"),
        y: Axis::log("share of bytes that take longer"),
        baseline: None,
        panels: vec![Panel::of(series)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(channel: Channel, burst: u32, late: u64) -> Summary {
        let delay = Duration::from_millis(25);
        let delays = [(ONE_WAY, 10_000 - late), (ONE_WAY + 10 * SLACK, late)];
        let batch = Batch { delays: delays.to_vec(), ends: Ends::default(), messages: 2 };
        Summary::of(Setup { channel, burst, delay }, &[batch])
    }

    #[test]
    fn the_text_says_what_the_figures_do() {
        let summaries = [
            summary(Channel::Lossless, 0, 0),
            summary(Channel::Lossless, 3, 0),
            summary(Channel::Time, 0, 2500),
            summary(Channel::Time, 3, 700),
        ];
        let text = report(&summaries).text.concat();
        assert!(text.contains("On `lossless` no byte is late."), "{text}");
        let expected = "On `time-stepped` 25.0 % of bytes are late without repair symbols, \
                        7.000 % with BLT 3 and RDT 25 ms.";
        assert!(text.contains(expected), "{text}");
        assert!(!text.contains("doing of BBR"), "no late byte is blamed on anybody");
    }

    #[test]
    fn the_chart_shows_the_tail_from_99_to_99_99_percent() {
        // One byte in ten thousand is late.
        let report = report(&[summary(Channel::Time, 3, 1)]);
        let chart = report.charts.iter().find(|chart| chart.name == "time-stepped").unwrap();
        assert_eq!(chart.y.scale, sutura_analysis::figure::Scale::Log);
        let points = &chart.panels[0].series[0].points;
        let in_the_tail = points.iter().filter(|(_, share)| (1e-4..=1e-2).contains(share));
        assert!(in_the_tail.count() > 50, "{points:?}");
        assert!(points.iter().any(|(at, share)| *at == 50.0 && *share < 2e-4), "{points:?}");
    }
}
