//! Every failure ends in one clear line and a specific exit code.

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::path::Path;

use crate::support::*;

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Asserts that the command complains about its arguments.
fn wrong_usage(args: &[&str], problem: &str) {
    let output = run(args);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
    assert!(text.contains(problem), "{args:?}: {text}");
    assert!(output.stdout.is_empty());
}

#[test]
fn what_is_served_must_be_a_directory() {
    let scratch = Scratch::new();
    let file = scratch.path().join("file");
    fs::write(&file, "").unwrap();
    for path in [&file, &scratch.path().join("none")] {
        let output = run(["serve", "--listen", "127.0.0.1:0", text(path)]);
        assert!(complaint(&output, 3).contains(text(path)));
    }
}

#[test]
fn settings_for_load_balancers_that_cannot_be_used_are_named() {
    let scratch = Scratch::new();
    let (site, state) = (scratch.dir("site"), scratch.dir("state"));
    let file = scratch.path().join("lb");
    for settings in [None, Some("server-id=0 nonce=8"), Some("nonce=8"), Some("colour=red")] {
        if let Some(settings) = settings {
            fs::write(&file, settings).unwrap();
        }
        let args = ["serve", "--state-dir", text(&state), "--lb-config", text(&file), text(&site)];
        assert!(complaint(&run(args), 3).contains(text(&file)));
    }
}

#[test]
fn a_corpus_that_cannot_be_read_is_named_with_the_line() {
    let scratch = Scratch::new();
    let corpus = scratch.path().join("pages.jsonl");
    let told = || complaint(&run(["lab", "marx-pages", "--corpus", text(&corpus)]), 3);
    assert!(told().contains(text(&corpus)));
    fs::write(&corpus, "\n{\"page\": 1}\n").unwrap();
    assert!(told().contains(&format!("{}, line 2: column", corpus.display())));
}

#[test]
fn a_port_in_use_is_named() {
    let scratch = Scratch::new();
    let (site, state) = (scratch.dir("site"), scratch.dir("state"));
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let held = UdpSocket::bind(udp).unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    for address in [udp, tcp.local_addr().unwrap()] {
        let address = address.to_string();
        let args = ["serve", "--state-dir", text(&state), "--listen", &address, text(&site)];
        assert!(complaint(&run(args), 3).contains(&address));
    }
    let address = held.local_addr().unwrap().to_string();
    let output = run(["link", "--listen", &address, "--to", "127.0.0.1:9"]);
    assert!(complaint(&output, 3).contains(&address));
}

#[test]
fn a_certificate_that_cannot_be_used_is_named() {
    let scratch = Scratch::new();
    let (site, one, two) = (scratch.dir("site"), scratch.dir("one"), scratch.dir("two"));
    for state in [&one, &two] {
        drop(Listening::serve_with(state, &site, "127.0.0.1:0", &[]));
    }
    let [one, two] = [one, two].map(|state| state.join("self-signed.pem"));
    let serve = |cert: &Path, key: &Path| {
        run([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--cert",
            text(cert),
            "--key",
            text(key),
            text(&site),
        ])
    };
    let none = scratch.path().join("none.pem");
    assert!(complaint(&serve(&none, &one), 3).contains(text(&none)));
    assert!(complaint(&serve(&one, &none), 3).contains(text(&none)));
    // The certificate of one server with the key of the other.
    assert!(complaint(&serve(&one, &two), 3).contains("certificate and key"));
}

#[test]
fn a_server_that_is_not_trusted_gets_no_request() {
    let scratch = Scratch::new();
    let (site, out, other) = (scratch.dir("site"), scratch.dir("out"), scratch.dir("other"));
    fs::write(site.join("index.html"), "home").unwrap();
    let mut server = Listening::serve(&site, &scratch, &["-v"]);
    let stranger = Listening::serve_with(&other, &site, "127.0.0.1:0", &[]);
    let ca = stranger.hello["certificate"].as_str().unwrap();
    let url = server.url("/");
    for trust in [["--ca", ca], ["--fingerprint", stranger.fingerprint()]] {
        let output = run(["get", &url, "--out", text(&out), trust[0], trust[1]]);
        let text = complaint(&output, 6);
        assert!(text.contains("certificate of 127.0.0.1"), "{text}");
        assert!(text.contains(server.fingerprint()), "{text}");
    }
    // The message names the ways out, with the fingerprint that was seen.
    let text = complaint(&run(["get", &url, "--out", text(&out), "--ca", ca]), 6);
    for way in [&format!("--fingerprint {};", server.fingerprint()), "--ca FILE", "--insecure"] {
        assert!(text.contains(way), "{text}");
    }
    assert!(names(&out).is_empty());
    server.process.signal(rustix::process::Signal::INT);
    let log = server.process.output().stderr;
    assert!(!String::from_utf8_lossy(&log).contains("GET"));
}

/// `openssl req -x509` makes certificates that are their own authority.
#[test]
fn a_certificate_that_is_its_own_authority_is_trusted_by_ca_and_explained_otherwise() {
    let (scratch, site, out) = Scratch::with_site();
    fs::write(site.join("index.html"), "home").unwrap();
    let mut params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    let (cert, key_file) = (scratch.path().join("cert.pem"), scratch.path().join("key.pem"));
    fs::write(&cert, params.self_signed(&key).unwrap().pem()).unwrap();
    fs::write(&key_file, key.serialize_pem()).unwrap();
    let more = ["--cert", text(&cert), "--key", text(&key_file)];
    let server = Listening::serve(&site, &scratch, &more);
    let url = format!("localhost:{}", server.hello["port"]);
    success(&run(["get", "--ca", text(&cert), "--out", text(&out), &url]));
    assert_eq!(names(&out), ["index.html"]);
    // Another certificate: the one that a server makes for itself.
    let other = Listening::serve(&site, &scratch, &[]);
    let other = other.hello["certificate"].as_str().unwrap();
    let text = complaint(&run(["get", "--ca", other, "--out", text(&out), &url]), 6);
    assert!(text.contains("`openssl req -x509`"), "{text}");
    assert!(text.contains(&format!("--fingerprint {}", server.fingerprint())), "{text}");
}

#[test]
fn a_server_that_is_stopping_says_so_at_once() {
    let mut download = Endless::begun("rate=1mbit", &[]);
    let server = &mut download.server;
    server.process.signal(rustix::process::Signal::INT);
    wait_until("the server to stop", || std::net::TcpStream::connect(&server.address).is_err());
    let output = run(["get", "--insecure", "--out", "-", &server.url("/")]);
    let text = complaint(&output, 5);
    assert!(text.contains("accepts no connections at present"), "{text}");
}

#[test]
fn an_unknown_host_is_named() {
    let output = run(["get", "https://no-such-host.invalid/"]);
    // If the system has no trusted certificates, that is reported first.
    if output.status.code() == Some(3) {
        assert!(complaint(&output, 3).contains("trusts no certificates"));
    }
    let output = run([
        "get",
        "--insecure",
        "https://no-such-host.invalid/a",
        "https://no-such-host.invalid/b",
    ]);
    assert!(complaint(&output, 4).contains("unknown host no-such-host.invalid"));
    let output = run(["link", "--to", "no-such-host.invalid:4433"]);
    assert!(complaint(&output, 4).contains("no-such-host.invalid"));
}

#[test]
fn wrong_usage_is_explained() {
    wrong_usage(&["get", "http://a/"], "only https");
    wrong_usage(&["get", "https:/a"], "expected a URL");
    wrong_usage(&["get"], "URL");
    wrong_usage(&["get", "--fec", "300", "https://a/"], "expected BLT");
    wrong_usage(&["serve", ".", "--protect", "u<9 => protect"], "an urgency from 0 to 7");
    wrong_usage(&["get", "--fec", "3", "--no-fec", "https://a/"], "--no-fec");
    wrong_usage(&["get", "--priority", "u=;", "https://a/"], "not a list of parameters");
    wrong_usage(&["get", "--priority", "u=1, exp_w=0", "https://a/"], "from 0.001 to 1000");
    let priorities = ["--priority", "u=1", "--priority", "u=2"];
    let urls = ["https://a/x", "https://a/y", "https://a/z"];
    wrong_usage(&[&["get"], &priorities[..], &urls].concat(), "2 priorities for 3 URLs");
    wrong_usage(&["serve", ".", "--scheduler", "lottery"], "eps");
    wrong_usage(&["get", "--fingerprint", "12", "https://a/"], "64 hexadecimal digits");
    wrong_usage(&["get", "--timeout", "0", "https://a/"], "--timeout");
    wrong_usage(&["get", "--cc", "vegas", "https://a/"], "newreno, cubic, bbr");
    wrong_usage(&["get", "--out", "-", "--json", "https://a/"], "standard output");
    wrong_usage(&["get", "--out", "/dev/null", "https://a/", "https://b/"], "one URL");
    wrong_usage(&["get", "https://a/x", "https://b/x"], "more than one URL");
    wrong_usage(&["link"], "--to");
    wrong_usage(&["link", "--to", "localhost"], "address and a port");
    wrong_usage(&["link", "--to", "localhost:port"], "localhost:port");
    wrong_usage(&["link", "--to", "127.0.0.1:1", "--profile", "papier"], "papier");
    wrong_usage(&["link", "--to", "127.0.0.1:1", "--up", "loss=2"], "is above 1");
    wrong_usage(
        &["link", "--to", "127.0.0.1:1", "--up", "loss=some"],
        "a share such as 2% or 0.02",
    );
    wrong_usage(&["get", "--cc", "fixed:99999gbit", "https://a/"], "8kbit to 1000gbit");
    wrong_usage(&["vnc", "connect", "a", "--token", "secret"], "16 to 256 bytes");
    wrong_usage(&["serve", ".", "--cert", "x"], "--key");
    wrong_usage(
        &["serve", ".", "--listen", "here"],
        "expected a port such as 4433, or an IP address",
    );
    wrong_usage(&["serve", ".", "--listen", "localhost:4999"], "127.0.0.1:4433 or [::1]:4433");
    wrong_usage(&["link", "--to", "127.0.0.1:1", "--listen", "here"], "expected a port");
    wrong_usage(&["lab", "no-such-experiment"], "no-such-experiment");
    wrong_usage(&["lab", "all"], "--out");
    wrong_usage(&["lab", "all", "--out", "x", "--reduce", "9"], "--reduce");
    wrong_usage(&["lab", "holzinger-page", "--full"], "--full");
    wrong_usage(&["lab", "marx-pages", "--seeds", "3"], "marx-pages does not take --seeds");
    wrong_usage(&["lab", "own-paths", "--path", "delay=3"], "duration `3`");
    wrong_usage(&["lab", "own-paths", "--path", "trace=@/nowhere"], "/nowhere");
    wrong_usage(&["lab", "verdicts"], "<DIRECTORY>");
    wrong_usage(&["lab", "jobs", "x", "--out", "memory://x"], "no other would see them");
    wrong_usage(&["lab", "jobs", "x", "--out", "http://x"], "there are file, s3, gs, az");
    let job = |job| wrong_usage(&["lab", "run", "x", "--out", "x", "--job", job], "such as 0-17");
    ["7", "a-b"].into_iter().for_each(job);
    wrong_usage(&["frobnicate"], "frobnicate");
}

#[test]
fn a_peer_that_does_not_speak_quic_is_given_up() {
    let scratch = Scratch::new();
    let out = scratch.dir("out");
    let get = |address: std::net::SocketAddr| {
        let url = format!("https://{address}/");
        run(["get", "--insecure", "--timeout", "1", "--out", text(&out), &url])
    };
    // A peer that never answers.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    assert!(complaint(&get(address), 5).contains("does not answer over QUIC within 1 s"));
    // A peer that answers with other bytes than QUIC's.
    let echo = std::thread::spawn(move || {
        silent.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut buffer = [0; 2048];
        let mut answered = 0;
        while let Ok((length, from)) = silent.recv_from(&mut buffer) {
            if length == 1 {
                return answered;
            }
            silent.send_to(b"HTTP/1.1 400 Bad Request\r\n\r\n", from).unwrap();
            silent.send_to(&buffer[..length], from).unwrap();
            answered += 1;
        }
        answered
    });
    complaint(&get(address), 5);
    UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"!", address).unwrap();
    assert!(echo.join().unwrap() > 0);
    // No peer.
    complaint(&get(address), 5);
    assert!(names(&out).is_empty());
}

#[test]
fn a_server_that_dies_leaves_no_partial_file() {
    let mut download = Endless::begun("rate=1mbit", &["--timeout", "10"]);
    download.server.process.signal(rustix::process::Signal::KILL);
    let output = download.client.output();
    let text = complaint(&output, 8);
    assert!(text.contains("broke off after") && text.contains("of 4294967296 bytes"), "{text}");
    assert!(names(&download.out).is_empty());
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["transfers"][0]["error"].as_str().unwrap().contains("broke off"));
}

#[test]
fn a_server_that_was_restarted_says_that_it_forgot_its_clients() {
    // Longer than this test takes: silence alone does not end the connection.
    let mut download = Endless::begun("rate=1mbit", &["--timeout", "36000"]);
    download.server.process.signal(rustix::process::Signal::KILL);
    let address = download.server.address.clone();
    download.server.process.output();
    let state = download.scratch.path().join("state");
    let _again = Listening::serve_with(&state, &download.site, &address, &[]);
    let text = complaint(&download.client.output(), 8);
    assert!(text.contains("broke off after") && text.contains("reset"), "{text}");
}

#[test]
fn a_file_that_shrinks_is_not_taken_for_whole() {
    let download = Endless::begun("rate=8mbit", &[]);
    let file = fs::File::options().write(true).open(download.site.join("a.bin"));
    file.unwrap().set_len(1000).unwrap();
    complaint(&download.client.output(), 8);
    assert!(names(&download.out).is_empty());
}

#[test]
fn a_time_limit_is_kept() {
    let (scratch, site, out) = Scratch::with_site();
    endless(&site.join("a.bin"));
    let server = Listening::serve(&site, &scratch, &[]);
    let link = Listening::link(&server, "rate=1mbit");
    let url = [link.url("/a.bin")];
    let output = Process::spawn(get(&server, &url, &out, &["--max-time", "0.5"])).output();
    assert!(complaint(&output, 8).contains("not done within 0.5 s"));
    assert!(names(&out).is_empty());
}

#[test]
fn statuses_other_than_success_are_told() {
    let (scratch, site, out) = Scratch::with_site();
    fs::create_dir(site.join("sub")).unwrap();
    fs::write(site.join("sub/index.html"), "sub").unwrap();
    let server = Listening::serve(&site, &scratch, &[]);
    for (path, told) in [("/none", "status 404"), ("/sub", "status 307, moved to /sub/")] {
        let output = Process::spawn(get(&server, &[server.url(path)], &out, &[])).output();
        let text = complaint(&output, 7);
        assert!(text.contains(told), "{text}");
    }
    // A URL that fails does not stop the other one.
    let urls = [server.url("/none"), server.url("/sub/")];
    complaint(&Process::spawn(get(&server, &urls, &out, &[])).output(), 7);
    assert_eq!(names(&out), ["index.html"]);
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let scratch = Scratch::new();
    let site = scratch.dir("site");
    fs::write(site.join("index.html"), "home").unwrap();
    let server = Listening::serve(&site, &scratch, &[]);
    let place = scratch.path().join("none/file");
    let url = server.url("/");
    let output = run(["get", "--insecure", "--out", text(&place), &url]);
    assert!(complaint(&output, 3).contains(text(&place)));
    let below_a_file = site.join("index.html/");
    let output = run(["get", "--insecure", "--out", text(&below_a_file), &url]);
    complaint(&output, 3);
    let output = run(["get", "--insecure", "--qlog", text(&below_a_file), &url]);
    complaint(&output, 3);
}

#[test]
fn manual_pages_and_completions_know_every_command() {
    let scratch = Scratch::new();
    let pages = scratch.path().join("new/man1");
    success(&run(["manual", "--out", text(&pages)]));
    let commands = ["serve", "get", "link", "vnc", "lab", "policies", "qlog", "demo"];
    for command in commands {
        let page = fs::read_to_string(pages.join(format!("sutura-{command}.1"))).unwrap();
        assert!(page.contains(".SH OPTIONS"), "{command}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = success(&run(["completions", shell]));
        assert!(commands.iter().all(|command| script.contains(command)), "{shell}");
    }
    assert!(complaint_usage(&run(["completions", "csh"])).contains("bash"));
}

/// What is wrong with a command line, in whatever words.
fn complaint_usage(output: &std::process::Output) -> String {
    assert_eq!(output.status.code(), Some(2));
    String::from_utf8_lossy(&output.stderr).into_owned()
}
