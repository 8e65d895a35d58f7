//! Applications that run on a connection.

use std::any::Any;
use std::time::Instant;

use crate::app_error::AppError;
use crate::quic::Quic;

/// An application on one connection of a transport `Q`.
///
/// It never blocks: it does all work that is possible now and is polled again after every event on the
/// connection.
pub trait App<Q: Quic>: Any {
    /// Handles an event of the connection.
    ///
    /// # Errors
    /// The application gives up.
    fn on_event(&mut self, now: Instant, quic: &mut Q, event: Q::Event) -> Result<(), AppError> {
        let _ = (now, quic, event);
        Ok(())
    }

    /// Called after every event on the connection, and at the time that the last call returned.
    /// Returns when to poll again if nothing happens before.
    ///
    /// # Errors
    /// The application gives up.
    fn poll(&mut self, now: Instant, quic: &mut Q) -> Result<Option<Instant>, AppError>;
}
