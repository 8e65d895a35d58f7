//! Records a transfer over loopback with qlog and checks the records.

use crate::common::http::{accepted, connect};
use crate::common::{pair, pattern};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use sutura::http;
use sutura::qlog::QlogWriter;
use sutura::{Endpoint, Protection, Side, TransportConfig};

const SIZE: usize = 300_000;

/// The records of the only file whose name ends in `suffix`.
fn records(directory: &Path, suffix: &str) -> Vec<Value> {
    let mut files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let file = files.find(|path| path.to_str().unwrap().ends_with(suffix)).unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    let records: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line.strip_prefix('\u{1e}').unwrap()).unwrap())
        .collect();
    let odcid = records[0]["trace"]["common_fields"]["ODCID"].as_str().unwrap();
    assert_eq!(file.file_name().unwrap().to_str().unwrap(), format!("{odcid}{suffix}"));
    records
}

fn named<'a>(records: &'a [Value], name: &str) -> impl Iterator<Item = &'a Value> {
    let name = name.to_owned();
    records.iter().filter(move |r| r["name"] == name.as_str()).map(|r| &r["data"])
}

fn frames<'a>(records: &'a [Value], name: &str, kind: &str) -> impl Iterator<Item = &'a Value> {
    let kind = kind.to_owned();
    named(records, name)
        .flat_map(|packet| packet["frames"].as_array().unwrap())
        .filter(move |f| f["frame_type"] == kind.as_str())
}

/// The length of the contiguous run of bytes from the start of stream 0 in its STREAM frames.
fn covered(records: &[Value], name: &str) -> u64 {
    let mut spans: Vec<(u64, u64)> = frames(records, name, "stream")
        .filter(|f| f["stream_id"] == 0)
        .map(|f| (f["offset"].as_u64().unwrap(), f["length"].as_u64().unwrap()))
        .collect();
    spans.sort_unstable();
    spans.into_iter().fold(0, |end, (at, len)| if at <= end { end.max(at + len) } else { end })
}

fn write_qlog(endpoints: [&Endpoint; 2], directory: &Path) {
    for endpoint in endpoints {
        let directory = directory.to_owned();
        endpoint.observe_with(move |side| QlogWriter::create(&directory, side, "a test").ok());
    }
}

/// Sends `SIZE` bytes on stream 0 from the client and records both ends.
async fn record(directory: &Path, protection: Option<Protection>) {
    let (server, client, address) = pair(b"qlog", &TransportConfig::default());
    write_qlog([&server, &client], directory);
    let receiver = tokio::spawn(async move {
        let connection = server.accept().await.unwrap().await.unwrap();
        let (mut send, mut recv) = connection.accept_bi().await.unwrap();
        let got = recv.read_to_end(SIZE).await.unwrap();
        send.finish().unwrap();
        connection.closed().await;
        drop((send, recv, connection));
        server.wait_idle().await;
        got
    });
    let connection = client.connect(address, "localhost").unwrap().await.unwrap();
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    send.protect(protection).unwrap();
    let data = pattern(SIZE);
    send.write_all(&data).await.unwrap();
    send.finish().unwrap();
    assert!(recv.read_to_end(0).await.unwrap().is_empty());
    connection.close(0, b"done");
    drop((send, recv, connection));
    client.wait_idle().await;
    assert!(receiver.await.unwrap() == data);
}

fn check_order(records: &[Value]) {
    let times: Vec<_> = records[1..].iter().map(|r| r["time"].as_f64().unwrap()).collect();
    assert!(times.is_sorted());
    let mut newest = BTreeMap::new();
    for packet in named(records, "transport:packet_sent") {
        let header = &packet["header"];
        let ty = header["packet_type"].as_str().unwrap();
        let number = header["packet_number"].as_u64().unwrap();
        let before = newest.insert(ty, number);
        assert!(before < Some(number), "{ty}: {number} after {before:?}");
        assert!(packet["raw"]["length"].as_u64() > packet["raw"]["payload_length"].as_u64());
    }
    assert!(newest.contains_key("initial") && newest.contains_key("1RTT"), "{newest:?}");
}

/// Checks that every range that the peer acknowledged contains only packets that this end sent.
fn check_acknowledgements(records: &[Value]) {
    let mut sent: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for packet in named(records, "transport:packet_sent") {
        let header = &packet["header"];
        let ty = header["packet_type"].as_str().unwrap();
        sent.entry(ty).or_default().push(header["packet_number"].as_u64().unwrap());
    }
    let mut ranges = 0;
    for packet in named(records, "transport:packet_received") {
        let sent = &sent[packet["header"]["packet_type"].as_str().unwrap()];
        for ack in packet["frames"].as_array().unwrap().iter().filter(|f| f["frame_type"] == "ack")
        {
            for range in ack["acked_ranges"].as_array().unwrap() {
                let (from, to) = (range[0].as_u64().unwrap(), range[1].as_u64().unwrap());
                for number in from..=to {
                    assert!(sent.contains(&number), "{number} was never sent");
                }
                ranges += 1;
            }
        }
    }
    assert!(ranges > 3, "{ranges}");
}

#[tokio::test]
async fn a_transfer_is_recorded_at_both_ends() {
    let directory = tempfile::tempdir().unwrap();
    record(directory.path(), None).await;
    let client = records(directory.path(), "_client.sqlog");
    let server = records(directory.path(), "_server.sqlog");
    for (records, side) in [(&client, "client"), (&server, "server")] {
        assert_eq!(records[0]["trace"]["vantage_point"]["type"], side);
        assert_eq!(records[0]["title"], "a test");
        check_order(records);
        check_acknowledgements(records);
        let owners: Vec<_> = named(records, "transport:parameters_set")
            .map(|p| p["owner"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(owners, ["local", "remote"]);
        assert_eq!(named(records, "connectivity:connection_closed").count(), 1);
        assert!(named(records, "recovery:metrics_updated").count() > 0);
    }
    assert_eq!(covered(&client, "transport:packet_sent"), SIZE as u64);
    assert_eq!(covered(&server, "transport:packet_received"), SIZE as u64);
    assert!(frames(&client, "transport:packet_sent", "stream").any(|f| f["fin"] == true));
    let close = frames(&client, "transport:packet_sent", "connection_close").next().unwrap();
    assert_eq!((&close["error_space"], &close["reason"]), (&"application".into(), &"done".into()));
    assert_eq!(frames(&client, "transport:packet_sent", "source_symbol").count(), 0);
}

#[tokio::test]
async fn a_protected_transfer_shows_its_symbols() {
    let directory = tempfile::tempdir().unwrap();
    let protection = Protection::incremental(2, Duration::ZERO);
    record(directory.path(), Some(protection)).await;
    let client = records(directory.path(), "_client.sqlog");
    let server = records(directory.path(), "_server.sqlog");
    check_order(&client);
    assert_eq!(covered(&client, "transport:packet_sent"), SIZE as u64);
    let symbols: Vec<_> = frames(&client, "transport:packet_sent", "source_symbol")
        .map(|f| f["symbol_id"].as_u64().unwrap())
        .collect();
    assert!(symbols.len() > 200, "{}", symbols.len());
    let received = frames(&server, "transport:packet_received", "source_symbol").count();
    assert!(received > 200, "{received}");
    let mut repairs = frames(&client, "transport:packet_sent", "repair").peekable();
    assert!(repairs.peek().is_some());
    for repair in repairs {
        let first = repair["first_symbol_id"].as_u64().unwrap();
        let last = first + repair["symbol_count"].as_u64().unwrap() - 1;
        assert!(symbols.contains(&first) && symbols.contains(&last), "{repair}");
    }
}

/// Fetches `SIZE` bytes over HTTP/3 and records both ends.
async fn record_request(directory: &Path) {
    let (server, endpoint, address) = pair(http::ALPN, &TransportConfig::default());
    write_qlog([&server, &endpoint], directory);
    let responder = tokio::spawn(async move {
        let mut requests = accepted(&server).await;
        let (_, mut stream) = requests.accept().await.unwrap().unwrap();
        stream.send_response(200, &[("set-cookie", b"secret")]).await.unwrap();
        stream.send_data(pattern(SIZE).into()).await.unwrap();
        stream.finish().await.unwrap();
        requests.connection().closed().await;
        drop((requests, stream));
        server.wait_idle().await;
    });
    let client = connect(&endpoint, address).await;
    let (secret, priority) = ([("cookie", &b"secret"[..])], "u=5, i".parse().unwrap());
    let sent = client.request("GET", "localhost", "/page", &secret, Some(priority)).await;
    let mut stream = sent.unwrap();
    stream.finish().await.unwrap();
    client.set_priority(&stream, &"u=1".parse().unwrap()).unwrap();
    stream.recv_response().await.unwrap();
    while stream.recv_data().await.unwrap().is_some() {}
    client.connection().close(0, b"done");
    drop((stream, client));
    endpoint.wait_idle().await;
    responder.await.unwrap();
}

#[tokio::test]
async fn a_server_says_what_was_asked_before_it_sends() {
    let directory = tempfile::tempdir().unwrap();
    record_request(directory.path()).await;
    let records = records(directory.path(), "_server.sqlog");
    let (mut written, mut sent, mut asked) = (0, 0, false);
    for record in &records[1..] {
        let data = &record["data"];
        match record["name"].as_str().unwrap() {
            "http:frame_parsed" => asked |= data["stream_id"] == 0,
            "transport:data_moved" if data["stream_id"] == 0 => {
                assert!(asked);
                written += data["length"].as_u64().unwrap();
            }
            "transport:packet_sent" => {
                let frames = data["frames"].as_array().unwrap().iter();
                for frame in frames.filter(|f| f["frame_type"] == "stream" && f["stream_id"] == 0) {
                    let end = frame["offset"].as_u64().unwrap() + frame["length"].as_u64().unwrap();
                    sent = sent.max(end);
                    assert!(sent <= written, "{sent} bytes of {written}");
                }
            }
            _ => {}
        }
    }
    assert!(written > SIZE as u64 && sent == written, "{sent} bytes of {written}");
}

/// The data of the only event with this name that has a frame of this type.
fn frame<'a>(records: &'a [Value], name: &str, kind: &str) -> &'a Value {
    let mut events = named(records, name).filter(|data| data["frame"]["frame_type"] == kind);
    let event = events.next().unwrap();
    assert_eq!(events.next(), None, "{name}");
    event
}

#[tokio::test]
async fn both_ends_record_what_was_asked_and_answered_but_no_secrets() {
    let directory = tempfile::tempdir().unwrap();
    record_request(directory.path()).await;
    let client = records(directory.path(), "_client.sqlog");
    let server = records(directory.path(), "_server.sqlog");
    let field = |name: &str, value: &str| json!({"name": name, "value": value});
    let request = json!([
        field(":method", "GET"),
        field(":scheme", "https"),
        field(":authority", "localhost"),
        field(":path", "/page"),
        field("priority", "u=5, i"),
    ]);
    let asked = json!({"stream_id": 0, "frame": {"frame_type": "headers", "headers": request}});
    let answered = json!({"stream_id": 0, "frame":
        {"frame_type": "headers", "headers": [field(":status", "200")]}});
    let update = json!({"stream_id": 2, "frame":
        {"frame_type": "priority_update", "element_id": 0, "value": "u=1"}});
    for (records, to_server, to_client) in [
        (&client, "http:frame_created", "http:frame_parsed"),
        (&server, "http:frame_parsed", "http:frame_created"),
    ] {
        assert_eq!(frame(records, to_server, "headers"), &asked);
        assert_eq!(frame(records, to_server, "priority_update"), &update);
        assert_eq!(frame(records, to_client, "headers"), &answered);
    }
}

#[tokio::test]
async fn a_directory_that_is_not_there_is_an_error() {
    let nowhere = Path::new("/nowhere/at/all");
    assert!(QlogWriter::create(nowhere, Side::Client, "").is_err());
}
