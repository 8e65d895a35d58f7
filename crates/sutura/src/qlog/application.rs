//! Events of applications.

use std::time::Instant;

use serde::Serialize;
use serde_json::Value;

use crate::connection::Connection;

/// An event of an application, as an observer of the connection sees it in
/// [`Observation::Application`](crate::Observation::Application).
#[derive(Debug, Clone, PartialEq)]
pub struct ApplicationEvent {
    /// Its category and its name, such as `screen:update_painted`.
    pub name: &'static str,
    /// Its data.
    pub data: Value,
}

impl Connection {
    /// Reports an event of the application to the connection's observer, such as a
    /// [`QlogWriter`](super::QlogWriter), which records it among the connection's own. Without an observer `data` is
    /// not asked for.
    ///
    /// ```no_run
    /// # fn run(connection: &sutura::Connection, update: u32) {
    /// connection.log("screen:update_painted", || serde_json::json!({ "update": update }));
    /// # }
    /// ```
    pub fn log<T: Serialize>(&self, name: &'static str, data: impl FnOnce() -> T) {
        let mut state = self.0.lock();
        state.quic.observe_application(Instant::now(), || {
            // Data that cannot be written as JSON is left out.
            ApplicationEvent { name, data: serde_json::to_value(data()).unwrap_or_default() }
        });
    }
}
