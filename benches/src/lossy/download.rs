//! Downloads one after the other on a warm connection.

use crate::Error;
use crate::library::{Library, read_request, request};
use crate::session::{Outcome, Wire};
use std::time::{Duration, Instant};
use sutura::Protection;
use sutura_benches::zeros;
use sutura_relay::Relay;
use tokio::time::{sleep, timeout};

/// Bytes that warm a connection up and do not count: the congestion controller knows the path then.
const WARM_UP: u64 = 1_000_000;
/// Pause between downloads, so that the tail of one does not disturb the next.
const GAP: Duration = Duration::from_millis(200);
/// A download that takes longer counts as one of this time and is the last of its connection.
pub const LIMIT: Duration = Duration::from_secs(30);
/// No download begins later.
const LATEST: Duration = Duration::from_secs(45);

/// Serves one connection.
pub async fn serve<L: Library>(endpoint: L::Endpoint, protection: Option<Protection>) {
    let Ok(connection) = L::accept(&endpoint).await else { return };
    while let Ok((mut send, mut recv)) = L::accept_stream(&connection).await {
        let protection = protection.clone();
        tokio::task::spawn_local(async move {
            let bytes = read_request::<L>(&mut recv).await?;
            if let Some(protection) = protection {
                L::protect(&send, protection)?;
            }
            for chunk in zeros(bytes) {
                L::write(&mut send, chunk).await?;
            }
            L::finish(&mut send)
        });
    }
}

async fn download<L: Library>(connection: &L::Connection, bytes: u64) -> Result<(), Error> {
    let mut recv = request::<L>(connection, bytes).await?;
    let mut received = 0;
    while let Some(data) = L::read(&mut recv).await? {
        received += data.len() as u64;
    }
    if received == bytes { Ok(()) } else { Err(format!("{received} bytes of {bytes}").into()) }
}

/// Makes `count` downloads.
pub async fn run<L: Library>(
    connection: &L::Connection,
    relay: &Relay,
    bytes: u64,
    count: usize,
    outcome: &mut Outcome,
) -> Result<(), Error> {
    let begin = Instant::now();
    timeout(LIMIT, download::<L>(connection, WARM_UP)).await??;
    sleep(GAP).await;
    let before = relay.stats().down;
    for _ in 0..count {
        if begin.elapsed() > LATEST {
            return Err("out of time".into());
        }
        let start = Instant::now();
        let result = timeout(LIMIT, download::<L>(connection, bytes)).await;
        // What was not finished takes that long at least.
        outcome.times.push((start.elapsed(), 1));
        result??;
        sleep(GAP).await;
        outcome.payload += bytes;
        outcome.wire = Wire::between(&before, &relay.stats().down);
    }
    Ok(())
}
