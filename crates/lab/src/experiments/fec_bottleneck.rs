//! One transfer over a bottleneck with each congestion controller and each protection: what repair
//! symbols cost where the sender is never idle, and whether the controllers still learn the path.

use std::sync::Arc;
use std::time::Duration;

use sutura_analysis::report::Report;
use sutura_analysis::statistics::Distribution;
use sutura_analysis::table::{Cell, Table};
use sutura_link::LinkConfig;
use sutura_proto::{Algorithm, Metrics, Protection, TransportConfig};
use sutura_sim::{
    BulkClient, BulkServer, Clock, Ends, Figures, Observed, Progress, Scenario, Transfer,
};

use super::Experiment;
use super::paper_path::{protection, seed};
use crate::{Error, Options, parallel};

/// Bytes of a transfer.
const BYTES: u64 = 10_000_000;
/// Transfers of each configuration, a connection each.
const TRANSFERS: u64 = 5;
/// Rate and delay of the path, and a queue of one and a half times what it holds.
const PATH: &str = "rate=10mbit delay=50ms queue=187500b";
/// Round-trip times count from here on: the first search for the bandwidth is over by then.
const SETTLED: Duration = Duration::from_secs(2);

/// One configuration.
#[derive(Clone, Debug)]
struct Setup {
    /// The congestion controller at both ends.
    congestion: Algorithm,
    /// How the transfer is protected.
    protection: Option<Protection>,
    /// Share of the packets that the path loses at random, on the way to the client.
    loss: f64,
}

/// The outcome of one configuration.
#[derive(Clone, Debug)]
struct Summary {
    /// The configuration.
    setup: Setup,
    /// Bytes transferred per second, the handshake included; the mean.
    goodput: f64,
    /// When the sender first slowed down: when its pacing rate, or its window if it names no rate,
    /// had fallen by a quarter. That ends BBR's Startup, and slow start. The median; `None` if more than
    /// half of the transfers ended before.
    slowed: Option<Duration>,
    /// Smoothed round-trip times after two seconds, one for each acknowledgement.
    rtt: Distribution,
    /// Bytes of repair symbols for each byte transferred.
    repair: f64,
    /// Bytes of stream data sent again for each byte transferred.
    resent: f64,
    /// Share of the server's datagrams that were lost, at random or for want of room in the queue.
    lost: f64,
}

/// The outcome of one transfer.
struct Outcome {
    ends: Ends,
    slowed: Option<Duration>,
    rtts: Vec<Duration>,
}

fn transfer(setup: &Setup, seed: u64) -> Result<Outcome, Error> {
    let up: LinkConfig = PATH.parse()?;
    let down = format!("{PATH} loss=bern:{}", setup.loss).parse()?;
    let transport = TransportConfig {
        congestion: Arc::new(setup.congestion),
        // Enough for longer than a round trip with a full queue.
        send_buffer: 4 << 20,
        ..TransportConfig::default()
    };
    let clock = Clock::default();
    let figures = Figures::default();
    let client = BulkClient::new([Transfer::download(BYTES)], 1, Duration::ZERO);
    let server = {
        let (protection, figures) = (setup.protection.clone(), figures.clone());
        move || Observed::new(BulkServer::new(protection.clone()), figures.clone())
    };
    let scenario = Scenario::new(seed).link(&up, &down).transport(&transport);
    let ends = scenario.drive(clock, client, server, |view| {
        let busy = view.client.is_busy() || view.client.started() == 0;
        Progress { done: view.client.is_done(), busy }
    })?;
    let figures = figures.take().into_iter().map(|(at, metrics)| (clock.since_start(at), metrics));
    let figures: Vec<_> = figures.filter(|(at, _)| *at < ends.duration).collect();
    let later = figures.iter().filter(|(at, _)| *at > SETTLED);
    let rtts = later.map(|(_, metrics)| metrics.smoothed_rtt).collect();
    Ok(Outcome { ends, slowed: first_slowed(&figures), rtts })
}

fn first_slowed(figures: &[(Duration, Metrics)]) -> Option<Duration> {
    let mut peak = 0;
    let mut slowed = figures.iter().filter(|(_, metrics)| {
        let rate = metrics.pacing_rate.unwrap_or(metrics.congestion_window);
        peak = peak.max(rate);
        rate < peak / 4 * 3
    });
    slowed.next().map(|(at, _)| *at)
}

/// Makes `count` transfers of each of `setups`, with the same seeds.
fn measure(setups: &[Setup], count: u64, options: &Options) -> Result<Vec<Summary>, Error> {
    let outcomes = parallel::repeat(options, setups, count, |setup, n| {
        transfer(setup, seed(options.seed, n))
    })?;
    Ok(setups.iter().zip(&outcomes).map(|(setup, outcomes)| summarize(setup, outcomes)).collect())
}

fn summarize(setup: &Setup, outcomes: &[Outcome]) -> Summary {
    let sum = |value: &dyn Fn(&Ends) -> f64| -> f64 {
        outcomes.iter().map(|outcome| value(&outcome.ends)).sum()
    };
    let bytes = (BYTES * outcomes.len() as u64) as f64;
    let slowed = outcomes.iter().map(|outcome| outcome.slowed.unwrap_or(Duration::MAX));
    let slowed = Some(Distribution::of(slowed).quantile(0.5)).filter(|at| *at < Duration::MAX);
    Summary {
        setup: setup.clone(),
        goodput: sum(&|e| BYTES as f64 / e.duration.as_secs_f64()) / outcomes.len().max(1) as f64,
        slowed,
        rtt: Distribution::of(outcomes.iter().flat_map(|outcome| outcome.rtts.iter().copied())),
        repair: sum(&|e| e.server.fec.repair_bytes_sent as f64) / bytes,
        resent: sum(&|e| e.server.stream_bytes_retransmitted as f64) / bytes,
        lost: sum(&|e| (e.down.lost + e.down.overflow) as f64)
            / sum(&|e| e.down.sent as f64).max(1.0),
    }
}

fn protections() -> Vec<Option<Protection>> {
    let mut all = vec![None];
    for incremental in [false, true] {
        for burst in [1, 3] {
            let delays = [Duration::ZERO, Duration::from_millis(25)];
            all.extend(delays.map(|delay| protection(burst, delay, incremental)));
        }
    }
    all
}

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "fec-bottleneck",
    about: "What repair symbols do to each congestion controller at a bottleneck",
    run,
};

/// Every controller with every protection, without loss and with 1 %.
fn run(options: &Options) -> Result<Report, Error> {
    let mut setups = Vec::new();
    for loss in [0.0, 0.01] {
        for congestion in [Algorithm::NEW_RENO, Algorithm::CUBIC, Algorithm::BBR] {
            let of_one = protections().into_iter();
            setups.extend(of_one.map(|protection| Setup { congestion, protection, loss }));
        }
    }
    Ok(report(&measure(&setups, options.reduced(TRANSFERS), options)?))
}

fn report(summaries: &[Summary]) -> Report {
    let protection = |s: &Summary| s.setup.protection.as_ref().map(ToString::to_string);
    let transfers = Table::of(
        "Transfers",
        summaries,
        &[
            ("loss", &|s| Cell::Share(s.setup.loss)),
            ("congestion", &|s| s.setup.congestion.to_string().into()),
            ("protection", &|s| protection(s).unwrap_or_else(|| "none".to_owned()).into()),
            ("goodput", &|s| format!("{:.2} Mbit/s", s.goodput * 8.0 / 1e6).into()),
            ("slowed at", &|s| s.slowed.map_or("never".into(), Cell::from)),
            ("rtt p50", &|s| s.rtt.quantile(0.5).into()),
            ("repair/byte", &|s| Cell::Number(s.repair)),
            ("resent/byte", &|s| Cell::Number(s.resent)),
            ("lost", &|s| Cell::Share(s.lost)),
        ],
    );
    Report {
        title: "Repair symbols at a bottleneck, by congestion controller".to_owned(),
        text: vec![
            format!(
                "One download of {} MB on a fresh connection over 10 Mbit/s and a round-trip time \
                 of 100 ms, with a queue of 150 ms. Losses are random, on the way to the client.",
                BYTES / 1_000_000
            ),
            "`slowed at` is when the pacing rate, or the window of a controller that names no rate, \
             had first fallen by a quarter: BBR has left Startup then, and the others slow start. \
             The round-trip time is the sender's smoothed one after the first two seconds. Repair \
             and resent bytes are for each byte transferred."
                .to_owned(),
        ],
        tables: vec![transfers],
        ..Report::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(congestion: Algorithm, loss: f64) -> Vec<Summary> {
        let of = |burst| Setup {
            congestion,
            protection: protection(burst, Duration::ZERO, false),
            loss,
        };
        measure(&[of(0), of(3)], 1, &Options::default()).unwrap()
    }

    /// A sender that is never idle sends repair symbols at the end only, so that they cost it next to nothing,
    /// and its controller learns of the path what it does without.
    #[test]
    fn repair_at_the_end_costs_a_busy_sender_next_to_nothing() {
        for congestion in [Algorithm::NEW_RENO, Algorithm::CUBIC, Algorithm::BBR] {
            let summaries = pair(congestion, 0.0);
            let [without, with] = &summaries[..] else { panic!("two configurations") };
            let ratio = with.goodput / without.goodput;
            assert!((0.99..=1.01).contains(&ratio), "{congestion}: {ratio}");
            assert!(with.repair > 0.0 && with.repair < 0.002, "{congestion}: {}", with.repair);
            let [before, after] = [without, with].map(|s| s.slowed.unwrap().as_secs_f64());
            assert!((after / before - 1.0).abs() < 0.05, "{congestion}: {before} {after}");
            assert!(with.lost <= without.lost + 0.002, "{congestion}: {}", with.lost);
        }
    }
}
