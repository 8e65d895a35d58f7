//! Tunnels for programs as they are: MASQUE proxies and clients over Sutura's HTTP/3.
//!
//! [`server::Server`] is the proxy, [`client::Tunnel`] the other end; [`local`] has the ways by which programs come
//! in: forwarded ports, SOCKS5, an HTTP proxy. [`masque`] is what both say to each other, which other proxies and
//! clients of MASQUE understand too.

#![forbid(unsafe_code)]

pub mod access;
pub mod bounded_accept;
pub mod client;
mod counts;
mod datagrams;
pub mod flow;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod fuzz;
pub mod ip;
pub mod local;
pub mod masque;
pub mod race;
pub mod server;
pub mod stream;
mod throttle;
pub mod tun;
