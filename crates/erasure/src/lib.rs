//! Erasure codes for packets.
//!
//! A network that loses packets costs its users a round trip for every loss: the receiver has to
//! notice, say so, and wait for the bytes to be sent again. An erasure code spends a little rate
//! instead. The sender adds *repair symbols*, each a linear combination of many *source symbols*,
//! and any of them can stand in for any source symbol that it covers.
//!
//! This crate is, first of all, a sliding-window random linear code over GF(256), of the family of
//! RFC 8681 and Tetrys (RFC 9407). It knows bytes and symbol numbers, and nothing of transports: no
//! sockets, no clock, no randomness of its own. The words are those of RFC 8406. What is coded, the
//! field and the coefficients are specified to the bit in `docs/extension.md`, section "Erasure
//! code".
//!
//! * [`Encoder`] holds the source symbols that may still need protection and makes repair symbols
//!   over any run of them, one or several at a time, or while symbols are pushed. Symbols may
//!   differ in length.
//! * [`Decoder`] takes source and repair symbols in any order, any number of times, one or several
//!   at a time, and gives back each lost symbol at the first moment that the symbols received
//!   determine it.
//! * [`Combination`] is the seam for other codes: encoder and decoder take repair symbols with any
//!   coefficients, those of a block code for instance, side by side with their own.
//! * [`block`] has codes for what has an end: Reed-Solomon, random linear, LDPC-Staircase (RFC 6816)
//!   and two-dimensional parity, behind one trait.
//! * [`kernel`] has the arithmetic on its own, for other codes: vector instructions chosen at run
//!   time (AVX2, AVX2 with GFNI, AVX-512 with GFNI, NEON, WebAssembly's simd128, or 64-bit words),
//!   each of which can be asked for.
//!
//! ```
//! use sutura_erasure::{Decoder, DecoderLimits, Encoder, WindowLimits};
//!
//! let mut encoder = Encoder::new(WindowLimits::default());
//! for text in ["a symbol", "another one", "and the last"] {
//!     encoder.push(text.as_bytes())?;
//! }
//! let mut repair = Vec::new();
//! encoder.repair(0..3, 7, &mut repair)?;
//!
//! let mut decoder = Decoder::new(DecoderLimits::default());
//! decoder.source(0, b"a symbol")?;
//! decoder.source(2, b"and the last")?; // symbol 1 is lost
//! decoder.repair(0..3, 7, &repair)?;
//! assert_eq!(decoder.pop_recovered(), Some(1));
//! assert_eq!(decoder.symbol(1), Some(&b"another one"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Cost
//!
//! A repair symbol over `n` source symbols costs one multiply-accumulate over each of them. A
//! decoder does no arithmetic at all while nothing is missing. A repair symbol that helps costs
//! one multiply-accumulate for each known symbol it covers and for each equation that it meets;
//! one that does not help is recognised from its coefficients, before its bytes are read. Where the
//! losses are, early or late, makes no difference.
//!
//! `docs/performance.md` has figures, beside those of other implementations. As a rule a CPU with
//! AVX-512 and GFNI reads a window at the speed of its second-level cache, and an encoder or decoder
//! that is given several repair symbols at a time is bound by the multiplications alone.
//!
//! # Trust
//!
//! Everything that a [`Decoder`] is given may come from a hostile peer. Ids, spans and sizes that
//! make no sense are errors, contradictions between symbols are errors, and memory is bounded by
//! [`DecoderLimits`] whatever arrives. A code is not a signature, though: whoever can alter a
//! repair symbol can alter what is recovered from it, so symbols belong inside authenticated
//! packets.
//!
//! # Features
//!
//! * `std` (default): asks the CPU at run time what it can do. Without it the crate needs `alloc`
//!   only, and uses the vector instructions that the program is compiled for.
#![no_std]
#![deny(unsafe_code)]

extern crate alloc;
#[cfg(any(test, feature = "std"))]
extern crate std;

pub mod block;
mod coefficient;
mod decoder;
mod encoder;
#[doc(hidden)]
pub mod fuzz;
pub mod gf256;
pub mod kernel;
mod limits;
mod pool;
mod simd;
mod slot;
mod symbol;

pub use coefficient::{Coefficients, Combination, coefficient};
pub use decoder::{Arrival, DecodeError, Decoder, RepairOutcome, RepairSymbol};
pub use encoder::{Encoder, OpenRepair, PushError, SpanError};
pub use limits::{
    DecoderLimits, MAX_OPEN_REPAIRS, MAX_REPAIRS, MAX_SYMBOL_SIZE, MAX_WINDOW_SYMBOLS, WindowLimits,
};
pub use symbol::{MAX_SYMBOL_ID, PREFIX, SymbolId};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
