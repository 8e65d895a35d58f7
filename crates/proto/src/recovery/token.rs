//! A description of the frames in a sent packet: small typed notes, returned to the owners of the frames
//! together with the packet's outcome.

use crate::ids::{Dir, MessageId, StreamId, SymbolRef};
use smallvec::SmallVec;
use std::ops::Range;

/// A frame of a sent packet, as its owner needs to remember it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token {
    /// An ACK frame. Once it is acknowledged, packets up to its largest number need not be reported
    /// again.
    Ack {
        /// Largest packet number that the ACK frame reported.
        largest: u64,
    },
    /// Handshake data of the packet's space.
    Crypto {
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes.
        len: u32,
    },
    /// Stream data.
    Stream(StreamToken),
    /// A control frame of streams or flow control.
    Control(ControlToken),
    /// HANDSHAKE_DONE.
    HandshakeDone,
    /// NEW_TOKEN.
    NewTokenFrame,
    /// NEW_CONNECTION_ID with this sequence number.
    NewConnectionId(u64),
    /// RETIRE_CONNECTION_ID with this sequence number.
    RetireConnectionId(u64),
    /// A DATAGRAM. Never sent again.
    Datagram {
        /// The datagram.
        id: MessageId,
        /// The source symbol that carried it, if a session protects datagrams.
        symbol: Option<SymbolRef>,
    },
    /// A repair symbol. Never sent again.
    Repair {
        /// The session that it belongs to.
        session: u16,
        /// The first source symbol that it covers.
        first: u64,
        /// One past the last source symbol.
        end: u64,
    },
    /// A PING in a packet with this number, padded to find out whether the path carries it.
    MtuProbe(u64),
    /// ACK_FREQUENCY with this sequence number.
    AckFrequency(u64),
    /// A SYMBOL_WINDOW for this session.
    SymbolWindow(u16),
}

/// A control frame of the stream layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlToken {
    /// RESET_STREAM.
    ResetStream(StreamId),
    /// RESET_STREAM_AT with this reliable size.
    ResetStreamAt(StreamId, u64),
    /// STOP_SENDING.
    StopSending(StreamId),
    /// MAX_DATA.
    MaxData,
    /// MAX_STREAM_DATA.
    MaxStreamData(StreamId),
    /// MAX_STREAMS.
    MaxStreams(Dir),
    /// DATA_BLOCKED at this limit.
    DataBlocked(u64),
    /// STREAM_DATA_BLOCKED at this limit.
    StreamDataBlocked(StreamId, u64),
    /// STREAMS_BLOCKED at this limit.
    StreamsBlocked(Dir, u64),
}

/// The data of one STREAM frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamToken {
    /// The stream.
    pub id: StreamId,
    /// Offset of the first byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: u32,
    /// Whether the frame ended the stream.
    pub fin: bool,
    /// The source symbol that carried the frame, if a session protects the stream.
    pub symbol: Option<SymbolRef>,
}

impl StreamToken {
    /// The stream's bytes that the frame carries.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.offset..self.offset.saturating_add(u64::from(self.len))
    }
}

/// The tokens of one packet. Most packets carry one or two frames.
pub type Tokens = SmallVec<[Token; 2]>;

/// Whether these are the tokens of a path MTU probe, which has no other.
pub fn is_mtu_probe(tokens: &Tokens) -> bool {
    matches!(tokens.first(), Some(Token::MtuProbe(_)))
}

/// Whether a packet with these tokens carries repair symbols.
pub fn has_repair(tokens: &Tokens) -> bool {
    tokens.iter().any(|token| matches!(token, Token::Repair { .. }))
}
