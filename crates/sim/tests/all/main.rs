//! Whole connections over simulated networks. One program, so that it is linked once and its tests run side
//! by side.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod auto;
mod backlog;
mod coding_window;
mod common;
mod costs;
mod ecn;
mod fec_and_congestion;
mod fec_and_schedulers;
mod flec;
mod foreign_congestion;
mod garbage;
mod groups;
mod interop;
mod keys;
mod loss_monitor;
mod lossy_paths;
mod messages;
mod migration;
mod mtu;
mod outages;
mod parity;
mod quirl;
mod reordering;
mod soak;
mod traces;
mod zero_rtt;
