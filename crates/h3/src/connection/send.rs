//! Writes a message to a request stream, with backpressure (RFC 9114 section 4.1).

use bytes::{Buf, Bytes};
use sutura_proto::StreamId;

use crate::error::{Code, SendError};
use crate::frame::{self, FrameType, HeadersFrame};
use crate::transport::{Transport, WriteError};

/// Bytes of body that one call takes from a slice. Bytes for which the transport has no room are
/// copied; a chunk of [`Bytes`] is not.
pub const MAX_DATA_COPY: usize = 16 << 10;

/// The longest body of a DATA frame that is put together with its header, to be one piece for the transport.
const MAX_TOGETHER: usize = 1024;

/// The position in the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SendPhase {
    /// Before the (final) header section.
    Head,
    /// After the header section, before the end.
    Body,
    /// The message is complete, but the transport has not accepted all of it yet.
    Ending,
    /// The transport has accepted all of it, or the message was abandoned.
    Done,
}

/// The sending half of an exchange.
#[derive(Debug)]
pub(super) struct Send {
    pub(super) phase: SendPhase,
    /// Bytes to send first, from `at` on.
    pending: Vec<u8>,
    at: usize,
    /// Body to send after them.
    chunk: Bytes,
    /// Bytes of body that the header of a DATA frame has announced and the application has not given yet.
    announced: u64,
    /// Whether a caller got `Blocked`.
    waits: bool,
    /// The code with which the peer stopped the message.
    stopped: Option<Code>,
}

impl Send {
    /// A message before its first byte.
    pub(super) const fn new() -> Self {
        Self {
            phase: SendPhase::Head,
            pending: Vec::new(),
            at: 0,
            chunk: Bytes::new(),
            announced: 0,
            waits: false,
            stopped: None,
        }
    }

    /// Whether this end has ended or abandoned the message.
    pub(super) fn is_ended(&self) -> bool {
        matches!(self.phase, SendPhase::Ending | SendPhase::Done)
    }

    pub(super) fn is_done(&self) -> bool {
        self.phase == SendPhase::Done
    }

    fn is_flushed(&self) -> bool {
        self.at == self.pending.len() && self.chunk.is_empty()
    }

    /// Whether flushing has any effect: bytes are pending, the end is, or a caller waits.
    pub(super) fn has_more(&self) -> bool {
        match self.phase {
            SendPhase::Head | SendPhase::Body => self.waits || !self.is_flushed(),
            SendPhase::Ending => true,
            SendPhase::Done => false,
        }
    }

    /// Hands pending bytes to the transport. Returns whether none are left.
    pub(super) fn flush<T: Transport>(
        &mut self,
        quic: &mut T,
        id: StreamId,
    ) -> Result<bool, WriteError> {
        while let Some(rest) = self.pending.get(self.at..).filter(|rest| !rest.is_empty()) {
            match quic.write(id, rest) {
                Ok(n) if n > 0 => self.at += n.min(rest.len()),
                Ok(_) | Err(WriteError::Blocked) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        // Few messages ever have pending bytes.
        self.pending = Vec::new();
        self.at = 0;
        while !self.chunk.is_empty() {
            match quic.write_chunk(id, self.chunk.clone()) {
                Ok(n) if n > 0 => self.chunk.advance(n.min(self.chunk.len())),
                Ok(_) | Err(WriteError::Blocked) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        if self.phase == SendPhase::Ending {
            quic.finish(id)?;
            self.phase = SendPhase::Done;
        }
        Ok(true)
    }

    /// Whether a caller that got `Blocked` can send again. Reported once.
    pub(super) fn take_wakeup(&mut self) -> bool {
        self.phase == SendPhase::Body && self.is_flushed() && std::mem::take(&mut self.waits)
    }

    /// Checks that the message is at `phase` and that nothing is pending.
    pub(super) fn ready<T: Transport>(
        &mut self,
        quic: &mut T,
        id: StreamId,
        phase: SendPhase,
    ) -> Result<(), Failure> {
        if let Some(code) = self.stopped {
            return Err(SendError::Stopped(code).into());
        }
        if self.phase != phase {
            return Err(SendError::InvalidState(match self.phase {
                SendPhase::Head => "the header section was not sent",
                SendPhase::Body => "the header section was sent",
                SendPhase::Ending | SendPhase::Done => "the message was ended",
            })
            .into());
        }
        if !self.flush(quic, id)? {
            self.waits = true;
            return Err(SendError::Blocked.into());
        }
        Ok(())
    }

    /// Hands bytes to the transport after the pending ones; those for which it has no room become pending. No
    /// chunk is pending.
    fn put<T: Transport>(
        &mut self,
        quic: &mut T,
        id: StreamId,
        mut bytes: &[u8],
    ) -> Result<(), WriteError> {
        while self.is_flushed() && !bytes.is_empty() {
            match quic.write(id, bytes) {
                Ok(n) if n > 0 => bytes = bytes.get(n..).unwrap_or_default(),
                Ok(_) | Err(WriteError::Blocked) => break,
                Err(error) => return Err(error),
            }
        }
        self.pending.extend_from_slice(bytes);
        Ok(())
    }

    /// Sends a HEADERS frame. Only if [`Self::ready`].
    pub(super) fn section<T: Transport>(
        &mut self,
        quic: &mut T,
        id: StreamId,
        frame: &HeadersFrame,
    ) -> Result<(), WriteError> {
        self.put(quic, id, frame.as_bytes())
    }

    /// Begins a DATA frame of `length` bytes, whose payload other methods send. Only if [`Self::ready`].
    pub(super) fn announce<T: Transport>(
        &mut self,
        quic: &mut T,
        id: StreamId,
        length: u64,
    ) -> Result<(), Failure> {
        self.check_complete()?;
        if length > 0 {
            self.announced = length;
            self.put_header(quic, id, length)?;
        }
        Ok(())
    }

    /// Sends the header of a DATA frame.
    fn put_header<T: Transport>(
        &mut self,
        quic: &mut T,
        id: StreamId,
        length: u64,
    ) -> Result<(), WriteError> {
        let (header, size) = frame::header_of(FrameType::DATA, length);
        self.put(quic, id, &header[..size])
    }

    /// Checks that no announced body is missing.
    pub(super) fn check_complete(&self) -> Result<(), Failure> {
        match self.announced {
            0 => Ok(()),
            _ => Err(SendError::InvalidState("announced body is missing").into()),
        }
    }

    /// Bytes of body that the next DATA frame takes, or the present one if it was announced.
    fn frame_room(&self) -> usize {
        match self.announced {
            0 => usize::MAX,
            left => usize::try_from(left).unwrap_or(usize::MAX),
        }
    }

    /// Begins a DATA frame of `length` bytes, or goes on with the announced frame, which has room for
    /// `length` bytes.
    fn begin_data<T: Transport>(
        &mut self,
        quic: &mut T,
        id: StreamId,
        length: usize,
    ) -> Result<(), WriteError> {
        match self.announced.checked_sub(length as u64).filter(|_| self.announced > 0) {
            Some(left) => {
                self.announced = left;
                Ok(())
            }
            None => self.put_header(quic, id, length as u64),
        }
    }

    /// Sends a prefix of `data` in a DATA frame and returns its length. Only if [`Self::ready`].
    pub(super) fn data<T: Transport>(
        &mut self,
        quic: &mut T,
        id: StreamId,
        data: &[u8],
    ) -> Result<usize, WriteError> {
        let data = data.get(..MAX_DATA_COPY).unwrap_or(data);
        if data.is_empty() {
            return Ok(0);
        }
        let data = &data[..data.len().min(self.frame_room())];
        if self.announced == 0 && data.len() <= MAX_TOGETHER {
            self.put_whole(quic, id, data)?;
        } else {
            self.begin_data(quic, id, data.len())?;
            self.put(quic, id, data)?;
        }
        Ok(data.len())
    }

    /// Sends a DATA frame with at most [`MAX_TOGETHER`] bytes of body.
    fn put_whole<T: Transport>(
        &mut self,
        quic: &mut T,
        id: StreamId,
        body: &[u8],
    ) -> Result<(), WriteError> {
        let (header, size) = frame::header_of(FrameType::DATA, body.len() as u64);
        let mut frame = [0; frame::MAX_HEADER_SIZE + MAX_TOGETHER];
        let frame = &mut frame[..size + body.len()];
        frame[..size].copy_from_slice(&header[..size]);
        frame[size..].copy_from_slice(body);
        self.put(quic, id, frame)
    }

    /// How many bytes of body fit into one DATA frame that the transport accepts at once; 1 if there is
    /// room for hardly more than its header. Only if [`Self::ready`].
    pub(super) fn room<T: Transport>(
        &mut self,
        quic: &mut T,
        id: StreamId,
    ) -> Result<usize, Failure> {
        match quic.room(id)? {
            0 => {
                quic.want_room(id)?;
                self.waits = true;
                Err(SendError::Blocked.into())
            }
            room => Ok(room.saturating_sub(frame::MAX_HEADER_SIZE).max(1)),
        }
    }

    /// Sends as much of `chunk` in a DATA frame as the transport accepts at once; returns how much. Only if
    /// [`Self::ready`].
    ///
    /// A short rest is copied: otherwise all of `chunk` would stay in memory for it.
    pub(super) fn part<T: Transport>(
        &mut self,
        quic: &mut T,
        id: StreamId,
        mut chunk: Bytes,
    ) -> Result<usize, Failure> {
        if chunk.is_empty() {
            return Ok(0);
        }
        let (whole, room) = (chunk.len(), self.room(quic, id)?.min(self.frame_room()));
        if room < whole / 2 {
            chunk = Bytes::copy_from_slice(&chunk[..room]);
        }
        chunk.truncate(room);
        let part = chunk.len();
        self.chunk(quic, id, chunk)?;
        Ok(part)
    }

    /// Sends all of `chunk` in a DATA frame. Only if [`Self::ready`].
    pub(super) fn chunk<T: Transport>(
        &mut self,
        quic: &mut T,
        id: StreamId,
        chunk: Bytes,
    ) -> Result<(), Failure> {
        if chunk.is_empty() {
            return Ok(());
        }
        if self.frame_room() < chunk.len() {
            return Err(SendError::InvalidState("more than the announced body").into());
        }
        if self.announced == 0 && chunk.len() <= MAX_TOGETHER {
            return Ok(self.put_whole(quic, id, &chunk)?);
        }
        self.begin_data(quic, id, chunk.len())?;
        self.chunk = chunk;
        self.flush(quic, id)?;
        Ok(())
    }

    /// Ends the message after the pending bytes.
    pub(super) fn finish<T: Transport>(
        &mut self,
        quic: &mut T,
        id: StreamId,
    ) -> Result<(), WriteError> {
        self.phase = SendPhase::Ending;
        self.flush(quic, id).map(drop)
    }

    /// Abandons the message.
    pub(super) fn give_up(&mut self, stopped: Option<Code>) {
        *self = Self { phase: SendPhase::Done, stopped, ..Self::new() };
    }
}

/// Why sending failed: a protocol rule, or the transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    Rule(SendError),
    Transport(WriteError),
}

impl From<SendError> for Failure {
    fn from(error: SendError) -> Self {
        Self::Rule(error)
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        Self::Transport(error)
    }
}
