//! Erasure codes for packets.
//!
//! On a network that loses packets, every loss costs a round trip: the receiver has to notice it,
//! report it, and wait for the bytes to be sent again. An erasure code spends a little bandwidth
//! instead. The sender adds *repair symbols*, each a linear combination of many *source symbols*,
//! and any repair symbol can replace any source symbol that it covers.
//!
//! The core of this crate is a sliding-window random linear code over GF(256), related to RFC 8681
//! and Tetrys (RFC 9407). It handles bytes and symbol numbers and is independent of transports: no
//! sockets, no clock, no randomness of its own. The terms come from RFC 8406. `docs/extension.md`, section
//! "Erasure code", specifies the coded data, the field and the coefficients to the bit.
//!
//! * [`Encoder`] holds the source symbols that may still need protection and makes repair symbols
//!   over any run of them, one or several at a time, or while symbols are pushed. Symbols may
//!   differ in length.
//! * [`Decoder`] takes source and repair symbols in any order, any number of times, one or several
//!   at a time, and returns each lost symbol as soon as the received symbols determine it.
//! * [`Combination`] supports other codes: encoder and decoder accept repair symbols with any
//!   coefficients, such as those of a block code, mixed with their own.
//! * [`block`] has codes for data of known size: Reed-Solomon, random linear, LDPC-Staircase (RFC
//!   6816) and two-dimensional parity, behind one trait.
//! * [`kernel`] has the arithmetic for use in other codes: vector instructions chosen at run time
//!   (AVX2, AVX2 with GFNI, AVX-512 with GFNI, NEON, WebAssembly's simd128, or 64-bit words), each
//!   of which can also be selected explicitly.
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
//! decoder does no arithmetic while nothing is missing. A useful repair symbol costs one
//! multiply-accumulate for each known symbol that it covers and for each equation that it is
//! combined with; a useless one is recognised from its coefficients, before its bytes are read. It
//! makes no difference where in the window the losses are.
//!
//! `docs/performance.md` has measurements, with other implementations for comparison. As a rule, a
//! CPU with AVX-512 and GFNI reads a window at the speed of its second-level cache, and an encoder
//! or decoder that processes several repair symbols at a time is bound only by the multiplications.
//!
//! # Trust
//!
//! Everything given to a [`Decoder`] may come from a hostile peer. Invalid ids, spans and sizes are
//! errors, contradictions between symbols are errors, and memory is bounded by [`DecoderLimits`] in
//! any case. A code is not a signature, though: an attacker who can alter a repair symbol can alter the
//! symbols recovered from it, so symbols belong inside authenticated packets.
//!
//! # Features
//!
//! * `std` (default): detects the CPU's features at run time. Without it, the crate needs only
//!   `alloc` and uses the vector instructions that the program is compiled for.
#![no_std]
#![deny(unsafe_code)]

extern crate alloc;
#[cfg(any(test, feature = "std"))]
extern crate std;

mod allowance;
pub mod block;
mod coefficient;
mod decoder;
mod encoder;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod fuzz;
pub mod gf256;
pub mod kernel;
mod limits;
mod pool;
mod simd;
mod slot;
mod symbol;
mod tier;

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
