//! Runs the fuzz target on seeded, mutated valid input: for machines without a fuzzer.
//!
//! `FUZZ_ITERATIONS` sets the number of inputs.

use sutura_link::LinkConfig;
use sutura_random::fuzz::{input, replay, run};

const SEEDS: [&[u8]; 4] = [
    b"rate=10mbit delay=50ms loss=bern:0.02",
    b"rate=1gbit delay=5ms queue=64000 mark=0.5 mtu=1400",
    b"delay=20ms jitter=3ms disorder=0.1 duplicate=0.01 corrupt=0.001",
    b"rate=5mbit loss=ge:0.01,0.3,0.9,0 outage=2s..3s",
];

fn parse(data: &[u8]) {
    let _ = str::from_utf8(data).map(|text| text.parse::<LinkConfig>());
}

#[test]
fn descriptions_of_links() {
    run(20_000, &SEEDS, parse);
}

#[test]
fn stored_inputs() {
    replay("link_spec", |rng| input(rng, &SEEDS), parse);
}
