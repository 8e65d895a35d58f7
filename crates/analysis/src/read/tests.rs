use super::*;
use crate::limits::{MAX_EVENTS, MAX_FRAMES, MAX_STREAMS, MAX_TEXT_BYTES, MAX_TRACES};
use crate::{
    Direction, EventKind, LossEstimate, Redundancy, Space, StreamFrame, Vantage, stream_table,
};
use std::time::Duration;

fn one(file: &str) -> Trace {
    let mut traces = parse(file.as_bytes()).unwrap();
    assert_eq!(traces.len(), 1, "{traces:?}");
    traces.remove(0)
}

fn sequence(records: &[&str]) -> String {
    records.iter().map(|record| format!("\u{1e}{record}\n")).collect()
}

/// The shortest header of a sequence.
const HEADER: &str = r#"{"qlog_version":"0.3","trace":{}}"#;

/// A `packet_sent` with these frames.
fn sent(frames: &[String]) -> String {
    let frames = frames.join(",");
    format!(r#"{{"time":0,"name":"t:packet_sent","data":{{"frames":[{frames}]}}}}"#)
}

/// Checks the content of every file below: a request for `/a` on stream 0, answered in two STREAM frames of
/// 1000 and 500 bytes, 20 ms and 30 ms after the request was sent.
fn check(trace: &Trace, path: bool) {
    assert_eq!((trace.malformed, trace.truncated), (0, false), "{trace:?}");
    assert_eq!(trace.vantage, Vantage::Client);
    let table = stream_table(trace, Direction::Received);
    let row = table.iter().find(|row| row.stream == 0).unwrap();
    assert_eq!(row.path.as_deref(), path.then_some("/a"));
    assert_eq!((row.bytes, row.final_size, row.packets), (1500, Some(1500), 2));
    let since = |at: Option<Duration>| at.unwrap().checked_sub(row.requested.unwrap()).unwrap();
    let ms = Duration::from_millis;
    assert_eq!((since(row.first_byte), since(row.completed)), (ms(20), ms(30)));
    assert_eq!(Direction::busiest(trace), Direction::Received);
}

#[test]
fn our_own_form() {
    let header = r#"{"qlog_version":"0.3","qlog_format":"JSON-SEQ","title":"sutura get","trace":{"vantage_point":{"name":"sutura","type":"client"},"title":"sutura get","common_fields":{"ODCID":"c0ffee","group_id":"c0ffee","time_format":"relative","reference_time":1.8e12,"protocol_type":["QUIC"]}}}"#;
    let trace = one(&sequence(&[
        header,
        r#"{"time":0.0,"name":"connectivity:connection_started","data":{}}"#,
        r#"{"time":10.0,"name":"transport:packet_sent","data":{"header":{"packet_type":"1RTT","packet_number":3},"raw":{"length":80,"payload_length":50},"frames":[{"frame_type":"stream","stream_id":0,"offset":0,"length":40,"fin":true}]}}"#,
        r#"{"time":30.0,"name":"transport:packet_received","data":{"header":{"packet_type":"1RTT","packet_number":1},"raw":{"length":1040,"payload_length":1010},"frames":[{"frame_type":"source_symbol","session":2,"symbol_id":7,"length":1004},{"frame_type":"stream","stream_id":0,"offset":0,"length":1000,"fin":false},{"frame_type":"symbol_window","session":2,"lower_bound":3}]}}"#,
        r#"{"time":40.0,"name":"transport:packet_received","data":{"header":{"packet_type":"1RTT","packet_number":2},"raw":{"length":540,"payload_length":510},"frames":[{"frame_type":"stream","stream_id":0,"offset":1000,"length":500,"fin":true},{"frame_type":"repair","session":2,"first_symbol_id":7,"symbol_count":1,"key":9,"length":100}]}}"#,
        r#"{"time":41.0,"name":"fec:symbol_recovered","data":{"session":2,"symbol_id":8,"length":1004}}"#,
        r#"{"time":42.0,"name":"fec:recovered_by_peer","data":{"session":1,"count":4}}"#,
        r#"{"time":42.5,"name":"sutura:redundancy_updated","data":{"name":"tail: burst=2","session":2,"reason":"protects","repairs":2,"wait":5.0}}"#,
        r#"{"time":43.0,"name":"sutura:loss_estimate_updated","data":{"rate":0.02,"low":0.01,"high":0.04,"burst":2.0,"p":0.01,"r":0.5,"excess":0.0}}"#,
        r#"{"time":43.5,"name":"recovery:packet_lost","data":{"header":{"packet_type":"1RTT","packet_number":3},"raw":{"length":80}}}"#,
    ]));
    check(&trace, false);
    assert_eq!((trace.format, trace.group.as_deref()), (Format::JsonSeq, Some("c0ffee")));
    assert_eq!((trace.title.as_str(), trace.other_events), ("sutura get", 1));
    let kinds: Vec<_> = trace.events.iter().map(|event| &event.kind).collect();
    let EventKind::PacketReceived(packet) = kinds[1] else { panic!("{kinds:?}") };
    // 1 + 1 + 1000 and a length of 2: the frame fits into the symbol's 1004 bytes.
    let symbol = packet.symbols[0];
    assert_eq!((symbol.session, symbol.id, symbol.first_frame, symbol.frames), (2, 7, 0, 1));
    assert_eq!((packet.size, packet.space), (1040, Space::Data));
    let EventKind::PacketReceived(packet) = kinds[2] else { panic!("{kinds:?}") };
    assert_eq!(packet.repairs, 1);
    assert_eq!(*kinds[3], EventKind::SymbolRecovered { session: 2, id: 8, frames: vec![] });
    assert_eq!(*kinds[4], EventKind::RecoveredByPeer { count: 4 });
    let (policy, reason) = ("tail: burst=2".into(), Some("protects".into()));
    let redundancy = Redundancy { session: 2, policy, reason, repairs: Some(2) };
    assert_eq!(*kinds[5], EventKind::RedundancyUpdated(Box::new(redundancy)));
    let loss = LossEstimate { rate: 0.02, low: 0.01, high: 0.04, burst: 2.0, burst_ms: None };
    assert_eq!(*kinds[6], EventKind::LossEstimateUpdated(loss));
    assert_eq!(*kinds[7], EventKind::PacketLost { space: Space::Data, number: Some(3) });
    assert_eq!(trace.duration, Duration::from_micros(43_500));
}

/// A document, absolute times in milliseconds, fields in alphabetical order.
#[test]
fn the_form_of_aioquic() {
    let trace = one(
        r#"{"qlog_format": "JSON", "qlog_version": "0.3", "traces": [{"common_fields": {"ODCID": "aa"}, "events": [
        {"data": {"frame": {"frame_type": "headers", "headers": [{"name": ":method", "value": "GET"}, {"name": ":path", "value": "/a"}]}, "length": 20, "stream_id": 0}, "name": "http:frame_created", "time": 1700000000010.0},
        {"data": {"frames": [{"fin": true, "frame_type": "stream", "length": 20, "offset": 0, "stream_id": 0}], "header": {"dcid": "aa", "packet_number": 2, "packet_type": "1RTT", "scid": ""}, "raw": {"length": 60}}, "name": "transport:packet_sent", "time": 1700000000010.0},
        {"data": {"frames": [{"fin": false, "frame_type": "stream", "length": 1000, "offset": 0, "stream_id": 0}], "header": {"dcid": "", "packet_number": 5, "packet_type": "1RTT", "scid": ""}, "raw": {"length": 1040}}, "name": "transport:packet_received", "time": 1700000000030.0},
        {"data": {"frame": {"frame_type": "headers", "headers": [{"name": ":status", "value": "200"}, {"name": "priority", "value": "u=1, i"}]}, "length": 20, "stream_id": 0}, "name": "http:frame_parsed", "time": 1700000000030.0},
        {"data": {"frames": [{"fin": true, "frame_type": "stream", "length": 500, "offset": 1000, "stream_id": 0}], "header": {"dcid": "", "packet_number": 6, "packet_type": "1RTT", "scid": ""}, "raw": {"length": 540}}, "name": "transport:packet_received", "time": 1700000000040.0}
        ], "vantage_point": {"name": "aioquic", "type": "client"}}]}"#,
    );
    check(&trace, true);
    let table = stream_table(&trace, Direction::Received);
    assert_eq!(table[0].status.as_deref(), Some("200"));
    assert_eq!(table[0].priority.as_deref(), Some("u=1, i"));
    assert_eq!(trace.group.as_deref(), Some("aa"));
}

/// quic-go: a sequence whose first event comes long after its reference time.
#[test]
fn the_form_of_quic_go() {
    let trace = one(&sequence(&[
        r#"{"qlog_format":"JSON-SEQ","qlog_version":"0.3","title":"quic-go qlog","configuration":{"code_version":"x"},"trace":{"vantage_point":{"type":"client"},"common_fields":{"ODCID":"bb","group_id":"bb","reference_time":1700000000000,"time_format":"relative"}}}"#,
        r#"{"time":900.25,"name":"transport:packet_sent","data":{"header":{"packet_type":"1RTT","packet_number":0},"raw":{"length":60},"frames":[{"frame_type":"stream","stream_id":0,"offset":0,"length":20,"fin":true}]}}"#,
        r#"{"time":920.25,"name":"transport:packet_received","data":{"header":{"packet_type":"1RTT","packet_number":0},"raw":{"length":1040},"frames":[{"frame_type":"stream","stream_id":0,"offset":0,"length":1000}]}}"#,
        r#"{"time":920.3,"name":"http3:frame_created","data":{"stream_id":0,"raw":{"length":9},"frame":{"frame_type":"headers","header_fields":[{"name":":path","value":"/a"}]}}}"#,
        r#"{"time":930.25,"name":"transport:packet_received","data":{"header":{"packet_type":"1RTT","packet_number":1},"raw":{"length":540},"frames":[{"frame_type":"ack"},{"frame_type":"stream","stream_id":0,"offset":1000,"length":500,"fin":true}]}}"#,
    ]));
    check(&trace, true);
}

/// The current drafts, as quiche and the qlog crate write them: schemas, lengths in `raw`, times
/// relative to the previous event, events under `quic:` and `http3:`.
#[test]
fn the_form_of_current_drafts() {
    let trace = one(&sequence(&[
        r#"{"file_schema":"urn:ietf:params:qlog:file:sequential","serialization_format":"application/qlog+json-seq","trace":{"common_fields":{"time_format":"relative_to_previous_event","group_id":"cc"},"vantage_point":{"type":"client"},"event_schemas":["urn:ietf:params:qlog:events:quic-12"]}}"#,
        r#"{"time":5,"name":"quic:packet_sent","data":{"header":{"packet_type":"1RTT","packet_number":0},"frames":[{"frame_type":"stream","stream_id":0,"offset":0,"fin":true,"raw":{"length":24,"payload_length":20}}]}}"#,
        r#"{"time":1,"name":"http3:frame_created","data":{"stream_id":0,"frame":{"frame_type":"headers","headers":[{"name":":path","value":"/a"},{"name":"priority","value":"u=2"}]}}}"#,
        r#"{"time":19,"name":"quic:packet_received","data":{"header":{"packet_type":"1RTT","packet_number":0},"frames":[{"frame_type":"stream","stream_id":0,"offset":0,"raw":{"length":1004,"payload_length":1000}}]}}"#,
        r#"{"time":0,"name":"quic:stream_data_moved","data":{"stream_id":0,"offset":0,"from":"transport","to":"application","raw":{"length":1000}}}"#,
        r#"{"time":0,"name":"quic:stream_data_moved","data":{"stream_id":0,"offset":0,"from":"application","to":"transport","raw":{"length":77}}}"#,
        r#"{"time":4,"name":"http3:priority_updated","data":{"stream_id":0,"old":"u=2","new":"u=6"}}"#,
        r#"{"time":6,"name":"quic:packet_received","data":{"header":{"packet_type":"1RTT","packet_number":1},"frames":[{"frame_type":"stream","stream_id":0,"offset":1000,"fin":true,"raw":{"length":504,"payload_length":500}}]}}"#,
    ]));
    check(&trace, true);
    let table = stream_table(&trace, Direction::Received);
    assert_eq!(table[0].priority.as_deref(), Some("u=6"));
    assert_eq!(table[0].delivered, Some(1000));
    assert_eq!(trace.version, "urn:ietf:params:qlog:file:sequential");
}

/// ngtcp2: packet sizes in the header, and no `fin` if it is false. neqo adds PRIORITY_UPDATE.
#[test]
fn the_form_of_ngtcp2_and_neqo() {
    let trace = one(&sequence(&[
        r#"{"qlog_format":"JSON-SEQ","qlog_version":"0.3","trace":{"vantage_point":{"name":"ngtcp2","type":"client"},"common_fields":{"protocol_type":["QUIC"],"time_format":"relative","reference_time":0,"group_id":"dd"}}}"#,
        r#"{"time":10,"name":"transport:packet_sent","data":{"frames":[{"frame_type":"stream","stream_id":0,"fin":true,"offset":0,"length":20}],"header":{"packet_type":"0RTT","packet_number":0},"raw":{"length":70}}}"#,
        r#"{"time":11,"name":"h3:frame_created","data":{"stream_id":2,"frame":{"frame_type":"priority_update","prioritized_element_id":0,"priority_field_value":"u=4"}}}"#,
        r#"{"time":12,"name":"h3:frame_created","data":{"stream_id":2,"frame":{"frame_type":"settings","settings":[]}}}"#,
        r#"{"time":30,"name":"transport:packet_received","data":{"frames":[{"frame_type":"stream","stream_id":0,"offset":0,"length":1000}],"header":{"packet_type":"1RTT","packet_number":0,"packet_size":1234}}}"#,
        r#"{"time":40,"name":"transport:packet_received","data":{"frames":[{"frame_type":"stream","stream_id":0,"offset":1000,"length":500,"fin":true}],"header":{"packet_type":"1RTT","packet_number":1}}}"#,
    ]));
    check(&trace, false);
    let row = &stream_table(&trace, Direction::Received)[0];
    assert_eq!(row.priority.as_deref(), Some("u=4"));
    let EventKind::PacketReceived(packet) = &trace.events[2].kind else { panic!("{trace:?}") };
    assert_eq!(packet.size, 1234);
}

/// draft-00 and draft-01: events are arrays with named columns, numbers are text, frame types have
/// capitals, times are in microseconds.
#[test]
fn the_form_of_old_drafts() {
    let trace = one(
        r#"{"qlog_version":"draft-00","title":"old","traces":[{"vantage_point":{"name":"b","type":"client"},"configuration":{"time_units":"us"},"common_fields":{"protocol_type":"QUIC_HTTP3","reference_time":"1590"},"event_fields":["relative_time","CATEGORY","EVENT_TYPE","TRIGGER","DATA"],"events":[
        [1000,"transport","packet_sent","line",{"packet_type":"1RTT","header":{"packet_number":"2","packet_size":60},"frames":[{"frame_type":"STREAM","stream_id":"0","offset":"0","length":"20","fin":true}]}],
        [21000,"transport","packet_received","line",{"packet_type":"1RTT","header":{"packet_number":"7","packet_size":1040},"frames":[{"frame_type":"STREAM","stream_id":"0","offset":"0","length":"1000","fin":false}]}],
        [31000,"transport","packet_received","line",{"packet_type":"1RTT","header":{"packet_number":"8","packet_size":540},"frames":[{"frame_type":"stream","stream_id":"0","offset":"1000","length":"500","fin":true}]}]
        ]}]}"#,
    );
    check(&trace, false);
}

#[test]
fn lines_of_json() {
    let file = "{\"qlog_version\":\"0.3\",\"qlog_format\":\"NDJSON\",\"trace\":{}}\n\
        {\"time\":1,\"name\":\"recovery:packet_lost\",\"data\":{\"header\":{\"packet_number\":4}}}\n";
    let trace = one(file);
    assert_eq!(
        (trace.format, trace.events.len(), trace.vantage),
        (Format::Lines, 1, Vantage::Unknown)
    );
    // Spread over several lines, with a byte order mark, it is a document.
    let trace =
        one("\u{feff}\n{\n \"qlog_version\": \"0.3\",\n \"traces\": [{\"events\": []}]\n}\n");
    assert_eq!(trace.format, Format::Json);
}

#[test]
fn connections_in_one_file_are_kept_apart() {
    let lost = |group: &str| {
        format!(
            r#"{{"time":5,"group_id":"{group}","name":"recovery:packet_lost","data":{{"packet_number":1}}}}"#
        )
    };
    let (a, b) = (lost("a"), lost("b"));
    let traces = parse(sequence(&[HEADER, &a, &b, &a]).as_bytes()).unwrap();
    let found: Vec<_> =
        traces.iter().map(|t| (t.group.as_deref().unwrap(), t.events.len())).collect();
    assert_eq!(found, [("a", 2), ("b", 1)]);
    // Too many of them are an error.
    let flood: Vec<String> = (0..=MAX_TRACES).map(|n| lost(&n.to_string())).collect();
    let records: Vec<&str> = [HEADER].into_iter().chain(flood.iter().map(String::as_str)).collect();
    let error = parse(sequence(&records).as_bytes()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::TooManyTraces);
    assert_eq!(error.position.line, MAX_TRACES as u64 + 2);
    // All traces of a document count together.
    let events = flood[..MAX_TRACES / 2 + 1].join(",");
    let trace = format!(r#"{{"events":[{events}]}}"#);
    let file =
        |traces: &str| parse(format!(r#"{{"qlog_version":"0.3","traces":[{traces}]}}"#).as_bytes());
    assert_eq!(file(&trace).unwrap().len(), MAX_TRACES / 2 + 1);
    let error = file(&format!("{trace},{trace}")).unwrap_err();
    assert_eq!(error.kind, ErrorKind::TooManyTraces);
}

#[test]
fn a_sequence_that_ends_early_gives_what_it_has() {
    let lost = r#"{"time":5,"name":"recovery:packet_lost","data":{"packet_number":1}}"#;
    let file = sequence(&[HEADER, lost, lost]);
    let whole = one(&file);
    assert_eq!((whole.events.len(), whole.truncated), (2, false));
    let cut = one(&file[..file.len() - 20]);
    assert_eq!((cut.events.len(), cut.truncated, cut.malformed), (1, true, 0));
}

#[test]
fn a_document_that_ends_early_gives_what_it_has() {
    let events: Vec<String> = (0..5)
        .map(|n| {
            format!(r#"{{"time":{n},"name":"transport:packet_sent","data":{{"frames":[{{"frame_type":"stream","stream_id":4,"length":{n}}},{{}}]}}}}"#)
        })
        .collect();
    let head = r#"{"qlog_version":"0.3","traces":[{"vantage_point":{"type":"server"},"events":["#;
    let file = format!("{head}{}]}}]}}", events.join(","));
    let whole = one(&file);
    assert_eq!((whole.events.len(), whole.truncated), (5, false));
    for end in head.len()..file.len() {
        let cut = &file[..end];
        let complete = (0..=5).rev().find(|n| end >= head.len() + events[..*n].join(",").len());
        match (complete.unwrap(), parse(cut.as_bytes())) {
            (0, result) => {
                let Err(Error { kind: ErrorKind::Json(_), .. }) = result else { panic!("{cut}") };
            }
            (complete, Ok(traces)) => {
                assert_eq!(traces[0].events, whole.events[..complete], "{cut}");
                assert!(traces[0].truncated && traces[0].vantage == Vantage::Server, "{cut}");
            }
            (_, Err(error)) => panic!("{error}: {cut}"),
        }
    }
}

#[test]
fn bad_events_are_counted_and_skipped() {
    let trace = one(&sequence(&[
        HEADER,
        r#"{"time":5,"name":"recovery:packet_lost","data":{"packet_number":1}}"#,
        r#"{"time":"soon","name":"recovery:packet_lost","data":{"packet_number":1}}"#,
        r#"{"name":"recovery:packet_lost"}"#,
        r#"{"time":6,"name":"transport:packet_sent"}"#,
        r#"{"time":1e300,"name":"recovery:packet_lost","data":{"packet_number":1}}"#,
        r#"[6,"recovery","packet_lost",{}]"#,
        r#"no JSON"#,
        r#"{"time":4,"name":"recovery:packet_lost","data":{"packet_number":2}}"#,
    ]));
    assert_eq!((trace.events.len(), trace.malformed), (2, 6));
    assert_eq!(trace.first_malformed.unwrap().line, 3);
    // Time does not go back: events before the first one get its time.
    assert!(trace.events.iter().all(|event| event.at == Duration::ZERO));
}

#[test]
fn frames_that_cannot_be_are_left_out() {
    let frames = [
        r#"{"frame_type":"stream","offset":0,"length":1}"#,
        r#"{"frame_type":"stream","stream_id":-4,"length":1}"#,
        r#"{"frame_type":"stream","stream_id":0,"offset":4611686018427387903,"length":1}"#,
        r#"{"frame_type":"stream","stream_id":0,"offset":18446744073709551615,"length":9}"#,
        r#"{"frame_type":"stream","stream_id":4611686018427387904,"length":9}"#,
        r#"{"frame_type":"stream","stream_id":0,"offset":4611686018427387902,"length":1}"#,
        r#"{"frame_type":"stream","stream_id":0,"length":65536}"#,
        r#"{"frame_type":7}"#,
        "7",
    ];
    let event = format!(
        r#"{{"time":0,"name":"transport:packet_received","data":{{"frames":[{}]}}}}"#,
        frames.join(",")
    );
    let trace = one(&sequence(&[HEADER, &event]));
    let EventKind::PacketReceived(packet) = &trace.events[0].kind else { panic!("{trace:?}") };
    let largest = StreamFrame { stream: 0, offset: (1 << 62) - 2, length: 1, fin: false };
    assert_eq!(packet.frames, [largest]);
}

#[test]
fn what_is_not_qlog_is_an_error_with_a_place() {
    let error = |file: &[u8]| parse(file).unwrap_err();
    assert_eq!(error(b"").kind, ErrorKind::Empty);
    assert_eq!(error(b" \n ").kind, ErrorKind::Empty);
    assert_eq!(error(b"{\"log\":{}}").kind, ErrorKind::NotQlog);
    assert_eq!(error(b"\x1e{\"log\":{}}\n").kind, ErrorKind::NotQlog);
    let html = error(b"<html>\n");
    assert!(matches!(html.kind, ErrorKind::Json(_)), "{html}");
    let broken = error(b"{\"qlog_version\":\"0.3\",\n\"traces\":[{\"events\":[{}}]}]}");
    assert_eq!(broken.position.line, 2, "{broken}");
    assert!(broken.to_string().starts_with("not JSON: "), "{broken}");
    let bytes = error(b"{\"qlog_version\":\"\xff\"}");
    assert_eq!(bytes.kind, ErrorKind::Json("not UTF-8".to_owned()));
}

#[test]
fn long_records_are_an_error() {
    let long = "x".repeat(MAX_RECORD_BYTES);
    let error = parse(sequence(&[HEADER, &long]).as_bytes()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::RecordTooLong);
    assert_eq!(error.position.line, 2);
    let event =
        format!(r#"{{"qlog_version":"0.3","traces":[{{"events":[{{"name":"{long}"}}]}}]}}"#);
    assert_eq!(parse(event.as_bytes()).unwrap_err().kind, ErrorKind::RecordTooLong);
}

#[test]
fn long_text_is_cut() {
    let title = "ä".repeat(MAX_TEXT_BYTES);
    let trace =
        one(&sequence(&[&format!(r#"{{"qlog_version":"0.3","title":"{title}","trace":{{}}}}"#)]));
    assert_eq!(trace.title.len(), MAX_TEXT_BYTES);
}

/// A record, and the separator that ends it.
fn record(event: &str) -> String {
    format!("{event}\n\u{1e}")
}

/// A reader that has read its header, with nothing before the first event.
fn started() -> Reader {
    let mut reader = Reader::new();
    reader.push(format!("{}\u{1e}", sequence(&[HEADER])).as_bytes()).unwrap();
    reader
}

/// The error after `most` events or frames, `each` at a time; there must be none before.
fn flood(event: &str, most: usize, each: usize) -> ErrorKind {
    let record = record(event);
    let mut reader = started();
    for _ in 0..most / each {
        reader.push(record.as_bytes()).unwrap();
    }
    reader.push(record.as_bytes()).unwrap_err().kind
}

#[test]
fn a_flood_of_events_is_an_error() {
    let event = r#"{"time":0,"name":"h:recovered_by_peer","data":{"count":1}}"#;
    assert_eq!(flood(event, MAX_EVENTS, 1), ErrorKind::TooManyEvents);
}

#[test]
fn a_flood_of_frames_is_an_error() {
    let frame = r#"{"frame_type":"stream","stream_id":0,"length":1}"#.to_owned();
    let event = sent(&vec![frame; 20_000]);
    assert_eq!(flood(&event, MAX_FRAMES, 20_000), ErrorKind::TooManyFrames);
}

#[test]
fn a_flood_of_streams_is_an_error() {
    let mut reader = started();
    let mut stream = 0;
    let frame = |n| format!(r#"{{"frame_type":"stream","stream_id":{n},"length":1}}"#);
    let error = loop {
        let frames: Vec<String> = (stream..stream + 4096).map(frame).collect();
        stream += 4096;
        if let Err(error) = reader.push(record(&sent(&frames)).as_bytes()) {
            break error;
        }
    };
    assert_eq!(error.kind, ErrorKind::TooManyStreams);
    assert_eq!(stream as usize, MAX_STREAMS + 4096);
}

#[test]
fn more_data_than_a_connection_can_have_is_an_error() {
    // Each reaches 2^61.
    let far = |stream: u64| {
        format!(
            r#"{{"frame_type":"stream","stream_id":{stream},"offset":2305843009213693951,"length":1}}"#
        )
    };
    let mut reader = started();
    let mut push = |streams: [u64; 2]| reader.push(record(&sent(&streams.map(far))).as_bytes());
    push([0, 4]).unwrap();
    push([4, 0]).unwrap();
    assert_eq!(push([8, 0]).unwrap_err().kind, ErrorKind::TooMuchData);
}
