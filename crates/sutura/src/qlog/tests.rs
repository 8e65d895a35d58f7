use super::ApplicationEvent;
use super::frames::{self, FrameEntry};
use super::writer::Recorder;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use sutura_h3::{Fields, FrameAction, FrameContent, FrameEvent};
use sutura_proto::policy::LossFloor;
use sutura_proto::wire_format::{Carrier, FrameIter};
use sutura_proto::{
    ConnectionId, Metrics, Observation, Protection, Reason, Side, SpaceId, StreamId,
};

fn entries(payload: &[u8]) -> Vec<Value> {
    let mut entries: Vec<FrameEntry<'_>> = Vec::new();
    frames::list(payload, Carrier::OneRtt, 3, &mut entries);
    entries.iter().map(|e| serde_json::to_value(e).unwrap()).collect()
}

/// The records of a connection with these observations.
fn records(observations: &[(u64, Observation<'_>)]) -> Vec<Value> {
    let start = Instant::now();
    let mut recorder = Recorder::default();
    let mut out = Vec::new();
    let odcid = ConnectionId::new(&[0xab, 0xcd]).unwrap();
    recorder.start(start, Side::Server, "a title", odcid, &mut out).unwrap();
    for (at, observation) in observations {
        let now = start + Duration::from_micros(*at);
        recorder.record(now, observation, &mut out).unwrap();
    }
    let text = String::from_utf8(out).unwrap();
    assert!(text.starts_with('\u{1e}') && text.ends_with('\n'));
    text[1..].split('\u{1e}').map(|record| serde_json::from_str(record).unwrap()).collect()
}

/// One of each frame of RFC 9000 and RFC 9221 except NEW_CONNECTION_ID, with a DATAGRAM without a
/// length last. Each field has another number.
const PAYLOAD: &[u8] = &[
    0x00, 0x00, 0x01, // PADDING twice, PING
    0x03, 0x14, 0x7d, 0x00, 0x01, 0x02, 0x02, 0x00, 0x07, 0x08, 0x09, // ACK 18..=20, 14; ECN
    0x04, 0x04, 0x05, 0x06, // RESET_STREAM
    0x05, 0x04, 0x05, // STOP_SENDING
    0x06, 0x09, 0x01, 0xff, // CRYPTO
    0x07, 0x02, 0xff, 0xff, // NEW_TOKEN
    0x0f, 0x04, 0x0a, 0x02, 0xff, 0xff, // STREAM with offset, length and FIN
    0x10, 0x0b, 0x11, 0x04, 0x0c, 0x12, 0x0d, 0x13, 0x0e, // MAX_*
    0x14, 0x0b, 0x15, 0x04, 0x0c, 0x16, 0x0d, 0x17, 0x0e, // *_BLOCKED
    0x19, 0x0f, // RETIRE_CONNECTION_ID
    0x1a, 1, 2, 3, 4, 5, 6, 7, 8, 0x1b, 1, 2, 3, 4, 5, 6, 7, 8, // PATH_*
    0x1c, 0x0a, 0x08, 0x02, b'n', b'o', // CONNECTION_CLOSE of the transport
    0x1d, 0x0a, 0x01, 0xff, // of the application, with a reason that is not UTF-8
    0x1e, // HANDSHAKE_DONE
    0x30, 0xff, 0xff, // DATAGRAM
];

#[test]
fn frames_have_the_fields_that_qlog_names() {
    let expected = json!([
        {"frame_type": "padding"},
        {"frame_type": "ping"},
        {"frame_type": "ack", "ack_delay": 0.0, "acked_ranges": [[18, 20], [14, 14]],
         "ect0": 7, "ect1": 8, "ce": 9},
        {"frame_type": "reset_stream", "stream_id": 4, "error_code": 5, "final_size": 6},
        {"frame_type": "stop_sending", "stream_id": 4, "error_code": 5},
        {"frame_type": "crypto", "offset": 9, "length": 1},
        {"frame_type": "new_token", "length": 2},
        {"frame_type": "stream", "stream_id": 4, "offset": 10, "length": 2, "fin": true},
        {"frame_type": "max_data", "maximum": 11},
        {"frame_type": "max_stream_data", "stream_id": 4, "maximum": 12},
        {"frame_type": "max_streams", "stream_type": "bidirectional", "maximum": 13},
        {"frame_type": "max_streams", "stream_type": "unidirectional", "maximum": 14},
        {"frame_type": "data_blocked", "limit": 11},
        {"frame_type": "stream_data_blocked", "stream_id": 4, "limit": 12},
        {"frame_type": "streams_blocked", "stream_type": "bidirectional", "limit": 13},
        {"frame_type": "streams_blocked", "stream_type": "unidirectional", "limit": 14},
        {"frame_type": "retire_connection_id", "sequence_number": 15},
        {"frame_type": "path_challenge"},
        {"frame_type": "path_response"},
        {"frame_type": "connection_close", "error_space": "transport", "error_code": 10,
         "reason": "no", "trigger_frame_type": 8},
        {"frame_type": "connection_close", "error_space": "application", "error_code": 10,
         "reason": "\u{fffd}"},
        {"frame_type": "handshake_done"},
        {"frame_type": "datagram", "length": 2},
    ]);
    let mut got = entries(PAYLOAD);
    // 0x7d00 is 15616 units of 8 microseconds.
    assert_eq!(got[2]["ack_delay"].take(), json!(124.928));
    got[2]["ack_delay"] = json!(0.0);
    assert_eq!(Value::from(got), expected);
}

#[test]
fn frames_are_named_as_in_the_registry() {
    let names: Vec<_> =
        FrameIter::new(PAYLOAD, Carrier::OneRtt).map(|f| f.unwrap().kind().info().name).collect();
    let got = entries(PAYLOAD);
    assert_eq!(got.iter().map(|e| e["frame_type"].as_str().unwrap()).collect::<Vec<_>>(), names);
}

#[test]
fn a_source_symbol_is_followed_by_what_it_protects() {
    let payload = [0x01, 0x7f, 0x53, 0x02, 0x09, 0x0a, 0x04, 0x01, 0xff, 0x08, 0x08, 0xff, 0xff];
    let expected = json!([
        {"frame_type": "ping"},
        {"frame_type": "source_symbol", "session": 2, "symbol_id": 9, "length": 8},
        {"frame_type": "stream", "stream_id": 4, "offset": 0, "length": 1, "fin": false},
        {"frame_type": "stream", "stream_id": 8, "offset": 0, "length": 2, "fin": false},
    ]);
    assert_eq!(Value::from(entries(&payload)), expected);
}

#[test]
fn other_fec_frames_have_their_fields() {
    let payload = [
        0x7f, 0x55, 0x02, 0x05, 0x01, 0x01, 0x03, // SYMBOL_ACK: below 5, and 6..=8
        0x7f, 0x56, 0x02, 0x04, // SYMBOL_WINDOW
        0x7f, 0x54, 0x02, 0x04, 0x03, 0x07, 0xff, 0xff, 0xff, 0xff, // REPAIR
    ];
    let expected = json!([
        {"frame_type": "symbol_ack", "session": 2, "lower_bound": 5, "held_ranges": [[6, 8]]},
        {"frame_type": "symbol_window", "session": 2, "lower_bound": 4},
        {"frame_type": "repair", "session": 2, "first_symbol_id": 4, "symbol_count": 3, "key": 7,
         "length": 4},
    ]);
    assert_eq!(Value::from(entries(&payload)), expected);

    let coded = [0x7f, 0x57, 0x02, 0x01, 0x04, 0x03, 0x07, 0xff, 0xff, 0xff]; // REPAIR_CODED
    let expected = json!([
        {"frame_type": "repair", "session": 2, "code": 1, "first_symbol_id": 4, "symbol_count": 3,
         "key": 7, "length": 3},
    ]);
    assert_eq!(Value::from(entries(&coded)), expected);
}

#[test]
fn what_cannot_be_read_ends_the_list() {
    let got = entries(&[0x01, 0x21, 0x01]);
    assert_eq!(got.len(), 2);
    assert_eq!(got[1]["frame_type"], "unknown");
}

#[test]
fn the_header_is_what_qvis_looks_for() {
    let records = records(&[]);
    let header = &records[0];
    assert_eq!(header["qlog_version"], "0.3");
    assert_eq!(header["qlog_format"], "JSON-SEQ");
    let trace = &header["trace"];
    assert_eq!(trace["vantage_point"]["type"], "server");
    assert_eq!(trace["common_fields"]["ODCID"], "abcd");
    assert_eq!(trace["common_fields"]["time_format"], "relative");
    assert!(trace["common_fields"]["reference_time"].as_f64().unwrap() > 1e12);
    assert_eq!(records[1]["name"], "connectivity:connection_started");
}

#[test]
fn time_never_goes_back() {
    let lost = |pn| Observation::PacketLost { space: SpaceId::Initial, pn, size: 1200 };
    let records = records(&[(2500, lost(1)), (1000, lost(2)), (4001, lost(3))]);
    let times: Vec<_> = records[2..].iter().map(|r| r["time"].as_f64().unwrap()).collect();
    assert_eq!(times, [2.5, 2.5, 4.001]);
    assert_eq!(
        records[2]["data"],
        json!({"header": {"packet_type": "initial", "packet_number": 1}, "raw": {"length": 1200}})
    );
}

#[test]
fn only_metrics_that_changed_are_written() {
    let mut metrics = Metrics::default();
    metrics.smoothed_rtt = Duration::from_millis(20);
    metrics.latest_rtt = Duration::from_micros(20_500);
    metrics.min_rtt = Duration::from_millis(19);
    metrics.congestion_window = 12_000;
    metrics.bytes_in_flight = 2400;
    metrics.pacing_rate = Some(1000);
    let mut fewer = metrics;
    fewer.bytes_in_flight = 1200;
    let records = records(&[
        (0, Observation::Metrics(metrics)),
        (0, Observation::Metrics(metrics)),
        (0, Observation::Metrics(fewer)),
    ]);
    assert_eq!(records.len(), 4);
    let all = json!({"min_rtt": 19.0, "smoothed_rtt": 20.0, "latest_rtt": 20.5,
        "congestion_window": 12_000, "bytes_in_flight": 2400, "pacing_rate": 8000});
    assert_eq!(records[2]["data"], all);
    assert_eq!(records[3]["data"], json!({"bytes_in_flight": 1200}));
}

#[test]
fn recovery_is_counted_where_there_was_any() {
    let records = records(&[
        // STREAM 4 with a length: two bytes from the start of the stream.
        (0, Observation::SymbolRecovered { session: 1, id: 2, frames: &[0x0a, 4, 2, 7, 7] }),
        (0, Observation::SymbolsRecoveredByPeer { session: 1, count: 0 }),
        (0, Observation::SymbolsRecoveredByPeer { session: 1, count: 4 }),
        (0, Observation::Closed { reason: "timed out" }),
    ]);
    let got: Vec<_> = records[2..].iter().map(|r| (r["name"].clone(), r["data"].clone())).collect();
    let stream = json!({"frame_type": "stream", "stream_id": 4, "offset": 0, "length": 2,
        "fin": false});
    let recovered = json!({"session": 1, "symbol_id": 2, "length": 5, "frames": [stream]});
    let expected = [
        (json!("fec:symbol_recovered"), recovered),
        (json!("fec:recovered_by_peer"), json!({"session": 1, "count": 4})),
        (json!("connectivity:connection_closed"), json!({"reason": "timed out"})),
    ];
    assert_eq!(got, expected);
}

#[test]
fn changes_of_the_path_are_recorded() {
    let v6: std::net::SocketAddr = "[2001:db8::1]:443".parse().unwrap();
    let mapped: std::net::SocketAddr = "[::ffff:192.0.2.1]:80".parse().unwrap();
    let records = records(&[
        (0, Observation::PathChanged { remote: v6 }),
        (0, Observation::PathChanged { remote: mapped }),
        (0, Observation::MtuUpdated { old: 1200, new: 1452 }),
        (0, Observation::EcnStateUpdated(sutura_proto::EcnState::Capable)),
    ]);
    let got: Vec<_> = records[2..].iter().map(|r| (r["name"].clone(), r["data"].clone())).collect();
    let v6 = json!({"path_remote": {"ip_v6": "2001:db8::1", "port_v6": 443}});
    let v4 = json!({"path_remote": {"ip_v4": "192.0.2.1", "port_v4": 80}});
    let expected = [
        (json!("connectivity:path_assigned"), v6),
        (json!("connectivity:path_assigned"), v4),
        (json!("connectivity:mtu_updated"), json!({"old": 1200, "new": 1452})),
        (json!("recovery:ecn_state_updated"), json!({"new": "capable"})),
    ];
    assert_eq!(got, expected);
}

#[test]
fn policies_say_what_they_do_and_what_is_lost() {
    let protection = Protection::tail(3, Duration::ZERO);
    let updated =
        |reason| Observation::RedundancyUpdated { session: 2, protection: &protection, reason };
    let protects = Reason::Protects { repairs: 2, wait: Duration::from_micros(4_800) };
    let mut floor = LossFloor::default();
    (floor.rate, floor.low, floor.high, floor.burst) = (0.2, 0.125, 0.25, 4.0);
    let mut timed = floor;
    (timed.burst_time, timed.room) = (Duration::from_millis(5), 0.0625);
    let records = records(&[
        (0, updated(None)),
        (0, updated(Some(Reason::NoUse))),
        (0, updated(Some(protects))),
        (0, Observation::LossEstimateUpdated(floor)),
        (0, Observation::LossEstimateUpdated(timed)),
    ]);
    let got: Vec<_> = records[2..].iter().map(|r| (r["name"].clone(), r["data"].clone())).collect();
    let name = json!("tail: burst=3, delay=0ns");
    let redundancy = json!("sutura:redundancy_updated");
    let loss = json!("sutura:loss_estimate_updated");
    let estimate = json!({"rate": 0.2, "low": 0.125, "high": 0.25, "burst": 4.0, "p": 0.0625,
        "r": 0.25, "excess": 0.0});
    let mut with_time = estimate.clone();
    (with_time["burst_time"], with_time["room"]) = (json!(5.0), json!(0.0625));
    let expected = [
        (redundancy.clone(), json!({"name": name, "session": 2})),
        (redundancy.clone(), json!({"name": name, "session": 2, "reason": "no_use"})),
        (
            redundancy,
            json!({"name": name, "session": 2, "reason": "protects", "repairs": 2, "wait": 4.8}),
        ),
        (loss.clone(), estimate),
        (loss, with_time),
    ];
    assert_eq!(got, expected);
}

#[test]
fn requests_and_their_priorities_are_told() {
    let fields = Fields::new().with(":path", "/a").with("priority", &b"u=1, \xff"[..]);
    let (stream, control) = (StreamId(4), StreamId(2));
    let request =
        FrameEvent { action: FrameAction::Parsed, stream, content: FrameContent::Headers(fields) };
    let update = FrameEvent {
        action: FrameAction::Created,
        stream: control,
        content: FrameContent::PriorityUpdate { element: stream, value: "u=5".into() },
    };
    let painted = ApplicationEvent { name: "screen:painted", data: json!({ "update": 7 }) };
    let records = records(&[
        (0, Observation::Application(&request)),
        (0, Observation::Application(&"an event of another protocol")),
        (0, Observation::Application(&update)),
        (0, Observation::Application(&painted)),
        (0, Observation::Written { stream, length: 17 }),
    ]);
    let got: Vec<_> = records[2..].iter().map(|r| (r["name"].clone(), r["data"].clone())).collect();
    let headers = json!([
        {"name": ":path", "value": "/a"},
        {"name": "priority", "value": "u=1, \u{fffd}"},
    ]);
    let expected = [
        (
            json!("http:frame_parsed"),
            json!({"stream_id": 4, "frame": {"frame_type": "headers", "headers": headers}}),
        ),
        (
            json!("http:frame_created"),
            json!({"stream_id": 2, "frame":
                {"frame_type": "priority_update", "element_id": 4, "value": "u=5"}}),
        ),
        (json!("screen:painted"), json!({"update": 7})),
        (
            json!("transport:data_moved"),
            json!({"stream_id": 4, "length": 17, "from": "application", "to": "transport"}),
        ),
    ];
    assert_eq!(got, expected);
}
