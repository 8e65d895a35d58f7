//! An endpoint of the interoperability matrix (see `interop/README.md`) with quiche.

mod client;
mod config;
mod files;
mod http09;
mod http3;
mod outgoing;
mod server;
mod udp;

use std::env::VarError;
use std::process::ExitCode;

/// Any error: it is printed, and the program ends.
type Error = Box<dyn std::error::Error>;

/// The exit code for test cases that quiche does not support.
const UNSUPPORTED: u8 = 127;

/// The test cases of both roles. quiche has neither version 2 nor ECN nor preferred addresses, answers key
/// updates but begins none, and BoringSSL does not let applications choose among the cipher suites of TLS
/// 1.3.
const SUPPORTED: [&str; 7] =
    ["handshake", "transfer", "retry", "resumption", "zerortt", "http3", "multiconnect"];

/// A variable of the environment.
fn variable(name: &str) -> Result<String, Error> {
    std::env::var(name).map_err(|error| format!("{name}: {error}").into())
}

/// A variable that need not be set.
fn optional(name: &str) -> Result<Option<String>, Error> {
    match std::env::var(name) {
        Ok(value) if !value.is_empty() => Ok(Some(value)),
        Ok(_) | Err(VarError::NotPresent) => Ok(None),
        Err(error) => Err(format!("{name}: {error}").into()),
    }
}

fn run() -> Result<ExitCode, Error> {
    let (role, case) = (variable("ROLE")?, variable("TESTCASE")?);
    let supported = SUPPORTED.contains(&case.as_str());
    match role.as_str() {
        "client" if supported => client::run(&case)?,
        "server" if supported || case == "multiplexing" => server::run(&case)?,
        _ => return Ok(ExitCode::from(UNSUPPORTED)),
    }
    Ok(ExitCode::SUCCESS)
}

fn main() -> ExitCode {
    run().unwrap_or_else(|error| {
        eprintln!("quiche: {error}");
        ExitCode::FAILURE
    })
}
