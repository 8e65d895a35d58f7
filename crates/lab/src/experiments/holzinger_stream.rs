//! Delay of a steady stream (Holzinger et al. 2025, section V-B4 and Fig. 5): 5 kB at 60 Hz, with no
//! protection, with repair symbols at once, and with repair symbols 25 ms later.

use std::time::Duration;

use sutura_sim::{Ends, Scenario, StreamPlan};

use super::paper_path::{Channel, ONE_WAY, protection, seed, transport};
use crate::{Cell, Distribution, Error, Options, Report, Series, Table, parallel};

/// Messages of each configuration: 100 MB, as in the paper.
const MESSAGES: u64 = 20_000;
/// Messages on one connection that count.
const BATCH: u64 = 2000;
/// Messages before those: two seconds, in which the congestion window opens.
const WARM_UP: u64 = 120;
/// A byte is late if it takes longer than the path by this: a message takes 4 ms to send.
const SLACK: Duration = Duration::from_millis(10);

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

/// What came of one configuration.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The configuration.
    pub setup: Setup,
    /// Delays of all bytes.
    pub delays: Distribution,
    /// Share of bytes that took 10 ms or more longer than the path.
    pub late: f64,
    /// Bytes from the server on the wire per byte streamed.
    pub wire_per_byte: f64,
    /// Bytes of stream data sent again per byte streamed.
    pub resent: f64,
    /// Repair symbols per message.
    pub repair_symbols: f64,
    /// Source symbols recovered per message.
    pub recovered: f64,
    /// Share of the server's datagrams that the link lost.
    pub loss: f64,
}

struct Batch {
    delays: Vec<(Duration, u64)>,
    ends: Ends,
    messages: u64,
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
    let batches = count.div_ceil(BATCH);
    let jobs: Vec<(Setup, u64)> =
        setups.iter().flat_map(|setup| (0..batches).map(|n| (*setup, n))).collect();
    let outcomes = parallel::map(options, &jobs, |&(setup, n)| {
        let size = BATCH.min(count - n * BATCH);
        batch(setup, size, seed(options.seed, 1 + n))
    })?;
    let of_setup = |setup: &Setup| -> Vec<&Batch> {
        let own = jobs.iter().zip(&outcomes).filter(|((s, _), _)| s == setup);
        own.map(|(_, outcome)| outcome).collect()
    };
    Ok(setups.iter().map(|s| summarize(*s, &of_setup(s))).collect())
}

fn summarize(setup: Setup, batches: &[&Batch]) -> Summary {
    let delays = Distribution::weighted(batches.iter().flat_map(|b| b.delays.iter().copied()));
    let sum = |value: &dyn Fn(&Ends) -> u64| -> f64 {
        batches.iter().map(|b| value(&b.ends)).sum::<u64>() as f64
    };
    let messages = batches.iter().map(|b| b.messages).sum::<u64>().max(1) as f64;
    let bytes = messages * StreamPlan::frames(0).size as f64;
    Summary {
        setup,
        late: delays.share_above(ONE_WAY + SLACK),
        delays,
        wire_per_byte: sum(&|e| e.down.sent_bytes) / bytes,
        resent: sum(&|e| e.server.stream_bytes_retransmitted) / bytes,
        repair_symbols: sum(&|e| e.server.fec.repair_symbols_sent) / messages,
        recovered: sum(&|e| e.client.fec.recovered) / messages,
        loss: sum(&|e| e.down.lost + e.down.overflow) / sum(&|e| e.down.sent).max(1.0),
    }
}

/// The experiment as in the paper, with both readings of its channel, and on the time-stepped one.
///
/// # Errors
/// A simulation fails.
pub fn run(options: &Options) -> Result<Report, Error> {
    let mut setups = Vec::new();
    let channels = [Channel::Lossless, Channel::Fractions, Channel::Percentages, Channel::Time];
    for channel in channels {
        let kinds = [(0, 0), (3, 0), (3, 25)];
        setups.extend(kinds.map(|(burst, delay)| Setup {
            channel,
            burst,
            delay: Duration::from_millis(delay),
        }));
    }
    let summaries = measure(&setups, options.reduced(MESSAGES), options)?;
    Ok(report(&summaries))
}

fn report(summaries: &[Summary]) -> Report {
    let columns = [
        "channel",
        "BLT",
        "RDT",
        "bytes",
        "on time",
        "late",
        "p50",
        "p99",
        "p99.9",
        "max",
        "wire/byte",
        "resent/byte",
        "repairs",
        "recovered",
        "loss",
    ];
    let row = |s: &Summary| -> Vec<Cell> {
        vec![
            s.setup.channel.name().into(),
            Cell::Count(s.setup.burst.into()),
            s.setup.delay.into(),
            Cell::Count(s.delays.total()),
            Cell::Share(1.0 - s.late),
            Cell::Share(s.late),
            s.delays.quantile(0.5).into(),
            s.delays.quantile(0.99).into(),
            s.delays.quantile(0.999).into(),
            s.delays.quantile(1.0).into(),
            Cell::Number(s.wire_per_byte),
            Cell::Number(s.resent),
            Cell::Number(s.repair_symbols),
            Cell::Number(s.recovered),
            Cell::Share(s.loss),
        ]
    };
    let series = |s: &Summary| {
        let (x, y) = s.delays.curve();
        Series {
            label: format!(
                "{}, BLT {}, RDT {} ms",
                s.setup.channel.name(),
                s.setup.burst,
                s.setup.delay.as_millis()
            ),
            x_label: "delay of a byte in ms".to_owned(),
            y_label: "share of bytes".to_owned(),
            x,
            y,
        }
    };
    Report {
        name: "holzinger-stream".to_owned(),
        title: "Delay of the bytes of a steady stream with repair symbols".to_owned(),
        text: vec![
            "Holzinger et al. 2025, V-B4: messages of 5 kB at 60 Hz over 10 Mbit/s, 50 ms one way, \
             BBR, loss in both directions. The published numbers of the loss model (0.005, 0.25, \
             0.95, 0.005, stepped by all packets and by 10 Mbit/s of cross traffic) are read as \
             fractions and as percentages; channel `time-stepped` has the same loss in each state, \
             which lasts 240 ms (good) and 4.8 ms (bad) on average. What is late without loss, too, \
             is the doing of BBR, which sends less for a moment to measure the round-trip time."
                .to_owned(),
            "BLT is the number of repair symbols behind each message, RDT how long they wait. A \
             byte is on time if it takes no more than the path and 10 ms from when its message was \
             made until the application read it in order. Bytes on the wire are UDP payload from \
             the server."
                .to_owned(),
        ],
        tables: vec![Table {
            caption: "Bytes".to_owned(),
            columns: columns.map(str::to_owned).to_vec(),
            rows: summaries.iter().map(row).collect(),
        }],
        series: summaries.iter().map(series).collect(),
        plots: Vec::new(),
        pictures: Vec::new(),
    }
}
