//! Waits for the user to interrupt the command.

use crate::failure::Failure;

/// Why a command is to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The user has interrupted the command, as with Ctrl+C (SIGINT).
    Interrupted,
    /// The program's supervisor ends it, perhaps to start it again (SIGTERM).
    Terminated,
}

/// Waits for SIGINT, or SIGTERM where it exists. Signals after this call are noticed, though the future is
/// awaited later.
///
/// # Errors
/// Signals cannot be received.
pub fn interrupted() -> impl Future<Output = Result<Stop, Failure>> {
    let failure = |e: std::io::Error| Failure::local(format!("cannot wait for signals: {e}"));
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let signals = signal(SignalKind::interrupt())
            .and_then(|interrupt| Ok((interrupt, signal(SignalKind::terminate())?)));
        async move {
            let (mut interrupt, mut terminate) = signals.map_err(failure)?;
            tokio::select! {
                _ = interrupt.recv() => Ok(Stop::Interrupted),
                _ = terminate.recv() => Ok(Stop::Terminated),
            }
        }
    }
    #[cfg(not(unix))]
    {
        async move { tokio::signal::ctrl_c().await.map(|()| Stop::Interrupted).map_err(failure) }
    }
}

/// The requests of a supervisor to read files again (SIGHUP); never any where there is no such signal.
#[derive(Debug)]
pub struct Hangups {
    #[cfg(unix)]
    signals: tokio::signal::unix::Signal,
}

impl Hangups {
    /// Notices signals from now on.
    ///
    /// # Errors
    /// Signals cannot be received.
    pub fn new() -> Result<Self, Failure> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let signals = signal(SignalKind::hangup())
                .map_err(|e| Failure::local(format!("cannot wait for signals: {e}")))?;
            Ok(Self { signals })
        }
        #[cfg(not(unix))]
        Ok(Self {})
    }

    /// Waits for the next one.
    pub async fn next(&mut self) {
        #[cfg(unix)]
        if self.signals.recv().await.is_some() {
            return;
        }
        std::future::pending::<()>().await;
    }
}
