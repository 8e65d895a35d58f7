//! Messages of the libraries, which RUST_LOG asks for.

use std::env::{self, VarError};
use std::io;

use tracing_subscriber::EnvFilter;

use crate::failure::Failure;

/// The variable that says which messages are shown, as in other programs.
const VARIABLE: &str = "RUST_LOG";

/// Shows messages on standard error from now on, if the variable is set.
///
/// # Errors
/// The variable is malformed.
pub fn begin() -> Result<(), Failure> {
    let malformed = |why: &dyn std::fmt::Display| {
        Failure::usage(format!(
            "{VARIABLE} is malformed: {why}; it says what to log, such as sutura=debug or warn"
        ))
    };
    let text = match env::var(VARIABLE) {
        Ok(text) if !text.trim().is_empty() => text,
        Ok(_) | Err(VarError::NotPresent) => return Ok(()),
        Err(error @ VarError::NotUnicode(_)) => return Err(malformed(&error)),
    };
    let filter = EnvFilter::builder().parse(&text).map_err(|e| malformed(&e))?;
    // Fails only if there is a subscriber already, which is as good.
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).try_init();
    Ok(())
}
