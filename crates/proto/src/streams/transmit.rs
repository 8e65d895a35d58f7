//! Stream bytes on their way into packets, and what becomes of them.

use super::control::Control;
use super::encode::{self, Length};
use super::flow::SendCredit;
use super::resend_order::{Precedence, ResendOrder};
use super::send::{Completion, LostFrame, NextLost, SendHalf};
use super::send_pool::SendPool;
use super::table::{Stream, Table};
use super::{StreamEvent, Streams};
use crate::ids::StreamId;
use crate::ids::SymbolRef;
use crate::recovery::token::StreamToken;
use crate::wire::frame::StreamHeader;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::ops::Range;
use sutura_schedule::{Rank, Scheduler, Urgency};

/// A stream with at most this many bytes written is a short message, such as a request. Packets of
/// its own would cost it more than it can lose by sharing one.
const SHORT_MESSAGE: u64 = 256;
/// Where the bytes of a [`Pending`] come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// From the first of the stream's lost frames.
    Lost(NextLost),
    /// From those that were never sent, at most so many.
    New(u64),
}

/// What comes next, before it is written: enough to decide in which kind of packet it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pending {
    /// The stream.
    pub id: StreamId,

    /// Whether it may share a packet with another stream: the stream is one of the protocol's own,
    /// which all others may wait for, or is a [`SHORT_MESSAGE`].
    pub goes_along: bool,
    source: Source,
}

impl Pending {
    fn new(id: StreamId, send: &SendHalf, source: Source) -> Self {
        let control = send.priority.urgency == Urgency::CONTROL;
        let goes_along = control || send.buffer.end() <= SHORT_MESSAGE;
        Self { id, goes_along, source }
    }

    /// The source symbol to be sent again as it is, if that is what comes next.
    #[must_use]
    pub fn symbol(&self) -> Option<SymbolRef> {
        match self.source {
            Source::Lost(NextLost::Symbol(symbol)) => Some(symbol),
            _ => None,
        }
    }

    /// Whether these bytes were sent before and lost.
    #[must_use]
    #[cfg(test)]
    pub fn is_retransmission(&self) -> bool {
        matches!(self.source, Source::Lost(_))
    }
}

/// What was written of a [`Pending`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// The frame. Its symbol is for the caller to fill in.
    pub token: StreamToken,
    /// Whether new data was sent up to the end of what the application wrote.
    pub flushed: bool,
}

/// What waits to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backlog {
    /// Nothing.
    Empty,
    /// Something that flow control holds back.
    Credit,
    /// Something that may be sent.
    Sendable,
}

/// Source symbols that were queued to be sent again on behalf of a stream that is given up.
pub type Withdrawn = SmallVec<[SymbolRef; 2]>;

/// The stream bytes that a token stands for.
fn range_of(token: &StreamToken) -> Range<u64> {
    token.offset..token.offset.saturating_add(u64::from(token.len))
}

/// Who sends next.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) scheduler: Box<dyn Scheduler>,
    /// Which of the streams that lost data sends it again next.
    pub(super) order: Box<dyn ResendOrder>,
    /// Connection flow control for what we send.
    pub(super) credit: SendCredit,
    /// The connection's limit for what send buffers hold.
    pub(super) pool: SendPool,
    /// How many streams have new bytes that their own flow control allows to send.
    fresh: usize,
    /// Streams of which nothing but FIN is left. A FIN costs no flow-control credit, so it does not
    /// wait for any. The first entry is always such a stream; the others are checked when they
    /// become the first.
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
            order,
            credit: SendCredit::default(),
            pool: SendPool::new(send_buffer),
            fresh: 0,
            fins: VecDeque::new(),
        }
    }

    /// How a stream ranks.
    fn rank(&self, send: &SendHalf) -> Rank {
        send.priority.rank(self.scheduler.goes_by_classes())
    }

    /// Whether lost data waits until the scheduler selects its stream.
    fn in_turn(&self) -> bool {
        self.order.precedence() == Precedence::InTurn
    }

    /// Whether streams wait for the connection's flow control.
    pub(super) fn is_blocked(&self) -> bool {
        self.credit.available() == 0 && self.fresh > 0
    }

    /// Queues DATA_BLOCKED once for each limit at which data waits.
    pub(super) fn report_blocked(&mut self, control: &mut Control) {
        if self.is_blocked() && self.credit.block() {
            control.data_blocked = true;
        }
    }

    /// Tells the scheduler and the queues what a stream has to send, after that may have changed.
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
        if send.block() {
            stream.pending.blocked = true;
            control.queue(stream);
        }
        self.report_blocked(control);
    }

    fn count_fresh(&mut self, send: &mut SendHalf, fresh: bool) {
        let before = std::mem::replace(&mut send.fresh, fresh);
        self.fresh = (self.fresh + usize::from(fresh)).saturating_sub(usize::from(before));
    }

    /// Follows what a stream's send buffer holds.
    fn account(&mut self, send: &mut SendHalf) {
        let retained = send.buffer.retained();
        self.pool.account(std::mem::replace(&mut send.pooled, retained), retained);
    }

    /// Forgets a stream that is over.
    pub(super) fn remove(&mut self, id: StreamId, send: &mut SendHalf) {
        if !send.lost.is_empty() {
            send.lost.clear();
            self.order.dequeued(id.0, 0);
        }
        self.account(send);
        self.count_fresh(send, false);
        if send.pool_queued {
            self.pool.forget(id);
        }
        self.scheduler.remove(id.0);
        self.order.remove(id.0);
    }

    /// Charges a stream for bytes that it sent.
    fn charge(&mut self, id: StreamId, bytes: usize) {
        if bytes > 0 {
            self.scheduler.charge(id.0, bytes);
        }
    }

    /// Drops the first of a stream's lost frames, which was sent.
    fn drop_lost(&mut self, id: StreamId, send: &mut SendHalf) {
        send.lost.pop_front();
        self.order.dequeued(id.0, send.lost.len());
        self.prune_lost(id, send);
    }

    /// Drops the first of a stream's lost frames as long as the peer has got them by another way, so
    /// that the first is always one to be sent. Returns whether any was dropped.
    fn prune_lost(&mut self, id: StreamId, send: &mut SendHalf) -> bool {
        let before = send.lost.len();
        while !send.lost.is_empty() && send.next_lost().is_none() {
            send.lost.pop_front();
        }
        let pruned = send.lost.len() < before;
        if pruned {
            self.order.dequeued(id.0, send.lost.len());
        }
        pruned
    }

    /// Drops all lost frames of a stream that is given up; returns the symbols among them.
    pub(super) fn withdraw(&mut self, id: StreamId, send: &mut SendHalf) -> Withdrawn {
        let withdrawn = send.lost.drain(..).filter_map(|frame| frame.symbol).collect();
        self.order.dequeued(id.0, 0);
        withdrawn
    }

    /// Which of the streams that lost data goes next, regardless of the scheduler.
    fn next_lost(&self, table: &Table) -> Option<Pending> {
        let id = StreamId(self.order.next()?);
        let send = table.get(id)?.send.as_ref()?;
        let next = send.next_lost();
        debug_assert!(next.is_some(), "the order names a stream that lost nothing");
        Some(Pending::new(id, send, Source::Lost(next?)))
    }

    /// The first stream of which only FIN is left to send.
    fn next_fin(&self, table: &Table) -> Option<Pending> {
        let id = *self.fins.front()?;
        let send = table.get(id)?.send.as_ref()?;
        debug_assert!(send.wants_bare_fin(), "a stream without a bare FIN is first");
        Some(Pending::new(id, send, Source::New(0)))
    }

    /// Drops streams from the front of the queue of bare FINs that have none to send any more.
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

    /// What the stream that the scheduler names sends next.
    fn next_scheduled(&self, table: &Table, room: usize) -> Option<Pending> {
        let credit = self.credit.available();
        if credit == 0 {
            // The scheduler may name a stream that has but new bytes.
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
    /// Which stream's bytes go next into a packet with `room` bytes left.
    #[cfg(test)]
    pub fn look(&self, room: usize) -> Option<Pending> {
        self.look_lost().or_else(|| self.look_new(room))
    }

    /// Which stream's lost bytes go next, if they go before all new ones. Changes nothing.
    #[must_use]
    pub fn look_lost(&self) -> Option<Pending> {
        if self.out.in_turn() { None } else { self.out.next_lost(&self.table) }
    }

    /// Which stream goes next in turn: a bare end of stream, or what the scheduler says, as far as
    /// connection flow control allows. That may be lost bytes, if they have no precedence. Changes
    /// nothing.
    #[must_use]
    pub fn look_new(&self, room: usize) -> Option<Pending> {
        let fin = self.out.next_fin(&self.table);
        fin.or_else(|| self.out.next_scheduled(&self.table, room))
    }

    /// Appends one STREAM frame of at most `room` bytes with what `pending` announced.
    ///
    /// `None`, with nothing changed, if the frame does not fit in `room`, or if there is nothing to
    /// send any more because something happened to the stream since `pending` was polled.
    pub fn write_stream(
        &mut self,
        pending: &Pending,
        out: &mut Vec<u8>,
        room: usize,
        length: Length,
    ) -> Option<Written> {
        let id = pending.id;
        let send = self.send_half(id)?;
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
        let stream = self.table.get_mut(id)?;
        let send = stream.send.as_mut()?;
        header.encode((length == Length::Explicit).then_some(len), out);
        send.buffer.copy_to(range.clone(), out);
        send.on_frame(range, fin);
        self.out.charge(id, len);
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

    /// The source symbol that `pending` announced was sent again, with `frames`.
    pub fn wrote_symbol(&mut self, pending: &Pending, frames: &[StreamToken]) {
        for frame in frames.iter().filter(|frame| frame.len > 0) {
            self.out.charge(frame.id, frame.len as usize);
            self.out.order.charge(frame.id.0, frame.len as usize);
        }
        let Some(stream) = self.table.get_mut(pending.id) else { return };
        let Some(send) = &mut stream.send else { return };
        if send.lost.front().is_some_and(|frame| frame.symbol == pending.symbol()) {
            self.out.drop_lost(pending.id, send);
        }
        self.out.refresh(stream, &mut self.control);
    }

    /// A source symbol that is queued to be sent again on behalf of a stream cannot be sent as it is
    /// any more: the bytes of its frame take its place in the queue. Returns how many.
    pub fn unbind_symbol(&mut self, id: StreamId, symbol: SymbolRef) -> u64 {
        let Some(stream) = self.table.get_mut(id) else { return 0 };
        let Some(send) = &mut stream.send else { return 0 };
        let bytes = send.unbind(symbol);
        self.out.refresh(stream, &mut self.control);
        bytes
    }

    /// Whether stream bytes wait to be sent, and may be.
    #[must_use]
    pub fn has_data(&self) -> bool {
        self.look_lost().is_some() || self.look_new(usize::MAX).is_some()
    }

    /// What waits to be sent, found by looking at every stream and at no queue: a check of those.
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

    /// How a stream ranks; `None` if there is none to send on.
    #[must_use]
    pub fn rank(&self, id: StreamId) -> Option<Rank> {
        self.send_half(id).map(|send| self.out.rank(send))
    }

    /// Bytes that the peer's limit for the connection lets new data take.
    #[must_use]
    pub fn credit(&self) -> u64 {
        self.out.credit.available()
    }

    /// Whether streams have new bytes to send that only connection flow control holds back.
    #[must_use]
    pub fn is_connection_blocked(&self) -> bool {
        self.out.is_blocked()
    }

    /// Queues what is still missing of a frame to be sent again, unless it is queued already; returns
    /// whether anything is. For lost frames, and for probes.
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

    /// Queues a source symbol to be sent again as it is, for the sake of the frame `token` that it
    /// holds and the peer misses.
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

    /// `bytes` of the connection's capacity were used for a stream, but not by a frame of it.
    pub fn charge(&mut self, id: StreamId, bytes: usize) {
        self.out.charge(id, bytes);
    }

    /// Whether the peer still has to get something of a frame that was sent.
    #[must_use]
    pub fn is_missing(&self, token: &StreamToken) -> bool {
        self.send_half(token.id).is_some_and(|send| send.is_missing(&range_of(token), token.fin))
    }

    /// The peer holds what a frame carried: its packet was acknowledged, or the peer recovered it
    /// from repair symbols. Storage is freed, and it will not be sent again.
    pub fn delivered(&mut self, token: &StreamToken) {
        self.settle(token.id, |send| send.acked(range_of(token), token.fin));
    }

    /// What a frame carried will not be sent again, although the peer does not hold it. When
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
                self.notify_writable(id);
            }
            Completion::Finished => {
                self.out.refresh(stream, &mut self.control);
                self.events.push(StreamEvent::Finished { id });
                self.reap(id);
            }
            Completion::Incomplete(code) => {
                stream.pending.reset = send.reset(code);
                self.control.queue(stream);
                self.out.refresh(stream, &mut self.control);
                self.events.push(StreamEvent::Finished { id });
            }
        }
        self.wake_writers();
    }
}
