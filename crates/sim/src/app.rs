//! What runs on a connection.

use std::any::Any;
use std::time::Instant;

use crate::Quic;

/// An application is not content with what its connection did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppError(pub String);

impl std::fmt::Display for AppError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for AppError {}

/// An application on one connection of a transport `Q`.
///
/// It does not block: it does what can be done, and is polled again after anything happened to the
/// connection.
pub trait App<Q: Quic>: Any {
    /// The connection told this.
    ///
    /// # Errors
    /// The application gives up.
    fn on_event(&mut self, now: Instant, quic: &mut Q, event: Q::Event) -> Result<(), AppError> {
        let _ = (now, quic, event);
        Ok(())
    }

    /// Something happened, or the time came that was asked for. Returns when to be polled again if
    /// nothing happens.
    ///
    /// # Errors
    /// The application gives up.
    fn poll(&mut self, now: Instant, quic: &mut Q) -> Result<Option<Instant>, AppError>;
}
