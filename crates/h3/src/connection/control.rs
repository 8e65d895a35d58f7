//! Reads the frames of the peer's control stream (RFC 9114 sections 6.2.1 and 7.2).

use sutura_proto::work;
use sutura_proto::{Side, StreamId};

use crate::codec::take_varint;
use crate::error::{Code, Error};
use crate::frame::{FrameHeader, FrameType, HeaderReader};
use crate::observe::{FrameAction, FrameContent, FrameEvent};
use crate::settings::Settings;
use crate::transport::{Read, ReadError, Transport};

/// Largest accepted payload of a SETTINGS or PRIORITY_UPDATE frame, in bytes.
pub const MAX_CONTROL_PAYLOAD: usize = 4096;

/// Bytes read at a time: many small frames cost one read of the stream.
const BUFFER: usize = 512;

/// A frame on the control stream that has an effect.
#[derive(Debug)]
pub(super) enum ControlFrame {
    Settings(Settings),
    GoAway(u64),
    MaxPushId(u64),
    PriorityUpdate { id: u64, value: Vec<u8> },
}

/// Reads the control stream.
#[derive(Debug)]
pub(super) struct ControlReader {
    side: Side,
    began: bool,
    header: HeaderReader,
    /// The frame whose payload is being read, and how many bytes of it are missing.
    frame: Option<(FrameType, u64)>,
    /// The payload so far; stays empty for a skipped frame.
    payload: Vec<u8>,
    unread: Unread,
}

/// Bytes of the stream that were read from the transport and are not part of any frame yet.
#[derive(Debug, Default)]
struct Unread {
    /// Takes memory only while there are any.
    bytes: Vec<u8>,
    /// Where they begin.
    start: usize,
}

impl Unread {
    /// The next bytes, at most `most` of them; empty until more arrive.
    fn take<T: Transport>(
        &mut self,
        quic: &mut T,
        id: StreamId,
        most: u64,
    ) -> Result<&[u8], Error> {
        if self.start == self.bytes.len() {
            self.start = 0;
            let mut bytes = std::mem::take(&mut self.bytes);
            bytes.resize(BUFFER, 0);
            if let Some(n) = read_critical(quic, id, &mut bytes)? {
                bytes.truncate(n);
                self.bytes = bytes;
            }
        }
        let start = self.start;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        self.start += most.min(self.bytes.len() - start);
        Ok(self.bytes.get(start..self.start).unwrap_or_default())
    }
}

impl ControlReader {
    /// A reader of the control stream, after its type, at `side`.
    pub(super) fn new(side: Side) -> Self {
        let header = HeaderReader::default();
        let unread = Unread::default();
        Self { side, began: false, header, frame: None, payload: Vec::new(), unread }
    }

    /// The next frame with an effect; `None` until more arrives.
    pub(super) fn next<T: Transport>(
        &mut self,
        quic: &mut T,
        id: StreamId,
    ) -> Result<Option<ControlFrame>, Error> {
        loop {
            let Some((kind, left)) = &mut self.frame else {
                let spare = self.header.spare();
                let bytes = self.unread.take(quic, id, spare.len() as u64)?;
                if bytes.is_empty() {
                    return Ok(None);
                }
                spare.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
                let n = bytes.len();
                if let Some(header) = self.header.advance(n) {
                    self.begin_frame(header)?;
                }
                continue;
            };
            if *left > 0 {
                let bytes = self.unread.take(quic, id, *left)?;
                if bytes.is_empty() {
                    return Ok(None);
                }
                *left -= bytes.len() as u64;
                if is_known(*kind) {
                    self.payload.extend_from_slice(bytes);
                }
                continue;
            }
            let kind = *kind;
            self.frame = None;
            let frame = parse(kind, &self.payload)?;
            self.payload.clear();
            if let Some(ControlFrame::PriorityUpdate { id: element, value }) = &frame {
                quic.observe(|| FrameEvent {
                    action: FrameAction::Parsed,
                    stream: id,
                    content: FrameContent::PriorityUpdate {
                        element: StreamId(*element),
                        value: value.clone().into(),
                    },
                });
            }
            if frame.is_some() {
                return Ok(frame);
            }
        }
    }

    /// Decides from its header whether a frame is permitted here (RFC 9114 section 7, table 1).
    fn begin_frame(&mut self, header: FrameHeader) -> Result<(), Error> {
        let unexpected = |reason| Err(Error::new(Code::FRAME_UNEXPECTED, reason));
        let FrameHeader { kind, len } = header;
        if !self.began && kind != FrameType::SETTINGS {
            return Err(Error::new(Code::MISSING_SETTINGS, "first frame is not SETTINGS"));
        }
        match kind {
            FrameType::SETTINGS if self.began => return unexpected("second SETTINGS"),
            FrameType::DATA | FrameType::HEADERS | FrameType::PUSH_PROMISE => {
                return unexpected("frame of a request on the control stream");
            }
            FrameType::MAX_PUSH_ID
            | FrameType::PRIORITY_UPDATE_REQUEST
            | FrameType::PRIORITY_UPDATE_PUSH
                if self.side.is_client() =>
            {
                return unexpected("frame that only clients send");
            }
            // Nothing is ever pushed, so no push identifier was ever promised (RFC 9114 section 7.2.3, RFC
            // 9218 section 7.2).
            FrameType::CANCEL_PUSH | FrameType::PRIORITY_UPDATE_PUSH => {
                return Err(Error::new(Code::ID_ERROR, "push that was never promised"));
            }
            kind if is_known(kind) && len > MAX_CONTROL_PAYLOAD as u64 => {
                return Err(Error::new(Code::EXCESSIVE_LOAD, "control frame too large"));
            }
            FrameType::GOAWAY | FrameType::MAX_PUSH_ID if !matches!(len, 1 | 2 | 4 | 8) => {
                return Err(Error::new(Code::FRAME_ERROR, "payload is not one integer"));
            }
            kind if kind.is_http2() => return unexpected("frame type of HTTP/2"),
            _ => {}
        }
        self.began = true;
        self.frame = Some((kind, len));
        Ok(())
    }
}

/// Whether the payload is parsed rather than skipped.
const fn is_known(kind: FrameType) -> bool {
    matches!(
        kind,
        FrameType::SETTINGS
            | FrameType::GOAWAY
            | FrameType::MAX_PUSH_ID
            | FrameType::PRIORITY_UPDATE_REQUEST
    )
}

fn parse(kind: FrameType, mut payload: &[u8]) -> Result<Option<ControlFrame>, Error> {
    const MALFORMED: Error = Error::new(Code::FRAME_ERROR, "malformed control frame");
    let frame = match kind {
        FrameType::SETTINGS => {
            return Settings::decode(payload).map(ControlFrame::Settings).map(Some);
        }
        FrameType::GOAWAY => ControlFrame::GoAway(take_varint(&mut payload).ok_or(MALFORMED)?),
        FrameType::MAX_PUSH_ID => {
            ControlFrame::MaxPushId(take_varint(&mut payload).ok_or(MALFORMED)?)
        }
        FrameType::PRIORITY_UPDATE_REQUEST => {
            let id = take_varint(&mut payload).ok_or(MALFORMED)?;
            let value = std::mem::take(&mut payload).to_vec();
            ControlFrame::PriorityUpdate { id, value }
        }
        _ => return Ok(None),
    };
    if payload.is_empty() { Ok(Some(frame)) } else { Err(MALFORMED) }
}

/// Reads from a stream that must not end (RFC 9114 section 6.2.1, RFC 9204 section 4.2). `None` if
/// nothing is available; never 0 bytes.
pub(super) fn read_critical<T: Transport>(
    quic: &mut T,
    id: StreamId,
    buffer: &mut [u8],
) -> Result<Option<usize>, Error> {
    work::steps(1);
    const CLOSED: Error = Error::new(Code::CLOSED_CRITICAL_STREAM, "critical stream closed");
    match quic.read(id, buffer) {
        Ok(Read { finished: true, .. }) | Err(ReadError::Reset(_)) => Err(CLOSED),
        Ok(Read { bytes, .. }) => Ok((bytes > 0).then_some(bytes)),
        Err(ReadError::Blocked | ReadError::Closed) => Ok(None),
    }
}
