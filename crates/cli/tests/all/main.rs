//! Tests of the command.
#![cfg(unix)]
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod analysis;
mod attempts;
mod bad_input;
mod failures;
mod files;
#[cfg(target_os = "linux")]
mod floods;
mod parts;
mod priorities;
mod proxy;
mod redirections;
mod requests;
mod showing;
mod site;
mod support;
mod transfer;
mod tunnel;
mod variables;
mod vnc;
mod vnc_floods;
mod vnc_kills;
mod vnc_servers;
