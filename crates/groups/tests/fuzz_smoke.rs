//! The fuzz target on seeded, mutated valid input: for machines without a fuzzer.
//!
//! `FUZZ_ITERATIONS` sets how many inputs it gets.

use sutura_groups::fuzz;
use sutura_random::fuzz::{input, replay, run};

fn groups() -> [Vec<u8>; 3] {
    // A message, one behind a fence and after another, and a notice, each after its length.
    [
        vec![7, 2, 0, 0, 0, b'a', b'b', b'c', 4, 2, 1, 0, 0],
        vec![6, 2, 3, 2, 1, 1, 9, 5, 2, 2, 1, 0, 4, 4, 2, 1, 0, 7],
        vec![5, 2, 4, 0, 0, 1, 6, 3, 5, 0, 2, 3, 1, 2, 3, 0],
    ]
}

#[test]
fn ordered_groups() {
    run(40_000, &groups(), fuzz::groups);
}

#[test]
fn stored_inputs() {
    replay("groups_streams", |rng| input(rng, &groups()), fuzz::groups);
}
