//! Each way to break the protocol, and the code that answers it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::Ending::{Fin, Open, Reset};
use common::Stream::{Bi, Response, Uni};
use common::{Bench, Script, get, script};
use rand::SeedableRng;
use rand::rngs::StdRng;
use sutura_h3::{Code, Event, Fields};
use sutura_proto::{Dir, Side, StreamId};

/// A control stream with empty SETTINGS, and more frames after it.
fn control(frames: &[u8]) -> Script {
    script(Uni, &[&[0x00, 0x04, 0x00], frames].concat(), Open)
}

/// HEADERS of a GET for https://a/.
const GET: &[u8] = &[0x01, 0x08, 0x00, 0x00, 0xd1, 0xd7, 0xc1, 0x50, 0x01, b'a'];
/// HEADERS with `:status` 200 and 103.
const OK: &[u8] = &[0x01, 0x03, 0x00, 0x00, 0xd9];
const HINTS: &[u8] = &[0x01, 0x03, 0x00, 0x00, 0xd8];
/// HEADERS of trailers: `age: 0`.
const TRAILERS: &[u8] = &[0x01, 0x03, 0x00, 0x00, 0xc2];

fn cat(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

/// A bench of `side`; a client has sent one request.
fn bench(side: Side, method: &str) -> Bench {
    let mut bench = Bench::new(side);
    if side.is_client() {
        let fields = Fields::request(method.to_owned(), "https", "a", "/");
        let mut end = bench.pair.end(side);
        bench.connection.send_request(&mut end, &fields, None, true).unwrap();
    }
    bench
}

/// Whole, byte by byte, and in random pieces.
fn each_way(side: Side, method: &str, scripts: &[Script], check: impl Fn(&Bench, &str)) {
    for (step, seed, how) in [(usize::MAX, 0, "whole"), (1, 0, "trickled"), (7, 99, "random")] {
        let mut bench = bench(side, method);
        bench.play(scripts, step);
        if seed > 0 {
            bench = self::bench(side, method);
            bench.pair.rng = Some(StdRng::seed_from_u64(seed));
            bench.play(scripts, step);
            for _ in 0..200 {
                bench.work();
            }
        }
        check(&bench, how);
    }
}

fn closes(side: Side, scripts: &[Script], code: Code, what: &str) {
    each_way(side, "GET", scripts, |bench, how| {
        assert_eq!(bench.outcome.map_err(|error| error.code), Err(code), "{what}, {how}");
        assert_eq!(bench.pair.closed[side as usize], Some(code), "{what}, {how}");
    });
}

fn fails(side: Side, method: &str, bytes: &[u8], code: Code, what: &str) {
    let stream = if side.is_server() { Bi } else { Response };
    let scripts = [control(&[]), script(stream, bytes, Fin)];
    each_way(side, method, &scripts, |bench, how| {
        assert_eq!(bench.outcome, Ok(()), "{what}, {how}");
        let failed = bench.events.iter().find_map(|event| match event {
            Event::Failed { code, .. } => Some(*code),
            _ => None,
        });
        assert_eq!(failed, Some(code), "{what}, {how}: {:?}", bench.events);
        assert_eq!(bench.connection.exchanges(), 0, "{what}, {how}");
        let finished = bench.events.iter().any(|event| matches!(event, Event::Finished { .. }));
        assert!(!finished, "{what}, {how}");
        if side.is_server() {
            let stream = StreamId::new(Side::Client, Dir::Bi, 0);
            assert!(bench.pair.resets.contains(&(side, stream, code)), "{what}, {how}");
            assert!(bench.pair.stops.contains(&(side, stream, code)), "{what}, {how}");
        }
    });
}

#[test]
fn control_stream_of_a_client() {
    for (frames, code, what) in [
        (&[0x04, 0x00][..], Code::FRAME_UNEXPECTED, "second SETTINGS"),
        (&[0x00, 0x00], Code::FRAME_UNEXPECTED, "DATA"),
        (&[0x01, 0x00], Code::FRAME_UNEXPECTED, "HEADERS"),
        (&[0x05, 0x01, 0x00], Code::FRAME_UNEXPECTED, "PUSH_PROMISE"),
        (&[0x02, 0x00], Code::FRAME_UNEXPECTED, "PRIORITY of HTTP/2"),
        (&[0x06, 0x00], Code::FRAME_UNEXPECTED, "PING of HTTP/2"),
        (&[0x08, 0x00], Code::FRAME_UNEXPECTED, "WINDOW_UPDATE of HTTP/2"),
        (&[0x09, 0x00], Code::FRAME_UNEXPECTED, "CONTINUATION of HTTP/2"),
        (&[0x03, 0x01, 0x00], Code::ID_ERROR, "CANCEL_PUSH"),
        (&[0x07, 0x00], Code::FRAME_ERROR, "empty GOAWAY"),
        (&[0x07, 0x03, 0x40, 0x00, 0x00], Code::FRAME_ERROR, "GOAWAY of three bytes"),
        (&[0x07, 0x02, 0x00, 0x00], Code::FRAME_ERROR, "GOAWAY with a byte too many"),
        (&[0x07, 0x01, 0x40], Code::FRAME_ERROR, "GOAWAY with a byte too few"),
        (&[0x07, 0x01, 0x01, 0x07, 0x01, 0x02], Code::ID_ERROR, "GOAWAY grows"),
        (&[0x0d, 0x01, 0x05, 0x0d, 0x01, 0x04], Code::ID_ERROR, "MAX_PUSH_ID shrinks"),
        (&[0x80, 0x0f, 0x07, 0x00, 0x00], Code::FRAME_ERROR, "empty PRIORITY_UPDATE"),
        (&[0x80, 0x0f, 0x07, 0x00, 0x01, 0x40], Code::FRAME_ERROR, "PRIORITY_UPDATE id cut"),
        (&[0x80, 0x0f, 0x07, 0x00, 0x01, 0x01], Code::ID_ERROR, "priority of a server's stream"),
        (&[0x80, 0x0f, 0x07, 0x00, 0x01, 0x02], Code::ID_ERROR, "priority of a control stream"),
        (&[0x80, 0x0f, 0x07, 0x00, 0x02, 0x41, 0x90], Code::ID_ERROR, "priority beyond the limit"),
        (&[0x80, 0x0f, 0x07, 0x01, 0x01, 0x00], Code::ID_ERROR, "priority of a push"),
        (&[0x80, 0x0f, 0x07, 0x00, 0x50, 0x01], Code::EXCESSIVE_LOAD, "huge PRIORITY_UPDATE"),
    ] {
        closes(Side::Server, &[control(frames)], code, what);
    }
}

#[test]
fn control_stream_of_a_server() {
    for (frames, code, what) in [
        (&[0x0d, 0x01, 0x05][..], Code::FRAME_UNEXPECTED, "MAX_PUSH_ID"),
        (&[0x80, 0x0f, 0x07, 0x00, 0x01, 0x00], Code::FRAME_UNEXPECTED, "PRIORITY_UPDATE"),
        (&[0x80, 0x0f, 0x07, 0x01, 0x01, 0x00], Code::FRAME_UNEXPECTED, "its push variant"),
        (&[0x03, 0x01, 0x00], Code::ID_ERROR, "CANCEL_PUSH"),
        (&[0x07, 0x01, 0x01], Code::ID_ERROR, "GOAWAY with a server's stream"),
        (&[0x07, 0x01, 0x02], Code::ID_ERROR, "GOAWAY with a unidirectional stream"),
        (&[0x07, 0x01, 0x04, 0x07, 0x01, 0x08], Code::ID_ERROR, "GOAWAY grows"),
    ] {
        closes(Side::Client, &[control(frames)], code, what);
    }
}

#[test]
fn settings() {
    for (bytes, code, what) in [
        (&[0x07, 0x01, 0x00][..], Code::MISSING_SETTINGS, "GOAWAY first"),
        (&[0x00, 0x00], Code::MISSING_SETTINGS, "DATA first"),
        (&[0x21, 0x00], Code::MISSING_SETTINGS, "unknown frame first"),
        (&[0x04, 0x02, 0x00, 0x00], Code::SETTINGS_ERROR, "setting 0x0"),
        (&[0x04, 0x02, 0x02, 0x00], Code::SETTINGS_ERROR, "SETTINGS_ENABLE_PUSH"),
        (&[0x04, 0x02, 0x03, 0x00], Code::SETTINGS_ERROR, "MAX_CONCURRENT_STREAMS"),
        (&[0x04, 0x02, 0x04, 0x00], Code::SETTINGS_ERROR, "INITIAL_WINDOW_SIZE"),
        (&[0x04, 0x02, 0x05, 0x00], Code::SETTINGS_ERROR, "MAX_FRAME_SIZE"),
        (&[0x04, 0x04, 0x06, 0x01, 0x06, 0x01], Code::SETTINGS_ERROR, "repeated setting"),
        (&[0x04, 0x01, 0x06], Code::FRAME_ERROR, "value missing"),
        (&[0x04, 0x02, 0x06, 0x40], Code::FRAME_ERROR, "value cut"),
        (&[0x04, 0x50, 0x01], Code::EXCESSIVE_LOAD, "larger than any"),
    ] {
        for side in [Side::Client, Side::Server] {
            let stream = script(Uni, &cat(&[&[0x00], bytes]), Open);
            closes(side, &[stream], code, what);
        }
    }
}

#[test]
fn unidirectional_streams() {
    let settings = &[0x00, 0x04, 0x00];
    for side in [Side::Client, Side::Server] {
        for (scripts, code, what) in [
            (vec![script(Uni, settings, Fin)], Code::CLOSED_CRITICAL_STREAM, "control ends"),
            (vec![script(Uni, settings, Reset)], Code::CLOSED_CRITICAL_STREAM, "control reset"),
            (vec![script(Uni, &[0x00], Fin)], Code::CLOSED_CRITICAL_STREAM, "empty control"),
            (vec![script(Uni, &[0x02], Fin)], Code::CLOSED_CRITICAL_STREAM, "encoder ends"),
            (vec![script(Uni, &[0x02], Reset)], Code::CLOSED_CRITICAL_STREAM, "encoder reset"),
            (vec![script(Uni, &[0x03], Fin)], Code::CLOSED_CRITICAL_STREAM, "decoder ends"),
            (vec![script(Uni, &[0x03], Reset)], Code::CLOSED_CRITICAL_STREAM, "decoder reset"),
            (vec![control(&[]), control(&[])], Code::STREAM_CREATION_ERROR, "second control"),
            (
                vec![script(Uni, &[0x02], Open), script(Uni, &[0x02], Open)],
                Code::STREAM_CREATION_ERROR,
                "second encoder",
            ),
            (
                vec![script(Uni, &[0x03], Open), script(Uni, &[0x40, 0x03], Open)],
                Code::STREAM_CREATION_ERROR,
                "second decoder",
            ),
            (
                vec![script(Uni, &[0x02, 0x3f, 0xbd, 0x01], Open)],
                Code::QPACK_ENCODER_STREAM_ERROR,
                "dynamic table capacity",
            ),
            (
                vec![script(Uni, &[0x02, 0x20, 0xc0, 0x00], Open)],
                Code::QPACK_ENCODER_STREAM_ERROR,
                "insert",
            ),
            (
                vec![script(Uni, &[0x03, 0x48, 0x84], Open)],
                Code::QPACK_DECODER_STREAM_ERROR,
                "acknowledgment",
            ),
            (
                vec![script(Uni, &[0x03, 0x01], Open)],
                Code::QPACK_DECODER_STREAM_ERROR,
                "insert count",
            ),
        ] {
            closes(side, &scripts, code, what);
        }
    }
    let push = [script(Uni, &[0x01, 0x00], Open)];
    closes(Side::Server, &push, Code::STREAM_CREATION_ERROR, "push from a client");
    closes(Side::Client, &push, Code::ID_ERROR, "push without MAX_PUSH_ID");
    let bi = [script(Bi, &[], Open)];
    closes(Side::Client, &bi, Code::STREAM_CREATION_ERROR, "bidirectional stream of a server");
}

#[test]
fn stopped_critical_streams() {
    for side in [Side::Client, Side::Server] {
        for index in 0..3 {
            let mut bench = Bench::new(side);
            let id = StreamId::new(side, Dir::Uni, index);
            sutura_h3::Transport::stop(&mut bench.pair.end(side.peer()), id, Code::NO_ERROR);
            bench.work();
            let code = bench.outcome.unwrap_err().code;
            assert_eq!(code, Code::CLOSED_CRITICAL_STREAM);
            assert_eq!(bench.pair.closed[side as usize], Some(code));
        }
    }
}

#[test]
fn frames_on_request_streams() {
    let frames: &[(&[u8], Code, &str)] = &[
        (&[0x04, 0x00], Code::FRAME_UNEXPECTED, "SETTINGS"),
        (&[0x07, 0x01, 0x00], Code::FRAME_UNEXPECTED, "GOAWAY"),
        (&[0x03, 0x01, 0x00], Code::FRAME_UNEXPECTED, "CANCEL_PUSH"),
        (&[0x0d, 0x01, 0x00], Code::FRAME_UNEXPECTED, "MAX_PUSH_ID"),
        (&[0x80, 0x0f, 0x07, 0x00, 0x01, 0x00], Code::FRAME_UNEXPECTED, "PRIORITY_UPDATE"),
        (&[0x80, 0x0f, 0x07, 0x01, 0x01, 0x00], Code::FRAME_UNEXPECTED, "its push variant"),
        (&[0x02, 0x00], Code::FRAME_UNEXPECTED, "PRIORITY of HTTP/2"),
        (&[0x06, 0x00], Code::FRAME_UNEXPECTED, "PING of HTTP/2"),
        (&[0x08, 0x00], Code::FRAME_UNEXPECTED, "WINDOW_UPDATE of HTTP/2"),
        (&[0x09, 0x00], Code::FRAME_UNEXPECTED, "CONTINUATION of HTTP/2"),
    ];
    for side in [Side::Client, Side::Server] {
        let (stream, head) = if side.is_server() { (Bi, GET) } else { (Response, OK) };
        for (bytes, code, what) in frames {
            for before in [&[][..], head, &cat(&[head, &[0x00, 0x01, b'x']])] {
                let bytes = cat(&[before, bytes]);
                closes(side, &[script(stream, &bytes, Open)], *code, what);
            }
        }
        let promise = if side.is_server() { Code::FRAME_UNEXPECTED } else { Code::ID_ERROR };
        let trailed = cat(&[head, TRAILERS]);
        for (bytes, end, code, what) in [
            (cat(&[&[0x05, 0x01, 0x00]]), Open, promise, "PUSH_PROMISE"),
            (cat(&[&[0x00, 0x00]]), Open, Code::FRAME_UNEXPECTED, "DATA first"),
            (cat(&[&trailed, &[0x00, 0x00]]), Open, Code::FRAME_UNEXPECTED, "DATA after trailers"),
            (cat(&[&trailed, TRAILERS]), Open, Code::FRAME_UNEXPECTED, "second trailers"),
            (cat(&[&[0x01]]), Fin, Code::FRAME_ERROR, "frame header cut"),
            (cat(&[&[0x01, 0x08, 0x00]]), Fin, Code::FRAME_ERROR, "HEADERS cut"),
            (cat(&[&[0x01, 0x08]]), Fin, Code::FRAME_ERROR, "HEADERS cut at once"),
            (cat(&[head, &[0x00, 0x02, 0x00]]), Fin, Code::FRAME_ERROR, "DATA cut"),
            (cat(&[head, &[0x00, 0x02]]), Fin, Code::FRAME_ERROR, "DATA cut at once"),
            (cat(&[head, &[0x21, 0x02, 0x00]]), Fin, Code::FRAME_ERROR, "unknown frame cut"),
            (cat(&[&[0x01, 0x00]]), Open, Code::QPACK_DECOMPRESSION_FAILED, "no section"),
            (
                cat(&[&[0x01, 0x04, 0x03, 0x81, 0x10, 0x11]]),
                Open,
                Code::QPACK_DECOMPRESSION_FAILED,
                "dynamic table",
            ),
            (
                cat(&[head, &[0x01, 0x03, 0x00, 0x00, 0x80]]),
                Open,
                Code::QPACK_DECOMPRESSION_FAILED,
                "dynamic table in trailers",
            ),
        ] {
            closes(side, &[script(stream, &bytes, end)], code, what);
        }
    }
    let interim = script(Response, &cat(&[HINTS, &[0x00, 0x00]]), Open);
    closes(Side::Client, &[interim], Code::FRAME_UNEXPECTED, "DATA after an interim response");
}

/// A HEADERS frame with a section of literal lines.
fn section(lines: &[(&str, &str)]) -> Vec<u8> {
    let mut block = vec![0, 0];
    for (name, value) in lines {
        assert!(name.len() < 7 + 128 && value.len() < 127);
        if name.len() < 7 {
            block.push(0x20 | name.len() as u8);
        } else {
            block.extend_from_slice(&[0x27, name.len() as u8 - 7]);
        }
        block.extend_from_slice(name.as_bytes());
        block.push(value.len() as u8);
        block.extend_from_slice(value.as_bytes());
    }
    let mut frame = vec![0x01];
    frame.extend_from_slice(&(0x4000 | block.len() as u16).to_be_bytes());
    frame.extend(block);
    frame
}

/// The pseudo-header fields of a GET and some more lines.
fn request(more: &[(&str, &str)]) -> Vec<u8> {
    let pseudo = [(":method", "GET"), (":scheme", "https"), (":authority", "a"), (":path", "/")];
    section(&[&pseudo[..], more].concat())
}

fn response(status: &str, more: &[(&str, &str)]) -> Vec<u8> {
    section(&[&[(":status", status)], more].concat())
}

#[test]
fn malformed_requests() {
    let data: &[u8] = &[0x00, 0x02, b'h', b'i'];
    for (bytes, code, what) in [
        (vec![], Code::REQUEST_INCOMPLETE, "nothing"),
        (vec![0x21, 0x01, 0x00], Code::REQUEST_INCOMPLETE, "an unknown frame only"),
        (section(&[]), Code::MESSAGE_ERROR, "empty section"),
        (section(&[(":method", "GET")]), Code::MESSAGE_ERROR, "pseudo-header fields missing"),
        (request(&[(":path", "/")]), Code::MESSAGE_ERROR, "pseudo-header field repeated"),
        (request(&[("a", "b"), (":status", "1")]), Code::MESSAGE_ERROR, "pseudo after regular"),
        (request(&[("Accept", "b")]), Code::MESSAGE_ERROR, "upper case"),
        (request(&[("upgrade", "b")]), Code::MESSAGE_ERROR, "connection-specific"),
        (request(&[("a", "b\n")]), Code::MESSAGE_ERROR, "line feed"),
        (cat(&[&request(&[("content-length", "1")]), data]), Code::MESSAGE_ERROR, "body too long"),
        (cat(&[&request(&[("content-length", "3")]), data]), Code::MESSAGE_ERROR, "body too short"),
        (request(&[("content-length", "3")]), Code::MESSAGE_ERROR, "no body"),
        (
            cat(&[&request(&[("content-length", "3")]), data, TRAILERS]),
            Code::MESSAGE_ERROR,
            "body too short before trailers",
        ),
        (cat(&[GET, OK]), Code::MESSAGE_ERROR, "pseudo-header field in trailers"),
        (cat(&[GET, &section(&[("te", "x")])]), Code::MESSAGE_ERROR, "te in trailers"),
        (vec![0x01, 0x80, 0x02, 0x00, 0x00], Code::EXCESSIVE_LOAD, "section of 128 KiB"),
    ] {
        // The last has no payload: what is refused by its header needs none.
        if code == Code::EXCESSIVE_LOAD {
            let mut bench = Bench::new(Side::Server);
            bench.play(&[script(Bi, &bytes, Open)], usize::MAX);
            assert!(
                matches!(bench.events[..], [Event::Failed { code: found, .. }] if found == code)
            );
            continue;
        }
        fails(Side::Server, "GET", &bytes, code, what);
    }
}

#[test]
fn malformed_responses() {
    let data: &[u8] = &[0x00, 0x02, b'h', b'i'];
    for (method, bytes, code, what) in [
        ("GET", vec![], Code::MESSAGE_ERROR, "nothing"),
        ("GET", HINTS.to_vec(), Code::MESSAGE_ERROR, "no final response"),
        ("GET", response("101", &[]), Code::MESSAGE_ERROR, "status 101"),
        ("GET", response("20", &[]), Code::MESSAGE_ERROR, "status of two digits"),
        ("GET", request(&[]), Code::MESSAGE_ERROR, "pseudo-header fields of a request"),
        (
            "GET",
            cat(&[&response("200", &[("content-length", "1")]), data]),
            Code::MESSAGE_ERROR,
            "body too long",
        ),
        ("GET", response("200", &[("content-length", "1")]), Code::MESSAGE_ERROR, "no body"),
        ("HEAD", cat(&[OK, data]), Code::MESSAGE_ERROR, "body for HEAD"),
        ("GET", cat(&[&response("304", &[]), data]), Code::MESSAGE_ERROR, "body with 304"),
        ("GET", cat(&[&response("204", &[]), data]), Code::MESSAGE_ERROR, "body with 204"),
        ("GET", HINTS.repeat(17), Code::EXCESSIVE_LOAD, "too many interim responses"),
    ] {
        fails(Side::Client, method, &bytes, code, what);
    }
}

/// What looks odd and is right.
#[test]
fn tolerated() {
    let unknown: &[u8] = &[0x21, 0x03, 1, 2, 3];
    let request = cat(&[unknown, GET, unknown, &[0x00, 0x00], unknown, TRAILERS, unknown]);
    let scripts = [
        // A reserved stream, a stream without a type, one that is reset, and a long type.
        script(Uni, &[0x21, 1, 2, 3], Fin),
        script(Uni, &[], Fin),
        script(Uni, &[0x40], Reset),
        script(Uni, &[0x40, 0x21], Reset),
        script(
            Uni,
            &[0x40, 0x00, 0x40, 0x04, 0x40, 0x00, 0x21, 0x02, 0, 0, 0x0d, 0x01, 0x07],
            Open,
        ),
        script(Uni, &[0x02, 0x20, 0x20], Open),
        script(Uni, &[0x03, 0x48, 0x7f, 0x80, 0x01], Open),
        script(Bi, &request, Fin),
    ];
    each_way(Side::Server, "GET", &scripts, |bench, how| {
        assert_eq!(bench.outcome, Ok(()), "{how}");
        let found: Vec<_> = bench
            .events
            .iter()
            .filter(|event| !matches!(event, Event::Settings(_) | Event::Data { .. }))
            .collect();
        let stream = StreamId(0);
        match found[..] {
            [
                Event::Headers { stream: a, fields },
                Event::Trailers { stream: b, .. },
                Event::Finished { stream: c },
            ] => {
                assert_eq!((*a, *b, *c), (stream, stream, stream), "{how}");
                assert_eq!(*fields, {
                    let order = [":method", ":scheme", ":path", ":authority"];
                    let all = Fields::request("GET", "https", "a", "/");
                    order
                        .iter()
                        .map(|name| all.iter().find(|field| field.name == *name).unwrap().clone())
                        .collect()
                });
            }
            _ => panic!("{how}: {found:?}"),
        }
    });
    // HEAD may say how long the body would be; a tunnel has no length.
    let head = response("200", &[("content-length", "10")]);
    for (method, bytes) in [("HEAD", head.clone()), ("GET", response("304", &[]))] {
        let mut bench = bench(Side::Client, method);
        bench.play(&[script(Response, &bytes, Fin)], 1);
        assert_eq!(bench.events.last(), Some(&Event::Finished { stream: StreamId(0) }), "{method}");
    }
}

/// RFC 9114 section 4.4: only DATA follows a CONNECT.
#[test]
fn tunnels_have_no_trailers() {
    let connect = section(&[(":method", "CONNECT"), (":authority", "a:1")]);
    let bytes = cat(&[&connect, &[0x21, 0x00, 0x00, 0x01, b'x'], TRAILERS]);
    closes(Side::Server, &[script(Bi, &bytes, Open)], Code::FRAME_UNEXPECTED, "trailers");
    let mut bench = Bench::new(Side::Client);
    let fields = Fields::new().with(":method", "CONNECT").with(":authority", "a:1");
    let mut end = bench.pair.end(Side::Client);
    let stream = bench.connection.send_request(&mut end, &fields, None, false).unwrap();
    let trailers = Fields::new().with("a", "b");
    assert!(bench.connection.send_trailers(&mut end, stream, &trailers).is_err());
    bench.play(&[script(Response, &cat(&[OK, TRAILERS]), Open)], 1);
    assert_eq!(bench.outcome.unwrap_err().code, Code::FRAME_UNEXPECTED);
}

#[test]
fn after_an_error_everything_says_so() {
    let mut bench = Bench::new(Side::Client);
    bench.play(&[script(Bi, &[], Open)], 1);
    let error = bench.outcome.unwrap_err();
    let mut end = bench.pair.end(Side::Client);
    assert_eq!(bench.connection.process(&mut end), Err(error));
    let sent = bench.connection.send_request(&mut end, &get(), None, true);
    assert_eq!(sent, Err(error.into()));
    assert_eq!(bench.connection.read_body(&mut end, StreamId(0), &mut [0]), Err(error.into()));
}
