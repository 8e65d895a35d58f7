//! What `sutura get` asks for, by the options that it shares with curl.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use crate::support::scripted::{Answer, Scripted};
use crate::support::*;

fn echo() -> Scripted {
    Scripted::start(|told| Answer::new(200, told.body.clone()))
}

#[test]
fn fields_are_set_emptied_and_left_out() {
    let server = echo();
    let (output, told) = server.get("/a?b", &["-o", "-"]);
    success(&output);
    let agent = concat!("sutura/", env!("CARGO_PKG_VERSION"));
    assert_eq!((told[0].method.as_str(), told[0].path.as_str()), ("GET", "/a?b"));
    assert_eq!(told[0].authority, server.address.to_string());
    assert_eq!((told[0].field("user-agent"), told[0].field("accept")), (Some(agent), Some("*/*")));
    assert_eq!((told[0].field("referer"), told[0].field("authorization")), (None, None));

    let args = [
        "-H",
        "X-One: a",
        "-H",
        "x-one: b",
        "-H",
        "X-Empty;",
        "-H",
        "Accept:",
        "-A",
        "me",
        "-e",
        "https://from/",
        "-H",
        "Host: example.org",
        "-o",
        "-",
    ];
    let (output, told) = server.get("/", &args);
    success(&output);
    assert_eq!(told[0].all("x-one"), ["a", "b"]);
    assert_eq!((told[0].field("x-empty"), told[0].field("accept")), (Some(""), None));
    assert_eq!(told[0].field("user-agent"), Some("me"));
    assert_eq!(told[0].field("referer"), Some("https://from/"));
    assert_eq!((told[0].authority.as_str(), told[0].field("host")), ("example.org", None));
}

#[test]
fn a_name_and_a_password_are_sent_and_not_shown() {
    let server = echo();
    let (output, told) = server.get("/", &["-v", "-u", "Aladdin:open sesame", "-o", "-"]);
    success(&output);
    let basic = "QWxhZGRpbjpvcGVuIHNlc2FtZQ==";
    assert_eq!(told[0].field("authorization"), Some(format!("Basic {basic}").as_str()));
    let shown = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(shown.contains("> authorization: [not shown]"), "{shown}");
    for secret in [basic, "Aladdin", "sesame"] {
        assert!(!shown.contains(secret), "{shown}");
    }
}

#[test]
fn data_is_posted_as_a_form_unless_its_type_is_given() {
    let server = echo();
    let scratch = Scratch::new();
    let file = scratch.path().join("data");
    fs::write(&file, "c=\r\n3").unwrap();
    let at_file = format!("@{}", file.display());
    let form = Some("application/x-www-form-urlencoded");
    for (args, method, body, content_type) in [
        (&["-d", "a=1", "-d", "b=2", "-d", &at_file][..], "POST", "a=1&b=2&c=3", form),
        (&["--data-binary", &at_file], "POST", "c=\r\n3", form),
        (&["-d", ""], "POST", "", form),
        (
            &["-X", "PATCH", "-d", "{}", "-H", "Content-Type: application/json"],
            "PATCH",
            "{}",
            Some("application/json"),
        ),
        (&["-X", "DELETE", "-o", "-"], "DELETE", "", None),
    ] {
        let (output, told) = server.get("/form", args);
        // The response goes to standard output.
        assert_eq!(success(&output), body, "{args:?}");
        assert_eq!((told[0].method.as_str(), told[0].body.as_slice()), (method, body.as_bytes()));
        assert_eq!(told[0].field("content-type"), content_type, "{args:?}");
        let length = args.contains(&"DELETE").then_some(0).map_or(Some(body.len()), |_| None);
        let length = length.map(|length| length.to_string());
        assert_eq!(told[0].field("content-length"), length.as_deref());
    }
    let mut command = sutura(["get", "-k", "-d", "@-", &server.url("/")]);
    command.stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"from\nhere").unwrap();
    assert_eq!(success(&child.wait_with_output().unwrap()), "fromhere");
}

#[test]
fn files_and_standard_input_are_uploaded() {
    let server = echo();
    let scratch = Scratch::new();
    let file = scratch.path().join("a file.bin");
    fs::write(&file, noise(300_000)).unwrap();
    let path = file.to_str().unwrap();
    // A URL of a directory gets the name of the file.
    for (url, asked) in [("/in/", "/in/a%20file.bin"), ("/other", "/other")] {
        let (output, told) = server.get(url, &["-T", path]);
        success(&output);
        assert!(output.stdout == noise(300_000) && told[0].body == noise(300_000));
        assert_eq!((told[0].method.as_str(), told[0].path.as_str()), ("PUT", asked));
        assert_eq!(told[0].field("content-length"), Some("300000"));
        assert_eq!(told[0].field("content-type"), None);
    }
    let mut command = sutura(["get", "-k", "-T", "-", "-X", "POST", &server.url("/in/")]);
    command.stdin(fs::File::open(&file).unwrap());
    let output = Process::spawn(command).output();
    success(&output);
    assert!(output.stdout == noise(300_000));
    let told = server.told().pop().unwrap();
    assert_eq!((told.method.as_str(), told.path.as_str()), ("POST", "/in/"));
    assert_eq!(told.field("content-length"), None);
}

/// The response comes when the test has looked how much memory the client has taken.
#[cfg(target_os = "linux")]
#[test]
fn an_upload_takes_little_memory() {
    const SIZE: u64 = 96 << 20;
    let (looked, look) = std::sync::mpsc::channel::<()>();
    let look = std::sync::Mutex::new(look);
    let server = Scripted::start(move |told| {
        look.lock().unwrap().recv().unwrap();
        Answer::new(200, told.length.to_string())
    });
    let scratch = Scratch::new();
    let file = scratch.path().join("sparse");
    fs::File::create(&file).unwrap().set_len(SIZE).unwrap();
    let mut client =
        Process::spawn(sutura(["get", "-k", "-T", file.to_str().unwrap(), &server.url("/x")]));
    wait_until("the upload", || !server.told().is_empty());
    let status = fs::read_to_string(format!("/proc/{}/status", client.id())).unwrap();
    looked.send(()).unwrap();
    assert_eq!(success(&client.output()), SIZE.to_string());
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kilobytes < 64 << 10, "{kilobytes} kB");
}

/// A server that answers before it has the request gets no more of it.
#[test]
fn an_early_refusal_ends_an_upload() {
    let (scratch, site, _) = Scratch::with_site();
    let file = scratch.path().join("endless");
    endless(&file);
    let server = Listening::serve(&site, &scratch, &[]);
    let output = run(["get", "-k", "-T", file.to_str().unwrap(), &server.url("/x")]);
    let text = complaint(&output, 7);
    assert!(text.contains("status 40"), "{text}");
}

#[test]
fn names_are_resolved_as_the_user_says() {
    let server = echo();
    let port = server.address.port();
    let pinned = format!("example.test:{port}:127.0.0.1");
    let url = format!("https://example.test:{port}/x");
    success(&run(["get", "-k", "--resolve", &pinned, "-o", "-", &url]));
    assert_eq!(server.told()[0].authority, format!("example.test:{port}"));
    // A URL needs no scheme.
    let bare = format!("example.test:{port}");
    success(&run(["get", "-k", "-4", "--resolve", &pinned, "-o", "-", &bare]));
    let output = run(["get", "-k", "-6", "--resolve", &pinned, "-o", "-", &url]);
    assert!(complaint(&output, 4).contains("it has no IPv6 address, and -6 wants one"));
    let bare = format!("localhost:{port}");
    success(&run(["get", "-k", "-4", "-o", "-", &bare]));
    assert_eq!(server.told().len(), 3);
}

#[test]
fn a_connection_has_a_time_limit_of_its_own() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", silent.local_addr().unwrap());
    let output = run(["get", "-k", "--connect-timeout", "0.3", "-o", "-", &url]);
    assert!(complaint(&output, 5).contains("does not answer over QUIC within 0.3 s"));
    let output = run(["get", "-k", "-m", "0.3", "-o", "-", &url]);
    assert!(complaint(&output, 8).contains("not done within 0.3 s"));
}
