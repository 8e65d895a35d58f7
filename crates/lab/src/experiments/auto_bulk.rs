//! Whether redundancy that sets itself does harm where it has little to gain: transfers that are of
//! use when complete, over paths with and without loss.

use std::sync::Arc;
use std::time::Duration;

use sutura_analysis::report::Report;
use sutura_analysis::statistics::{mean, quantile, sorted};
use sutura_analysis::table::{Cell, Table};
use sutura_link::LinkConfig;
use sutura_proto::{Algorithm, Protection, TransportConfig};
use sutura_sim::{Failure, FailureKind, Scenario, Transfer};

use super::Experiment;
use super::flec_path::protection;
use super::paper_path::seed;
use crate::{Error, Options, parallel};

/// The policy that must do no harm.
const AUTO: &str = "auto";
/// Policies that send what they are told to, whatever the path is like.
const FIXED: [&str; 3] = ["tail", "incremental", "block"];
const CONTROLLERS: [Algorithm; 2] = [Algorithm::BBR, Algorithm::CUBIC];
/// Shares of the packets that are lost each way.
const LOSSES: [f64; 3] = [0.005, 0.0235, 0.05];
/// Rate and delay of the path, and a queue of one and a half times what it holds.
const PATH: &str = "rate=10mbit delay=50ms queue=187500b";
/// How long a burst of losses lasts on average: the time of four packets.
const BURST_MS: f64 = 4.8;
/// What is transferred.
const WORKS: [Work; 4] = [
    Work { bytes: 100_000, requests: 1 },
    Work { bytes: 1_000_000, requests: 1 },
    Work { bytes: 10_000_000, requests: 1 },
    Work { bytes: 100_000, requests: 20 },
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
struct Work {
    bytes: u64,
    requests: u32,
}

impl Work {
    fn name(self) -> String {
        let kb = self.bytes / 1000;
        if self.requests == 1 { format!("{kb} kB") } else { format!("{} x {kb} kB", self.requests) }
    }
}

/// What the path loses.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Losses {
    None,
    /// This share of packets, each on its own.
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

/// One configuration.
#[derive(Clone, Copy, Debug)]
struct Setup {
    losses: Losses,
    congestion: Algorithm,
    work: Work,
}

/// The outcome of one run.
#[derive(Clone, Debug)]
struct Outcome {
    /// The times of the downloads in seconds; infinite if the connection broke.
    times: Vec<f64>,
    /// Bytes that the server sent, without UDP and IP headers.
    wire: f64,
    /// Repair symbols that it sent.
    repairs: f64,
    /// Source symbols that the client recovered.
    recovered: f64,
}

impl Setup {
    fn run(&self, protection: Option<&Protection>, seed: u64) -> Result<Outcome, Error> {
        let Self { losses, congestion, work } = *self;
        let path = losses.link()?;
        let transport = TransportConfig {
            congestion: Arc::new(congestion),
            send_buffer: SEND_BUFFER,
            redundancy: None,
            ..TransportConfig::default()
        };
        let download =
            Transfer { protection: protection.cloned(), ..Transfer::download(work.bytes) };
        let scenario = Scenario::new(seed)
            .link(&path, &path)
            .transport(&transport)
            .protect(protection.cloned())
            .transfers(std::iter::repeat_n(download, work.requests as usize))
            .gap(THINK_TIME);
        match scenario.run() {
            Ok(outcome) => Ok(Outcome {
                times: outcome.transfers.iter().map(|t| t.time.as_secs_f64()).collect(),
                wire: outcome.ends.down.sent_bytes as f64,
                repairs: outcome.ends.server.fec.repair_symbols_sent as f64,
                recovered: outcome.ends.client.fec.recovered as f64,
            }),
            // A burst may outlast all probes of the idle timeout.
            Err(Failure { kind: FailureKind::ConnectionLost(_), .. }) => Ok(Outcome {
                times: vec![f64::INFINITY; work.requests as usize],
                wire: f64::NAN,
                repairs: f64::NAN,
                recovered: f64::NAN,
            }),
            Err(failure) => Err(failure.into()),
        }
    }
}

/// All runs of a configuration with one policy, or with none.
#[derive(Clone, Debug)]
struct Runs {
    /// The times of all downloads, in ascending order.
    times: Vec<f64>,
    outcomes: Vec<Outcome>,
}

impl Runs {
    fn new(outcomes: Vec<Outcome>) -> Self {
        let times = sorted(outcomes.iter().flat_map(|outcome| outcome.times.iter().copied()));
        Self { times, outcomes }
    }

    fn time(&self, q: f64) -> f64 {
        quantile(&self.times, q)
    }

    /// The mean of a figure, for each download of the runs that were completed.
    fn each(&self, value: fn(&Outcome) -> f64) -> f64 {
        let complete = || self.outcomes.iter().filter(|outcome| outcome.wire.is_finite());
        let downloads: usize = complete().map(|outcome| outcome.times.len()).sum();
        complete().map(value).sum::<f64>() / downloads.max(1) as f64
    }
}

/// A configuration without protection and with a policy, with the same seeds.
#[derive(Clone, Debug)]
struct Compared {
    setup: Setup,
    policy: &'static str,
    plain: Runs,
    with: Runs,
}

impl Compared {
    fn time_ratio(&self, q: f64) -> f64 {
        self.with.time(q) / self.plain.time(q)
    }

    fn wire_ratio(&self) -> f64 {
        self.with.each(|outcome| outcome.wire) / self.plain.each(|outcome| outcome.wire)
    }
}

/// Runs each of `setups` without protection and with each of `policies`.
fn compare(
    options: &Options,
    setups: &[Setup],
    policies: &[&'static str],
    seeds: u64,
) -> Result<Vec<Compared>, Error> {
    let named = std::iter::once(None).chain(policies.iter().copied().map(Some));
    let protections = named.map(protection).collect::<Result<Vec<_>, Error>>()?;
    let jobs: Vec<_> =
        setups.iter().flat_map(|s| protections.iter().map(move |p| (s, p))).collect();
    let runs = parallel::repeat(options, &jobs, seeds, |(setup, protection), n| {
        setup.run(protection.as_ref(), seed(options.seed, n))
    })?;
    let mut runs = runs.into_iter().map(Runs::new);
    let mut compared = Vec::new();
    for setup in setups {
        let Some(plain) = runs.next() else { break };
        let with = policies.iter().zip(runs.by_ref());
        compared.extend(with.map(|(policy, with)| Compared {
            setup: *setup,
            policy,
            plain: plain.clone(),
            with,
        }));
    }
    Ok(compared)
}

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "auto-bulk",
    about: "Whether redundancy that sets itself makes a transfer slower or larger",
    run,
};

/// `auto` on paths with loss, and every policy on the path without.
fn run(options: &Options) -> Result<Report, Error> {
    let on = |losses| {
        let each = move |congestion| WORKS.map(|work| Setup { losses, congestion, work });
        CONTROLLERS.into_iter().flat_map(each)
    };
    let kinds: [fn(f64) -> Losses; 2] = [Losses::Random, Losses::Bursts];
    let lossy = kinds.into_iter().flat_map(|kind| LOSSES.map(kind));
    let lossy: Vec<Setup> = lossy.flat_map(on).collect();
    let clear: Vec<Setup> = on(Losses::None).collect();
    let registry = sutura_research::redundancy();
    let policies: Vec<&'static str> = registry.entries().iter().map(|entry| entry.name).collect();
    let lossy = compare(options, &lossy, &[AUTO], options.seeds(SEEDS))?;
    let clear =
        compare(options, &clear, &policies, options.seeds(LOSSLESS_SEEDS).min(LOSSLESS_SEEDS))?;
    Ok(report(&lossy, &clear, &policies))
}

fn report(lossy: &[Compared], clear: &[Compared], policies: &[&'static str]) -> Report {
    Report {
        title: "Whether redundancy that sets itself does harm".to_owned(),
        text: text(lossy),
        tables: vec![lossy_table(lossy, clear), lossless_table(clear, policies)],
        ..Report::default()
    }
}

fn lossy_table(rows: &[Compared], clear: &[Compared]) -> Table {
    let ideal = |row: &Compared| {
        let same = |clear: &&Compared| {
            (clear.setup.congestion, clear.setup.work) == (row.setup.congestion, row.setup.work)
        };
        let clear = clear.iter().find(same);
        clear.map(|clear| Cell::Number(clear.plain.time(0.5) / row.plain.time(0.5)))
    };
    Table::of(
        format!("Downloads with `{AUTO}`, divided by those without protection"),
        rows,
        &[
            ("losses", &|row| row.setup.losses.name().into()),
            ("controller", &|row| row.setup.congestion.to_string().into()),
            ("download", &|row| row.setup.work.name().into()),
            ("without p50", &|row| Cell::Millis(1000.0 * row.plain.time(0.5))),
            ("p50", &|row| Cell::Number(row.time_ratio(0.5))),
            ("p90", &|row| Cell::Number(row.time_ratio(0.9))),
            ("p99", &|row| Cell::Number(row.time_ratio(0.99))),
            ("ideal p50", &|row| ideal(row).into()),
            ("bytes", &|row| Cell::Number(row.wire_ratio())),
            ("repairs", &|row| Cell::Number(row.with.each(|outcome| outcome.repairs))),
            ("recovered", &|row| Cell::Number(row.with.each(|outcome| outcome.recovered))),
        ],
    )
}

/// A row for each policy and controller, with the bytes of each kind of download.
fn lossless_table(compared: &[Compared], policies: &[&'static str]) -> Table {
    let rows = policies.iter().flat_map(|policy| {
        CONTROLLERS.map(|congestion| {
            let own = |row: &&Compared| row.policy == *policy && row.setup.congestion == congestion;
            compared.iter().filter(own).collect::<Vec<_>>()
        })
    });
    let rows: Vec<Vec<&Compared>> = rows.filter(|row| !row.is_empty()).collect();
    let time = |row: &[&Compared]| {
        Cell::Number(row.iter().map(|compared| compared.time_ratio(0.5)).fold(0.0, f64::max))
    };
    let repairs = |row: &[&Compared]| {
        Cell::Number(mean(row.iter().map(|compared| compared.with.each(|o| o.repairs))))
    };
    let header = ["policy", "adapts", "controller", "largest time"].map(str::to_owned);
    let bytes = WORKS.map(|work| format!("bytes {}", work.name()));
    let header = header.into_iter().chain(bytes).chain(["repairs".to_owned()]);
    let mut table = Table::new("Every policy without loss, divided by none", header);
    for row in &rows {
        let Some(Compared { policy, setup, .. }) = row.first() else { continue };
        let adapts = if FIXED.contains(policy) { "no" } else { "yes" };
        let label = [Cell::from(*policy), adapts.into(), setup.congestion.to_string().into()];
        let bytes = row.iter().map(|compared| Cell::Number(compared.wire_ratio()));
        table.row(label.into_iter().chain([time(row)]).chain(bytes).chain([repairs(row)]));
    }
    table
}

fn text(lossy: &[Compared]) -> Vec<String> {
    let seeds = lossy.first().map_or(0, |compared| compared.plain.outcomes.len());
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

    fn setup(losses: Losses, work: Work) -> Setup {
        Setup { losses, congestion: Algorithm::BBR, work }
    }

    /// Without loss, a policy that adapts leaves every packet as it is.
    #[test]
    fn what_adapts_costs_nothing_without_loss() {
        let work = Work { bytes: 300_000, requests: 3 };
        let compared =
            compare(&Options::default(), &[setup(Losses::None, work)], &[AUTO, "tail"], 2).unwrap();
        let [auto, tail] = &compared[..] else { panic!("two policies") };
        assert_eq!(auto.with.times, auto.plain.times);
        assert_eq!((auto.wire_ratio(), auto.with.each(|o| o.repairs)), (1.0, 0.0));
        assert!(tail.wire_ratio() > 1.0 && tail.with.each(|o| o.repairs) == 3.0);
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
        let work = Work { bytes: 100_000, requests: 20 };
        let compared =
            compare(&Options::default(), &[setup(Losses::Random(0.05), work)], &[AUTO], 4).unwrap();
        let with = &compared[0].with;
        assert_eq!(with.times.len(), 80);
        assert!(with.each(|o| o.repairs) > 0.5 && with.each(|o| o.recovered) > 0.05);
    }

    /// With loss, no size takes longer with `auto`, and requests on a connection that knows the losses less.
    #[test]
    fn auto_does_no_harm_with_loss() {
        let losses = [Losses::Random(0.05), Losses::Bursts(0.05)];
        let one = Work { bytes: 1_000_000, requests: 1 };
        let series = Work { bytes: 100_000, requests: 20 };
        for losses in losses {
            let setups = [setup(losses, one), setup(losses, series)];
            let compared = compare(&Options::default(), &setups, &[AUTO], 12).unwrap();
            let [one, series] = &compared[..] else { panic!("two kinds of work") };
            assert!(one.time_ratio(0.5) < 1.02, "{losses:?}: {}", one.time_ratio(0.5));
            assert!(series.time_ratio(0.9) < 0.95, "{losses:?}: {}", series.time_ratio(0.9));
        }
    }
}
