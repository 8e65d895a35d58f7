//! The exchanges that are under way on a connection over TCP.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// How many exchanges are under way. Clones share it.
#[derive(Debug, Clone)]
pub struct Underway(Arc<Mutex<Count>>);

#[derive(Debug)]
struct Count {
    exchanges: usize,
    /// When the last one began or ended.
    changed: Instant,
}

/// An exchange, until it is dropped.
#[derive(Debug)]
pub struct Exchange(Underway);

impl Underway {
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(Count { exchanges: 0, changed: Instant::now() })))
    }

    /// Begins an exchange.
    pub fn begin(&self) -> Exchange {
        self.change(|exchanges| exchanges + 1);
        Exchange(self.clone())
    }

    /// Waits until nothing has been under way for this long.
    pub async fn idle(&self, limit: Duration) {
        loop {
            let now = Instant::now();
            let until = {
                let count = self.lock();
                let since = if count.exchanges > 0 { now } else { count.changed };
                since + limit
            };
            if until <= now {
                return;
            }
            sleep_until(until).await;
        }
    }

    fn change(&self, to: impl FnOnce(usize) -> usize) {
        let mut count = self.lock();
        count.exchanges = to(count.exchanges);
        count.changed = Instant::now();
    }

    fn lock(&self) -> MutexGuard<'_, Count> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.0.change(|exchanges| exchanges.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_once_nothing_was_under_way_for_the_whole_time() {
        const LIMIT: Duration = Duration::from_secs(10);
        let start = Instant::now();
        let all = Underway::new();
        let first = all.begin();
        let ends = all.clone();
        tokio::spawn(async move {
            tokio::time::sleep(3 * LIMIT).await;
            drop(first);
            tokio::time::sleep(LIMIT / 2).await;
            drop(ends.begin());
        });
        all.idle(LIMIT).await;
        let took = start.elapsed();
        assert!(took >= 4 * LIMIT + LIMIT / 2 && took <= 5 * LIMIT, "{took:?}");
    }
}
