//! Unreliable datagrams at a steady pace, and the delay of each.

use std::time::{Duration, Instant};

use bytes::Bytes;

use super::stamp::Stamp;
use crate::{App, AppError, Clock, Quic};

/// The datagrams to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramPlan {
    /// The size of a datagram in bytes, at least 16.
    pub size: usize,
    /// The time from one datagram to the next.
    pub interval: Duration,
    /// The number of datagrams.
    pub count: u64,
}

/// Sends datagrams. Runs on the client.
pub struct DatagramSource {
    plan: DatagramPlan,
    clock: Clock,
    next_at: Option<Instant>,
    sent: u64,
}

impl DatagramSource {
    /// Sends the datagrams of `plan`, starting when the connection is established.
    #[must_use]
    pub const fn new(plan: DatagramPlan, clock: Clock) -> Self {
        Self { plan, clock, next_at: None, sent: 0 }
    }

    /// The number of datagrams sent.
    #[must_use]
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// Whether all datagrams were sent.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.sent == self.plan.count
    }
}

impl<Q: Quic> App<Q> for DatagramSource {
    fn poll(&mut self, now: Instant, quic: &mut Q) -> Result<Option<Instant>, AppError> {
        if !quic.is_established() {
            return Ok(None);
        }
        let mut at = *self.next_at.get_or_insert(now);
        while at <= now && !self.is_done() {
            let datagram = Stamp::new(self.sent, at, &self.clock).message(self.plan.size);
            quic.send_datagram(Bytes::from(datagram))?;
            self.sent += 1;
            at += self.plan.interval;
        }
        self.next_at = Some(at);
        Ok(self.next_at.filter(|_| !self.is_done()))
    }
}

/// Receives datagrams. Runs on the server.
pub struct DatagramSink {
    clock: Clock,
    delays: Vec<(u64, Duration)>,
}

impl DatagramSink {
    /// Receives datagrams and measures their delays with `clock`.
    #[must_use]
    pub const fn new(clock: Clock) -> Self {
        Self { clock, delays: Vec::new() }
    }

    /// The number and the delay of each datagram, in order of arrival.
    #[must_use]
    pub fn delays(&self) -> &[(u64, Duration)] {
        &self.delays
    }
}

impl<Q: Quic> App<Q> for DatagramSink {
    fn poll(&mut self, now: Instant, quic: &mut Q) -> Result<Option<Instant>, AppError> {
        while let Some(datagram) = quic.recv_datagram() {
            let Stamp { number, made } = Stamp::of(&datagram)?;
            let delay = self.clock.since_start(now).saturating_sub(made);
            self.delays.push((number, delay));
        }
        Ok(None)
    }
}
