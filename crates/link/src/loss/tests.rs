use super::*;

const PAPER: &str = "ge:0.005,0.25,0.95,0.005";
const PAPER_TIME: &str = "gt:240,4.8,0.95,0.005";

fn loss(text: &str) -> Loss {
    text.parse().unwrap()
}

/// Which of `packets` packets, one every `gap` nanoseconds, are lost.
fn losses(text: &str, background: Option<&str>, gap: u64, packets: u64, seed: u64) -> Vec<bool> {
    let background = background.map(|text| text.parse().unwrap());
    let mut process = LossProcess::new(&loss(text), background, seed);
    (0..packets).map(|n| process.is_lost(n * gap)).collect()
}

fn mean(lost: &[bool]) -> f64 {
    lost.iter().filter(|&&lost| lost).count() as f64 / lost.len() as f64
}

/// The mean length of bursts of losses.
fn mean_burst(lost: &[bool]) -> f64 {
    let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count();
    lost.iter().filter(|&&lost| lost).count() as f64 / bursts as f64
}

/// The expected burst length of a two-state chain, from its transition probabilities between two
/// packets: P(lost) / P(lost, but the previous one not).
fn expected_burst(p: f64, r: f64, loss_bad: f64, loss_good: f64) -> f64 {
    let bad = p / (p + r);
    let lost = bad * loss_bad + (1.0 - bad) * loss_good;
    let lost_after_bad = (1.0 - r) * loss_bad + r * loss_good;
    let lost_after_good = p * loss_bad + (1.0 - p) * loss_good;
    let begins =
        bad * (1.0 - loss_bad) * lost_after_bad + (1.0 - bad) * (1.0 - loss_good) * lost_after_good;
    lost / begins
}

/// Both transition probabilities of a chain over `steps` packets.
fn over(p: f64, r: f64, steps: i32) -> (f64, f64) {
    let moved = (1.0 - (1.0 - p - r).powi(steps)) / (p + r);
    (p * moved, r * moved)
}

fn assert_near(found: f64, expected: f64, tolerance: f64) {
    let error = (found / expected - 1.0).abs();
    assert!(error < tolerance, "found {found}, expected {expected}");
}

const MILLIS: u64 = 1_000_000;
const MANY: u64 = 400_000;

#[test]
fn no_loss_loses_nothing() {
    assert_eq!(mean(&losses("none", None, MILLIS, 10_000, 1)), 0.0);
}

#[test]
fn bernoulli_loses_its_share_and_has_no_memory() {
    let lost = losses("bern:0.02", None, MILLIS, MANY, 1);
    assert_near(mean(&lost), 0.02, 0.05);
    assert_near(mean_burst(&lost), 1.0 / 0.98, 0.02);
    assert_eq!(mean(&losses("bern:1", None, MILLIS, 1000, 1)), 1.0);
}

#[test]
fn gilbert_elliott_has_the_mean_and_the_bursts_of_theory() {
    for seed in 1..4 {
        let lost = losses(PAPER, None, MILLIS, MANY, seed);
        assert_near(mean(&lost), loss(PAPER).mean(), 0.12);
        assert_near(mean_burst(&lost), expected_burst(0.005, 0.25, 0.95, 0.005), 0.1);
        // Everything is lost in the bad state and nothing in the good one, so bursts are as long as
        // the bad state.
        let lost = losses("ge:0.01,0.2,1,0", None, MILLIS, MANY, seed);
        assert_near(mean(&lost), 0.01 / 0.21, 0.1);
        assert_near(mean_burst(&lost), 5.0, 0.1);
    }
}

#[test]
fn the_chain_is_stepped_by_packets_and_not_by_time() {
    assert_eq!(losses(PAPER, None, MILLIS, 10_000, 3), losses(PAPER, None, 70 * MILLIS, 10_000, 3));
}

#[test]
fn the_state_changes_after_the_packet_that_saw_it() {
    // The state alternates with every packet, and so do the losses, whichever state is first.
    for seed in 0..20 {
        let lost = losses("ge:1,1,1,0", None, MILLIS, 100, seed);
        assert!(lost.windows(2).all(|pair| pair[0] != pair[1]));
    }
    // The bad state always ends after one packet, and starts half of the time.
    let lost = losses("ge:0.5,1,1,0", None, MILLIS, 10_000, 1);
    assert!(!lost.windows(2).any(|pair| pair[0] && pair[1]));
    assert_near(mean(&lost), 1.0 / 3.0, 0.05);
}

#[test]
fn the_first_packet_meets_the_bad_state_with_its_long_term_probability() {
    for text in ["ge:0.1,0.3,1,0", "gt:30,10,1,0"] {
        let first = (0..8000).filter(|&seed| losses(text, None, MILLIS, 1, seed)[0]).count();
        assert_near(first as f64 / 8000.0, 0.25, 0.1);
    }
    // A chain that cannot change its state is in the good one.
    assert_eq!(mean(&losses("ge:0,0,1,0", None, MILLIS, 1000, 1)), 0.0);
}

#[test]
fn background_traffic_shortens_the_bursts_that_the_flow_sees() {
    // A packet every 4.8 ms, and a packet of the background every 1.2 ms: five steps per packet.
    let alone = losses(PAPER, None, 4_800_000, MANY, 1);
    let among = losses(PAPER, Some("10mbit"), 4_800_000, MANY, 1);
    assert_near(mean(&among), loss(PAPER).mean(), 0.12);
    assert!(mean_burst(&among) < 0.6 * mean_burst(&alone));
    let (p, r) = over(0.005, 0.25, 5);
    assert_near(mean_burst(&among), expected_burst(p, r, 0.95, 0.005), 0.08);
    // Packets of half the size step the chain twice as often.
    let among = losses(PAPER, Some("10mbit,750"), 4_800_000, MANY, 1);
    let (p, r) = over(0.005, 0.25, 9);
    assert_near(mean_burst(&among), expected_burst(p, r, 0.95, 0.005), 0.08);
}

#[test]
fn background_traffic_steps_nothing_but_the_chain() {
    for text in ["none", "bern:0.1", "gt:20,5,0.9,0.01", "trace:0010111"] {
        let alone = losses(text, None, MILLIS, 5000, 1);
        assert_eq!(losses(text, Some("1gbit"), MILLIS, 5000, 1), alone, "{text}");
    }
}

#[test]
fn background_packets_are_counted_by_time_alone() {
    let background: Background = "10mbit".parse().unwrap();
    assert_eq!(background.packets_until(1_199_999), 0);
    assert_eq!(background.packets_until(1_200_000), 1);
    assert_eq!(background.packets_until(3_600_000_000_000), 3_000_000);
    let odd: Background = "7bit,3".parse().unwrap();
    assert_eq!(odd.packets_until(24_000_000_000), 7);
    // After a long silence, the next packet costs no more than any other.
    let lost = losses("ge:0.3,0.3,1,0", Some("100gbit,1"), u64::MAX / 200, 200, 1);
    assert_near(mean(&lost), 0.5, 0.4);
}

#[test]
fn time_stepped_gilbert_elliott_has_the_mean_and_the_bursts_of_theory() {
    for (gap, seed) in [(1_200_000, 1), (1_200_000, 2), (5 * MILLIS, 3), (300_000, 4)] {
        let lost = losses(PAPER_TIME, None, gap, 4 * MANY, seed);
        assert_near(mean(&lost), loss(PAPER_TIME).mean(), 0.15);
        let (good, bad) = (1.0 / 240e6, 1.0 / 4.8e6);
        let moved = 1.0 - (-(good + bad) * gap as f64).exp();
        let (p, r) = (moved * good / (good + bad), moved * bad / (good + bad));
        assert_near(mean_burst(&lost), expected_burst(p, r, 0.95, 0.005), 0.12);
    }
}

#[test]
fn the_bad_times_are_the_same_whatever_is_sent() {
    let dense = losses("gt:24,6,1,0", None, 100_000, 100_000, 7);
    let sparse = losses("gt:24,6,1,0", None, 700_000, 14_285, 7);
    assert!(sparse.iter().enumerate().all(|(n, &lost)| lost == dense[7 * n]));
    assert_near(mean(&dense), 0.2, 0.3);
}

#[test]
fn a_trace_is_repeated_packet_by_packet() {
    let lost = losses("trace:0110 0", None, MILLIS, 12, 1);
    let expected = [false, true, true, false, false];
    assert!(lost.iter().zip(expected.iter().cycle()).all(|(lost, expected)| lost == expected));
    assert_eq!(loss("trace:01100").mean(), 0.4);
    let trace: Trace = "0 1\n0\t0".parse().unwrap();
    assert_eq!(trace.as_slice(), [false, true, false, false]);
    assert_eq!(format!("{trace:?}"), "Trace(4 packets, 25.000 % lost)");
    assert_eq!(Trace::new(Vec::new()), None);
}

#[test]
fn models_are_read_and_written() {
    for (text, written) in [
        ("none", "none"),
        ("bern:2%", "bern:0.02"),
        ("2%", "bern:0.02"),
        (".5", "bern:0.5"),
        (PAPER, PAPER),
        ("ge:1,0,1,0", "ge:1,0,1,0"),
        (PAPER_TIME, PAPER_TIME),
        ("gt:240.0,0.001,95%,0", "gt:240,0.001,0.95,0"),
        ("trace:00 1", "trace:001"),
    ] {
        assert_eq!(loss(text).to_string(), written);
        assert_eq!(loss(written), loss(text));
    }
}

#[test]
fn what_is_no_model_is_an_error_that_says_why() {
    const FORMS: &str = "expected none, a share such as 2% or 0.02, bern:P, ge:P,R,BAD,GOOD, \
                         gt:MS,MS,BAD,GOOD or trace:0101";
    for (text, problem) in [
        ("", FORMS),
        ("none:", FORMS),
        ("gilbert:1", FORMS),
        ("bern", "probability ``: expected a number such as 0.02 or 2%"),
        ("bern:2", "probability `2`: is above 1"),
        ("2", "probability `2`: is above 1"),
        ("2 %", "probability `2 %`: expected a number such as 0.02 or 2%"),
        ("ge:0.1,0.2,0.3", "expected four probabilities"),
        ("ge:0.1,0.2,0.3,0.4,0.5", "expected four probabilities"),
        ("ge:0.1,0.2,x,0.4", "probability `x`: expected a number such as 0.02 or 2%"),
        ("gt:240,4.8", "expected two times in milliseconds and two probabilities"),
        ("gt:240ms,4.8,1,0", "milliseconds `240ms`: expected a decimal number such as 4 or 0.5"),
        ("gt:240,0,1,0", "milliseconds `0`: is below a microsecond"),
    ] {
        let error = text.parse::<Loss>().unwrap_err().to_string();
        assert_eq!(error, format!("loss `{text}`: {problem}"));
    }
    let error = |text: &str| text.parse::<Loss>().unwrap_err().to_string();
    assert_eq!(error("trace:"), "trace ``: is empty");
    assert_eq!(error("trace:012"), "trace `2`: expected 0 or 1 at offset 2");
}
