//! The receiving part of a stream (RFC 9000 section 3.2).

use super::assembler::{Assembler, TooManyGaps};
use super::block::Fresh;
use super::delivery::{ArrivalOrder, Chunk, Delivery, DeliveryFactory, Held, StreamOrder};
use super::flow::RecvWindow;
use super::{Read, ReadError};
use crate::error::{TransportError, TransportErrorCode};
use crate::wire::coding::VARINT_MAX;
use bytes::{Bytes, BytesMut};
use std::ops::Range;

/// States of RFC 9000 section 3.2, figure 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecvState {
    /// More data may arrive.
    Recv,
    /// The final size is known, but bytes are missing.
    SizeKnown,
    /// All bytes have been received.
    DataRecvd,
    /// The application has read all bytes.
    DataRead,
    /// The peer reset the stream.
    ResetRecvd,
    /// The application knows of the reset.
    ResetRead,
}

/// The state of STOP_SENDING.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// STOP_SENDING is not needed: the application reads.
    No,
    /// STOP_SENDING is to be sent with this code, or was sent and is not acknowledged yet.
    Due(u64),
    /// The peer has acknowledged STOP_SENDING.
    Acked,
}

/// The effect of a frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FrameEffect {
    /// The application can read more than before, or learn how the stream ended.
    pub(super) readable: bool,
    /// How many more bytes count against the connection's window.
    pub(super) growth: u64,
    /// Bytes that will not be read, to be credited to the connection's window.
    pub(super) released: u64,
}

/// The receiving part of a stream.
#[derive(Debug)]
pub(super) struct RecvHalf {
    state: RecvState,
    assembler: Assembler,
    /// Decides which received bytes are delivered next. `None` for stream order, which needs no
    /// state and no policy.
    delivery: Option<Box<dyn Delivery>>,
    /// Whether bytes are delivered in stream order.
    ordered: bool,
    /// Whether a delivery that is not ordered has delivered bytes.
    scattered: bool,
    /// In stream order: the end of the bytes that the reader takes even if bytes before them are missing.
    ahead: u64,
    pub(super) window: RecvWindow,
    /// End of the highest byte that counts against flow control.
    highest: u64,
    final_size: Option<u64>,
    /// Distinct bytes received, apart from bytes that a reset cut off.
    received: u64,
    /// Bytes credited to the connection's window.
    credited: u64,
    stop: Stop,
    /// The code of the peer's RESET_STREAM.
    reset: u64,
    /// The peer's RESET_STREAM_AT with the smallest reliable size.
    reset_at: Option<ResetAt>,
    /// Whether some of the data came in a 0-RTT packet.
    pub(super) early: bool,
    /// Bytes of storage that the connection has counted.
    pub(super) stored: usize,
}

/// The contents of a RESET_STREAM_AT frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ResetAt {
    code: u64,
    /// Number of bytes that are delivered.
    reliable: u64,
}

fn final_size_error(reason: &'static str) -> TransportError {
    TransportError::new(TransportErrorCode::FINAL_SIZE_ERROR, reason)
}

fn flow_control_error(reason: &'static str) -> TransportError {
    TransportError::new(TransportErrorCode::FLOW_CONTROL_ERROR, reason)
}

impl RecvHalf {
    /// Before the first byte. Without a `delivery`, bytes are delivered in stream order.
    pub(super) fn new(window: RecvWindow, delivery: Option<Box<dyn Delivery>>) -> Self {
        let ordered = delivery.as_ref().is_none_or(|delivery| delivery.is_ordered());
        Self {
            state: RecvState::Recv,
            assembler: Assembler::default(),
            delivery,
            ordered,
            scattered: false,
            ahead: 0,
            window,
            highest: 0,
            final_size: None,
            received: 0,
            credited: 0,
            stop: Stop::No,
            reset: 0,
            reset_at: None,
            early: false,
            stored: 0,
        }
    }

    #[cfg(test)]
    pub(super) fn state(&self) -> RecvState {
        self.state
    }

    /// Gives back the storage that is kept for the next bytes.
    pub(super) fn rest(&mut self) {
        self.assembler.rest();
    }

    /// Bytes of storage held.
    pub(super) fn allocated(&self) -> usize {
        self.assembler.allocated()
    }

    /// An upper bound of the bytes of storage held, which visits no block.
    pub(super) fn storage(&self) -> usize {
        self.assembler.storage()
    }

    /// Whether the application is done with the stream and no more frames are needed from the peer.
    ///
    /// A stopped stream is done when its final size is known, which settles flow control, and the peer has
    /// acknowledged STOP_SENDING. If the peer resets the stream, STOP_SENDING needs no acknowledgement
    /// (section 3.5).
    pub(super) fn is_done(&self) -> bool {
        match self.state {
            RecvState::DataRead | RecvState::ResetRead => true,
            RecvState::Recv => false,
            RecvState::SizeKnown | RecvState::DataRecvd => self.stop == Stop::Acked,
            RecvState::ResetRecvd => self.stop != Stop::No,
        }
    }

    /// Whether all bytes have been received, but the application has not read all of them.
    pub(super) fn is_whole(&self) -> bool {
        self.state == RecvState::DataRecvd && self.stop == Stop::No
    }

    /// The end of the highest byte that counts against flow control.
    pub(super) fn highest(&self) -> u64 {
        self.highest
    }

    /// Whether received bytes are discarded.
    fn discards(&self) -> bool {
        self.stop != Stop::No || matches!(self.state, RecvState::ResetRecvd | RecvState::ResetRead)
    }

    /// Credits all bytes that will not be read.
    fn release(&mut self) -> u64 {
        let released = self.highest - self.credited;
        self.credited = self.highest;
        released
    }

    /// Checks the end of a frame's data against the final size and both windows (sections 4.1 and 4.5). If
    /// `last`, the end becomes the final size. `credit` is the number of bytes that the connection's window
    /// still allows. Returns by how many bytes the highest offset grew.
    fn extend(&mut self, end: u64, last: bool, credit: u64) -> Result<u64, TransportError> {
        if let Some(size) = self.final_size {
            if end > size {
                return Err(final_size_error("data beyond the final size"));
            }
            if last && end != size {
                return Err(final_size_error("final size changed"));
            }
        } else if last && end < self.highest {
            return Err(final_size_error("final size below data already received"));
        }
        if end > self.window.limit() {
            return Err(flow_control_error("stream window exceeded"));
        }
        let growth = end.saturating_sub(self.highest);
        if growth > credit {
            return Err(flow_control_error("connection window exceeded"));
        }
        self.highest += growth;
        if last {
            self.final_size = Some(end);
        }
        Ok(growth)
    }

    /// Receives the data of a STREAM frame (section 19.8).
    pub(super) fn received(
        &mut self,
        offset: u64,
        data: &[u8],
        fin: bool,
        credit: u64,
    ) -> Result<FrameEffect, TransportError> {
        let end = offset
            .checked_add(data.len() as u64)
            .filter(|&end| end <= VARINT_MAX)
            .ok_or_else(|| {
                let code = TransportErrorCode::FRAME_ENCODING_ERROR;
                TransportError::new(code, "stream data beyond the largest offset")
            })?;
        let growth = self.extend(end, fin, credit)?;
        if self.discards() {
            if self.state == RecvState::Recv && self.final_size.is_some() {
                self.state = RecvState::SizeKnown;
            }
            return Ok(FrameEffect { readable: false, growth, released: self.release() });
        }
        if !matches!(self.state, RecvState::Recv | RecvState::SizeKnown) {
            return Ok(FrameEffect { growth, ..FrameEffect::default() });
        }
        let mut news = self.store(offset, data).map_err(|TooManyGaps| {
            let code = TransportErrorCode::PROTOCOL_VIOLATION;
            TransportError::new(code, "stream data in too many fragments")
        })?;
        let sized = self.state == RecvState::Recv && self.final_size.is_some();
        news |= self.update_size();
        // In stream order, the next bytes do not depend on the final size.
        news |= sized && !self.ordered;
        // Bytes behind a gap do not concern the application until the gap is filled.
        Ok(FrameEffect { readable: news && self.is_readable(), growth, released: 0 })
    }

    /// The end of the bytes that are delivered, as far as it is known.
    fn end(&self) -> Option<u64> {
        self.reset_at.map(|reset| reset.reliable).or(self.final_size)
    }

    /// Stores the new bytes of `data`, and tells the delivery; returns whether there were new bytes.
    fn store(&mut self, offset: u64, data: &[u8]) -> Result<bool, TooManyGaps> {
        let mut fresh = Fresh::new();
        let last = self.end().unwrap_or(u64::MAX);
        let len =
            usize::try_from(last.saturating_sub(offset)).map_or(data.len(), |n| n.min(data.len()));
        let data = data.get(..len).unwrap_or_default();
        self.assembler.insert(offset, data, last, &mut fresh)?;
        self.received += fresh.iter().map(|range| range.end - range.start).sum::<u64>();
        let end = self.end();
        if let Some(delivery) = &mut self.delivery {
            let held = Held::new(&self.assembler, end);
            fresh.iter().for_each(|range| delivery.on_received(range.clone(), &held));
        }
        Ok(!fresh.is_empty())
    }

    /// Advances the state machine after bytes or the final size arrived. Returns whether they completed the
    /// stream.
    fn update_size(&mut self) -> bool {
        let Some(size) = self.end() else {
            return false;
        };
        if !matches!(self.state, RecvState::Recv | RecvState::SizeKnown) {
            return false;
        }
        let complete = self.received == size;
        self.state = if complete { RecvState::DataRecvd } else { RecvState::SizeKnown };
        complete
    }

    /// Receives a RESET_STREAM frame (section 19.4).
    pub(super) fn received_reset(
        &mut self,
        code: u64,
        final_size: u64,
        credit: u64,
    ) -> Result<FrameEffect, TransportError> {
        let growth = self.extend(final_size, true, credit)?;
        self.check_reset_code(code)?;
        // Complete data is delivered anyway, as section 3.2 allows.
        if !matches!(self.state, RecvState::Recv | RecvState::SizeKnown) {
            return Ok(FrameEffect { growth, ..FrameEffect::default() });
        }
        self.state = RecvState::ResetRecvd;
        self.reset = code;
        self.discard();
        Ok(FrameEffect { readable: self.stop == Stop::No, growth, released: self.release() })
    }

    /// Receives a RESET_STREAM_AT frame, where `reliable` is no more than `final_size`.
    pub(super) fn received_reset_at(
        &mut self,
        code: u64,
        final_size: u64,
        reliable: u64,
        credit: u64,
    ) -> Result<FrameEffect, TransportError> {
        if reliable == 0 || self.discards() {
            return self.received_reset(code, final_size, credit);
        }
        let growth = self.extend(final_size, true, credit)?;
        self.check_reset_code(code)?;
        let open = matches!(self.state, RecvState::Recv | RecvState::SizeKnown);
        // A frame that promises at least as many bytes as the frame before is late.
        if !open || self.reset_at.is_some_and(|reset| reliable >= reset.reliable) {
            return Ok(FrameEffect { growth, ..FrameEffect::default() });
        }
        self.reset_at = Some(ResetAt { code, reliable });
        let dropped = self.assembler.truncate(reliable);
        self.received -= dropped;
        if dropped > 0 {
            // The old delivery still remembers ranges that were cut off.
            let ordered = self.ordered;
            self.replace_delivery(if ordered { StreamOrder.build() } else { ArrivalOrder.build() });
        }
        self.update_size();
        // Credits all bytes except the bytes that are still going to be delivered.
        let left = reliable - self.assembler.delivered();
        let released = (self.highest - self.credited).saturating_sub(left);
        self.credited += released;
        Ok(FrameEffect { readable: self.is_readable(), growth, released })
    }

    /// Checks that a reset does not change the code of the reset before (section 3 of the draft).
    fn check_reset_code(&self, code: u64) -> Result<(), TransportError> {
        if self.reset_at.is_none_or(|reset| reset.code == code) {
            return Ok(());
        }
        let error = TransportErrorCode::STREAM_STATE_ERROR;
        Err(TransportError::new(error, "code of a reset changed"))
    }

    /// The application does not want the rest of the stream. Returns the bytes that are credited to the
    /// connection's window, and whether the peer must be told.
    pub(super) fn stop(&mut self, code: u64) -> Option<(u64, bool)> {
        if self.stop != Stop::No || self.is_done() {
            return None;
        }
        let tell = matches!(self.state, RecvState::Recv | RecvState::SizeKnown);
        self.stop = if tell { Stop::Due(code) } else { Stop::Acked };
        self.discard();
        Some((self.release(), tell))
    }

    /// The code to send in STOP_SENDING, unless the peer has acknowledged the frame.
    pub(super) fn stop_frame(&self) -> Option<u64> {
        match (self.stop, self.state) {
            (Stop::Due(code), RecvState::Recv | RecvState::SizeKnown) => Some(code),
            _ => None,
        }
    }

    /// The peer acknowledged our STOP_SENDING.
    pub(super) fn stop_acked(&mut self) {
        if matches!(self.stop, Stop::Due(_)) {
            self.stop = Stop::Acked;
        }
    }

    /// Whether a higher limit for the stream should be announced.
    pub(super) fn wants_update(&self) -> bool {
        self.may_update() && self.window.is_due()
    }

    /// Whether a higher limit is still of use to the peer.
    pub(super) fn may_update(&self) -> bool {
        self.state == RecvState::Recv && self.stop == Stop::No
    }

    /// Discards undelivered data, and the delivery's record of that data.
    fn discard(&mut self) {
        self.assembler.discard();
        self.replace_delivery(StreamOrder.build());
    }

    /// Makes `delivery` decide from now on which bytes are delivered next.
    ///
    /// # Errors
    /// The stream is over, or `delivery` is ordered and bytes were already delivered out of order.
    pub(super) fn set_delivery(&mut self, delivery: Box<dyn Delivery>) -> Result<(), ReadError> {
        if self.stop != Stop::No {
            return Err(ReadError::Closed);
        }
        if (self.scattered || self.assembler.has_holes()) && delivery.is_ordered() {
            return Err(ReadError::IllegalOrderedRead);
        }
        self.replace_delivery(delivery);
        Ok(())
    }

    fn replace_delivery(&mut self, mut delivery: Box<dyn Delivery>) {
        let held = Held::new(&self.assembler, self.end());
        for range in held.ranges() {
            delivery.on_received(range, &held);
        }
        self.ordered = delivery.is_ordered();
        self.delivery = (!delivery.is_stream_order()).then_some(delivery);
    }

    /// The bytes that are delivered next. An invalid answer of the delivery counts as no answer.
    #[inline]
    fn next(&self) -> Option<Range<u64>> {
        let Some(delivery) = &self.delivery else {
            return self.assembler.front().or_else(|| self.next_ahead());
        };
        let next = delivery.next(&Held::new(&self.assembler, self.end()))?;
        let in_turn = !self.ordered || next.start == self.assembler.read_offset();
        (in_turn && self.assembler.is_deliverable(&next)).then_some(next)
    }

    /// The range that a reader out of turn would get, see [`Self::read_ahead`].
    fn next_ahead(&self) -> Option<Range<u64>> {
        let is_reading_ahead = self.ahead > self.assembler.read_offset();
        self.assembler.first_below(self.ahead).filter(|_| is_reading_ahead)
    }

    /// Takes out between one and `max` of the next bytes; returns them with their offset.
    #[inline]
    fn deliver(&mut self, max: usize) -> Option<(u64, BytesMut)> {
        let (start, bytes) = match self.delivery {
            None => (self.assembler.read_offset(), self.assembler.take_front(max)?),
            Some(_) => self.deliver_chosen(max)?,
        };
        self.credit(bytes.len());
        Some((start, bytes))
    }

    /// Counts bytes as delivered.
    fn credit(&mut self, bytes: usize) {
        self.credited += bytes as u64;
        self.window.consume(bytes as u64);
    }

    /// Copies some of the next bytes to the beginning of `out`; returns how many.
    #[inline]
    fn deliver_into(&mut self, out: &mut [u8]) -> Option<usize> {
        if self.delivery.is_none() {
            let len = self.assembler.read_front(out)?;
            self.credit(len);
            return Some(len);
        }
        let (_, bytes) = self.deliver(out.len())?;
        out[..bytes.len()].copy_from_slice(&bytes);
        Some(bytes.len())
    }

    /// Takes out the bytes that the delivery chooses.
    fn deliver_chosen(&mut self, max: usize) -> Option<(u64, BytesMut)> {
        let Range { start, end } = self.next().filter(|_| max > 0)?;
        let end = end.min(start.saturating_add(max as u64));
        let bytes = self.assembler.take(start..end)?;
        self.scattered |= !self.ordered;
        let last = self.end();
        if let Some(delivery) = &mut self.delivery {
            delivery.on_delivered(start..end, &Held::new(&self.assembler, last));
        }
        Some((start, bytes))
    }

    /// Whether all bytes that are to be delivered were delivered.
    fn is_delivered(&self) -> bool {
        self.end().is_some_and(|end| self.assembler.read_offset() >= end)
    }

    /// Whether there are bytes, or an end of the stream, that the application has not seen.
    pub(super) fn is_readable(&self) -> bool {
        let ended = match self.state {
            RecvState::DataRecvd => self.is_delivered(),
            RecvState::ResetRecvd => true,
            RecvState::Recv | RecvState::SizeKnown | RecvState::DataRead | RecvState::ResetRead => {
                false
            }
        };
        self.stop == Stop::No && (ended || self.next().is_some())
    }

    /// The result of a read when there is no byte to deliver: the end, a reset, or blocked.
    fn ended(&mut self) -> Result<(), ReadError> {
        match self.state {
            _ if self.stop != Stop::No => Err(ReadError::Closed),
            RecvState::Recv | RecvState::SizeKnown => Err(ReadError::Blocked),
            RecvState::DataRecvd if !self.is_delivered() => Err(ReadError::Blocked),
            RecvState::DataRecvd => {
                self.discard();
                match self.reset_at {
                    None => {
                        self.state = RecvState::DataRead;
                        Ok(())
                    }
                    Some(reset) => {
                        self.state = RecvState::ResetRead;
                        Err(ReadError::Reset(reset.code))
                    }
                }
            }
            RecvState::ResetRecvd => {
                self.state = RecvState::ResetRead;
                Err(ReadError::Reset(self.reset))
            }
            RecvState::DataRead | RecvState::ResetRead => Err(ReadError::Closed),
        }
    }

    /// The code of the peer's reset; see [`super::Streams::received_reset_code`].
    pub(super) fn received_reset_code(&self) -> Result<Option<u64>, ReadError> {
        if self.stop != Stop::No {
            return Ok(None);
        }
        match self.state {
            RecvState::Recv | RecvState::SizeKnown => {
                let code = self.reset_at.map(|reset| Some(reset.code));
                code.ok_or(ReadError::Blocked)
            }
            RecvState::DataRecvd => Ok(self.reset_at.map(|reset| reset.code)),
            RecvState::ResetRecvd => Ok(Some(self.reset)),
            RecvState::DataRead | RecvState::ResetRead => Ok(None),
        }
    }

    /// Reads into `out`; see [`super::Streams::read`].
    pub(super) fn read(&mut self, out: &mut [u8]) -> Result<Read, ReadError> {
        if !self.ordered || self.assembler.has_holes() {
            return Err(ReadError::IllegalOrderedRead);
        }
        let mut total = 0;
        while let Some(space) = out.get_mut(total..).filter(|space| !space.is_empty()) {
            let Some(len) = self.deliver_into(space) else { break };
            total += len;
        }
        if total > 0 || (out.is_empty() && self.next().is_some()) {
            return Ok(Read::Data(total));
        }
        self.ended().map(|()| Read::Fin)
    }

    /// Reads without a copy; see [`super::Streams::read_chunk`].
    pub(super) fn read_chunk(
        &mut self,
        max: usize,
        ordered: bool,
    ) -> Result<Option<Chunk>, ReadError> {
        if ordered && (!self.ordered || self.assembler.has_holes()) {
            return Err(ReadError::IllegalOrderedRead);
        }
        if !ordered && self.ordered {
            self.replace_delivery(ArrivalOrder.build());
        }
        if max == 0
            && let Some(next) = self.next()
        {
            return Ok(Some(Chunk { offset: next.start, bytes: Bytes::new() }));
        }
        if let Some((offset, bytes)) = self.deliver(max) {
            return Ok(Some(Chunk { offset, bytes: bytes.freeze() }));
        }
        self.ended().map(|()| None)
    }

    /// Reads below `end`; see [`super::Streams::read_ahead`].
    pub(super) fn read_ahead(&mut self, end: u64, max: usize) -> Result<Option<Chunk>, ReadError> {
        if self.delivery.is_some() {
            return Err(ReadError::IllegalOrderedRead);
        }
        self.ahead = end;
        let Some(Range { start, end }) = self.assembler.first_below(end).filter(|_| max > 0) else {
            return self.ended().map(|()| None);
        };
        let end = end.min(start.saturating_add(max as u64));
        let Some(bytes) = self.assembler.take(start..end) else { return Err(ReadError::Blocked) };
        self.credit(bytes.len());
        Ok(Some(Chunk { offset: start, bytes: bytes.freeze() }))
    }
}
