//! Further attempts after failures that may pass.

use std::fs;

use crate::support::scripted::{Answer, Scripted};
use crate::support::*;

const RETRY: [&str; 4] = ["--retry", "3", "--retry-delay", "0"];

#[test]
fn statuses_that_may_pass_are_asked_for_again() {
    let server = Scripted::start(|told| {
        let status: u16 = told.path[1..].parse().unwrap();
        if told.earlier < 2 {
            Answer::new(status, "busy").field("retry-after", "0")
        } else {
            Answer::new(200, "done")
        }
    });
    for path in ["/408", "/429", "/500", "/502", "/503", "/504"] {
        let (output, told) = server.get(path, &[&RETRY[..], &["-o", "-"]].concat());
        // The words of the failures are not mixed with the response.
        assert_eq!((success(&output).as_str(), told.len()), ("done", 3), "{path}");
        let notes = String::from_utf8_lossy(&output.stderr).into_owned();
        let first = format!("{path}: status {}; attempt 2 of 4 follows in 0 s", &path[1..]);
        assert!(notes.lines().next().unwrap().ends_with(&first), "{notes}");
        assert_eq!(notes.lines().count(), 2, "{notes}");
    }
    for path in ["/404", "/501"] {
        let (output, told) = server.get(path, &[&RETRY[..], &["-o", "-"]].concat());
        complaint(&output, 7);
        assert_eq!((output.stdout.as_slice(), told.len()), (&b"busy"[..], 1));
    }
    // Without --retry, there is one attempt; with -s, there are no notes.
    let server = Scripted::start(|_| Answer::new(503, "busy"));
    let (output, told) = server.get("/", &["-o", "-"]);
    complaint(&output, 7);
    assert_eq!(told.len(), 1);
    let (output, told) = server.get("/", &[&RETRY[..], &["-s", "-o", "-"]].concat());
    complaint(&output, 7);
    assert_eq!((output.stdout.as_slice(), told.len()), (&b"busy"[..], 4));
}

/// A server whose first three responses break off, after three more bytes each; with this validator.
fn breaking(etag: &'static str) -> Scripted {
    Scripted::start(move |told| {
        let from = told.field("range").map_or(0, |range| {
            let from = range.strip_prefix("bytes=").unwrap().strip_suffix('-').unwrap();
            from.parse::<usize>().unwrap()
        });
        let rest = &"0123456789"[from..];
        let range = format!("bytes {from}-9/10");
        let answer = if from > 0 {
            Answer::new(206, rest).field("content-range", &range)
        } else {
            Answer::new(200, rest)
        };
        let answer = answer.field("etag", etag).with_length();
        if told.earlier < 3 { answer.cut(3) } else { answer }
    })
}

#[test]
fn a_response_with_a_strong_validator_goes_on_where_it_broke_off() {
    let scratch = Scratch::new();
    let file = scratch.path().join("a");
    let path = file.to_str().unwrap();
    for target in [path, "-"] {
        let server = breaking("\"v1\"");
        let (output, told) = server.get("/a", &[&RETRY[..], &["-o", target]].concat());
        let shown = success(&output);
        let content = if target == "-" { shown } else { fs::read_to_string(&file).unwrap() };
        assert_eq!(content, "0123456789");
        let asked: Vec<_> =
            told.iter().map(|told| (told.field("range"), told.field("if-range"))).collect();
        let etag = Some("\"v1\"");
        let rest = ["bytes=3-", "bytes=6-", "bytes=9-"].map(|range| (Some(range), etag));
        assert_eq!(asked[0], (None, None));
        assert_eq!(asked[1..], rest);
    }
    assert_eq!(names(scratch.path()), ["a"]);
}

#[test]
fn a_response_without_one_begins_anew() {
    let scratch = Scratch::new();
    let file = scratch.path().join("a");
    let server = breaking("W/\"v1\"");
    let args = [&RETRY[..], &["-o", file.to_str().unwrap()]].concat();
    let (output, told) = server.get("/a", &args);
    success(&output);
    assert_eq!(fs::read_to_string(&file).unwrap(), "0123456789");
    assert_eq!(told.len(), 4);
    assert!(told.iter().all(|told| told.field("range").is_none()));
    // What standard output has got cannot be taken back.
    let (output, told) = breaking("W/\"v1\"").get("/a", &[&RETRY[..], &["-o", "-"]].concat());
    let text = complaint(&output, 8);
    assert!(text.contains("not tried again: what was written cannot be taken back"), "{text}");
    assert_eq!((output.stdout.as_slice(), told.len()), (&b"012"[..], 1));
    // And standard input is read once.
    let server = Scripted::start(|_| Answer::new(503, ""));
    let (output, told) = server.get("/a", &[&RETRY[..], &["-T", "-"]].concat());
    let text = complaint(&output, 7);
    assert!(text.contains("not tried again: what was sent cannot be read a second time"), "{text}");
    assert_eq!(told.len(), 1);
}

/// Two requests of one server share the outcome of each attempt to connect.
#[test]
fn connections_that_do_not_come_about_are_tried_again() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let url = |path: &str| format!("https://{}{path}", silent.local_addr().unwrap());
    let args = ["--connect-timeout", "0.1", "--retry", "2", "--retry-delay", "0", "-o", "/"];
    let urls = [url("/a"), url("/b")];
    let args = ["get", "-k"].into_iter().chain(args).chain(urls.iter().map(String::as_str));
    let output = run(args);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(5), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    // Two attempts of each URL are noted, and the failure is told once.
    assert_eq!(lines.len(), 5, "{text}");
    assert_eq!(lines.iter().filter(|line| line.contains("; attempt 3 of 3 follows")).count(), 2);
    assert!(lines[4].ends_with("does not answer over QUIC within 0.1 s"), "{text}");
}
