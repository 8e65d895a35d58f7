//! Decoding of frames.

use super::{
    AckFrame, AckFrequency, Carrier, Close, Frame, FrameKind, MAX_STREAMS, Malformed,
    NewConnectionId, Repair, SourceSymbol, StreamFrame, SymbolAck, SymbolWindow,
};
use crate::error::{TransportError, TransportErrorCode};
use crate::ids::{ConnectionId, Dir, StreamId};
use crate::wire::coding::{Reader, VARINT_MAX, varint_size};
use std::iter::FusedIterator;

/// Flag bits of the STREAM frame type (RFC 9000 section 19.8).
const STREAM_FIN: u64 = 0x01;
const STREAM_LEN: u64 = 0x02;
const STREAM_OFF: u64 = 0x04;

/// Iterator over the frames in a packet's payload or in a source symbol. A run of PADDING is one
/// item. After an error there are no more items.
///
/// # Errors
/// FRAME_ENCODING_ERROR for an unknown type or a malformed frame; PROTOCOL_VIOLATION for a type
/// that is not in its shortest encoding, or a frame that the carrier must not contain (RFC 9000
/// section 12.4). The caller must reject a payload without any frame.
#[derive(Debug, Clone)]
pub struct FrameIter<'a> {
    reader: Reader<'a>,
    carrier: Carrier,
}

impl<'a> FrameIter<'a> {
    /// Starts at the beginning of `payload`.
    #[must_use]
    pub const fn new(payload: &'a [u8], carrier: Carrier) -> Self {
        Self { reader: Reader::new(payload), carrier }
    }

    /// Reads the next frame. After an error, nothing is left.
    fn read(&mut self) -> Result<Frame<'a>, TransportError> {
        let frame = self.decode();
        if frame.is_err() {
            self.reader.rest();
        }
        frame
    }

    fn decode(&mut self) -> Result<Frame<'a>, TransportError> {
        let before = self.reader.remaining();
        let wire_type = self.reader.varint().map_err(|_| {
            let code = TransportErrorCode::FRAME_ENCODING_ERROR;
            TransportError::new(code, "frame type cut short")
        })?;
        if before - self.reader.remaining() != varint_size(wire_type) {
            return Err(violation("frame type in a longer encoding than needed", wire_type));
        }
        let Some(kind) = FrameKind::of(wire_type) else {
            return Err(Malformed("unknown frame type").in_frame(wire_type));
        };
        if !kind.info().allowed_in(self.carrier) {
            let reason = match self.carrier {
                Carrier::SourceSymbol => "frame not allowed in a source symbol",
                _ => "frame not allowed in this packet type",
            };
            return Err(violation(reason, wire_type));
        }
        decode(kind, wire_type, &mut self.reader).map_err(|e| e.in_frame(wire_type))
    }
}

fn violation(reason: &'static str, wire_type: u64) -> TransportError {
    TransportError::new(TransportErrorCode::PROTOCOL_VIOLATION, reason).in_frame(wire_type)
}

impl<'a> Iterator for FrameIter<'a> {
    type Item = Result<Frame<'a>, TransportError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() { None } else { Some(self.read()) }
    }
}

impl FusedIterator for FrameIter<'_> {}

fn decode<'a>(kind: FrameKind, wire_type: u64, r: &mut Reader<'a>) -> Result<Frame<'a>, Malformed> {
    Ok(match kind {
        FrameKind::Padding => padding(r)?,
        FrameKind::Ping => Frame::Ping,
        FrameKind::Ack => Frame::Ack(AckFrame::decode(r, wire_type & 1 == 1)?),
        FrameKind::ResetStream => {
            Frame::ResetStream { id: stream_id(r)?, code: r.varint()?, final_size: r.varint()? }
        }
        FrameKind::ResetStreamAt => reset_stream_at(r)?,
        FrameKind::StopSending => Frame::StopSending { id: stream_id(r)?, code: r.varint()? },
        FrameKind::Crypto => crypto(r)?,
        FrameKind::NewToken => match r.varint_bytes()? {
            [] => return Err(Malformed("empty token")),
            token => Frame::NewToken(token),
        },
        FrameKind::Stream => Frame::Stream(stream(wire_type, r)?),
        FrameKind::MaxData => Frame::MaxData(r.varint()?),
        FrameKind::MaxStreamData => Frame::MaxStreamData { id: stream_id(r)?, max: r.varint()? },
        FrameKind::MaxStreams => Frame::MaxStreams { dir: dir(wire_type), max: stream_limit(r)? },
        FrameKind::DataBlocked => Frame::DataBlocked(r.varint()?),
        FrameKind::StreamDataBlocked => {
            Frame::StreamDataBlocked { id: stream_id(r)?, limit: r.varint()? }
        }
        FrameKind::StreamsBlocked => {
            Frame::StreamsBlocked { dir: dir(wire_type), limit: stream_limit(r)? }
        }
        FrameKind::NewConnectionId => Frame::NewConnectionId(new_connection_id(r)?),
        FrameKind::RetireConnectionId => Frame::RetireConnectionId(r.varint()?),
        FrameKind::PathChallenge => Frame::PathChallenge(r.array()?),
        FrameKind::PathResponse => Frame::PathResponse(r.array()?),
        FrameKind::ConnectionClose => Frame::Close(Close::Transport {
            code: TransportErrorCode(r.varint()?),
            frame: Some(r.varint()?).filter(|&frame| frame != 0),
            reason: r.varint_bytes()?,
        }),
        FrameKind::ApplicationClose => {
            Frame::Close(Close::Application { code: r.varint()?, reason: r.varint_bytes()? })
        }
        FrameKind::HandshakeDone => Frame::HandshakeDone,
        FrameKind::AckFrequency => Frame::AckFrequency(AckFrequency {
            sequence: r.varint()?,
            threshold: r.varint()?,
            max_ack_delay: r.varint()?,
            reordering_threshold: r.varint()?,
        }),
        FrameKind::ImmediateAck => Frame::ImmediateAck,
        FrameKind::Datagram if wire_type & 1 == 1 => Frame::Datagram(r.varint_bytes()?),
        FrameKind::Datagram => Frame::Datagram(r.rest()),
        FrameKind::SourceSymbol => Frame::SourceSymbol(SourceSymbol::decode(r)?),
        FrameKind::Repair => Frame::Repair(Repair::decode(r)?),
        FrameKind::RepairCoded => Frame::Repair(Repair::decode_coded(r)?),
        FrameKind::SymbolAck => Frame::SymbolAck(SymbolAck::decode(r)?),
        FrameKind::SymbolWindow => Frame::SymbolWindow(SymbolWindow::decode(r)?),
    })
}

/// Skips the rest of a run of PADDING; the first type was already read.
fn padding<'a>(r: &mut Reader<'a>) -> Result<Frame<'a>, Malformed> {
    r.bytes(zeros(r.peek_rest()))?;
    Ok(Frame::Padding)
}

/// The payload of a packet without the PADDING in front of its first other frame. Padding says nothing about a
/// packet.
#[must_use]
pub fn after_padding(payload: &[u8]) -> &[u8] {
    payload.get(zeros(payload)..).unwrap_or_default()
}

/// How many zeros `bytes` begin with. Packets of the handshake have hundreds, so many are looked at together.
fn zeros(bytes: &[u8]) -> usize {
    const TOGETHER: usize = 32;
    let (chunks, _) = bytes.as_chunks::<TOGETHER>();
    let whole = TOGETHER * chunks.iter().take_while(|chunk| **chunk == [0; TOGETHER]).count();
    let rest = bytes.get(whole..).unwrap_or_default();
    whole + rest.iter().position(|&byte| byte != 0).unwrap_or(rest.len())
}

fn stream_id(r: &mut Reader<'_>) -> Result<StreamId, Malformed> {
    Ok(StreamId(r.varint()?))
}

fn reset_stream_at<'a>(r: &mut Reader<'a>) -> Result<Frame<'a>, Malformed> {
    let (id, code) = (stream_id(r)?, r.varint()?);
    let (final_size, reliable_size) = (r.varint()?, r.varint()?);
    if reliable_size > final_size {
        return Err(Malformed("reliable size beyond the final size"));
    }
    Ok(Frame::ResetStreamAt { id, code, final_size, reliable_size })
}

/// The direction given by the lowest bit of the MAX_STREAMS and STREAMS_BLOCKED types.
const fn dir(wire_type: u64) -> Dir {
    if wire_type & 1 == 0 { Dir::Bi } else { Dir::Uni }
}

fn stream_limit(r: &mut Reader<'_>) -> Result<u64, Malformed> {
    match r.varint()? {
        limit if limit <= MAX_STREAMS => Ok(limit),
        _ => Err(Malformed("more than 2^60 streams")),
    }
}

/// Returns `data` if the offset of its last byte can be encoded.
fn at(offset: u64, data: &[u8]) -> Result<&[u8], Malformed> {
    if offset + data.len() as u64 > VARINT_MAX {
        return Err(Malformed("offset out of range"));
    }
    Ok(data)
}

fn crypto<'a>(r: &mut Reader<'a>) -> Result<Frame<'a>, Malformed> {
    let offset = r.varint()?;
    Ok(Frame::Crypto { offset, data: at(offset, r.varint_bytes()?)? })
}

fn stream<'a>(wire_type: u64, r: &mut Reader<'a>) -> Result<StreamFrame<'a>, Malformed> {
    let id = stream_id(r)?;
    let offset = if wire_type & STREAM_OFF != 0 { r.varint()? } else { 0 };
    let data = if wire_type & STREAM_LEN != 0 { r.varint_bytes()? } else { r.rest() };
    Ok(StreamFrame { id, offset, fin: wire_type & STREAM_FIN != 0, data: at(offset, data)? })
}

fn new_connection_id(r: &mut Reader<'_>) -> Result<NewConnectionId, Malformed> {
    let (sequence, retire_prior_to) = (r.varint()?, r.varint()?);
    if retire_prior_to > sequence {
        return Err(Malformed("retires its own connection id"));
    }
    let len = usize::from(r.u8()?);
    let id = ConnectionId::new(r.bytes(len)?)
        .filter(|id| !id.is_empty())
        .ok_or(Malformed("connection id not 1 to 20 bytes"))?;
    Ok(NewConnectionId { sequence, retire_prior_to, id, reset_token: r.array()? })
}
