//! Unreliable datagrams at a steady pace, and the delay of each.

use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::{App, AppError, Clock, Pattern, Quic};

/// The number and the time at the beginning of a datagram, 8 bytes each.
const HEADER: usize = 16;

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

impl DatagramPlan {
    fn size(&self) -> usize {
        self.size.max(HEADER)
    }
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
            let mut datagram = vec![0; self.plan.size()];
            datagram[..8].copy_from_slice(&self.sent.to_be_bytes());
            let time = self.clock.since_start(at).as_nanos() as u64;
            datagram[8..HEADER].copy_from_slice(&time.to_be_bytes());
            Pattern::new(self.sent).fill(0, &mut datagram[HEADER..]);
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
            let Some((header, body)) = datagram.split_first_chunk::<HEADER>() else {
                return Err(AppError(format!("a datagram of {} bytes", datagram.len())));
            };
            let (number, time) = header.split_at(8);
            let number = read_u64(number);
            if Pattern::new(number).mismatch(0, body).is_some() {
                return Err(AppError(format!("datagram {number} is damaged")));
            }
            let made = self.clock.at(Duration::from_nanos(read_u64(time)));
            self.delays.push((number, now.saturating_duration_since(made)));
        }
        Ok(None)
    }
}

fn read_u64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
