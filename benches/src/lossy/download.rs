//! Downloads one after the other on a warm connection.

use crate::Error;
use crate::session::{Outcome, Wire};
use std::time::{Duration, Instant};
use sutura_benches::stack::{Stack, download};
use sutura_relay::Relay;
use tokio::time::{sleep, timeout};

/// Bytes that warm a connection up and do not count: the congestion controller learns the path from them.
const WARM_UP: u64 = 1_000_000;
/// Pause between downloads, so that the tail of a download does not disturb the next.
const GAP: Duration = Duration::from_millis(200);
/// A download that takes longer counts with this time and is the last of its connection.
pub const LIMIT: Duration = Duration::from_secs(30);
/// The latest time at which a download begins.
const LATEST: Duration = Duration::from_secs(45);

/// Makes `count` downloads.
pub async fn run<S: Stack>(
    connection: &S::Connection,
    relay: &Relay,
    bytes: u64,
    count: usize,
    outcome: &mut Outcome,
) -> Result<(), Error> {
    let begin = Instant::now();
    timeout(LIMIT, download::<S>(connection, WARM_UP)).await??;
    sleep(GAP).await;
    let before = relay.stats().down;
    for _ in 0..count {
        if begin.elapsed() > LATEST {
            return Err("out of time".into());
        }
        let start = Instant::now();
        let result = timeout(LIMIT, download::<S>(connection, bytes)).await;
        // An unfinished download takes at least this long.
        outcome.times.push((start.elapsed(), 1));
        result??;
        sleep(GAP).await;
        outcome.payload += bytes;
        outcome.wire = Wire::between(&before, &relay.stats().down);
    }
    Ok(())
}
