//! Transfers over randomly impaired networks, with many seeds.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{ALGORITHMS, MS, incremental, tail};
use sutura_link::LinkConfig;
use sutura_proto::policy::{ByLoss, First, FirstBy, InTurn};
use sutura_proto::{FecConfig, Protection, TransportConfig};
use sutura_random::Rng;
use sutura_sim::{Scenario, Transfer};

/// A random path with 0 to 20 % of loss, either independent or in bursts.
fn path(rng: &mut Rng) -> LinkConfig {
    let loss = rng.below(201) as f64 / 1000.0;
    // Bursts of four packets on average that lose nearly all of them, at a frequency that gives the
    // same mean loss rate.
    let p = 0.25 * loss / (0.95 - loss);
    let loss = match rng.below(2) {
        0 => format!("bern:{loss}"),
        // Background traffic makes a burst pass; without it, a silent host would stay in the burst.
        _ => format!("ge:{p},0.25,0.95,0 background=5mbit"),
    };
    let text = format!(
        "rate={}mbit queue={}p delay={}ms jitter={}us{} reorder={},{}ms duplicate={} corrupt={} \
         loss={loss}",
        2 + rng.below(99),
        50 + rng.below(200),
        rng.below(80),
        rng.below(3000),
        if rng.below(2) == 0 { "" } else { ",reorder" },
        rng.below(50) as f64 / 1000.0,
        rng.below(30),
        rng.below(30) as f64 / 1000.0,
        rng.below(30) as f64 / 1000.0,
    );
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn protection(rng: &mut Rng) -> Option<Protection> {
    let burst = 1 + rng.below(4) as u32;
    match rng.below(4) {
        0 => None,
        1 => incremental(burst, Duration::ZERO),
        2 => incremental(burst, 25 * MS),
        _ => tail(burst),
    }
}

/// Random settings, sometimes with small windows and buffers so that flow control is the limit.
fn settings(rng: &mut Rng) -> TransportConfig {
    let small = rng.below(4) == 0;
    let window = if small { 20_000 + rng.below(100_000) } else { 1 << 20 };
    TransportConfig::default()
        .with_congestion(Arc::new(ALGORITHMS[rng.below(ALGORITHMS.len() as u64) as usize]))
        .with_fec(if rng.below(4) == 0 { None } else { Some(FecConfig::default()) })
        .with_stream_receive_window(window)
        .with_receive_window(window + window / 2)
        .with_send_buffer(if small { 64 << 10 } else { 1 << 20 })
        // Nine losses in a row do happen.
        .with_max_idle_timeout(Some(Duration::from_secs(120)))
        .with_udp_payload_size(1200 + rng.below(253) as u16)
        .with_resend_order(match rng.below(4) {
            0 => Arc::new(InTurn),
            1 => Arc::new(First),
            2 => {
                let schedulers = sutura_research::schedulers();
                let index = rng.below(schedulers.entries().len() as u64) as usize;
                Arc::new(FirstBy(schedulers.entries()[index].make("").unwrap()))
            }
            _ => Arc::new(ByLoss),
        })
        .with_connection_send_buffer(if small { 0 } else { 16 << 20 })
}

/// The handshake and a megabyte each way at the same time, over one or several streams.
fn soak(seed: u64) {
    let mut rng = Rng::new(seed);
    let (up, down) = (path(&mut rng), path(&mut rng));
    let (client, server) = (settings(&mut rng), settings(&mut rng));
    let streams = [1, 1, 2, 10, 50][rng.below(5) as usize];
    let transfer =
        Transfer { protection: protection(&mut rng), ..Transfer::both(1_000_000 / streams) };
    let outcome = Scenario::new(seed)
        .link(&up, &down)
        .client(&client)
        .server(&server)
        .protect(protection(&mut rng))
        .transfers(std::iter::repeat_n(transfer.clone(), streams as usize))
        .parallel(streams as usize)
        .trace(40)
        .run();
    if let Err(failure) = outcome {
        panic!(
            "{failure}\nseed {seed}: {streams} streams, {transfer:?}\nup {up}\ndown {down}\n\
             client {client:?}\nserver {server:?}"
        );
    }
}

/// Runs a quarter of all seeds. There are four of these tests so that they run in parallel.
/// `SUTURA_SOAK` sets the total number of seeds.
fn quarter(quarter: u64) {
    let count = std::env::var("SUTURA_SOAK").map_or(500, |n| n.parse().expect("a number of seeds"));
    (0..count).filter(|seed| seed % 4 == quarter).for_each(soak);
}

#[test]
fn soak_a() {
    quarter(0);
}

#[test]
fn soak_b() {
    quarter(1);
}

#[test]
fn soak_c() {
    quarter(2);
}

#[test]
fn soak_d() {
    quarter(3);
}
