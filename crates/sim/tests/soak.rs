//! Many seeds of everything that a network can do to a connection.

mod common;

use std::time::Duration;

use common::{MS, incremental, tail};
use sutura_link::{LinkConfig, Rng};
use sutura_proto::{Algorithm, Protection, TransportConfig};
use sutura_sim::{Scenario, Transfer};

/// A path that follows from the seed: 0 to 20 % of loss in each direction, alone or in bursts.
fn path(rng: &mut Rng) -> LinkConfig {
    let loss = rng.below(201) as f64 / 1000.0;
    // Bursts of four on average that lose nearly all, so often that the mean is the same.
    let p = 0.25 * loss / (0.95 - loss);
    let loss = match rng.below(2) {
        0 => format!("bern:{loss}"),
        // Other traffic moves the bursts on, or a host that fell silent would stay in one.
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

/// The handshake, and a megabyte each way at the same time.
fn soak(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let mut rng = Rng::new(seed);
        let (up, down) = (path(&mut rng), path(&mut rng));
        let congestion = Algorithm::ALL[rng.below(Algorithm::ALL.len() as u64) as usize];
        let mut config = TransportConfig { congestion, ..TransportConfig::default() };
        if seed % 4 == 0 {
            config.fec = None;
        }
        let transfer = Transfer { protection: protection(&mut rng), ..Transfer::both(1_000_000) };
        let outcome = Scenario::new(seed)
            .link(&up, &down)
            .transport(&config)
            .protect(protection(&mut rng))
            .transfer(transfer)
            .trace(40)
            .run();
        if let Err(failure) = outcome {
            panic!("{failure}\nseed {seed}: {congestion:?}, {transfer:?}\nup {up}\ndown {down}");
        }
    }
}

// Four tests, so that they share the processors.

#[test]
fn soak_a() {
    soak(0..125);
}

#[test]
fn soak_b() {
    soak(125..250);
}

#[test]
fn soak_c() {
    soak(250..375);
}

#[test]
fn soak_d() {
    soak(375..500);
}
