//! Parts of files: ranges, and downloads that go on.

use std::fs;

use crate::support::scripted::{Answer, Scripted, Told};
use crate::support::*;

const WHOLE: &str = "0123456789";

/// Answers a request for one range as RFC 9110 says.
fn part(told: &Told) -> Answer {
    let Some(range) = told.field("range") else { return Answer::new(200, WHOLE).with_length() };
    let (first, last) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
    let first: usize = first.parse().unwrap();
    let last: usize = last.parse().unwrap_or(WHOLE.len() - 1);
    if first >= WHOLE.len() {
        return Answer::new(416, "no such part").field("content-range", "bytes */10");
    }
    let range = format!("bytes {first}-{last}/10");
    Answer::new(206, &WHOLE[first..=last]).field("content-range", &range).with_length()
}

#[test]
fn a_range_is_asked_for() {
    let server = Scripted::start(part);
    let (output, told) = server.get("/a", &["-r", "2-4", "-o", "-"]);
    assert_eq!((success(&output).as_str(), told[0].field("range")), ("234", Some("bytes=2-4")));
}

#[test]
fn a_download_goes_on_where_the_file_ends() {
    let server = Scripted::start(part);
    let scratch = Scratch::new();
    let file = scratch.path().join("a");
    let path = file.to_str().unwrap();
    let content = || fs::read_to_string(&file).unwrap();
    for (before, range) in [(None, None), (Some("0123"), Some("bytes=4-")), (Some(""), None)] {
        match before {
            Some(before) => fs::write(&file, before).unwrap(),
            None => assert!(!file.exists()),
        }
        let (output, told) = server.get("/a", &["-C", "-", "-o", path]);
        success(&output);
        assert_eq!((content().as_str(), told[0].field("range")), (WHOLE, range));
        assert_eq!(told[0].field("if-range"), None);
    }
    // What is complete stays as it is.
    let (output, told) = server.get("/a", &["-C", "-", "-o", path]);
    success(&output);
    let note = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(note.contains("the file is complete already"), "{note}");
    assert_eq!((content().as_str(), told[0].field("range")), (WHOLE, Some("bytes=10-")));
    // A file that is longer than the server's is something else.
    fs::write(&file, "longer than that").unwrap();
    let (output, _) = server.get("/a", &["-C", "-", "-o", path]);
    assert!(complaint(&output, 7).contains("status 416"));
    assert_eq!(content(), "longer than that");
    // At a byte of the user's choice: what is behind it is replaced.
    fs::write(&file, "012345xxxxxx").unwrap();
    let (output, told) = server.get("/a", &["-C", "6", "-o", path]);
    success(&output);
    assert_eq!((content().as_str(), told[0].field("range")), (WHOLE, Some("bytes=6-")));
    let (output, _) = server.get("/a", &["-C", "7", "-o", "-"]);
    assert_eq!(success(&output), "789");
}

#[test]
fn a_server_without_parts_sends_the_whole() {
    let server = Scripted::start(|told| match told.path.as_str() {
        "/wrong" => Answer::new(206, "789").field("content-range", "bytes 7-9/10"),
        _ => Answer::new(200, WHOLE),
    });
    let scratch = Scratch::new();
    let file = scratch.path().join("a");
    let path = file.to_str().unwrap();
    fs::write(&file, "from another time").unwrap();
    let (output, _) = server.get("/a", &["-C", "-", "-o", path]);
    success(&output);
    let note = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(note.contains("the server sends no parts, so it begins anew"), "{note}");
    assert_eq!(fs::read_to_string(&file).unwrap(), WHOLE);
    // A part that was not asked for is not put behind what is there.
    fs::write(&file, "0123").unwrap();
    let (output, _) = server.get("/wrong", &["-C", "-", "-o", path]);
    let text = complaint(&output, 8);
    assert!(text.contains("another part than that from byte 4 on"), "{text}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "0123");
    // Nobody else asked for the beginning.
    let (output, _) = server.get("/a", &["-C", "4", "-o", "-"]);
    complaint(&output, 7);
    assert!(output.stdout.is_empty());
}

#[test]
fn what_came_before_a_break_can_be_continued() {
    let server = Scripted::start(|told| {
        let answer = part(told);
        if told.earlier == 0 { answer.cut(4) } else { answer }
    });
    let scratch = Scratch::new();
    let file = scratch.path().join("a");
    let path = file.to_str().unwrap();
    let (output, _) = server.get("/a", &["-C", "-", "-o", path]);
    assert!(complaint(&output, 8).contains("broke off after 4 of 10 bytes"));
    assert_eq!(fs::read_to_string(&file).unwrap(), "0123");
    let (output, told) = server.get("/a", &["-C", "-", "-o", path]);
    success(&output);
    assert_eq!(told[0].field("range"), Some("bytes=4-"));
    assert_eq!(fs::read_to_string(&file).unwrap(), WHOLE);
}
