//! The common parts of the benches.

pub mod costs;
pub mod cpu;
pub mod links;
pub mod output;
pub mod parallel;
pub mod process;
pub mod server;
pub mod stack;
pub mod tls;

use bytes::Bytes;
use std::process::ExitCode;

/// Any error; a bench only reports it.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// The end of the bench `name`, with the error, if any, printed on standard error.
pub fn exit_code(name: &str, result: Result<(), Error>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// `bytes` zero bytes in chunks that are never copied by the application.
pub fn zeros(mut bytes: u64) -> impl Iterator<Item = Bytes> {
    static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];
    std::iter::from_fn(move || {
        let len = bytes.min(ZEROS.len() as u64);
        bytes -= len;
        (len > 0).then(|| Bytes::from_static(&ZEROS).slice(..len as usize))
    })
}
