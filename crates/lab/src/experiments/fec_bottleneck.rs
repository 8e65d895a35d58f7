//! One transfer over a bottleneck with each congestion controller and each protection: the cost of repair
//! symbols where the sender is never idle, and whether the controllers still learn the path.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sutura_link::LinkConfig;
use sutura_proto::{Algorithm, Protection, TransportConfig};
use sutura_sim::{Scenario, Transfer};

use super::paper_path::protection;
use crate::comparison::{Runs, seed};
use crate::report::{Cell, Report, Table, report_of};
use crate::{Error, Options};

/// Bytes of a transfer.
const BYTES: u64 = 10_000_000;
/// Transfers of each configuration, a connection each.
const TRANSFERS: u64 = 5;
/// Rate and delay of the path, and a queue of one and a half bandwidth-delay products.
const PATH: &str = "rate=10mbit delay=50ms queue=187500b";
/// Round-trip times count from here on: the first search for the bandwidth is over by then.
const SETTLED: Duration = Duration::from_secs(2);

/// The configuration of a sender over the path.
#[derive(Clone, Debug)]
struct Bottleneck {
    /// The congestion controller at both ends.
    congestion: Algorithm,
    /// How the transfer is protected.
    protection: Option<Protection>,
    /// Share of the packets that the path loses at random, on the way to the client.
    loss: f64,
}

/// The outcome of one transfer.
#[derive(Serialize, Deserialize)]
struct Slowed {
    /// When the transfer was over, the handshake included.
    over: Duration,
    /// Bytes of repair symbols, and of stream data that was sent again.
    repair: u64,
    resent: u64,
    /// Datagrams of the server, and those that were lost.
    sent: u64,
    lost: u64,
    slowed: Option<Duration>,
    rtts: Vec<Duration>,
}

impl Slowed {
    /// Share of the server's datagrams that were lost, at random or for want of room in the queue.
    fn lost(&self) -> f64 {
        self.lost as f64 / self.sent.max(1) as f64
    }
}

fn transfer(setup: &Bottleneck, seed: u64) -> Result<Slowed, Error> {
    let up: LinkConfig = PATH.parse()?;
    let down = format!("{PATH} loss=bern:{}", setup.loss).parse()?;
    let transport = TransportConfig::default()
        .with_congestion(Arc::new(setup.congestion))
        // Enough for longer than a round trip with a full queue.
        .with_send_buffer(4 << 20);
    let scenario = Scenario::new(seed).link(&up, &down).transport(&transport);
    let scenario = scenario.protect(setup.protection.clone());
    let watched = scenario.transfer(Transfer::download(BYTES)).watched()?;
    let later = watched.metrics.iter().filter(|(at, _)| *at > SETTLED);
    let rtts = later.map(|(_, metrics)| metrics.smoothed_rtt).collect();
    let (slowed, ends) = (watched.slowed(), watched.ends);
    Ok(Slowed {
        over: ends.duration,
        repair: ends.server.fec.repair_bytes_sent,
        resent: ends.server.stream_bytes_retransmitted,
        sent: ends.down.sent,
        lost: ends.down.lost + ends.down.overflow,
        slowed,
        rtts,
    })
}

/// The transfers of one configuration.
type BottleneckRuns = Runs<Bottleneck, Slowed>;

/// Makes `count` transfers of each of `setups`, with the same seeds.
fn measure(
    setups: &[Bottleneck],
    count: u64,
    options: &Options,
) -> Result<Vec<BottleneckRuns>, Error> {
    Runs::measure(options, setups, count, |setup, n| transfer(setup, seed(options.seed, n)))
}

impl BottleneckRuns {
    /// Bytes transferred per second, the handshake included; the mean.
    fn goodput(&self) -> f64 {
        self.mean(|run| BYTES as f64 / run.over.as_secs_f64())
    }

    /// When the sender first slowed down: when its pacing rate, or its window if it names no rate, had fallen
    /// by a quarter. This is the end of BBR's Startup, and of slow start. The median; `None` if more than
    /// half of the transfers ended before.
    fn slowed(&self) -> Option<Duration> {
        let slowed = self.times(|run| run.slowed.unwrap_or(Duration::MAX)).quantile(0.5);
        Some(slowed).filter(|at| *at < Duration::MAX)
    }

    /// A count of bytes for each byte transferred.
    fn per_byte_cell(&self, bytes: fn(&Slowed) -> u64) -> Cell {
        self.mean_cell(|run| bytes(run) as f64 / BYTES as f64)
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

experiment! {
    "fec-bottleneck": "What repair symbols do to each congestion controller at a bottleneck",
    one in 10 takes 6 s
}

/// Every controller with every protection, without loss and with 1 %.
fn run(options: &Options) -> Result<Report, Error> {
    let mut setups = Vec::new();
    for loss in [0.0, 0.01] {
        for congestion in [Algorithm::NEW_RENO, Algorithm::CUBIC, Algorithm::BBR] {
            let of_one = protections().into_iter();
            setups.extend(of_one.map(|protection| Bottleneck { congestion, protection, loss }));
        }
    }
    Ok(report(&measure(&setups, options.reduced(TRANSFERS), options)?))
}

fn report(summaries: &[BottleneckRuns]) -> Report {
    let protection = |s: &BottleneckRuns| s.setup.protection.as_ref().map(ToString::to_string);
    let transfers = Table::of(
        "Transfers",
        summaries,
        &[
            ("loss", &|s| Cell::Share(s.setup.loss)),
            ("congestion", &|s| s.setup.congestion.to_string().into()),
            ("protection", &|s| protection(s).unwrap_or_else(|| "none".to_owned()).into()),
            ("goodput", &|s| format!("{:.2} Mbit/s", s.goodput() * 8.0 / 1e6).into()),
            ("slowed at", &|s| s.slowed().map_or("never".into(), Cell::from)),
            ("rtt p50", &|s| s.all_times(|run| &run.rtts).cell(0.5)),
            ("repair/byte", &|s| s.per_byte_cell(|run| run.repair)),
            ("resent/byte", &|s| s.per_byte_cell(|run| run.resent)),
            ("lost", &|s| s.mean_share_cell(Slowed::lost)),
        ],
    );
    report_of(
        "Repair symbols at a bottleneck, by congestion controller",
        &[
            &format!(
                "One download of {} MB on a fresh connection over 10 Mbit/s and a round-trip time \
                 of 100 ms, with a queue of 150 ms. Losses are random, on the way to the client.",
                BYTES / 1_000_000
            ),
            "`slowed at` is when the pacing rate, or the window of a controller that names no rate, \
             had first fallen by a quarter: BBR has left Startup then, and the others slow start. \
             The round-trip time is the sender's smoothed one after the first two seconds. Repair \
             and resent bytes are for each byte transferred.",
        ],
        [transfers],
        [],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(congestion: Algorithm, loss: f64) -> Vec<BottleneckRuns> {
        let of = |burst| Bottleneck {
            congestion,
            protection: protection(burst, Duration::ZERO, false),
            loss,
        };
        measure(&[of(0), of(3)], 1, &Options::default()).unwrap()
    }

    /// A sender that is never idle sends repair symbols at the end only, so that they cost it next to
    /// nothing, and its controller learns the path as it does without them.
    #[test]
    fn repair_at_the_end_costs_a_busy_sender_next_to_nothing() {
        for congestion in [Algorithm::NEW_RENO, Algorithm::CUBIC, Algorithm::BBR] {
            let summaries = pair(congestion, 0.0);
            let [without, with] = &summaries[..] else { panic!("two configurations") };
            let ratio = with.goodput() / without.goodput();
            assert!((0.99..=1.01).contains(&ratio), "{congestion}: {ratio}");
            let repair = with.mean(|run| run.repair as f64 / BYTES as f64);
            assert!(repair > 0.0 && repair < 0.002, "{congestion}: {repair}");
            let [before, after] = [without, with].map(|s| s.slowed().unwrap().as_secs_f64());
            assert!((after / before - 1.0).abs() < 0.05, "{congestion}: {before} {after}");
            let [before, after] = [without, with].map(|s| s.mean(Slowed::lost));
            assert!(after <= before + 0.002, "{congestion}: {after}");
        }
    }
}
