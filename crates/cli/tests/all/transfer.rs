//! Serving and fetching, with and without loss.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{ChildStdout, Command};
use std::sync::Arc;

use crate::support::*;
use rustix::process::Signal;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::json;

fn write(directory: &Path, name: &str, data: &[u8]) {
    let path = directory.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, data).unwrap();
}

#[test]
fn files_arrive_as_they_are() {
    let (scratch, site, out) = Scratch::with_site();
    let big = noise(3_000_000);
    write(&site, "index.html", b"<h1>home</h1>");
    write(&site, "empty.txt", b"");
    write(&site, "deep/big file.bin", &big);
    let server = Listening::serve(&site, &scratch, &[]);
    let urls = ["/", "/empty.txt?query", "/deep/big%20file.bin"].map(|path| server.url(path));
    let report = get_report(&server, &urls, &out, &[]);
    assert_eq!(names(&out), ["big%20file.bin", "empty.txt", "index.html"]);
    assert_eq!(fs::read(out.join("index.html")).unwrap(), b"<h1>home</h1>");
    assert_eq!(fs::read(out.join("empty.txt")).unwrap(), b"");
    assert!(fs::read(out.join("big%20file.bin")).unwrap() == big);
    for (n, length) in [(0, 13), (1, 0), (2, big.len())] {
        let transfer = &report["transfers"][n];
        assert_eq!(transfer["url"], urls[n]);
        assert_eq!((&transfer["status"], &transfer["bytes"]), (&200.into(), &length.into()));
        assert!(transfer["total_ms"].as_f64() >= transfer["first_byte_ms"].as_f64());
        assert!(transfer["connect_ms"].as_f64() > Some(0.0));
    }
    let connections = report["connections"].as_array().unwrap();
    assert_eq!(connections.len(), 1);
    assert_eq!(connections[0]["fec"]["negotiated"], true);
    assert_eq!(connections[0]["fec"]["repair_symbols_received"], 0);
}

#[test]
fn a_server_goes_by_any_scheduler_that_is_listed() {
    let (scratch, site, out) = Scratch::with_site();
    let names = ["a.bin", "b.bin", "c.bin"];
    names.iter().for_each(|name| write(&site, name, &noise(100_000)));
    // The defaults of a complete stack, a scheme by kind of resource, and a scheduler of this
    // project, each with another order of resending.
    for (scheduler, order) in
        [("mvfst", "in-turn"), ("dfifo", "first-by:rr"), ("deadline", "first-by")]
    {
        let options = ["--scheduler", scheduler, "--resend-order", order];
        let server = Listening::serve(&site, &scratch, &options);
        let urls = names.map(|name| server.url(&format!("/{name}")));
        get_report(&server, &urls, &out, &["--windows-of", "mvfst-alt"]);
        for name in names {
            let (got, sent) = (out.join(name), site.join(name));
            assert!(fs::read(&got).unwrap() == fs::read(sent).unwrap(), "{scheduler}: {name}");
            fs::remove_file(got).unwrap();
        }
    }
}

#[test]
fn standard_output_gets_the_response_and_nothing_else() {
    let scratch = Scratch::new();
    let site = scratch.dir("site");
    let data = noise(200_000);
    write(&site, "data", &data);
    let server = Listening::serve(&site, &scratch, &[]);
    let url = server.url("/data");
    let output = run(["get", "--insecure", "--out", "-", &url]);
    success(&output);
    assert!(output.stdout == data && output.stderr.is_empty());
    // The reader of the output may stop at any time.
    let mut process = Process::spawn(sutura(["get", "--insecure", "--out", "-", &url]));
    drop(process.take_stdout());
    let output = process.output();
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stderr.is_empty());
}

#[test]
fn a_lossy_link_is_mended_on_request() {
    let (scratch, site, out) = Scratch::with_site();
    let data = noise(60_000);
    write(&site, "a.bin", &data);
    write(&site, "b.bin", &data);
    let server = Listening::serve(&site, &scratch, &[]);
    let link = Listening::link(&server, "rate=20mbit delay=5ms loss=bern:0.05");
    let urls = ["/a.bin", "/b.bin"].map(|path| link.url(path));
    let report = get_report(&server, &urls, &out, &["--fec", "3", "--priority", "u=1"]);
    for name in ["a.bin", "b.bin"] {
        assert!(fs::read(out.join(name)).unwrap() == data);
    }
    let fec = &report["connections"][0]["fec"];
    assert!(fec["source_symbols_received"].as_u64() > Some(50), "{fec}");
    let (output, stats) = link.interrupt();
    success(&output);
    let stats = stats.unwrap();
    // 120 kB are more than 80 packets of at most 1,452 bytes.
    assert!(stats["down"]["sent"].as_u64() > Some(80), "{stats}");
    assert!(stats["down"]["lost"].as_u64() > Some(0), "{stats}");
    assert_eq!(stats["refused"], 0);
}

#[test]
fn the_server_protects_by_default_what_clients_say_nothing_about() {
    let (scratch, site, out) = Scratch::with_site();
    write(&site, "a.bin", &noise(20_000));
    let server = Listening::serve(&site, &scratch, &["--fec", "2"]);
    let url = [server.url("/a.bin")];
    // Whether coding was negotiated, and whether the response was protected.
    let fec = |more: &[&str]| {
        let report = get_report(&server, &url, &out, more);
        (report["connections"][0]["fec"]["negotiated"] == true, is_protected(&report))
    };
    assert_eq!(fec(&[]), (true, true));
    assert_eq!(fec(&["--fec", "0"]), (true, false));
    assert_eq!(fec(&["--no-fec"]), (false, false));
}

#[test]
fn both_ends_tell_what_is_lost_and_what_redundancy_did() {
    let (scratch, site, out) = Scratch::with_site();
    write(&site, "a.bin", &noise(400_000));
    let server = Listening::serve(&site, &scratch, &["--fec", "3", "--stats"]);
    let url = server.url("/a.bin");
    let mut command = sutura(["get", "--stats", "--fingerprint", server.fingerprint(), "--out"]);
    command.arg(out.join("")).arg(&url);
    let output = Process::spawn(command).output();
    assert_eq!(success(&output), "");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let summary = told.lines().find(|line| line.starts_with(&server.address)).unwrap();
    for part in [" received, ", " sent, ", " packets lost, rtt ", ", loss "] {
        assert!(summary.contains(part), "{part}: {told}");
    }

    let report = get_report(&server, &[url], &out, &["--stats"]);
    let client = &report["connections"][0];
    let (output, server) = server.interrupt();
    assert_eq!(output.status.code(), Some(0));
    let server = server.unwrap();
    for end in [client, &server] {
        let share = |name: &str| end["loss"][name].as_f64().unwrap();
        assert!(share("low") <= share("rate") && share("rate") <= share("high"), "{end}");
        assert!(end["rtt_ms"].as_f64() > Some(0.0), "{end}");
    }
    let count = |name: &str| server["fec"][name].as_u64().unwrap();
    assert_eq!(
        count("repair_symbols_sent"),
        count("repair_symbols_useful") + count("repair_symbols_wasted")
    );
    assert!(count("source_symbols_sent") > 250 && count("source_bytes_sent") > 400_000);
    let arrived = client["fec"]["source_symbols_received"].as_u64().unwrap();
    assert!(count("source_symbols_sent") >= arrived, "{server} {client}");
    let protection = &server["protections"][0];
    assert!(protection["policy"].as_str().unwrap().contains("burst=3"), "{server}");
    assert_eq!(protection["source_symbols_sent"], count("source_symbols_sent"));
    // The client has nothing to protect, and says why.
    let idle = &client["protections"][0];
    assert!(idle["session"].is_null() && idle["reason"].is_string(), "{client}");
    assert_eq!(idle["policy"].as_str().map(|policy| policy.starts_with("auto")), Some(true));
}

#[test]
fn a_certificate_is_trusted_by_its_authority() {
    let (scratch, site, out) = Scratch::with_site();
    write(&site, "index.html", b"home");
    let server = Listening::serve(&site, &scratch, &[]);
    let certificate = server.hello["certificate"].as_str().unwrap();
    let url = format!("https://localhost:{}/", server.hello["port"]);
    let mut command = sutura(["get", "--ca", certificate, &url, "--out"]);
    command.arg(&out);
    success(&Process::spawn(command).output());
    assert_eq!(names(&out), ["index.html"]);
    let chromium = server.hello["chromium"].as_str().unwrap();
    let hash = server.hello["public_key"].as_str().unwrap();
    assert!(chromium.contains(&format!("spki-list={hash} ")), "{chromium}");
    assert!(chromium.ends_with(&url), "{chromium}");
    // The next start uses the same certificate.
    let fingerprint = server.fingerprint().to_owned();
    drop(server);
    assert_eq!(Listening::serve(&site, &scratch, &[]).fingerprint(), fingerprint);
}

#[test]
fn browsers_learn_of_http3_over_tcp() {
    let scratch = Scratch::new();
    let site = scratch.dir("site");
    let data = noise(300_000);
    write(&site, "a.bin", &data);
    let server = Listening::serve(&site, &scratch, &[]);
    let mut roots = rustls::RootCertStore::empty();
    let certificate = server.hello["certificate"].as_str().unwrap();
    roots.add(CertificateDer::from_pem_file(certificate).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let name = ServerName::try_from("localhost").unwrap();
    let tls = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let tcp = std::net::TcpStream::connect(&server.address).unwrap();
    tcp.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut stream = rustls::StreamOwned::new(tls, tcp);
    let request = "GET /a.bin HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let at = answer.windows(4).position(|w| w == b"\r\n\r\n").unwrap();
    let head = String::from_utf8_lossy(&answer[..at]).into_owned();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    let alt_svc = format!("alt-svc: h3=\":{}\"", server.hello["port"]);
    assert!(head.contains(&alt_svc), "{head}");
    assert!(answer[at + 4..] == data);
}

#[test]
fn nothing_outside_of_the_directory_is_served() {
    let (scratch, site, out) = Scratch::with_site();
    write(scratch.path(), "secret", b"secret");
    write(&scratch.dir("other"), "index.html", b"secret");
    write(&site, "inside.txt", b"inside");
    let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, site.join(name)).unwrap();
    link("../secret", "outside.txt");
    link("../other", "outside");
    link("inside.txt", "alias.txt");
    let pipe = rustix::fs::mknodat(
        rustix::fs::CWD,
        site.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    );
    pipe.unwrap();
    let server = Listening::serve(&site, &scratch, &[]);
    get_report(&server, &[server.url("/alias.txt")], &out, &[]);
    assert_eq!(fs::read(out.join("alias.txt")).unwrap(), b"inside");
    for path in [
        "/outside.txt",
        "/outside/",
        "/outside/index.html",
        "/../secret",
        "/%2e%2e/secret",
        "/..%2fsecret",
        "/pipe",
        "/",
        "/inside.txt/",
        "/none",
    ] {
        let out = scratch.dir("nothing");
        let output = Process::spawn(get(&server, &[server.url(path)], &out, &[])).output();
        let text = complaint(&output, 7);
        assert!(text.contains("status 404"), "{path}: {text}");
        assert!(names(&out).is_empty(), "{path}");
    }
}

#[test]
fn memory_does_not_grow_with_the_file() {
    const SIZE: u64 = 96 << 20;
    let (scratch, site, out) = Scratch::with_site();
    fs::File::create(site.join("sparse")).unwrap().set_len(SIZE).unwrap();
    let mut server = Listening::serve(&site, &scratch, &[]);
    let report = get_report(&server, &[server.url("/sparse")], &out, &[]);
    assert_eq!(report["transfers"][0]["bytes"], SIZE);
    assert_eq!(fs::metadata(out.join("sparse")).unwrap().len(), SIZE);
    let status = format!("/proc/{}/status", server.process.id());
    if let Ok(status) = fs::read_to_string(status) {
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let kilobytes: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
        assert!(kilobytes < 64 << 10, "{kilobytes} kB");
    }
}

#[test]
fn an_interrupted_server_finishes_what_it_began() {
    let scratch = Scratch::new();
    let site = scratch.dir("site");
    // More than fits into the buffers between the two, which nobody drains at first.
    let data = noise(8_000_000);
    write(&site, "a.bin", &data);
    let mut server = Listening::serve(&site, &scratch, &["-v"]);
    let mut client =
        Process::spawn(sutura(["get", "--insecure", "-o", "-", &server.url("/a.bin")]));
    let mut response = client.take_stdout();
    let mut received = vec![0];
    response.read_exact(&mut received).unwrap();
    server.process.signal(Signal::INT);
    response.read_to_end(&mut received).unwrap();
    success(&client.output());
    assert!(received == data);
    let output = server.process.output();
    success(&output);
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(log.lines().count(), 1, "{log}");
    assert!(log.contains(" h3 GET /a.bin 200 8000000 B "), "{log}");
    assert!(!log.contains("aborted"), "{log}");
}

#[test]
fn an_interrupted_client_leaves_no_litter() {
    let mut download = Endless::begun("rate=1mbit", &[]);
    download.client.signal(Signal::TERM);
    complaint(&download.client.output(), 130);
    assert!(names(&download.out).is_empty());
}

/// Starts fetching an endless file into a pipe that nobody drains.
fn begin_endless(server: &Listening, site: &Path, more: &[&str]) -> (Process, ChildStdout, bool) {
    endless(&site.join("endless"));
    let mut command = sutura(["get", "--insecure", "--out", "-", &server.url("/endless")]);
    command.args(more);
    let mut client = Process::spawn(command);
    let mut response = client.take_stdout();
    let began = response.read_exact(&mut [0]).is_ok();
    (client, response, began)
}

/// Interrupts a server and returns the only line that it logged.
fn log_line(server: Listening) -> String {
    let (output, _) = server.interrupt();
    success(&output);
    let log = String::from_utf8(output.stderr).unwrap();
    assert_eq!(log.lines().count(), 1, "{log}");
    assert!(log.contains(" h3 GET /endless 200 ") && log.contains(", aborted: "), "{log}");
    let bytes = log.split(" 200 ").nth(1).and_then(|rest| rest.split(" B ").next()).unwrap();
    assert!(bytes.parse::<u64>().unwrap() > 0, "{log}");
    log
}

/// Otherwise the server would wait for the client until its idle timeout.
#[test]
fn a_client_that_gives_up_closes_its_connection() {
    let scratch = Scratch::new();
    let site = scratch.dir("site");
    for signal in [Signal::INT, Signal::TERM] {
        let server = Listening::serve(&site, &scratch, &["-v"]);
        let (mut client, _response, began) = begin_endless(&server, &site, &[]);
        assert!(began);
        client.signal(signal);
        complaint(&client.output(), 130);
        let line = log_line(server);
        assert!(line.contains("aborted: connection lost: closed by peer's application"), "{line}");
    }
    // If everything takes long, the time is up before the response has begun.
    for limit in ["1", "8", "64", "256"] {
        let server = Listening::serve(&site, &scratch, &["-v"]);
        let (client, _response, began) = begin_endless(&server, &site, &["--max-time", limit]);
        assert!(complaint(&client.output(), 8).contains("not done within"));
        if began {
            let line = log_line(server);
            assert!(line.contains("connection lost: closed by peer's application"), "{line}");
            return;
        }
    }
    panic!("no response ever began");
}

#[test]
fn responses_are_logged_that_either_end_aborts() {
    let scratch = Scratch::new();
    let site = scratch.dir("site");
    // The client cannot write the response: it cancels the request, and closes the connection.
    let server = Listening::serve(&site, &scratch, &["-v"]);
    let (client, response, _) = begin_endless(&server, &site, &[]);
    drop(response);
    assert_eq!(client.output().status.code(), Some(1));
    let line = log_line(server);
    assert!(line.contains(" by peer"), "{line}");
    // A second interruption stops the server at once.
    let mut server = Listening::serve(&site, &scratch, &["-v"]);
    let (_client, _response, _) = begin_endless(&server, &site, &[]);
    server.process.signal(Signal::INT);
    let line = log_line(server);
    assert!(line.contains("aborted: the server stopped"), "{line}");
}

/// The server's record has the requests by stream; the first stream is the first request.
#[test]
fn requests_go_out_in_the_order_of_the_urls() {
    let scratch = Scratch::new();
    let (site, out, logs) = (scratch.dir("site"), scratch.dir("out"), scratch.dir("logs"));
    let paths: Vec<String> = (0..40).map(|n| format!("/{}.bin", n * 17 % 40)).collect();
    for path in &paths {
        write(&site, &path[1..], b"x");
    }
    let server = Listening::serve(&site, &scratch, &["--qlog", logs.to_str().unwrap()]);
    let urls: Vec<String> = paths.iter().map(|path| server.url(path)).collect();
    get_report(&server, &urls, &out, &["--parallel", "7"]);
    drop(server.interrupt());
    let record = fs::read_to_string(logs.join(&names(&logs)[0])).unwrap();
    let events = record.lines().map(|line| {
        serde_json::from_str::<serde_json::Value>(line.trim_start_matches('\u{1e}')).unwrap()
    });
    let asked = events.filter(|event| event["name"] == "http:frame_parsed").map(|event| {
        let headers = event["data"]["frame"]["headers"].as_array().unwrap();
        let path = headers.iter().find(|header| header["name"] == ":path").unwrap();
        let path = path["value"].as_str().unwrap().to_owned();
        (event["data"]["stream_id"].as_u64().unwrap(), path)
    });
    let asked: BTreeMap<u64, String> = asked.collect();
    assert_eq!(asked.into_values().collect::<Vec<_>>(), paths);
}

#[test]
fn connections_are_recorded_at_both_ends() {
    let (scratch, site, out) = Scratch::with_site();
    write(&site, "index.html", b"home");
    let logs = ["server", "client"].map(|end| scratch.path().join("logs").join(end));
    let [server_logs, client_logs] = logs.each_ref().map(|path| path.to_str().unwrap());
    let server = Listening::serve(&site, &scratch, &["--qlog", server_logs]);
    get_report(&server, &[server.url("/")], &out, &["--qlog", client_logs]);
    drop(server.interrupt());
    for logs in &logs {
        let names = names(logs);
        assert_eq!(names.len(), 1, "{names:?}");
        assert!(fs::metadata(logs.join(&names[0])).unwrap().len() > 0);
    }
}

/// The demo in short, as JSON.
fn short_demo(more: &[&str]) -> serde_json::Value {
    let args = ["demo", "--json", "--seconds", "2", "--connections", "1"];
    let text = success(&run(args.into_iter().chain(more.iter().copied())));
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_demo_compares_and_repeats() {
    let scratch = Scratch::new();
    let plots = scratch.dir("plots");
    let figure = scratch.dir("figure").join("demo.svg");
    let figure_argument = figure.to_str().unwrap();
    let demo = short_demo(&[
        "--seed",
        "3",
        "--plots",
        plots.to_str().unwrap(),
        "--figure",
        figure_argument,
    ]);
    assert_eq!(
        (&demo["seed"], &demo["seconds"], &demo["connections"]),
        (&json!(3), &json!(2), &json!(1))
    );
    let parts = demo["parts"].as_array().unwrap();
    let apps: Vec<&serde_json::Value> = parts.iter().map(|part| &part["app"]).collect();
    assert_eq!(apps, ["game", "stream", "messages", "download"]);
    for on_link in parts.iter().flat_map(|part| part["links"].as_array().unwrap()) {
        assert!(!on_link["finding"].as_str().unwrap().is_empty(), "{on_link}");
        assert!(on_link["summary"]["verdict"].is_string(), "{on_link}");
        assert!(on_link["link"]["profile"].as_str().unwrap().contains("delay="), "{on_link}");
        let rows = on_link["rows"].as_array().unwrap();
        assert_eq!(rows[0]["redundancy"], "none");
        assert_eq!((&rows[0]["repairs"], &rows[0]["extra"]), (&json!(0), &json!(0.0)));
        for row in rows {
            assert!(row["times_ms"]["p50"].as_f64() > Some(15.0), "{row}");
            assert!(row["bytes"].as_u64() > Some(10_000), "{row}");
        }
        assert!(rows[1]["repairs"].as_u64() > Some(0), "fixed: {on_link}");
    }
    let charts = ["demo-download.svg", "demo-game.svg", "demo-messages.svg", "demo-stream.svg"];
    assert_eq!(names(&plots), charts);
    assert!(fs::read_to_string(figure).unwrap().contains("satellite"));
    assert_eq!(short_demo(&["--seed", "3", "--threads", "3"]), demo, "the same seed");
}

#[test]
fn experiments_are_listed() {
    let text = success(&run(["lab"]));
    for experiment in sutura_lab::EXPERIMENTS {
        assert!(text.contains(experiment.name), "{text}");
    }
}

#[test]
fn every_chart_of_an_experiment_is_a_file_of_its_own() {
    let scratch = Scratch::new();
    let charts = scratch.dir("charts");
    let mut command = sutura(["lab", "holzinger-page", "--plots"]);
    command.arg(&charts);
    success(&Process::spawn(command).output());
    let names = names(&charts);
    assert_eq!(names.len(), 5, "{names:?}");
}

/// The lines that a command prints.
fn lines(args: &[&str]) -> Vec<String> {
    success(&run(args)).lines().map(str::to_owned).collect()
}

fn with(mut command: Command, path: &Path) -> Command {
    command.arg(path);
    command
}

/// Whether a file begins and ends as a Parquet file does.
fn is_parquet(path: &Path) -> bool {
    let bytes = fs::read(path).unwrap();
    bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1")
}

#[test]
fn tables_of_a_report_are_files() {
    let scratch = Scratch::new();
    let tables = scratch.path().join("tables");
    let command = with(sutura(["lab", "holzinger-page", "--reduce", "1000", "--tables"]), &tables);
    success(&Process::spawn(command).output());
    assert!(is_parquet(&tables.join("holzinger-page-table-1.parquet")));
    let csv = fs::read_to_string(tables.join("holzinger-page-table-1.csv")).unwrap();
    assert!(csv.lines().count() > 1, "{csv}");
}

#[test]
fn an_experiment_can_be_done_job_by_job() {
    let scratch = Scratch::new();
    let out = scratch.path().join("results");
    let out = out.to_str().unwrap();
    let of = |command, more: &[&'static str]| {
        let mut args = vec!["lab", command, "holzinger-page", "--out", out];
        args.extend(more);
        args
    };
    let jobs = lines(&of("jobs", &[]));
    assert_eq!(jobs, ["0-0", "0-1", "0-2", "0-3", "0-4"]);
    let missing = run(of("merge", &[]));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("5 of 5 jobs of round 0"));
    success(&run(of("run", &["--job", "0-4", "--job", "0-1"])));
    success(&run(of("run", &["--job", "0-0", "--job", "0-2", "--job", "0-3"])));
    assert_eq!(lines(&of("jobs", &[])), [""; 0]);
    assert_eq!(success(&run(of("jobs", &["--json"]))).trim(), "null");
    let long = scratch.path().join("long.parquet");
    let merge = sutura(of("merge", &["--results"]));
    let merged = success(&Process::spawn(with(merge, &long)).output());
    assert_eq!(merged.lines().collect::<Vec<_>>(), lines(&["lab", "holzinger-page"]));
    assert!(is_parquet(&long));
    let other = run(of("merge", &["--seed", "2"]));
    assert!(String::from_utf8_lossy(&other.stderr).contains("another run"), "{other:?}");
    let beyond = run(of("run", &["--job", "0-5"]));
    assert!(String::from_utf8_lossy(&beyond.stderr).contains("the round has 5"), "{beyond:?}");
}

#[test]
fn the_cases_of_the_zoo_are_a_line_each_of_csv() {
    let scratch = Scratch::new();
    let csv = scratch.path().join("zoo.csv");
    let one = ["lab", "auto-zoo", "--only", "0", "--seeds", "1"];
    let policies = ["--policy", "tail:burst=1", "--policy", "auto", "--csv"];
    let mut command = sutura([&one[..], &policies].concat());
    command.arg(&csv);
    success(&Process::spawn(command).output());
    let text = fs::read_to_string(csv).unwrap();
    let starts: Vec<&str> =
        text.lines().map(|line| line.split(",messages,").next().unwrap()).collect();
    assert!(starts[0].starts_with("case,seed,seeds,policy,"), "{text}");
    assert_eq!(starts[1..], ["0,1,1,none", "0,1,1,tail:burst=1", "0,1,1,auto"]);
}

#[test]
fn requests_go_with_the_first_packets_if_both_ends_permit_it() {
    let (scratch, site, out) = Scratch::with_site();
    let names = ["a.bin", "b.bin", "c.bin"];
    names.iter().for_each(|name| write(&site, name, &noise(50_000)));
    for (options, accepted) in [(&["--early-data"][..], json!(true)), (&[][..], json!(null))] {
        let server = Listening::serve(&site, &scratch, options);
        let urls = names.map(|name| server.url(&format!("/{name}")));
        let report = get_report(&server, &urls, &out, &["--early"]);
        for name in names {
            let got = out.join(name);
            assert!(fs::read(&got).unwrap() == fs::read(site.join(name)).unwrap(), "{name}");
            fs::remove_file(got).unwrap();
        }
        let connections = report["connections"].as_array().unwrap();
        assert_eq!(connections.len(), 2);
        assert_eq!(connections[0]["early_data"], json!(null));
        assert_eq!(connections[1]["early_data"], accepted);
        // Without `--early`, all requests go over one connection.
        let report = get_report(&server, &urls, &out, &[]);
        assert_eq!(report["connections"].as_array().unwrap().len(), 1);
        names.iter().for_each(|name| fs::remove_file(out.join(name)).unwrap());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn several_workers_serve_one_site() {
    let (scratch, site, out) = Scratch::with_site();
    write(&site, "a.bin", &noise(100_000));
    let server = Listening::serve(&site, &scratch, &["--workers", "3", "--retry"]);
    for _ in 0..8 {
        get_report(&server, &[server.url("/a.bin")], &out, &[]);
        assert!(fs::read(out.join("a.bin")).unwrap() == noise(100_000));
        fs::remove_file(out.join("a.bin")).unwrap();
    }
    success(&server.interrupt().0);
    let none = run(["serve".as_ref(), site.as_os_str(), "--workers".as_ref(), "0".as_ref()]);
    assert_eq!(none.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&none.stderr).contains("--workers"));
}
