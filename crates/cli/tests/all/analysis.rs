//! Records a transfer and analyses it with `sutura qlog`.

use std::fs;
use std::path::PathBuf;

use crate::support::*;
use serde_json::Value;

/// Sizes of the responses in bytes, without headers and frames.
const SIZES: [usize; 3] = [60_000, 90_000, 120_000];

/// Fetches three files over a link and returns the records of client and server.
fn transfer(scratch: &Scratch, profile: &str, more: &[&str]) -> [PathBuf; 2] {
    let (site, out) = (scratch.dir("site"), scratch.dir("out"));
    for (n, size) in SIZES.into_iter().enumerate() {
        fs::write(site.join(format!("{n}.bin")), noise(size)).unwrap();
    }
    let logs = ["client", "server"].map(|end| scratch.path().join(end));
    let [client, logs_of_server] = logs.each_ref().map(|path| path.to_str().unwrap());
    let server = Listening::serve(&site, scratch, &["--qlog", logs_of_server]);
    let link = Listening::link(&server, profile);
    let urls = ["/0.bin", "/1.bin", "/2.bin"].map(|path| link.url(path));
    let fingerprint = server.fingerprint().to_owned();
    let mut command = sutura(["get", "--json", "--fingerprint", &fingerprint, "--qlog", client]);
    command.args(more).arg("--out").arg(out.join("")).args(&urls);
    success(&Process::spawn(command).output());
    drop(link);
    drop(server.interrupt());
    logs.map(|path| {
        let names = names(&path);
        assert_eq!(names.len(), 1, "{names:?}");
        path.join(&names[0])
    })
}

fn analyse(args: &[&str], files: &[&PathBuf]) -> (Value, String) {
    let mut command = sutura(["qlog", "--json"]);
    command.args(args).args(files);
    let output = Process::spawn(command).output();
    success(&output);
    let report = serde_json::from_slice(&output.stdout).unwrap();
    (report, String::from_utf8(output.stderr).unwrap())
}

fn stream(report: &Value, trace: usize, id: u64) -> &Value {
    let streams = report["traces"][trace]["streams"].as_array().unwrap();
    streams.iter().find(|row| row["stream"] == id).unwrap()
}

#[test]
fn a_transfer_over_a_lossy_link() {
    let scratch = Scratch::new();
    let profile = "rate=20mbit delay=10ms loss=bern:0.05";
    let [client, server] = transfer(&scratch, profile, &[]);
    let figures = scratch.path().join("new/figures");
    let out = ["--out", figures.to_str().unwrap()];
    let (report, warnings) = analyse(&out, &[&client, &server]);
    assert_eq!(warnings, "");
    let [at_client, at_server] = [0, 1].map(|n| &report["traces"][n]);
    assert_eq!(at_client["overview"]["vantage"], "client");
    assert_eq!(at_client["overview"]["direction"], "received");
    assert_eq!(at_server["overview"]["direction"], "sent");
    assert_eq!(at_client["overview"]["group"], at_server["overview"]["group"]);
    let mut lengths = Vec::new();
    for id in [0, 4, 8] {
        let [received, sent] = [0, 1].map(|trace| stream(&report, trace, id));
        let length = received["bytes"].as_u64().unwrap();
        lengths.push(length);
        assert_eq!((&received["final_size"], &sent["bytes"]), (&length.into(), &length.into()));
        let times = ["requested_ms", "first_byte_ms", "last_byte_ms"].map(|k| received[k].as_f64());
        assert!(times[0].is_some() && times.is_sorted(), "{received}");
        assert_eq!(received["last_byte_ms"], received["completed_ms"]);
        // A round trip of 20 ms lies between request and response.
        assert!(times[1].unwrap() - times[0].unwrap() >= 20.0, "{received}");
    }
    // The streams also contain the responses' headers and frames.
    lengths.sort_unstable();
    for (length, size) in lengths.iter().zip(SIZES) {
        assert!((size as u64 + 10..size as u64 + 1000).contains(length), "{lengths:?}");
    }
    let bytes: u64 = lengths.iter().sum();
    assert!(at_client["overview"]["retransmitted"].as_u64() > Some(0));
    assert!(at_server["overview"]["retransmitted"].as_u64() > Some(0));
    let blocking = &at_client["blocking"];
    assert!(blocking["held"]["gaps"].as_u64() > Some(0), "{blocking}");
    let ratio = blocking["ratio"].as_f64().unwrap();
    assert!(ratio > 0.0 && ratio <= 1.0, "{blocking}");
    let delay = |kind: &str| blocking["mean_delay_ms"][kind].as_f64().unwrap();
    assert!(delay("quic") > 0.0 && delay("quic") <= delay("tcp"), "{blocking}");
    assert_eq!(at_server["blocking"], Value::Null);
    assert_eq!(blocking["order_of_sending_known"], true);
    let index = &at_client["byte_index"];
    assert_eq!((&index["bytes"], &index["unfinished"]), (&bytes.into(), &0.into()));
    let [progressive, sampled] =
        ["progressive_ms", "sampled_ms"].map(|kind| index["index"][kind].as_f64().unwrap());
    assert!(progressive > 0.0 && progressive < sampled, "{index}");
    assert_eq!(report["comparison"][0]["speedup"], 1.0);
    assert_eq!(at_client["multiplexing"]["arrivals"], Value::Null);
    let bundled = at_client["bundling"]["by_frames"].as_array().unwrap().iter();
    let packets = bundled.map(|count| count.as_u64().unwrap()).sum::<u64>();
    assert!(packets > 0, "{at_client}");
    assert_eq!(at_client["bundling"]["packets"], packets);
    // Three figures of the client, two of the server.
    let files = names(&figures);
    assert_eq!(files.len(), 5, "{files:?}");
    assert_eq!(report["figures"].as_array().unwrap().len(), 5);
    for file in files {
        assert!(fs::read_to_string(figures.join(file)).unwrap().ends_with("</svg>\n"));
    }
}

#[test]
fn what_was_recovered_counts_as_received() {
    let scratch = Scratch::new();
    // With so many losses and repair symbols throughout, some packets are recovered in any case.
    let profile = "rate=20mbit delay=10ms loss=bern:0.1";
    let [client, server] = transfer(&scratch, profile, &["--fec", "3", "--priority", "i"]);
    let (report, warnings) = analyse(&["--vantage", "client"], &[&client, &server]);
    assert_eq!(warnings, "");
    assert_eq!(report["traces"].as_array().unwrap().len(), 1);
    let overview = &report["traces"][0]["overview"];
    assert!(overview["symbols"]["recovered"].as_u64() > Some(0), "{overview}");
    assert_eq!(overview["symbols"]["unresolved"], 0);
    assert!(overview["recovered"].as_u64() > Some(0), "{overview}");
    assert!(overview["received"]["repair_symbols"].as_u64() > Some(0), "{overview}");
    assert_eq!(report["traces"][0]["byte_index"]["unfinished"], 0);
    // The client's record has the content of recovered symbols. Other stacks' records may not, and
    // a warning asks for the server's record.
    let (report, warnings) = analyse(&["--only", "streams"], &[&client]);
    assert_eq!(warnings, "");
    let record = fs::read_to_string(&client).unwrap();
    let lines = record.lines().map(|line| match line.contains("fec:symbol_recovered") {
        true => {
            line.split_once(r#","frames""#).map_or(line.into(), |(head, _)| format!("{head}}}}}"))
        }
        false => line.to_owned(),
    });
    let bare = scratch.path().join("bare.sqlog");
    fs::write(&bare, lines.collect::<Vec<_>>().join("\n")).unwrap();
    let (bare, warnings) = analyse(&["--only", "streams"], &[&bare]);
    assert!(warnings.contains("the other end's record"), "{warnings}");
    assert!(bare["traces"][0]["overview"]["symbols"]["unresolved"].as_u64() > Some(0), "{bare}");
    let trace = &report["traces"][0];
    assert_eq!((&trace["blocking"], &trace["byte_index"]), (&Value::Null, &Value::Null));
}

/// A request for `/a`, answered with 1500 bytes in two frames 30 and 50 ms after it.
const DOCUMENT: &str = r#"{"qlog_format":"JSON","qlog_version":"0.3","traces":[{"vantage_point":{"type":"client"},"events":[
{"time":10,"name":"http:frame_created","data":{"stream_id":0,"frame":{"frame_type":"headers","headers":[{"name":":path","value":"/a\u001b[2J"}]}}},
{"time":40,"name":"transport:packet_received","data":{"header":{"packet_type":"1RTT","packet_number":1},"frames":[{"frame_type":"stream","stream_id":0,"offset":0,"length":1000}]}},
{"time":60,"name":"transport:packet_received","data":{"header":{"packet_type":"1RTT","packet_number":2},"frames":[{"frame_type":"stream","stream_id":0,"offset":1000,"length":500,"fin":true}]}}
]}]}"#;

#[test]
fn text_for_people() {
    let scratch = Scratch::new();
    let file = scratch.path().join("page.qlog");
    fs::write(&file, DOCUMENT).unwrap();
    let text = success(&run(["qlog".as_ref(), file.as_os_str()]));
    // (1000 * 30 + 500 * 50) / 1500 = 36.67 ms.
    for part in [
        "== page",
        "1500 bytes on 1 streams",
        "ByteIndex 36.7 ms",
        "nothing held back, no ratio",
        "sending is a guess",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text}");
    assert!(!text.contains("Comparison"), "{text}");
    // With two records and one analysis, they are compared by that analysis.
    let args = ["qlog", "--only", "byte-index", "--visible", "0,8"].map(std::ffi::OsStr::new);
    let output = run(args.into_iter().chain([file.as_os_str(), file.as_os_str()]));
    let text = success(&output);
    assert!(text.contains("== Comparison") && text.contains("== page-2"), "{text}");
    assert!(!text.contains("-- Streams"), "{text}");
    let warnings = String::from_utf8(output.stderr).unwrap();
    assert!(warnings.contains("no data on the visible streams [8]"), "{warnings}");
}

#[test]
fn files_that_cannot_be_used() {
    let scratch = Scratch::new();
    let file = scratch.path().join("page.qlog");
    let path = file.to_str().unwrap();
    assert!(complaint(&run(["qlog", path]), 3).contains("cannot read"));
    for (content, what) in
        [("", "empty"), ("GIF89a\n", "not JSON"), ("{\"log\":{\"version\":\"1.2\"}}", "not qlog")]
    {
        fs::write(&file, content).unwrap();
        let text = complaint(&run(["qlog", path]), 3);
        assert!(text.contains(what) && text.contains(path), "{text}");
    }
    // A truncated file is read as far as it goes, with a warning.
    fs::write(&file, &DOCUMENT[..DOCUMENT.len() - 30]).unwrap();
    let output = run(["qlog", "--json", path]);
    let report: Value = serde_json::from_str(&success(&output)).unwrap();
    assert_eq!(report["traces"][0]["overview"]["bytes"], 1000);
    assert!(complaint(&output, 0).contains("ends early"));
    fs::write(&file, DOCUMENT).unwrap();
    complaint(&run(["qlog", "--vantage", "server", path]), 3);
    complaint(&run(["qlog", "--out", path, path]), 3);
    assert_eq!(run(["qlog"]).status.code(), Some(2));
    assert_eq!(run(["qlog", "--only", "magic", path]).status.code(), Some(2));
}
