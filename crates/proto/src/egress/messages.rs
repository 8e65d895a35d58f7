//! Messages, which the application sends as a whole, on a stream of its own or as a datagram, and the outcome
//! of each message.

#[cfg(feature = "testing")]
mod check;

use super::Egress;
use crate::datagram_queue::OVERHEAD;
use crate::fec::Horizon;
use crate::fec::redundancy::{PathView, Stage};
use crate::ids::{MessageId, StreamId};
use crate::rare::Uncommon;
use crate::streams::{EndedMessage, NewMessage, Streams};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use sutura_schedule::Priority;

/// The most datagrams whose fate is awaited at once; beyond this number, the oldest counts as given up.
pub const MAX_OPEN_DATAGRAMS: usize = 16_384;
/// The most messages on streams that are neither complete nor given up. Beyond this number, sending is
/// blocked.
pub const MAX_OPEN_MESSAGES: usize = 16_384;
/// The most bytes of messages that wait until the peer allows another stream, with 64 bytes more for each
/// message. Beyond this number, sending is blocked; a single message may be larger.
pub const MAX_WAITING_BYTES: usize = 1 << 20;
/// The most outcomes that the application has not fetched; the oldest are dropped first. One packet may bring
/// the outcomes of all open messages.
pub const MAX_OUTCOMES: usize = MAX_OPEN_MESSAGES;

/// The deadline of a [`Priority`] that stands for the first deadline of a connection. It leaves as much room
/// for earlier deadlines as for later deadlines.
const FIRST_DEADLINE: u64 = 1 << 62;

/// Why a message was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendMessageError {
    /// Too many messages or bytes are waiting to be sent;
    /// [`Event::MessagesWritable`](crate::Event::MessagesWritable) will follow.
    #[error("too many messages are waiting")]
    Blocked,
    /// The message is larger than the send buffer of a stream.
    #[error("message too large")]
    TooLarge,
    /// The connection is over.
    #[error("connection closed")]
    Closed,
}

/// How a message is sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageOptions {
    /// When the message must be at the receiver; `None` if it is never too late.
    pub deadline: Option<Instant>,
    /// If the message cannot arrive in time and a part of it is still to be sent, it is cancelled with this
    /// application error code. `None` leaves the decision to
    /// [`TransportConfig::cancel_late`](crate::TransportConfig::cancel_late).
    pub cancel_late: Option<u64>,
    /// Whether the message goes as a DATAGRAM if it fits in a single DATAGRAM frame: it is not sent again
    /// when it is lost.
    pub unreliable: bool,
    /// The priority of its stream, or the urgency of its datagram. The deadline above replaces the deadline of the
    /// priority.
    pub priority: Priority,
    /// The place of the message in an ordered group. Only policies look at it; the bytes sent are the same.
    pub stage: Stage,
}

impl MessageOptions {
    sutura_schedule::setters! {
        with_deadline: deadline = Option<Instant>,
        with_cancel_late: cancel_late = Option<u64>,
        with_unreliable: unreliable = bool,
        with_priority: priority = Priority,
        with_stage: stage = Stage,
    }

    /// A message that must be at the receiver by `deadline`.
    #[must_use]
    pub fn by(deadline: Instant) -> Self {
        Self { deadline: Some(deadline), ..Self::default() }
    }
}

/// The outcome of a message or datagram, as far as the sender can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MessageOutcome {
    /// The message arrived.
    Arrived,
    /// The message arrived, and the peer computed at least a part of it from repair symbols.
    Recovered,
    /// The message arrived, but after its deadline: the report came more than half a round trip after the
    /// deadline.
    Late,
    /// The message was cancelled, dropped before it was sent, or lost and not mended; or the peer stopped it.
    /// A message that was sent may have arrived nevertheless.
    GivenUp,
}

/// The number of messages and datagrams with each outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageStats {
    /// Messages that the application sent.
    pub sent: u64,
    /// See [`MessageOutcome::Arrived`].
    pub arrived: u64,
    /// See [`MessageOutcome::Recovered`].
    pub recovered: u64,
    /// See [`MessageOutcome::Late`].
    pub late: u64,
    /// See [`MessageOutcome::GivenUp`].
    pub given_up: u64,
}

/// The place where the bytes of a message are.
#[derive(Debug)]
enum Place {
    /// The message waits for the peer to allow another stream.
    Waiting(Bytes, Priority),
    /// The message was written to this stream.
    Stream(StreamId),
}

/// A message that is neither complete nor given up.
#[derive(Debug)]
struct Record {
    place: Place,
    deadline: Option<Instant>,
    /// The code with which the message is cancelled if it cannot arrive in time.
    cancel: Option<u64>,
    /// Whether the peer recovered a part of the message.
    recovered: bool,
    /// How many bytes the peer buffers for the stream, once all of the message was sent.
    buffer: u64,
    /// The place of the message in an ordered group.
    stage: Stage,
}

/// The messages and datagrams of a connection.
#[derive(Debug, Default)]
pub(super) struct MessageTable {
    records: BTreeMap<MessageId, Record>,
    /// The deadlines of datagrams whose fate is open.
    datagrams: BTreeMap<MessageId, Option<Instant>>,
    /// Deadlines that can be met.
    due: BTreeSet<(Instant, MessageId)>,
    /// Messages whose time is over, to be cancelled as soon as a part of them waits to be sent.
    overdue: BTreeSet<MessageId>,
    /// Overdue messages of which a part may be waiting to be sent.
    suspects: BTreeSet<MessageId>,
    /// Messages that wait for a stream, in the order in which they were sent.
    waiting: VecDeque<MessageId>,
    /// Bytes of the messages that wait for a stream, with the overhead.
    waiting_bytes: usize,
    /// Messages that have a stream, but have sent no byte of it yet, and their sizes.
    fresh: BTreeMap<MessageId, usize>,
    /// Bytes of the messages in `fresh`.
    fresh_bytes: usize,
    /// How many bytes the peer buffers for the streams of messages of which all was sent.
    sent_buffer: u128,
    outcomes: VecDeque<(MessageId, MessageOutcome)>,
    /// Whether the application knows that there are outcomes.
    announced: bool,
    /// Whether a message was refused.
    blocked: bool,
    /// The deadline for which [`FIRST_DEADLINE`] stands.
    origin: Option<Instant>,
    /// When the application will write its next message.
    pub(super) next_at: Option<Instant>,
    /// When a deadline can no longer be met.
    wake: Option<Instant>,
    stats: MessageStats,
}

impl Uncommon for MessageTable {
    fn none() -> &'static Self {
        static NONE: LazyLock<MessageTable> = LazyLock::new(MessageTable::default);
        &NONE
    }
}

impl MessageTable {
    fn next_id(&mut self) -> MessageId {
        self.stats.sent += 1;
        MessageId(self.stats.sent - 1)
    }

    /// Records a datagram.
    pub(super) fn add_datagram(&mut self, deadline: Option<Instant>) -> MessageId {
        let id = self.next_id();
        if self.datagrams.len() >= MAX_OPEN_DATAGRAMS
            && let Some((&oldest, _)) = self.datagrams.first_key_value()
        {
            self.give_up(oldest);
        }
        self.datagrams.insert(id, deadline);
        self.due.extend(deadline.map(|deadline| (deadline, id)));
        id
    }

    /// The deadline of a datagram.
    pub(super) fn datagram_deadline(&self, id: MessageId) -> Option<Instant> {
        self.datagrams.get(&id).copied().flatten()
    }

    /// When the last of `datagrams` becomes useless; `None` if one of them has no deadline.
    pub(super) fn last_deadline(&self, datagrams: &[MessageId]) -> Option<Instant> {
        let all: Option<Vec<_>> = datagrams.iter().map(|id| self.datagram_deadline(*id)).collect();
        all?.into_iter().max()
    }

    /// The number for a priority that stands for `deadline`, in microseconds.
    fn ticks(&mut self, deadline: Instant) -> u64 {
        let origin = *self.origin.get_or_insert(deadline);
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let later = micros(deadline.saturating_duration_since(origin));
        let earlier = micros(origin.saturating_duration_since(deadline));
        FIRST_DEADLINE.saturating_add(later).saturating_sub(earlier)
    }

    /// Forgets a message or datagram whose fate is now known; returns its deadline. `None` if the
    /// fate was known before.
    fn close(&mut self, id: MessageId) -> Option<Option<Instant>> {
        let deadline = match self.records.remove(&id) {
            Some(record) => {
                if let Place::Waiting(data, _) = record.place {
                    self.waiting.retain(|waiting| *waiting != id);
                    self.waiting_bytes -= data.len() + OVERHEAD;
                }
                self.sent_buffer -= u128::from(record.buffer);
                record.deadline
            }
            None => self.datagrams.remove(&id)?,
        };
        if let Some(deadline) = deadline {
            self.due.remove(&(deadline, id));
        }
        self.overdue.remove(&id);
        self.suspects.remove(&id);
        self.begun(id);
        Some(deadline)
    }

    /// The first bytes of a message are being sent, or the message will not be sent at all.
    pub(super) fn begun(&mut self, id: MessageId) {
        self.fresh_bytes -= self.fresh.remove(&id).unwrap_or(0);
        self.sent(id, 0);
    }

    /// All of a message was sent, and the peer buffers `buffer` bytes for its stream.
    pub(super) fn sent(&mut self, id: MessageId, buffer: u64) {
        if let Some(record) = self.records.get_mut(&id) {
            self.sent_buffer = self.sent_buffer - u128::from(record.buffer) + u128::from(buffer);
            record.buffer = buffer;
        }
    }

    /// How many bytes the peer buffers for the streams of messages of which all was sent.
    pub(super) fn sent_buffer(&self) -> u64 {
        u64::try_from(self.sent_buffer).unwrap_or(u64::MAX)
    }

    /// A part of a message was queued to be sent again.
    pub(super) fn queued_again(&mut self, id: MessageId) {
        if self.overdue.contains(&id) {
            self.suspects.insert(id);
        }
    }

    /// Bytes of messages that have a stream, but have sent no byte of it yet; `None` without such messages.
    pub(super) fn fresh_bytes(&self) -> Option<u64> {
        (!self.fresh.is_empty()).then_some(self.fresh_bytes as u64)
    }

    fn report(&mut self, id: MessageId, outcome: MessageOutcome) {
        let count = match outcome {
            MessageOutcome::Arrived => &mut self.stats.arrived,
            MessageOutcome::Recovered => &mut self.stats.recovered,
            MessageOutcome::Late => &mut self.stats.late,
            MessageOutcome::GivenUp => &mut self.stats.given_up,
        };
        *count += 1;
        if self.outcomes.len() == MAX_OUTCOMES {
            self.outcomes.pop_front();
        }
        self.outcomes.push_back((id, outcome));
    }

    /// A message or datagram is known to have arrived by `at`.
    pub(super) fn arrived(&mut self, id: MessageId, at: Instant, recovered: bool) {
        let recovered = recovered || self.records.get(&id).is_some_and(|record| record.recovered);
        let Some(deadline) = self.close(id) else { return };
        let outcome = match deadline {
            Some(deadline) if at > deadline => MessageOutcome::Late,
            _ if recovered => MessageOutcome::Recovered,
            _ => MessageOutcome::Arrived,
        };
        self.report(id, outcome);
    }

    /// A message or datagram is given up.
    pub(super) fn give_up(&mut self, id: MessageId) {
        if self.close(id).is_some() {
            self.report(id, MessageOutcome::GivenUp);
        }
    }

    /// All messages and datagrams are given up.
    pub(super) fn give_up_all(&mut self) {
        let open: Vec<_> = self.records.keys().chain(self.datagrams.keys()).copied().collect();
        open.into_iter().for_each(|id| self.give_up(id));
    }

    /// The peer recovered a part of a message.
    pub(super) fn recovered(&mut self, id: MessageId) {
        if let Some(record) = self.records.get_mut(&id) {
            record.recovered = true;
        }
    }

    /// Takes the next message whose deadline is before `horizon`.
    fn take_expired(&mut self, horizon: Instant) -> Option<MessageId> {
        let first = *self.due.first().filter(|(deadline, _)| *deadline < horizon)?;
        self.due.remove(&first);
        Some(first.1)
    }
}

impl Egress {
    /// Sends a message on a stream of its own, or queues it until the peer allows another stream.
    ///
    /// # Errors
    /// The message is too large, or too many messages or bytes are waiting.
    pub fn send_message(
        &mut self,
        streams: &mut Streams,
        data: Bytes,
        options: MessageOptions,
    ) -> Result<MessageId, SendMessageError> {
        let MessageOptions { deadline, priority, stage, .. } = options;
        let cancel = options.cancel_late;
        if data.len() > streams.max_message() {
            return Err(SendMessageError::TooLarge);
        }
        let table = &mut *self.messages;
        let cost = data.len() + OVERHEAD;
        let is_full = !table.waiting.is_empty() && table.waiting_bytes + cost > MAX_WAITING_BYTES;
        if is_full || table.records.len() >= MAX_OPEN_MESSAGES {
            table.blocked = true;
            return Err(SendMessageError::Blocked);
        }
        let id = table.next_id();
        let ticks = deadline.map(|deadline| table.ticks(deadline));
        let place = Place::Waiting(data, priority.with_deadline(ticks));
        let record = Record { place, deadline, cancel, recovered: false, buffer: 0, stage };
        table.records.insert(id, record);
        table.due.extend(deadline.map(|deadline| (deadline, id)));
        table.waiting.push_back(id);
        table.waiting_bytes += cost;
        self.start_messages(streams);
        Ok(id)
    }

    /// Writes as many waiting messages to streams as the peer and the send buffers allow.
    fn start_messages(&mut self, streams: &mut Streams) {
        while let Some(id) = self.messages.waiting.front().copied() {
            let Some(record) = self.messages.records.get_mut(&id) else { return };
            let Place::Waiting(data, priority) = &record.place else { return };
            let (len, deadline) = (data.len(), record.deadline);
            let message = NewMessage {
                id,
                data: data.clone(),
                deadline,
                priority: priority.clone(),
                stage: record.stage,
            };
            let Some(stream) = streams.send_message(message) else { return };
            record.place = Place::Stream(stream);
            self.messages.waiting.pop_front();
            self.messages.waiting_bytes -= len + OVERHEAD;
            self.messages.fresh.insert(id, len);
            self.messages.fresh_bytes += len;
        }
    }

    /// Cancels a message or datagram: no more of its bytes are sent, and its stream is reset with `code`.
    /// Returns whether its fate was still open.
    pub fn cancel_message(&mut self, streams: &mut Streams, id: MessageId, code: u64) -> bool {
        let stream = match self.messages.records.get(&id).map(|record| &record.place) {
            Some(Place::Stream(stream)) => Some(*stream),
            Some(Place::Waiting(..)) => None,
            None if self.messages.datagrams.contains_key(&id) => {
                self.datagrams.retain(|queued| queued != id);
                None
            }
            None => return false,
        };
        if let Some(stream) = stream {
            // The reset fails only if the stream has just come to its end.
            let _ = self.reset(streams, stream, code);
        }
        self.messages.give_up(id);
        true
    }

    /// Whether the fate of any message or datagram is open.
    pub fn awaits_messages(&self) -> bool {
        !self.messages.records.is_empty() || !self.messages.datagrams.is_empty()
    }

    /// The stream of a message is over.
    pub(super) fn on_message_ended(&mut self, now: Instant, ended: EndedMessage, path: &PathView) {
        let EndedMessage { id, complete } = ended;
        if complete {
            self.messages.arrived(id, path.heard_from(now), false);
        } else {
            self.messages.give_up(id);
        }
    }

    /// Gives up deadlines that cannot be met by data that takes `delay` to the peer, on a path with this shortest round
    /// trip, and starts messages that waited. Called before packets are sent, after a packet was received, and by the
    /// timer.
    pub fn tend(
        &mut self,
        streams: &mut Streams,
        now: Instant,
        min_rtt: Duration,
        delay: Duration,
    ) {
        let horizon = Horizon::new(now, min_rtt, delay);
        if let Some(horizon) = horizon {
            self.sessions.expire(now, horizon);
        }
        if self.messages.get_mut().is_none() {
            return;
        }
        if let Some(horizon) = horizon {
            self.expire(streams, horizon.expected);
        }
        self.start_messages(streams);
        let first = self.messages.due.first().and_then(|(at, _)| at.checked_sub(delay));
        // A deadline expires once it is before the horizon, not at it: hence one microsecond more.
        self.messages.wake = first.map(|at| at + Duration::from_micros(1));
    }

    /// Handles the deadlines before `horizon`: data sent now comes too late for them.
    fn expire(&mut self, streams: &mut Streams, horizon: Instant) {
        let mut queued = false;
        while let Some(id) = self.messages.take_expired(horizon) {
            let Some(record) = self.messages.records.get_mut(&id) else {
                queued = true;
                continue;
            };
            match (&mut record.place, record.cancel) {
                (Place::Waiting(..), Some(_)) => self.messages.give_up(id),
                (Place::Waiting(_, priority), None) => priority.deadline = None,
                (Place::Stream(stream), cancel) => {
                    streams.withdraw_deadline(*stream);
                    self.messages.overdue.extend(cancel.map(|_| id));
                    self.messages.suspects.extend(cancel.map(|_| id));
                }
            }
        }
        if queued {
            self.drop_expired_datagrams(horizon);
        }
        self.cancel_overdue(streams);
    }

    fn drop_expired_datagrams(&mut self, horizon: Instant) {
        let mut late = Vec::new();
        let messages = &self.messages;
        self.datagrams.retain(|id| {
            let stays = messages.datagram_deadline(id).is_none_or(|deadline| deadline >= horizon);
            if !stays {
                late.push(id);
            }
            stays
        });
        late.into_iter().for_each(|id| self.messages.give_up(id));
    }

    /// Cancels messages that come too late and of which a part is still to be sent.
    fn cancel_overdue(&mut self, streams: &mut Streams) {
        let mut cancelled = Vec::new();
        for id in std::mem::take(&mut self.messages.suspects) {
            if let Some(Record { place: Place::Stream(stream), cancel: Some(code), .. }) =
                self.messages.records.get(&id)
                && self.owes(streams, *stream)
            {
                cancelled.push((id, *code));
            }
        }
        for (id, code) in cancelled {
            self.cancel_message(streams, id, code);
        }
    }

    /// Announces when the application will send its next message.
    pub fn set_next_message(&mut self, at: Option<Instant>) {
        if at.is_some() || self.messages.get_mut().is_some() {
            self.messages.next_at = at;
        }
    }

    /// When to call [`tend`](Self::tend) if no packet is sent or received before.
    pub(super) fn messages_timeout(&self, now: Instant) -> Option<Instant> {
        self.messages.wake.filter(|at| *at > now)
    }

    /// Takes the oldest outcome that the application has not fetched.
    pub fn poll_outcome(&mut self) -> Option<(MessageId, MessageOutcome)> {
        let messages = self.messages.get_mut()?;
        let outcome = messages.outcomes.pop_front();
        messages.announced &= outcome.is_some();
        outcome
    }

    /// Whether there are outcomes that the application was not told of. True once.
    pub fn take_news_of_outcomes(&mut self) -> bool {
        let any = !self.messages.outcomes.is_empty();
        any && !std::mem::replace(&mut self.messages.announced, true)
    }

    /// Whether messages were refused and are accepted again. True once.
    pub fn take_messages_writable(&mut self) -> bool {
        let Some(table) = self.messages.get_mut() else { return false };
        let room = table.records.len() <= MAX_OPEN_MESSAGES / 2
            && table.waiting_bytes <= MAX_WAITING_BYTES / 2;
        room && std::mem::take(&mut table.blocked)
    }

    /// Counters.
    pub fn message_stats(&self) -> MessageStats {
        self.messages.stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_become_numbers_in_their_order() {
        let now = Instant::now() + Duration::from_secs(100);
        let mut table = MessageTable::default();
        let mut at = |ms: i64| {
            let step = Duration::from_millis(ms.unsigned_abs());
            table.ticks(if ms < 0 { now - step } else { now + step })
        };
        assert_eq!(at(0), FIRST_DEADLINE);
        assert_eq!((at(-1), at(5)), (FIRST_DEADLINE - 1_000, FIRST_DEADLINE + 5_000));
        let far = Duration::from_secs(u64::from(u32::MAX) * 100);
        assert!(table.ticks(now + far) > FIRST_DEADLINE);
    }

    #[test]
    fn a_flood_of_datagrams_is_forgotten_oldest_first() {
        let mut table = MessageTable::default();
        for _ in 0..3 * MAX_OPEN_DATAGRAMS {
            table.add_datagram(Some(Instant::now()));
            assert!(table.datagrams.len() <= MAX_OPEN_DATAGRAMS);
            assert!(table.due.len() <= MAX_OPEN_DATAGRAMS);
            assert!(table.outcomes.len() <= MAX_OUTCOMES);
        }
        assert_eq!(table.stats.given_up, 2 * MAX_OPEN_DATAGRAMS as u64);
        // The newest outcomes are kept.
        let newest = MessageId(2 * MAX_OPEN_DATAGRAMS as u64 - 1);
        assert_eq!(table.outcomes.back(), Some(&(newest, MessageOutcome::GivenUp)));
    }

    #[test]
    fn what_arrives_after_its_deadline_is_late_and_told_once() {
        let now = Instant::now();
        let at = |ms| now + Duration::from_millis(ms);
        let mut table = MessageTable::default();
        let ids: Vec<_> = (0..3).map(|_| table.add_datagram(Some(at(10)))).collect();
        table.arrived(ids[0], at(10), false);
        table.arrived(ids[1], at(10), true);
        table.arrived(ids[2], at(11), true);
        table.arrived(ids[2], at(12), false);
        table.give_up(ids[0]);
        let outcomes: Vec<_> = table.outcomes.iter().map(|(_, outcome)| *outcome).collect();
        use MessageOutcome::{Arrived, Late, Recovered};
        assert_eq!(outcomes, [Arrived, Recovered, Late]);
        assert!(table.due.is_empty());
    }
}
