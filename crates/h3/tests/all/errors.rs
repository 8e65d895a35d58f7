//! Every protocol violation, and the error code that answers it.

use crate::common::Ending::{Fin, Open, Reset};
use crate::common::Stream::{Bi, Response, Uni};
use crate::common::{Bench, GET, OK, Script, get, script};
use sutura_h3::{Code, Event, Field, Fields};
use sutura_proto::{Dir, Side, StreamId};

/// A control stream with empty SETTINGS, and more frames after it.
fn control(frames: &[u8]) -> Script {
    script(Uni, &[&[0x00, 0x04, 0x00], frames].concat(), Open)
}

/// HEADERS with `:status` 103.
const HINTS: &[u8] = &[0x01, 0x03, 0x00, 0x00, 0xd8];
/// HEADERS of trailers: `age: 0`.
const TRAILERS: &[u8] = &[0x01, 0x03, 0x00, 0x00, 0xc2];

fn cat(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

/// A bench of `side`; a client has already sent one request.
fn bench(side: Side, method: &str) -> Bench {
    let mut bench = Bench::new(side);
    if side.is_client() {
        let fields = Fields::request(method.to_owned(), "https", "a", "/");
        let mut end = bench.pair.end(side);
        bench.connection.send_request(&mut end, &fields, None, true).unwrap();
    }
    bench
}

/// Plays the scripts whole, byte by byte, and in random pieces.
fn each_way(side: Side, method: &str, scripts: &[Script], check: impl Fn(&Bench, &str)) {
    for (step, seed, how) in [(usize::MAX, 0, "whole"), (1, 0, "trickled"), (7, 99, "random")] {
        let mut bench = bench(side, method);
        bench.play(scripts, step);
        if seed > 0 {
            bench = self::bench(side, method);
            bench.pair.rng = Some(sutura_random::Rng::new(seed));
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
    let open = |bytes: &[u8]| script(Uni, bytes, Open);
    let (closed, created) = (Code::CLOSED_CRITICAL_STREAM, Code::STREAM_CREATION_ERROR);
    let (encoder, decoder) = (Code::QPACK_ENCODER_STREAM_ERROR, Code::QPACK_DECODER_STREAM_ERROR);
    for side in [Side::Client, Side::Server] {
        for (scripts, code, what) in [
            (vec![script(Uni, settings, Fin)], closed, "control ends"),
            (vec![script(Uni, settings, Reset)], closed, "control reset"),
            (vec![script(Uni, &[0x00], Fin)], closed, "empty control"),
            (vec![script(Uni, &[0x02], Fin)], closed, "encoder ends"),
            (vec![script(Uni, &[0x02], Reset)], closed, "encoder reset"),
            (vec![script(Uni, &[0x03], Fin)], closed, "decoder ends"),
            (vec![script(Uni, &[0x03], Reset)], closed, "decoder reset"),
            (vec![control(&[]), control(&[])], created, "second control"),
            (vec![open(&[0x02]), open(&[0x02])], created, "second encoder"),
            (vec![open(&[0x03]), open(&[0x40, 0x03])], created, "second decoder"),
            (vec![open(&[0x02, 0x3f, 0xe2, 0x1f])], encoder, "dynamic table capacity"),
            (vec![open(&[0x02, 0x20, 0xc0, 0x00])], encoder, "insert"),
            (vec![open(&[0x03, 0x48, 0x84])], decoder, "acknowledgment"),
            (vec![open(&[0x03, 0x01])], decoder, "insert count"),
        ] {
            closes(side, &scripts, code, what);
        }
    }
    let push = [open(&[0x01, 0x00])];
    closes(Side::Server, &push, created, "push from a client");
    closes(Side::Client, &push, Code::ID_ERROR, "push without MAX_PUSH_ID");
    let bi = [script(Bi, &[], Open)];
    closes(Side::Client, &bi, created, "bidirectional stream of a server");
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
    let (unexpected, cut) = (Code::FRAME_UNEXPECTED, Code::FRAME_ERROR);
    let qpack = Code::QPACK_DECOMPRESSION_FAILED;
    let frames: &[(&[u8], &str)] = &[
        (&[0x04, 0x00], "SETTINGS"),
        (&[0x07, 0x01, 0x00], "GOAWAY"),
        (&[0x03, 0x01, 0x00], "CANCEL_PUSH"),
        (&[0x0d, 0x01, 0x00], "MAX_PUSH_ID"),
        (&[0x80, 0x0f, 0x07, 0x00, 0x01, 0x00], "PRIORITY_UPDATE"),
        (&[0x80, 0x0f, 0x07, 0x01, 0x01, 0x00], "its push variant"),
        (&[0x02, 0x00], "PRIORITY of HTTP/2"),
        (&[0x06, 0x00], "PING of HTTP/2"),
        (&[0x08, 0x00], "WINDOW_UPDATE of HTTP/2"),
        (&[0x09, 0x00], "CONTINUATION of HTTP/2"),
    ];
    for side in [Side::Client, Side::Server] {
        let (stream, head) = if side.is_server() { (Bi, GET) } else { (Response, OK) };
        for (bytes, what) in frames {
            for before in [&[][..], head, &cat(&[head, &[0x00, 0x01, b'x']])] {
                let bytes = cat(&[before, bytes]);
                closes(side, &[script(stream, &bytes, Open)], unexpected, what);
            }
        }
        let promise = if side.is_server() { unexpected } else { Code::ID_ERROR };
        let trailed = cat(&[head, TRAILERS]);
        for (bytes, end, code, what) in [
            (cat(&[&[0x05, 0x01, 0x00]]), Open, promise, "PUSH_PROMISE"),
            (cat(&[&[0x00, 0x00]]), Open, unexpected, "DATA first"),
            (cat(&[&trailed, &[0x00, 0x00]]), Open, unexpected, "DATA after trailers"),
            (cat(&[&trailed, TRAILERS]), Open, unexpected, "second trailers"),
            (cat(&[&[0x01]]), Fin, cut, "frame header cut"),
            (cat(&[&[0x01, 0x08, 0x00]]), Fin, cut, "HEADERS cut"),
            (cat(&[&[0x01, 0x08]]), Fin, cut, "HEADERS cut at once"),
            (cat(&[head, &[0x00, 0x02, 0x00]]), Fin, cut, "DATA cut"),
            (cat(&[head, &[0x00, 0x02]]), Fin, cut, "DATA cut at once"),
            (cat(&[head, &[0x21, 0x02, 0x00]]), Fin, cut, "unknown frame cut"),
            (cat(&[&[0x01, 0x00]]), Open, qpack, "no section"),
            (cat(&[&[0x01, 0x03, 0x00, 0x00, 0x80]]), Open, qpack, "dynamic table"),
            (
                cat(&[head, &[0x01, 0x03, 0x00, 0x00, 0x80]]),
                Open,
                qpack,
                "dynamic table in trailers",
            ),
        ] {
            closes(side, &[script(stream, &bytes, end)], code, what);
        }
    }
    let interim = script(Response, &cat(&[HINTS, &[0x00, 0x00]]), Open);
    closes(Side::Client, &[interim], unexpected, "DATA after an interim response");
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

/// The unit tests of messages cover everything that can be wrong with fields.
#[test]
fn malformed_requests() {
    let (malformed, incomplete) = (Code::MESSAGE_ERROR, Code::REQUEST_INCOMPLETE);
    let data: &[u8] = &[0x00, 0x02, b'h', b'i'];
    let length = |value| request(&[("content-length", value)]);
    for (bytes, code, what) in [
        (vec![], incomplete, "nothing"),
        (vec![0x21, 0x01, 0x00], incomplete, "an unknown frame only"),
        (section(&[]), malformed, "empty section"),
        (request(&[("a", "b"), (":status", "1")]), malformed, "pseudo after regular"),
        (request(&[("upgrade", "b")]), malformed, "connection-specific"),
        (cat(&[&length("1"), data]), malformed, "body too long"),
        (cat(&[&length("3"), data]), malformed, "body too short"),
        (length("3"), malformed, "no body"),
        (cat(&[&length("3"), data, TRAILERS]), malformed, "body too short before trailers"),
        (cat(&[GET, OK]), malformed, "pseudo-header field in trailers"),
        (cat(&[GET, &section(&[("te", "x")])]), malformed, "te in trailers"),
    ] {
        fails(Side::Server, "GET", &bytes, code, what);
    }
    // A section of 128 KiB is refused by its frame header, without needing its payload.
    let mut bench = Bench::new(Side::Server);
    bench.play(&[script(Bi, &[0x01, 0x80, 0x02, 0x00, 0x00], Open)], usize::MAX);
    assert!(matches!(bench.events[..], [Event::Refused { status: 431, .. }]));
    let stream = StreamId::new(Side::Client, Dir::Bi, 0);
    assert!(bench.pair.stops.contains(&(Side::Server, stream, Code::NO_ERROR)));
}

#[test]
fn malformed_responses() {
    let (malformed, load) = (Code::MESSAGE_ERROR, Code::EXCESSIVE_LOAD);
    let data: &[u8] = &[0x00, 0x02, b'h', b'i'];
    let length = response("200", &[("content-length", "1")]);
    for (method, bytes, code, what) in [
        ("GET", vec![], malformed, "nothing"),
        ("GET", HINTS.to_vec(), malformed, "no final response"),
        ("GET", response("101", &[]), malformed, "status 101"),
        ("GET", request(&[]), malformed, "pseudo-header fields of a request"),
        ("GET", cat(&[&length, data]), malformed, "body too long"),
        ("GET", length.clone(), malformed, "no body"),
        ("HEAD", cat(&[OK, data]), malformed, "body for HEAD"),
        ("GET", cat(&[&response("304", &[]), data]), malformed, "body with 304"),
        ("GET", cat(&[&response("204", &[]), data]), malformed, "body with 204"),
        ("GET", HINTS.repeat(17), load, "too many interim responses"),
    ] {
        fails(Side::Client, method, &bytes, code, what);
    }
}

/// Unusual input that is valid.
#[test]
fn tolerated() {
    let unknown: &[u8] = &[0x21, 0x03, 1, 2, 3];
    let request = cat(&[unknown, GET, unknown, &[0x00, 0x00], unknown, TRAILERS, unknown]);
    let scripts = [
        // A reserved stream, a stream without a type, a stream that is reset, and a long type.
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
        let told = |event: &&Event| !matches!(event, Event::Settings(_) | Event::Data { .. });
        let stream = StreamId(0);
        let lines = [(":method", "GET"), (":scheme", "https"), (":path", "/"), (":authority", "a")];
        let fields = lines.map(|(name, value)| Field::new(name, value)).into_iter().collect();
        let trailers = Fields::new().with("age", "0");
        let expected = [
            Event::Headers { stream, fields },
            Event::Trailers { stream, fields: trailers },
            Event::Finished { stream },
        ];
        assert!(bench.events.iter().filter(told).eq(&expected), "{how}: {:?}", bench.events);
    });
    // A response to HEAD may announce a body length; a tunnel has no length.
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
