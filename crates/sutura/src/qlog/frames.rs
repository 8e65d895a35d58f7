//! Frames with the field names of qlog.

use serde::Serialize;
use std::borrow::Cow;
use std::ops::Range;
use std::time::Duration;
use sutura_proto::wire_format::{AckFrame, Carrier, Close, Frame, FrameIter, Repair};
use sutura_proto::{ConnectionId, Dir};

use super::writer::milliseconds;

/// An entry of a packet event's `frames`.
#[derive(Debug, Serialize)]
#[serde(tag = "frame_type", rename_all = "snake_case")]
pub(super) enum FrameEntry<'a> {
    Padding,
    Ping,
    Ack {
        ack_delay: f64,
        acked_ranges: Vec<[u64; 2]>,
        #[serde(skip_serializing_if = "Option::is_none")]
        ect0: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        ect1: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        ce: Option<u64>,
    },
    ResetStream {
        stream_id: u64,
        error_code: u64,
        final_size: u64,
    },
    ResetStreamAt {
        stream_id: u64,
        error_code: u64,
        final_size: u64,
        reliable_size: u64,
    },
    AckFrequency {
        sequence_number: u64,
        ack_eliciting_threshold: u64,
        requested_max_ack_delay: u64,
        reordering_threshold: u64,
    },
    ImmediateAck,
    StopSending {
        stream_id: u64,
        error_code: u64,
    },
    Crypto {
        offset: u64,
        length: usize,
    },
    NewToken {
        length: usize,
    },
    Stream {
        stream_id: u64,
        offset: u64,
        length: usize,
        fin: bool,
    },
    MaxData {
        maximum: u64,
    },
    MaxStreamData {
        stream_id: u64,
        maximum: u64,
    },
    MaxStreams {
        stream_type: &'static str,
        maximum: u64,
    },
    DataBlocked {
        limit: u64,
    },
    StreamDataBlocked {
        stream_id: u64,
        limit: u64,
    },
    StreamsBlocked {
        stream_type: &'static str,
        limit: u64,
    },
    NewConnectionId {
        sequence_number: u64,
        retire_prior_to: u64,
        connection_id_length: usize,
        #[serde(serialize_with = "hexadecimal")]
        connection_id: ConnectionId,
    },
    RetireConnectionId {
        sequence_number: u64,
    },
    PathChallenge,
    PathResponse,
    ConnectionClose {
        error_space: &'static str,
        error_code: u64,
        reason: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        trigger_frame_type: Option<u64>,
    },
    HandshakeDone,
    Datagram {
        length: usize,
    },
    /// The frames inside follow as entries of their own.
    SourceSymbol {
        session: u16,
        symbol_id: u64,
        length: usize,
    },
    /// REPAIR and REPAIR_CODED.
    Repair {
        session: u16,
        /// Omitted for the sliding window.
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<u8>,
        first_symbol_id: u64,
        symbol_count: u64,
        key: u32,
        length: usize,
    },
    SymbolAck {
        session: u16,
        lower_bound: u64,
        held_ranges: Vec<[u64; 2]>,
    },
    SymbolWindow {
        session: u16,
        lower_bound: u64,
    },
    /// Bytes that cannot be parsed; nothing after them can be parsed either.
    Unknown {
        reason: Cow<'a, str>,
    },
}

pub(super) fn hexadecimal<S: serde::Serializer>(
    id: &ConnectionId,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(id)
}

/// Converts ranges to qlog's, which include both ends.
fn inclusive(ranges: impl Iterator<Item = Range<u64>>) -> Vec<[u64; 2]> {
    ranges.map(|r| [r.start, r.end.saturating_sub(1)]).collect()
}

const fn stream_type(dir: Dir) -> &'static str {
    match dir {
        Dir::Bi => "bidirectional",
        Dir::Uni => "unidirectional",
    }
}

/// Appends the frames of a packet to `entries`. `ack_delay_exponent` is the sender's.
pub(super) fn list<'a>(
    payload: &'a [u8],
    carrier: Carrier,
    ack_delay_exponent: u8,
    entries: &mut Vec<FrameEntry<'a>>,
) {
    for frame in FrameIter::new(payload, carrier) {
        match frame {
            Ok(frame) => {
                entries.push(entry(&frame, ack_delay_exponent));
                if let Frame::SourceSymbol(source) = frame {
                    list(source.frames, Carrier::SourceSymbol, ack_delay_exponent, entries);
                }
            }
            Err(error) => entries.push(FrameEntry::Unknown { reason: error.reason }),
        }
    }
}

fn entry<'a>(frame: &Frame<'a>, ack_delay_exponent: u8) -> FrameEntry<'a> {
    match *frame {
        Frame::Padding => FrameEntry::Padding,
        Frame::Ping => FrameEntry::Ping,
        Frame::Ack(ref frame) => ack(frame, ack_delay_exponent),
        Frame::Crypto { offset, data } => FrameEntry::Crypto { offset, length: data.len() },
        Frame::NewToken(token) => FrameEntry::NewToken { length: token.len() },
        Frame::NewConnectionId(new) => FrameEntry::NewConnectionId {
            sequence_number: new.sequence,
            retire_prior_to: new.retire_prior_to,
            connection_id_length: new.id.len(),
            connection_id: new.id,
        },
        Frame::RetireConnectionId(sequence_number) => {
            FrameEntry::RetireConnectionId { sequence_number }
        }
        Frame::PathChallenge(_) => FrameEntry::PathChallenge,
        Frame::PathResponse(_) => FrameEntry::PathResponse,
        Frame::Close(ref frame) => close(frame),
        Frame::HandshakeDone => FrameEntry::HandshakeDone,
        Frame::Datagram(data) => FrameEntry::Datagram { length: data.len() },
        Frame::SourceSymbol(source) => FrameEntry::SourceSymbol {
            session: source.symbol.session,
            symbol_id: source.symbol.id,
            length: source.frames.len(),
        },
        Frame::Repair(ref frame) => repair(frame),
        Frame::SymbolAck(ack) => FrameEntry::SymbolAck {
            session: ack.session,
            lower_bound: ack.lower_bound,
            held_ranges: inclusive(ack.ranges()),
        },
        Frame::SymbolWindow(window) => {
            FrameEntry::SymbolWindow { session: window.session, lower_bound: window.lower_bound }
        }
        Frame::Stream(stream) => FrameEntry::Stream {
            stream_id: stream.id.0,
            offset: stream.offset,
            length: stream.data.len(),
            fin: stream.fin,
        },
        Frame::ResetStream { id, code, final_size } => {
            FrameEntry::ResetStream { stream_id: id.0, error_code: code, final_size }
        }
        Frame::AckFrequency(frame) => FrameEntry::AckFrequency {
            sequence_number: frame.sequence,
            ack_eliciting_threshold: frame.threshold,
            requested_max_ack_delay: frame.max_ack_delay,
            reordering_threshold: frame.reordering_threshold,
        },
        Frame::ImmediateAck => FrameEntry::ImmediateAck,
        Frame::ResetStreamAt { id, code, final_size, reliable_size } => FrameEntry::ResetStreamAt {
            stream_id: id.0,
            error_code: code,
            final_size,
            reliable_size,
        },
        Frame::StopSending { id, code } => {
            FrameEntry::StopSending { stream_id: id.0, error_code: code }
        }
        Frame::MaxData(maximum) => FrameEntry::MaxData { maximum },
        Frame::MaxStreamData { id, max } => {
            FrameEntry::MaxStreamData { stream_id: id.0, maximum: max }
        }
        Frame::MaxStreams { dir, max } => {
            FrameEntry::MaxStreams { stream_type: stream_type(dir), maximum: max }
        }
        Frame::DataBlocked(limit) => FrameEntry::DataBlocked { limit },
        Frame::StreamDataBlocked { id, limit } => {
            FrameEntry::StreamDataBlocked { stream_id: id.0, limit }
        }
        Frame::StreamsBlocked { dir, limit } => {
            FrameEntry::StreamsBlocked { stream_type: stream_type(dir), limit }
        }
        _ => FrameEntry::Unknown { reason: "a frame without an entry".into() },
    }
}

fn repair<'a>(frame: &Repair<'_>) -> FrameEntry<'a> {
    FrameEntry::Repair {
        session: frame.header.session,
        code: Some(frame.header.code.get()).filter(|&code| code != 0),
        first_symbol_id: frame.header.first,
        symbol_count: frame.header.count,
        key: frame.header.key,
        length: frame.payload.len(),
    }
}

fn ack<'a>(frame: &AckFrame<'a>, ack_delay_exponent: u8) -> FrameEntry<'a> {
    // The field has 62 bits, and the exponent is at most 20.
    let microseconds = frame.delay.saturating_mul(1 << ack_delay_exponent.min(20));
    FrameEntry::Ack {
        ack_delay: milliseconds(Duration::from_micros(microseconds)),
        acked_ranges: inclusive(frame.ranges()),
        ect0: frame.ecn.map(|ecn| ecn.ect0),
        ect1: frame.ecn.map(|ecn| ecn.ect1),
        ce: frame.ecn.map(|ecn| ecn.ce),
    }
}

fn close<'a>(frame: &Close<'a>) -> FrameEntry<'a> {
    let (error_space, error_code, trigger_frame_type) = match *frame {
        Close::Transport { code, frame, .. } => ("transport", code.0, frame.filter(|f| *f != 0)),
        Close::Application { code, .. } => ("application", code, None),
    };
    let reason = String::from_utf8_lossy(frame.reason());
    FrameEntry::ConnectionClose { error_space, error_code, reason, trigger_frame_type }
}
