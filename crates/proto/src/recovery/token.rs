//! What a sent packet meant: small typed notes that its frames' owners get back with what became of
//! the packet.

use crate::ids::SymbolRef;
use crate::ids::{Dir, StreamId};
use smallvec::SmallVec;

/// One frame of a sent packet, as its owner needs to remember it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token {
    /// An ACK frame whose largest acknowledged packet was this one; on acknowledgement, what was
    /// received up to it need not be reported again.
    Ack {
        /// Largest packet number that the ACK frame reported.
        largest: u64,
    },
    /// Handshake bytes of the packet's space.
    Crypto {
        /// First byte's offset.
        offset: u64,
        /// Number of bytes.
        len: u32,
    },
    /// Stream bytes.
    Stream(StreamToken),
    /// A control frame of streams or flow control.
    Control(ControlToken),
    /// HANDSHAKE_DONE.
    HandshakeDone,
    /// NEW_CONNECTION_ID with this sequence number.
    NewConnectionId(u64),
    /// RETIRE_CONNECTION_ID with this sequence number.
    RetireConnectionId(u64),
    /// A DATAGRAM; never sent again.
    Datagram {
        /// The source symbol that carried it, if a session protects datagrams.
        symbol: Option<SymbolRef>,
    },
    /// A repair symbol; never sent again.
    Repair {
        /// The session that it protects.
        session: u16,
        /// First source symbol of its span.
        first: u64,
        /// One past the last.
        end: u64,
    },
    /// A SYMBOL_WINDOW for this session.
    SymbolWindow(u16),
}

/// A control frame of the stream layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlToken {
    /// RESET_STREAM.
    ResetStream(StreamId),
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

/// Bytes of one STREAM frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamToken {
    /// The stream.
    pub id: StreamId,
    /// First byte's offset.
    pub offset: u64,
    /// Number of bytes.
    pub len: u32,
    /// Whether the frame ended the stream.
    pub fin: bool,
    /// The source symbol that carried the frame, if a session protects the stream.
    pub symbol: Option<SymbolRef>,
}

/// The tokens of one packet; most packets carry one or two frames.
pub type Tokens = SmallVec<[Token; 2]>;
