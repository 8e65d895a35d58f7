//! How ten stacks multiplex ten files, and how many bytes losses hold back (Marx 2020, sections 2.3 and 3.3,
//! Fig. 1 and 3).

mod download;
mod files;
mod own;
mod tables;

use own::OwnRecord;

pub use download::{FileLoss, FileTrace, Files, Network, download, server, stack};

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sutura_analysis::Held;
use sutura_analysis::figure::{Picture, multiplexing};
use sutura_analysis::statistics::{mean, millis};
use sutura_proto::TransportConfig;
use sutura_research::marx::{fifo, rr};
use sutura_research::stacks::{Preset, resend_order};

use crate::comparison::{Runs, Values, seed};
use crate::report::Report;
use crate::{Error, Options, parallel};

/// As in the paper.
const FILES: Files = Files { count: 10, bytes: 1_000_000 };
/// Downloads of each configuration; the paper has ten at least.
const TRACES: u64 = 30;

/// The server of the files, and the channel.
#[derive(Clone, Debug)]
struct Served {
    name: String,
    server: TransportConfig,
    channel: FileLoss,
}

/// The downloads of one configuration in which a packet was lost.
type ServedRuns = Runs<Served, Sample>;

impl ServedRuns {
    fn median(&self, value: fn(&Sample) -> f64) -> f64 {
        self.values(value).at(0.5)
    }

    /// The most that QUIC held back in relation to the most that TCP would have.
    fn ratios(&self) -> Values {
        self.values(|sample| sample.ratio.unwrap_or(0.0))
    }
}

/// The figures of one download.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
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
    fn of(trace: &FileTrace) -> Self {
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
fn mean_completion(trace: &FileTrace) -> f64 {
    mean(trace.completion.iter().map(|time| millis(*time)))
}

/// Downloads `count` times with each of `setups`, which all get the same seeds.
fn measure(setups: &[Served], count: u64, options: &Options) -> Result<Vec<ServedRuns>, Error> {
    let mut all = Runs::measure(options, setups, count, |setup, n| {
        let (up, down) = setup.channel.links()?;
        let trace = download(&setup.server, FILES, (&up, &down), seed(options.seed, 1 + n))?;
        Ok::<_, Error>(Sample::of(&trace))
    })?;
    for summary in &mut all {
        summary.runs.retain(|sample| sample.ratio.is_some());
    }
    Ok(all)
}

/// The presets on a channel.
fn presets(channel: FileLoss) -> Vec<Served> {
    let setup =
        |preset: &Preset| Served { name: preset.name.to_owned(), server: stack(preset), channel };
    Preset::ALL.iter().map(setup).collect()
}

/// Every retransmission approach, with turns of a packet and with one stream after the other, and with one
/// stream in a packet and with several.
fn approaches(channel: FileLoss) -> Vec<Served> {
    let mut setups = Vec::new();
    for (order, scheme) in [("round robin", rr::SCHEME), ("FIFO", fifo::SCHEME)] {
        for number in 1..=3 {
            for (streams, mix_streams) in [("one stream", false), ("several streams", true)] {
                setups.push(Served {
                    name: format!("{order}, RA #{number}, {streams}"),
                    server: server()
                        .with_scheduler(Arc::new(scheme))
                        .with_resend_order(resend_order(number, scheme == fifo::SCHEME))
                        .with_mix_streams(mix_streams),
                    channel,
                });
            }
        }
    }
    setups
}

/// How many seeds to try until a download loses packets.
const TRIES: u64 = 20;

/// A download with each preset; where the channel loses packets, a download in which some are lost.
fn single(channel: FileLoss, options: &Options) -> Result<Vec<FileTrace>, Error> {
    // Traces are large, and made anew faster than read.
    parallel::map_anew(options, &presets(channel), |setup| {
        let (up, down) = channel.links()?;
        let with = |n| download(&setup.server, FILES, (&up, &down), seed(options.seed, n));
        let mut trace = with(1)?;
        for n in 2..=TRIES {
            if channel == FileLoss::Lossless || trace.blocking.gaps > 0 {
                break;
            }
            trace = with(n)?;
        }
        Ok(trace)
    })
}

experiment! {
    "marx-stacks": "How ten stacks multiplex ten files of 1 MB, and what loss holds up" (Seeds, Recorded),
    one in 10 takes 11 s
}

/// The experiment: the multiplexing graphs without and with loss, and head-of-line blocking.
fn run(options: &Options) -> Result<Report, Error> {
    let lossless = single(FileLoss::Lossless, options)?;
    let mut pictures = graphs(FileLoss::Lossless, &lossless);
    pictures.extend(graphs(FileLoss::Bursts, &single(FileLoss::Bursts, options)?));
    let count = options.seeds(TRACES);
    let lossy = [FileLoss::Random, FileLoss::Bursts];
    let stacks: Vec<Served> = lossy.into_iter().flat_map(presets).collect();
    let blocked = measure(&stacks, count, options)?;
    let compared = measure(&approaches(FileLoss::Bursts), count, options)?;
    let recorded: Vec<OwnRecord<'_>> = options.recorded.iter().map(OwnRecord::of).collect();
    pictures.extend(recorded.iter().map(OwnRecord::picture));
    let mut report = tables::report(&lossless, &blocked, &compared, &recorded);
    report.tables.push(files::table(options)?);
    report.tables.extend(own::table(&recorded));
    Ok(Report { pictures, ..report })
}

fn graphs(channel: FileLoss, traces: &[FileTrace]) -> Vec<Picture> {
    let picture = |(preset, trace): (&Preset, &FileTrace)| {
        let name = format!("{} {}", channel.name(), preset.name);
        let title = format!("{name}, {} files of {} bytes", FILES.count, FILES.bytes);
        Picture { svg: multiplexing(&trace.received, &[], &title), name }
    };
    Preset::ALL.iter().zip(traces).map(picture).collect()
}
