//! Updates of a screen, each a set of messages of an ordered group, and when each is delivered (Eghbal and
//! Lu 2025, sections 3 and 6).
//!
//! The client asks for updates on a bidirectional stream: 8 bytes with the number of updates that it wants
//! from now on. A message begins with its number and its creation time in nanoseconds since the start of the
//! simulation, 8 bytes each.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sutura_groups::{GroupId, GroupMessage, ReceiveGroups, SendGroupError, SendGroups};
use sutura_proto::{Connection, Dir, Event, Priority, SendMessageError, Side, StreamId};

use super::stamp::Stamp;
use super::{Number, read_all};
use crate::{App, AppError, Clock, Quic, Received};

/// In which order messages are delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateOrder {
    /// As they were sent: a fence behind each.
    Total,
    /// The messages of an update in any order: a fence behind each update.
    Partial,
    /// After the messages that each message names, and behind the fences that stand before some messages.
    Named,
}

/// The messages that a message comes after in [`UpdateOrder::Named`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Before {
    /// Numbers of messages; the first of the first update has the number 0.
    pub after: Vec<u64>,
    /// Whether all messages sent so far come first.
    pub fence: bool,
}

/// When an update is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// At its own time, or when there is room after that.
    Streaming,
    /// When the client asks for it, this long after it has all of the previous update.
    Asked(Duration),
}

/// An update.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Update {
    /// When it is made, since the first.
    pub at: Duration,
    /// The sizes of its messages in bytes; at least 16 are sent.
    pub messages: Vec<usize>,
    /// The messages that each message comes after; none for a message without an entry.
    pub before: Vec<Before>,
}

/// The updates to send, and how.
#[derive(Clone, Debug)]
pub struct UpdatePlan {
    /// The updates, the earliest first.
    pub updates: Arc<[Update]>,
    /// In which order their messages are delivered.
    pub order: UpdateOrder,
    /// When they are sent.
    pub pace: Pace,
    /// How long each message may take, as the transport is told; `None` to not tell it.
    pub deadline: Option<Duration>,
    /// Whether both ends end the stream of requests after the last one. Otherwise it stays open as long
    /// as the connection.
    pub ends: bool,
}

impl UpdatePlan {
    /// `count` updates of `messages` messages of `size` bytes, all made at once.
    #[must_use]
    pub fn equal(count: usize, messages: usize, size: usize) -> Self {
        let messages = vec![size; messages];
        let update = Update { at: Duration::ZERO, messages, before: Vec::new() };
        Self {
            updates: vec![update; count].into(),
            order: UpdateOrder::Partial,
            pace: Pace::Streaming,
            deadline: None,
            ends: false,
        }
    }

    /// The number of each update's first message, and last the number of messages.
    fn starts(&self) -> Vec<u64> {
        let mut next = 0;
        let starts = self.updates.iter().map(|update| {
            next += update.messages.len() as u64;
            next
        });
        std::iter::once(0).chain(starts).collect()
    }
}

/// Sends updates. Runs on the server.
pub struct UpdateSource {
    plan: UpdatePlan,
    clock: Clock,
    groups: SendGroups,
    group: Option<GroupId>,
    /// The stream of requests, and the next request.
    requests: Option<StreamId>,
    requests_ended: bool,
    request: Number,
    /// How many updates were asked for, and when the first was.
    asked: usize,
    started: Option<Instant>,
    /// When the update that is being sent was made.
    made: Option<Instant>,
    /// The next update, and the next message of it.
    update: usize,
    message: usize,
    /// Messages sent.
    sent: u64,
}

impl UpdateSource {
    /// Sends the updates of `plan` as they are asked for.
    #[must_use]
    pub fn new(plan: UpdatePlan, clock: Clock) -> Self {
        Self {
            plan,
            clock,
            groups: SendGroups::default(),
            group: None,
            requests: None,
            requests_ended: false,
            request: Number::default(),
            asked: 0,
            started: None,
            made: None,
            update: 0,
            message: 0,
            sent: 0,
        }
    }

    /// Whether everything was sent and its fate is known.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.update == self.plan.updates.len() && self.groups.open_messages() == 0
    }

    fn read_requests(&mut self, now: Instant, quic: &mut Connection) -> Result<(), AppError> {
        self.requests = self.requests.or_else(|| quic.accept(Dir::Bi));
        let Some(stream) = self.requests else { return Ok(()) };
        let mut buffer = [0; 64];
        while !self.requests_ended {
            let n = match Quic::read(quic, stream.0, &mut buffer)? {
                Received::Data(n) => n,
                Received::Nothing => break,
                Received::End => {
                    self.requests_ended = true;
                    return Quic::finish(quic, stream.0);
                }
            };
            let mut data = &buffer[..n];
            while !data.is_empty() {
                data = self.request.take(data);
                let Some(more) = self.request.get() else { break };
                self.request = Number::default();
                self.asked += usize::try_from(more).unwrap_or(usize::MAX);
                self.started.get_or_insert(now);
            }
        }
        Ok(())
    }

    /// When the next update is due; `None` if it was not asked for.
    fn due(&self) -> Option<Instant> {
        let update = self.plan.updates.get(self.update).filter(|_| self.update < self.asked)?;
        match self.plan.pace {
            Pace::Streaming => Some(self.started? + update.at),
            Pace::Asked(_) => self.started,
        }
    }

    /// Sends the rest of the update that is due. Returns false if the transport takes no more for now.
    fn send(&mut self, made: Instant, quic: &mut Connection) -> Result<bool, AppError> {
        let group = match self.group {
            Some(group) => group,
            None => *self.group.insert(
                self.groups
                    .open(Priority::default())
                    .ok_or_else(|| AppError("no group can be opened".to_owned()))?,
            ),
        };
        while let Some(size) = self.plan.updates[self.update].messages.get(self.message) {
            let data = Stamp::new(self.sent, made, &self.clock).message(*size);
            let deadline = self.plan.deadline.map(|deadline| made + deadline);
            let before = match self.plan.order {
                UpdateOrder::Total | UpdateOrder::Partial => None,
                UpdateOrder::Named => self.plan.updates[self.update].before.get(self.message),
            };
            if before.is_some_and(|before| before.fence) {
                self.groups.fence(group);
            }
            let after = before.map_or(&[][..], |before| &before.after);
            let message = GroupMessage::new(&data).with_after(after).with_deadline(deadline);
            match self.groups.send(quic, group, &message) {
                Ok(number) if number == self.sent => {}
                Err(SendGroupError::Message(SendMessageError::Blocked)) => return Ok(false),
                other => return Err(AppError(format!("message {}: {other:?}", self.sent))),
            }
            (self.message, self.sent) = (self.message + 1, self.sent + 1);
            if self.plan.order == UpdateOrder::Total {
                self.groups.fence(group);
            }
        }
        if self.plan.order == UpdateOrder::Partial {
            self.groups.fence(group);
        }
        (self.update, self.message) = (self.update + 1, 0);
        if self.update == self.plan.updates.len() {
            self.groups.finish(quic, group);
        }
        Ok(true)
    }
}

impl App<Connection> for UpdateSource {
    fn on_event(
        &mut self,
        _now: Instant,
        quic: &mut Connection,
        event: Event,
    ) -> Result<(), AppError> {
        match event {
            Event::MessageOutcomes => {
                while let Some((id, outcome)) = quic.poll_message_outcome() {
                    self.groups.on_outcome(quic, id, outcome);
                }
            }
            Event::MessagesWritable => {
                self.groups.flush(quic);
            }
            _ => {}
        }
        Ok(())
    }

    fn poll(&mut self, now: Instant, quic: &mut Connection) -> Result<Option<Instant>, AppError> {
        self.read_requests(now, quic)?;
        while let Some(due) = self.due() {
            if due > now {
                return Ok(Some(due));
            }
            let made = *self.made.get_or_insert(match self.plan.pace {
                Pace::Streaming => due,
                Pace::Asked(_) => now,
            });
            if !self.send(made, quic)? {
                // An event will follow.
                return Ok(None);
            }
            self.made = None;
        }
        Ok(None)
    }
}

/// The times of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveredMessage {
    /// The number of the message, in the order of sending.
    pub number: u64,
    /// When its sender made it, since the links came up.
    pub made: Duration,
    /// When it was complete at the receiver.
    pub completed: Duration,
    /// When it was delivered.
    pub delivered: Duration,
}

/// Receives updates. Runs on the client.
pub struct UpdateSink {
    plan: UpdatePlan,
    clock: Clock,
    groups: ReceiveGroups,
    requests: Option<u64>,
    /// The stream of requests has ended at this end, and not yet at the other.
    ending: bool,
    /// The first message of each update.
    starts: Vec<u64>,
    /// How many updates were asked for, and when to ask for the next one, if all of these are delivered.
    asked: usize,
    ask_at: Option<Instant>,
    /// When each update was asked for.
    asked_at: Vec<Duration>,
    delivered: Vec<DeliveredMessage>,
    seen: HashSet<u64>,
}

impl UpdateSink {
    /// Asks for the updates of `plan` and notes when their messages are delivered.
    #[must_use]
    pub fn new(plan: UpdatePlan, clock: Clock) -> Self {
        Self {
            starts: plan.starts(),
            plan,
            clock,
            groups: ReceiveGroups::new(Side::Client),
            requests: None,
            ending: false,
            asked: 0,
            ask_at: None,
            asked_at: Vec::new(),
            delivered: Vec::new(),
            seen: HashSet::new(),
        }
    }

    /// The messages in the order in which they were delivered.
    #[must_use]
    pub fn delivered(&self) -> &[DeliveredMessage] {
        &self.delivered
    }

    /// When each update was asked for, since the links came up; streaming updates all at once.
    #[must_use]
    pub fn asked_at(&self) -> &[Duration] {
        &self.asked_at
    }

    /// Whether everything was delivered.
    #[must_use]
    pub fn is_done(&self) -> bool {
        Some(&(self.delivered.len() as u64)) == self.starts.last()
    }

    /// Asks for `count` more updates.
    fn ask(&mut self, now: Instant, quic: &mut Connection, count: usize) -> Result<(), AppError> {
        let stream = match self.requests {
            Some(stream) => stream,
            None => {
                let Some(stream) = quic.open(Dir::Bi) else { return Ok(()) };
                *self.requests.insert(stream.0)
            }
        };
        Quic::write(quic, stream, &(count as u64).to_be_bytes())?;
        self.asked += count;
        if self.plan.ends && self.asked >= self.plan.updates.len() {
            Quic::finish(quic, stream)?;
            self.ending = true;
        }
        self.asked_at.resize(self.asked, self.clock.since_start(now));
        Ok(())
    }

    /// Whether all that a message names came before it.
    fn has_all_before(&self, number: u64) -> bool {
        let update = self.starts.partition_point(|start| *start <= number).saturating_sub(1);
        let Some((start, update)) = self.starts.get(update).zip(self.plan.updates.get(update))
        else {
            return false;
        };
        let index = usize::try_from(number - start).unwrap_or(usize::MAX);
        let Some(before) = update.before.get(index) else { return true };
        let fenced = if before.fence { 0..number } else { 0..0 };
        before.after.iter().copied().chain(fenced).all(|first| self.seen.contains(&first))
    }

    /// Checks a message and notes it.
    fn take(&mut self, now: Instant, completed: Instant, data: &[u8]) -> Result<(), AppError> {
        let Stamp { number, made } = Stamp::of(data)?;
        if !self.seen.insert(number) {
            return Err(AppError(format!("message {number} came twice")));
        }
        let position = self.delivered.len() as u64;
        let of = |n: u64| self.starts.partition_point(|start| *start <= n);
        let in_turn = match self.plan.order {
            UpdateOrder::Total => number == position,
            UpdateOrder::Partial => of(number) == of(position),
            UpdateOrder::Named => self.has_all_before(number),
        };
        if !in_turn {
            return Err(AppError(format!("message {number} came in place {position}")));
        }
        let since = |at| self.clock.since_start(at);
        self.delivered.push(DeliveredMessage {
            number,
            made,
            completed: since(completed),
            delivered: since(now),
        });
        if let Pace::Asked(gap) = self.plan.pace
            && Some(&(position + 1)) == self.starts.get(self.asked)
        {
            self.ask_at = Some(now + gap);
        }
        Ok(())
    }
}

impl App<Connection> for UpdateSink {
    fn on_event(
        &mut self,
        _now: Instant,
        _quic: &mut Connection,
        event: Event,
    ) -> Result<(), AppError> {
        if let Event::Stream(event) = event {
            self.groups.on_event(&event);
        }
        Ok(())
    }

    fn poll(&mut self, now: Instant, quic: &mut Connection) -> Result<Option<Instant>, AppError> {
        if quic.is_handshaking() {
            return Ok(None);
        }
        if self.requests.is_none() {
            let first = match self.plan.pace {
                Pace::Streaming => self.plan.updates.len(),
                Pace::Asked(_) => 1,
            };
            self.ask(now, quic, first)?;
        }
        if let Some(stream) = self.requests.filter(|_| self.ending) {
            self.ending = !read_all(quic, stream, |_| Ok(()))?;
        }
        loop {
            let received = self.groups.receive(now, quic);
            received.map_err(|error| AppError(error.to_string()))?;
            if !self.groups.is_ready() {
                break;
            }
            while let Some(message) = self.groups.pop() {
                self.take(now, message.completed, &message.data)?;
            }
        }
        if self.ask_at.is_some_and(|at| at <= now) && self.asked < self.plan.updates.len() {
            self.ask_at = None;
            self.ask(now, quic, 1)?;
        }
        Ok(self.ask_at.filter(|_| !self.is_done()))
    }
}
