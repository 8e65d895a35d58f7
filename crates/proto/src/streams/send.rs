//! The sending part of a stream (RFC 9000 section 3.1).

#[cfg(feature = "testing")]
mod check;

use super::Protection;
use super::members::Membership;
use super::messages::StreamMessages;
use super::optional_number::OptionalNumber;
use super::send_buffer::SendBuffer;
use super::send_pool::SendPool;
use super::{ClosedStream, WriteError};
use crate::ids::{MessageId, SymbolRef};
use bytes::Bytes;
use std::ops::Range;
use sutura_schedule::{Priority, Urgency};

/// States of RFC 9000 section 3.1, figure 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SendState {
    /// No byte was sent.
    Ready,
    /// Bytes were sent, or lack of credit was reported.
    Send,
    /// All bytes and the end of the stream were sent.
    DataSent,
    /// The peer acknowledged all bytes and the end of the stream.
    DataRecvd,
    /// The stream was reset.
    ResetSent,
    /// The peer acknowledged the reset.
    ResetRecvd,
}

/// The state of the end of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fin {
    /// More data may be written.
    Open,
    /// The stream was finished; FIN has not been sent.
    Due,
    /// FIN was sent.
    Sent,
    /// FIN was acknowledged.
    Acked,
}

/// A stretch to send: its start, its length, and whether the stream ends after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sendable {
    /// The offset of its first byte.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u64,
    /// Whether the stream ends after `len` bytes, so that FIN is set if all `len` bytes are sent.
    pub fin: bool,
}

/// A reset of the stream (section 19.4), or of the part of the stream after a number of bytes that are
/// delivered nevertheless (RESET_STREAM_AT).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reset {
    code: u64,
    /// Number of bytes to be delivered.
    reliable: u64,
    /// Number of bytes that had been sent before the reset dropped bytes.
    sent: u64,
    /// The peer acknowledged the frame with these values.
    acked: bool,
}

/// The values of a frame that resets a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ResetFrame {
    pub(super) code: u64,
    pub(super) final_size: u64,
    /// 0 for RESET_STREAM.
    pub(super) reliable: u64,
}

/// Lost data of a stream that is sent again next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextLost {
    /// A STREAM frame.
    Bytes(Sendable),
    /// A whole source symbol.
    Symbol(SymbolRef),
}

/// Whether a stream is complete after one of its frames was acknowledged or given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Completion {
    /// Data is outstanding, or the stream was complete before.
    Open,
    /// The peer has all bytes and the end of the stream.
    Finished,
    /// The stream was reset, and the peer has all bytes that were still to be delivered.
    Reset,
    /// No data is outstanding, but the peer does not have the whole stream: data was given up, most recently
    /// with this code.
    Incomplete(u64),
}

/// How to notify a writer that found no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wake {
    /// Do not notify: no writer waits, or there is still no room.
    No,
    /// Tell the writer to write again.
    Now,
    /// Let the writer wait until other streams free room.
    WaitForPool,
}

/// The sending part of a stream.
#[derive(Debug)]
pub(super) struct SendHalf {
    state: SendState,
    pub(super) buffer: SendBuffer,
    fin: Fin,
    /// Number of lost frames that wait to be sent again.
    pub(super) resends: usize,
    /// The peer's limit for this stream.
    max_data: u64,
    /// The limit for which STREAM_DATA_BLOCKED was queued.
    blocked_at: OptionalNumber,
    /// The code of the peer's STOP_SENDING.
    pub(super) stopped: OptionalNumber,
    /// Our reset of the stream.
    reset: Option<Box<Reset>>,
    /// The reset has to be announced as soon as all bytes that are still to be delivered were sent.
    reset_due: bool,
    /// Bytes that the peer does not have were given up, most recently with this code.
    given_up: Option<u64>,
    /// A write found no room, and the writer has not been notified yet.
    wants_room: bool,
    pub(super) priority: Priority,
    pub(super) protection: Option<Protection>,
    /// The coding session that the stream belongs to.
    pub(super) membership: Option<Box<Membership>>,
    /// The messages that the application has announced, if it ever did.
    pub(super) messages: Option<Box<StreamMessages>>,
    /// The message for which the stream was opened.
    pub(super) message: Option<MessageId>,
    /// The stream is active in the scheduler.
    pub(super) scheduled: bool,
    /// The stream counts among those with new bytes.
    pub(super) fresh: bool,
    /// Bytes of the buffer that count against the connection's pool.
    pub(super) pooled: usize,
    /// Bytes of the buffer's storage that the pool has counted.
    pub(super) stored: usize,
    /// The stream's turn in the pool's queue of streams that found no room, if the stream is in that queue.
    pub(super) pool_turn: OptionalNumber,
    /// The stream is in the queue of bare FINs.
    pub(super) fin_queued: bool,
}

impl SendHalf {
    pub(super) fn new(max_data: u64, buffer_limit: usize, protection: Option<Protection>) -> Self {
        Self {
            state: SendState::Ready,
            buffer: SendBuffer::new(buffer_limit),
            fin: Fin::Open,
            resends: 0,
            max_data,
            blocked_at: OptionalNumber::default(),
            stopped: OptionalNumber::default(),
            reset: None,
            reset_due: false,
            given_up: None,
            wants_room: false,
            priority: Priority::default(),
            protection,
            membership: None,
            messages: None,
            message: None,
            scheduled: false,
            fresh: false,
            pooled: 0,
            stored: 0,
            pool_turn: OptionalNumber::default(),
            fin_queued: false,
        }
    }

    /// Whether the stream belongs to the protocol itself, as HTTP/3's control stream does.
    pub(super) fn is_control(&self) -> bool {
        self.priority.urgency == Urgency::CONTROL
    }

    #[cfg(test)]
    pub(super) fn state(&self) -> SendState {
        self.state
    }

    /// Whether the peer acknowledged the whole stream, or the reset.
    pub(super) fn is_done(&self) -> bool {
        matches!(self.state, SendState::DataRecvd | SendState::ResetRecvd)
    }

    /// Whether frames with stream bytes may still be sent.
    pub(super) fn is_sending(&self) -> bool {
        match self.state {
            SendState::Ready | SendState::Send | SendState::DataSent => true,
            SendState::ResetSent => !self.buffer.is_all_acked(),
            SendState::DataRecvd | SendState::ResetRecvd => false,
        }
    }

    /// The reason why the stream cannot be written to, if any.
    fn writable(&self) -> Result<(), ClosedStream> {
        if let Some(code) = self.stopped.get() {
            return Err(ClosedStream::Stopped(code));
        }
        let open = self.fin == Fin::Open && self.reset.is_none() && self.is_sending();
        if open { Ok(()) } else { Err(ClosedStream::Closed) }
    }

    /// Copies a prefix of `data` into the buffer; see [`super::Streams::write`].
    pub(super) fn write(&mut self, data: &[u8], pool: &SendPool) -> Result<usize, WriteError> {
        let accepted = self.accept(data.len(), pool)?;
        Ok(self.buffer.write(data.get(..accepted).unwrap_or_default()))
    }

    /// Takes a prefix of `data`; see [`super::Streams::write_chunk`].
    pub(super) fn write_chunk(
        &mut self,
        mut data: Bytes,
        pool: &SendPool,
    ) -> Result<usize, WriteError> {
        data.truncate(self.accept(data.len(), pool)?);
        Ok(self.buffer.write_chunk(data))
    }

    /// For how many bytes there is room.
    pub(super) fn room(&self, pool: &SendPool) -> Result<usize, ClosedStream> {
        self.writable()?;
        Ok(self.buffer.room().min(pool.room(self.buffer.retained())))
    }

    /// For how many of `len` bytes there is room. Without room, the writer is recorded as waiting.
    pub(super) fn accept(&mut self, len: usize, pool: &SendPool) -> Result<usize, WriteError> {
        let room = self.room(pool)?;
        if len > 0 && room == 0 {
            self.wants_room = true;
            return Err(WriteError::Blocked);
        }
        Ok(len.min(room))
    }

    /// The application will write no more bytes.
    pub(super) fn finish(&mut self) -> Result<(), ClosedStream> {
        self.writable()?;
        self.fin = Fin::Due;
        Ok(())
    }

    /// Resets the stream after `reliable` bytes, or after the written bytes if there are fewer. A stream that
    /// was reset before keeps its code, and a later reset can only lower the number of bytes.
    pub(super) fn reset(&mut self, code: u64, reliable: u64) {
        let reliable = reliable.min(self.buffer.end());
        let sent = self.buffer.unsent();
        let reset = match self.reset.as_deref() {
            None if self.is_sending() => Reset { code, reliable, sent, acked: false },
            Some(&before) if reliable < before.reliable && self.state == SendState::ResetSent => {
                Reset { reliable, sent: sent.max(before.sent), acked: false, ..before }
            }
            None | Some(_) => return,
        };
        self.state = SendState::ResetSent;
        self.reset = Some(Box::new(reset));
        self.reset_due = true;
        // From now on only the reset frame tells the final size.
        self.fin = Fin::Open;
        self.buffer.truncate(reliable);
    }

    /// Whether the reset has to be announced now. True once for each reset.
    pub(super) fn take_reset_due(&mut self) -> bool {
        let due = self.reset_due && self.reset_frame().is_some();
        self.reset_due &= !due;
        due
    }

    /// Whether all bytes and the end were sent, but not all of them are acknowledged.
    pub(super) fn is_all_sent(&self) -> bool {
        self.state == SendState::DataSent
    }

    /// The peer asks us to stop; returns whether this is the peer's first request.
    pub(super) fn stop(&mut self, code: u64) -> bool {
        let news = self.stopped.get().is_none() && self.is_sending();
        if news {
            self.stopped = OptionalNumber::some(code);
        }
        news
    }

    /// The frame that resets the stream, unless the peer acknowledged the frame. The frame waits until the
    /// bytes that are to be delivered were sent, so that its final size needs no further flow-control credit.
    pub(super) fn reset_frame(&self) -> Option<ResetFrame> {
        let ready = self.state == SendState::ResetSent && self.buffer.unsent() == self.buffer.end();
        let Reset { code, reliable, sent, .. } =
            *self.reset.as_deref().filter(|reset| ready && !reset.acked)?;
        Some(ResetFrame { code, reliable, final_size: sent.max(self.buffer.unsent()) })
    }

    /// The peer acknowledged the reset after `reliable` bytes.
    pub(super) fn reset_acked(&mut self, reliable: u64) {
        if let Some(reset) = self.reset.as_mut().filter(|reset| reset.reliable == reliable) {
            reset.acked = true;
            self.finish_reset();
        }
    }

    /// Ends the stream if the peer knows of the reset and has all bytes that were to be delivered.
    fn finish_reset(&mut self) {
        let known = self.reset.as_ref().is_some_and(|reset| reset.acked);
        if known && self.state == SendState::ResetSent && self.buffer.is_all_acked() {
            self.state = SendState::ResetRecvd;
        }
    }

    /// The peer's limit for this stream.
    pub(super) fn max_data(&self) -> u64 {
        self.max_data
    }

    /// Raises the peer's limit; a lower limit is outdated and ignored.
    pub(super) fn raise_max_data(&mut self, limit: u64) {
        self.max_data = self.max_data.max(limit);
    }

    /// Whether written bytes wait for the peer to raise the stream's limit.
    pub(super) fn is_blocked(&self) -> bool {
        self.is_sending()
            && self.buffer.end() > self.buffer.unsent()
            && self.buffer.unsent() >= self.max_data
    }

    /// Records that bytes wait for stream credit. True the first time for each limit.
    pub(super) fn block(&mut self) -> bool {
        let news = self.is_blocked() && self.blocked_at.get() != Some(self.max_data);
        if news {
            self.blocked_at = OptionalNumber::some(self.max_data);
            if self.state == SendState::Ready {
                self.state = SendState::Send;
            }
        }
        news
    }

    /// Number of new bytes that stream flow control allows to send.
    pub(super) fn new_bytes(&self) -> u64 {
        self.unsent_bytes().min(self.max_data.saturating_sub(self.buffer.unsent()))
    }

    /// Whether there are [new bytes](Self::new_bytes).
    pub(super) fn has_new_bytes(&self) -> bool {
        self.unsent_bytes() > 0 && self.buffer.unsent() < self.max_data
    }

    /// Number of bytes that were written and never sent.
    pub(super) fn unsent_bytes(&self) -> u64 {
        if self.is_sending() { self.buffer.end() - self.buffer.unsent() } else { 0 }
    }

    /// Whether only the FIN is left to send.
    pub(super) fn wants_bare_fin(&self) -> bool {
        self.is_sending() && self.fin == Fin::Due && self.buffer.unsent() == self.buffer.end()
    }

    /// Whether written bytes, or the end of the stream, were never sent.
    pub(super) fn has_unsent(&self) -> bool {
        self.is_sending() && (self.fin == Fin::Due || self.buffer.unsent() < self.buffer.end())
    }

    /// At most `max` new bytes, or a bare FIN.
    pub(super) fn next_new(&self, max: u64) -> Option<Sendable> {
        let offset = self.buffer.unsent();
        let len = self.new_bytes().min(max);
        if len == 0 && !self.wants_bare_fin() {
            return None;
        }
        Some(Sendable { offset, len, fin: self.ends_at(offset + len) })
    }

    /// Whether a frame that ends at `offset` must have FIN.
    pub(super) fn ends_at(&self, offset: u64) -> bool {
        self.fin != Fin::Open && offset == self.buffer.end()
    }

    /// Records that a frame was written.
    pub(super) fn on_frame(&mut self, range: Range<u64>, fin: bool) {
        let unsent = self.buffer.unsent();
        if range.start >= unsent {
            self.buffer.sent(range.end - range.start);
        }
        if self.state == SendState::Ready {
            self.state = SendState::Send;
        }
        if fin {
            if self.fin != Fin::Acked {
                self.fin = Fin::Sent;
            }
            if self.state == SendState::Send {
                self.state = SendState::DataSent;
            }
        }
    }

    /// Whether FIN was sent, is not known to have arrived, and is still needed.
    pub(super) fn is_fin_missing(&self) -> bool {
        self.is_sending() && self.fin == Fin::Sent
    }

    /// Whether a frame is not known to have arrived completely, and is still needed.
    pub(super) fn is_missing(&self, range: &Range<u64>, fin: bool) -> bool {
        let fin_missing = fin && self.fin != Fin::Acked && self.reset.is_none();
        self.is_sending() && (!self.buffer.is_acked(range) || fin_missing)
    }

    /// The peer has received the contents of a frame.
    pub(super) fn acked(&mut self, range: Range<u64>, fin: bool) -> Completion {
        if !self.is_sending() {
            return Completion::Open;
        }
        self.buffer.acked(range);
        if self.reset.is_some() {
            return self.acked_after_reset();
        }
        if fin {
            self.fin = Fin::Acked;
        }
        if self.state != SendState::DataSent
            || self.fin != Fin::Acked
            || !self.buffer.is_all_acked()
        {
            return Completion::Open;
        }
        if let Some(code) = self.given_up {
            return Completion::Incomplete(code);
        }
        self.state = SendState::DataRecvd;
        self.buffer.discard();
        Completion::Finished
    }

    /// Handles an acknowledgement of bytes that are to be delivered although the stream was reset.
    fn acked_after_reset(&mut self) -> Completion {
        if !self.buffer.is_all_acked() {
            return Completion::Open;
        }
        if let Some(code) = self.given_up {
            return Completion::Incomplete(code);
        }
        self.finish_reset();
        Completion::Reset
    }

    /// The contents of a frame will not be sent again, although the peer does not have them. Their storage is
    /// freed as if they were acknowledged, but the stream can no longer finish.
    pub(super) fn give_up(&mut self, range: Range<u64>, fin: bool, code: u64) -> Completion {
        if self.is_missing(&range, fin) {
            self.given_up = Some(code);
        }
        self.acked(range, fin)
    }

    /// Whether to notify a blocked writer that there is room again. Returns [`Wake::Now`] only
    /// once.
    ///
    /// A quarter of the buffer must be free, so that the application is not woken for every
    /// acknowledged packet.
    pub(super) fn take_writable(&mut self, pool: &SendPool) -> Wake {
        let limit = self.buffer.limit();
        let enough = |limit: usize| (limit / 4).max(1);
        if !self.wants_room || self.buffer.room() < enough(limit) || self.writable().is_err() {
            return Wake::No;
        }
        if pool.room(self.buffer.retained()) < enough(limit.min(pool.reserve())) {
            return Wake::WaitForPool;
        }
        self.wants_room = false;
        Wake::Now
    }

    /// Takes the flag that a writer waits for room, because the writer is now told to try again.
    pub(super) fn take_wants_room(&mut self) -> bool {
        std::mem::take(&mut self.wants_room) && self.writable().is_ok()
    }
}
