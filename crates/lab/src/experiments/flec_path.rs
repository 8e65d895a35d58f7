//! The paths and transfers of Michel et al., "FlEC: Enhancing QUIC with application-tailored
//! reliability mechanisms" (2022), sections VI and VII: one file over one link.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sutura_analysis::statistics::{mean, quantile, sorted};
use sutura_link::{LinkConfig, Loss, Trace};
use sutura_proto::{Algorithm, FecConfig, Protection, TransportConfig};
use sutura_random::Rng;
use sutura_sim::{Ends, Failure, FailureKind, Scenario, Transfer};

use super::paper_path::seed;
use crate::{Error, Options, parallel};

/// Points of a design, as in the paper.
const POINTS: u64 = 95;
/// Bytes of a packet by which the paper counts the room of queues.
const QUEUED_BYTES: f64 = 1200.0;
/// The sender's buffer: more than any window here.
const SEND_BUFFER: usize = 8 << 20;

/// A link in both directions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// Megabits per second.
    pub mbit: f64,
    /// Delay, one way, in milliseconds.
    pub one_way_ms: f64,
    /// Share of the packets that are lost on the way to the client, in percent.
    pub loss_down: f64,
    /// The same on the way to the server.
    pub loss_up: f64,
    /// How many packets in a row would be lost on average if there were no bound: the inverse of the
    /// paper's `G_r`. Never more than five are. 1 for losses that are independent.
    pub burst: f64,
}

/// The most packets in a row that are lost of those that come in bursts, as in the paper's Fig. 11.
const LONGEST: i32 = 5;
/// Packets of which bursts are drawn before they repeat: more than a transfer of 5 MB takes.
const DRAWN: usize = 1 << 14;

/// The mean length of bursts of which each packet is the last one with probability `1 / burst`, and the
/// fifth always is.
pub fn mean_burst(burst: f64) -> f64 {
    let another = 1.0 - burst.recip();
    (1.0 - another.powi(LONGEST)) / (1.0 - another)
}

/// Which packets are lost if a burst begins with this probability after each that arrived.
fn bursts(begins: f64, burst: f64, seed: u64) -> Vec<bool> {
    let (mut random, another) = (Rng::new(seed), 1.0 - burst.recip());
    let (mut lost, mut run) = (Vec::with_capacity(DRAWN), 0);
    while lost.len() < DRAWN {
        let next = match run {
            0 => random.chance(begins),
            run => run < LONGEST && random.chance(another),
        };
        run = if next { run + 1 } else { 0 };
        lost.push(next);
    }
    lost
}

impl Path {
    /// A path that loses packets one by one: its rate, its delay and its losses down and up.
    pub const fn random([mbit, one_way_ms, loss_down, loss_up]: [f64; 4]) -> Self {
        Self { mbit, one_way_ms, loss_down, loss_up, burst: 1.0 }
    }

    /// Room of the queue: one and a half bandwidth-delay products, in packets, by the paper's rule,
    /// which takes 2^20 bits for a megabit.
    fn queue(&self) -> u64 {
        let bytes = self.mbit / 8.0 * 1_048_576.0 * (2.0 * self.one_way_ms / 1000.0);
        (1.5 * bytes / QUEUED_BYTES).floor() as u64
    }

    /// One of its directions. `seed` determines the losses that come in bursts; the simulator draws the
    /// others.
    pub fn link(&self, loss_percent: f64, seed: u64) -> Result<LinkConfig, Error> {
        let loss = loss_percent / 100.0;
        let (rate, delay) = (self.mbit * 1e6, self.one_way_ms * 1000.0);
        let queue = self.queue();
        let text = format!("rate={rate:.0}bit delay={delay:.0}us queue={queue}p");
        let mut link: LinkConfig = text.parse()?;
        link.loss = match self.burst {
            _ if loss == 0.0 => Loss::None,
            burst if burst > 1.0 => {
                let begins = loss / (1.0 - loss) / mean_burst(burst);
                Trace::new(bursts(begins, burst, seed)).map_or(Loss::None, Loss::Trace)
            }
            _ => format!("bern:{loss:.6}").parse()?,
        };
        Ok(link)
    }

    /// The same path without losses.
    pub const fn lossless(self) -> Self {
        Self { loss_down: 0.0, loss_up: 0.0, ..self }
    }

    /// What the path holds in a round trip, in bytes.
    pub fn product(&self) -> f64 {
        self.mbit / 8.0 * 1e6 * (2.0 * self.one_way_ms / 1000.0)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} Mbit/s, {:.0} ms", self.mbit, self.one_way_ms)?;
        write!(f, ", {:.2} % down, {:.2} % up", self.loss_down, self.loss_up)?;
        if self.burst > 1.0 { write!(f, ", bursts of {:.1}", self.burst) } else { Ok(()) }
    }
}

/// A file to download.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Download {
    /// The path.
    pub path: Path,
    /// Bytes of the file.
    pub bytes: u64,
    /// Bytes that the client buffers; `None` for as much as it takes.
    pub buffer: Option<u64>,
}

/// The outcome of a download.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// From the request to the last byte, in seconds; infinite if the connection broke.
    pub time: f64,
    /// Bytes that the server sent, without UDP and IP headers.
    pub wire: f64,
    /// Repair symbols that it sent.
    pub repairs: f64,
    /// Source symbols that the client recovered.
    pub recovered: f64,
}

impl Outcome {
    /// The connection broke before the download was complete.
    const BROKEN: Self = Self { time: f64::INFINITY, wire: 0.0, repairs: 0.0, recovered: 0.0 };

    fn new(time: Duration, ends: &Ends) -> Self {
        Self {
            time: time.as_secs_f64(),
            wire: ends.down.sent_bytes as f64,
            repairs: ends.server.fec.repair_symbols_sent as f64,
            recovered: ends.client.fec.recovered as f64,
        }
    }
}

/// The protection by the policy `name`, or none.
///
/// # Errors
/// There is no such policy.
pub fn protection(name: Option<&str>) -> Result<Option<Protection>, Error> {
    let find = |name| sutura_research::redundancy().find(name);
    Ok(name.map(find).transpose()?.map(Protection::new))
}

impl Download {
    /// The settings of both ends. The decoder remembers as much as the client buffers, which is all
    /// that can be in flight.
    fn transport(&self, congestion: Algorithm) -> TransportConfig {
        let buffer = self.buffer.unwrap_or(1_000_000_000);
        let decoder = FecConfig::default();
        let window = u32::try_from(buffer).unwrap_or(u32::MAX).min(MOST_DECODED);
        TransportConfig {
            congestion: Arc::new(congestion),
            stream_receive_window: buffer,
            max_stream_receive_window: buffer,
            receive_window: buffer,
            max_receive_window: buffer,
            send_buffer: SEND_BUFFER,
            fec: Some(FecConfig {
                max_window_bytes: window,
                max_window_symbols: window / SYMBOL_BYTES,
                ..decoder
            }),
            ..TransportConfig::default()
        }
    }

    /// Downloads the file on a fresh connection.
    ///
    /// # Errors
    /// The simulation fails.
    pub fn run(&self, protection: Option<&Protection>, seed: u64) -> Result<Outcome, Error> {
        self.run_with(Algorithm::BBR, protection, seed)
    }

    /// Downloads the file on a fresh connection whose ends have this congestion controller.
    ///
    /// # Errors
    /// The simulation fails.
    pub fn run_with(
        &self,
        congestion: Algorithm,
        protection: Option<&Protection>,
        seed: u64,
    ) -> Result<Outcome, Error> {
        let up = self.path.link(self.path.loss_up, !seed)?;
        let down = self.path.link(self.path.loss_down, seed)?;
        let scenario = Scenario::new(seed)
            .link(&up, &down)
            .transport(&self.transport(congestion))
            .protect(protection.cloned())
            .transfer(Transfer::download(self.bytes));
        let outcome = match scenario.run() {
            Ok(outcome) => outcome,
            // A burst may outlast all probes of the idle timeout.
            Err(Failure { kind: FailureKind::ConnectionLost(_), .. }) => {
                return Ok(Outcome::BROKEN);
            }
            Err(failure) => return Err(failure.into()),
        };
        let time = outcome.transfers.first().map(|transfer| transfer.time).unwrap_or_default();
        Ok(Outcome::new(time, &outcome.ends))
    }
}

/// The most that a decoder remembers, which is also the most that a sender keeps.
const MOST_DECODED: u32 = 1536 * 1024;
/// The least that a source symbol takes when there is enough to send.
const SYMBOL_BYTES: u32 = 1024;

/// The downloads of one configuration, without protection and with each of several policies, with
/// the same seeds.
#[derive(Clone, Debug)]
pub struct Compared {
    /// What was downloaded.
    pub download: Download,
    /// Without protection.
    pub plain: Vec<Outcome>,
    /// With each policy.
    pub policies: Vec<Vec<Outcome>>,
    /// Without protection on the same path without losses.
    pub ideal: Outcome,
}

impl Compared {
    /// What is taken from the downloads with a policy, divided by the same without protection.
    pub fn ratio(&self, policy: usize, of: impl Fn(&[Outcome]) -> f64) -> f64 {
        let Some(outcomes) = self.policies.get(policy) else { return 1.0 };
        let (plain, with) = (of(&self.plain[..outcomes.len()]), of(outcomes));
        if plain > 0.0 { with / plain } else { 1.0 }
    }

    /// What is taken from the times without protection, of which `ideal` is this share at the least.
    pub fn ideal_ratio(&self, of: impl Fn(&[Outcome]) -> f64) -> f64 {
        self.ideal.time / of(&self.plain)
    }
}

/// Downloads with each of `policies` and without: the first one `seeds` times, as without, and those
/// beside it `others` times.
///
/// # Errors
/// There is no such policy, or a simulation fails.
pub fn compare(
    options: &Options,
    downloads: &[Download],
    policies: &[&str],
    [seeds, others]: [u64; 2],
) -> Result<Vec<Compared>, Error> {
    let others = others.min(seeds);
    let named = std::iter::once(None).chain(policies.iter().copied().map(Some));
    let protections = named.map(protection).collect::<Result<Vec<_>, Error>>()?;
    let runs = |index: usize| if index < 2 { seeds } else { others };
    let mut jobs = Vec::new();
    for (point, download) in (0u64..).zip(downloads) {
        for (index, protection) in protections.iter().enumerate() {
            jobs.extend((0..runs(index)).map(|run| (point, download, protection, run)));
        }
    }
    let outcomes = parallel::map(options, &jobs, |(point, download, protection, run)| {
        download.run(protection.as_ref(), seed(options.seed, point * 10_000 + run))
    })?;
    let ideals = parallel::map(options, downloads, |download| {
        Download { path: download.path.lossless(), ..*download }.run(None, options.seed)
    })?;
    let mut outcomes = outcomes.into_iter();
    let mut take = |index| {
        let count = usize::try_from(runs(index)).unwrap_or(usize::MAX);
        outcomes.by_ref().take(count).collect::<Vec<_>>()
    };
    let compared = downloads.iter().zip(ideals).map(|(download, ideal)| Compared {
        download: *download,
        plain: take(0),
        policies: (1..protections.len()).map(&mut take).collect(),
        ideal,
    });
    Ok(compared.collect())
}

/// How many points a design has.
pub fn points(options: &Options) -> usize {
    usize::try_from(options.reduced(POINTS)).unwrap_or(usize::MAX)
}

/// The median of the times.
pub fn median_time(outcomes: &[Outcome]) -> f64 {
    quantile_time(outcomes, 0.5)
}

/// The quantile `q` of the times.
pub fn quantile_time(outcomes: &[Outcome], q: f64) -> f64 {
    quantile(&sorted(outcomes.iter().map(|outcome| outcome.time)), q)
}

/// The mean of the times of the downloads that were completed.
pub fn mean_time(outcomes: &[Outcome]) -> f64 {
    mean(complete(outcomes).map(|outcome| outcome.time))
}

/// The mean of the bytes on the wire of the downloads that were completed.
pub fn mean_wire(outcomes: &[Outcome]) -> f64 {
    mean(complete(outcomes).map(|outcome| outcome.wire))
}

fn complete(outcomes: &[Outcome]) -> impl Iterator<Item = &Outcome> {
    outcomes.iter().filter(|outcome| outcome.time.is_finite())
}

/// The distribution function of `values`: at each value, the share that does not exceed it.
pub fn distribution(values: impl IntoIterator<Item = f64>) -> Vec<(f64, f64)> {
    let values = sorted(values);
    let count = values.len().max(1) as f64;
    (1..).zip(values).map(|(n, value)| (value, f64::from(n) / count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: Path = Path::random([8.0, 200.0, 2.0, 0.0]);

    #[test]
    fn queues_are_those_of_the_paper() {
        assert_eq!(PATH.queue(), 524);
        assert_eq!(Path { mbit: 25.33, one_way_ms: 17.97, ..PATH }.queue(), 149);
    }

    #[test]
    fn the_losses_of_links_have_the_share_of_the_path() {
        for (burst, error) in [(1.0, 1e-6), (3.0, 5e-3)] {
            let path = Path { burst, ..PATH };
            let down = path.link(path.loss_down, 1).unwrap();
            assert!((down.loss.mean() - 0.02).abs() < error, "{burst}: {:?}", down.loss);
            assert_eq!(path.link(path.loss_up, 1).unwrap().loss.mean(), 0.0);
        }
    }

    #[test]
    fn bursts_are_those_of_fig_11() {
        let lost = bursts(0.01, 3.0, 1);
        let runs = lost.split(|lost| !lost).map(<[bool]>::len).filter(|length| *length > 0);
        let runs: Vec<usize> = runs.collect();
        assert_eq!(runs.iter().max(), Some(&5));
        let mean = runs.iter().sum::<usize>() as f64 / runs.len() as f64;
        assert!((mean - mean_burst(3.0)).abs() < 0.35, "{mean}");
        assert!((mean_burst(3.0) - 2.605).abs() < 1e-3);
    }

    #[test]
    fn a_protected_download_beside_one_without() {
        let download = Download { path: PATH, bytes: 40_000, buffer: None };
        let compared = compare(&Options::default(), &[download], &["bulk", "sr-arq"], [4, 2]);
        let compared = compared.unwrap();
        let counts: Vec<_> = compared[0].policies.iter().map(Vec::len).collect();
        assert_eq!((compared[0].plain.len(), counts), (4, vec![4, 2]));
        assert!(compared[0].policies[0].iter().all(|outcome| outcome.repairs > 0.0));
        assert!(compared[0].ratio(0, mean_wire) > 1.0);
        let ideal = compared[0].ideal_ratio(median_time);
        assert!(ideal > 0.0 && ideal <= compared[0].ratio(0, median_time), "{ideal}");
    }

    #[test]
    fn a_distribution_ends_at_one() {
        assert_eq!(distribution([2.0, 1.0]), [(1.0, 0.5), (2.0, 1.0)]);
    }
}
