//! The tasks of an endpoint of the interoperability matrix: `interop/README.md`.

mod case;
mod environment;
pub mod http09;
mod tls;

pub use case::TestCase;
pub use environment::{Environment, Problem, Request, Role};
pub use tls::{INITIAL, client_tls, server_tls};

use std::process::ExitCode;

/// Errors of an endpoint.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// How long either end bears silence. Longer than any outage or handshake in the matrix.
pub const IDLE_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(60);

/// The name of every server.
pub const SERVER: &str = "localhost";

/// Windows that are smaller than the files, so that they have to grow: of a stream, and of a connection.
pub const SMALL_WINDOWS: [u32; 2] = [256 << 10, 384 << 10];

/// How many bytes of a file a client receives before it updates the keys.
pub const UPDATE_AFTER: usize = 256 << 10;

/// Reads the environment and does its task. The exit code is the one that the matrix expects.
pub fn main(run: impl FnOnce(Environment) -> Result<(), Error>) -> ExitCode {
    match Environment::read() {
        Err(Problem::Unsupported(case)) => {
            eprintln!("test case {case} is not supported");
            ExitCode::from(127)
        }
        Err(Problem::Malformed(problem)) => {
            eprintln!("{problem}");
            ExitCode::from(2)
        }
        Ok(environment) => match run(environment) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) if error.is::<Unsupported>() => ExitCode::from(127),
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::FAILURE
            }
        },
    }
}

/// The stack lacks a feature that the test case needs.
#[derive(Debug)]
pub struct Unsupported;

impl std::fmt::Display for Unsupported {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("not supported")
    }
}

impl std::error::Error for Unsupported {}
