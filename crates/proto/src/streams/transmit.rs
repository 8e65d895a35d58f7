//! Stream bytes on their way into packets, and what becomes of them.

use super::control::Control;
use super::encode::{self, Length};
use super::flow::SendCredit;
use super::retransmission_order::{Precedence, RetransmissionOrder};
use super::send::{LostFrame, NextLost, SendHalf};
use super::send_pool::SendPool;
use super::table::{Stream, Table};
use super::{Protection, StreamEvent, Streams};
use crate::fec::SymbolRef;
use crate::ids::StreamId;
use crate::recovery::token::StreamToken;
use crate::wire::frame::StreamHeader;
use std::collections::VecDeque;
use std::ops::Range;
use sutura_schedule::{Scheduler, Urgency};

/// Bytes of a stream that has been written no more than a short message, such as a request. Such
/// streams cost more in packets of their own than they can lose by sharing one.
const SHORT_MESSAGE: u64 = 256;
/// Room to ask the scheduler with when only its stream counts.
const ANY_ROOM: usize = crate::config::MIN_UDP_PAYLOAD as usize;

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
    /// How it is protected.
    pub protection: Option<Protection>,
    /// The erasure-coding session that it belongs to.
    pub session: Option<u16>,
    /// Whether it may go along with another stream in a packet: the stream is one of the
    /// protocol's own, for which all others may wait, or has no more than a short message.
    pub goes_along: bool,
    source: Source,
}

impl Pending {
    fn new(id: StreamId, send: &SendHalf, source: Source) -> Self {
        let control = send.priority.urgency == Urgency::CONTROL;
        let goes_along = control || send.buffer.end() <= SHORT_MESSAGE;
        Self { id, protection: send.protection, session: send.session, goes_along, source }
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

/// A protected stream of which everything written was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flushed {
    /// The stream.
    pub id: StreamId,
    /// Whether that was the end of the stream.
    pub fin: bool,
}

/// The stream bytes that a token stands for.
fn range_of(token: &StreamToken) -> Range<u64> {
    token.offset..token.offset.saturating_add(u64::from(token.len))
}

/// Who sends next.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) scheduler: Box<dyn Scheduler>,
    /// Which of the streams that lost data sends it again next.
    pub(super) order: Box<dyn RetransmissionOrder>,
    /// Connection flow control for what we send.
    pub(super) credit: SendCredit,
    /// The connection's limit for what send buffers hold.
    pub(super) pool: SendPool,
    /// How many streams have new bytes that their own flow control lets go.
    fresh: usize,
    /// Streams of which nothing but FIN is left: it costs no flow-control credit, so it does not
    /// wait with those that do.
    fins: VecDeque<StreamId>,
    /// Protected streams that were sent up to the end of what was written.
    flushed: VecDeque<StreamId>,
    /// Source symbols that will not be sent again on behalf of the stream that they were queued
    /// for.
    forsaken: Vec<SymbolRef>,
}

impl Outgoing {
    pub(super) fn new(
        scheduler: Box<dyn Scheduler>,
        order: Box<dyn RetransmissionOrder>,
        send_buffer: usize,
    ) -> Self {
        Self {
            scheduler,
            order,
            credit: SendCredit::default(),
            pool: SendPool::new(send_buffer),
            fresh: 0,
            fins: VecDeque::new(),
            flushed: VecDeque::new(),
            forsaken: Vec::new(),
        }
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
        if !send.is_sending() {
            self.clear_lost(stream.id, send);
        }
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
        self.clear_lost(id, send);
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

    /// Drops the first of a stream's lost frames, which was sent or is of no use any more.
    fn drop_lost(&mut self, id: StreamId, send: &mut SendHalf, sent: bool) {
        let symbol = send.lost.pop_front().and_then(|frame| frame.symbol);
        self.forsaken.extend(symbol.filter(|_| !sent));
        self.order.dequeued(id.0, send.lost.len());
    }

    /// Drops all lost frames of a stream that sends no more.
    fn clear_lost(&mut self, id: StreamId, send: &mut SendHalf) {
        if !send.lost.is_empty() {
            self.forsaken.extend(send.lost.drain(..).filter_map(|frame| frame.symbol));
            self.order.dequeued(id.0, 0);
        }
    }

    /// What a stream sends next of what it lost; drops what need not be sent again before.
    fn lost_of(&mut self, id: StreamId, send: &mut SendHalf) -> Option<NextLost> {
        while !send.lost.is_empty() {
            if let Some(next) = send.next_lost() {
                return Some(next);
            }
            self.drop_lost(id, send, false);
        }
        None
    }

    /// Which stream goes next of those that lost data, whatever the scheduler says of new data.
    fn next_lost(&mut self, table: &mut Table) -> Option<Pending> {
        while let Some(key) = self.order.next() {
            let id = StreamId(key);
            match table.get_mut(id).and_then(|stream| stream.send.as_mut()) {
                Some(send) if !send.lost.is_empty() => {
                    if let Some(next) = send.next_lost() {
                        return Some(Pending::new(id, send, Source::Lost(next)));
                    }
                    // One by one: the order may name another stream for the next.
                    self.drop_lost(id, send, false);
                }
                _ => self.order.dequeued(key, 0),
            }
        }
        None
    }

    /// The first stream of which only FIN is left to send.
    fn next_fin(&mut self, table: &mut Table) -> Option<Pending> {
        while let Some(&id) = self.fins.front() {
            if let Some(send) = table.get_mut(id).and_then(|stream| stream.send.as_mut()) {
                if send.wants_bare_fin() {
                    return Some(Pending::new(id, send, Source::New(0)));
                }
                send.fin_queued = false;
            }
            self.fins.pop_front();
        }
        None
    }

    /// What the stream that the scheduler names sends next.
    fn next_scheduled(
        &mut self,
        table: &mut Table,
        control: &mut Control,
        room: usize,
    ) -> Option<Pending> {
        let credit = self.credit.available();
        if credit == 0 {
            // The scheduler may name a stream that has but new bytes.
            return if self.in_turn() { self.next_lost(table) } else { None };
        }
        loop {
            let grant = self.scheduler.next(room)?;
            let id = StreamId(grant.stream);
            let stream = table.get_mut(id)?;
            let send = stream.send.as_mut()?;
            if self.in_turn()
                && let Some(next) = self.lost_of(id, send)
            {
                return Some(Pending::new(id, send, Source::Lost(next)));
            }
            if send.fresh {
                let bytes = credit.min(grant.bytes as u64);
                return Some(Pending::new(id, send, Source::New(bytes)));
            }
            if !send.scheduled {
                debug_assert!(false, "the scheduler names a stream that is not active");
                return None;
            }
            // All that it had lost was delivered meanwhile.
            self.refresh(stream, control);
        }
    }
}

impl Streams {
    /// Which stream's bytes go next into a packet with `room` bytes left. Nothing changes until
    /// [`Self::write_stream`].
    #[cfg(test)]
    pub fn poll_data(&mut self, room: usize) -> Option<Pending> {
        self.poll_retransmission().or_else(|| self.poll_new(room))
    }

    /// Which stream's lost bytes go next, if they go before all new ones.
    pub fn poll_retransmission(&mut self) -> Option<Pending> {
        if self.out.in_turn() {
            return None;
        }
        self.out.next_lost(&mut self.table)
    }

    /// Which stream goes next in turn: a bare end of stream, or what the scheduler says, as far as
    /// connection flow control allows. That may be lost bytes, if they have no precedence.
    pub fn poll_new(&mut self, room: usize) -> Option<Pending> {
        let fin = self.out.next_fin(&mut self.table);
        fin.or_else(|| self.out.next_scheduled(&mut self.table, &mut self.control, room))
    }

    /// Appends one STREAM frame of at most `room` bytes with what `pending` announced. The token's
    /// symbol is for the caller to fill in.
    ///
    /// `None`, with nothing changed, if the frame does not fit in `room`, or if there is nothing to
    /// send any more because something happened to the stream since `pending` was polled.
    pub fn write_stream(
        &mut self,
        pending: &Pending,
        out: &mut Vec<u8>,
        room: usize,
        length: Length,
    ) -> Option<StreamToken> {
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
        if let Source::New(_) = pending.source {
            self.out.credit.charge(len as u64);
            let protected = send.protection.is_some() || send.session.is_some();
            if protected && !send.has_unsent() && !send.flush_queued {
                send.flush_queued = true;
                self.out.flushed.push_back(id);
            }
        } else {
            if len > 0 {
                self.out.order.charge(id.0, len);
            }
            if send.next_lost().is_none() {
                self.out.drop_lost(id, send, true);
            }
        }
        self.out.refresh(stream, &mut self.control);
        Some(token)
    }

    /// The source symbol that `pending` announced was sent again, with `frames`.
    pub fn wrote_symbol(&mut self, pending: &Pending, frames: &[StreamToken]) {
        for frame in frames.iter().filter(|frame| frame.len > 0) {
            self.out.charge(frame.id, frame.len as usize);
            self.out.order.charge(frame.id.0, frame.len as usize);
        }
        self.drop_symbol(pending, true);
    }

    /// The source symbol that `pending` announced cannot be sent again as it is.
    pub fn skip_symbol(&mut self, pending: &Pending) {
        self.drop_symbol(pending, false);
    }

    fn drop_symbol(&mut self, pending: &Pending, sent: bool) {
        let Some(stream) = self.table.get_mut(pending.id) else { return };
        let Some(send) = &mut stream.send else { return };
        if send.lost.front().is_some_and(|frame| frame.symbol == pending.symbol()) {
            self.out.drop_lost(pending.id, send, sent);
        }
        self.out.refresh(stream, &mut self.control);
    }

    /// A protected stream of which everything written has been sent since it was last reported. To
    /// be called until `None` after packets were filled.
    pub fn drain_flushed(&mut self) -> Option<Flushed> {
        while let Some(id) = self.out.flushed.pop_front() {
            let Some(stream) = self.table.get_mut(id) else {
                continue;
            };
            let Some(send) = stream.send.as_mut() else {
                continue;
            };
            send.flush_queued = false;
            if !send.has_unsent() && (send.is_sending() || send.is_data_sent()) {
                return Some(Flushed { id, fin: send.is_data_sent() });
            }
        }
        None
    }

    /// Whether stream bytes wait to be sent, and may be.
    pub fn wants_data(&mut self) -> bool {
        if self.out.in_turn() {
            return self.poll_new(ANY_ROOM).is_some();
        }
        self.out.next_lost(&mut self.table).is_some()
            || self.out.next_fin(&mut self.table).is_some()
            || (self.out.credit.available() > 0 && self.out.fresh > 0)
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
    /// holds and the peer misses. The symbol comes back from [`Self::take_forsaken`] if the frame is
    /// not missed any more when its turn comes.
    pub fn retransmit_symbol(&mut self, symbol: SymbolRef, token: &StreamToken) {
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

    /// Source symbols that were queued to be sent again and will not be: the stream was reset, or
    /// the peer got the frame by another way.
    pub fn take_forsaken(&mut self) -> Option<SymbolRef> {
        self.out.forsaken.pop()
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
        let id = token.id;
        let Some(stream) = self.table.get_mut(id) else {
            return;
        };
        let Some(send) = &mut stream.send else { return };
        if send.acked(range_of(token), token.fin) {
            self.out.refresh(stream, &mut self.control);
            self.events.push(StreamEvent::Finished { id });
            self.reap(id);
        } else {
            self.out.account(send);
            self.notify_writable(id);
        }
        self.wake_writers();
    }
}
