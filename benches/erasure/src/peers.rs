//! Other libraries, each in a file of its own, and stand-ins for libraries that are not available here.

pub mod isal;
pub mod one_source;
pub mod raptorq;
pub mod reed_solomon_erasure;
pub mod reed_solomon_simd;
pub mod rlnc_simdx;
