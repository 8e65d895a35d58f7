//! Sending stream data: which bytes go into a packet, and how their fate is handled.

#[cfg(feature = "testing")]
mod check;

use super::control::Control;
use super::encode::{self, Length};
use super::flow::SendCredit;
use super::members::Members;
use super::resend_order::{Precedence, ResendOrder};
use super::send::{Completion, NextLost, SendHalf, Sendable};
use super::send_pool::SendPool;
use super::table::{Stream, Table};
use super::{EndedMessage, Protection, StreamEvent, Streams};
use crate::fec::redundancy::{Stage, Terms};
use crate::ids::{MessageId, StreamId, SymbolRef};
use crate::recovery::token::StreamToken;
use crate::wire::frame::StreamHeader;
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Instant;
use sutura_schedule::{Rank, Scheduler};

/// A stream with at most this many bytes is a short message, such as a request. To send it in packets of its
/// own would cost more than it can lose by sharing a packet.
const SHORT_MESSAGE: u64 = 256;

/// The source of the bytes of a [`Pending`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// Lost data of the stream.
    Lost(NextLost),
    /// New bytes, at most this many.
    New(u64),
}

/// The data that is sent next, before it is written. It tells enough to choose the kind of packet for the
/// data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pending {
    /// The stream.
    pub id: StreamId,
    /// Whether the data may share a packet with another stream. True for the protocol's own streams, on which
    /// all other streams may depend, and for a [`SHORT_MESSAGE`].
    pub goes_along: bool,
    /// Whether data of the stream is, or is going to be, protected.
    pub is_protected: bool,
    /// Whether the protection that the stream asks for may see no need to protect this data.
    pub may_sleep: bool,
    /// The coding session to which the stream belongs.
    pub session: Option<u16>,
    /// Whether messages were announced on the stream.
    pub announces: bool,
    /// The message for which the stream was opened.
    pub message: Option<MessageId>,
    source: Source,
}

impl Pending {
    fn new(id: StreamId, send: &SendHalf, source: Source) -> Self {
        let goes_along = send.is_control() || send.buffer.end() <= SHORT_MESSAGE;
        let session = send.session();
        let wanted = send.protection.as_ref();
        let is_protected = wanted.is_some() || session.is_some();
        let may_sleep =
            wanted.is_some_and(|wanted| !wanted.factory().stays_awake() || send.is_control());
        let (announces, message) = (send.messages.is_some(), send.message);
        Self { id, goes_along, is_protected, may_sleep, session, announces, message, source }
    }

    /// The source symbol to be resent as a whole, if the next data is a source symbol.
    #[must_use]
    pub fn symbol(&self) -> Option<SymbolRef> {
        match self.source {
            Source::Lost(NextLost::Symbol(symbol)) => Some(symbol),
            _ => None,
        }
    }

    /// Whether these bytes were sent before and lost.
    #[must_use]
    pub fn is_retransmission(&self) -> bool {
        matches!(self.source, Source::Lost(_))
    }
}

/// The frame written for a [`Pending`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// The frame. The caller fills in its symbol.
    pub token: StreamToken,
    /// Whether the frame sent new data up to the end of the data that the application wrote.
    pub flushed: bool,
}

/// Whether data waits to be sent, and whether it can be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backlog {
    /// No data waits.
    Empty,
    /// All data that waits is blocked by flow control.
    Credit,
    /// Data waits that can be sent.
    Sendable,
}

/// Decides which stream sends next.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) scheduler: Box<dyn Scheduler>,
    /// Decides which stream resends its lost data next.
    pub(super) order: Box<dyn ResendOrder>,
    /// Whether lost data waits until the scheduler selects its stream.
    in_turn: bool,
    /// Connection flow control for the data that we send.
    pub(super) credit: SendCredit,
    /// The connection's limit for send buffers.
    pub(super) pool: SendPool,
    /// The coding session to which each stream belongs.
    pub(super) members: Members,
    /// Number of streams with new bytes that their own flow control allows to send.
    fresh: usize,
    /// Streams that have only FIN left to send. A FIN needs no flow-control credit, so it does not wait. The
    /// first entry is always such a stream; the others are checked when they become the first.
    fins: VecDeque<StreamId>,
}

impl Outgoing {
    pub(super) fn new(
        scheduler: Box<dyn Scheduler>,
        order: Box<dyn ResendOrder>,
        send_buffer: usize,
    ) -> Self {
        Self {
            scheduler,
            in_turn: order.precedence() == Precedence::InTurn,
            order,
            credit: SendCredit::default(),
            pool: SendPool::new(send_buffer),
            members: Members::default(),
            fresh: 0,
            fins: VecDeque::new(),
        }
    }

    /// Gives back the memory that is kept for the next data.
    pub(super) fn rest(&mut self) {
        self.scheduler.rest();
        self.fins.shrink_to_fit();
    }

    /// The rank of a stream.
    fn rank(&self, send: &SendHalf) -> Rank {
        send.priority.rank(self.scheduler.goes_by_classes())
    }

    /// Whether streams are blocked by the connection's flow control.
    pub(super) fn is_blocked(&self) -> bool {
        self.credit.available() == 0 && self.fresh > 0
    }

    /// Queues DATA_BLOCKED once for each limit that blocks data.
    pub(super) fn report_blocked(&mut self, control: &mut Control) {
        if self.is_blocked() && self.credit.block() {
            control.data_blocked = true;
        }
    }

    /// Updates the scheduler and the queues after the data that a stream has to send may have changed.
    pub(super) fn refresh(&mut self, stream: &mut Stream, control: &mut Control) {
        let Some(send) = stream.halves.send_mut() else { return };
        let fresh = send.has_new_bytes();
        self.count_fresh(send, fresh);
        let ready = fresh || (self.in_turn && send.resends > 0);
        if ready != send.scheduled {
            send.scheduled = ready;
            if ready {
                self.scheduler.activate(stream.id.0);
            } else {
                self.scheduler.deactivate(stream.id.0);
            }
        }
        self.queue_bare_fin(stream.id, send);
        self.account(send);
        let (blocked, reset) = (send.block(), send.take_reset_due());
        if blocked || reset {
            stream.pending.blocked |= blocked;
            stream.pending.reset |= reset;
            control.queue(stream);
        }
        self.report_blocked(control);
    }

    /// Updates the queue of FINs and the sums of the stream's session after the application finished a stream,
    /// which changes nothing else.
    pub(super) fn finished(&mut self, stream: &mut Stream) {
        let Some(send) = stream.halves.send_mut() else { return };
        self.queue_bare_fin(stream.id, send);
        self.members.update(send);
    }

    fn queue_bare_fin(&mut self, id: StreamId, send: &mut SendHalf) {
        if send.wants_bare_fin() && !send.fin_queued {
            send.fin_queued = true;
            self.fins.push_back(id);
        }
    }

    fn count_fresh(&mut self, send: &mut SendHalf, fresh: bool) {
        let before = std::mem::replace(&mut send.fresh, fresh);
        self.fresh = (self.fresh + usize::from(fresh)).saturating_sub(usize::from(before));
    }

    /// Updates the pool and the sums of the stream's session after the contents of a stream's send
    /// buffer, or its state, changed.
    fn account(&mut self, send: &mut SendHalf) {
        let retained = send.buffer.retained();
        self.pool.account(std::mem::replace(&mut send.pooled, retained), retained);
        self.members.update(send);
        let stored = send.buffer.storage();
        self.pool.account_storage(std::mem::replace(&mut send.stored, stored), stored);
    }

    /// Removes a stream that is over.
    pub(super) fn remove(&mut self, id: StreamId, send: &mut SendHalf) {
        self.account(send);
        self.members.leave(send);
        self.pool.closed(send.stored);
        self.count_fresh(send, false);
        self.pool.forget(send);
        self.scheduler.remove(id.0);
        self.order.remove(id.0);
    }

    /// Charges a stream for bytes that it sent.
    fn charge(&mut self, id: StreamId, bytes: usize) {
        if bytes > 0 {
            self.scheduler.charge(id.0, bytes);
        }
    }

    /// Charges a stream for a STREAM frame that it sent: for its data, and for its header if the
    /// scheduler counts frames.
    fn charge_frame(&mut self, id: StreamId, data: usize, header: usize) {
        let header = if self.scheduler.goes_by_frames() { header } else { 0 };
        self.charge(id, data + header);
    }

    /// The first stream that has only FIN left to send.
    fn next_fin(&self, table: &Table) -> Option<Pending> {
        let id = *self.fins.front()?;
        let send = table.get(id)?.halves.send()?;
        debug_assert!(send.wants_bare_fin(), "a stream without a bare FIN is first");
        Some(Pending::new(id, send, Source::New(0)))
    }

    /// Removes streams that no longer have a bare FIN to send from the front of the queue.
    pub(super) fn prune_fins(&mut self, table: &mut Table) {
        while let Some(&id) = self.fins.front() {
            if let Some(send) = table.get_mut(id).and_then(|stream| stream.halves.send_mut()) {
                if send.wants_bare_fin() {
                    return;
                }
                send.fin_queued = false;
            }
            self.fins.pop_front();
        }
    }

    /// The next data of the stream that the scheduler selects. `lost` tells the lost data of a stream.
    fn next_scheduled(
        &self,
        table: &Table,
        room: usize,
        lost: impl Fn(StreamId) -> Option<NextLost>,
    ) -> Option<Pending> {
        let credit = self.credit.available();
        if credit == 0 {
            if !self.in_turn {
                return None;
            }
            // Without credit, ask the order of resending: the scheduler may select a stream that has only new
            // bytes.
            let id = StreamId(self.order.next()?);
            let send = table.get(id)?.halves.send()?;
            return Some(Pending::new(id, send, Source::Lost(lost(id)?)));
        }
        let grant = self.scheduler.next(room)?;
        let id = StreamId(grant.stream);
        let send = table.get(id)?.halves.send()?;
        if self.in_turn
            && let Some(next) = lost(id)
        {
            return Some(Pending::new(id, send, Source::Lost(next)));
        }
        debug_assert!(send.fresh, "the scheduler names a stream that is not active");
        let bytes = credit.min(grant.bytes as u64);
        send.fresh.then(|| Pending::new(id, send, Source::New(bytes)))
    }
}

impl Streams {
    /// The stream that resends lost data next, if lost data precedes all new data. Changes nothing.
    #[must_use]
    pub fn next_resending(&self) -> Option<StreamId> {
        if self.out.in_turn { None } else { self.out.order.next().map(StreamId) }
    }

    /// Lost data of a stream, to be written. `None` if the stream does not exist.
    #[must_use]
    pub fn pending_lost(&self, id: StreamId, next: NextLost) -> Option<Pending> {
        Some(Pending::new(id, self.send_half(id)?, Source::Lost(next)))
    }

    /// Selects the data that is sent next in turn: a bare FIN, or the data that the scheduler selects and
    /// connection flow control allows. It may be lost data, unless lost data precedes all new data: `lost`
    /// tells the lost data of a stream. Changes nothing.
    #[must_use]
    pub fn look_new(
        &self,
        room: usize,
        lost: impl Fn(StreamId) -> Option<NextLost>,
    ) -> Option<Pending> {
        let fin = self.out.next_fin(&self.table);
        fin.or_else(|| self.out.next_scheduled(&self.table, room, lost))
    }

    /// Appends one STREAM frame of at most `room` bytes with the data of `pending`.
    ///
    /// Returns `None` and changes nothing if the frame does not fit in `room`, or if there is no more data to
    /// send because the stream changed since `pending` was returned.
    pub fn write_stream(
        &mut self,
        pending: &Pending,
        out: &mut Vec<u8>,
        room: usize,
        length: Length,
    ) -> Option<Written> {
        let id = pending.id;
        let stream = self.table.get_mut(id)?;
        let send = stream.halves.send_mut()?;
        let next = match pending.source {
            Source::Lost(NextLost::Bytes(next)) if send.is_sending() => next,
            Source::Lost(_) => return None,
            Source::New(max) => send.next_new(max.min(self.out.credit.available()))?,
        };
        let mut header = StreamHeader { id, offset: next.offset, fin: next.fin };
        let len = encode::stream_fit(&header, next.len, room, length)?;
        header.fin &= len as u64 == next.len;
        let fin = header.fin;
        let range = next.offset..next.offset + len as u64;
        let token = StreamToken {
            id,
            offset: next.offset,
            len: u32::try_from(len).ok()?,
            fin,
            symbol: None,
        };
        let start = out.len();
        header.encode((length == Length::Explicit).then_some(len), out);
        let header = out.len() - start;
        send.buffer.copy_to(range.clone(), out);
        send.on_frame(range, fin);
        self.out.charge_frame(id, len, header);
        let mut flushed = false;
        if let Source::New(_) = pending.source {
            self.out.credit.charge(len as u64);
            flushed = !send.has_unsent();
        } else if len > 0 {
            self.out.order.charge(id.0, len);
        }
        self.out.refresh(stream, &mut self.control);
        self.out.prune_fins(&mut self.table);
        Some(Written { token, flushed })
    }

    /// The protection of a stream, and the terms on which it would protect `pending`. `None` if the stream asks
    /// for none.
    #[must_use]
    pub fn terms(&self, pending: &Pending, now: Instant) -> Option<(&Protection, Terms)> {
        let send = self.send_half(pending.id)?;
        let wanted = send.protection.as_ref()?;
        let newest = send.messages.as_ref().and_then(|messages| messages.newest());
        let terms = if newest.is_some_and(|message| message.stage != Stage::Apart) {
            Terms::GROUP
        } else if send.is_control() {
            Terms::CONTROL
        } else {
            Terms::STREAM
        };
        let offset = match pending.source {
            Source::Lost(NextLost::Bytes(next)) => Some(next.offset),
            Source::Lost(NextLost::Symbol(_)) => None,
            Source::New(_) => Some(send.buffer.unsent()),
        };
        let deadline = || send.messages.as_ref()?.deadline(offset?);
        let tolerance = deadline().map(|at| at.saturating_duration_since(now));
        Some((wanted, terms.of_stream(send.buffer.end()).within(tolerance)))
    }

    /// Appends a STREAM frame without a length that was sent before. Returns false, and appends nothing, if the
    /// stream no longer holds all of its data.
    pub fn rewrite(&self, frame: &StreamToken, out: &mut Vec<u8>) -> bool {
        let Some(send) = self.send_half(frame.id) else { return false };
        let holds = send.buffer.holds(&frame.range());
        if holds {
            StreamHeader { id: frame.id, offset: frame.offset, fin: frame.fin }.encode(None, out);
            send.buffer.copy_to(frame.range(), out);
        }
        holds
    }

    /// Charges streams for the frames of a source symbol that was sent again.
    pub fn charge_symbol(&mut self, frames: &[StreamToken]) {
        for frame in frames.iter().filter(|frame| frame.len > 0) {
            let StreamToken { id, offset, fin, .. } = *frame;
            let header = StreamHeader { id, offset, fin }.size(None);
            self.out.charge_frame(id, frame.len as usize, header);
            self.out.order.charge(frame.id.0, frame.len as usize);
        }
    }

    /// Whether data other than lost data waits to be sent, computed by visiting every stream instead of using
    /// the queues, to check the queues.
    #[must_use]
    pub fn backlog(&self) -> Backlog {
        let credit = self.out.credit.available() > 0;
        let mut backlog = Backlog::Empty;
        for send in self.table.iter().filter_map(|stream| stream.halves.send()) {
            let fresh = send.has_new_bytes();
            if send.wants_bare_fin() || (fresh && credit) {
                return Backlog::Sendable;
            }
            if fresh || send.is_blocked() {
                backlog = Backlog::Credit;
            }
        }
        backlog
    }

    /// The rank of a stream; `None` if the stream does not exist or has no sending part.
    #[must_use]
    pub fn rank(&self, id: StreamId) -> Option<Rank> {
        self.send_half(id).map(|send| self.out.rank(send))
    }

    /// Whether turns end in the middle of packets, so that streams share packets.
    #[must_use]
    pub fn share_packets(&self) -> bool {
        self.out.scheduler.goes_by_frames()
    }

    /// Number of new bytes that the peer's limit for the connection allows.
    #[must_use]
    pub fn credit(&self) -> u64 {
        self.out.credit.available()
    }

    /// Whether streams have new bytes that flow control allows to send.
    #[must_use]
    pub fn has_sendable(&self) -> bool {
        self.out.credit.available() > 0 && self.out.fresh > 0
    }

    /// Whether streams have new bytes that only connection flow control blocks.
    #[must_use]
    pub fn is_connection_blocked(&self) -> bool {
        self.out.is_blocked()
    }

    /// One more lost frame of a stream waits to be sent again.
    pub fn queued(&mut self, id: StreamId) {
        let Some(stream) = self.table.get_mut(id) else { return };
        let Some(send) = stream.halves.send_mut() else { return };
        send.resends += 1;
        self.out.order.queued(id.0);
        self.out.refresh(stream, &mut self.control);
    }

    /// Lost frames of a stream no longer wait, because they were sent again or are no longer needed; `left`
    /// frames still wait.
    pub fn dequeued(&mut self, id: StreamId, left: usize) {
        let Some(stream) = self.table.get_mut(id) else { return };
        let Some(send) = stream.halves.send_mut() else { return };
        send.resends = left;
        self.out.order.dequeued(id.0, left);
        self.out.refresh(stream, &mut self.control);
    }

    /// Charges a stream for `bytes` that were sent on its behalf, but not in one of its frames.
    pub fn charge(&mut self, id: StreamId, bytes: usize) {
        self.out.charge(id, bytes);
    }

    /// Whether the peer still misses a part of a frame that was sent.
    #[must_use]
    pub fn is_missing(&self, token: &StreamToken) -> bool {
        self.send_half(token.id).is_some_and(|send| send.is_missing(&token.range(), token.fin))
    }

    /// The stretches of a frame that are not known to have arrived and that the peer still needs.
    pub fn missing(&self, token: &StreamToken) -> impl Iterator<Item = Range<u64>> + '_ {
        let send = self.send_half(token.id).filter(|send| send.is_sending());
        let range = token.range();
        send.into_iter().flat_map(move |send| send.buffer.missing(range.clone()))
    }

    /// Whether the end of a stream was sent, is not known to have arrived, and is still needed.
    #[must_use]
    pub fn is_fin_missing(&self, id: StreamId) -> bool {
        self.send_half(id).is_some_and(SendHalf::is_fin_missing)
    }

    /// The number of bytes of a stream that are to be delivered, as far as it is known; `None` if no byte of
    /// the stream has to be sent any more.
    #[must_use]
    pub fn end(&self, id: StreamId) -> Option<u64> {
        self.send_half(id).filter(|send| send.is_sending()).map(|send| send.buffer.end())
    }

    /// A stretch of a stream, with FIN if the stretch reaches the stream's end. `None` if no byte of the
    /// stream has to be sent any more.
    #[must_use]
    pub fn stretch(&self, id: StreamId, range: &Range<u64>) -> Option<Sendable> {
        let send = self.send_half(id).filter(|send| send.is_sending())?;
        let (offset, len) = (range.start, range.end - range.start);
        Some(Sendable { offset, len, fin: send.ends_at(range.end) })
    }

    /// The peer has the contents of a frame: its packet was acknowledged, or the peer recovered it
    /// from repair symbols. Storage is freed, and the data will not be sent again. Returns the message of the
    /// stream if the message ended.
    pub fn delivered(&mut self, token: &StreamToken) -> Option<EndedMessage> {
        self.settle(token.id, |send| send.acked(token.range(), token.fin))
    }

    /// The contents of a frame will not be sent again, although the peer does not have them. When no other
    /// data of the stream is outstanding, the stream ends with a reset that carries `code`. Returns the message
    /// of the stream if the message ended.
    pub fn give_up(&mut self, token: &StreamToken, code: u64) -> Option<EndedMessage> {
        self.settle(token.id, |send| send.give_up(token.range(), token.fin, code))
    }

    /// Updates a stream after one of its frames was acknowledged or given up.
    fn settle(
        &mut self,
        id: StreamId,
        act: impl FnOnce(&mut SendHalf) -> Completion,
    ) -> Option<EndedMessage> {
        let stream = self.table.get_mut(id)?;
        let send = stream.halves.send_mut()?;
        let ended = match act(send) {
            Completion::Open => {
                self.out.account(send);
                Self::notify_writable(stream, &mut self.out.pool, &mut self.events);
                None
            }
            Completion::Finished => {
                let message = send.message;
                // A stream that is done altogether leaves all queues when it is freed.
                if !stream.is_done() {
                    self.out.refresh(stream, &mut self.control);
                }
                let ended = self.report_end(message, StreamEvent::Finished { id }, true);
                self.reap(id);
                ended
            }
            Completion::Reset => {
                self.out.refresh(stream, &mut self.control);
                self.reap(id);
                None
            }
            Completion::Incomplete(code) => {
                let message = send.message;
                send.reset(code, 0);
                self.out.refresh(stream, &mut self.control);
                self.report_end(message, StreamEvent::Finished { id }, false)
            }
        };
        self.wake_writers();
        ended
    }
}
