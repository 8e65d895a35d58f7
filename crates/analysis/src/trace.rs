//! What is kept of a file: the events that an analysis needs, in order of time.

use serde::Serialize;
use std::time::Duration;

use crate::error::Position;

/// How a file is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// One JSON document with all traces.
    #[default]
    Json,
    /// A JSON text sequence (RFC 7464).
    JsonSeq,
    /// A JSON text on each line.
    Lines,
}

impl Format {
    /// Its name, as qlog 0.3 has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Json => "JSON",
            Self::JsonSeq => "JSON-SEQ",
            Self::Lines => "NDJSON",
        }
    }
}

/// Who recorded a trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Vantage {
    /// The client.
    Client,
    /// The server.
    Server,
    /// Somebody between them, or the file does not say.
    #[default]
    Unknown,
}

impl Vantage {
    /// Its name in qlog.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
            Self::Unknown => "unknown",
        }
    }
}

/// A packet number space (RFC 9000, section 12.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// Initial packets.
    Initial,
    /// Handshake packets.
    Handshake,
    /// 0-RTT and 1-RTT packets.
    Data,
    /// Packets without a number: Retry, Version Negotiation, and types that are not known.
    None,
}

/// A STREAM frame (RFC 9000, section 19.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct StreamFrame {
    /// The stream.
    pub stream: u64,
    /// Where its data begins in the stream. Offset and length together are below 2^62.
    pub offset: u64,
    /// Bytes of data.
    pub length: u64,
    /// Whether the stream ends here.
    pub fin: bool,
}

impl StreamFrame {
    /// Where its data ends in the stream.
    pub const fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }
}

/// A source symbol that a packet carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbol {
    /// The coding session.
    pub session: u64,
    /// The symbol's number in it.
    pub id: u64,
    /// Bytes.
    pub length: u64,
    /// The first of the packet's STREAM frames that are inside.
    pub first_frame: usize,
    /// How many of them are inside.
    pub frames: usize,
}

/// A packet that was sent or received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// Its packet number space.
    pub space: Space,
    /// Its number.
    pub number: Option<u64>,
    /// Its bytes on the wire; 0 if the file does not say.
    pub size: u64,
    /// Its STREAM frames, also those inside of source symbols.
    pub frames: Vec<StreamFrame>,
    /// Its source symbols.
    pub symbols: Vec<Symbol>,
    /// How many repair symbols it carried.
    pub repairs: u32,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// A packet was sent.
    PacketSent(Packet),
    /// A packet was received.
    PacketReceived(Packet),
    /// A packet was declared lost.
    PacketLost {
        /// Its packet number space.
        space: Space,
        /// Its number.
        number: Option<u64>,
    },
    /// The transport gave data of a stream to the application.
    DataMoved {
        /// The stream.
        stream: u64,
        /// Bytes.
        length: u64,
    },
    /// A request's HEADERS were sent by a client or received by a server.
    Request {
        /// The stream.
        stream: u64,
        /// `:path`
        path: Box<str>,
        /// The Priority header field (RFC 9218, section 5).
        priority: Option<Box<str>>,
    },
    /// A response's HEADERS were sent by a server or received by a client.
    Response {
        /// The stream.
        stream: u64,
        /// `:status`
        status: Box<str>,
        /// The Priority header field (RFC 9218, section 8).
        priority: Option<Box<str>>,
    },
    /// A PRIORITY_UPDATE (RFC 9218, section 7), or a change of priority for another reason.
    PriorityUpdate {
        /// The stream.
        stream: u64,
        /// The Priority field value.
        priority: Box<str>,
    },
    /// A source symbol that was not received was computed from repair symbols.
    SymbolRecovered {
        /// The coding session.
        session: u64,
        /// The symbol's number in it.
        id: u64,
        /// The STREAM frames inside, if the file says or [`resolve_recovered`] found them.
        ///
        /// [`resolve_recovered`]: crate::resolve_recovered
        frames: Vec<StreamFrame>,
    },
    /// The peer said that it recovered source symbols.
    RecoveredByPeer {
        /// How many.
        count: u64,
    },
}

/// Something that happened, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Time since the first event of the trace, to the microsecond.
    pub at: Duration,
    /// What it was.
    pub kind: EventKind,
}

/// A connection as one end recorded it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// What the file says about its version: `qlog_version`, or `file_schema` of newer drafts.
    pub version: String,
    /// How the file is written.
    pub format: Format,
    /// What the file calls it; free text.
    pub title: String,
    /// Who recorded it.
    pub vantage: Vantage,
    /// `group_id`, or else the original destination connection identifier: the same in the records
    /// of both ends of a connection.
    pub group: Option<String>,
    /// What happened, in order of time.
    pub events: Vec<Event>,
    /// The time of the last event, kept or not.
    pub duration: Duration,
    /// Events that no analysis needs, and of kinds that are not known.
    pub other_events: u64,
    /// Records and events that are not what they should be. They were skipped.
    pub malformed: u64,
    /// Where the first of them is.
    pub first_malformed: Option<Position>,
    /// Whether the file ends in the middle of a record, as it does if its writer was stopped.
    pub truncated: bool,
}

impl Trace {
    /// Whether both are records of the same connection, from its two ends.
    pub fn is_peer_of(&self, other: &Self) -> bool {
        self.group.is_some()
            && self.group == other.group
            && matches!(
                (self.vantage, other.vantage),
                (Vantage::Client, Vantage::Server) | (Vantage::Server, Vantage::Client)
            )
    }
}

/// Whether it is a bidirectional stream that the client opened (RFC 9000, section 2.1): in HTTP/3,
/// a request.
pub(crate) const fn is_request_stream(stream: u64) -> bool {
    stream.is_multiple_of(4)
}
