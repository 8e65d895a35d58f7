//! Unreliable datagrams at a steady pace, and how long each takes.

use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::{App, AppError, Clock, Pattern, Quic};

/// Bytes of a datagram's number and time.
const HEADER: usize = 16;

/// What is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramPlan {
    /// Bytes of a datagram, 16 at least.
    pub size: usize,
    /// From one datagram to the next.
    pub interval: Duration,
    /// How many.
    pub count: u64,
}

impl DatagramPlan {
    fn size(&self) -> usize {
        self.size.max(HEADER)
    }
}

/// Sends datagrams: the client's end.
pub struct DatagramSource {
    plan: DatagramPlan,
    clock: Clock,
    next_at: Option<Instant>,
    sent: u64,
}

impl DatagramSource {
    /// Datagrams as planned, as soon as the connection is established.
    #[must_use]
    pub const fn new(plan: DatagramPlan, clock: Clock) -> Self {
        Self { plan, clock, next_at: None, sent: 0 }
    }

    /// How many were sent.
    #[must_use]
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// Whether all were sent.
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

/// Receives datagrams: the server's end.
pub struct DatagramSink {
    clock: Clock,
    delays: Vec<(u64, Duration)>,
}

impl DatagramSink {
    /// Takes what comes.
    #[must_use]
    pub const fn new(clock: Clock) -> Self {
        Self { clock, delays: Vec::new() }
    }

    /// The number and the delay of each datagram, in the order of their arrival.
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
