//! Reads packets and their STREAM frames.

use serde_json::Value;

use super::json;
use crate::limits::MAX_FRAME_BYTES;
use crate::trace::{Packet, Space, StreamFrame, Symbol};

/// The largest length or stream offset in QUIC (RFC 9000, section 4.5).
const LARGEST: u64 = (1 << 62) - 1;

/// Reads a `packet_sent` or `packet_received`.
pub(super) fn read(data: &Value) -> Option<Packet> {
    data.as_object()?;
    let (space, number) = number(data);
    let header_size = data.get("header").and_then(|h| h.get("packet_size"));
    let size = json::number(data.get("raw").and_then(|raw| raw.get("length")).or(header_size));
    let mut packet = Packet {
        space,
        number,
        size: size.unwrap_or(0),
        frames: Vec::new(),
        symbols: Vec::new(),
        repairs: 0,
    };
    for frame in frames(data) {
        if is(frame, "stream") {
            packet.frames.extend(stream_frame(frame));
        } else if is(frame, "source_symbol") {
            let first_frame = packet.frames.len();
            packet.symbols.extend(source_symbol(frame, first_frame));
        } else if is(frame, "repair") {
            packet.repairs = packet.repairs.saturating_add(1);
        }
    }
    let mut end = packet.frames.len();
    for symbol in packet.symbols.iter_mut().rev() {
        let candidates = packet.frames.get(symbol.first_frame..end).unwrap_or_default();
        symbol.frames = frames_inside(candidates, symbol.length);
        end = symbol.first_frame;
    }
    Some(packet)
}

/// Whether a frame is of a type. Old files use capitals.
fn is(frame: &Value, kind: &str) -> bool {
    json::text(frame.get("frame_type")).is_some_and(|name| name.eq_ignore_ascii_case(kind))
}

fn frames(data: &Value) -> &[Value] {
    data.get("frames").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The STREAM frames among the frames of an event.
pub(super) fn stream_frames(data: &Value) -> Vec<StreamFrame> {
    frames(data).iter().filter(|frame| is(frame, "stream")).filter_map(stream_frame).collect()
}

/// The packet number space and number of a packet.
pub(super) fn number(data: &Value) -> (Space, Option<u64>) {
    let field = |key: &str| data.get("header").and_then(|h| h.get(key)).or_else(|| data.get(key));
    let space = match json::text(field("packet_type")) {
        Some("initial") => Space::Initial,
        Some("handshake") => Space::Handshake,
        Some("retry" | "version_negotiation" | "stateless_reset") => Space::None,
        // Loggers may omit the type once the handshake is done.
        Some("0RTT" | "1RTT" | "zerortt" | "onertt") | None => Space::Data,
        Some(_) => Space::None,
    };
    (space, json::number(field("packet_number")))
}

/// Bytes of data: `length`, or `raw` in newer drafts, whose `length` may include the frame header.
pub(super) fn data_length(data: &Value) -> Option<u64> {
    let raw = |key: &str| json::number(data.get("raw").and_then(|raw| raw.get(key)));
    let length = json::number(data.get("length"));
    length.or_else(|| raw("payload_length")).or_else(|| raw("length")).filter(|n| *n <= LARGEST)
}

fn stream_frame(frame: &Value) -> Option<StreamFrame> {
    let offset = json::number(frame.get("offset")).unwrap_or(0);
    let length = data_length(frame).unwrap_or(0);
    if length > MAX_FRAME_BYTES {
        return None;
    }
    offset.checked_add(length).filter(|end| *end <= LARGEST)?;
    Some(StreamFrame {
        stream: json::number(frame.get("stream_id")).filter(|id| *id <= LARGEST)?,
        offset,
        length,
        fin: frame.get("fin").and_then(Value::as_bool).unwrap_or(false),
    })
}

fn source_symbol(frame: &Value, first_frame: usize) -> Option<Symbol> {
    Some(Symbol {
        session: json::number(frame.get("session"))?,
        id: json::number(frame.get("symbol_id"))?,
        length: json::number(frame.get("length"))?,
        first_frame,
        frames: 0,
    })
}

/// How many of the frames that follow a symbol are inside it: the number that fits.
fn frames_inside(candidates: &[StreamFrame], symbol: u64) -> usize {
    let mut room = symbol;
    let mut inside = 0;
    for frame in candidates {
        let offset = if frame.offset > 0 { varint_length(frame.offset) } else { 0 };
        let header = 1 + varint_length(frame.stream) + offset;
        let Some(left) = room.checked_sub(header + frame.length) else { break };
        room = left;
        inside += 1;
    }
    inside
}

/// Bytes of a variable-length integer (RFC 9000, section 16).
const fn varint_length(value: u64) -> u64 {
    match value {
        0..0x40 => 1,
        0x40..0x4000 => 2,
        0x4000..0x4000_0000 => 4,
        _ => 8,
    }
}
