//! Datagrams that come back, as the inputs of a game do with the state that answers them: the delay of
//! each, there and back.

use std::time::{Duration, Instant};

use sutura_proto::{Connection, Protection};

use super::datagram::{DatagramPlan, DatagramSink, DatagramSource};
use crate::{App, AppError, Clock, Quic};

/// How long the client waits after the last datagram for answers that are still under way.
const PATIENCE: Duration = Duration::from_secs(2);

/// Sends datagrams, and measures how long each takes there and back. Runs on the client.
pub struct EchoClient {
    source: DatagramSource,
    sink: DatagramSink,
    protection: Option<Protection>,
    /// When no more answers are awaited, once all datagrams are sent.
    end: Option<Instant>,
    done: bool,
}

impl EchoClient {
    /// Sends the datagrams of `plan`, starting when the connection is established.
    #[must_use]
    pub const fn new(plan: DatagramPlan, protection: Option<Protection>, clock: Clock) -> Self {
        let source = DatagramSource::new(plan, clock);
        Self { source, sink: DatagramSink::new(clock), protection, end: None, done: false }
    }

    /// Whether all datagrams were sent, and their echoes have had the time to come back.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.done
    }

    /// The number of each datagram that came back and how long it took, in order of arrival.
    #[must_use]
    pub fn delays(&self) -> &[(u64, Duration)] {
        self.sink.delays()
    }
}

impl App<Connection> for EchoClient {
    fn poll(&mut self, now: Instant, quic: &mut Connection) -> Result<Option<Instant>, AppError> {
        if self.source.sent() == 0 && quic.is_established() {
            quic.datagrams().protect(self.protection.clone());
        }
        self.sink.poll(now, quic)?;
        let next = self.source.poll(now, quic)?;
        if !self.source.is_done() {
            return Ok(next);
        }
        let end = *self.end.get_or_insert(now + PATIENCE);
        self.done = now >= end;
        Ok((!self.done).then_some(end))
    }
}

/// Sends every datagram back at once. Runs on the server.
pub struct EchoServer {
    protection: Option<Protection>,
    protected: bool,
}

impl EchoServer {
    /// A server whose answers are protected like this.
    #[must_use]
    pub const fn new(protection: Option<Protection>) -> Self {
        Self { protection, protected: false }
    }
}

impl App<Connection> for EchoServer {
    fn poll(&mut self, _: Instant, quic: &mut Connection) -> Result<Option<Instant>, AppError> {
        while let Some(datagram) = quic.recv_datagram() {
            if !std::mem::replace(&mut self.protected, true) {
                quic.datagrams().protect(self.protection.clone());
            }
            quic.send_datagram(datagram)?;
        }
        Ok(None)
    }
}
