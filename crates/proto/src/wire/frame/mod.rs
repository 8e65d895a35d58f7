//! Frames (RFC 9000 section 19, RFC 9221, draft-ietf-quic-reliable-stream-reset-07,
//! draft-ietf-quic-ack-frequency-11, and the erasure-coding extension).

mod ack;
mod decode;
mod encode;
mod fec;
mod registry;
#[cfg(test)]
mod tests;

pub use crate::ecn::EcnCounts;
pub use crate::reset::RESET_TOKEN_SIZE;
pub use ack::{AckFrame, AckRanges, encode_ack};
pub use decode::{FrameIter, after_padding};
pub use encode::{StreamHeader, crypto_capacity, datagram_size, encode_crypto, encode_datagram};
pub use fec::{
    Repair, RepairHeader, SourceSymbol, SymbolAck, SymbolRanges, SymbolWindow, encode_symbol_ack,
};
pub use registry::{Carrier, FrameInfo, FrameKind};

use crate::error::{TransportError, TransportErrorCode};
use crate::ids::{ConnectionId, Dir, StreamId};
use crate::wire::coding::UnexpectedEnd;
use std::borrow::Cow;

/// The largest value of MAX_STREAMS and STREAMS_BLOCKED: 2^60 (RFC 9000 section 4.6).
pub const MAX_STREAMS: u64 = 1 << 60;

/// A frame; variable-length fields are borrowed from the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Frame<'a> {
    /// One or more PADDING frames in a row.
    Padding,
    /// PING.
    Ping,
    /// ACK.
    Ack(AckFrame<'a>),
    /// RESET_STREAM.
    ResetStream {
        /// The stream whose sender aborts.
        id: StreamId,
        /// The application error code.
        code: u64,
        /// The number of bytes that count for flow control.
        final_size: u64,
    },
    /// RESET_STREAM_AT; `reliable_size` is at most `final_size`.
    ResetStreamAt {
        /// The stream whose sender aborts.
        id: StreamId,
        /// The application error code.
        code: u64,
        /// The number of bytes that count for flow control.
        final_size: u64,
        /// The number of bytes that are delivered nevertheless.
        reliable_size: u64,
    },
    /// STOP_SENDING.
    StopSending {
        /// The stream whose receiver aborts.
        id: StreamId,
        /// The application error code.
        code: u64,
    },
    /// CRYPTO; `offset + data.len()` is at most 2^62 - 1.
    Crypto {
        /// Offset of the first byte in the CRYPTO stream of the packet number space.
        offset: u64,
        /// Handshake bytes.
        data: &'a [u8],
    },
    /// NEW_TOKEN; never empty.
    NewToken(&'a [u8]),
    /// STREAM.
    Stream(StreamFrame<'a>),
    /// MAX_DATA: number of bytes allowed on all streams together.
    MaxData(u64),
    /// MAX_STREAM_DATA.
    MaxStreamData {
        /// The stream.
        id: StreamId,
        /// Number of bytes allowed on it.
        max: u64,
    },
    /// MAX_STREAMS.
    MaxStreams {
        /// The direction.
        dir: Dir,
        /// Total number of streams that may be opened, at most 2^60.
        max: u64,
    },
    /// DATA_BLOCKED with this limit.
    DataBlocked(u64),
    /// STREAM_DATA_BLOCKED.
    StreamDataBlocked {
        /// The stream.
        id: StreamId,
        /// The limit that blocks it.
        limit: u64,
    },
    /// STREAMS_BLOCKED.
    StreamsBlocked {
        /// The direction.
        dir: Dir,
        /// The limit that blocks, at most 2^60.
        limit: u64,
    },
    /// NEW_CONNECTION_ID.
    NewConnectionId(NewConnectionId),
    /// RETIRE_CONNECTION_ID for this sequence number.
    RetireConnectionId(u64),
    /// PATH_CHALLENGE.
    PathChallenge([u8; 8]),
    /// PATH_RESPONSE.
    PathResponse([u8; 8]),
    /// CONNECTION_CLOSE.
    Close(Close<'a>),
    /// HANDSHAKE_DONE.
    HandshakeDone,
    /// ACK_FREQUENCY.
    AckFrequency(AckFrequency),
    /// IMMEDIATE_ACK.
    ImmediateAck,
    /// DATAGRAM.
    Datagram(&'a [u8]),
    /// SOURCE_SYMBOL.
    SourceSymbol(SourceSymbol<'a>),
    /// REPAIR or REPAIR_CODED.
    Repair(Repair<'a>),
    /// SYMBOL_ACK.
    SymbolAck(SymbolAck<'a>),
    /// SYMBOL_WINDOW.
    SymbolWindow(SymbolWindow),
}

impl Frame<'_> {
    /// The frame's entry in the registry.
    #[must_use]
    pub const fn kind(&self) -> FrameKind {
        match self {
            Self::Padding => FrameKind::Padding,
            Self::Ping => FrameKind::Ping,
            Self::Ack(_) => FrameKind::Ack,
            Self::ResetStream { .. } => FrameKind::ResetStream,
            Self::ResetStreamAt { .. } => FrameKind::ResetStreamAt,
            Self::StopSending { .. } => FrameKind::StopSending,
            Self::Crypto { .. } => FrameKind::Crypto,
            Self::NewToken(_) => FrameKind::NewToken,
            Self::Stream(_) => FrameKind::Stream,
            Self::MaxData(_) => FrameKind::MaxData,
            Self::MaxStreamData { .. } => FrameKind::MaxStreamData,
            Self::MaxStreams { .. } => FrameKind::MaxStreams,
            Self::DataBlocked(_) => FrameKind::DataBlocked,
            Self::StreamDataBlocked { .. } => FrameKind::StreamDataBlocked,
            Self::StreamsBlocked { .. } => FrameKind::StreamsBlocked,
            Self::NewConnectionId(_) => FrameKind::NewConnectionId,
            Self::RetireConnectionId(_) => FrameKind::RetireConnectionId,
            Self::PathChallenge(_) => FrameKind::PathChallenge,
            Self::PathResponse(_) => FrameKind::PathResponse,
            Self::Close(Close::Transport { .. }) => FrameKind::ConnectionClose,
            Self::Close(Close::Application { .. }) => FrameKind::ApplicationClose,
            Self::HandshakeDone => FrameKind::HandshakeDone,
            Self::AckFrequency(_) => FrameKind::AckFrequency,
            Self::ImmediateAck => FrameKind::ImmediateAck,
            Self::Datagram(_) => FrameKind::Datagram,
            Self::SourceSymbol(_) => FrameKind::SourceSymbol,
            Self::Repair(repair) => repair.header.kind(),
            Self::SymbolAck(_) => FrameKind::SymbolAck,
            Self::SymbolWindow(_) => FrameKind::SymbolWindow,
        }
    }
}

/// STREAM; `offset + data.len()` is at most 2^62 - 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamFrame<'a> {
    /// The stream.
    pub id: StreamId,
    /// Offset of the first byte.
    pub offset: u64,
    /// Whether the stream ends with this frame.
    pub fin: bool,
    /// The bytes; may be empty.
    pub data: &'a [u8],
}

/// ACK_FREQUENCY (draft-ietf-quic-ack-frequency-11 section 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckFrequency {
    /// The sequence number of the frame: the largest counts.
    pub sequence: u64,
    /// How many ack-eliciting packets may arrive without an immediate acknowledgement.
    pub threshold: u64,
    /// How long acknowledgements may be delayed, in microseconds.
    pub max_ack_delay: u64,
    /// How far below the largest packet a missing packet must be for an immediate acknowledgement; 0 for
    /// never.
    pub reordering_threshold: u64,
}

/// NEW_CONNECTION_ID; the identifier has 1 to 20 bytes and `retire_prior_to <= sequence`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewConnectionId {
    /// The sequence number of the identifier.
    pub sequence: u64,
    /// Identifiers with smaller numbers are to be retired.
    pub retire_prior_to: u64,
    /// The identifier.
    pub id: ConnectionId,
    /// The stateless reset token that belongs to it.
    pub reset_token: [u8; RESET_TOKEN_SIZE],
}

/// CONNECTION_CLOSE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Close<'a> {
    /// Type 0x1c: closed by the transport.
    Transport {
        /// The error.
        code: TransportErrorCode,
        /// The type of the frame that caused the error, if known. PADDING (0) cannot be
        /// distinguished from none.
        frame: Option<u64>,
        /// A human-readable reason. It should be UTF-8, but may be any bytes.
        reason: &'a [u8],
    },
    /// Type 0x1d: closed by the application.
    Application {
        /// The application error code.
        code: u64,
        /// A human-readable reason.
        reason: &'a [u8],
    },
}

impl<'a> Close<'a> {
    /// The frame's reason.
    #[must_use]
    pub const fn reason(&self) -> &'a [u8] {
        match *self {
            Self::Transport { reason, .. } | Self::Application { reason, .. } => reason,
        }
    }
}

/// Why bytes are not a valid frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Malformed(&'static str);

impl From<UnexpectedEnd> for Malformed {
    fn from(_: UnexpectedEnd) -> Self {
        Self("cut short")
    }
}

impl Malformed {
    fn in_frame(self, wire_type: u64) -> TransportError {
        let Self(reason) = self;
        TransportError::new(TransportErrorCode::FRAME_ENCODING_ERROR, Cow::Borrowed(reason))
            .in_frame(wire_type)
    }
}
