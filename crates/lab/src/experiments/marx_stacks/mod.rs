//! How ten stacks multiplex ten files, and what loss holds up (Marx 2020, sections 2.3 and 3.3,
//! Fig. 1 and 3).

mod download;
mod tables;

pub use download::{Channel, Files, Trace, download, server, stack};

use std::sync::Arc;

use sutura_proto::TransportConfig;
use sutura_research::marx::{fifo, rr};
use sutura_research::stacks::{Preset, resend_order};

use super::paper_path::seed;
use crate::charts::Picture;
use crate::multiplexing::graph;
use crate::{Error, Options, Report, metrics, parallel};

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

/// What came of one configuration.
#[derive(Clone, Debug, Default)]
struct Summary {
    /// Downloads in which anything was lost.
    lossy: usize,
    /// Of those, the most that QUIC held back in relation to the most that TCP would have, sorted.
    ratios: Vec<f64>,
    /// The medians of the most bytes that were handed over at once.
    max_quic: f64,
    max_tcp: f64,
    /// Shares of bytes that waited, on average.
    waited_quic: f64,
    waited_tcp: f64,
    /// Frames sent again in a row, on average.
    retransmitted_run: f64,
    /// Packets with several streams, on average.
    mixed: f64,
    /// Milliseconds until a file was complete, on average.
    completion: f64,
}

/// What is kept of one download.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// `None` if nothing was lost.
    ratio: Option<f64>,
    max_quic: f64,
    max_tcp: f64,
    waited_quic: f64,
    waited_tcp: f64,
    retransmitted_run: f64,
    mixed: f64,
    completion: f64,
}

impl Sample {
    fn of(trace: &Trace) -> Self {
        let (quic, tcp) = (trace.blocking.quic(), trace.blocking.tcp());
        Self {
            ratio: trace.blocking.ratio(),
            max_quic: quic.max() as f64,
            max_tcp: tcp.max() as f64,
            waited_quic: quic.waited_share(),
            waited_tcp: tcp.waited_share(),
            retransmitted_run: trace.mean_retransmitted_run(),
            mixed: trace.mixed_packets() as f64,
            completion: mean_completion(trace),
        }
    }
}

fn summarize(samples: &[Sample]) -> Summary {
    let lossy: Vec<&Sample> = samples.iter().filter(|s| s.ratio.is_some()).collect();
    let sorted = |value: &dyn Fn(&Sample) -> f64| {
        let mut values: Vec<f64> = lossy.iter().map(|s| value(s)).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let median = |value: &dyn Fn(&Sample) -> f64| metrics::quantile(&sorted(value), 0.5);
    let mean = |value: &dyn Fn(&Sample) -> f64| {
        lossy.iter().map(|s| value(s)).sum::<f64>() / lossy.len().max(1) as f64
    };
    Summary {
        lossy: lossy.len(),
        ratios: sorted(&|s| s.ratio.unwrap_or(0.0)),
        max_quic: median(&|s| s.max_quic),
        max_tcp: median(&|s| s.max_tcp),
        waited_quic: mean(&|s| s.waited_quic),
        waited_tcp: mean(&|s| s.waited_tcp),
        retransmitted_run: mean(&|s| s.retransmitted_run),
        mixed: mean(&|s| s.mixed),
        completion: mean(&|s| s.completion),
    }
}

/// Milliseconds until a file of a download was complete, on average.
fn mean_completion(trace: &Trace) -> f64 {
    let sum: f64 = trace.completion.iter().map(|time| metrics::millis(*time)).sum();
    sum / trace.completion.len().max(1) as f64
}

/// Downloads `count` times with each of `setups`, which all get the same seeds.
fn measure(setups: &[Setup], count: u64, options: &Options) -> Result<Vec<Summary>, Error> {
    let jobs: Vec<(&Setup, u64)> =
        setups.iter().flat_map(|setup| (0..count).map(move |n| (setup, n))).collect();
    let samples = parallel::map(options, &jobs, |(setup, n)| {
        let (up, down) = setup.channel.links()?;
        let trace = download(&setup.server, FILES, (&up, &down), seed(options.seed, 1 + n))?;
        Ok::<_, Error>(Sample::of(&trace))
    })?;
    let size = usize::try_from(count).unwrap_or(usize::MAX).max(1);
    Ok(samples.chunks(size).map(summarize).collect())
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

/// Seeds among which one is looked for that loses anything.
const TRIES: u64 = 20;

/// One download with each preset; where the channel loses packets, one in which some are lost.
fn single(channel: Channel, options: &Options) -> Result<Vec<Trace>, Error> {
    parallel::map(options, &presets(channel), |setup| {
        let (up, down) = channel.links()?;
        let with = |n| download(&setup.server, FILES, (&up, &down), seed(options.seed, n));
        let mut trace = with(1)?;
        for n in 2..=TRIES {
            if channel == Channel::Lossless || trace.blocking.gaps() > 0 {
                break;
            }
            trace = with(n)?;
        }
        Ok(trace)
    })
}

/// The experiment: the multiplexing graphs without and with loss, and head-of-line blocking.
///
/// # Errors
/// A simulation fails.
pub fn run(options: &Options) -> Result<Report, Error> {
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
    Ok(Report { pictures, ..tables::report(&lossless, &stacks, &others) })
}

fn graphs(channel: Channel, traces: &[Trace]) -> Vec<Picture> {
    let picture = |(preset, trace): (&Preset, &Trace)| {
        let title = format!(
            "{}, {}: {} files of {} bytes; frames in the order of arrival, black below: sent again",
            preset.name,
            channel.name(),
            FILES.count,
            FILES.bytes
        );
        let name = format!("marx-stacks-{}-{}", channel.name(), preset.name);
        Picture { name, svg: graph(&title, &trace.marks()) }
    };
    Preset::ALL.iter().zip(traces).map(picture).collect()
}
