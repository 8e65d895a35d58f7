//! Processing of the peer's frames about streams and flow control (RFC 9000 section 19).

use super::memory::count_storage;
use super::recv::FrameEffect;
use super::table::{Lookup, MAX_STREAM_COUNT};
use super::{EndedMessage, Half, StreamEvent, Streams};
use crate::error::{TransportError, TransportErrorCode};
use crate::ids::{Dir, StreamId};
use crate::wire::frame::FrameKind;

impl Streams {
    /// STREAM (section 19.8): `data` starts at stream offset `offset`.
    ///
    /// # Errors
    /// We cannot receive on the stream, or the peer may not open it; a flow-control limit is
    /// exceeded; the final size changes; or the data is fragmented too much.
    pub fn received(
        &mut self,
        id: StreamId,
        offset: u64,
        data: &[u8],
        fin: bool,
    ) -> Result<(), TransportError> {
        self.receive(id, |half, credit| half.received(offset, data, fin, credit))
            .map_err(|error| error.in_frame(FrameKind::Stream.wire_type()))
    }

    /// Notes that data of the stream came in a 0-RTT packet.
    pub fn set_early(&mut self, id: StreamId) {
        if let Some(half) = self.table.get_mut(id).and_then(|stream| stream.halves.recv_mut()) {
            half.early = true;
        }
    }

    /// Whether data of the stream came in a 0-RTT packet.
    #[must_use]
    pub fn is_early(&self, id: StreamId) -> bool {
        let half = self.table.get(id).and_then(|stream| stream.halves.recv());
        half.is_some_and(|half| half.early)
    }

    /// RESET_STREAM (section 19.4).
    ///
    /// # Errors
    /// We cannot receive on the stream, or the peer may not open it; a flow-control limit is
    /// exceeded; or the final size changes.
    pub fn received_reset(
        &mut self,
        id: StreamId,
        code: u64,
        final_size: u64,
    ) -> Result<(), TransportError> {
        self.receive(id, |half, credit| half.received_reset(code, final_size, credit))
            .map_err(|error| error.in_frame(FrameKind::ResetStream.wire_type()))
    }

    /// RESET_STREAM_AT (draft-ietf-quic-reliable-stream-reset-07): like RESET_STREAM, but the first
    /// `reliable` bytes, no more than `final_size`, are delivered.
    ///
    /// # Errors
    /// As for [`received_reset`](Self::received_reset), or the error code changes.
    pub fn received_reset_at(
        &mut self,
        id: StreamId,
        code: u64,
        final_size: u64,
        reliable: u64,
    ) -> Result<(), TransportError> {
        self.receive(id, |half, credit| half.received_reset_at(code, final_size, reliable, credit))
            .map_err(|error| error.in_frame(FrameKind::ResetStreamAt.wire_type()))
    }

    /// Passes a frame to the receiving part of its stream, and handles the result.
    fn receive(
        &mut self,
        id: StreamId,
        act: impl FnOnce(&mut super::RecvHalf, u64) -> Result<FrameEffect, TransportError>,
    ) -> Result<(), TransportError> {
        let credit = self.window.limit().saturating_sub(self.received);
        if !self.open_by_peer(id, Half::Recv)? {
            return Ok(());
        }
        let Some(stream) = self.table.get_mut(id) else {
            return Ok(());
        };
        let Some(half) = stream.halves.recv_mut() else {
            return Ok(());
        };
        let FrameEffect { readable, growth, released } = act(half, credit)?;
        count_storage(&mut self.received_storage, half);
        if !half.may_update() {
            stream.pending.max_data = false;
        }
        if readable {
            Self::notify_readable(&mut self.events, stream);
        }
        let done = stream.is_done();
        self.received += growth;
        if released > 0 {
            self.release(released);
        }
        if done {
            self.reap(id);
        }
        Ok(())
    }

    /// Opens the stream that a frame names, if no earlier frame of the peer opened it. Returns whether the
    /// stream has state.
    fn open_by_peer(&mut self, id: StreamId, half: Half) -> Result<bool, TransportError> {
        let (lookup, opened) = self.table.resolve(id, half)?;
        if opened {
            self.events.opened(id.dir());
        }
        if lookup == Lookup::Fresh {
            self.create(id, false);
        }
        Ok(lookup != Lookup::Gone)
    }

    /// A repair symbol recovered data of the stream. If the stream is complete now, it is stopped, where that
    /// is [wanted](Self::with_stop_recovered): the sender then knows that the stream is complete without an
    /// acknowledgement of each part.
    pub fn recovered(&mut self, id: StreamId) {
        let half = self.table.get(id).and_then(|stream| stream.halves.recv());
        if half.is_some_and(|half| half.is_whole()) {
            self.whole.add(id);
        }
    }

    /// STOP_SENDING (section 19.5): resets the stream with the peer's code and notifies the application,
    /// unless the peer has the whole stream. If the code says that the peer
    /// [recovered](Self::with_stop_recovered) the stream, the application learns that it is finished. Returns
    /// the message of the stream if the message ended.
    ///
    /// # Errors
    /// We cannot send on the stream, or the peer may not open it.
    pub fn received_stop_sending(
        &mut self,
        id: StreamId,
        code: u64,
    ) -> Result<Option<EndedMessage>, TransportError> {
        let exists = self
            .open_by_peer(id, Half::Send)
            .map_err(|error| error.in_frame(FrameKind::StopSending.wire_type()))?;
        let stream = self.table.get_mut(id).filter(|_| exists);
        let Some(send) = stream.and_then(|stream| stream.halves.send_mut()) else {
            return Ok(None);
        };
        let message = send.message;
        if self.whole.is_meant(code) && send.is_all_sent() {
            self.abandon(id, code);
            return Ok(self.report_end(message, StreamEvent::Finished { id }, true));
        }
        if !send.stop(code) {
            return Ok(None);
        }
        self.abandon(id, code);
        Ok(self.report_end(message, StreamEvent::Stopped { id, code }, false))
    }

    /// MAX_DATA (section 19.9).
    pub fn received_max_data(&mut self, limit: u64) {
        self.raise_max_data(limit);
    }

    /// MAX_STREAM_DATA (section 19.10).
    ///
    /// # Errors
    /// We cannot send on the stream, or the peer may not open it.
    pub fn received_max_stream_data(
        &mut self,
        id: StreamId,
        limit: u64,
    ) -> Result<(), TransportError> {
        let exists = self
            .open_by_peer(id, Half::Send)
            .map_err(|error| error.in_frame(FrameKind::MaxStreamData.wire_type()))?;
        let Some(stream) = self.table.get_mut(id).filter(|_| exists) else {
            return Ok(());
        };
        if let Some(send) = stream.halves.send_mut() {
            send.raise_max_data(limit);
            self.out.refresh(stream, &mut self.control);
        }
        Ok(())
    }

    /// MAX_STREAMS (section 19.11).
    ///
    /// # Errors
    /// The limit is above 2^60 streams.
    pub fn received_max_streams(&mut self, dir: Dir, limit: u64) -> Result<(), TransportError> {
        Self::check_stream_count(limit, FrameKind::MaxStreams.wire_type() | dir as u64)?;
        self.raise_max_streams(dir, limit);
        Ok(())
    }

    /// STREAM_DATA_BLOCKED (section 19.13): opens the stream, but changes nothing else.
    ///
    /// # Errors
    /// We cannot receive on the stream, or the peer may not open it.
    pub fn received_stream_data_blocked(&mut self, id: StreamId) -> Result<(), TransportError> {
        self.open_by_peer(id, Half::Recv)
            .map(drop)
            .map_err(|error| error.in_frame(FrameKind::StreamDataBlocked.wire_type()))
    }

    /// STREAMS_BLOCKED (section 19.14): announces all streams that became free, without waiting for
    /// more.
    ///
    /// # Errors
    /// The limit is above 2^60 streams.
    pub fn received_streams_blocked(&mut self, dir: Dir, limit: u64) -> Result<(), TransportError> {
        Self::check_stream_count(limit, FrameKind::StreamsBlocked.wire_type() | dir as u64)?;
        let remote = &self.table.remote[dir.index()];
        if remote.allowance() > remote.max {
            self.control.max_streams[dir.index()] = true;
        }
        Ok(())
    }

    fn check_stream_count(limit: u64, frame: u64) -> Result<(), TransportError> {
        if limit <= MAX_STREAM_COUNT {
            return Ok(());
        }
        let code = TransportErrorCode::FRAME_ENCODING_ERROR;
        Err(TransportError::new(code, "more streams than there can be").in_frame(frame))
    }
}
