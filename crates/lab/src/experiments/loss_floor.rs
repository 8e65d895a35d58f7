//! How well a sender tells the losses that do not depend on its rate from those that it causes.

use std::sync::Arc;

use sutura_analysis::report::Report;
use sutura_analysis::table::{Cell, Table};
use sutura_link::LinkConfig;
use sutura_proto::policy::LossFloor;
use sutura_proto::{Algorithm, TransportConfig};
use sutura_sim::{FailureKind, Scenario, Transfer};

use super::Experiment;
use super::paper_path::seed;
use crate::{Error, Options, parallel};

/// Bytes of the transfers, a connection each: about a hundred packets, a thousand, ten thousand.
const BYTES: [u64; 3] = [120_000, 1_200_000, 12_000_000];
/// Transfers of each size over each path.
const TRANSFERS: u64 = 20;
/// The share of packets that is lost at random on the way to the client.
const LOSSES: [f64; 5] = [0.0, 0.005, 0.0235, 0.05, 0.1];
/// Queues in front of the link of 10 Mbit/s and 100 ms, and its name.
const QUEUES: [(&str, u64); 3] = [("0.1", 12_500), ("0.5", 62_500), ("2", 250_000)];
/// Packets that are lost in a row in bursts, on average.
const BURST: f64 = 3.0;

/// A path and what is sent over it.
#[derive(Clone, Debug)]
struct Setup {
    congestion: Algorithm,
    loss: f64,
    bursts: bool,
    queue: (&'static str, u64),
    bytes: u64,
}

impl Setup {
    fn down(&self) -> Result<LinkConfig, Error> {
        let loss = match (self.loss, self.bursts) {
            (0.0, _) => "none".to_owned(),
            (loss, false) => format!("bern:{loss}"),
            (loss, true) => {
                let end = 1.0 / BURST;
                format!("ge:{},{end},1,0", end * loss / (1.0 - loss))
            }
        };
        let (_, queue) = self.queue;
        Ok(format!("rate=10mbit delay=50ms queue={queue}b loss={loss}").parse()?)
    }
}

/// What a sender knew at the end of a transfer.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    floor: LossFloor,
    /// Share of packets that the queue dropped.
    dropped: f64,
}

/// `None` if the connection broke: a burst may outlast all probes of the idle timeout.
fn transfer(setup: &Setup, seed: u64) -> Result<Option<Outcome>, Error> {
    let up: LinkConfig = "rate=10mbit delay=50ms queue=187500b".parse()?;
    let transport = TransportConfig {
        congestion: Arc::new(setup.congestion),
        send_buffer: 4 << 20,
        ..TransportConfig::default()
    };
    let scenario = Scenario::new(seed).link(&up, &setup.down()?).transport(&transport);
    let ends = match scenario.transfer(Transfer::download(setup.bytes)).run() {
        Ok(outcome) => outcome.ends,
        Err(failure) if matches!(failure.kind, FailureKind::ConnectionLost(_)) => return Ok(None),
        Err(failure) => return Err(failure.into()),
    };
    Ok(Some(Outcome {
        floor: ends.server.loss_floor,
        dropped: ends.down.overflow as f64 / ends.down.sent.max(1) as f64,
    }))
}

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "loss-floor",
    about: "How well a sender tells random loss from the losses of a queue",
    run,
};

/// Every controller over every path, a row for each.
fn run(options: &Options) -> Result<Report, Error> {
    let mut paths = Vec::new();
    for congestion in [Algorithm::CUBIC, Algorithm::BBR] {
        for queue in QUEUES {
            for (loss, bursts) in LOSSES.into_iter().flat_map(|loss| [(loss, false), (loss, true)])
            {
                if loss > 0.0 || !bursts {
                    paths.push(Setup { congestion, loss, bursts, queue, bytes: 0 });
                }
            }
        }
    }
    let of_path = |path: &Setup| BYTES.map(|bytes| Setup { bytes, ..path.clone() });
    let setups: Vec<_> = paths.iter().flat_map(of_path).collect();
    let outcomes = parallel::repeat(options, &setups, options.reduced(TRANSFERS), |setup, n| {
        transfer(setup, seed(options.seed, n))
    })?;
    let outcomes: Vec<Vec<_>> =
        outcomes.into_iter().map(|all| all.into_iter().flatten().collect()).collect();
    let rows: Vec<_> = paths.iter().zip(outcomes.chunks(BYTES.len())).collect();
    Ok(report(&rows))
}

/// The mean of what is taken from each outcome.
fn mean(outcomes: &[Outcome], value: impl Fn(&Outcome) -> f64) -> f64 {
    outcomes.iter().map(value).sum::<f64>() / outcomes.len().max(1) as f64
}

/// A path, and the outcomes of the transfers of each size.
type Row<'a> = (&'a Setup, &'a [Vec<Outcome>]);

fn report(rows: &[Row<'_>]) -> Report {
    let error = |(setup, sizes): &Row<'_>, size: usize| {
        let outcomes = &sizes[size];
        let floor = mean(outcomes, |o| o.floor.rate);
        let error = mean(outcomes, |o| (o.floor.rate - setup.loss).abs());
        format!("{:.2} % ± {:.2}", floor * 100.0, error * 100.0).into()
    };
    let held = |(setup, sizes): &Row<'_>| {
        let all: Vec<_> = sizes.iter().flatten().collect();
        let holds = |o: &&&Outcome| o.floor.low <= setup.loss && setup.loss <= o.floor.high;
        all.iter().filter(holds).count() as f64 / all.len().max(1) as f64
    };
    let last = BYTES.len() - 1;
    let table = Table::of(
        "Estimates at the end of a transfer",
        rows,
        &[
            ("congestion", &|(setup, _)| setup.congestion.to_string().into()),
            ("queue", &|(setup, _)| setup.queue.0.into()),
            ("loss", &|(setup, _)| Cell::Share(setup.loss)),
            ("kind", &|(setup, _)| if setup.bursts { "bursts" } else { "random" }.into()),
            ("120 kB", &|row| error(row, 0)),
            ("1.2 MB", &|row| error(row, 1)),
            ("12 MB", &|row| error(row, 2)),
            ("in bounds", &|row| Cell::Share(held(row))),
            ("dropped", &|(_, sizes)| Cell::Share(mean(&sizes[last], |o| o.dropped))),
            ("excess", &|(_, sizes)| Cell::Share(mean(&sizes[last], |o| o.floor.excess))),
        ],
    );
    Report {
        title: "Losses that do not depend on the rate, as a sender estimates them".to_owned(),
        text: vec![
            format!(
                "Downloads on fresh connections over 10 Mbit/s and a round-trip time of 100 ms, \
                 with queues in bandwidth-delay products, {TRANSFERS} of each size. Losses are on \
                 the way to the client, independent or in bursts of {BURST} packets on average."
            ),
            "The estimate is the mean over the connections, and after it the mean of its error. `in \
             bounds` is how often the true share was within the bounds of nine in ten, over all \
             sizes. `dropped` is what the queue dropped during the long transfers; none of that \
             may be in the estimate. `excess` is what the sender saw of it. Connections that broke \
             are left out: with few packets in flight, a burst may outlast all probes."
                .to_owned(),
        ],
        tables: vec![table],
        ..Report::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOSS: f64 = 0.0235;
    /// Fifty connections lose some 150 packets that met an empty queue, at the least: the mean of their
    /// estimates strays by a twelfth if losses are independent, and by a fifth in bursts of three.
    const SEEDS: u64 = 50;

    /// Connections of 1.2 MB each.
    fn outcomes(congestion: Algorithm, loss: f64, bursts: bool, queue: usize) -> Vec<Outcome> {
        let setup = Setup { congestion, loss, bursts, queue: QUEUES[queue], bytes: BYTES[1] };
        (0..SEEDS).filter_map(|n| transfer(&setup, seed(1, n)).unwrap()).collect()
    }

    /// How many of the connections know of `loss` within their bounds.
    fn held(outcomes: &[Outcome], loss: f64) -> usize {
        outcomes.iter().filter(|o| o.floor.low <= loss && loss <= o.floor.high).count()
    }

    fn each_controller(queues: &[usize], check: impl Fn(Algorithm, usize)) {
        for congestion in [Algorithm::CUBIC, Algorithm::BBR] {
            queues.iter().for_each(|queue| check(congestion, *queue));
        }
    }

    #[test]
    fn what_the_queue_drops_is_not_in_the_estimate() {
        each_controller(&[1], |congestion, queue| {
            let outcomes = outcomes(congestion, 0.0, false, queue);
            assert!(mean(&outcomes, |o| o.dropped) > 0.05, "{congestion}");
            for Outcome { floor, .. } in outcomes {
                assert!(floor.rate == 0.0 && floor.high < 0.11, "{congestion}: {floor:?}");
            }
        });
    }

    #[test]
    fn what_the_path_loses_is_in_the_estimate_and_within_its_bounds() {
        each_controller(&[1, 2], |congestion, queue| {
            let outcomes = outcomes(congestion, LOSS, false, queue);
            let rate = mean(&outcomes, |o| o.floor.rate);
            assert!((0.75 * LOSS..1.25 * LOSS).contains(&rate), "{congestion}, {queue}: {rate}");
            // Of bounds for nine in ten, 41 of 50 or fewer hold in a case of twenty.
            let held = held(&outcomes, LOSS);
            assert!(held > 41, "{congestion}, {queue}: {held} of {}", outcomes.len());
            let width = mean(&outcomes, |o| o.floor.high - o.floor.low);
            assert!(width < 0.1, "{congestion}, {queue}: {width}");
        });
    }

    #[test]
    fn bursts_are_within_its_bounds_too() {
        each_controller(&[1], |congestion, queue| {
            let outcomes = outcomes(congestion, LOSS, true, queue);
            let rate = mean(&outcomes, |o| o.floor.rate);
            assert!((0.5 * LOSS..1.5 * LOSS).contains(&rate), "{congestion}: {rate}");
            let held = held(&outcomes, LOSS);
            assert!(held > 41, "{congestion}: {held} of {}", outcomes.len());
        });
    }

    /// What an estimate of few packets is worth: most of what a sender has in flight while slow start fills a long
    /// queue says nothing of the floor.
    #[test]
    fn a_short_connection_knows_little_and_says_so() {
        let width = |size: usize| {
            let queue = QUEUES[2];
            let setup = Setup {
                congestion: Algorithm::BBR,
                loss: LOSS,
                bursts: false,
                queue,
                bytes: BYTES[size],
            };
            let outcomes = (0..10).map(|n| transfer(&setup, seed(1, n)).unwrap());
            let outcomes: Vec<Outcome> = outcomes.flatten().collect();
            mean(&outcomes, |o| o.floor.high - o.floor.low)
        };
        let [shortest, short] = [0, 1].map(width);
        assert!(shortest > 2.0 * short && short > 2.0 * LOSS, "{shortest} {short}");
    }
}
