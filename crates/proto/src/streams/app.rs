//! The application's interface to streams (RFC 9000 section 2.4).

use super::delivery::{Chunk, Delivery};
use super::memory::count_storage;
use super::optional_number::OptionalNumber;
use super::send::Wake;
use super::send_pool::SendPool;
use super::table::{MAX_STREAM_COUNT, Stream};
use super::{
    ClosedStream, Half, Protection, Read, ReadError, RecvHalf, SendHalf, StreamEvent, Streams,
    WriteError,
};
use crate::fec::redundancy::Message;
use crate::ids::{Dir, StreamId};
use crate::recovery::token::StreamToken;
use crate::wire::coding::VARINT_MAX;
use bytes::Bytes;
use std::time::Instant;
use sutura_schedule::Priority;

impl Streams {
    /// Opens a stream. `None` if the peer's limit for that direction is reached: then the stream is
    /// [wanted](Self::want).
    pub fn open(&mut self, dir: Dir) -> Option<StreamId> {
        if self.left(dir) == 0 {
            self.want(dir);
            return None;
        }
        let local = &mut self.table.local[dir.index()];
        let id = StreamId::new(self.table.side, dir, local.next);
        local.next += 1;
        self.create(id, true);
        Some(id)
    }

    /// How many streams of this direction the peer's limit still allows to open.
    #[must_use]
    pub fn left(&self, dir: Dir) -> u64 {
        let local = &self.table.local[dir.index()];
        local.max.saturating_sub(local.next)
    }

    /// Notes that a stream is wanted although the peer's limit is reached: STREAMS_BLOCKED tells the peer, once
    /// for each limit, and [`StreamEvent::Available`] follows once the limit is raised (section 4.6).
    pub fn want(&mut self, dir: Dir) {
        let local = &mut self.table.local[dir.index()];
        local.wanted = true;
        if local.blocked_at.replace(local.max) != Some(local.max) {
            self.control.streams_blocked[dir.index()] = true;
        }
    }

    /// How many streams of this direction that the peer opened wait to be accepted.
    #[must_use]
    pub fn acceptable(&self, dir: Dir) -> u64 {
        let remote = &self.table.remote[dir.index()];
        remote.next - remote.accepted
    }

    /// Accepts the next stream that the peer opened, in the order of stream identifiers. If the stream is
    /// readable already, [`StreamEvent::Readable`] follows.
    pub fn accept(&mut self, dir: Dir) -> Option<StreamId> {
        if self.acceptable(dir) == 0 {
            return None;
        }
        let remote = &mut self.table.remote[dir.index()];
        let id = StreamId::new(self.table.side.peer(), dir, remote.accepted);
        remote.accepted += 1;
        if self.table.is_implicit(id) {
            self.create(id, true);
        }
        if let Some(stream) = self.table.get_mut(id) {
            stream.accepted = true;
            if stream.halves.recv().is_some_and(RecvHalf::is_readable) {
                Self::notify_readable(&mut self.events, stream);
            }
        }
        Some(id)
    }

    fn stream_mut(&mut self, id: StreamId, half: Half) -> Result<&mut Stream, ClosedStream> {
        let stream = self.table.get_mut(id).ok_or(ClosedStream::Closed)?;
        let has_half = match half {
            Half::Send => stream.halves.send().is_some(),
            Half::Recv => stream.halves.recv().is_some(),
        };
        if has_half { Ok(stream) } else { Err(ClosedStream::Closed) }
    }

    /// Runs `act` on the sending part of a stream, then updates the state that depends on it.
    pub(super) fn sending<T, E: From<ClosedStream>>(
        &mut self,
        id: StreamId,
        act: impl FnOnce(&mut SendHalf) -> Result<T, E>,
    ) -> Result<T, E> {
        let stream = self.table.get_mut(id).ok_or(ClosedStream::Closed)?;
        let result = act(stream.halves.send_mut().ok_or(ClosedStream::Closed)?);
        self.out.refresh(stream, &mut self.control);
        result
    }

    /// Runs `write` on the sending part of a stream. If the connection's limit leaves no room, although the
    /// stream's own limit does, the stream queues until other streams free room.
    fn writing(
        &mut self,
        id: StreamId,
        write: impl FnOnce(&mut SendHalf, &SendPool) -> Result<usize, WriteError>,
    ) -> Result<usize, WriteError> {
        let stream = self.table.get_mut(id).ok_or(ClosedStream::Closed)?;
        let send = stream.halves.send_mut().ok_or(ClosedStream::Closed)?;
        let result = write(send, &self.out.pool);
        if result == Err(WriteError::Blocked) && send.buffer.room() > 0 {
            self.out.pool.queue(id, send);
        }
        self.out.refresh(stream, &mut self.control);
        result
    }

    /// Copies as much of `data` into the send buffer as fits, and returns the number of bytes.
    ///
    /// # Errors
    /// The buffer is full, or the stream is closed for writing.
    pub fn write(&mut self, id: StreamId, data: &[u8]) -> Result<usize, WriteError> {
        self.writing(id, |send, pool| send.write(data, pool))
    }

    /// Takes as much of `data` as fits, without copying it unless it is very short. Returns the
    /// number of bytes.
    ///
    /// # Errors
    /// The buffer is full, or the stream is closed for writing.
    pub fn write_chunk(&mut self, id: StreamId, data: Bytes) -> Result<usize, WriteError> {
        self.writing(id, |send, pool| send.write_chunk(data, pool))
    }

    /// How many bytes can be written.
    ///
    /// # Errors
    /// The stream is closed for writing.
    pub fn room(&self, id: StreamId) -> Result<usize, WriteError> {
        let stream = self.table.get(id).ok_or(ClosedStream::Closed)?;
        Ok(stream.halves.send().ok_or(ClosedStream::Closed)?.room(&self.out.pool)?)
    }

    /// Makes [`StreamEvent::Writable`] follow once there is room, as after a write that found no room.
    ///
    /// # Errors
    /// The stream is closed for writing.
    pub fn want_room(&mut self, id: StreamId) -> Result<(), WriteError> {
        match self.writing(id, |send, pool| send.accept(1, pool)) {
            Ok(_) => {
                let stream = self.table.get_mut(id).ok_or(ClosedStream::Closed)?;
                Self::push_writable(&mut self.events, stream);
                Ok(())
            }
            Err(WriteError::Blocked) => Ok(()),
            Err(error @ (WriteError::Stopped(_) | WriteError::Closed)) => Err(error),
        }
    }

    /// Ends the stream after the data written so far.
    ///
    /// # Errors
    /// The stream was already finished, reset or stopped.
    pub fn finish(&mut self, id: StreamId) -> Result<(), ClosedStream> {
        let stream = self.table.get_mut(id).ok_or(ClosedStream::Closed)?;
        stream.halves.send_mut().ok_or(ClosedStream::Closed)?.finish()?;
        self.out.finished(stream);
        Ok(())
    }

    /// Abandons the sending part of the stream: no more data is sent or retransmitted. Has no effect if the
    /// peer has the whole stream or the stream was reset before.
    ///
    /// # Errors
    /// There is no such stream, or it has no sending part.
    pub fn reset(&mut self, id: StreamId, code: u64) -> Result<(), ClosedStream> {
        self.reset_at(id, code, 0)
    }

    /// Abandons the sending part of the stream beyond its first `reliable` bytes, or beyond the end of the
    /// written data if fewer bytes were written. The peer must understand RESET_STREAM_AT. Has no effect if
    /// the peer has the whole stream, or if the stream was reset before to as many bytes or fewer. If it was
    /// reset to more bytes, the first code counts.
    ///
    /// # Errors
    /// There is no such stream, or it has no sending part.
    pub fn reset_at(&mut self, id: StreamId, code: u64, reliable: u64) -> Result<(), ClosedStream> {
        self.stream_mut(id, Half::Send)?;
        self.cut(id, code.min(VARINT_MAX), reliable);
        Ok(())
    }

    /// Resets the sending part of a stream if it is still sending.
    pub(super) fn abandon(&mut self, id: StreamId, code: u64) {
        self.cut(id, code, 0);
    }

    fn cut(&mut self, id: StreamId, code: u64, reliable: u64) {
        let Some(stream) = self.table.get_mut(id) else { return };
        let Some(send) = stream.halves.send_mut() else { return };
        send.reset(code, reliable);
        self.out.refresh(stream, &mut self.control);
        self.out.prune_fins(&mut self.table);
        self.wake_writers();
    }

    /// Asks the peer to abandon the stream, and discards further data (section 3.5).
    ///
    /// # Errors
    /// There is no such stream, or all of it was read.
    pub fn stop(&mut self, id: StreamId, code: u64) -> Result<(), ClosedStream> {
        let stream = self.stream_mut(id, Half::Recv)?;
        let stopped = stream.halves.recv_mut().and_then(|recv| recv.stop(code.min(VARINT_MAX)));
        let (released, tell) = stopped.ok_or(ClosedStream::Closed)?;
        if tell {
            stream.pending.stop = true;
            stream.pending.max_data = false;
            if let Some(stream) = self.table.get_mut(id) {
                self.control.queue(stream);
            }
        }
        self.count_received(id);
        self.release(released);
        self.reap(id);
        Ok(())
    }

    /// Reads into `out`, in stream order.
    ///
    /// # Errors
    /// No data is available yet, the peer reset the stream, all data was read, or the stream is not
    /// delivered in stream order.
    pub fn read(&mut self, id: StreamId, out: &mut [u8]) -> Result<Read, ReadError> {
        let recv = self.receiving(id)?;
        let result = recv.read(out);
        let len = if let Ok(Read::Data(len)) = result { len } else { 0 };
        self.after_read(id, len);
        result
    }

    /// Reads at most `max` contiguous bytes without copying. `None` is the end of the stream. If
    /// `ordered` is false, a stream that is delivered in stream order is switched to
    /// [`ArrivalOrder`](super::delivery::ArrivalOrder) first.
    ///
    /// # Errors
    /// No data is available yet, the peer reset the stream, all data was read, or `ordered` is set
    /// and the stream is not delivered in stream order.
    pub fn read_chunk(
        &mut self,
        id: StreamId,
        max: usize,
        ordered: bool,
    ) -> Result<Option<Chunk>, ReadError> {
        let recv = self.receiving(id)?;
        let result = recv.read_chunk(max, ordered);
        let len = if let Ok(Some(chunk)) = &result { chunk.bytes.len() } else { 0 };
        self.after_read(id, len);
        result
    }

    /// Reads at most `max` of the first received bytes below stream offset `end`, even if bytes before them
    /// are missing, without copying. `None` is the end of the stream.
    ///
    /// # Errors
    /// No byte below `end` is available, the peer reset the stream, all data was read, or the stream is not
    /// delivered in stream order.
    pub fn read_ahead(
        &mut self,
        id: StreamId,
        end: u64,
        max: usize,
    ) -> Result<Option<Chunk>, ReadError> {
        let recv = self.receiving(id)?;
        let result = recv.read_ahead(end, max);
        let len = if let Ok(Some(chunk)) = &result { chunk.bytes.len() } else { 0 };
        self.after_read(id, len);
        result
    }

    /// Makes `delivery` decide from now on in which order the stream's bytes are read. If the change makes
    /// the stream readable, [`StreamEvent::Readable`] follows.
    ///
    /// # Errors
    /// All of the stream was read, or `delivery` is ordered and bytes were already delivered out of order.
    pub fn set_delivery(
        &mut self,
        id: StreamId,
        delivery: Box<dyn Delivery>,
    ) -> Result<(), ReadError> {
        let stream = self.table.get_mut(id).ok_or(ReadError::Closed)?;
        let recv = stream.halves.recv_mut().ok_or(ReadError::Closed)?;
        let readable = recv.is_readable();
        recv.set_delivery(delivery)?;
        if !readable && recv.is_readable() {
            Self::notify_readable(&mut self.events, stream);
        }
        Ok(())
    }

    /// The code with which the peer has reset the stream; `None` if it will not, because all data has arrived
    /// or the stream is over.
    ///
    /// # Errors
    /// [`ReadError::Blocked`]: the peer may still do either.
    pub fn received_reset_code(&self, id: StreamId) -> Result<Option<u64>, ReadError> {
        let recv = self.table.get(id).and_then(|stream| stream.halves.recv());
        recv.map_or(Ok(None), RecvHalf::received_reset_code)
    }

    fn receiving(&mut self, id: StreamId) -> Result<&mut RecvHalf, ReadError> {
        let stream = self.table.get_mut(id);
        stream.and_then(|stream| stream.halves.recv_mut()).ok_or(ReadError::Closed)
    }

    /// Updates the flow-control windows after `len` bytes were read, and frees the stream if it is done in
    /// both directions.
    fn after_read(&mut self, id: StreamId, len: usize) {
        let Some(stream) = self.table.get_mut(id) else { return };
        if let Some(recv) = stream.halves.recv_mut() {
            count_storage(&mut self.received_storage, recv);
            if len > 0 && recv.wants_update() {
                stream.pending.max_data = true;
                self.control.queue(stream);
            }
        }
        if len > 0 {
            self.release(len as u64);
        } else if stream.is_done() {
            self.reap(id);
        }
    }

    /// Changes the priority of the stream.
    ///
    /// # Errors
    /// There is no such stream, or it has no sending part.
    pub fn set_priority(&mut self, id: StreamId, priority: Priority) -> Result<(), ClosedStream> {
        let stream = self.stream_mut(id, Half::Send)?;
        if let Some(send) = stream.halves.send_mut().filter(|send| send.priority != priority) {
            send.priority = priority.clone();
            self.out.order.reprioritize(id.0, &priority);
            self.out.scheduler.reprioritize(id.0, priority);
        }
        Ok(())
    }

    /// The priority of the stream.
    #[must_use]
    pub fn priority(&self, id: StreamId) -> Option<Priority> {
        self.send_half(id).map(|send| send.priority.clone())
    }

    /// The protection of new streams.
    pub fn default_protection(&self) -> Option<&Protection> {
        self.protection.as_ref()
    }

    /// Sets how data sent on the stream is protected; `None` turns protection off. The caller chooses the
    /// session, see [`Self::set_session`].
    ///
    /// # Errors
    /// There is no such stream, or it has no sending part.
    pub fn protect(
        &mut self,
        id: StreamId,
        protection: Option<Protection>,
    ) -> Result<(), ClosedStream> {
        self.sending(id, |send| {
            send.protection = protection;
            Ok(())
        })
    }

    /// How data sent on the stream is protected.
    #[must_use]
    pub fn protection(&self, id: StreamId) -> Option<&Protection> {
        self.send_half(id).and_then(|send| send.protection.as_ref())
    }

    /// Announces that the next bytes written on the stream are one message.
    ///
    /// # Errors
    /// There is no such stream, or it has no sending part.
    pub fn announce(&mut self, id: StreamId, message: Message) -> Result<(), ClosedStream> {
        self.sending(id, |send| {
            send.messages.get_or_insert_default().announce(send.buffer.end(), message);
            Ok(())
        })
    }

    /// The message to which a frame's first byte belongs.
    #[must_use]
    pub fn message_of(&self, frame: &StreamToken) -> Option<Message> {
        self.send_half(frame.id).and_then(|send| send.messages.as_ref()?.at(frame.offset))
    }

    /// The deadline for a frame's bytes to reach the receiver, if the application set one.
    #[must_use]
    pub fn deadline(&self, frame: &StreamToken) -> Option<Instant> {
        self.send_half(frame.id).and_then(|send| send.messages.as_ref()?.deadline(frame.offset))
    }

    /// Sets the erasure-coding session that the stream belongs to.
    pub fn set_session(&mut self, id: StreamId, session: Option<u16>) {
        let only = session.and_then(|session| self.out.members.only(session));
        if let Some(only) = only.and_then(|only| self.table.get_mut(only)?.halves.send_mut()) {
            self.out.members.share(only);
        }
        if let Some(send) = self.table.get_mut(id).and_then(|stream| stream.halves.send_mut()) {
            match session {
                Some(session) => self.out.members.join(id, send, session),
                None => self.out.members.leave(send),
            }
        }
    }

    /// The erasure-coding session that the stream belongs to.
    #[cfg(test)]
    pub fn session(&self, id: StreamId) -> Option<u16> {
        self.send_half(id).and_then(SendHalf::session)
    }

    /// Total number of streams of that direction that the peer may have opened so far.
    #[must_use]
    pub fn peer_stream_limit(&self, dir: Dir) -> u64 {
        self.table.remote[dir.index()].max
    }

    /// Sets how many streams of that direction the peer may have open at a time. Streams that the peer has
    /// opened already, or was told that it may open, stay.
    pub fn set_max_concurrent(&mut self, dir: Dir, count: u64) {
        let remote = &mut self.table.remote[dir.index()];
        remote.concurrent = count.min(MAX_STREAM_COUNT);
        self.control.max_streams[dir.index()] |= remote.allowance() > remote.max;
    }

    /// Raises that number to `count` if it is lower.
    pub fn raise_max_concurrent(&mut self, dir: Dir, count: u64) {
        let now = self.table.remote[dir.index()].concurrent;
        self.set_max_concurrent(dir, count.max(now));
    }

    /// Sets how many bytes the peer may send on all streams before the application has read any byte.
    pub fn set_receive_window(&mut self, size: u64) {
        self.window.resize(size);
        self.control.max_data |= self.window.is_due();
    }

    /// The outcome of sending; `None` while the peer may still receive some of the data.
    #[must_use]
    pub fn outcome(&self, id: StreamId) -> Option<super::Outcome> {
        match self.send_half(id) {
            None => Some(super::Outcome::Finished),
            Some(send) => match send.stopped.get() {
                Some(code) => Some(super::Outcome::Stopped(code)),
                None => send.is_done().then_some(super::Outcome::Finished),
            },
        }
    }

    /// Whether bytes, or the end of the stream, were written but never sent, because of scheduling
    /// or flow control.
    #[must_use]
    pub fn has_unsent(&self, id: StreamId) -> bool {
        self.send_half(id).is_some_and(SendHalf::has_unsent)
    }

    /// How far the peer has taken the data written on a stream; `None` if this end holds none of the data any
    /// more.
    pub fn uptake(&self, id: StreamId) -> Option<super::Uptake> {
        let send =
            self.send_half(id).filter(|send| send.is_sending() && send.buffer.retained() > 0)?;
        Some(super::Uptake {
            acked: send.buffer.acked_prefix(),
            credit: send.max_data(),
            is_blocked: send.is_blocked(),
        })
    }

    /// How many bytes the peer lets this end send on all streams.
    #[must_use]
    pub fn max_data(&self) -> u64 {
        self.out.credit.limit()
    }

    pub(super) fn send_half(&self, id: StreamId) -> Option<&SendHalf> {
        self.table.get(id).and_then(|stream| stream.halves.send())
    }

    /// Notifies a blocked writer, once, that there is room again.
    pub(super) fn notify_writable(
        stream: &mut Stream,
        pool: &mut SendPool,
        events: &mut super::Events,
    ) {
        let Some(send) = stream.halves.send_mut() else { return };
        match send.take_writable(pool) {
            Wake::No => {}
            Wake::Now => Self::push_writable(events, stream),
            Wake::WaitForPool => pool.queue(stream.id, send),
        }
    }

    /// Notifies the writers that only the connection's limit blocked, now that there is room again.
    pub(super) fn wake_writers(&mut self) {
        while let Some(id) = self.out.pool.wake() {
            let Some(stream) = self.table.get_mut(id) else { continue };
            let Some(send) = stream.halves.send_mut() else { continue };
            send.pool_turn = OptionalNumber::default();
            if send.buffer.room() > 0 && send.take_wants_room() {
                Self::push_writable(&mut self.events, stream);
            }
        }
    }

    /// Notifies all writers that wait for the connection's limit, because the limit was raised.
    pub(super) fn wake_all_writers(&mut self) {
        for id in self.out.pool.take_waiting() {
            let Some(stream) = self.table.get_mut(id) else { continue };
            let Some(send) = stream.halves.send_mut() else { continue };
            send.pool_turn = OptionalNumber::default();
            if send.take_wants_room() {
                Self::push_writable(&mut self.events, stream);
            }
        }
    }

    fn push_writable(events: &mut super::Events, stream: &mut Stream) {
        if !std::mem::replace(&mut stream.writable_queued, true) {
            events.push(StreamEvent::Writable { id: stream.id });
        }
    }
}
