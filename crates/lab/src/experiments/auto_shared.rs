//! Whether redundancy that sets itself takes bandwidth from other flows: three flows at a drop-tail
//! bottleneck, of which none, one or all use it.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sutura_analysis::interval::Estimate;
use sutura_analysis::statistics::mean;
use sutura_proto::{Algorithm, Protection};

use super::controllers::bed::{Flow, FlowOutcome};
use super::controllers::sender::Sender;
use super::controllers_shared::{Figures, LENGTH, RATE, STAGGER, share};
use crate::comparison::{Runs, mean_within, pooled, protection, seed};
use crate::report::{Cell, Report, Table, report_of};
use crate::{Error, Options};

/// How many flows share the bottleneck.
const FLOWS: usize = 3;
/// How many of them use `auto`.
const PROTECTED: [usize; 3] = [0, 1, FLOWS];
const CONTROLLERS: [Algorithm; 2] = [Algorithm::BBR, Algorithm::CUBIC];
/// Shares of packets that are lost at random.
const LOSSES: [f64; 2] = [0.0, 0.02];
/// Bytes of each download of a flow with pauses. A third of the bottleneck carries them in 600 ms.
const PIECE: u64 = 250_000;
/// How long a flow with pauses waits between two downloads.
const PAUSE: Duration = Duration::from_millis(200);
/// Runs of each configuration.
const SEEDS: u64 = 20;

named! {
    /// The downloads of each flow.
    enum Demand {
        /// More than the bottleneck carries.
        Endless = "endless",
        /// A piece after the other, with pauses.
        Pieces = "with pauses",
    }
}

/// Flows that share a link, some of which use `auto`.
#[derive(Clone, Copy, Debug)]
struct Sharing {
    congestion: Algorithm,
    loss: f64,
    kind: Demand,
    /// How many flows use `auto`.
    protected: usize,
}

impl Sharing {
    fn all() -> Vec<Self> {
        let mut setups = Vec::new();
        for congestion in CONTROLLERS {
            for loss in LOSSES {
                for kind in Demand::ALL {
                    let of_path = |protected| Self { congestion, loss, kind, protected };
                    setups.extend(PROTECTED.map(of_path));
                }
            }
        }
        setups
    }

    /// Which flows use `auto` in run number `n`. Each has its turn, since it matters who begins.
    fn is_protected(&self, flow: usize, n: u64) -> bool {
        let turn = usize::try_from(n % FLOWS as u64).unwrap_or_default();
        (flow + FLOWS - turn) % FLOWS < self.protected
    }

    fn run(&self, length: Duration, n: u64, seed: u64) -> Result<Shared, Error> {
        let auto = protection(Some("auto"))?;
        let [plain, with] = [None, auto].map(|protection: Option<Protection>| Sender::Ours {
            congestion: Arc::new(self.congestion),
            protection,
        });
        let (bytes, pause) = match self.kind {
            Demand::Endless => (RATE / 4 * length.as_secs().max(1), None),
            Demand::Pieces => (PIECE, Some(PAUSE)),
        };
        let apart = length / STAGGER / FLOWS as u32;
        let flow = |(index, start): (usize, u32)| {
            let sender = if self.is_protected(index, n) { &with } else { &plain };
            Flow { sender, bytes, pause, start: apart * start }
        };
        let flows: Vec<_> = (0..FLOWS).zip(0..).map(flow).collect();
        let outcomes = share(&flows, self.loss, length, seed)?;
        let protected = (0..FLOWS).map(|index| self.is_protected(index, n)).collect();
        Ok(Shared::new(protected, outcomes, length))
    }
}

/// The outcome of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Shared {
    /// Which flows use `auto`.
    protected: Vec<bool>,
    /// The times of all downloads of each flow that were completed.
    downloads: Vec<Vec<Duration>>,
    /// Repair symbols of all flows.
    repairs: u64,
    figures: Figures,
}

impl Shared {
    fn new(protected: Vec<bool>, outcomes: Vec<FlowOutcome>, length: Duration) -> Self {
        Self {
            protected,
            downloads: outcomes.iter().map(|outcome| outcome.downloads.clone()).collect(),
            repairs: outcomes.iter().map(|outcome| outcome.repairs).sum(),
            figures: Figures::of(outcomes, RATE, length),
        }
    }

    /// The throughput of the flows with `auto`, or of the other flows, divided by the mean of all.
    fn share(&self, protected: bool) -> Option<f64> {
        let flows = self.figures.shares.iter().zip(&self.protected);
        let own: Vec<f64> =
            flows.filter(|(_, is)| **is == protected).map(|(share, _)| *share).collect();
        (!own.is_empty()).then(|| mean(own) / self.figures.utilisation())
    }
}

/// The runs of one configuration.
type SharedRuns = Runs<Sharing, Shared>;

impl SharedRuns {
    fn share(&self, protected: bool) -> Option<Estimate> {
        let shares: Vec<f64> = self.runs.iter().filter_map(|run| run.share(protected)).collect();
        (!shares.is_empty()).then(|| mean_within(shares))
    }

    /// A quantile of the times of the downloads of the flows with `auto`, or of the other flows.
    fn time(&self, protected: bool, q: f64) -> Option<Cell> {
        let flows = self.runs.iter().flat_map(|run| run.downloads.iter().zip(&run.protected));
        let own = flows.filter(|(_, is)| **is == protected).map(|(times, _)| times.as_slice());
        let times = pooled(own, |time| (*time, 1));
        (times.total() > 0).then(|| times.cell(q))
    }
}

fn measure(
    setups: &[Sharing],
    length: Duration,
    options: &Options,
) -> Result<Vec<SharedRuns>, Error> {
    Runs::measure(options, setups, options.seeds(SEEDS), |setup, n| {
        setup.run(length, n, seed(options.seed, 1 + n))
    })
}

experiment! {
    "auto-shared": "Whether redundancy that sets itself takes from other flows at a bottleneck" (Seeds),
    one in 10 takes 28 s
}

fn run(options: &Options) -> Result<Report, Error> {
    Ok(report(&measure(&Sharing::all(), LENGTH, options)?))
}

fn report(summaries: &[SharedRuns]) -> Report {
    let table = Table::of(
        format!("{FLOWS} flows at a bottleneck"),
        summaries,
        &[
            ("controller", &|s| s.setup.congestion.to_string().into()),
            ("random loss", &|s| Cell::Share(s.setup.loss)),
            ("downloads", &|s| s.setup.kind.name().into()),
            ("with auto", &|s| (s.setup.protected as u64).into()),
            ("share with", &|s| s.share(true).map(Cell::NumberWithin).into()),
            ("without", &|s| s.share(false).map(Cell::NumberWithin).into()),
            ("Jain", &|s| s.mean_cell(|run| run.figures.jain())),
            ("utilisation", &|s| s.mean_share_cell(|run| run.figures.utilisation())),
            ("lost in queue", &|s| s.mean_share_cell(|run| run.figures.overflow)),
            ("queue delay", &|s| s.mean_millis_cell(|run| run.figures.queue_delay)),
            ("repairs", &|s| s.mean_cell(|run| run.repairs as f64)),
            ("time p50 with", &|s| s.time(true, 0.5).into()),
            ("without", &|s| s.time(false, 0.5).into()),
            ("p95 with", &|s| s.time(true, 0.95).into()),
            ("without", &|s| s.time(false, 0.95).into()),
        ],
    );
    report_of(
        "Whether redundancy that sets itself takes from others",
        &text(summaries),
        [table],
        [],
    )
}

fn text(summaries: &[SharedRuns]) -> Vec<String> {
    let runs = summaries.first().map_or(0, |summary| summary.runs.len());
    vec![
        format!(
            "Three flows share 10 Mbit/s, a round-trip time of 100 ms and a drop-tail queue of one \
             bandwidth-delay product for {} s, of which none, one or all use `auto`. They begin one \
             after the other within the first sixth; figures count from a third on, lost packets from \
             the beginning. Means of {runs} runs; the one with `auto` is the first, the second and \
             the third to begin by turns. Flows with pauses download {} kB, wait for {} ms, and \
             begin again.",
            LENGTH.as_secs(),
            PIECE / 1000,
            PAUSE.as_millis()
        ),
        "A share is the throughput of a flow, in UDP payload that arrives, divided by the mean of the \
         three. Repairs are the repair symbols of a run; times are those of the downloads that were \
         completed."
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_flow_has_its_turn_with_auto() {
        let setup = |protected| Sharing {
            congestion: Algorithm::BBR,
            loss: 0.0,
            kind: Demand::Endless,
            protected,
        };
        let flows = |protected, n| [0, 1, 2].map(|flow| setup(protected).is_protected(flow, n));
        assert_eq!(flows(0, 1), [false; 3]);
        assert_eq!(
            [0, 1, 2, 3].map(|n| flows(1, n)),
            [
                [true, false, false],
                [false, true, false],
                [false, false, true],
                [true, false, false],
            ]
        );
        assert_eq!(flows(3, 2), [true; 3]);
    }

    #[test]
    fn auto_protects_and_leaves_the_others_their_share() {
        let setups = Sharing::all().into_iter();
        let wanted = |s: &Sharing| s.kind == Demand::Pieces && s.loss > 0.0 && s.protected == 1;
        let setups: Vec<Sharing> = setups.filter(wanted).collect();
        assert_eq!(setups.len(), CONTROLLERS.len());
        let options = Options { seeds: Some(3), ..Options::default() };
        for summary in measure(&setups, Duration::from_secs(20), &options).unwrap() {
            let name = summary.setup.congestion.to_string();
            let [with, without] = [true, false].map(|is| summary.share(is).unwrap().value);
            assert!((with + 2.0 * without - 3.0).abs() < 1e-9, "{name}: {with}, {without}");
            assert!(with < 1.3, "{name}: {with}");
            assert!(summary.mean(|run| run.repairs as f64) > 5.0, "{name}");
        }
    }
}
