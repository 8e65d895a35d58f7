//! HTTP/3 as far as an attacker needs it: requests, whole or not.

use sutura_proto::wire_format::{Frame, StreamFrame};
use sutura_proto::{Dir, Side, StreamId};

/// Appends a length in seven bits; it must be below 127.
fn put_short(text: &str, out: &mut Vec<u8>) {
    out.push(text.len().min(126) as u8);
    out.extend_from_slice(&text.as_bytes()[..text.len().min(126)]);
}

/// A HEADERS frame that asks for `path`, with this priority (RFC 9218) if it is not empty. It refers
/// to the static table of QPACK only (RFC 9204 appendix A).
pub fn headers(path: &str, priority: &str) -> Vec<u8> {
    // No dynamic table; `:method: GET`; `:scheme: https`.
    let mut section = vec![0, 0, 0xc0 | 17, 0xc0 | 23];
    section.push(0x50);
    put_short("localhost", &mut section);
    section.push(0x50 | 1);
    put_short(path, &mut section);
    if !priority.is_empty() {
        // A literal name: three bits of its length, then the rest.
        section.extend_from_slice(&[0x27, 1]);
        section.extend_from_slice(b"priority");
        put_short(priority, &mut section);
    }
    let mut frame = vec![0x01, 0x40 | (section.len() >> 8) as u8, section.len() as u8];
    frame.append(&mut section);
    frame
}

/// The client's bidirectional stream of this number.
pub const fn bidi(index: u64) -> StreamId {
    StreamId::new(Side::Client, Dir::Bi, index)
}

/// The client's unidirectional stream of this number. The first is the control stream.
pub const fn uni(index: u64) -> StreamId {
    StreamId::new(Side::Client, Dir::Uni, index)
}

/// Appends a STREAM frame from the beginning of a stream.
pub fn whole(id: StreamId, data: &[u8], fin: bool, out: &mut Vec<u8>) {
    Frame::Stream(StreamFrame { id, offset: 0, fin, data }).encode(out);
}

/// The beginning of the control stream: its type and empty SETTINGS (RFC 9114 section 6.2.1).
pub fn control_stream() -> Vec<u8> {
    let mut out = Vec::new();
    whole(uni(0), &[0x00, 0x04, 0x00], false, &mut out);
    out
}
