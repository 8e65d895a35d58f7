//! Sutura in the comparison with other systems: a server that makes what a request asks for, and a client that
//! times it.

mod client;
mod request;
mod server;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Parser, Subcommand};
use sutura::{TransportConfig, registry};

use crate::request::Redundancy;

/// The protocol of both ends.
const PROTOCOL: &[u8] = b"others";

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Sutura in the comparison with other systems.
#[derive(Debug, Parser)]
struct Arguments {
    /// What repairs losses: none, a policy such as auto, or tail:N for N repair symbols behind all data, as the
    /// server of Holzinger 2025 does
    #[arg(long, value_name = "NAME", default_value = "auto")]
    redundancy: Redundancy,
    /// The server's certificate in DER: the server writes it, the client reads it
    #[arg(long, value_name = "FILE")]
    certificate: PathBuf,
    #[command(subcommand)]
    end: End,
}

/// What to do.
#[derive(Debug, Subcommand)]
enum End {
    /// Serve until killed; prints the address
    Serve {
        /// Address and port
        #[arg(default_value = "127.0.0.1:0")]
        listen: SocketAddr,
    },
    /// Make a request and print in JSON how long it took
    Fetch {
        /// The server's address and port
        server: SocketAddr,
        /// The request in JSON
        request: String,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let transport = transport(&arguments.redundancy)?;
    runtime.block_on(async {
        match &arguments.end {
            End::Serve { listen } => {
                server::run(*listen, &arguments.certificate, transport, &arguments.redundancy).await
            }
            End::Fetch { server, request } => {
                client::run(*server, &arguments.certificate, transport, request).await
            }
        }
    })
}

/// The defaults, but for the redundancy, and with streams in the order of their deadlines.
fn transport(redundancy: &Redundancy) -> Result<TransportConfig, Error> {
    let redundancy = match redundancy {
        Redundancy::None | Redundancy::Tail(_) => None,
        Redundancy::Policy(name) => Some(registry::redundancy().find(name)?),
    };
    Ok(TransportConfig::default()
        .with_scheduler(Arc::new(sutura::Scheme::DEADLINE))
        .with_max_concurrent_uni_streams(4096)
        .with_redundancy(redundancy))
}

/// Microseconds since 1970, which both ends can read.
fn now() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX)
}
