//! Stream bytes on their way into packets, and what becomes of them.

use super::control::Control;
use super::encode::{self, Length};
use super::flow::SendCredit;
use super::send::{SendHalf, Sendable};
use super::table::{Stream, Table};
use super::{Protection, StreamEvent, Streams};
use crate::ids::StreamId;
use crate::recovery::token::StreamToken;
use crate::wire::frame::StreamHeader;
use std::collections::VecDeque;
use std::ops::Range;
use sutura_schedule::Scheduler;

/// Where the bytes of a [`Pending`] come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// From the queue of lost ones.
    Lost,
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
    source: Source,
}

impl Pending {
    fn new(id: StreamId, send: &SendHalf, source: Source) -> Self {
        Self { id, protection: send.protection, session: send.session, source }
    }

    /// Whether these bytes were sent before and lost.
    #[must_use]
    #[cfg(test)]
    pub fn is_retransmission(&self) -> bool {
        self.source == Source::Lost
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

/// A frame that was declared lost, in the order of loss.
#[derive(Debug)]
struct LostFrame {
    id: StreamId,
    range: Range<u64>,
    fin: bool,
}

/// The stream bytes that a token stands for.
fn range_of(token: &StreamToken) -> Range<u64> {
    token.offset..token.offset.saturating_add(u64::from(token.len))
}

/// Who sends next.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) scheduler: Box<dyn Scheduler>,
    /// Connection flow control for what we send.
    pub(super) credit: SendCredit,
    /// Frames to send again. What the peer got meanwhile is skipped when its turn comes.
    lost: VecDeque<LostFrame>,
    /// Streams of which nothing but FIN is left: it costs no flow-control credit, so it does not
    /// wait with those that do.
    fins: VecDeque<StreamId>,
    /// Protected streams that were sent up to the end of what was written.
    flushed: VecDeque<StreamId>,
}

impl Outgoing {
    pub(super) fn new(scheduler: Box<dyn Scheduler>) -> Self {
        Self {
            scheduler,
            credit: SendCredit::default(),
            lost: VecDeque::new(),
            fins: VecDeque::new(),
            flushed: VecDeque::new(),
        }
    }

    /// Whether streams wait for the connection's flow control.
    pub(super) fn is_blocked(&self) -> bool {
        self.credit.available() == 0 && !self.scheduler.is_empty()
    }

    /// Queues DATA_BLOCKED once for each limit at which data waits.
    pub(super) fn report_blocked(&mut self, control: &mut Control) {
        if self.is_blocked() && self.credit.block() {
            control.data_blocked = true;
        }
    }

    /// Tells the scheduler and the queues what a stream has to send, after that may have changed.
    pub(super) fn refresh(&mut self, stream: &mut Stream, control: &mut Control) {
        let Some(send) = &mut stream.send else { return };
        let ready = send.new_bytes() > 0;
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
        if send.block() {
            stream.pending.blocked = true;
            control.queue(stream);
        }
        self.report_blocked(control);
    }

    /// The first lost frame of which something is still needed; others are dropped.
    fn next_lost(&mut self, table: &Table) -> Option<(StreamId, Sendable)> {
        while let Some(front) = self.lost.front() {
            let send = table.get(front.id).and_then(|stream| stream.send.as_ref());
            if let Some(next) = send.and_then(|send| send.next_lost(&front.range, front.fin)) {
                return Some((front.id, next));
            }
            self.lost.pop_front();
        }
        None
    }

    /// The first stream of which only FIN is left to send.
    fn next_fin(&mut self, table: &mut Table) -> Option<StreamId> {
        while let Some(&id) = self.fins.front() {
            if let Some(send) = table.get_mut(id).and_then(|stream| stream.send.as_mut()) {
                if send.wants_bare_fin() {
                    return Some(id);
                }
                send.fin_queued = false;
            }
            self.fins.pop_front();
        }
        None
    }
}

impl Streams {
    /// Which stream's bytes go next into a packet with `room` bytes left: lost ones first, then
    /// new ones. Nothing changes until [`Self::write_stream`].
    #[cfg(test)]
    pub fn poll_data(&mut self, room: usize) -> Option<Pending> {
        self.poll_retransmission().or_else(|| self.poll_new(room))
    }

    /// Which stream's lost bytes go next, in the order of loss.
    pub fn poll_retransmission(&mut self) -> Option<Pending> {
        let (id, _) = self.out.next_lost(&self.table)?;
        Some(Pending::new(id, self.send_half(id)?, Source::Lost))
    }

    /// Which stream's new bytes go next: a bare end of stream, or what the scheduler says, if
    /// connection flow control allows.
    pub fn poll_new(&mut self, room: usize) -> Option<Pending> {
        if let Some(id) = self.out.next_fin(&mut self.table) {
            return Some(Pending::new(id, self.send_half(id)?, Source::New(0)));
        }
        let credit = self.out.credit.available();
        if credit == 0 {
            return None;
        }
        let grant = self.out.scheduler.next(room)?;
        let id = StreamId(grant.stream);
        let bytes = credit.min(grant.bytes as u64);
        Some(Pending::new(id, self.send_half(id)?, Source::New(bytes)))
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
        let next = match pending.source {
            Source::Lost => self.out.next_lost(&self.table).filter(|next| next.0 == id)?.1,
            Source::New(max) => {
                self.send_half(id)?.next_new(max.min(self.out.credit.available()))?
            }
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
        if let Source::New(_) = pending.source {
            self.out.credit.charge(len as u64);
            if len > 0 {
                self.out.scheduler.charge(id.0, len);
            }
            let protected = send.protection.is_some() || send.session.is_some();
            if protected && !send.has_unsent() && !send.flush_queued {
                send.flush_queued = true;
                self.out.flushed.push_back(id);
            }
        }
        self.out.refresh(stream, &mut self.control);
        Some(token)
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
        self.out.next_lost(&self.table).is_some()
            || self.out.next_fin(&mut self.table).is_some()
            || (self.out.credit.available() > 0 && !self.out.scheduler.is_empty())
    }

    /// Whether streams have new bytes to send that only connection flow control holds back.
    #[must_use]
    pub fn is_connection_blocked(&self) -> bool {
        self.out.is_blocked()
    }

    /// Queues what is still missing of a frame to be sent again, before new data and after what was
    /// queued before; returns whether anything is. For lost frames, and for probes.
    pub fn retransmit(&mut self, token: &StreamToken) -> bool {
        let range = range_of(token);
        let Some(stream) = self.table.get_mut(token.id) else {
            return false;
        };
        let Some(send) = &mut stream.send else {
            return false;
        };
        let queued = send.retransmit(range.clone(), token.fin);
        if queued {
            self.out.lost.push_back(LostFrame { id: token.id, range, fin: token.fin });
        }
        queued
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
            self.events.push(StreamEvent::Finished { id });
            self.reap(id);
            return;
        }
        Self::notify_writable(&mut self.events, stream);
    }
}
