//! Sending stream data: which bytes go into a packet, and what happens to them afterwards.

mod check;

pub use check::QueuedSymbol;

use super::control::Control;
use super::encode::{self, Length};
use super::flow::SendCredit;
use super::members::Members;
use super::resend_order::{Precedence, ResendOrder};
use super::send::{Completion, LostFrame, NextLost, SendHalf};
use super::send_pool::SendPool;
use super::table::{Stream, Table};
use super::{StreamEvent, Streams};
use crate::ids::{MessageId, StreamId, SymbolRef};
use crate::recovery::token::StreamToken;
use crate::wire::frame::StreamHeader;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Instant;
use sutura_schedule::{Rank, Scheduler, Urgency};

/// A stream with at most this many bytes is a short message, such as a request. Sending it in
/// packets of its own would cost more than it can lose by sharing one.
const SHORT_MESSAGE: u64 = 256;
/// The source of the bytes of a [`Pending`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The first of the stream's lost frames.
    Lost(NextLost),
    /// New bytes, at most this many.
    New(u64),
}

/// What is sent next, before it is written. This is enough to choose the kind of packet for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pending {
    /// The stream.
    pub id: StreamId,

    /// Whether it may share a packet with another stream. True for the protocol's own streams,
    /// which all others may depend on, and for a [`SHORT_MESSAGE`].
    pub goes_along: bool,
    /// Whether data of the stream is, or is going to be, protected.
    pub is_protected: bool,
    /// The message that the stream was opened for.
    pub message: Option<MessageId>,
    source: Source,
}

impl Pending {
    fn new(id: StreamId, send: &SendHalf, source: Source) -> Self {
        let control = send.priority.urgency == Urgency::CONTROL;
        let goes_along = control || send.buffer.end() <= SHORT_MESSAGE;
        let is_protected = send.protection.is_some() || send.session().is_some();
        Self { id, goes_along, is_protected, message: send.message, source }
    }

    /// The source symbol to be resent as a whole, if that is what comes next.
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

/// What was written for a [`Pending`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// The frame. The caller fills in its symbol.
    pub token: StreamToken,
    /// Whether this sent new data up to the end of what the application wrote.
    pub flushed: bool,
}

/// What is waiting to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backlog {
    /// Nothing.
    Empty,
    /// Something that is blocked by flow control.
    Credit,
    /// Something that can be sent.
    Sendable,
}

/// Source symbols that no longer wait in a stream's queue of lost data.
pub type Unqueued = SmallVec<[SymbolRef; 2]>;

/// The range of stream bytes that a token stands for.
fn range_of(token: &StreamToken) -> Range<u64> {
    token.offset..token.offset.saturating_add(u64::from(token.len))
}

/// Decides which stream sends next.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) scheduler: Box<dyn Scheduler>,
    /// Decides which stream resends its lost data next.
    pub(super) order: Box<dyn ResendOrder>,
    /// Connection flow control for what we send.
    pub(super) credit: SendCredit,
    /// The connection's limit for send buffers.
    pub(super) pool: SendPool,
    /// Which coding session each stream belongs to.
    pub(super) members: Members,
    /// Number of streams with new bytes that their own flow control allows to send.
    fresh: usize,
    /// Streams that have only FIN left to send. A FIN needs no flow-control credit, so it does not
    /// wait for any. The first entry is always such a stream; the others are checked when they
    /// become the first.
    fins: VecDeque<StreamId>,
    /// Symbols that left a stream's queue of lost data, until their sessions are told.
    pub(super) unqueued: Unqueued,
}

impl Outgoing {
    pub(super) fn new(
        scheduler: Box<dyn Scheduler>,
        order: Box<dyn ResendOrder>,
        send_buffer: usize,
    ) -> Self {
        Self {
            scheduler,
            order,
            credit: SendCredit::default(),
            pool: SendPool::new(send_buffer),
            members: Members::default(),
            fresh: 0,
            fins: VecDeque::new(),
            unqueued: Unqueued::new(),
        }
    }

    /// The rank of a stream.
    fn rank(&self, send: &SendHalf) -> Rank {
        send.priority.rank(self.scheduler.goes_by_classes())
    }

    /// Whether lost data waits until the scheduler selects its stream.
    fn in_turn(&self) -> bool {
        self.order.precedence() == Precedence::InTurn
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

    /// Updates the scheduler and the queues after what a stream has to send may have changed.
    pub(super) fn refresh(&mut self, stream: &mut Stream, control: &mut Control) {
        let in_turn = self.in_turn();
        let Some(send) = &mut stream.send else { return };
        self.prune_lost(stream.id, send);
        let fresh = send.new_bytes() > 0;
        self.count_fresh(send, fresh);
        let ready = fresh || (in_turn && !send.lost.is_empty());
        if ready != send.scheduled {
            send.scheduled = ready;
            if ready {
                self.scheduler.activate(stream.id.0);
            } else {
                self.scheduler.deactivate(stream.id.0);
            }
        }
        if send.wants_bare_fin() && !send.fin_queued {
            send.fin_queued = true;
            self.fins.push_back(stream.id);
        }
        self.account(send);
        let (blocked, reset) = (send.block(), send.take_reset_due());
        if blocked || reset {
            stream.pending.blocked |= blocked;
            stream.pending.reset |= reset;
            control.queue(stream);
        }
        self.report_blocked(control);
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
        let lost = std::mem::take(&mut send.lost);
        self.unqueue(id, send, lost);
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

    /// Drops the first of a stream's lost frames after it was sent.
    fn drop_lost(&mut self, id: StreamId, send: &mut SendHalf) {
        let sent = send.lost.pop_front();
        self.unqueue(id, send, sent);
        self.prune_lost(id, send);
    }

    /// Every entry of lost data leaves through here, after it was taken out of its stream's queue. The
    /// order of resending is told, and so is, in the end, the session of its symbol; see
    /// [`Streams::take_unqueued`]. Returns whether there was any.
    fn unqueue(
        &mut self,
        id: StreamId,
        send: &SendHalf,
        gone: impl IntoIterator<Item = LostFrame>,
    ) -> bool {
        let mut gone = gone.into_iter().peekable();
        let any = gone.peek().is_some();
        self.unqueued.extend(gone.filter_map(|frame| frame.symbol));
        if any {
            self.order.dequeued(id.0, send.lost.len());
        }
        any
    }

    /// Drops lost frames from the front while the peer has received them by other means, so that
    /// the first one always has to be sent. Returns whether any was dropped.
    fn prune_lost(&mut self, id: StreamId, send: &mut SendHalf) -> bool {
        let unwanted = send.lost.iter().take_while(|frame| !send.is_wanted(frame)).count();
        let gone: SmallVec<[LostFrame; 4]> = send.lost.drain(..unwanted).collect();
        self.unqueue(id, send, gone)
    }

    /// Drops the lost frames that need not be sent again because their stream was reset.
    pub(super) fn withdraw(&mut self, id: StreamId, send: &mut SendHalf) {
        let lost = std::mem::take(&mut send.lost);
        let (kept, dropped): (VecDeque<_>, VecDeque<_>) =
            lost.into_iter().partition(|frame| send.is_wanted(frame));
        send.lost = kept;
        self.unqueue(id, send, dropped);
    }

    /// Which of the streams that lost data sends next, regardless of the scheduler.
    fn next_lost(&self, table: &Table) -> Option<Pending> {
        let id = StreamId(self.order.next()?);
        let send = table.get(id)?.send.as_ref()?;
        let next = send.next_lost();
        debug_assert!(next.is_some(), "the order names a stream that lost nothing");
        Some(Pending::new(id, send, Source::Lost(next?)))
    }

    /// The first stream that has only FIN left to send.
    fn next_fin(&self, table: &Table) -> Option<Pending> {
        let id = *self.fins.front()?;
        let send = table.get(id)?.send.as_ref()?;
        debug_assert!(send.wants_bare_fin(), "a stream without a bare FIN is first");
        Some(Pending::new(id, send, Source::New(0)))
    }

    /// Removes streams from the front of the queue of bare FINs that no longer have one to send.
    pub(super) fn prune_fins(&mut self, table: &mut Table) {
        while let Some(&id) = self.fins.front() {
            if let Some(send) = table.get_mut(id).and_then(|stream| stream.send.as_mut()) {
                if send.wants_bare_fin() {
                    return;
                }
                send.fin_queued = false;
            }
            self.fins.pop_front();
        }
    }

    /// What the stream that the scheduler selects sends next.
    fn next_scheduled(&self, table: &Table, room: usize) -> Option<Pending> {
        let credit = self.credit.available();
        if credit == 0 {
            // The scheduler may select a stream that has nothing but new bytes.
            return if self.in_turn() { self.next_lost(table) } else { None };
        }
        let grant = self.scheduler.next(room)?;
        let id = StreamId(grant.stream);
        let send = table.get(id)?.send.as_ref()?;
        if self.in_turn()
            && let Some(next) = send.next_lost()
        {
            return Some(Pending::new(id, send, Source::Lost(next)));
        }
        debug_assert!(send.fresh, "the scheduler names a stream that is not active");
        let bytes = credit.min(grant.bytes as u64);
        send.fresh.then(|| Pending::new(id, send, Source::New(bytes)))
    }
}

impl Streams {
    /// Selects the stream data that goes next into a packet with `room` bytes left.
    #[cfg(test)]
    pub fn look(&self, room: usize) -> Option<Pending> {
        self.look_lost().or_else(|| self.look_new(room))
    }

    /// Selects the lost data that goes next, if lost data precedes all new data. Changes nothing.
    #[must_use]
    pub fn look_lost(&self) -> Option<Pending> {
        if self.out.in_turn() { None } else { self.out.next_lost(&self.table) }
    }

    /// Selects what is sent next in turn: a bare FIN, or what the scheduler selects and connection
    /// flow control allows. That may be lost data, unless it precedes all new data. Changes
    /// nothing.
    #[must_use]
    pub fn look_new(&self, room: usize) -> Option<Pending> {
        let fin = self.out.next_fin(&self.table);
        fin.or_else(|| self.out.next_scheduled(&self.table, room))
    }

    /// Appends one STREAM frame of at most `room` bytes with the data of `pending`.
    ///
    /// Returns `None` and changes nothing if the frame does not fit in `room`, or if there is no
    /// longer anything to send because the stream changed since `pending` was returned.
    pub fn write_stream(
        &mut self,
        pending: &Pending,
        out: &mut Vec<u8>,
        room: usize,
        length: Length,
    ) -> Option<Written> {
        let id = pending.id;
        let stream = self.table.get_mut(id)?;
        let send = stream.send.as_mut()?;
        let next = match pending.source {
            Source::Lost(_) => match send.next_lost()? {
                NextLost::Bytes(next) => next,
                NextLost::Symbol(_) => return None,
            },
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
        } else {
            if len > 0 {
                self.out.order.charge(id.0, len);
            }
            if send.next_lost().is_none() {
                self.out.drop_lost(id, send);
            }
        }
        self.out.refresh(stream, &mut self.control);
        self.out.prune_fins(&mut self.table);
        Some(Written { token, flushed })
    }

    /// The deadline of the message to which the first byte of what is sent next belongs.
    #[must_use]
    pub fn next_deadline(&self, pending: &Pending) -> Option<Instant> {
        let send = self.send_half(pending.id)?;
        let offset = match pending.source {
            Source::Lost(NextLost::Bytes(next)) => next.offset,
            Source::Lost(NextLost::Symbol(_)) => return None,
            Source::New(_) => send.buffer.unsent(),
        };
        send.messages.deadline(offset)
    }

    /// The source symbol of `pending` was sent again, with `frames`.
    pub fn wrote_symbol(&mut self, pending: &Pending, frames: &[StreamToken]) {
        for frame in frames.iter().filter(|frame| frame.len > 0) {
            let StreamToken { id, offset, fin, .. } = *frame;
            let header = StreamHeader { id, offset, fin }.size(None);
            self.out.charge_frame(id, frame.len as usize, header);
            self.out.order.charge(frame.id.0, frame.len as usize);
        }
        let Some(stream) = self.table.get_mut(pending.id) else { return };
        let Some(send) = &mut stream.send else { return };
        if send.lost.front().is_some_and(|frame| frame.symbol == pending.symbol()) {
            self.out.drop_lost(pending.id, send);
        }
        self.out.refresh(stream, &mut self.control);
    }

    /// A source symbol that is queued to be resent for a stream can no longer be sent as a whole.
    /// The bytes of its frame take its place in the queue. Returns how many.
    pub fn unbind_symbol(&mut self, id: StreamId, symbol: SymbolRef) -> u64 {
        let Some(stream) = self.table.get_mut(id) else { return 0 };
        let Some(send) = &mut stream.send else { return 0 };
        let bytes = send.unbind(symbol);
        self.out.refresh(stream, &mut self.control);
        bytes
    }

    /// Takes the symbols that no longer wait in a stream's queue of lost data: they were sent again, or
    /// their bytes arrived by another frame, or the stream is over. Must be called after whatever
    /// sends, delivers or resets, so that no session keeps a symbol that nobody will send.
    #[must_use]
    pub fn take_unqueued(&mut self) -> Unqueued {
        std::mem::take(&mut self.out.unqueued)
    }

    /// Whether there is stream data that can be sent.
    #[must_use]
    pub fn has_data(&self) -> bool {
        self.look_lost().is_some() || self.look_new(usize::MAX).is_some()
    }

    /// What waits to be sent, computed by visiting every stream instead of using the queues. This
    /// checks the queues.
    #[must_use]
    pub fn backlog(&self) -> Backlog {
        let credit = self.out.credit.available() > 0;
        let mut backlog = Backlog::Empty;
        for send in self.table.iter().filter_map(|stream| stream.send.as_ref()) {
            let fresh = send.new_bytes() > 0;
            if send.is_missing_any() || send.wants_bare_fin() || (fresh && credit) {
                return Backlog::Sendable;
            }
            if fresh || send.is_blocked() {
                backlog = Backlog::Credit;
            }
        }
        backlog
    }

    /// The rank of a stream; `None` if it does not exist or has no sending part.
    #[must_use]
    pub fn rank(&self, id: StreamId) -> Option<Rank> {
        self.send_half(id).map(|send| self.out.rank(send))
    }

    /// Whether turns end in the middle of packets, so that streams share these.
    #[must_use]
    pub fn share_packets(&self) -> bool {
        self.out.scheduler.goes_by_frames()
    }

    /// Number of new bytes that the peer's limit for the connection allows.
    #[must_use]
    pub fn credit(&self) -> u64 {
        self.out.credit.available()
    }

    /// Whether streams have new bytes that only connection flow control blocks.
    #[must_use]
    pub fn is_connection_blocked(&self) -> bool {
        self.out.is_blocked()
    }

    /// Queues the missing part of a frame to be sent again, unless it is queued already; returns
    /// whether there was anything to queue. Used for lost frames and for probes.
    pub fn retransmit(&mut self, token: &StreamToken) -> bool {
        let Some(stream) = self.table.get_mut(token.id) else {
            return false;
        };
        let Some(send) = &mut stream.send else {
            return false;
        };
        let queued = send.retransmit(range_of(token), token.fin);
        if queued {
            self.out.order.queued(token.id.0);
            self.out.refresh(stream, &mut self.control);
        }
        queued
    }

    /// Queues a source symbol to be resent as a whole, because it holds the frame `token` that the
    /// peer misses.
    pub fn queue_symbol(&mut self, symbol: SymbolRef, token: &StreamToken) {
        let stream = self.table.get_mut(token.id);
        if let Some(stream) = stream
            && let Some(send) = &mut stream.send
        {
            let range = range_of(token);
            send.lost.push_back(LostFrame { range, fin: token.fin, symbol: Some(symbol) });
            self.out.order.queued(token.id.0);
            self.out.refresh(stream, &mut self.control);
        }
    }

    /// Charges a stream for `bytes` of the connection's capacity that were used for it, but not by
    /// one of its frames.
    pub fn charge(&mut self, id: StreamId, bytes: usize) {
        self.out.charge(id, bytes);
    }

    /// Whether the peer still misses some of a frame that was sent.
    #[must_use]
    pub fn is_missing(&self, token: &StreamToken) -> bool {
        self.send_half(token.id).is_some_and(|send| send.is_missing(&range_of(token), token.fin))
    }

    /// The peer has the contents of a frame: its packet was acknowledged, or the peer recovered it
    /// from repair symbols. Storage is freed, and the data will not be sent again.
    pub fn delivered(&mut self, token: &StreamToken) {
        self.settle(token.id, |send| send.acked(range_of(token), token.fin));
    }

    /// The contents of a frame will not be sent again, although the peer does not have them. When
    /// nothing else of the stream is outstanding, the stream ends with a reset that carries `code`.
    pub fn give_up(&mut self, token: &StreamToken, code: u64) {
        self.settle(token.id, |send| send.give_up(range_of(token), token.fin, code));
    }

    /// Updates a stream after one of its frames was acknowledged or given up.
    fn settle(&mut self, id: StreamId, act: impl FnOnce(&mut SendHalf) -> Completion) {
        let Some(stream) = self.table.get_mut(id) else { return };
        let Some(send) = &mut stream.send else { return };
        match act(send) {
            Completion::Open => {
                if self.out.prune_lost(id, send) {
                    self.out.refresh(stream, &mut self.control);
                } else {
                    self.out.account(send);
                }
                Self::notify_writable(stream, &mut self.out.pool, &mut self.events);
            }
            Completion::Finished => {
                let message = send.message;
                self.out.refresh(stream, &mut self.control);
                self.report_end(message, StreamEvent::Finished { id }, true);
                self.reap(id);
            }
            Completion::Reset => {
                self.out.refresh(stream, &mut self.control);
                self.reap(id);
            }
            Completion::Incomplete(code) => {
                let message = send.message;
                send.reset(code, 0);
                self.out.refresh(stream, &mut self.control);
                self.report_end(message, StreamEvent::Finished { id }, false);
            }
        }
        self.wake_writers();
    }
}
