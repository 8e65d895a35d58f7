//! What is written and shown, and where.

use std::fs;

use crate::support::scripted::{Answer, Scripted};
use crate::support::*;

fn server() -> Scripted {
    Scripted::start(|told| match told.path.as_str() {
        "/none" => Answer::new(404, "no such page").with_length(),
        path => Answer::new(200, format!("<{path}>")).field("x-tag", "a").with_length(),
    })
}

#[test]
fn heads_are_written_before_bodies_or_alone() {
    let server = server();
    let head = "HTTP/3 200\r\nx-tag: a\r\ncontent-length: 4\r\n\r\n";
    let (output, told) = server.get("/a", &["-i"]);
    assert_eq!(success(&output), format!("{head}</a>"));
    assert_eq!(told[0].method, "GET");
    let (output, told) = server.get("/a", &["-I"]);
    assert_eq!((success(&output).as_str(), told[0].method.as_str()), (head, "HEAD"));
    let scratch = Scratch::new();
    let file = scratch.path().join("a");
    let (output, _) = server.get("/a", &["-i", "-o", file.to_str().unwrap()]);
    assert_eq!(success(&output), "");
    assert_eq!(fs::read_to_string(&file).unwrap(), format!("{head}</a>"));
    let (output, _) = server.get("/none", &["-I"]);
    assert!(complaint(&output, 7).ends_with("/none: status 404\n"));
    assert_eq!(output.stdout, b"HTTP/3 404\r\ncontent-length: 12\r\n\r\n");
}

#[test]
fn what_a_server_says_about_a_failure_is_written_where_it_is_wanted() {
    let server = server();
    let scratch = Scratch::new();
    let file = scratch.path().join("a");
    let path = file.to_str().unwrap();
    let (output, _) = server.get("/none", &["-o", "-"]);
    assert!(complaint(&output, 7).ends_with("/none: status 404\n"));
    assert_eq!(output.stdout, b"no such page");
    let (output, _) = server.get("/none", &["-o", path]);
    let text = complaint(&output, 7);
    assert!(
        text.ends_with("status 404 (--content-on-error saves what the server says about it)\n"),
        "{text}"
    );
    assert!(!file.exists());
    let (output, _) = server.get("/none", &["--content-on-error", "-o", path]);
    complaint(&output, 7);
    assert_eq!(fs::read_to_string(&file).unwrap(), "no such page");
}

/// The first response is longer than the windows of flow control, and comes last.
#[test]
fn standard_output_gets_responses_in_the_order_of_the_urls() {
    let server = Scripted::start(|told| match told.path.as_str() {
        "/none" => Answer::new(404, "none"),
        "/big" => Answer::new(200, noise(3_000_000)),
        path => Answer::new(200, path),
    });
    let other = Scripted::start(|told| Answer::new(200, told.path.clone()));
    let urls = [
        server.url("/big"),
        other.url("/b"),
        server.url("/none"),
        other.url("/c"),
        server.url("/d"),
    ];
    let args = ["get", "-k", "-o", "-"].into_iter().chain(urls.iter().map(String::as_str));
    let output = run(args);
    assert!(complaint(&output, 7).contains("/none: status 404"));
    let expected = [noise(3_000_000), b"/bnone/c/d".to_vec()].concat();
    assert!(output.stdout == expected);
}

#[test]
fn failures_are_told_in_the_order_of_the_urls() {
    let server = server();
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let silent = format!("https://{}/", silent.local_addr().unwrap());
    let scratch = Scratch::new();
    let out = scratch.dir("out");
    let urls = [silent.as_str(), &server.url("/none"), &server.url("/a")];
    let args = ["get", "-k", "--connect-timeout", "0.2", "-o", out.to_str().unwrap()];
    let output = run(args.into_iter().chain(urls));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines.len(), output.status.code()), (2, Some(5)), "{text}");
    assert!(
        lines[0].contains("does not answer") && lines[1].contains("/none: status 404"),
        "{text}"
    );
    assert_eq!(names(&out), ["a"]);
}

#[test]
fn exchanges_and_connections_are_shown_on_request() {
    let server = server();
    let (output, _) = server.get("/a?b", &["-v", "-o", "-", "-H", "X-Own: me"]);
    success(&output);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let address = server.address;
    for line in [
        format!("* Host {address} has the addresses {address}"),
        format!("*   Trying {address}..."),
        format!("* Connected to {address} ({address}), QUIC V1, ALPN h3"),
        "* TLS 1.3, certificate for localhost, 0 more in its chain, not verified (--insecure)"
            .into(),
        "> GET /a?b HTTP/3".into(),
        format!("> host: {address}"),
        "> x-own: me".into(),
        "> ".into(),
        "< HTTP/3 200".into(),
        "< x-tag: a".into(),
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line}: {text}");
    }
    // 32 bytes in hexadecimal digits.
    let fingerprint = text.lines().find_map(|line| line.strip_prefix("* Fingerprint ")).unwrap();
    assert!(fingerprint.len() == 64 && fingerprint.bytes().all(|b| b.is_ascii_hexdigit()));
    let (output, _) = server.get("/a", &["-o", "-"]);
    assert!(output.stderr.is_empty());
}

#[test]
fn files_go_where_the_options_say() {
    let server = server();
    let scratch = Scratch::new();
    let run_in = |args: &[&str]| {
        let mut command = sutura(["get", "-k"].iter().chain(args));
        command.current_dir(scratch.path());
        Process::spawn(command).output()
    };
    let url = server.url("/a");
    success(&run_in(&["-O", &url]));
    assert_eq!(names(scratch.path()), ["a"]);
    // -O also for what would go to standard output.
    assert_eq!(success(&run_in(&["-i", "-O", &url])), "");
    assert!(fs::read_to_string(scratch.path().join("a")).unwrap().starts_with("HTTP/3 200"));
    for (out, created) in [("new/deep/", "new/deep/a"), ("other/file", "other/file")] {
        let text = complaint(&run_in(&["-o", out, &url]), 3);
        assert!(text.ends_with("does not exist: make it, or say --create-dirs\n"), "{text}");
        assert!(!scratch.path().join(out.split('/').next().unwrap()).exists());
        success(&run_in(&["--create-dirs", "--output", out, &url]));
        assert_eq!(fs::read_to_string(scratch.path().join(created)).unwrap(), "</a>");
    }
}

#[test]
fn the_help_is_in_groups_with_examples() {
    let text = success(&run(["get", "--help"]));
    for part in [
        "\nRequest:\n",
        "\nOutput:\n",
        "\nRedirections and further attempts:\n",
        "\nConnection:\n",
        "\nTrust:\n",
        "\nRedundancy and congestion:\n",
        "\nDiagnosis:\n",
        "\nExamples:\n",
        "\nAs with curl:\n",
    ] {
        assert_eq!(text.matches(part).count(), 1, "{part}: {text}");
    }
    // What is in no group.
    let rest = text.split("\nOptions:\n").nth(1).unwrap();
    let rest: Vec<&str> = rest.lines().take_while(|line| !line.is_empty()).collect();
    assert!(rest[0].trim_start().starts_with("-h, --help"), "{rest:?}");
}
