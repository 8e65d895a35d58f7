//! How ten stacks multiplex ten files, and how many bytes losses hold back (Marx 2020, sections 2.3 and 3.3,
//! Fig. 1 and 3).

mod download;
mod files;
mod tables;

pub use download::{Channel, Files, Network, Trace, download, server, stack};

use std::sync::Arc;

use sutura_analysis::Held;
use sutura_analysis::figure::{Picture, multiplexing};
use sutura_analysis::report::Report;
use sutura_analysis::statistics::{self, millis, quantile};
use sutura_proto::TransportConfig;
use sutura_research::marx::{fifo, rr};
use sutura_research::stacks::{Preset, resend_order};

use super::Experiment;
use super::paper_path::seed;
use crate::{Error, Options, parallel};

/// As in the paper.
const FILES: Files = Files { count: 10, bytes: 1_000_000 };
/// Downloads of each configuration; the paper has ten at least.
const TRACES: u64 = 30;

/// One configuration.
#[derive(Clone, Debug)]
struct Setup {
    name: String,
    server: TransportConfig,
    channel: Channel,
}

/// The outcome of one configuration: the downloads in which anything was lost.
#[derive(Clone, Debug)]
struct Summary(Vec<Sample>);

impl Summary {
    fn sorted(&self, value: fn(&Sample) -> f64) -> Vec<f64> {
        statistics::sorted(self.0.iter().map(value))
    }

    fn median(&self, value: fn(&Sample) -> f64) -> f64 {
        quantile(&self.sorted(value), 0.5)
    }

    fn mean(&self, value: fn(&Sample) -> f64) -> f64 {
        statistics::mean(self.0.iter().map(value))
    }

    /// The most that QUIC held back in relation to the most that TCP would have, sorted.
    fn ratios(&self) -> Vec<f64> {
        self.sorted(|sample| sample.ratio.unwrap_or(0.0))
    }
}

/// The figures of one download.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// [`Blocking::ratio`](sutura_analysis::Blocking::ratio); `None` if nothing was lost.
    ratio: Option<f64>,
    /// The most bytes that were handed over at once.
    max_quic: f64,
    max_tcp: f64,
    /// Shares of bytes that waited.
    waited_quic: f64,
    waited_tcp: f64,
    /// Frames sent again in a row, on average.
    retransmitted_run: f64,
    /// Packets with several streams.
    mixed: f64,
    /// Milliseconds until a file was complete, on average.
    completion: f64,
}

impl Sample {
    fn of(trace: &Trace) -> Self {
        let blocking = &trace.blocking;
        let waited = |held: &Held| held.bytes as f64 / blocking.received.max(1) as f64;
        Self {
            ratio: blocking.ratio(),
            max_quic: blocking.quic.largest_release as f64,
            max_tcp: blocking.tcp.largest_release as f64,
            waited_quic: waited(&blocking.quic),
            waited_tcp: waited(&blocking.tcp),
            retransmitted_run: trace.mean_retransmitted_run(),
            mixed: trace.mixed_packets() as f64,
            completion: mean_completion(trace),
        }
    }
}

/// Milliseconds until a file of a download was complete, on average.
fn mean_completion(trace: &Trace) -> f64 {
    statistics::mean(trace.completion.iter().map(|time| millis(*time)))
}

/// Downloads `count` times with each of `setups`, which all get the same seeds.
fn measure(setups: &[Setup], count: u64, options: &Options) -> Result<Vec<Summary>, Error> {
    let samples = parallel::repeat(options, setups, count, |setup, n| {
        let (up, down) = setup.channel.links()?;
        let trace = download(&setup.server, FILES, (&up, &down), seed(options.seed, 1 + n))?;
        Ok::<_, Error>(Sample::of(&trace))
    })?;
    let lossy = samples.into_iter().map(|mut samples| {
        samples.retain(|sample| sample.ratio.is_some());
        Summary(samples)
    });
    Ok(lossy.collect())
}

/// The presets on a channel.
fn presets(channel: Channel) -> Vec<Setup> {
    let setup =
        |preset: &Preset| Setup { name: preset.name.to_owned(), server: stack(preset), channel };
    Preset::ALL.iter().map(setup).collect()
}

/// Every retransmission approach with turns of a packet and with one stream after the other, with one
/// stream in a packet and with several.
fn approaches(channel: Channel) -> Vec<Setup> {
    let mut setups = Vec::new();
    for (order, scheme) in [("round robin", rr::SCHEME), ("FIFO", fifo::SCHEME)] {
        for number in 1..=3 {
            for (streams, mix_streams) in [("one stream", false), ("several streams", true)] {
                setups.push(Setup {
                    name: format!("{order}, RA #{number}, {streams}"),
                    server: TransportConfig {
                        scheduler: Arc::new(scheme),
                        resend_order: resend_order(number, scheme == fifo::SCHEME),
                        mix_streams,
                        ..server()
                    },
                    channel,
                });
            }
        }
    }
    setups
}

/// How many seeds to try until one loses anything.
const TRIES: u64 = 20;

/// One download with each preset; where the channel loses packets, one in which some are lost.
fn single(channel: Channel, options: &Options) -> Result<Vec<Trace>, Error> {
    parallel::map(options, &presets(channel), |setup| {
        let (up, down) = channel.links()?;
        let with = |n| download(&setup.server, FILES, (&up, &down), seed(options.seed, n));
        let mut trace = with(1)?;
        for n in 2..=TRIES {
            if channel == Channel::Lossless || trace.blocking.gaps > 0 {
                break;
            }
            trace = with(n)?;
        }
        Ok(trace)
    })
}

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "marx-stacks",
    about: "How ten stacks multiplex ten files of 1 MB, and what loss holds up",
    run,
};

/// The experiment: the multiplexing graphs without and with loss, and head-of-line blocking.
fn run(options: &Options) -> Result<Report, Error> {
    let lossless = single(Channel::Lossless, options)?;
    let mut pictures = graphs(Channel::Lossless, &lossless);
    pictures.extend(graphs(Channel::Bursts, &single(Channel::Bursts, options)?));
    let count = options.seeds(TRACES);
    let lossy = [Channel::Random, Channel::Bursts];
    let stacks: Vec<Setup> = lossy.into_iter().flat_map(presets).collect();
    let blocked = measure(&stacks, count, options)?;
    let others = approaches(Channel::Bursts);
    let compared = measure(&others, count, options)?;
    let stacks: Vec<_> = stacks.iter().zip(&blocked).collect();
    let others: Vec<_> = others.iter().zip(&compared).collect();
    let mut report = tables::report(&lossless, &stacks, &others);
    report.tables.push(files::table(options)?);
    Ok(Report { pictures, ..report })
}

fn graphs(channel: Channel, traces: &[Trace]) -> Vec<Picture> {
    let picture = |(preset, trace): (&Preset, &Trace)| {
        let name = format!("{} {}", channel.name(), preset.name);
        let title = format!("{name}, {} files of {} bytes", FILES.count, FILES.bytes);
        Picture { svg: multiplexing(&trace.received, &[], &title), name }
    };
    Preset::ALL.iter().zip(traces).map(picture).collect()
}
