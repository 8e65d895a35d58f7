//! Experiments.
#![forbid(unsafe_code)]
