//! Seeded pseudo-random numbers: the one generator of simulations, test kits and tests.
//!
//! [`Rng`] is xoshiro256++ and has all draws; [`SplitMix64`] is its seeder, and a generator of one
//! word of state where that is enough. Both belong to this workspace so that a seed gives the same
//! numbers in every version and on every platform: the draws use integers and the four basic
//! operations on floating-point numbers only, which are exact everywhere.
//!
//! Neither is for cryptography. What a peer must not be able to guess, such as connection
//! identifiers, comes from a cryptographic generator.
//!
//! ```
//! use sutura_random::Rng;
//!
//! let mut rng = Rng::new(7);
//! let die = 1 + rng.below(6);
//! assert!((1..=6).contains(&die));
//! assert_eq!(Rng::new(7).below(6), die - 1, "the same seed, the same numbers");
//! ```
#![no_std]

extern crate alloc;
#[cfg(any(test, feature = "fuzz"))]
extern crate std;

#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod rng;
mod split_mix;

pub use rng::Rng;
pub use split_mix::SplitMix64;

/// `word` scaled to a number below `bound`; 0 if that is 0. The bias is below `bound` / 2^64.
const fn scale(word: u64, bound: u64) -> u64 {
    ((word as u128 * bound as u128) >> 64) as u64
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
