//! Runs the fuzz target on seeded input, without needing a fuzzer.
//!
//! `FUZZ_ITERATIONS` sets the number of inputs.

use sutura_analysis::fuzz;
use sutura_random::Rng;
use sutura_random::fuzz::{iterations, replay};

fn frame(random: &mut Rng) -> String {
    let large = if random.below(20) == 0 { u64::MAX >> random.below(4) } else { 0 };
    let (stream, offset, length) =
        (random.below(4) * 4, random.below(3000).max(large), random.below(1400));
    let kind = ["stream", "STREAM", "source_symbol", "repair", "ack"][random.below(5) as usize];
    let fin = random.below(4) == 0;
    format!(
        r#"{{"frame_type":"{kind}","stream_id":{stream},"offset":{offset},"length":{length},"fin":{fin},"session":1,"symbol_id":{offset}}}"#
    )
}

fn event(random: &mut Rng) -> String {
    let time = random.below(100_000) as f64 / 7.0;
    let names = [
        "transport:packet_received",
        "quic:packet_sent",
        "recovery:packet_lost",
        "transport:data_moved",
        "http:frame_parsed",
        "h3:priority_updated",
        "fec:symbol_recovered",
        "fec:recovered_by_peer",
        "sutura:redundancy_updated",
        "sutura:loss_estimate_updated",
        "other",
    ];
    let name = names[random.below(names.len() as u64) as usize];
    let count = random.below(4);
    let frames: Vec<String> = (0..count).map(|_| frame(random)).collect();
    let (frames, number) = (frames.join(","), random.below(50));
    let group = ["", r#""group_id":"a","#, r#""group_id":"b","#][random.below(3) as usize];
    format!(
        r#"{{{group}"time":{time},"name":"{name}","data":{{"header":{{"packet_number":{number}}},"frames":[{frames}],"stream_id":4,"length":9,"new":"u=1","session":1,"rate":0.5,"low":0,"high":1e300,"name":"\u001b[2J","symbol_id":7,"count":{number},"frame":{{"frame_type":"headers","headers":[{{"name":":path","value":"/\u001b[1m"}}]}}}}}}"#
    )
}

/// A file in one of the formats, with random changes.
fn input(random: &mut Rng) -> Vec<u8> {
    let count = random.below(30);
    let events: Vec<String> = (0..count).map(|_| event(random)).collect();
    let delta = if random.below(4) == 0 { "delta" } else { "relative" };
    let trace = format!(
        r#""vantage_point":{{"type":"client"}},"common_fields":{{"time_format":"{delta}"}}"#
    );
    let file = match random.below(3) {
        0 => {
            let events = events.join(",");
            format!(r#"{{"qlog_version":"0.3","traces":[{{{trace},"events":[{events}]}}]}}"#)
        }
        kind => {
            let mark = if kind == 1 { "\u{1e}" } else { "" };
            let head = format!(r#"{mark}{{"file_schema":"s","trace":{{{trace}}}}}"#);
            let events = events.iter().map(|event| format!("\n{mark}{event}"));
            head + &events.collect::<String>() + "\n"
        }
    };
    let mut data = vec![random.next_u64() as u8];
    data.extend(file.into_bytes());
    for _ in 0..random.below(4) {
        let at = random.below(data.len() as u64) as usize;
        match random.below(8) {
            0 => data.truncate(at.max(1)),
            1 => drop(data.drain(at..(at + 20).min(data.len()))),
            2 => data.insert(at, b"{}[]\",\x1e\n"[random.below(8) as usize]),
            _ => data.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << random.below(8)),
        }
    }
    data
}

#[test]
fn files() {
    let mut random = Rng::new(5);
    for _ in 0..iterations(4_000) {
        fuzz::qlog(&input(&mut random));
    }
}

#[test]
fn noise() {
    let mut random = Rng::new(6);
    for _ in 0..iterations(4_000) {
        let length = random.below(200);
        let noise: Vec<u8> = (0..length).map(|_| random.next_u64() as u8).collect();
        fuzz::qlog(&noise);
    }
}

#[test]
fn stored_inputs() {
    replay("analysis_qlog", input, fuzz::qlog);
}
