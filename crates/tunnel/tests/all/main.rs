//! Tunnels between real sockets of this machine.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod faults;
mod flows;
mod http_proxy;
mod ip;
mod limits;
mod others;
mod resume;
mod reverse;
mod socks;
mod support;
mod suspend;
mod tcp;
mod udp;
