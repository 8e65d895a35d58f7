//! Seeded pseudo-random numbers for simulations, test kits and tests.
//!
//! [`Rng`] is xoshiro256++ and provides all draws. [`SplitMix64`] seeds it, and is also a generator
//! with a single word of state where that is enough. Both are implemented in this workspace so that
//! a seed gives the same numbers in every version and on every platform: the draws use only
//! integers and the four basic floating-point operations, which are exact everywhere.
//!
//! Neither is for cryptography. Values that a peer must not be able to guess, such as connection
//! identifiers, come from a cryptographic generator.
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

/// Scales `word` to a number below `bound`, or to 0 if `bound` is 0. The bias is below `bound` /
/// 2^64.
const fn scale(word: u64, bound: u64) -> u64 {
    ((word as u128 * bound as u128) >> 64) as u64
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
