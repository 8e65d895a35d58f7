//! The policies of QUIRL at work on streams of messages: with repair symbols fewer messages wait for
//! a retransmission.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{MS, over};
use sutura_proto::{Algorithm, Protection, TransportConfig};
use sutura_sim::{StreamOutcome, StreamPlan};

const PATH: &str = "rate=20mbit delay=50ms loss=bern:0.02";
/// Frames of 5 kB, 60 a second: too small for a burst.
const SMALL: StreamPlan = StreamPlan::frames(600);
/// Frames of 40 kB, 10 a second.
const LARGE: StreamPlan =
    StreamPlan { size: 40_000, interval: Duration::from_millis(100), count: 200, protection: None };

fn stream(
    algorithm: Algorithm,
    plan: &StreamPlan,
    policy: Option<&str>,
    seed: u64,
) -> StreamOutcome {
    let transport =
        TransportConfig::default().with_congestion(Arc::new(algorithm)).with_redundancy(None);
    let find = |name| Protection::new(sutura_research::redundancy().find(name).unwrap());
    let plan = StreamPlan { protection: policy.map(find), ..plan.clone() };
    let scenario = over(seed, PATH).transport(&transport);
    scenario.stream(plan).unwrap_or_else(|failure| panic!("{algorithm}, {policy:?}: {failure}"))
}

/// The share of bytes that come half a round trip or more after the path's delay, the bytes on the wire,
/// and the repair symbols.
fn measured(algorithm: Algorithm, plan: &StreamPlan, policy: Option<&str>) -> [f64; 3] {
    let (mut late, mut all, mut wire, mut repairs) = (0, 0, 0, 0);
    for seed in 0..5 {
        let outcome = stream(algorithm, plan, policy, seed);
        let delays = || outcome.delays.iter();
        late += delays().filter(|d| d.delay > 100 * MS).map(|d| d.bytes).sum::<u64>();
        all += delays().map(|d| d.bytes).sum::<u64>();
        wire += outcome.ends.server.sent.bytes;
        repairs += outcome.ends.server.fec.repair_symbols_sent;
    }
    [late as f64 / all as f64, wire as f64, repairs as f64]
}

#[test]
fn fewer_messages_wait_for_a_retransmission() {
    for algorithm in [Algorithm::BBR, Algorithm::CUBIC] {
        for (plan, policies) in [(&SMALL, &["background"][..]), (&LARGE, &["background", "burst"])]
        {
            let [plain, plain_wire, _] = measured(algorithm, plan, None);
            for policy in policies {
                let [late, wire, repairs] = measured(algorithm, plan, Some(policy));
                let more = wire / plain_wire;
                println!(
                    "{algorithm}, {} bytes, {policy}: {late:.4} late instead of {plain:.4}, {more:.3} \
                     times the bytes, {repairs} repair symbols",
                    plan.size
                );
                assert!(late < plain / 2.0, "{algorithm}, {policy}: {late}, {plain}");
                assert!(more < 1.6, "{algorithm}, {policy}: {more}");
            }
        }
    }
}

#[test]
fn small_bursts_are_left_to_retransmission() {
    let plain = measured(Algorithm::BBR, &SMALL, None);
    let background = measured(Algorithm::BBR, &SMALL, Some("background"));
    let burst = measured(Algorithm::BBR, &SMALL, Some("burst"));
    println!("{} repair symbols, in the background {}", burst[2], background[2]);
    // Now and then the window holds back frames until several are sent at once.
    assert!(burst[2] < background[2] / 10.0, "{burst:?} {background:?}");
    // The packets carry symbols, which few repair symbols cover.
    assert!(burst[1] < 1.03 * plain[1], "{burst:?} {plain:?}");
}
