//! The experiments, compared with the results of the papers. One program, so that it is linked once and its
//! tests run side by side.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod eghbal;
mod eghbal_order;
mod flec;
mod holzinger;
mod marx;
mod pieces;
mod priorities;
mod reports;
mod stacks;
