//! `sutura tunnel`: programs as they are over a path that loses packets. One command is a MASQUE proxy, the other runs
//! beside the programs.

mod audit;
mod connect;
pub mod dialer;
mod gate;
#[cfg_attr(not(target_os = "linux"), path = "no_handover.rs")]
mod handover;
pub mod known_proxy;
mod machine;
mod network;
mod ports;
mod serve;
mod tokens;
mod user;

use std::path::Path;
use std::time::Duration;

use clap::Subcommand;
use sutura::TransportConfig;
use sutura_tunnel::flow::Rules;

use crate::failure::{Exit, Failure};
use crate::transport::TransportArgs;

/// The UDP port of proxies.
pub const DEFAULT_PORT: u16 = 4433;
/// When a connection counts as lost.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long closing connections may take.
pub const LAST_WORDS: Duration = Duration::from_secs(2);
/// How often statistics are shown.
const STATS_INTERVAL: Duration = Duration::from_secs(2);
/// Threads that wait for names at a proxy: some for each of a dozen clients whose names do not answer.
pub const BLOCKING_THREADS: usize = 64;
/// Exchanges of a connection beyond its flows: those that wait for connections to the proxy, and those that are
/// refused.
const SPARE_STREAMS: u64 = 512;

#[derive(Debug, Subcommand)]
pub enum TunnelCommand {
    /// Be a proxy: reach targets for clients that show a token or a certificate
    Serve(serve::TunnelServeArgs),
    /// Bring programs to a proxy: forwarded ports, SOCKS5, an HTTP proxy
    Connect(connect::TunnelConnectArgs),
}

impl TunnelCommand {
    /// Goes on without root's rights, if that is wanted. For the only thread that there is.
    ///
    /// # Errors
    /// That cannot be done.
    pub fn give_up_root(&self) -> Result<(), Failure> {
        match self {
            Self::Serve(args) => args.give_up_root(),
            Self::Connect(args) => args.give_up_root(),
        }
    }
}

/// Runs one end of a tunnel.
pub async fn run(command: TunnelCommand) -> Result<Exit, Failure> {
    match command {
        TunnelCommand::Serve(args) => serve::run(args).await,
        TunnelCommand::Connect(args) => connect::run(args).await,
    }
}

/// The configuration of connections that carry so many flows at a time.
fn transport(args: &TransportArgs, flows: usize) -> TransportConfig {
    args.config(IDLE_TIMEOUT).with_max_concurrent_bidi_streams(flows as u64 + SPARE_STREAMS)
}

/// The rules of a file, if one is named.
fn rules(path: Option<&Path>) -> Result<Rules, Failure> {
    let Some(path) = path else { return Ok(Rules::default()) };
    Rules::load(path).map_err(|why| Failure::usage(format!("{}: {why}", path.display())))
}
