//! An endpoint of the interoperability matrix (see `interop/README.md`) with s2n-quic.

mod chacha20;
mod client;
mod config;
mod server;
mod tickets;

use std::process::ExitCode;

/// Any error: it is printed, and the program ends.
type Error = Box<dyn std::error::Error + Send + Sync>;

/// The exit code for test cases that s2n-quic does not support.
const UNSUPPORTED: u8 = 127;

/// The test cases of both roles. s2n-quic marks packets for ECN without being told. It has neither HTTP/3 nor 0-RTT nor
/// version 2, announces no preferred address, and updates its keys only when they have been used up.
const SUPPORTED: [&str; 7] =
    ["handshake", "transfer", "chacha20", "retry", "resumption", "ecn", "multiconnect"];

/// A variable of the environment.
fn variable(name: &str) -> Result<String, Error> {
    std::env::var(name).map_err(|error| format!("{name}: {error}").into())
}

async fn run() -> Result<ExitCode, Error> {
    let (role, case) = (variable("ROLE")?, variable("TESTCASE")?);
    let supported = SUPPORTED.contains(&case.as_str());
    match role.as_str() {
        "client" if supported => client::run(&case).await?,
        "server" if supported || case == "multiplexing" => server::run(&case).await?,
        _ => return Ok(ExitCode::from(UNSUPPORTED)),
    }
    Ok(ExitCode::SUCCESS)
}

#[tokio::main]
async fn main() -> ExitCode {
    run().await.unwrap_or_else(|error| {
        eprintln!("s2n-quic: {error}");
        ExitCode::FAILURE
    })
}
