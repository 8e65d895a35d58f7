//! The receiving side of ordered groups.

use super::header::{self, GroupHeaderError, Header, MAX_HEADER, MAX_NOTICE, Notice, StreamKind};
use super::order::{Obstacle, Order};
use super::runs::Runs;
use super::{
    GroupId, INVALID, MAX_GAPS, MAX_GROUPS, MAX_HELD, MAX_HELD_BYTES, MAX_MESSAGE, MAX_READY_BYTES,
};
use bytes::{Bytes, BytesMut};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::time::Instant;
use sutura_proto::{Connection, Dir, ReadError, Side, StreamEvent, StreamId, work};

/// Bytes that are read from a stream at once.
const CHUNK: usize = 64 * 1024;

/// A violation of the rules of groups by the peer. The application closes the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// A stream does not begin as it must.
    #[error("stream {stream}: {reason}")]
    Header {
        /// The stream.
        stream: StreamId,
        /// The rule that is broken.
        reason: &'static str,
    },
    /// A message is larger than [`MAX_MESSAGE`].
    #[error("stream {0}: the message is too large")]
    TooLarge(StreamId),
    /// A group is [`MAX_GROUPS`] or more after a group that is not over.
    #[error("too many groups")]
    TooManyGroups,
    /// More than [`MAX_GAPS`] runs of messages are missing between those that were delivered.
    #[error("too many messages are missing")]
    TooManyGaps,
}

/// A message in its turn.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Delivered {
    /// Its group.
    pub group: GroupId,
    /// Its number within the group.
    pub number: u64,
    /// Its bytes.
    pub data: Bytes,
    /// When it was complete. From then on it waited for the messages that come before it.
    pub completed: Instant,
}

/// A complete message.
#[derive(Debug)]
struct CompleteMessage {
    data: Bytes,
    completed: Instant,
}

/// The knowledge about a stream.
#[derive(Debug)]
enum Known {
    /// The header is not complete.
    Start,
    /// A notice.
    Notice,
    /// A message.
    Message(Header),
}

/// A stream that is being read.
#[derive(Debug)]
struct IncomingStream {
    known: Known,
    parts: Vec<Bytes>,
    size: usize,
}

impl IncomingStream {
    /// The bytes read so far in one piece, without copying if they are in one piece already.
    fn bytes(&mut self) -> Bytes {
        if let [whole] = &self.parts[..] {
            return whole.clone();
        }
        let mut joined = BytesMut::with_capacity(self.size);
        self.parts.drain(..).for_each(|part| joined.extend_from_slice(&part));
        let joined = joined.freeze();
        self.parts.push(joined.clone());
        joined
    }

    fn set_bytes(&mut self, bytes: Bytes) {
        self.size = bytes.len();
        self.parts.clear();
        self.parts.push(bytes);
    }
}

/// How far a stream was read.
#[derive(Debug, PartialEq, Eq)]
enum ReadProgress {
    /// To its end.
    End,
    /// As far as it has come.
    Blocked,
    /// The stream was reset.
    Reset,
    /// The stream's message may not be held now, because of this obstacle in this group.
    Parked(u64, Obstacle),
}

/// The groups that one end of a connection receives. Tell it of every [`StreamEvent`], and then let it
/// [read](Self::receive).
#[derive(Debug)]
pub struct ReceiveGroups {
    peer: Side,
    /// Whether the peer was allowed to have as many streams as groups need.
    permitted: bool,
    streams: BTreeMap<StreamId, IncomingStream>,
    /// Streams with data to read.
    readable: BTreeSet<StreamId>,
    /// Streams that are not read for now, because their messages must wait for others, and too many such
    /// messages are held. With their group and obstacle.
    parked: BTreeMap<StreamId, (u64, Obstacle)>,
    /// The same streams, by group and obstacle.
    kept: BTreeSet<((u64, Obstacle), StreamId)>,
    groups: BTreeMap<u64, Order<CompleteMessage>>,
    /// Messages that all groups hold.
    held: usize,
    /// Bytes of the held messages.
    complete_bytes: usize,
    /// Groups that are over.
    over: Runs,
    /// Messages to deliver.
    ready: VecDeque<Delivered>,
    /// Bytes of the messages to deliver.
    ready_bytes: usize,
    /// Bytes of streams that were not read to their end.
    partial_bytes: usize,
}

impl ReceiveGroups {
    /// No groups yet. `side` is the own side of the connection.
    #[must_use]
    pub fn new(side: Side) -> Self {
        Self {
            peer: side.peer(),
            permitted: false,
            streams: BTreeMap::new(),
            readable: BTreeSet::new(),
            parked: BTreeMap::new(),
            kept: BTreeSet::new(),
            groups: BTreeMap::new(),
            held: 0,
            complete_bytes: 0,
            over: Runs::default(),
            ready: VecDeque::new(),
            ready_bytes: 0,
            partial_bytes: 0,
        }
    }

    /// Notes an event of a stream.
    pub fn on_event(&mut self, event: &StreamEvent) {
        if let StreamEvent::Readable { id } = event
            && id.dir() == Dir::Uni
            && id.initiator() == self.peer
        {
            self.readable.insert(*id);
        }
    }

    /// Accepts all unidirectional streams and reads their data, as long as no more than [`MAX_READY_BYTES`]
    /// wait for the application. Call it again once messages are [taken](Self::pop).
    ///
    /// # Errors
    /// The peer breaks the rules of groups.
    pub fn receive(&mut self, now: Instant, quic: &mut Connection) -> Result<(), GroupError> {
        if !std::mem::replace(&mut self.permitted, true) {
            quic.permit_group_streams();
        }
        while let Some(id) = quic.accept(Dir::Uni) {
            let incoming = IncomingStream { known: Known::Start, parts: Vec::new(), size: 0 };
            self.streams.insert(id, incoming);
            self.readable.insert(id);
        }
        while self.ready_bytes < MAX_READY_BYTES
            && let Some(id) = self.next_readable()
        {
            let result = self.read(now, quic, id);
            if result.is_err() {
                // The call fails if the stream is over, and then nothing is left to stop.
                let _ = quic.recv_stream(id).stop(INVALID);
            }
            result?;
        }
        Ok(())
    }

    /// The next stream to read: a stream with new data, or else a parked one if there is room again.
    fn next_readable(&mut self) -> Option<StreamId> {
        let parked = || self.parked.first_key_value().map(|(id, _)| *id);
        let room = self.held_bytes() < MAX_HELD_BYTES && self.held < MAX_HELD;
        self.readable.pop_first().or_else(|| parked().filter(|_| room))
    }

    /// Does not read a stream until `obstacle` is gone or there is room.
    fn park(&mut self, id: StreamId, group: u64, obstacle: Obstacle) {
        self.parked.insert(id, (group, obstacle));
        self.kept.insert(((group, obstacle), id));
    }

    fn unpark(&mut self, id: StreamId) {
        if let Some(obstacle) = self.parked.remove(&id) {
            self.kept.remove(&(obstacle, id));
        }
    }

    /// Reads the streams again that were parked because of one of these obstacles.
    fn wake(&mut self, group: u64, obstacles: Range<Obstacle>) {
        let from = ((group, obstacles.start), StreamId(0));
        let to = ((group, obstacles.end), StreamId(0));
        while let Some(&(_, id)) = self.kept.range(from..to).next() {
            work::steps(1);
            self.unpark(id);
            self.readable.insert(id);
        }
    }

    /// The next message in its turn.
    pub fn pop(&mut self) -> Option<Delivered> {
        let next = self.ready.pop_front()?;
        self.ready_bytes -= next.data.len();
        Some(next)
    }

    /// Whether a message can be delivered now.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Bytes of messages that are incomplete, or complete and wait for other messages.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.partial_bytes + self.complete_bytes
    }

    /// Number of complete messages that wait for other messages.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held
    }

    fn read(
        &mut self,
        now: Instant,
        quic: &mut Connection,
        id: StreamId,
    ) -> Result<(), GroupError> {
        work::steps(1);
        self.unpark(id);
        let Some(mut incoming) = self.streams.remove(&id) else { return Ok(()) };
        self.partial_bytes -= incoming.size;
        let read = self.read_some(quic, id, &mut incoming)?;
        match read {
            ReadProgress::Blocked | ReadProgress::Parked(..) => {
                self.partial_bytes += incoming.size;
                self.streams.insert(id, incoming);
                if let ReadProgress::Parked(group, obstacle) = read {
                    self.park(id, group, obstacle);
                }
                Ok(())
            }
            ReadProgress::End => self.end(now, id, incoming),
            ReadProgress::Reset => match incoming.known {
                Known::Message(Header { group, number, .. }) => {
                    let cancelled = number..number + 1;
                    self.settle(group, std::slice::from_ref(&cancelled), |_, _| {})
                }
                // A notice says which message it was.
                Known::Start | Known::Notice => Ok(()),
            },
        }
    }

    /// Reads the data of a stream, as far as it may be held.
    fn read_some(
        &self,
        quic: &mut Connection,
        id: StreamId,
        incoming: &mut IncomingStream,
    ) -> Result<ReadProgress, GroupError> {
        loop {
            if let Some((group, obstacle)) = self.must_wait(incoming) {
                return Ok(ReadProgress::Parked(group, obstacle));
            }
            match quic.recv_stream(id).read_chunk(CHUNK, true) {
                Ok(Some(chunk)) => {
                    incoming.size += chunk.bytes.len();
                    incoming.parts.push(chunk.bytes);
                    self.examine(id, incoming)?;
                }
                Ok(None) => return Ok(ReadProgress::End),
                Err(ReadError::Blocked) => return Ok(ReadProgress::Blocked),
                Err(_) => return Ok(ReadProgress::Reset),
            }
        }
    }

    /// Whether a message must be left in its stream, because it has to wait for other messages and as many
    /// waiting messages are held as may be. Returns the group and the obstacle.
    fn must_wait(&self, incoming: &IncomingStream) -> Option<(u64, Obstacle)> {
        let Known::Message(Header { group, before, .. }) = &incoming.known else { return None };
        if self.held_bytes() + incoming.size < MAX_HELD_BYTES && self.held < MAX_HELD {
            return None;
        }
        let obstacle = match self.groups.get(group) {
            Some(order) => order.obstacle(before),
            None => Order::<CompleteMessage>::default().obstacle(before),
        };
        obstacle.map(|obstacle| (*group, obstacle))
    }

    /// Reads the header of a stream as soon as there is enough of it, and checks its size.
    fn examine(&self, id: StreamId, incoming: &mut IncomingStream) -> Result<(), GroupError> {
        let wrong = |reason| GroupError::Header { stream: id, reason };
        if let Known::Start = incoming.known {
            let bytes = incoming.bytes();
            match header::decode(&bytes) {
                Ok((StreamKind::Notice, _)) => incoming.known = Known::Notice,
                Ok((StreamKind::Message(header), size)) => {
                    if self.over.contains(header.group) {
                        return Err(wrong("the group is over"));
                    }
                    incoming.known = Known::Message(header);
                    incoming.set_bytes(bytes.slice(size..));
                }
                Err(GroupHeaderError::Incomplete) if bytes.len() < MAX_HEADER => {}
                Err(GroupHeaderError::Incomplete) => return Err(wrong("the header is too long")),
                Err(GroupHeaderError::Invalid(reason)) => return Err(wrong(reason)),
            }
        }
        match incoming.known {
            Known::Notice if incoming.size > MAX_NOTICE => Err(wrong("the notice is too long")),
            Known::Message(_) if incoming.size > MAX_MESSAGE => Err(GroupError::TooLarge(id)),
            Known::Start | Known::Notice | Known::Message(_) => Ok(()),
        }
    }

    /// A stream was read to its end.
    fn end(
        &mut self,
        now: Instant,
        id: StreamId,
        mut incoming: IncomingStream,
    ) -> Result<(), GroupError> {
        let data = incoming.bytes();
        match incoming.known {
            Known::Start => {
                Err(GroupError::Header { stream: id, reason: "the stream ends in its header" })
            }
            Known::Message(Header { group, number, before }) => {
                let (size, message) = (data.len(), CompleteMessage { data, completed: now });
                self.settle(group, &[], |order, out| {
                    order.complete(number, before, size, message, out);
                })
            }
            Known::Notice => self.on_notice(id, &data),
        }
    }

    fn on_notice(&mut self, id: StreamId, bytes: &[u8]) -> Result<(), GroupError> {
        let notice = Notice::decode(bytes).map_err(|error| GroupError::Header {
            stream: id,
            reason: match error {
                GroupHeaderError::Incomplete => "the notice is cut off",
                GroupHeaderError::Invalid(reason) => reason,
            },
        })?;
        if self.over.contains(notice.group) {
            // The end of the group was known, and every message was there.
            return Ok(());
        }
        self.settle(notice.group, &notice.cancelled, |order, _| {
            notice.end.into_iter().for_each(|end| order.set_end(end));
        })
    }

    /// Changes the order of a group, cancels these messages in it, and takes the messages that can be
    /// delivered then.
    fn settle(
        &mut self,
        group: u64,
        cancelled: &[Range<u64>],
        change: impl FnOnce(&mut Order<CompleteMessage>, &mut Vec<(u64, CompleteMessage)>),
    ) -> Result<(), GroupError> {
        if group >= self.over.first_gap() + MAX_GROUPS as u64 {
            return Err(GroupError::TooManyGroups);
        }
        let order = self.groups.entry(group).or_default();
        let (held, bytes) = (order.held(), order.held_bytes());
        let mut out = Vec::new();
        change(order, &mut out);
        cancelled.iter().for_each(|range| order.cancel(range.clone(), &mut out));
        self.held = self.held - held + order.held();
        self.complete_bytes = self.complete_bytes - bytes + order.held_bytes();
        if order.gaps() > MAX_GAPS {
            return Err(GroupError::TooManyGaps);
        }
        let frontier = order.frontier();
        if order.is_over() {
            self.groups.remove(&group);
            self.over.insert(group..group + 1);
        }
        self.wake(group, Obstacle::Fence(0)..Obstacle::Fence(frontier.saturating_add(1)));
        for Range { start, end } in cancelled.iter().cloned() {
            self.wake(group, Obstacle::Message(start)..Obstacle::Message(end));
        }
        for (number, CompleteMessage { data, completed }) in out {
            self.wake(group, Obstacle::Message(number)..Obstacle::Message(number + 1));
            self.ready_bytes += data.len();
            self.ready.push_back(Delivered { group: GroupId(group), number, data, completed });
        }
        Ok(())
    }
}
