//! The error cases of h3spec 0.1.14 for HTTP/3 servers, played by a hostile client. They have h3spec's names,
//! so that its reports can be compared with this table. The cases for QUIC servers are in
//! `connection/tests/h3spec.rs` of `sutura-proto`.

use crate::common::Ending::{Fin, Open};
use crate::common::Stream::{Bi, Uni};
use crate::common::{Bench, GET, Script, script};
use sutura_h3::{Code, Event};
use sutura_proto::{Dir, Side, StreamId};

/// A name of h3spec, the section of the RFC, the code with which the server ends the connection or
/// the request, and the client's messages.
type Case = (&'static str, &'static str, Code, Vec<Script>);

/// The client's control stream with SETTINGS and then these bytes.
fn control(frames: &[u8]) -> Script {
    stream(&[&[0x00, 0x04, 0x00], frames].concat())
}

/// A control stream whose SETTINGS have this payload.
fn settings(payload: &[u8]) -> Vec<Script> {
    vec![stream(&[&[0x00, 0x04, payload.len() as u8], payload].concat())]
}

/// A unidirectional stream.
fn stream(bytes: &[u8]) -> Script {
    script(Uni, bytes, Open)
}

fn request(bytes: &[u8]) -> Vec<Script> {
    vec![control(&[]), script(Bi, bytes, Fin)]
}

/// A request whose field section consists of these lines: GET, https, authority or path from the
/// static table, and literals.
fn section(lines: &[&[u8]]) -> Vec<Script> {
    let block = [&[0x00, 0x00], &lines.concat()[..]].concat();
    request(&[&[0x01, block.len() as u8], &block[..]].concat())
}

const METHOD: &[u8] = &[0xd1];
const SCHEME: &[u8] = &[0xd7];
const AUTHORITY: &[u8] = &[0x50, 0x01, b'a'];
const PATH: &[u8] = &[0xc1];

/// A field line with a literal name.
fn line(name: &str, value: &str) -> Vec<u8> {
    let mut line = match name.len() {
        short @ ..7 => vec![0x20 | short as u8],
        long => vec![0x27, long as u8 - 7],
    };
    line.extend_from_slice(name.as_bytes());
    line.push(value.len() as u8);
    line.extend_from_slice(value.as_bytes());
    line
}

/// A request with this field, too.
fn with(name: &str, value: &str) -> Vec<Script> {
    section(&[METHOD, SCHEME, AUTHORITY, PATH, &line(name, value)])
}

/// The error code that the client receives: that of the connection if it was closed, or else that of its
/// request.
fn verdict(scripts: &[Script]) -> Option<Code> {
    let mut bench = Bench::new(Side::Server);
    bench.play(scripts, usize::MAX);
    let id = StreamId::new(Side::Client, Dir::Bi, 0);
    let reset =
        bench.pair.resets.iter().find(|(side, stream, _)| (*side, *stream) == (Side::Server, id));
    bench.pair.closed[Side::Server as usize].or(reset.map(|(_, _, code)| *code))
}

fn play(cases: Vec<Case>, count: usize) {
    assert_eq!(cases.len(), count);
    let mut wrong = Vec::new();
    for (name, section, code, scripts) in cases {
        let verdict = verdict(&scripts);
        if verdict != Some(code) {
            wrong.push(format!("{name} [{section}]: {verdict:?} instead of {code:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn requests() {
    let (message, unexpected) = (Code::MESSAGE_ERROR, Code::FRAME_UNEXPECTED);
    let data = request(&[&[0x00, 0x00], GET].concat());
    let cancel = request(&[&[0x03, 0x00], GET].concat());
    let duplicate = section(&[METHOD, SCHEME, AUTHORITY, PATH, METHOD]);
    let absent = section(&[METHOD, SCHEME, PATH]);
    let prohibited = with(":foo", "bar");
    let after = section(&[METHOD, SCHEME, AUTHORITY, &line("foo", "bar"), PATH]);
    let static_table = section(&[METHOD, SCHEME, AUTHORITY, PATH, &[0xff, 0x24]]);
    let dynamic_table = section(&[METHOD, SCHEME, AUTHORITY, PATH, &[0x80]]);
    let qpack = Code::QPACK_DECOMPRESSION_FAILED;
    play(
        vec![
            ("DATA is received before HEADERS", "HTTP/3 4.1", unexpected, data),
            ("a pseudo-header is duplicated", "HTTP/3 4.1.1", message, duplicate),
            ("mandatory pseudo-header fields are absent", "HTTP/3 4.1.3", message, absent),
            ("prohibited pseudo-header fields are present", "HTTP/3 4.1.3", message, prohibited),
            ("pseudo-header fields exist after fields", "HTTP/3 4.1.3", message, after),
            ("a request with connection", "HTTP/3 4.2", message, with("connection", "close")),
            ("a request with keep-alive", "HTTP/3 4.2", message, with("keep-alive", "timeout=5")),
            (
                "a request with proxy-connection",
                "HTTP/3 4.2",
                message,
                with("proxy-connection", "keep-alive"),
            ),
            (
                "a request with transfer-encoding",
                "HTTP/3 4.2",
                message,
                with("transfer-encoding", "chunked"),
            ),
            ("a request with upgrade", "HTTP/3 4.2", message, with("upgrade", "websocket")),
            ("a request with TE other than trailers", "HTTP/3 4.2", message, with("te", "gzip")),
            ("CANCEL_PUSH is received in a request stream", "HTTP/3 7.2.5", unexpected, cancel),
            (
                "an invalid static table index exits in a field line representation",
                "QPACK 3.1",
                qpack,
                static_table,
            ),
            (
                "a field line references a dynamic table entry that is not there",
                "QPACK 2.1.2",
                qpack,
                dynamic_table,
            ),
        ],
        14,
    );
}

/// "MUST accept TE with trailers" (HTTP/3 4.2).
#[test]
fn te_with_trailers_is_accepted() {
    let mut bench = Bench::new(Side::Server);
    bench.play(&with("te", "trailers"), usize::MAX);
    assert_eq!(bench.outcome, Ok(()));
    assert!(
        bench.events.iter().any(|event| matches!(event, Event::Headers { .. })),
        "{:?}",
        bench.events
    );
}

#[test]
fn control_streams() {
    let (unexpected, wrong) = (Code::FRAME_UNEXPECTED, Code::SETTINGS_ERROR);
    let closed = vec![script(Uni, &[0x00, 0x04, 0x00], Fin)];
    let long = vec![control(&[0x07, 0xc0, 0, 0, 0, 0x40, 0, 0, 0])];
    let not_settings = vec![stream(&[0x00, 0x0d, 0x01, 0x01])];
    let http2 = settings(&[0x07, 0x40, 0x64, 0x02, 0x40, 0xc8, 0x06, 0x80, 0x00, 0x80, 0x00]);
    play(
        vec![
            (
                "the first control frame is not SETTINGS",
                "HTTP/3 6.2.1",
                Code::MISSING_SETTINGS,
                not_settings,
            ),
            (
                "a DATA frame is received on a control stream",
                "HTTP/3 7.2.1",
                unexpected,
                vec![control(&[0x00, 0x00])],
            ),
            (
                "a HEADERS frame is received on a control stream",
                "HTTP/3 7.2.2",
                unexpected,
                vec![control(&[0x01, 0x00])],
            ),
            (
                "a second SETTINGS frame is received",
                "HTTP/3 7.2.4",
                unexpected,
                vec![control(&[0x04, 0x00])],
            ),
            ("HTTP/2 settings are included", "HTTP/3 7.2.4.1", wrong, http2),
            (
                "a SETTINGS frame stops mid-parameter",
                "HTTP/3 7.1",
                Code::FRAME_ERROR,
                settings(&[0x01]),
            ),
            (
                "MUST NOT stop reading settings at a reserved identifier",
                "HTTP/3 7.2.4.1",
                wrong,
                settings(&[0x21, 0x00, 0x02, 0x00]),
            ),
            (
                "a repeated setting identifier, whatever its value",
                "HTTP/3 7.2.4.1",
                wrong,
                settings(&[0x40, 0x40, 0x00, 0x40, 0x40, 0x00]),
            ),
            (
                "MUST NOT buffer a frame longer than SETTINGS_MAX_FIELD_SECTION_SIZE",
                "HTTP/3 7.1",
                Code::EXCESSIVE_LOAD,
                long,
            ),
            ("a control stream is closed", "QPACK 4.2", Code::CLOSED_CRITICAL_STREAM, closed),
        ],
        10,
    );
}

#[test]
fn unidirectional_streams() {
    let (created, closed) = (Code::STREAM_CREATION_ERROR, Code::CLOSED_CRITICAL_STREAM);
    let twice = |bytes: &[u8]| vec![stream(bytes), stream(bytes)];
    let ended = |bytes: &[u8]| vec![script(Uni, bytes, Fin)];
    // Set Dynamic Table Capacity 10,000,000,000.
    let capacity = vec![stream(&[0x02, 0x3f, 0xe1, 0xc7, 0xaf, 0xa0, 0x25])];
    play(
        vec![
            (
                "a second control stream is opened",
                "HTTP/3 6.2.1",
                created,
                vec![control(&[]), control(&[])],
            ),
            (
                "a client opens a push stream",
                "HTTP/3 6.2.2",
                created,
                vec![control(&[]), stream(&[0x01, 0x00])],
            ),
            ("a second encoder stream is opened", "QPACK 4.2", created, twice(&[0x02])),
            ("a second decoder stream is opened", "QPACK 4.2", created, twice(&[0x03])),
            ("an encoder stream is closed", "QPACK 4.2", closed, ended(&[0x02])),
            ("a decoder stream is closed", "QPACK 4.2", closed, ended(&[0x03])),
            (
                "an encoder stream ends inside an instruction",
                "QPACK 4.2",
                closed,
                ended(&[0x02, 0x3f]),
            ),
            (
                "a new dynamic table capacity value exceeds the limit",
                "QPACK 4.1.3",
                Code::QPACK_ENCODER_STREAM_ERROR,
                capacity,
            ),
            (
                "Insert Count Increment is 0",
                "QPACK 4.4.3",
                Code::QPACK_DECODER_STREAM_ERROR,
                vec![stream(&[0x03, 0x00])],
            ),
        ],
        9,
    );
}
