//! Messages with deadlines, such as the frames of a video conference, and the delay of each.
//!
//! The server sends, the client receives. A message tells its number and when it was made.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use sutura_proto::{
    Connection, Dir, Event, MessageId, MessageOptions, MessageOutcome, Protection, ReadError,
    SendMessageError, StreamId,
};

use super::CHUNK;
use super::stamp::Stamp;
use crate::{App, AppError, Clock};

/// A message of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedMessage {
    /// When the message is sent, since the first.
    pub at: Duration,
    /// Its size in bytes; at least 16 are sent.
    pub size: usize,
}

/// The messages to send, and how.
#[derive(Clone, Debug)]
pub struct MessagePlan {
    /// The messages, the earliest first.
    pub messages: Arc<[TimedMessage]>,
    /// How long each may take, as the transport is told; `None` to not tell it.
    pub deadline: Option<Duration>,
    /// Whether the transport is told when the next message comes.
    pub announce: bool,
    /// The code with which messages are cancelled that cannot be in time.
    pub cancel_late: Option<u64>,
    /// Whether messages that fit in a datagram are sent as one.
    pub unreliable: bool,
    /// How datagrams are protected. Streams are protected as the server's configuration says.
    pub protection: Option<Protection>,
}

impl MessagePlan {
    /// Messages on streams, of whose deadlines and times the transport is told nothing.
    #[must_use]
    pub fn new(messages: impl IntoIterator<Item = TimedMessage>) -> Self {
        Self {
            messages: messages.into_iter().collect(),
            deadline: None,
            announce: false,
            cancel_late: None,
            unreliable: false,
            protection: None,
        }
    }

    /// `count` messages of `size` bytes, one every `interval`.
    #[must_use]
    pub fn steady(count: u32, size: usize, interval: Duration) -> Self {
        Self::new((0..count).map(|n| TimedMessage { at: interval * n, size }))
    }
}

/// Sends messages. Runs on the server.
pub struct MessageSource {
    plan: MessagePlan,
    clock: Clock,
    started: Option<Instant>,
    sent: usize,
    /// The messages whose fate is open, and their numbers.
    open: HashMap<MessageId, usize>,
    fates: Vec<Option<MessageOutcome>>,
}

impl MessageSource {
    /// Sends the messages of `plan`, starting when the connection is established.
    #[must_use]
    pub fn new(plan: MessagePlan, clock: Clock) -> Self {
        let fates = vec![None; plan.messages.len()];
        Self { plan, clock, started: None, sent: 0, open: HashMap::new(), fates }
    }

    /// Whether the fate of every message is known.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.sent == self.plan.messages.len() && self.open.is_empty()
    }

    /// The outcome of each message, as the sender was told; `None` if it is open.
    #[must_use]
    pub fn fates(&self) -> &[Option<MessageOutcome>] {
        &self.fates
    }

    /// When the next message is due.
    fn next_at(&self) -> Option<Instant> {
        let next = self.plan.messages.get(self.sent)?;
        Some(self.started? + next.at)
    }

    /// Sends one message. Returns false if the transport takes no more for now.
    fn send(&mut self, quic: &mut Connection, made: Instant) -> Result<bool, AppError> {
        let stamp = Stamp::new(self.sent as u64, made, &self.clock);
        let data = Bytes::from(stamp.message(self.plan.messages[self.sent].size));
        let options = MessageOptions::default()
            .with_deadline(self.plan.deadline.map(|deadline| made + deadline))
            .with_cancel_late(self.plan.cancel_late)
            .with_unreliable(self.plan.unreliable);
        match quic.send_message(data, options) {
            Ok(id) => {
                self.open.insert(id, self.sent);
                self.sent += 1;
                Ok(true)
            }
            Err(SendMessageError::Blocked) => Ok(false),
            Err(error) => Err(AppError(format!("message {}: {error}", self.sent))),
        }
    }
}

impl App<Connection> for MessageSource {
    fn on_event(
        &mut self,
        _now: Instant,
        quic: &mut Connection,
        event: Event,
    ) -> Result<(), AppError> {
        if event == Event::MessageOutcomes {
            while let Some((id, outcome)) = quic.poll_message_outcome() {
                let number = self.open.remove(&id);
                let number = number.ok_or(AppError("a fate was told twice".to_owned()))?;
                self.fates[number] = Some(outcome);
            }
        }
        Ok(())
    }

    fn poll(&mut self, now: Instant, quic: &mut Connection) -> Result<Option<Instant>, AppError> {
        if quic.is_handshaking() {
            return Ok(None);
        }
        if self.started.is_none() {
            self.started = Some(now);
            quic.datagrams().protect(self.plan.protection.clone());
        }
        while let Some(at) = self.next_at().filter(|at| *at <= now) {
            if !self.send(quic, at)? {
                // An event will follow.
                return Ok(None);
            }
            if self.plan.announce {
                quic.next_message_at(self.next_at());
            }
        }
        Ok(self.next_at())
    }
}

/// Receives messages. Runs on the client.
pub struct MessageSink {
    clock: Clock,
    /// Messages of which only a part has arrived.
    partial: Vec<(StreamId, Vec<u8>)>,
    delays: Vec<Option<Duration>>,
}

impl MessageSink {
    /// Expects `count` messages and measures their delays with `clock`.
    #[must_use]
    pub fn new(count: usize, clock: Clock) -> Self {
        Self { clock, partial: Vec::new(), delays: vec![None; count] }
    }

    /// The delay of each message; `None` if it did not arrive.
    #[must_use]
    pub fn delays(&self) -> &[Option<Duration>] {
        &self.delays
    }

    /// Takes a complete message.
    fn take(&mut self, now: Instant, message: &[u8]) -> Result<(), AppError> {
        let Stamp { number, made } = Stamp::of(message)?;
        let delay = usize::try_from(number).ok().and_then(|number| self.delays.get_mut(number));
        let delay = delay.ok_or_else(|| AppError(format!("message {number} was never sent")))?;
        if delay.replace(self.clock.since_start(now).saturating_sub(made)).is_some() {
            return Err(AppError(format!("message {number} came twice")));
        }
        Ok(())
    }
}

/// Reads the data of a stream. Returns whether the stream is over, and complete.
fn read(quic: &mut Connection, id: StreamId, data: &mut Vec<u8>) -> Result<Over, AppError> {
    loop {
        match quic.recv_stream(id).read_chunk(CHUNK, true) {
            Ok(Some(chunk)) => data.extend_from_slice(&chunk.bytes),
            Ok(None) => return Ok(Over::Complete),
            Err(ReadError::Blocked) => return Ok(Over::No),
            Err(ReadError::Reset(_)) => return Ok(Over::Cancelled),
            Err(error) => return Err(AppError(format!("stream {}: {error}", id.0))),
        }
    }
}

/// Whether a message is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    No,
    Complete,
    Cancelled,
}

impl App<Connection> for MessageSink {
    fn poll(&mut self, now: Instant, quic: &mut Connection) -> Result<Option<Instant>, AppError> {
        while let Some(id) = quic.accept(Dir::Uni) {
            self.partial.push((id, Vec::new()));
        }
        for (id, mut data) in std::mem::take(&mut self.partial) {
            match read(quic, id, &mut data)? {
                Over::No => self.partial.push((id, data)),
                Over::Complete => self.take(now, &data)?,
                Over::Cancelled => {}
            }
        }
        while let Some(datagram) = quic.datagrams().recv() {
            self.take(now, &datagram)?;
        }
        Ok(None)
    }
}
