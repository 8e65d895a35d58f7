//! How well a sender tells the losses that do not depend on its rate from the losses that it causes.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sutura_analysis::interval;
use sutura_link::LinkConfig;
use sutura_proto::{Algorithm, TransportConfig};
use sutura_sim::{Scenario, Transfer};

use crate::comparison::{Runs, mean_of, seed, unless_broken};
use crate::report::{Cell, Report, Table, report_of};
use crate::{Error, Options};

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

/// A path and a transfer over it.
#[derive(Clone, Debug)]
struct Floored {
    congestion: Algorithm,
    loss: f64,
    bursts: bool,
    queue: (&'static str, u64),
    bytes: u64,
}

impl Floored {
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

/// A sender's estimate at the end of a transfer.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Estimate {
    /// The share of packets that it holds to be lost whatever the rate, and its bounds.
    rate: f64,
    low: f64,
    high: f64,
    /// The share that it holds to be lost in addition while the queue is not empty.
    excess: f64,
    /// Share of packets that the queue dropped.
    dropped: f64,
}

/// `None` if the connection broke.
fn transfer(setup: &Floored, seed: u64) -> Result<Option<Estimate>, Error> {
    let up: LinkConfig = "rate=10mbit delay=50ms queue=187500b".parse()?;
    let transport = TransportConfig::default()
        .with_congestion(Arc::new(setup.congestion))
        .with_send_buffer(4 << 20);
    let scenario = Scenario::new(seed).link(&up, &setup.down()?).transport(&transport);
    let outcome = unless_broken(scenario.transfer(Transfer::download(setup.bytes)).run())?;
    Ok(outcome.map(|outcome| {
        let floor = outcome.ends.server.loss_floor;
        Estimate {
            rate: floor.rate,
            low: floor.low,
            high: floor.high,
            excess: floor.excess,
            dropped: outcome.ends.down.overflow as f64 / outcome.ends.down.sent.max(1) as f64,
        }
    }))
}

experiment! {
    "loss-floor": "How well a sender tells random loss from the losses of a queue",
    one in 10 takes 11 s
}

/// Every controller over every path, a row for each.
fn run(options: &Options) -> Result<Report, Error> {
    let mut paths = Vec::new();
    for congestion in [Algorithm::CUBIC, Algorithm::BBR] {
        for queue in QUEUES {
            for (loss, bursts) in LOSSES.into_iter().flat_map(|loss| [(loss, false), (loss, true)])
            {
                if loss > 0.0 || !bursts {
                    paths.push(Floored { congestion, loss, bursts, queue, bytes: 0 });
                }
            }
        }
    }
    let of_path = |path: &Floored| BYTES.map(|bytes| Floored { bytes, ..path.clone() });
    let setups: Vec<_> = paths.iter().flat_map(of_path).collect();
    let all = Runs::measure(options, &setups, options.reduced(TRANSFERS), |setup, n| {
        transfer(setup, seed(options.seed, n))
    })?;
    let estimates: Vec<Vec<_>> =
        all.into_iter().map(|of| of.runs.into_iter().flatten().collect()).collect();
    let rows: Vec<_> = paths.iter().zip(estimates.chunks(BYTES.len())).collect();
    Ok(report(&rows))
}

/// A path, and the outcomes of the transfers of each size.
type OfPath<'a> = (&'a Floored, &'a [Vec<Estimate>]);

fn report(rows: &[OfPath<'_>]) -> Report {
    let error = |(setup, sizes): &OfPath<'_>, size: usize| {
        let outcomes = &sizes[size];
        let floor = mean_of(outcomes, |o| o.rate);
        let error = mean_of(outcomes, |o| (o.rate - setup.loss).abs());
        format!("{:.2} % ± {:.2}", floor * 100.0, error * 100.0).into()
    };
    let held = |(setup, sizes): &OfPath<'_>| {
        let all: Vec<_> = sizes.iter().flatten().collect();
        let held = all.iter().filter(|o| o.low <= setup.loss && setup.loss <= o.high).count();
        Cell::ShareWithin(interval::Estimate::of_share(held, all.len()))
    };
    let share = |outcomes: &[Estimate], share: fn(&Estimate) -> f64| {
        let shares: Vec<f64> = outcomes.iter().map(share).collect();
        Cell::ShareWithin(interval::Estimate::of_mean_share(&shares))
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
            ("in bounds", &|row| held(row)),
            ("dropped", &|(_, sizes)| share(&sizes[last], |o| o.dropped)),
            ("excess", &|(_, sizes)| share(&sizes[last], |o| o.excess)),
        ],
    );
    report_of(
        "Losses that do not depend on the rate, as a sender estimates them",
        &[
            &format!(
                "Downloads on fresh connections over 10 Mbit/s and a round-trip time of 100 ms, \
                 with queues in bandwidth-delay products, {TRANSFERS} of each size. Losses are on \
                 the way to the client, independent or in bursts of {BURST} packets on average."
            ),
            "The estimate is the mean over the connections, and after it the mean of its error. `in \
             bounds` is how often the true share was within the bounds of nine in ten, over all \
             sizes. `dropped` is what the queue dropped during the long transfers; none of that \
             may be in the estimate. `excess` is what the sender saw of it. Connections that broke \
             are left out: with few packets in flight, a burst may outlast all probes.",
        ],
        [table],
        [],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOSS: f64 = 0.0235;
    /// Fifty connections lose some 150 packets that met an empty queue, at the least: the mean of their
    /// estimates strays by a twelfth if losses are independent, and by a fifth in bursts of three.
    const SEEDS: u64 = 50;

    fn transfers(setup: &Floored, count: u64) -> Vec<Estimate> {
        (0..count).filter_map(|n| transfer(setup, seed(1, n)).unwrap()).collect()
    }

    /// Connections of 1.2 MB each.
    fn outcomes(congestion: Algorithm, loss: f64, bursts: bool, queue: usize) -> Vec<Estimate> {
        let queue = QUEUES[queue];
        transfers(&Floored { congestion, loss, bursts, queue, bytes: BYTES[1] }, SEEDS)
    }

    /// How many of the connections know of `loss` within their bounds.
    fn held(outcomes: &[Estimate], loss: f64) -> usize {
        outcomes.iter().filter(|o| o.low <= loss && loss <= o.high).count()
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
            assert!(mean_of(&outcomes, |o| o.dropped) > 0.05, "{congestion}");
            for floor in outcomes {
                assert!(floor.rate == 0.0 && floor.high < 0.11, "{congestion}: {floor:?}");
            }
        });
    }

    #[test]
    fn what_the_path_loses_is_in_the_estimate_and_within_its_bounds() {
        each_controller(&[1, 2], |congestion, queue| {
            let outcomes = outcomes(congestion, LOSS, false, queue);
            let rate = mean_of(&outcomes, |o| o.rate);
            assert!((0.75 * LOSS..1.25 * LOSS).contains(&rate), "{congestion}, {queue}: {rate}");
            // Bounds that hold in nine of ten cases hold for 41 of 50 connections or fewer with a chance of
            // one in twenty.
            let held = held(&outcomes, LOSS);
            assert!(held > 41, "{congestion}, {queue}: {held} of {}", outcomes.len());
            let width = mean_of(&outcomes, |o| o.high - o.low);
            assert!(width < 0.1, "{congestion}, {queue}: {width}");
        });
    }

    #[test]
    fn bursts_are_within_its_bounds_too() {
        each_controller(&[1], |congestion, queue| {
            let outcomes = outcomes(congestion, LOSS, true, queue);
            let rate = mean_of(&outcomes, |o| o.rate);
            assert!((0.5 * LOSS..1.5 * LOSS).contains(&rate), "{congestion}: {rate}");
            let held = held(&outcomes, LOSS);
            assert!(held > 41, "{congestion}: {held} of {}", outcomes.len());
        });
    }

    /// The value of an estimate from few packets: most packets that a sender has in flight while slow start
    /// fills a long queue tell nothing about the floor.
    #[test]
    fn a_short_connection_knows_little_and_says_so() {
        let width = |size: usize| {
            let (congestion, queue, bytes) = (Algorithm::BBR, QUEUES[2], BYTES[size]);
            let setup = Floored { congestion, loss: LOSS, bursts: false, queue, bytes };
            let outcomes = transfers(&setup, 10);
            mean_of(&outcomes, |o| o.high - o.low)
        };
        let [shortest, short] = [0, 1].map(width);
        assert!(shortest > 2.0 * short && short > 2.0 * LOSS, "{shortest} {short}");
    }
}
