//! The paths and transfers of Michel et al., "FlEC: Enhancing QUIC with application-tailored
//! reliability mechanisms" (2022), sections VI and VII: one file over one link.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sutura_analysis::statistics::mean;
use sutura_link::{LinkConfig, Loss, Trace};
use sutura_proto::{Algorithm, FecConfig, Protection, TransportConfig};
use sutura_random::Rng;
use sutura_sim::{Ends, Scenario, Transfer};

use crate::comparison::{Compared, Grouped, Subject, Values, unless_broken};
use crate::report::{Axis, Cell, Chart, Series, chart_of};
use crate::{Error, Options};

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

/// The most packets in a row that a burst of losses takes, as in the paper's Fig. 11.
const LONGEST: i32 = 5;
/// Packets for which bursts are drawn before they repeat: more than a transfer of 5 MB takes.
const DRAWN: usize = 1 << 14;

/// The mean length of bursts in which each packet is the last with probability `1 / burst`, and the fifth
/// always is.
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

    /// A direction of the path. `seed` determines the losses that come in bursts; the simulator draws other
    /// losses.
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

    /// The bandwidth-delay product of the path, in bytes.
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
    /// Bytes that the client buffers; `None` for no limit.
    pub buffer: Option<u64>,
    /// The congestion controller of both ends.
    pub congestion: Algorithm,
}

/// The outcome of a download.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Completion {
    /// From the request to the last byte, in seconds; infinite if the connection broke.
    pub time: f64,
    /// Bytes that the server sent, without UDP and IP headers.
    pub wire: f64,
    /// Repair symbols that it sent.
    pub repairs: f64,
    /// Source symbols that the client recovered.
    pub recovered: f64,
}

impl Completion {
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

impl Download {
    /// A file to a client with unlimited buffers, with BBR.
    pub const fn new(path: Path, bytes: u64) -> Self {
        Self { path, bytes, buffer: None, congestion: Algorithm::BBR }
    }

    /// The settings of both ends. The decoder remembers as much as the client buffers, which is the most that
    /// can be in flight.
    fn transport(&self) -> TransportConfig {
        let buffer = self.buffer.unwrap_or(1_000_000_000);
        let decoder = FecConfig::default();
        let window = u32::try_from(buffer).unwrap_or(u32::MAX).min(MOST_DECODED);
        TransportConfig::default()
            .with_congestion(Arc::new(self.congestion))
            .with_stream_receive_window(buffer)
            .with_max_stream_receive_window(buffer)
            .with_receive_window(buffer)
            .with_max_receive_window(buffer)
            .with_send_buffer(SEND_BUFFER)
            .with_fec(Some(
                decoder
                    .with_max_window_bytes(window)
                    .with_max_window_symbols(window / SYMBOL_BYTES),
            ))
    }
}

impl Subject for Download {
    type Outcome = Completion;

    const APART: u64 = 10_000;

    fn lossless(&self) -> Self {
        Self { path: self.path.lossless(), ..*self }
    }

    /// Downloads the file on a fresh connection.
    fn run(&self, protection: Option<&Protection>, seed: u64) -> Result<Completion, Error> {
        let up = self.path.link(self.path.loss_up, !seed)?;
        let down = self.path.link(self.path.loss_down, seed)?;
        let scenario = Scenario::new(seed)
            .link(&up, &down)
            .transport(&self.transport())
            .protect(protection.cloned())
            .transfer(Transfer::download(self.bytes));
        Ok(unless_broken(scenario.run())?.map_or(Completion::BROKEN, |outcome| {
            let time = outcome.transfers.first().map(|transfer| transfer.time).unwrap_or_default();
            Completion::new(time, &outcome.ends)
        }))
    }
}

/// The most that a decoder remembers, which is also the most that a sender keeps.
const MOST_DECODED: u32 = 1536 * 1024;
/// The least that a source symbol takes when there is enough to send.
const SYMBOL_BYTES: u32 = 1024;

/// How many points a design has.
pub fn points(options: &Options) -> usize {
    usize::try_from(options.reduced(POINTS)).unwrap_or(usize::MAX)
}

/// The median of the times.
pub fn median_time(outcomes: &[Completion]) -> f64 {
    quantile_time(outcomes, 0.5)
}

/// The quantile `q` of the times.
pub fn quantile_time(outcomes: &[Completion], q: f64) -> f64 {
    Values::of(outcomes.iter().map(|outcome| outcome.time)).at(q)
}

/// The median of the times, as a cell of a table.
pub fn median_cell(outcomes: &[Completion]) -> Cell {
    Values::of(outcomes.iter().map(|outcome| 1000.0 * outcome.time)).millis_cell(0.5)
}

/// The mean of the times of the downloads that were completed.
pub fn mean_time(outcomes: &[Completion]) -> f64 {
    mean(complete(outcomes).map(|outcome| outcome.time))
}

/// The mean of the bytes on the wire of the downloads that were completed.
pub fn mean_wire(outcomes: &[Completion]) -> f64 {
    mean(complete(outcomes).map(|outcome| outcome.wire))
}

fn complete(outcomes: &[Completion]) -> impl Iterator<Item = &Completion> {
    outcomes.iter().filter(|outcome| outcome.time.is_finite())
}

/// Of each group, the `count` comparisons that gain least of the median time with the first policy.
pub fn worst<K>(
    groups: &[Grouped<K, Download>],
    count: usize,
) -> impl Iterator<Item = (&K, &Compared<Download>)> {
    let ratio = |point: &Compared<Download>| point.ratio(0, median_time);
    groups.iter().flat_map(move |(kind, points)| {
        let mut points: Vec<_> = points.iter().map(|point| (kind, point)).collect();
        points.sort_by(|(_, a), (_, b)| ratio(b).total_cmp(&ratio(a)));
        points.truncate(count);
        points
    })
}

/// The distribution functions of ratios over the items of a kind, such as paths.
pub fn ratio_chart(
    name: String,
    title: String,
    items: &str,
    ratios: impl IntoIterator<Item = (String, Values)>,
) -> Chart {
    let x = Axis::log("time divided by that without protection");
    let series = ratios.into_iter().map(|(label, ratios)| Series::line(label, ratios.curve()));
    chart_of(name, title, [x, Axis::linear(format!("share of {items}"))], series)
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
        let (options, download) = (Options::default(), [Download::new(PATH, 40_000)]);
        let compared =
            Compared::measure_to_ideal(&options, &download, &["bulk", "sr-arq"], [4, 2]).unwrap();
        let counts: Vec<_> = compared[0].policies.iter().map(Vec::len).collect();
        assert_eq!((compared[0].plain.len(), counts), (4, vec![4, 2]));
        assert!(compared[0].policies[0].iter().all(|outcome| outcome.repairs > 0.0));
        assert!(compared[0].ratio(0, mean_wire) > 1.0);
        let ideal = compared[0].ideal_ratio(median_time).unwrap();
        assert!(ideal > 0.0 && ideal <= compared[0].ratio(0, median_time), "{ideal}");
    }
}
