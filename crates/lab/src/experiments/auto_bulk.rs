//! Whether redundancy that sets itself does harm where it has little to gain: transfers that are of
//! use when complete, over paths with and without loss.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sutura_analysis::statistics::mean;
use sutura_link::LinkConfig;
use sutura_proto::{Algorithm, Protection, TransportConfig};
use sutura_sim::{Scenario, Transfer};

use crate::comparison::{Compared, Subject, Values, pooled, unless_broken};
use crate::report::{Cell, Report, Table, report_of};
use crate::{Error, Options};

/// The policy that must do no harm.
const AUTO: &str = "auto";
/// Policies that send the same redundancy on every path.
const FIXED: [&str; 3] = ["tail", "incremental", "block"];
const CONTROLLERS: [Algorithm; 2] = [Algorithm::BBR, Algorithm::CUBIC];
/// Shares of the packets that are lost each way.
const LOSSES: [f64; 3] = [0.005, 0.0235, 0.05];
/// Rate and delay of the path, and a queue of one and a half bandwidth-delay products.
const PATH: &str = "rate=10mbit delay=50ms queue=187500b";
/// How long a burst of losses lasts on average: the time of four packets.
const BURST_MS: f64 = 4.8;
/// The downloads.
const WORKS: [Fetches; 4] = [
    Fetches { bytes: 100_000, requests: 1 },
    Fetches { bytes: 1_000_000, requests: 1 },
    Fetches { bytes: 10_000_000, requests: 1 },
    Fetches { bytes: 100_000, requests: 20 },
];
/// The pause before each of several requests.
const THINK_TIME: Duration = Duration::from_millis(500);
/// Runs of each configuration on paths with loss.
const SEEDS: u64 = 200;
/// Runs without loss, where only the controllers' own randomness is left.
const LOSSLESS_SEEDS: u64 = 5;
/// More than any window here.
const SEND_BUFFER: usize = 4 << 20;

/// Downloads on a fresh connection, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fetches {
    bytes: u64,
    requests: u32,
}

impl Fetches {
    fn name(self) -> String {
        let kb = self.bytes / 1000;
        if self.requests == 1 { format!("{kb} kB") } else { format!("{} x {kb} kB", self.requests) }
    }
}

/// The losses of the path.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Losses {
    None,
    /// This share of packets, each independently.
    Random(f64),
    /// All packets for this share of the time, whatever is sent.
    Bursts(f64),
}

impl Losses {
    fn name(self) -> String {
        match self {
            Self::None => "none".to_owned(),
            Self::Random(share) => format!("{} %, random", 100.0 * share),
            Self::Bursts(share) => format!("{} %, bursts", 100.0 * share),
        }
    }

    fn link(self) -> Result<LinkConfig, Error> {
        let loss = match self {
            Self::None => "none".to_owned(),
            Self::Random(share) => format!("bern:{share}"),
            Self::Bursts(share) => {
                format!("gt:{:.3},{BURST_MS},1,0", BURST_MS * (1.0 - share) / share)
            }
        };
        Ok(format!("{PATH} loss={loss}").parse()?)
    }
}

/// Downloads over a path.
#[derive(Clone, Copy, Debug)]
struct Downloads {
    losses: Losses,
    congestion: Algorithm,
    work: Fetches,
}

/// The outcome of the downloads.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Completions {
    /// The times of the downloads in seconds; infinite if the connection broke.
    times: Vec<f64>,
    /// Bytes that the server sent, without UDP and IP headers.
    wire: f64,
    /// Repair symbols that it sent.
    repairs: f64,
    /// Source symbols that the client recovered.
    recovered: f64,
}

impl Completions {
    /// The connection broke before they were complete.
    fn broken(requests: u32) -> Self {
        let times = vec![f64::INFINITY; requests as usize];
        Self { times, wire: f64::NAN, repairs: f64::NAN, recovered: f64::NAN }
    }
}

impl Subject for Downloads {
    type Outcome = Completions;

    const APART: u64 = 0;

    fn lossless(&self) -> Self {
        Self { losses: Losses::None, ..*self }
    }

    fn run(&self, protection: Option<&Protection>, seed: u64) -> Result<Completions, Error> {
        let Self { losses, congestion, work } = *self;
        let path = losses.link()?;
        let transport = TransportConfig::default()
            .with_congestion(Arc::new(congestion))
            .with_send_buffer(SEND_BUFFER)
            .with_redundancy(None);
        let download =
            Transfer { protection: protection.cloned(), ..Transfer::download(work.bytes) };
        let scenario = Scenario::new(seed)
            .link(&path, &path)
            .transport(&transport)
            .protect(protection.cloned())
            .transfers(std::iter::repeat_n(download, work.requests as usize))
            .gap(THINK_TIME);
        let Some(outcome) = unless_broken(scenario.run())? else {
            return Ok(Completions::broken(work.requests));
        };
        Ok(Completions {
            times: outcome.transfers.iter().map(|t| t.time.as_secs_f64()).collect(),
            wire: outcome.ends.down.sent_bytes as f64,
            repairs: outcome.ends.server.fec.repair_symbols_sent as f64,
            recovered: outcome.ends.client.fec.recovered as f64,
        })
    }
}

/// The quantile `q` of the times of all downloads of some runs.
fn time(runs: &[Completions], q: f64) -> f64 {
    Values::of(runs.iter().flat_map(|run| run.times.iter().copied())).at(q)
}

/// The median of the times of all downloads of some runs, as a cell of a table.
fn median_cell(runs: &[Completions]) -> Cell {
    let time = |seconds: &f64| Duration::try_from_secs_f64(*seconds).unwrap_or(Duration::MAX);
    pooled(runs.iter().map(|run| run.times.as_slice()), |seconds| (time(seconds), 1)).cell(0.5)
}

/// The mean of a figure, for each download of the runs that were completed.
fn each(runs: &[Completions], value: fn(&Completions) -> f64) -> f64 {
    let complete = || runs.iter().filter(|run| run.wire.is_finite());
    let downloads: usize = complete().map(|run| run.times.len()).sum();
    complete().map(value).sum::<f64>() / downloads.max(1) as f64
}

/// Bytes on the wire for each download.
fn wire(runs: &[Completions]) -> f64 {
    each(runs, |run| run.wire)
}

impl Compared<Downloads> {
    fn time_ratio(&self, policy: usize, q: f64) -> f64 {
        self.ratio(policy, |runs| time(runs, q))
    }

    fn wire_ratio(&self, policy: usize) -> f64 {
        self.ratio(policy, wire)
    }

    fn repairs(&self, policy: usize) -> f64 {
        each(self.with(policy), |run| run.repairs)
    }

    fn recovered(&self, policy: usize) -> f64 {
        each(self.with(policy), |run| run.recovered)
    }
}

experiment! {
    "auto-bulk": "Whether redundancy that sets itself makes a transfer slower or larger" (Seeds),
    one in 20 takes 32 s
}

/// `auto` on paths with loss, and every policy on the path without.
fn run(options: &Options) -> Result<Report, Error> {
    let on = |losses| {
        let each = move |congestion| WORKS.map(|work| Downloads { losses, congestion, work });
        CONTROLLERS.into_iter().flat_map(each)
    };
    let kinds: [fn(f64) -> Losses; 2] = [Losses::Random, Losses::Bursts];
    let lossy = kinds.into_iter().flat_map(|kind| LOSSES.map(kind));
    let lossy: Vec<Downloads> = lossy.flat_map(on).collect();
    let clear: Vec<Downloads> = on(Losses::None).collect();
    let registry = sutura_research::redundancy();
    let policies: Vec<&'static str> = registry.entries().iter().map(|entry| entry.name).collect();
    let lossy = Compared::measure(options, &lossy, &[AUTO], [options.seeds(SEEDS); 2])?;
    let seeds = options.seeds(LOSSLESS_SEEDS).min(LOSSLESS_SEEDS);
    let clear = Compared::measure(options, &clear, &policies, [seeds; 2])?;
    Ok(report(&lossy, &clear, &policies))
}

fn report(
    lossy: &[Compared<Downloads>],
    clear: &[Compared<Downloads>],
    policies: &[&'static str],
) -> Report {
    report_of(
        "Whether redundancy that sets itself does harm",
        &text(lossy),
        [lossy_table(lossy, clear), lossless_table(clear, policies)],
        [],
    )
}

fn lossy_table(rows: &[Compared<Downloads>], clear: &[Compared<Downloads>]) -> Table {
    let ideal = |row: &Compared<Downloads>| {
        let same = |clear: &&Compared<Downloads>| {
            (clear.setup.congestion, clear.setup.work) == (row.setup.congestion, row.setup.work)
        };
        let clear = clear.iter().find(same);
        clear.map(|clear| Cell::Number(time(&clear.plain, 0.5) / time(&row.plain, 0.5)))
    };
    Table::of(
        format!("Downloads with `{AUTO}`, divided by those without protection"),
        rows,
        &[
            ("losses", &|row| row.setup.losses.name().into()),
            ("controller", &|row| row.setup.congestion.to_string().into()),
            ("download", &|row| row.setup.work.name().into()),
            ("without p50", &|row| median_cell(&row.plain)),
            ("p50", &|row| row.ratio_cell(0, |runs| time(runs, 0.5))),
            ("p90", &|row| row.ratio_cell(0, |runs| time(runs, 0.9))),
            ("p99", &|row| row.ratio_cell(0, |runs| time(runs, 0.99))),
            ("ideal p50", &|row| ideal(row).into()),
            ("bytes", &|row| row.ratio_cell(0, wire)),
            ("repairs", &|row| Cell::Number(row.repairs(0))),
            ("recovered", &|row| Cell::Number(row.recovered(0))),
        ],
    )
}

/// A row for each policy and controller, with the bytes of each kind of download.
fn lossless_table(compared: &[Compared<Downloads>], policies: &[&'static str]) -> Table {
    let header = ["policy", "adapts", "controller", "largest time"].map(str::to_owned);
    let bytes = WORKS.map(|work| format!("bytes {}", work.name()));
    let header = header.into_iter().chain(bytes).chain(["repairs".to_owned()]);
    let mut table = Table::new("Every policy without loss, divided by none", header);
    for (policy, name) in policies.iter().enumerate() {
        let adapts = if FIXED.contains(name) { "no" } else { "yes" };
        for congestion in CONTROLLERS {
            let own = |row: &&Compared<Downloads>| row.setup.congestion == congestion;
            let rows = || compared.iter().filter(own);
            let time = rows().map(|row| row.time_ratio(policy, 0.5)).fold(0.0, f64::max);
            let repairs = mean(rows().map(|row| row.repairs(policy)));
            let label = [Cell::from(*name), adapts.into(), congestion.to_string().into()];
            let bytes = rows().map(|row| row.wire_ratio(policy));
            let figures = std::iter::once(time).chain(bytes).chain([repairs]);
            table.row(label.into_iter().chain(figures.map(Cell::Number)));
        }
    }
    table
}

fn text(lossy: &[Compared<Downloads>]) -> Vec<String> {
    let seeds = lossy.first().map_or(0, |compared| compared.plain.len());
    vec![
        format!(
            "10 Mbit/s, 50 ms one way, and a queue of one and a half bandwidth-delay products; a fresh \
             connection, which knows nothing of the path. As many packets are lost each way, each on \
             its own or, whatever is sent, in bursts of {BURST_MS} ms on average. `20 x` is a series of requests on one \
             connection, {} ms apart, each of which counts as a download. The quantiles are of all \
             downloads with the same {seeds} seeds, with protection and without. From the first packet \
             on that differs, other packets are lost: quantiles differ by chance, too. `ideal` is the \
             ratio of the median on the path without losses.",
            THINK_TIME.as_millis()
        ),
        "Bytes are those that the server sends; repair and recovered symbols are for each download."
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(losses: Losses, work: Fetches) -> Downloads {
        Downloads { losses, congestion: Algorithm::BBR, work }
    }

    fn compare(setups: &[Downloads], policies: &[&str], seeds: u64) -> Vec<Compared<Downloads>> {
        Compared::measure(&Options::default(), setups, policies, [seeds; 2]).unwrap()
    }

    /// Without loss, an adaptive policy sends a few packets more while it knows nothing of the path.
    #[test]
    fn what_adapts_costs_next_to_nothing_without_loss() {
        let work = Fetches { bytes: 300_000, requests: 3 };
        let compared = &compare(&[setup(Losses::None, work)], &[AUTO, "tail"], 2)[0];
        let time = |runs: &[Completions]| -> f64 { runs.iter().flat_map(|run| &run.times).sum() };
        let ratio = time(compared.with(0)) / time(&compared.plain);
        assert!((0.999..1.001).contains(&ratio), "{ratio}");
        assert!(compared.wire_ratio(0) < 1.01 && compared.repairs(0) <= 2.0);
        assert!(compared.wire_ratio(1) > 1.0 && compared.repairs(1) == 3.0);
    }

    #[test]
    fn links_lose_the_share_that_they_are_to() {
        for losses in LOSSES.into_iter().flat_map(|s| [Losses::Random(s), Losses::Bursts(s)]) {
            let (Losses::Random(share) | Losses::Bursts(share)) = losses else { continue };
            let mean = losses.link().unwrap().loss.mean();
            assert!((mean - share).abs() < 1e-4, "{losses:?}: {mean}");
        }
    }

    #[test]
    fn a_series_teaches_the_policy_what_is_lost() {
        let work = Fetches { bytes: 100_000, requests: 20 };
        let compared = &compare(&[setup(Losses::Random(0.05), work)], &[AUTO], 4)[0];
        assert_eq!(compared.with(0).iter().map(|run| run.times.len()).sum::<usize>(), 80);
        assert!(compared.repairs(0) > 0.5 && compared.recovered(0) > 0.05);
    }

    /// On paths with loss, `auto` lengthens no download, and shortens downloads on a connection that knows
    /// the losses.
    #[test]
    fn auto_does_no_harm_with_loss() {
        let losses = [Losses::Random(0.05), Losses::Bursts(0.05)];
        let one = Fetches { bytes: 1_000_000, requests: 1 };
        let series = Fetches { bytes: 100_000, requests: 20 };
        for losses in losses {
            let setups = [setup(losses, one), setup(losses, series)];
            let compared = compare(&setups, &[AUTO], 12);
            let [one, series] = &compared[..] else { panic!("two kinds of work") };
            assert!(one.time_ratio(0, 0.5) < 1.02, "{losses:?}: {}", one.time_ratio(0, 0.5));
            assert!(series.time_ratio(0, 0.9) < 0.95, "{losses:?}: {}", series.time_ratio(0, 0.9));
        }
    }
}
