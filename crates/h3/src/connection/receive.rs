//! Reads the frames of a message from a request stream (RFC 9114 section 4.1).

use std::ops::Range;

use bytes::{Buf, Bytes};
use sutura_proto::work;
use sutura_proto::{Side, StreamId};

use crate::error::{Code, Error};
use crate::fields::Fields;
use crate::frame::{FrameHeader, FrameType, HeaderReader};
use crate::message::MessageError;
use crate::qpack::{Decoder, FieldLimits, MAX_PREFIX_SIZE, SectionError};
use crate::transport::{Read, ReadError, Transport};

/// Bytes read at a time when a payload is skipped or collected.
const SCRATCH: usize = 1024;

/// Initial allocation for a field section that arrives in pieces, in bytes.
const FIRST_PIECE: u64 = 1024;

/// The bytes at the beginning of a stream of which more are taken from the transport at a time than the next
/// part of a frame needs. Most header sections end within them, and bytes of a body that come with them are
/// few.
const LOOK_AHEAD: u64 = 1024;

/// A failure while reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The connection must be closed.
    Connection(Error),
    /// The exchange must be abandoned.
    Stream(Code, &'static str),
    /// A part of the message exceeds a limit, which ends the exchange.
    TooLarge(TooLarge),
    /// The peer abandoned its message.
    Reset(Code),
}

/// The part of a message that exceeds a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TooLarge {
    FieldSection,
    Body,
}

impl TooLarge {
    /// The status of the response to a request that the application has not seen.
    pub(super) const fn status(self) -> u16 {
        match self {
            // RFC 6585 section 5.
            Self::FieldSection => 431,
            // RFC 9110 section 15.5.14.
            Self::Body => 413,
        }
    }

    pub(super) const fn reason(self) -> &'static str {
        match self {
            Self::FieldSection => "field section larger than the limit",
            Self::Body => "body larger than the limit",
        }
    }
}

/// Limits on a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) fields: FieldLimits,
    /// Bytes of body.
    pub(super) body: u64,
    /// Whether a stream may belong to a WebTransport session rather than be a request.
    pub(super) webtransport: bool,
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Connection(error)
    }
}

impl From<MessageError> for Fault {
    fn from(error: MessageError) -> Self {
        Self::Stream(Code::MESSAGE_ERROR, error.reason())
    }
}

/// The position in the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Before the (final) header section.
    Head,
    /// After the header section, before the end.
    Body,
    /// After the trailer section.
    Trailed,
    /// The message is complete, or no longer wanted.
    Done,
}

/// In which order a body is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// In the order of the stream.
    Stream,
    /// In the order of arrival, as far as the bytes are in a DATA frame whose header has been read.
    Arrival,
}

/// Some bytes of a body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BodyPiece {
    /// Where in the body they begin, in bytes.
    pub offset: u64,
    /// How many there are.
    pub bytes: usize,
}

/// The frame whose payload is being read.
#[derive(Debug)]
enum Payload {
    /// Between frames.
    None,
    Data(u64),
    Section {
        left: u64,
        block: Vec<u8>,
    },
    /// A whole field section that waits for the dynamic table.
    Waiting(Bytes),
    Skipped(u64),
}

/// The result of reading on.
#[derive(Debug)]
pub(super) enum Progress {
    /// More data is needed.
    Blocked,
    /// A field section.
    Section(Fields),
    /// The payload of a DATA frame, to be read by [`Receive::read_data`].
    Data,
    /// The end of the message.
    End,
    /// The stream is no message but belongs to the WebTransport session with this identifier. Nothing
    /// beyond that has been read.
    Session(u64),
}

/// The receiving half of an exchange.
#[derive(Debug)]
pub(super) struct Receive {
    side: Side,
    pub(super) phase: Phase,
    /// Whether a CONNECT succeeded, so that only DATA may follow (RFC 9114 section 4.4).
    pub(super) tunnel: bool,
    /// Whether the header of a frame has been read.
    begun: bool,
    header: HeaderReader,
    payload: Payload,
    source: Source,
    /// The body's length according to the head, and according to the DATA frames so far.
    expected: Option<u64>,
    announced: u64,
}

impl Receive {
    /// A new message, received by `side`.
    pub(super) fn new(side: Side) -> Self {
        Self {
            side,
            phase: Phase::Head,
            tunnel: false,
            begun: false,
            header: HeaderReader::default(),
            payload: Payload::None,
            source: Source::default(),
            expected: None,
            announced: 0,
        }
    }

    /// Continues after the head; `expected` is the length of the body in bytes, if known.
    pub(super) fn begin_body(&mut self, expected: Option<u64>) {
        self.phase = Phase::Body;
        self.expected = expected;
    }

    /// Stops reading the message.
    pub(super) fn give_up(&mut self) {
        self.phase = Phase::Done;
        self.payload = Payload::None;
        self.source.held = Bytes::new();
    }

    pub(super) fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    /// Whether a DATA payload waits to be read.
    pub(super) fn in_data(&self) -> bool {
        matches!(self.payload, Payload::Data(1..))
    }

    /// Whether the stream has ended and only the conclusion remains to be drawn.
    pub(super) fn at_end(&self) -> bool {
        self.source.fin && !self.is_done() && !self.in_data()
    }

    /// Reads up to the next section, body data, or the end.
    pub(super) fn next<T: Transport>(
        &mut self,
        quic: &mut T,
        id: StreamId,
        qpack: &mut Decoder,
        limits: Limits,
    ) -> Result<Progress, Fault> {
        loop {
            match &mut self.payload {
                Payload::Data(1..) if self.source.is_over() => return Err(truncated()),
                Payload::Data(1..) => return Ok(Progress::Data),
                Payload::Skipped(left @ 1..) => {
                    let mut scratch = [0; SCRATCH];
                    let buffer = prefix(&mut scratch, *left);
                    match self.source.read(quic, id, buffer)? {
                        None => return Ok(Progress::Blocked),
                        Some(0) => return Err(truncated()),
                        Some(n) => *left -= n as u64,
                    }
                }
                Payload::Section { left: left @ 1.., block } => {
                    if block.is_empty()
                        && let Some(whole) = self.source.take_held(*left)
                    {
                        self.payload = Payload::Waiting(whole);
                        continue;
                    }
                    match read_section(quic, id, &mut self.source, left, block)? {
                        None => return Ok(Progress::Blocked),
                        Some(0) => return Err(truncated()),
                        Some(_) => {}
                    }
                }
                Payload::Section { left: 0, block } => {
                    self.payload = Payload::Waiting(std::mem::take(block).into());
                }
                Payload::Waiting(block) => {
                    if let Some(fields) = decode(qpack, id, block, limits.fields)? {
                        self.payload = Payload::None;
                        return Ok(Progress::Section(fields));
                    }
                    self.source.probe(quic, id)?;
                    return Ok(Progress::Blocked);
                }
                Payload::None | Payload::Data(0) | Payload::Skipped(0) => {
                    let may_be_session = limits.webtransport && !self.begun;
                    let spare = self.header.spare();
                    let read = if may_be_session {
                        self.source.read(quic, id, spare)?
                    } else {
                        self.source.read_header(quic, id, spare)?
                    };
                    match read {
                        None => return Ok(Progress::Blocked),
                        Some(0) if self.header.is_empty() => return Ok(Progress::End),
                        Some(0) => return Err(truncated()),
                        Some(n) => {
                            if let Some(header) = self.header.advance(n) {
                                if may_be_session
                                    && self.side.is_server()
                                    && header.kind == FrameType::WT_STREAM
                                {
                                    return Ok(Progress::Session(header.len));
                                }
                                self.begun = true;
                                self.payload = self.begin_frame(header, limits)?;
                            }
                        }
                    }
                }
            }
        }
    }

    /// Decides how to handle a frame's payload (RFC 9114 section 7, table 1).
    fn begin_frame(&mut self, header: FrameHeader, limits: Limits) -> Result<Payload, Fault> {
        let unexpected = |reason| Err(Error::new(Code::FRAME_UNEXPECTED, reason).into());
        match header.kind {
            FrameType::DATA => {
                if self.phase != Phase::Body {
                    return unexpected("DATA before HEADERS or after trailers");
                }
                self.announced = self.announced.saturating_add(header.len);
                if self.expected.is_some_and(|expected| self.announced > expected) {
                    return Err(MessageError::BodyLength.into());
                }
                if self.announced > limits.body && !self.tunnel {
                    return Err(Fault::TooLarge(TooLarge::Body));
                }
                Ok(Payload::Data(header.len))
            }
            FrameType::HEADERS => {
                if self.phase == Phase::Trailed || self.tunnel {
                    return unexpected("HEADERS after trailers or in a tunnel");
                }
                // An encoder that picks the shorter form of each string never needs more than the
                // decoded size: a prefix is added, and a field's overhead outweighs its lengths and
                // indices.
                if header.len > limits.fields.size.saturating_add(MAX_PREFIX_SIZE) {
                    return Err(Fault::TooLarge(TooLarge::FieldSection));
                }
                Ok(Payload::Section { left: header.len, block: Vec::new() })
            }
            FrameType::PUSH_PROMISE if self.side.is_client() => {
                Err(Error::new(Code::ID_ERROR, "push beyond MAX_PUSH_ID").into())
            }
            FrameType::PUSH_PROMISE
            | FrameType::CANCEL_PUSH
            | FrameType::SETTINGS
            | FrameType::GOAWAY
            | FrameType::MAX_PUSH_ID
            | FrameType::PRIORITY_UPDATE_REQUEST
            | FrameType::PRIORITY_UPDATE_PUSH => unexpected("frame not permitted on its stream"),
            kind if kind.is_http2() => unexpected("frame type of HTTP/2"),
            FrameType::WT_STREAM if limits.webtransport => {
                let reason = "stream of a session not at its beginning";
                Err(Error::new(Code::FRAME_ERROR, reason).into())
            }
            _ => Ok(Payload::Skipped(header.len)),
        }
    }

    /// Reads body into `buffer`, which must not be empty; `None` if none is available. Only while
    /// [`Self::in_data`], and in stream order only unless [`Self::is_scattered`].
    pub(super) fn read_data<T: Transport>(
        &mut self,
        quic: &mut T,
        id: StreamId,
        buffer: &mut [u8],
        order: Order,
    ) -> Result<Option<BodyPiece>, Fault> {
        let Payload::Data(left) = &mut self.payload else {
            return Ok(None);
        };
        let buffer = prefix(buffer, *left);
        let read = match order {
            Order::Stream => self.source.read(quic, id, buffer)?.map(|bytes| (*left, bytes)),
            Order::Arrival if !self.source.held.is_empty() => {
                self.source.read(quic, id, buffer)?.map(|bytes| (*left, bytes))
            }
            Order::Arrival => self.source.read_ahead(quic, id, *left, buffer)?,
        };
        let Some((before_end, bytes)) = read else { return Ok(None) };
        if bytes == 0 {
            return Err(truncated());
        }
        *left -= bytes as u64;
        self.source.scattered &= *left > 0;
        Ok(Some(BodyPiece { offset: self.announced.saturating_sub(before_end), bytes }))
    }

    /// Whether pieces of the body were read although earlier bytes are missing.
    pub(super) fn is_scattered(&self) -> bool {
        self.source.scattered
    }

    /// Handles the end of the stream: checks that the message is complete.
    pub(super) fn end(&mut self) -> Result<(), Fault> {
        if self.phase == Phase::Head {
            return Err(match self.side {
                Side::Server => Fault::Stream(Code::REQUEST_INCOMPLETE, "no request"),
                Side::Client => Fault::Stream(Code::MESSAGE_ERROR, "no response"),
            });
        }
        if self.expected.is_some_and(|expected| self.announced != expected) {
            return Err(MessageError::BodyLength.into());
        }
        self.phase = Phase::Done;
        Ok(())
    }
}

/// The first `left` bytes of `buffer`, or all of it.
pub(super) fn prefix(buffer: &mut [u8], left: u64) -> &mut [u8] {
    let n = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
    buffer.get_mut(..n).unwrap_or_default()
}

/// Appends the available bytes of a field section. Memory grows with the bytes that arrive, not
/// with the length that a header announces.
fn read_section<T: Transport>(
    quic: &mut T,
    id: StreamId,
    source: &mut Source,
    left: &mut u64,
    block: &mut Vec<u8>,
) -> Result<Option<usize>, Fault> {
    let mut scratch = [0; SCRATCH];
    let buffer = prefix(&mut scratch, *left);
    let read = source.read(quic, id, buffer)?;
    if block.is_empty() {
        block.reserve((*left).min(FIRST_PIECE) as usize);
    }
    if let Some(bytes) = read.and_then(|n| buffer.get(..n)) {
        block.extend_from_slice(bytes);
        *left -= bytes.len() as u64;
    }
    Ok(read)
}

/// Decodes a section; `None` if it has to wait for the dynamic table.
fn decode(
    qpack: &mut Decoder,
    id: StreamId,
    block: &Bytes,
    limits: FieldLimits,
) -> Result<Option<Fields>, Fault> {
    match qpack.section(id, block, limits) {
        Ok(fields) => Ok(Some(fields)),
        Err(SectionError::Blocked) => Ok(None),
        Err(SectionError::Malformed(reason)) => {
            Err(Error::new(Code::QPACK_DECOMPRESSION_FAILED, reason).into())
        }
        Err(SectionError::TooLarge) => Err(Fault::TooLarge(TooLarge::FieldSection)),
    }
}

/// A frame was cut short (RFC 9114 section 7.1).
fn truncated() -> Fault {
    Error::new(Code::FRAME_ERROR, "stream ends within a frame").into()
}

/// The stream that the message is read from.
#[derive(Debug, Default)]
struct Source {
    /// Bytes that were read.
    read: u64,
    /// The next ones, as far as they were taken from the transport already.
    held: Bytes,
    /// Whether all were taken from the transport.
    fin: bool,
    /// Whether bytes of the present payload were read although some before them were missing.
    scattered: bool,
}

impl Source {
    /// Whether it has been read to its end.
    fn is_over(&self) -> bool {
        self.fin && self.held.is_empty()
    }

    /// Reads some bytes in order; `Some(0)` at the stream's end, `None` if none are available.
    fn read<T: Transport>(
        &mut self,
        quic: &mut T,
        id: StreamId,
        buffer: &mut [u8],
    ) -> Result<Option<usize>, Fault> {
        work::steps(1);
        let held = self.held.len().min(buffer.len());
        let (first, rest) = buffer.split_at_mut(held);
        let more = if self.fin {
            Some(0)
        } else if rest.is_empty() {
            None
        } else {
            // First of all, because bytes before a reset are not delivered.
            let read = quic.read(id, rest);
            self.on_read(read)?
        };
        if held == 0 {
            return Ok(more);
        }
        first.copy_from_slice(&self.held[..held]);
        self.held.advance(held);
        self.read += held as u64;
        Ok(Some(held + more.unwrap_or(0)))
    }

    /// Reads some bytes of a frame's header. At the beginning of the stream, what comes after them is held.
    fn read_header<T: Transport>(
        &mut self,
        quic: &mut T,
        id: StreamId,
        buffer: &mut [u8],
    ) -> Result<Option<usize>, Fault> {
        let room = LOOK_AHEAD.saturating_sub(self.read);
        if room > 0 && !self.fin && self.held.is_empty() {
            work::steps(1);
            match quic.read_chunk(id, room as usize) {
                Ok((held, fin)) if held.is_empty() && !fin => return Ok(None),
                Ok((held, fin)) => (self.held, self.fin) = (held, fin),
                Err(error) => return self.on_read(Err(error)),
            }
        }
        self.read(quic, id, buffer)
    }

    /// Takes the next `count` bytes as a whole, if they are held.
    fn take_held(&mut self, count: u64) -> Option<Bytes> {
        let count = usize::try_from(count).ok().filter(|count| *count <= self.held.len())?;
        self.read += count as u64;
        Some(self.held.split_to(count))
    }

    /// Looks whether the peer has reset the stream.
    fn probe<T: Transport>(&mut self, quic: &mut T, id: StreamId) -> Result<(), Fault> {
        if !self.fin {
            let read = quic.read(id, &mut []);
            self.on_read(read)?;
        }
        Ok(())
    }

    /// Reads some bytes of a payload of which `left` bytes were not read, also if bytes before them are
    /// missing. Returns also how far before the end of the payload they begin.
    fn read_ahead<T: Transport>(
        &mut self,
        quic: &mut T,
        id: StreamId,
        left: u64,
        buffer: &mut [u8],
    ) -> Result<Option<(u64, usize)>, Fault> {
        work::steps(1);
        if self.fin {
            return Ok(Some((0, 0)));
        }
        // No bytes are held, and no bytes beyond the end of the payload were read: in any order, `left` bytes
        // remain up to its end.
        let Range { start, end } = self.read..self.read.saturating_add(left);
        let (at, read) = match quic.read_ahead(id, start..end, buffer) {
            Ok((at, read)) => (at, Ok(read)),
            Err(error) => (end, Err(error)),
        };
        let bytes = self.on_read(read)?;
        self.scattered |= at != start && bytes.is_some_and(|bytes| bytes > 0);
        Ok(bytes.map(|bytes| (end.saturating_sub(at), bytes)))
    }

    fn on_read(&mut self, read: Result<Read, ReadError>) -> Result<Option<usize>, Fault> {
        match read {
            Ok(Read { bytes, finished }) => {
                self.read += bytes as u64;
                self.fin = finished;
                Ok((bytes > 0 || finished).then_some(bytes))
            }
            // Closed: the connection is over, which the transport reports itself.
            Err(ReadError::Blocked | ReadError::Closed) => Ok(None),
            Err(ReadError::Reset(code)) => Err(Fault::Reset(code)),
        }
    }
}
