//! The contents of a file: the events that the analyses use, in order of time.

use serde::Serialize;
use std::time::Duration;

use crate::error::Position;

/// The format of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// One JSON document with all traces.
    #[default]
    Json,
    /// A JSON text sequence (RFC 7464).
    JsonSeq,
    /// One JSON text per line.
    Lines,
}

impl Format {
    /// Its name in qlog 0.3.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Json => "JSON",
            Self::JsonSeq => "JSON-SEQ",
            Self::Lines => "NDJSON",
        }
    }
}

/// The end that recorded a trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Vantage {
    /// The client.
    Client,
    /// The server.
    Server,
    /// An observer in the network, or unknown.
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
    /// Packets without a number: Retry, Version Negotiation, and unknown types.
    None,
}

/// A STREAM frame (RFC 9000, section 19.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct StreamFrame {
    /// The stream.
    pub stream: u64,
    /// Stream offset of its data. Offset and length together are below 2^62.
    pub offset: u64,
    /// Bytes of data.
    pub length: u64,
    /// Whether the stream ends here.
    pub fin: bool,
}

impl StreamFrame {
    /// Stream offset of the end of its data.
    pub const fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }
}

/// A source symbol that a packet carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbol {
    /// The coding session.
    pub session: u64,
    /// The symbol's number in the session.
    pub id: u64,
    /// Its length in bytes.
    pub length: u64,
    /// The first of the packet's STREAM frames that is inside.
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
    /// Its bytes on the wire; 0 if the file does not have them.
    pub size: u64,
    /// Its STREAM frames, including those inside source symbols.
    pub frames: Vec<StreamFrame>,
    /// Its source symbols.
    pub symbols: Vec<Symbol>,
    /// How many repair symbols it carried.
    pub repairs: u32,
}

/// The recording end's estimate of the losses of its path that do not depend on its rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LossEstimate {
    /// Share of lost packets, like the next two from 0 to 1.
    pub rate: f64,
    /// Its lower bound.
    pub low: f64,
    /// Its upper bound.
    pub high: f64,
    /// How many packets were lost in a row on average.
    pub burst: f64,
    /// How long the path went on losing packets, in milliseconds, if known.
    pub burst_ms: Option<f64>,
}

/// The state of a coding session's redundancy policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Redundancy {
    /// The coding session.
    pub session: u64,
    /// Name and parameters of the policy.
    pub policy: Box<str>,
    /// Why it sent redundancy, or none.
    pub reason: Option<Box<str>>,
    /// Repair symbols on each occasion, if it sent any.
    pub repairs: Option<u64>,
}

/// An event.
#[derive(Debug, Clone, PartialEq)]
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
    /// The transport delivered data of a stream to the application.
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
    /// A source symbol that was lost was computed from repair symbols.
    SymbolRecovered {
        /// The coding session.
        session: u64,
        /// The symbol's number in it.
        id: u64,
        /// The STREAM frames inside, if the file has them or [`resolve_recovered`] found them.
        ///
        /// [`resolve_recovered`]: crate::resolve_recovered
        frames: Vec<StreamFrame>,
    },
    /// The peer reported that it recovered source symbols.
    RecoveredByPeer {
        /// How many.
        count: u64,
    },
    /// The recording end knew more of the losses of its path.
    LossEstimateUpdated(LossEstimate),
    /// A redundancy policy was put in charge of a session, or had another reason.
    RedundancyUpdated(Box<Redundancy>),
}

/// An event with its time.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Time since the first event of the trace, to the microsecond.
    pub at: Duration,
    /// The kind of the event, with its data.
    pub kind: EventKind,
}

/// A connection as recorded by one end.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trace {
    /// The version in the file: `qlog_version`, or `file_schema` of newer drafts.
    pub version: String,
    /// The format of the file.
    pub format: Format,
    /// The title in the file; free text.
    pub title: String,
    /// The end that recorded the trace.
    pub vantage: Vantage,
    /// `group_id`, or else the original destination connection identifier: the same in the records
    /// of both ends.
    pub group: Option<String>,
    /// The events in order of time.
    pub events: Vec<Event>,
    /// The time of the last event, including events that were not kept.
    pub duration: Duration,
    /// Events that no analysis uses, and unknown events.
    pub other_events: u64,
    /// Malformed records and events, which were skipped.
    pub malformed: u64,
    /// The position of the first of them.
    pub first_malformed: Option<Position>,
    /// Whether the file ends in the middle of a record, as happens if its writer was stopped.
    pub truncated: bool,
}

impl Trace {
    /// Whether the two traces are records of the same connection from its two ends.
    pub fn is_peer_of(&self, other: &Self) -> bool {
        self.group.is_some()
            && self.group == other.group
            && matches!(
                (self.vantage, other.vantage),
                (Vantage::Client, Vantage::Server) | (Vantage::Server, Vantage::Client)
            )
    }
}

/// Whether a stream is bidirectional and opened by the client (RFC 9000, section 2.1): in HTTP/3, a
/// request.
pub(crate) const fn is_request_stream(stream: u64) -> bool {
    stream.is_multiple_of(4)
}
