//! Time to completion of web objects (Holzinger et al. 2025, section V-B3 and Fig. 4): transfers of
//! 32 kB and 1 MB with 0 to 5 repair symbols behind their last byte, at once or later.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sutura_analysis::statistics::Distribution;
use sutura_sim::{Scenario, Transfer, TransferReport};

use super::Way;
use super::paper_path::{Channel, ONE_WAY};
use crate::comparison::{Runs, pooled, pooled_share, seed};
use crate::ideal::{Schedule, Transfers};
use crate::report::{Axis, Cell, Chart, Panel, Report, Series, Table, panels_of, report_of};
use crate::{Error, Options, parallel};

/// The loss models. With the other reading of the paper's numbers hardly any transfer loses a packet.
const CHANNELS: [Channel; 2] = [Channel::Fractions, Channel::Time];
/// Burst loss tolerances: repair symbols at the end of a transfer.
const BURSTS: [u32; 3] = [1, 3, 5];
/// Repair delay tolerances in milliseconds: how long they wait.
const DELAYS: [u64; 4] = [0, 5, 10, 25];
/// Bytes of transfers.
pub(super) const SIZES: [u64; 2] = [32_000, 1_000_000];
/// Transfers of each configuration, as in the paper.
pub(super) const TRANSFERS: u64 = 1000;
/// How many times as many transfers the model makes, since they take it no time.
const IDEAL_OVER: u64 = 20;
/// Transfers on one connection.
pub(super) const BATCH: u64 = 50;
/// The size of a first transfer that does not count: after it, the congestion controller knows the
/// path.
const WARM_UP: u64 = 1_000_000;
/// Pause between transfers, so that the tail of one does not disturb the next.
const GAP: Duration = Duration::from_millis(200);
/// Bytes of UDP payload in a packet, and how many of them are the transfer's.
const PACKET: usize = 1200;
const PAYLOAD: u64 = 1162;
/// Packets that 10 Mbit/s carry in a round trip: a transfer of fewer takes one flight.
const FLIGHT: u64 = 100;
/// The round-trip time of the path.
const RTT: Duration = Duration::from_millis(100);

/// Web objects, and how they are protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Objects {
    /// The loss of both directions.
    pub channel: Channel,
    /// Bytes of a transfer.
    pub bytes: u64,
    /// Burst loss tolerance: repair symbols at the end of a transfer.
    pub burst: u32,
    /// Repair delay tolerance: how long they wait.
    pub delay: Duration,
}

impl Objects {
    /// Transfers without protection.
    #[must_use]
    pub const fn bare(channel: Channel, bytes: u64) -> Self {
        Self { channel, bytes, burst: 0, delay: Duration::ZERO }
    }

    /// The same with `burst` repair symbols at the end of a transfer, which wait for `ms` milliseconds.
    #[must_use]
    pub const fn protected(self, burst: u32, ms: u64) -> Self {
        Self { burst, delay: Duration::from_millis(ms), ..self }
    }

    /// The share of transfers that a perfect code with the same number of repair symbols cannot complete in
    /// one flight; `None` if a transfer takes more than one.
    ///
    /// # Errors
    /// There is no such link.
    pub fn ideal(&self, transfers: u64, options: &Options) -> Result<Option<f64>, Error> {
        let packets = self.bytes.div_ceil(PAYLOAD);
        if packets > FLIGHT {
            return Ok(None);
        }
        let repairs = f64::from(self.burst);
        let model = Transfers {
            link: self.channel.link()?,
            packets,
            size: PACKET,
            repairs: Schedule { repairs, delay: self.delay, ..Schedule::NONE },
            pause: RTT + GAP,
        };
        let connections = transfers.div_ceil(BATCH);
        let each = transfers / connections.max(1);
        let of_connection = |n| model.incomplete(seed(options.seed, 1 + n), each);
        let incomplete: u64 = (0..connections).map(of_connection).sum();
        Ok(Some(incomplete as f64 / (each * connections).max(1) as f64))
    }
}

/// The outcome of one configuration.
#[derive(Clone, Debug)]
pub struct ObjectTimes {
    /// The configuration.
    pub setup: Objects,
    /// Times to completion.
    pub times: Distribution,
    /// The transfers of each connection.
    batches: Vec<Vec<TransferReport>>,
    /// How long a transfer takes without loss, at the median.
    lossless: Duration,
}

impl ObjectTimes {
    /// The share of transfers that waited for a retransmission: that took half a round trip or more
    /// longer than without loss.
    #[must_use]
    pub fn waited(&self) -> f64 {
        self.mean(|t| u64::from(t.waited(self.lossless, RTT)))
    }

    /// The same as a cell of a table, with its interval.
    pub(super) fn waited_cell(&self) -> Cell {
        self.share_cell(|t| t.waited(self.lossless, RTT))
    }

    /// The share of transfers that waited for a second retransmission: one and a half round trips or more.
    pub(super) fn waited_twice_cell(&self) -> Cell {
        self.share_cell(|t| t.waited(self.lossless + RTT, RTT))
    }

    pub(super) fn share_cell(&self, test: impl Fn(&TransferReport) -> bool) -> Cell {
        pooled_share(self.batches.iter().map(Vec::as_slice), test)
    }

    pub(super) fn mean(&self, value: impl Fn(&TransferReport) -> u64) -> f64 {
        self.sum(value) / self.count()
    }

    fn sum(&self, value: impl Fn(&TransferReport) -> u64) -> f64 {
        self.batches.iter().flatten().map(value).sum::<u64>() as f64
    }

    /// How many transfers there are; at least one.
    fn count(&self) -> f64 {
        self.batches.iter().map(Vec::len).sum::<usize>().max(1) as f64
    }

    /// Bytes from the server on the wire per byte transferred.
    pub(super) fn wire_per_byte(&self) -> f64 {
        let bytes = self.setup.bytes as f64 * self.count();
        self.sum(|t| t.wire_down) / bytes
    }

    /// The share of the server's datagrams that the link lost.
    fn loss(&self) -> f64 {
        self.sum(|t| t.lost_down) / self.sum(|t| t.datagrams_down).max(1.0)
    }
}

fn batch(way: Way, setup: Objects, count: u64, seed: u64) -> Result<Vec<TransferReport>, Error> {
    let path = setup.channel.link()?;
    let measured = std::iter::repeat_n(Transfer::download(setup.bytes), count as usize);
    let scenario = Scenario::new(seed)
        .link(&path, &path)
        .transfers(std::iter::once(Transfer::download(WARM_UP)).chain(measured))
        .gap(GAP);
    let mut outcome = way.transfers(scenario, setup.burst, setup.delay)?;
    outcome.transfers.remove(0);
    Ok(outcome.transfers)
}

/// How long a transfer takes without loss, at the median.
fn lossless(way: Way, bytes: u64, options: &Options) -> Result<Duration, Error> {
    let setup = Objects::bare(Channel::Lossless, bytes);
    let transfers = batch(way, setup, BATCH, seed(options.seed, 0))?;
    Ok(Distribution::of(transfers.iter().map(|t| t.time)).quantile(0.5))
}

/// Makes `count` transfers with each of `setups`, as `way` has them. Setups that only differ in their burst
/// loss tolerance get the same seeds.
///
/// # Errors
/// A simulation fails.
pub fn measure(
    way: Way,
    setups: &[Objects],
    count: u64,
    options: &Options,
) -> Result<Vec<ObjectTimes>, Error> {
    let batches = Runs::measure(options, setups, count.div_ceil(BATCH), |setup, n| {
        batch(way, *setup, BATCH.min(count - n * BATCH), seed(options.seed, 1 + n))
    })?;
    let sizes: BTreeSet<u64> = setups.iter().map(|setup| setup.bytes).collect();
    let sizes: Vec<u64> = sizes.into_iter().collect();
    let references = parallel::map(options, &sizes, |bytes| lossless(way, *bytes, options))?;
    let references: BTreeMap<u64, Duration> = sizes.into_iter().zip(references).collect();
    let summary = |Runs { setup, runs }: Runs<Objects, Vec<TransferReport>>| {
        let times = pooled(runs.iter().map(Vec::as_slice), |t| (t.time, 1));
        let lossless = references.get(&setup.bytes).copied().unwrap_or_default();
        ObjectTimes { setup, times, batches: runs, lossless }
    };
    Ok(batches.into_iter().map(summary).collect())
}

experiment! {
    "holzinger-bulk": "Completion times of 32 kB and 1 MB over a path with bursts of loss" (Seeds),
    one in 5 takes 41 s
}

/// The experiment as in the paper, and on the time-stepped channel.
fn run(options: &Options) -> Result<Report, Error> {
    let mut setups = Vec::new();
    for (channel, bytes) in CHANNELS.iter().flat_map(|c| SIZES.map(|bytes| (*c, bytes))) {
        let bare = Objects::bare(channel, bytes);
        setups.push(bare);
        setups.extend(BURSTS.iter().flat_map(|burst| DELAYS.map(|ms| bare.protected(*burst, ms))));
    }
    let transfers = options.seeds.map_or(options.reduced(TRANSFERS), |seeds| seeds.max(1) * BATCH);
    let summaries = measure(Way::STREAMS, &setups, transfers, options)?;
    let ideals: Result<Vec<_>, Error> =
        setups.iter().map(|setup| setup.ideal(IDEAL_OVER * transfers, options)).collect();
    Ok(report(&summaries, &ideals?))
}

fn report(summaries: &[ObjectTimes], ideals: &[Option<f64>]) -> Report {
    let quantile = |s: &ObjectTimes, q| s.times.cell(q);
    let transfers = Table::of(
        "Transfers",
        summaries.iter().zip(ideals),
        &[
            ("channel", &|(s, _)| s.setup.channel.name().into()),
            ("bytes", &|(s, _)| s.setup.bytes.into()),
            ("BLT", &|(s, _)| s.setup.burst.into()),
            ("RDT", &|(s, _)| s.setup.delay.into()),
            ("transfers", &|(s, _)| s.times.total().into()),
            ("waited", &|(s, _)| s.waited_cell()),
            ("ideal", &|(_, ideal)| ideal.map(Cell::Share).into()),
            ("waited twice", &|(s, _)| s.waited_twice_cell()),
            ("resent", &|(s, _)| s.share_cell(|t| t.retransmitted_down > 0)),
            ("TTC p50", &|(s, _)| quantile(s, 0.5)),
            ("p90", &|(s, _)| quantile(s, 0.9)),
            ("p95", &|(s, _)| quantile(s, 0.95)),
            ("p99", &|(s, _)| quantile(s, 0.99)),
            ("bytes resent", &|(s, _)| Cell::Number(s.mean(|t| t.retransmitted_down))),
            ("wire/byte", &|(s, _)| Cell::Number(s.wire_per_byte())),
            ("repairs", &|(s, _)| Cell::Number(s.mean(|t| t.repair_symbols))),
            ("recovered", &|(s, _)| Cell::Number(s.mean(|t| t.recovered))),
            ("loss", &|(s, _)| Cell::Share(s.loss())),
        ],
    );
    report_of(
        "Time to completion with repair symbols at the end of a transfer",
        &[
            &format!(
                "Holzinger et al. 2025, V-B3: 10 Mbit/s, {} ms one way, BBR, warm connections, loss \
                 in both directions. Channel `fractions`: Gilbert-Elliott 0.005, 0.25, 0.95, 0.005 \
                 stepped by all packets and by 10 Mbit/s of cross traffic. Channel `time-stepped`: \
                 the same loss in each state, which lasts 240 ms (good) and 4.8 ms (bad) on average.",
                ONE_WAY.as_millis()
            ),
            "BLT is the number of repair symbols at the end of each transfer, RDT how long they wait. \
             A transfer waited if \
             it took half a round trip or more longer than the median without loss; it waited twice \
             if one and a half or more. `resent` counts transfers of which stream data was sent \
             again. Bytes on the wire are UDP payload from the server.",
            "`ideal` is the share of transfers that a perfect code with as many repair symbols cannot \
             complete in one flight: more packets are lost than repair symbols arrive. It is of a model \
             without QUIC on the same link, and there is none for transfers of more than one flight.",
        ],
        [transfers],
        SIZES.map(|bytes| chart(summaries, bytes)),
    )
}

/// Times to completion of the transfers of one size, a panel for each channel. Times of the other size are of
/// another order.
fn chart(summaries: &[ObjectTimes], bytes: u64) -> Chart {
    let panel = |channel: Channel| {
        let of_panel = summaries.iter().filter(|s| {
            let Objects { delay, .. } = s.setup;
            let extreme = [DELAYS[0], DELAYS[3]].map(Duration::from_millis).contains(&delay);
            s.setup.channel == channel && s.setup.bytes == bytes && extreme
        });
        let series = of_panel.map(|s| {
            let Objects { burst, delay, .. } = s.setup;
            let label = match burst {
                0 => "no repair symbols".to_owned(),
                _ => format!("BLT {burst}, RDT {} ms", delay.as_millis()),
            };
            Series::line(label, s.times.curve())
        });
        Panel { title: channel.name().to_owned(), series: series.collect() }
    };
    panels_of(
        format!("{bytes}-bytes"),
        format!("Time to completion of {bytes} bytes"),
        [
            Axis::linear("time to completion in ms"),
            Axis::linear("share of transfers complete by then"),
        ],
        CHANNELS.map(panel),
    )
}
