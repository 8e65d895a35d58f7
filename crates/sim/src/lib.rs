//! Simulator.
#![forbid(unsafe_code)]
