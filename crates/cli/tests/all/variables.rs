//! Variables of the environment that other programs know, too.

use std::fs;

use crate::support::*;

/// The labels of secrets that a client or server has for QUIC (RFC 8446, section 7.1).
const LABELS: [&str; 4] = [
    "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
    "SERVER_HANDSHAKE_TRAFFIC_SECRET",
    "CLIENT_TRAFFIC_SECRET_0",
    "SERVER_TRAFFIC_SECRET_0",
];

#[test]
fn both_ends_log_the_same_secrets() {
    let (scratch, site, _) = Scratch::with_site();
    fs::write(site.join("index.html"), "home").unwrap();
    let logs = ["server", "client"].map(|end| scratch.path().join(end));
    let state = scratch.dir("state");
    let mut command = sutura(["serve", "--listen", "127.0.0.1:0", "--json", "--state-dir"]);
    command.arg(state).arg(&site).env("SSLKEYLOGFILE", &logs[0]);
    let server = Listening::spawn(command);
    let mut command = sutura(["get", "-k", "-o", "-", &server.url("/")]);
    command.env("SSLKEYLOGFILE", &logs[1]);
    assert_eq!(success(&Process::spawn(command).output()), "home");
    let secrets = |end: usize| -> Vec<String> {
        let text = fs::read_to_string(&logs[end]).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.retain(|line| LABELS.iter().any(|label| line.starts_with(&format!("{label} "))));
        lines.sort();
        lines
    };
    assert_eq!(secrets(1).len(), LABELS.len());
    assert_eq!(secrets(0), secrets(1));
    // A file that cannot be written is not passed over.
    let mut command = sutura(["get", "-k", "-o", "-", &server.url("/")]);
    command.env("SSLKEYLOGFILE", scratch.path().join("none/log"));
    assert!(complaint(&Process::spawn(command).output(), 3).contains("which SSLKEYLOGFILE names"));
}

#[test]
fn messages_of_the_libraries_are_shown_on_request() {
    let (scratch, site, _) = Scratch::with_site();
    fs::write(site.join("index.html"), "home").unwrap();
    let server = Listening::serve(&site, &scratch, &[]);
    let get = |filter: Option<&str>| {
        let mut command = sutura(["get", "-k", "-o", "-", &server.url("/")]);
        command.env_remove("RUST_LOG");
        filter.map(|filter| command.env("RUST_LOG", filter));
        Process::spawn(command).output()
    };
    for quiet in [None, Some(""), Some("warn"), Some("h3=debug")] {
        let output = get(quiet);
        assert_eq!(success(&output), "home");
        assert!(output.stderr.is_empty(), "{quiet:?}");
    }
    let output = get(Some("warn,sutura::connect=debug"));
    assert_eq!(success(&output), "home");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let message = format!("DEBUG sutura::connect: Trying {}...", server.address);
    assert!(text.contains(&message), "{text}");
    let text = complaint(&get(Some("sutura=loud")), 2);
    assert!(text.starts_with("sutura: RUST_LOG is malformed: "), "{text}");
    assert!(text.contains("such as sutura=debug"), "{text}");
}
