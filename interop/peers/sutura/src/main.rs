//! Sutura as an endpoint of the interoperability matrix.
//!
//! The program prints a JSON object for each connection that is over, from which the matrix learns facts that
//! it cannot see on the path.

mod client;
mod config;
mod server;

use std::process::ExitCode;

use serde_json::json;
use sutura::qlog::QlogWriter;
use sutura::{Connection, Endpoint};
use sutura_interop_endpoint::{Environment, Error, Role};

fn main() -> ExitCode {
    sutura_interop_endpoint::main(|environment| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            match environment.role {
                Role::Client => client::run(&environment).await,
                Role::Server => server::run(environment).await,
            }
        })
    })
}

/// Records all connections of the endpoint where the environment asks for it.
fn record(endpoint: &Endpoint, environment: &Environment) {
    let Some(directory) = environment.qlog.clone() else { return };
    endpoint.observe_with(move |side| match QlogWriter::create(&directory, side, "interop") {
        Ok(writer) => Some(writer),
        Err(error) => {
            eprintln!("qlog: {error}");
            None
        }
    });
}

/// Prints the statistics of a connection.
fn report(connection: &Connection) {
    let stats = connection.stats();
    let line = json!({
        "version": connection.version().number(),
        "key_updates": stats.key_updates,
        "ecn_capable": stats.ecn_capable,
        "zero_rtt_accepted": connection.zero_rtt_accepted(),
        "packets_lost": stats.packets_lost,
    });
    println!("{line}");
}

/// Boxes any error.
fn boxed(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Box::new(error)
}
