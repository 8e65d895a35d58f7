//! Pending control frames, and the handling of their acknowledgement or loss.
//!
//! Pending frames are only marks. Their values are read when the frame is written, so a lost frame
//! is sent again with its current value, or not at all.

use super::recv::RecvHalf;
use super::send::{ResetFrame, SendHalf};
use super::table::{PendingControl, Stream};
use super::{Streams, flow};
use crate::ids::{Dir, StreamId};
use crate::recovery::token::{ControlToken, Token, Tokens};
use crate::wire::frame::Frame;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Marks of the connection, and the streams that have marks of their own.
#[derive(Debug, Default)]
pub(super) struct Control {
    pub(super) max_data: bool,
    pub(super) data_blocked: bool,
    pub(super) max_streams: [bool; 2],
    pub(super) streams_blocked: [bool; 2],
    streams: VecDeque<StreamId>,
}

impl Control {
    /// Queues a stream that has control frames to send, once.
    pub(super) fn queue(&mut self, stream: &mut Stream) {
        let PendingControl { reset, stop, max_data, blocked } = stream.pending;
        if (reset || stop || max_data || blocked) && !stream.control_queued {
            stream.control_queued = true;
            self.streams.push_back(stream.id);
        }
    }

    /// Gives back the room for streams beyond those that there are.
    pub(super) fn shrink(&mut self) {
        self.streams.shrink_to_fit();
    }

    /// Whether no frame of the connection or of a stream is pending.
    fn is_empty(&self) -> bool {
        let flags = [self.max_data, self.data_blocked];
        !flags.iter().chain(&self.max_streams).chain(&self.streams_blocked).any(|&flag| flag)
            && self.streams.is_empty()
    }
}

/// The space of a packet that control frames may fill.
struct Page<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    room: usize,
    tokens: &'a mut Tokens,
}

impl Page<'_> {
    /// Writes a frame if it fits; returns whether it did.
    fn put(&mut self, frame: &Frame<'_>, token: ControlToken) -> bool {
        let fits = (self.out.len() - self.start).saturating_add(frame.size()) <= self.room;
        if fits {
            frame.encode(self.out);
            self.tokens.push(Token::Control(token));
        }
        fits
    }
}

impl Streams {
    /// Whether a control frame is pending.
    #[must_use]
    pub fn wants_control(&self) -> bool {
        !self.control.is_empty() || !self.whole.is_empty()
    }

    /// Appends at most `room` bytes of control frames to `out`, and a token for each to `tokens`.
    /// Receive windows are tuned by `rtt`, the smoothed round-trip time.
    pub fn write_control(
        &mut self,
        now: Instant,
        rtt: Duration,
        out: &mut Vec<u8>,
        room: usize,
        tokens: &mut Tokens,
    ) {
        let mut page = Page { start: out.len(), out, room, tokens };
        if !self.write_connection_control(now, rtt, &mut page) {
            return;
        }
        while let Some((id, code)) = self.whole.next() {
            if !page.put(&Frame::StopSending { id, code }, ControlToken::StopSending(id)) {
                return;
            }
            self.whole.written();
        }
        while let Some(&id) = self.control.streams.front() {
            if let Some(stream) = self.table.get_mut(id) {
                if !write_stream_control(stream, now, rtt, &mut page) {
                    return;
                }
                stream.control_queued = false;
            }
            self.control.streams.pop_front();
        }
    }

    /// Writes the connection-level frames; false if not all of them fit.
    fn write_connection_control(&mut self, now: Instant, rtt: Duration, page: &mut Page) -> bool {
        if self.control.max_data {
            let update = self.window.propose(now, rtt, self.received);
            if !page.put(&Frame::MaxData(update.limit), ControlToken::MaxData) {
                return false;
            }
            self.window.commit(now, update);
            self.control.max_data = false;
        }
        for dir in Dir::ALL {
            let remote = &mut self.table.remote[dir.index()];
            if self.control.max_streams[dir.index()] {
                let limit = remote.allowance().max(remote.max);
                if !page.put(&Frame::MaxStreams { dir, max: limit }, ControlToken::MaxStreams(dir))
                {
                    return false;
                }
                remote.max = limit;
                self.control.max_streams[dir.index()] = false;
            }
        }
        if self.control.data_blocked {
            let limit = self.out.credit.limit();
            if self.out.is_blocked()
                && !page.put(&Frame::DataBlocked(limit), ControlToken::DataBlocked(limit))
            {
                return false;
            }
            self.control.data_blocked = false;
        }
        for dir in Dir::ALL {
            let local = &self.table.local[dir.index()];
            if self.control.streams_blocked[dir.index()] {
                let limit = local.max;
                let frame = Frame::StreamsBlocked { dir, limit };
                if local.next >= limit
                    && local.blocked_at == Some(limit)
                    && !page.put(&frame, ControlToken::StreamsBlocked(dir, limit))
                {
                    return false;
                }
                self.control.streams_blocked[dir.index()] = false;
            }
        }
        true
    }

    /// The packet with this frame was acknowledged, whether or not it had been declared lost.
    pub fn control_acked(&mut self, token: ControlToken) {
        match token {
            ControlToken::ResetStream(id) => self.reset_acked(id, 0),
            ControlToken::ResetStreamAt(id, reliable) => self.reset_acked(id, reliable),
            ControlToken::StopSending(id) => {
                if let Some(recv) =
                    self.table.get_mut(id).and_then(|stream| stream.halves.recv_mut())
                {
                    recv.stop_acked();
                    self.reap(id);
                }
            }
            // No state depends on whether these frames arrived.
            ControlToken::MaxData
            | ControlToken::MaxStreamData(_)
            | ControlToken::MaxStreams(_)
            | ControlToken::DataBlocked(_)
            | ControlToken::StreamDataBlocked(..)
            | ControlToken::StreamsBlocked(..) => {}
        }
    }

    fn reset_acked(&mut self, id: StreamId, reliable: u64) {
        if let Some(send) = self.table.get_mut(id).and_then(|stream| stream.halves.send_mut()) {
            send.reset_acked(reliable);
            self.reap(id);
        }
    }

    /// The packet with this frame was lost: queues the frame again if it still applies.
    pub fn control_lost(&mut self, token: ControlToken) {
        match token {
            ControlToken::ResetStream(id) | ControlToken::ResetStreamAt(id, _) => {
                self.again(id, |stream| stream.pending.reset = true);
            }
            ControlToken::StopSending(id) => self.again(id, |stream| {
                stream.pending.stop = true;
            }),
            ControlToken::MaxStreamData(id) => self.again(id, |stream| {
                stream.pending.max_data = true;
            }),
            ControlToken::StreamDataBlocked(id, limit) => self.again(id, |stream| {
                let send = stream.halves.send();
                stream.pending.blocked |=
                    send.is_some_and(|send| send.is_blocked() && send.max_data() == limit);
            }),
            ControlToken::MaxData => self.control.max_data = true,
            ControlToken::MaxStreams(dir) => self.control.max_streams[dir.index()] = true,
            ControlToken::DataBlocked(limit) => {
                self.control.data_blocked |=
                    self.out.credit.limit() == limit && self.out.is_blocked();
            }
            ControlToken::StreamsBlocked(dir, limit) => {
                let local = &self.table.local[dir.index()];
                self.control.streams_blocked[dir.index()] |=
                    local.max == limit && local.next >= limit;
            }
        }
    }

    /// Marks a control frame of a live stream to be sent again.
    fn again(&mut self, id: StreamId, mark: impl FnOnce(&mut Stream)) {
        if let Some(stream) = self.table.get_mut(id) {
            mark(stream);
            self.control.queue(stream);
        }
    }
}

/// Writes the frame that resets a stream, if it fits; returns whether it did.
fn put_reset(id: StreamId, reset: ResetFrame, page: &mut Page) -> bool {
    let ResetFrame { code, final_size, reliable } = reset;
    if reliable == 0 {
        return page
            .put(&Frame::ResetStream { id, code, final_size }, ControlToken::ResetStream(id));
    }
    let frame = Frame::ResetStreamAt { id, code, final_size, reliable_size: reliable };
    page.put(&frame, ControlToken::ResetStreamAt(id, reliable))
}

/// Writes a stream's frames that still apply; false if not all of them fit.
fn write_stream_control(stream: &mut Stream, now: Instant, rtt: Duration, page: &mut Page) -> bool {
    let id = stream.id;
    let Stream { halves, pending, .. } = stream;
    if pending.reset {
        if let Some(reset) = halves.send().and_then(SendHalf::reset_frame)
            && !put_reset(id, reset, page)
        {
            return false;
        }
        pending.reset = false;
    }
    if pending.stop {
        if let Some(code) = halves.recv().and_then(RecvHalf::stop_frame)
            && !page.put(&Frame::StopSending { id, code }, ControlToken::StopSending(id))
        {
            return false;
        }
        pending.stop = false;
    }
    if pending.max_data {
        if let Some(recv) = halves.recv_mut().filter(|recv| recv.may_update()) {
            let update: flow::Update = recv.window.propose(now, rtt, recv.highest());
            let frame = Frame::MaxStreamData { id, max: update.limit };
            if !page.put(&frame, ControlToken::MaxStreamData(id)) {
                return false;
            }
            recv.window.commit(now, update);
        }
        pending.max_data = false;
    }
    if pending.blocked {
        if let Some(send) = halves.send().filter(|send| send.is_blocked()) {
            let limit = send.max_data();
            let frame = Frame::StreamDataBlocked { id, limit };
            if !page.put(&frame, ControlToken::StreamDataBlocked(id, limit)) {
                return false;
            }
        }
        pending.blocked = false;
    }
    true
}
