//! Waits for the user to interrupt the command.

use crate::failure::Failure;

/// Waits for SIGINT, or SIGTERM where it exists.
///
/// # Errors
/// Signals cannot be received.
pub async fn interrupted() -> Result<(), Failure> {
    let failure = |e: std::io::Error| Failure::local(format!("cannot wait for signals: {e}"));
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate()).map_err(failure)?;
        tokio::select! {
            result = tokio::signal::ctrl_c() => result.map_err(failure),
            _ = terminate.recv() => Ok(()),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await.map_err(failure)
}
