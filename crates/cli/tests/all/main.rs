//! Tests of the command.
#![cfg(unix)]
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod analysis;
mod failures;
mod files;
mod priorities;
mod support;
mod transfer;
mod vnc;
