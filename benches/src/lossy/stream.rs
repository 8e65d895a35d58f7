//! A steady stream of messages, and how long each of its bytes takes.

use crate::Error;
use crate::session::{Outcome, Wire};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};
use sutura::Protection;
use sutura_benches::stack::{Stack, read_request, request};
use sutura_benches::zeros;
use sutura_relay::Relay;
use tokio::time::{Instant as TokioInstant, MissedTickBehavior, interval, timeout_at};

/// Bytes of a message.
const MESSAGE: u64 = 5000;
/// The time from one message to the next: 60 Hz.
const INTERVAL: Duration = Duration::from_nanos(1_000_000_000 / 60);
/// Messages before the messages that count: two seconds, in which the congestion window opens.
const WARM_UP: usize = 120;
/// How long after the last message the stream may end. Bytes that have not arrived by then count as if they
/// had arrived then.
const DRAIN: Duration = Duration::from_secs(5);

/// When each message was made. Both ends are in one thread, and share a clock.
pub type Made = Rc<RefCell<Vec<Instant>>>;

/// Serves one stream of one connection.
pub async fn serve<S: Stack>(
    endpoint: S::Endpoint,
    protection: Option<Protection>,
    made: Made,
) -> Result<(), Error> {
    let incoming = S::incoming(&endpoint).await.ok_or("the endpoint is closed")?;
    let connection = S::accept(incoming).await?;
    let (mut send, mut recv) = S::accept_stream(&connection).await?;
    let messages = read_request::<S>(&mut recv).await?;
    if let Some(protection) = protection {
        S::protect(&send, protection)?;
    }
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for _ in 0..messages {
        ticks.tick().await;
        made.borrow_mut().push(Instant::now());
        for chunk in zeros(MESSAGE) {
            S::write(&mut send, chunk).await?;
        }
    }
    S::finish(&mut send)?;
    // The connection lives until the client has left.
    let _ = S::accept_stream(&connection).await;
    Ok(())
}

/// Delays of bytes in the order of the stream.
#[derive(Debug, Default)]
struct Delays {
    offset: u64,
    delays: Vec<(Duration, u64)>,
}

impl Delays {
    /// The next `count` bytes were read at `now`.
    fn read(&mut self, mut count: u64, made: &[Instant], now: Instant) {
        while count > 0 {
            let message = self.offset / MESSAGE;
            let part = count.min((message + 1) * MESSAGE - self.offset);
            let made = made.get(message as usize).copied().unwrap_or(now);
            if message >= WARM_UP as u64 {
                self.delays.push((now.saturating_duration_since(made), part));
            }
            self.offset += part;
            count -= part;
        }
    }
}

/// Receives a stream of `messages` messages that count.
pub async fn run<S: Stack>(
    connection: &S::Connection,
    relay: &Relay,
    messages: usize,
    made: &Made,
    outcome: &mut Outcome,
) -> Result<(), Error> {
    let all = messages + WARM_UP;
    let before = relay.stats().down;
    let mut recv = request::<S>(connection, all as u64).await?;
    let end = TokioInstant::now() + INTERVAL * all as u32 + DRAIN;
    let mut delays = Delays::default();
    let result = loop {
        match timeout_at(end, S::read(&mut recv)).await {
            Ok(Ok(Some(data))) => {
                delays.read(data.len() as u64, &made.borrow(), Instant::now());
            }
            Ok(Ok(None)) => break Ok(()),
            Ok(Err(error)) => break Err(error),
            Err(_) => break Err("the stream fell behind".into()),
        }
    };
    outcome.payload = delays.offset;
    outcome.wire = Wire::between(&before, &relay.stats().down);
    let missing = (all as u64 * MESSAGE).saturating_sub(delays.offset);
    delays.read(missing, &made.borrow(), end.into_std());
    outcome.times = delays.delays;
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_as_old_as_their_message() {
        let start = Instant::now();
        let made: Vec<_> = (0..WARM_UP as u32 + 2).map(|n| start + INTERVAL * n).collect();
        let now = start + INTERVAL * (WARM_UP as u32 + 2);
        let mut delays = Delays::default();
        delays.read(WARM_UP as u64 * MESSAGE + 10, &made, now);
        assert_eq!(delays.delays, [(INTERVAL * 2, 10)]);
        delays.read(MESSAGE, &made, now);
        assert_eq!(delays.delays[1..], [(INTERVAL * 2, MESSAGE - 10), (INTERVAL, 10)]);
        assert_eq!(delays.offset, (WARM_UP as u64 + 1) * MESSAGE + 10);
    }
}
