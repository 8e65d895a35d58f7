//! Redirections are followed by the rules of curl.

use crate::support::scripted::{Answer, Scripted, Told};
use crate::support::*;

/// A server that redirects `/STATUS` to `/end`, `/loop` to itself, and `/out` to another server.
fn redirecting(elsewhere: String) -> Scripted {
    Scripted::start(move |told| {
        let to = |status, location: &str| Answer::new(status, "moved").field("location", location);
        match told.path.as_str() {
            "/end" | "/deep/end" => Answer::new(200, format!("{} {}", told.method, told.length)),
            "/loop" => to(302, "/loop"),
            "/out" => to(302, &elsewhere),
            "/plain" => to(301, "http://example.org/"),
            "/deep/relative" => to(307, "end?x=y#z/../"),
            "/deep/end?x=y" => Answer::new(200, "there"),
            status => to(status[1..].parse().unwrap(), "/end"),
        }
    })
}

fn asked(told: &[Told]) -> Vec<String> {
    told.iter().map(|told| format!("{} {}", told.method, told.path)).collect()
}

#[test]
fn redirections_are_followed_on_request_only() {
    let server = redirecting(String::new());
    let (output, told) = server.get("/302", &["-o", "-"]);
    assert!(complaint(&output, 7).contains("status 302, moved to /end (-L follows)"));
    assert_eq!((output.stdout.as_slice(), told.len()), (&b"moved"[..], 1));
    let (output, told) = server.get("/302", &["-L", "-o", "-"]);
    assert_eq!(success(&output), "GET 0");
    assert_eq!(asked(&told), ["GET /302", "GET /end"]);
    let (output, told) = server.get("/deep/relative", &["-L", "-o", "-"]);
    assert_eq!(success(&output), "there");
    assert_eq!(told[1].path, "/deep/end?x=y");
}

#[test]
fn the_method_and_the_body_go_on_or_not() {
    let server = redirecting(String::new());
    let scratch = Scratch::new();
    let file = scratch.path().join("file");
    std::fs::write(&file, "12345").unwrap();
    let file = file.to_str().unwrap();
    for (path, args, end) in [
        ("/301", &["-d", "abc"][..], "GET 0"),
        ("/303", &["-d", "abc"], "GET 0"),
        ("/307", &["-d", "abc"], "POST 3"),
        ("/308", &["-T", file], "PUT 5"),
        ("/302", &["-T", file], "PUT 5"),
        ("/303", &["-T", file], "GET 0"),
        ("/302", &["-d", "abc", "-X", "PATCH"], "PATCH 0"),
        ("/307", &["-d", "abc", "-X", "PATCH"], "PATCH 3"),
    ] {
        let (output, told) = server.get(path, &[&["-L"], args].concat());
        assert_eq!(success(&output), end, "{path} {args:?}");
        let has_type = told[1].field("content-type").is_some();
        assert_eq!(has_type, args.contains(&"-d") && !end.ends_with('0'), "{path} {args:?}");
    }
    // The head of each response is shown.
    let (output, told) = server.get("/303", &["-L", "-I"]);
    let heads = success(&output);
    assert_eq!(heads, "HTTP/3 303\r\nlocation: /end\r\n\r\nHTTP/3 200\r\n\r\n");
    assert_eq!(asked(&told), ["HEAD /303", "HEAD /end"]);
}

#[test]
fn standard_input_is_not_sent_twice() {
    let server = redirecting(String::new());
    let (output, told) = server.get("/307", &["-L", "-T", "-"]);
    let text = complaint(&output, 3);
    assert!(text.contains("standard input cannot be read a second time"), "{text}");
    assert_eq!(told.len(), 1);
}

#[test]
fn secrets_do_not_go_to_another_server() {
    let elsewhere = Scripted::start(|told| Answer::new(200, told.path.clone()));
    let server = redirecting(elsewhere.url("/there"));
    let args = ["-L", "-u", "a:b", "-H", "Cookie: c=d", "-H", "X-Tag: e", "-o", "-"];
    let (output, told) = server.get("/out", &args);
    assert_eq!(success(&output), "/there");
    let there = elsewhere.told();
    for (name, here, away) in [
        ("authorization", Some("Basic YTpi"), None),
        ("cookie", Some("c=d"), None),
        ("x-tag", Some("e"), Some("e")),
    ] {
        assert_eq!((told[0].field(name), there[0].field(name)), (here, away), "{name}");
    }
    assert_eq!(there[0].authority, elsewhere.address.to_string());
}

#[test]
fn there_is_an_end_to_redirections() {
    let server = redirecting(String::new());
    let (output, told) = server.get("/loop", &["-L", "--max-redirs", "3", "-o", "-"]);
    let text = complaint(&output, 7);
    assert!(text.contains("one redirection more than 3 (--max-redirs)"), "{text}");
    assert_eq!(told.len(), 4);
    let (output, told) = server.get("/loop", &["-L", "-o", "-"]);
    complaint(&output, 7);
    assert_eq!(told.len(), 31);
    let (output, _) = server.get("/plain", &["-L", "-o", "-"]);
    let text = complaint(&output, 7);
    let told = "moved to http://example.org/, which cannot be fetched: only https URLs";
    assert!(text.contains(told), "{text}");
    // None at all are permitted.
    let (output, told) = server.get("/302", &["-L", "--max-redirs", "0", "-o", "-"]);
    complaint(&output, 7);
    assert_eq!(told.len(), 1);
}
