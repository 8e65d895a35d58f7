//! A stream of equally sized messages at a steady pace, like video or a remote desktop, and the
//! delay of each byte between the applications.
//!
//! The client opens a stream and requests a number of messages, encoded in 8 bytes. Each message
//! begins with its creation time in nanoseconds since the start of the simulation.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use sutura_proto::Protection;

use super::{Number, read_all};
use crate::{App, AppError, Clock, Pattern, Quic};

/// The messages to stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamPlan {
    /// The size of a message in bytes, at least 8.
    pub size: usize,
    /// The time from one message to the next.
    pub interval: Duration,
    /// The number of messages.
    pub count: u64,
    /// How the server protects the messages.
    pub protection: Option<Protection>,
}

impl StreamPlan {
    /// Messages of 5 kB at 60 Hz.
    #[must_use]
    pub const fn frames(count: u64) -> Self {
        let interval = Duration::from_nanos(1_000_000_000 / 60);
        Self { size: 5000, interval, count, protection: None }
    }

    fn size(&self) -> usize {
        self.size.max(8)
    }
}

/// The delay of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// The time from the creation of their message until they were read.
    pub delay: Duration,
    /// The number of bytes.
    pub bytes: u64,
}

/// Sends messages. Runs on the server.
pub struct StreamSource {
    plan: StreamPlan,
    clock: Clock,
    stream: Option<u64>,
    request: Number,
    next_at: Option<Instant>,
    made: u64,
    /// Data that did not fit into the stream's buffer yet.
    backlog: VecDeque<u8>,
    finished: bool,
}

impl StreamSource {
    /// Sends messages as described by `plan`, except that the client requests how many.
    #[must_use]
    pub fn new(plan: StreamPlan, clock: Clock) -> Self {
        Self {
            plan,
            clock,
            stream: None,
            request: Number::default(),
            next_at: None,
            made: 0,
            backlog: VecDeque::new(),
            finished: false,
        }
    }

    fn make(&mut self, made_at: Instant) {
        let time = self.clock.since_start(made_at).as_nanos() as u64;
        self.backlog.extend(time.to_be_bytes());
        let mut body = vec![0; self.plan.size() - 8];
        Pattern::new(self.made).fill(0, &mut body);
        self.backlog.extend(body);
        self.made += 1;
    }

    /// Writes as much as possible. Returns whether the backlog is empty.
    fn write(&mut self, stream: u64, quic: &mut impl Quic) -> Result<bool, AppError> {
        while !self.backlog.is_empty() {
            let written = quic.write(stream, self.backlog.as_slices().0)?;
            if written == 0 {
                return Ok(false);
            }
            self.backlog.drain(..written);
        }
        Ok(true)
    }
}

impl<Q: Quic> App<Q> for StreamSource {
    fn poll(&mut self, now: Instant, quic: &mut Q) -> Result<Option<Instant>, AppError> {
        if self.stream.is_none() {
            self.stream = quic.accept();
        }
        let Some(stream) = self.stream.filter(|_| !self.finished) else { return Ok(None) };
        if self.next_at.is_none() {
            let request = &mut self.request;
            read_all(quic, stream, |data| {
                request.take(data);
                Ok(())
            })?;
            if self.request.get().is_none() {
                return Ok(None);
            }
            quic.protect(stream, self.plan.protection.clone())?;
            self.next_at = Some(now);
        }
        let count = self.request.get().unwrap_or(0);
        while let Some(at) = self.next_at.filter(|at| *at <= now && self.made < count) {
            self.make(at);
            self.next_at = Some(at + self.plan.interval);
        }
        if self.write(stream, quic)? && self.made == count {
            quic.finish(stream)?;
            self.finished = true;
        }
        Ok(self.next_at.filter(|_| self.made < count))
    }
}

/// Receives messages. Runs on the client.
pub struct StreamSink {
    plan: StreamPlan,
    clock: Clock,
    stream: Option<u64>,
    asked: usize,
    meter: Meter,
    done: bool,
}

/// Splits the stream into messages, and checks and measures them.
struct Meter {
    clock: Clock,
    size: usize,
    received: u64,
    header: Number,
    /// When the bytes of an incomplete header arrived, and how many.
    early: Vec<(Instant, u64)>,
    delays: Vec<Delay>,
    /// When the first message was made.
    began: Option<Instant>,
}

impl StreamSink {
    /// Requests the messages of `plan`.
    #[must_use]
    pub fn new(plan: StreamPlan, clock: Clock) -> Self {
        let meter = Meter {
            clock,
            size: plan.size(),
            received: 0,
            header: Number::default(),
            early: Vec::new(),
            delays: Vec::new(),
            began: None,
        };
        Self { plan, clock, stream: None, asked: 0, meter, done: false }
    }

    /// The delays of all bytes received so far, in stream order.
    #[must_use]
    pub fn delays(&self) -> &[Delay] {
        &self.meter.delays
    }

    /// When the first message was made, since the start of the simulation; `None` before it arrived.
    #[must_use]
    pub fn began(&self) -> Option<Duration> {
        self.meter.began.map(|at| self.clock.since_start(at))
    }

    /// Whether everything was received.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.done
    }

    /// The clock that the delays are measured with.
    #[must_use]
    pub const fn clock(&self) -> Clock {
        self.clock
    }
}

impl Meter {
    fn take(&mut self, now: Instant, mut data: &[u8]) -> Result<(), AppError> {
        while !data.is_empty() {
            let message = self.received / self.size as u64;
            let within = (self.received % self.size as u64) as usize;
            let n = if within < 8 { 8 - within } else { self.size - within }.min(data.len());
            let (part, rest) = data.split_at(n);
            if within < 8 {
                self.header.take(part);
                self.early.push((now, n as u64));
            } else if Pattern::new(message).mismatch(within as u64 - 8, part).is_some() {
                return Err(AppError(format!("message {message} is damaged")));
            }
            self.measure(now, if within < 8 { 0 } else { n as u64 });
            self.received += n as u64;
            data = rest;
            if self.received.is_multiple_of(self.size as u64) {
                self.header = Number::default();
            }
        }
        Ok(())
    }

    fn measure(&mut self, now: Instant, bytes: u64) {
        let Some(made) = self.header.get() else { return };
        let made = self.clock.at(Duration::from_nanos(made));
        self.began.get_or_insert(made);
        let early = std::mem::take(&mut self.early);
        for (at, bytes) in early.into_iter().chain((bytes > 0).then_some((now, bytes))) {
            self.delays.push(Delay { delay: at.saturating_duration_since(made), bytes });
        }
    }
}

impl<Q: Quic> App<Q> for StreamSink {
    fn poll(&mut self, now: Instant, quic: &mut Q) -> Result<Option<Instant>, AppError> {
        if self.stream.is_none() {
            self.stream = quic.open();
        }
        let Some(stream) = self.stream.filter(|_| !self.done) else { return Ok(None) };
        let request = self.plan.count.to_be_bytes();
        if self.asked < request.len() {
            self.asked += quic.write(stream, &request[self.asked..])?;
            if self.asked == request.len() {
                quic.finish(stream)?;
            }
        }
        let meter = &mut self.meter;
        self.done = read_all(quic, stream, |data| meter.take(now, data))?;
        let expected = self.plan.count * self.meter.size as u64;
        if self.done && self.meter.received != expected {
            let got = self.meter.received;
            return Err(AppError(format!("{got} bytes instead of {expected}")));
        }
        Ok(None)
    }
}
