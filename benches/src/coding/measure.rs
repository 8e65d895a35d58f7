//! The measurements under the conditions of one case.

use crate::Options;
use crate::case::Case;
use crate::replay::{Cost, Replay};
use crate::transfer::{self, Job, Transfer};
use serde::Serialize;
use std::time::Duration;
use sutura::Protection;
use sutura::policy::MAX_BURST;
use sutura_benches::Error;
use sutura_benches::tls::Identity;
use sutura_erasure::kernel::{Kernel, Tier};

/// Replays of which the best counts, with the kernel that the transfers use and with other kernels.
const REPEATS: usize = 5;
const OTHER_REPEATS: usize = 2;
/// Repair symbols per occasion with which the search begins.
const FIRST_BURST: u32 = 8;
/// Transfers that the search takes.
const SEARCHES: usize = 2;
/// Bytes of a transfer of the search.
const SEARCH_BYTES: u64 = 20_000_000;

/// One transfer without and one with repair symbols, and the replay after them.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Round {
    pub plain: Transfer,
    pub protected: Transfer,
    /// The replay's cost with the kernel that the transfers use.
    pub coding: Cost,
}

/// The cost of a replay with another kernel.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Other {
    pub tier: &'static str,
    pub coding: Cost,
}

/// The results of one case.
#[derive(Debug, Clone, Serialize)]
pub struct Measurement {
    pub rtt_ms: u64,
    /// Share of packets lost at random.
    pub loss: f64,
    pub burst: u32,
    /// The transfer whose symbols are replayed.
    pub recorded: Transfer,
    /// Source symbols that each repair symbol of the recorded transfer covers.
    pub mean_span: f64,
    pub max_span: u64,
    /// Symbols that the replay recovers.
    pub recovered: u64,
    /// The kernel that the transfers use.
    pub tier: &'static str,
    pub rounds: Vec<Round>,
    pub others: Vec<Other>,
}

fn seconds_per(packets: u64, cpu: f64) -> f64 {
    cpu / packets.max(1) as f64
}

impl Measurement {
    /// Seconds of coding per packet that the server sends and per packet that the client receives.
    pub fn coding_per_packet(&self, coding: &Cost) -> (f64, f64) {
        (
            seconds_per(self.recorded.server.packets_sent, coding.server),
            seconds_per(self.recorded.client.packets_received, coding.client),
        )
    }
}

impl Transfer {
    /// Seconds of CPU time per packet that the server sends and per packet that the client
    /// receives.
    pub fn cpu_per_packet(&self) -> (f64, f64) {
        (
            seconds_per(self.server.packets_sent, self.server.cpu),
            seconds_per(self.client.packets_received, self.client.cpu),
        )
    }

    pub fn cpu(&self) -> f64 {
        self.server.cpu + self.client.cpu
    }
}

/// Coding's shares of a protected transfer's CPU time.
#[derive(Debug, Clone, Copy)]
pub struct Shares {
    pub server: f64,
    pub client: f64,
    pub both: f64,
}

impl Measurement {
    /// Coding's shares if the transfer of `round` is done with a kernel that costs `coding` instead of its
    /// own kernel.
    pub fn shares(&self, round: &Round, coding: &Cost) -> Shares {
        let used = self.coding_per_packet(&round.coding);
        let own = self.coding_per_packet(coding);
        let transfer = &round.protected;
        let cpu = transfer.cpu_per_packet();
        let server = own.0 / (cpu.0 - used.0 + own.0);
        let client = own.1 / (cpu.1 - used.1 + own.1);
        let sent = transfer.server.packets_sent as f64;
        let received = transfer.client.packets_received as f64;
        let sum = |server: f64, client: f64| server * sent + client * received;
        let own_sum = sum(own.0, own.1);
        let both = own_sum / (transfer.cpu() - sum(used.0, used.1) + own_sum);
        Shares { server, client, both }
    }
}

fn protection(options: &Options, burst: u32) -> Protection {
    Protection::incremental(burst, Duration::from_millis(options.delay))
}

/// The burst that comes nearest to the requested share of repair symbols.
fn find_burst(job: &Job<'_>, options: &Options) -> Result<u32, Error> {
    let mut burst = FIRST_BURST;
    for _ in 0..SEARCHES {
        let protection = Some(protection(options, burst));
        let bytes = SEARCH_BYTES.min(job.bytes);
        let share = transfer::run(&Job { bytes, protection, ..job.clone() })?.repair_share();
        let better = f64::from(burst) * options.repair.value() / share.max(0.001);
        burst = (better.round() as u32).clamp(1, MAX_BURST);
    }
    Ok(burst)
}

/// Measures one case.
pub fn measure(case: &Case, options: &Options, identity: &Identity) -> Result<Measurement, Error> {
    let (bytes, seed) = (options.bytes, options.seed);
    let plain = Job { case, identity, bytes, protection: None, seed };
    let burst = match options.burst {
        Some(burst) => burst,
        None => find_burst(&plain, options)?,
    };
    let protected = Job { protection: Some(protection(options, burst)), ..plain.clone() };
    let (recorded, trace) = transfer::record(&protected)?;
    let replay = Replay::new(&trace, &case.fec())?;
    // The replayed decoder is given the same symbols as the connection's decoder.
    if replay.recovered() != recorded.client.recovered {
        let (replayed, connection) = (replay.recovered(), recorded.client.recovered);
        return Err(format!("the replay recovers {replayed}, the connection {connection}").into());
    }
    let mut rounds = Vec::new();
    for round in 0..options.rounds.max(1) {
        let seed = seed + round as u64;
        let (plain, protected) = (Job { seed, ..plain.clone() }, Job { seed, ..protected.clone() });
        // The two transfers take turns in being the first.
        let (plain, protected) = if round % 2 == 0 {
            let plain = transfer::run(&plain)?;
            (plain, transfer::run(&protected)?)
        } else {
            let protected = transfer::run(&protected)?;
            (transfer::run(&plain)?, protected)
        };
        let coding = replay.cost(Kernel::best(), REPEATS)?;
        rounds.push(Round { plain, protected, coding });
        eprintln!("{case}: round {} of {}", round + 1, options.rounds.max(1));
    }
    let others = [Tier::Avx2, Tier::Neon, Tier::Scalar].into_iter().filter_map(Kernel::new);
    let others = others.filter(|kernel| kernel.tier() != Kernel::best().tier());
    let others = others.map(|kernel| {
        let coding = replay.cost(kernel, OTHER_REPEATS)?;
        Ok(Other { tier: kernel.tier().name(), coding })
    });
    let (mean_span, max_span) = trace.spans();
    Ok(Measurement {
        rtt_ms: case.rtt.as_millis() as u64,
        loss: case.loss.value(),
        burst,
        recorded,
        mean_span,
        max_span,
        recovered: replay.recovered(),
        tier: Kernel::best().tier().name(),
        rounds,
        others: others.collect::<Result<_, Error>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::End;

    fn transfer(packets: u64, server: f64, client: f64) -> Transfer {
        Transfer {
            server: End { cpu: server, packets_sent: packets, ..End::default() },
            client: End { cpu: client, packets_received: packets, ..End::default() },
            ..Transfer::default()
        }
    }

    #[test]
    fn shares_are_of_a_transfer_of_the_same_length_with_the_kernel_in_question() {
        let coding = Cost { server: 1.0, client: 0.5 };
        let round =
            Round { plain: transfer(180, 9.0, 9.0), protected: transfer(200, 20.0, 10.0), coding };
        let measurement = Measurement {
            rtt_ms: 20,
            loss: 0.0,
            burst: 1,
            recorded: transfer(100, 99.0, 99.0),
            mean_span: 1.0,
            max_span: 1,
            recovered: 0,
            tier: "",
            rounds: vec![round],
            others: Vec::new(),
        };
        let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
        // The transfer has twice the packets of the recording, so coding takes 2 of 20, 1 of 10 and 3 of 30
        // seconds.
        let own = measurement.shares(&round, &coding);
        assert!(near(own.server, 0.1) && near(own.client, 0.1) && near(own.both, 0.1));
        // The server codes for 12 instead of 2 seconds, and so takes 30 seconds in all.
        let slow = measurement.shares(&round, &Cost { server: 6.0, ..coding });
        assert!(near(slow.server, 0.4) && near(slow.client, 0.1) && near(slow.both, 13.0 / 40.0));
    }
}
