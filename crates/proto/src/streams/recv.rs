//! The receiving part of a stream (RFC 9000 section 3.2).

use super::assembler::{Assembler, TooManyGaps};
use super::flow::RecvWindow;
use super::{Read, ReadError};
use crate::error::{TransportError, TransportErrorCode};
use crate::wire::coding::VARINT_MAX;
use bytes::Bytes;

/// States of RFC 9000 section 3.2, figure 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecvState {
    /// More may come.
    Recv,
    /// The end is known, bytes are missing.
    SizeKnown,
    /// All bytes are here.
    DataRecvd,
    /// The application has them all.
    DataRead,
    /// The peer abandoned the stream.
    ResetRecvd,
    /// The application knows that.
    ResetRead,
}

/// How far a STOP_SENDING that we owe the peer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// The application reads.
    No,
    /// The peer is not known to have it.
    Due(u64),
    /// The peer has it.
    Acked,
}

/// What a frame brought.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Received {
    /// The application can read more than before, or learn how the stream ended.
    pub(super) readable: bool,
    /// By how much the stream counts more against the connection's window.
    pub(super) growth: u64,
    /// Bytes that nobody will read, to be credited back to the connection's window.
    pub(super) released: u64,
}

/// The receiving part of a stream.
#[derive(Debug)]
pub(super) struct RecvHalf {
    state: RecvState,
    assembler: Assembler,
    pub(super) window: RecvWindow,
    /// End of the highest byte that counts against flow control.
    highest: u64,
    final_size: Option<u64>,
    /// Distinct bytes received.
    received: u64,
    /// Bytes credited back to the connection's window.
    credited: u64,
    stop: Stop,
    /// The code of the peer's RESET_STREAM.
    reset: u64,
}

fn final_size_error(reason: &'static str) -> TransportError {
    TransportError::new(TransportErrorCode::FINAL_SIZE_ERROR, reason)
}

fn flow_control_error(reason: &'static str) -> TransportError {
    TransportError::new(TransportErrorCode::FLOW_CONTROL_ERROR, reason)
}

impl RecvHalf {
    pub(super) fn new(window: RecvWindow) -> Self {
        Self {
            state: RecvState::Recv,
            assembler: Assembler::default(),
            window,
            highest: 0,
            final_size: None,
            received: 0,
            credited: 0,
            stop: Stop::No,
            reset: 0,
        }
    }

    #[cfg(test)]
    pub(super) fn state(&self) -> RecvState {
        self.state
    }

    /// Bytes of storage held.
    pub(super) fn allocated(&self) -> usize {
        self.assembler.allocated()
    }

    /// Whether the application is done with the stream and the peer owes it nothing.
    ///
    /// A stopped stream is done when its final size is known, which settles flow control, and the
    /// peer has heard STOP_SENDING; a reset makes that unnecessary (section 3.5).
    pub(super) fn is_done(&self) -> bool {
        match self.state {
            RecvState::DataRead | RecvState::ResetRead => true,
            RecvState::Recv => false,
            RecvState::SizeKnown | RecvState::DataRecvd => self.stop == Stop::Acked,
            RecvState::ResetRecvd => self.stop != Stop::No,
        }
    }

    /// Whether received bytes are thrown away.
    fn discards(&self) -> bool {
        self.stop != Stop::No || matches!(self.state, RecvState::ResetRecvd | RecvState::ResetRead)
    }

    /// Credits back everything that nobody will read.
    fn release(&mut self) -> u64 {
        let released = self.highest - self.credited;
        self.credited = self.highest;
        released
    }

    /// Checks the end of a frame's data against the final size and both windows, and fixes the
    /// final size if `last` (sections 4.1 and 4.5). `credit` is what the connection's window still
    /// allows. Returns by how much the highest offset grew.
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

    /// Takes the data of a STREAM frame (section 19.8).
    pub(super) fn received(
        &mut self,
        offset: u64,
        data: &[u8],
        fin: bool,
        credit: u64,
    ) -> Result<Received, TransportError> {
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
            return Ok(Received { readable: false, growth, released: self.release() });
        }
        if !matches!(self.state, RecvState::Recv | RecvState::SizeKnown) {
            return Ok(Received { growth, ..Received::default() });
        }
        let fresh = self
            .assembler
            .insert(offset, data, self.final_size.unwrap_or(u64::MAX))
            .map_err(|TooManyGaps| {
                let code = TransportErrorCode::PROTOCOL_VIOLATION;
                TransportError::new(code, "stream data in too many fragments")
            })?;
        self.received += fresh;
        let ended = self.update_size();
        // Bytes behind a gap are no news for the application before the gap is filled.
        let readable = fresh > 0 && self.assembler.is_readable();
        Ok(Received { readable: readable || ended, growth, released: 0 })
    }

    /// Follows the state machine after bytes or the final size came; returns whether the stream is
    /// complete now and was not before.
    fn update_size(&mut self) -> bool {
        let Some(size) = self.final_size else {
            return false;
        };
        if !matches!(self.state, RecvState::Recv | RecvState::SizeKnown) {
            return false;
        }
        let complete = self.received == size;
        self.state = if complete { RecvState::DataRecvd } else { RecvState::SizeKnown };
        complete
    }

    /// Takes a RESET_STREAM frame (section 19.4).
    pub(super) fn received_reset(
        &mut self,
        code: u64,
        final_size: u64,
        credit: u64,
    ) -> Result<Received, TransportError> {
        let growth = self.extend(final_size, true, credit)?;
        // Complete data is delivered all the same, as section 3.2 allows.
        if !matches!(self.state, RecvState::Recv | RecvState::SizeKnown) {
            return Ok(Received { growth, ..Received::default() });
        }
        self.state = RecvState::ResetRecvd;
        self.reset = code;
        self.assembler.discard();
        Ok(Received { readable: self.stop == Stop::No, growth, released: self.release() })
    }

    /// The application does not want the rest. Returns the bytes that are credited back to the
    /// connection's window, and whether the peer must be told.
    pub(super) fn stop(&mut self, code: u64) -> Option<(u64, bool)> {
        if self.stop != Stop::No || self.is_done() {
            return None;
        }
        let tell = matches!(self.state, RecvState::Recv | RecvState::SizeKnown);
        self.stop = if tell { Stop::Due(code) } else { Stop::Acked };
        self.assembler.discard();
        Some((self.release(), tell))
    }

    /// The code to send in STOP_SENDING, if the peer still needs to hear it.
    pub(super) fn stop_frame(&self) -> Option<u64> {
        match (self.stop, self.state) {
            (Stop::Due(code), RecvState::Recv | RecvState::SizeKnown) => Some(code),
            _ => None,
        }
    }

    /// The peer has our STOP_SENDING.
    pub(super) fn stop_acked(&mut self) {
        if matches!(self.stop, Stop::Due(_)) {
            self.stop = Stop::Acked;
        }
    }

    /// Whether the peer should hear of a higher limit for the stream.
    pub(super) fn wants_update(&self) -> bool {
        self.may_update() && self.window.is_due()
    }

    /// Whether the peer can still make use of a higher limit.
    pub(super) fn may_update(&self) -> bool {
        self.state == RecvState::Recv && self.stop == Stop::No
    }

    /// Whether there are bytes, or an end of the stream, that the application has not seen.
    pub(super) fn is_readable(&self) -> bool {
        self.stop == Stop::No
            && (self.assembler.is_readable()
                || matches!(self.state, RecvState::DataRecvd | RecvState::ResetRecvd))
    }

    /// Notes that the application took `len` bytes.
    fn consumed(&mut self, len: usize) {
        self.credited += len as u64;
        self.window.consume(len as u64);
    }

    /// What reading means when there is no byte to deliver: the end, a reset, or later.
    fn ended(&mut self) -> Result<(), ReadError> {
        match self.state {
            _ if self.stop != Stop::No => Err(ReadError::Closed),
            RecvState::Recv | RecvState::SizeKnown => Err(ReadError::Blocked),
            RecvState::DataRecvd => {
                self.state = RecvState::DataRead;
                self.assembler.discard();
                Ok(())
            }
            RecvState::ResetRecvd => {
                self.state = RecvState::ResetRead;
                Err(ReadError::Reset(self.reset))
            }
            RecvState::DataRead | RecvState::ResetRead => Err(ReadError::Closed),
        }
    }

    /// Delivers bytes into `out`; see [`super::Streams::read`].
    pub(super) fn read(&mut self, out: &mut [u8]) -> Result<Read, ReadError> {
        let len = self.assembler.read(out);
        if len > 0 || (out.is_empty() && self.assembler.is_readable()) {
            self.consumed(len);
            return Ok(Read::Data(len));
        }
        self.ended().map(|()| Read::Fin)
    }

    /// Delivers bytes without a copy; see [`super::Streams::read_chunk`].
    pub(super) fn read_chunk(&mut self, max: usize) -> Result<Option<Bytes>, ReadError> {
        if max == 0 && self.assembler.is_readable() {
            return Ok(Some(Bytes::new()));
        }
        if let Some(chunk) = self.assembler.read_chunk(max) {
            self.consumed(chunk.len());
            return Ok(Some(chunk));
        }
        self.ended().map(|()| None)
    }
}
