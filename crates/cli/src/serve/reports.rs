//! Reports the statistics of each connection when it ends.

use std::sync::{Arc, Mutex, PoisonError};

use sutura::Connection;
use tokio::task::JoinSet;

use crate::output;
use crate::stats::{Statistics, peer};

/// The reports that wait for the end of their connections. Clones share them.
#[derive(Debug, Clone)]
pub struct Reports {
    /// Whether they are JSON.
    json: bool,
    waiting: Arc<Mutex<JoinSet<()>>>,
}

impl Reports {
    pub fn new(json: bool) -> Self {
        Self { json, waiting: Arc::default() }
    }

    /// Reports the connection when it ends.
    pub fn follow(&self, connection: &Connection) {
        let (json, connection) = (self.json, connection.clone());
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        // Connections that are over need not be kept.
        while waiting.try_join_next().is_some() {}
        waiting.spawn(async move {
            connection.closed().await;
            tell(&connection, json);
        });
    }

    /// Waits for the last reports.
    pub async fn finish(self) {
        let mut waiting =
            std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        while waiting.join_next().await.is_some() {}
    }
}

fn tell(connection: &Connection, json: bool) {
    let statistics = Statistics::of(connection);
    let remote = peer(connection);
    if json {
        let mut value = statistics.to_json();
        value["remote"] = remote.into();
        // Nobody may read it any more; the server goes on.
        let _ = output::json(&value);
        return;
    }
    statistics.summary(&remote).iter().for_each(|line| output::note(line));
}
