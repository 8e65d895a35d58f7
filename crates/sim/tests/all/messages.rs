//! Messages with deadlines and protected datagrams over lossy paths, with every policy.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{link, over};
use sutura_proto::{Algorithm, MessageOutcome, Protection, Scheme, TransportConfig};
use sutura_sim::{MessagePlan, MessagesOutcome, Scenario, TimedMessage};

const MS: Duration = Duration::from_millis(1);
const LOSSY: &str = "rate=8mbit delay=100ms loss=bern:0.02";
const COUNT: u32 = 400;

/// Video frames of two packets, 30 a second, each of which is of use for 250 ms.
fn frames() -> MessagePlan {
    let deadline = Some(250 * MS);
    MessagePlan { deadline, announce: true, ..MessagePlan::steady(COUNT, 2_000, 33 * MS) }
}

fn config(algorithm: Algorithm, scheme: Scheme, policy: Option<&str>) -> TransportConfig {
    TransportConfig::default()
        .with_congestion(Arc::new(algorithm))
        .with_scheduler(Arc::new(scheme))
        .with_redundancy(policy.map(|policy| sutura_research::redundancy().find(policy).unwrap()))
}

fn run(config: &TransportConfig, path: &str, plan: MessagePlan, seed: u64) -> MessagesOutcome {
    let outcome = over(seed, path).transport(config).messages(plan);
    outcome.unwrap_or_else(|failure| panic!("{config:?}: {failure}"))
}

fn on_time(outcome: &MessagesOutcome) -> f64 {
    let in_time = |delay: &&Option<Duration>| delay.is_some_and(|delay| delay <= 250 * MS);
    outcome.delays.iter().filter(in_time).count() as f64 / outcome.delays.len() as f64
}

#[test]
fn every_message_arrives_with_every_policy_controller_and_scheduler() {
    for algorithm in [Algorithm::BBR, Algorithm::CUBIC, Algorithm::NEW_RENO] {
        for scheme in [Scheme::EPS, Scheme::DEADLINE, Scheme::HMM] {
            for policy in ["messages", "tail:burst=1", "incremental:burst=1", "bulk", "buffer"] {
                let config = config(algorithm, scheme, Some(policy));
                let outcome = run(&config, LOSSY, frames(), 3);
                assert!(outcome.delays.iter().all(Option::is_some), "{algorithm} {policy}");
                assert_eq!(outcome.fates.len(), COUNT as usize);
                let given_up = outcome.fates.contains(&MessageOutcome::GivenUp);
                assert!(!given_up, "{algorithm} {policy}: nothing was to be cancelled");
            }
        }
    }
}

#[test]
fn lazy_repair_brings_messages_in_time_where_retransmission_does_not() {
    let (mut with, mut without, mut symbols) = (0.0, 0.0, 0);
    let seeds = 5;
    for seed in 0..seeds {
        let config_of = |policy| config(Algorithm::BBR, Scheme::DEADLINE, policy);
        let coded = run(&config_of(Some("messages")), LOSSY, frames(), seed);
        with += on_time(&coded) / seeds as f64;
        without += on_time(&run(&config_of(None), LOSSY, frames(), seed)) / seeds as f64;
        symbols += coded.ends.server.fec.repair_symbols_sent;
        let told = coded.fates.iter().filter(|fate| **fate == MessageOutcome::Recovered).count();
        assert!(told > 0 && coded.ends.client.fec.recovered > 0);
    }
    println!("in time: {with:.4} with repair symbols, {without:.4} without; {symbols} symbols");
    assert!(without < 0.97 && with > 0.99, "{with} {without}");
    assert!(symbols < seeds * u64::from(COUNT), "a repair symbol covers more than one message");
}

/// Once a second there is a frame of 100 kB, for which the path takes 0.8 s.
#[test]
fn what_cannot_be_in_time_makes_room_for_what_can() {
    let frame =
        |n: u32| TimedMessage { at: 33 * MS * n, size: if n % 30 == 10 { 100_000 } else { 1_000 } };
    let plan = MessagePlan::new((0..300).map(frame));
    let told = |cancel_late| MessagePlan { deadline: Some(250 * MS), cancel_late, ..plan.clone() };
    let path = "rate=1mbit delay=20ms queue=30p";
    let of_scheme = |scheme, plan| run(&config(Algorithm::BBR, scheme, None), path, plan, 1);
    let in_order = of_scheme(Scheme::EPS, plan.clone());
    let by_deadline = of_scheme(Scheme::DEADLINE, told(None));
    let cancelled = of_scheme(Scheme::DEADLINE, told(Some(5)));
    let [first, second, third] = [&in_order, &by_deadline, &cancelled].map(on_time);
    println!("in time: in order {first:.3}, by deadline {second:.3}, with cancellation {third:.3}");
    assert!(first < 0.6 && second > 0.8 && third > 0.8, "{first} {second} {third}");
    assert!(by_deadline.delays.iter().all(Option::is_some), "the large ones go last");
    let given_up = cancelled.fates.iter().filter(|fate| **fate == MessageOutcome::GivenUp).count();
    assert_eq!(given_up, 10);
    let bytes = |outcome: &MessagesOutcome| outcome.ends.down.sent_bytes;
    let [all, less] = [&by_deadline, &cancelled].map(bytes);
    assert!(less * 9 < all * 5, "{less} bytes, {all} without cancellation");
}

#[test]
fn protected_datagrams_lose_less_whatever_the_policy() {
    let plan = |protection| MessagePlan {
        unreliable: true,
        protection,
        ..MessagePlan { deadline: Some(250 * MS), ..MessagePlan::steady(2_000, 1_000, 5 * MS) }
    };
    let path = "rate=8mbit delay=30ms loss=bern:0.03";
    let lost =
        |outcome: &MessagesOutcome| outcome.delays.iter().filter(|delay| delay.is_none()).count();
    for algorithm in [Algorithm::BBR, Algorithm::CUBIC] {
        let config = config(algorithm, Scheme::EPS, None);
        let bare = lost(&run(&config, path, plan(None), 9));
        assert!(bare > 40, "{bare}");
        for policy in ["tail:burst=1", "incremental:burst=1", "messages", "sr-arq", "ac-rlnc"] {
            let policy = sutura_research::redundancy().find(policy).unwrap();
            let outcome = run(&config, path, plan(Some(Protection::new(policy.clone()))), 9);
            let lost = lost(&outcome);
            println!("{algorithm}, {}: {lost} lost, {bare} bare", policy.name());
            assert!(lost * 5 < bare * 2, "{algorithm}, {}: {lost} of {bare}", policy.name());
            let recovered = outcome.fates.iter().filter(|f| **f == MessageOutcome::Recovered);
            assert!(recovered.count() > 20);
        }
    }
}

#[test]
fn the_fate_of_every_protected_datagram_is_told_whatever_the_policy() {
    let (config, count) = (config(Algorithm::BBR, Scheme::EPS, None), 600);
    for entry in sutura_research::redundancy().entries() {
        let protection = Some(Protection::new(entry.make("").unwrap()));
        let steady = MessagePlan::steady(count, 1_000, 8 * MS);
        let plan = MessagePlan { unreliable: true, protection, ..steady };
        let outcome = run(&config, "rate=20mbit delay=25ms loss=bern:0.09", plan, 11);
        let (name, got) = (entry.name, outcome.delays.iter().flatten().count());
        assert_eq!(outcome.fates.len(), count as usize, "{name}");
        // One in eleven messages is lost, and some policies see nothing here that is worth protecting.
        let repairs = outcome.ends.server.fec.repair_symbols_sent;
        let least = if repairs > 0 { 9 } else { 8 };
        assert!(got > count as usize * least / 10, "{name}: {got} of {count}");
    }
}

#[test]
fn what_was_given_up_on_a_slow_path_is_sent_again_once_the_path_is_as_before() {
    // For two seconds, nothing can be in time.
    let path = "rate=10mbit delay=50ms step=5s,delay=250ms step=7s,delay=50ms";
    let plan = MessagePlan { deadline: Some(120 * MS), ..MessagePlan::steady(1_000, 500, 16 * MS) };
    let datagrams = MessagePlan { unreliable: true, ..plan.clone() };
    let cancelled = MessagePlan { cancel_late: Some(5), ..plan };
    for plan in [datagrams, cancelled] {
        let outcome = run(&config(Algorithm::BBR, Scheme::DEADLINE, None), path, plan, 3);
        let in_time = |from: usize, to: usize| {
            let within = outcome.delays[from..to].iter();
            within.filter(|delay| delay.is_some_and(|delay| delay <= 120 * MS)).count()
        };
        let [before, slow, after] = [in_time(0, 300), in_time(330, 430), in_time(500, 1_000)];
        println!("{before} of 300, {slow} of 100, {after} of 500");
        assert!(before > 290 && slow == 0 && after > 490, "{before} {slow} {after}");
    }
}

#[test]
fn a_peer_without_the_extension_gets_plain_messages() {
    let path = link(LOSSY);
    let server = config(Algorithm::BBR, Scheme::DEADLINE, Some("messages"));
    let client = TransportConfig::default().with_fec(None);
    let plan = MessagePlan { unreliable: true, ..frames() };
    let plan = MessagePlan { protection: Some(Protection::tail(1, Duration::ZERO)), ..plan };
    let scenario = Scenario::new(4).link(&path, &path).client(&client).server(&server);
    let outcome = scenario.messages(plan).unwrap();
    assert!(outcome.delays.iter().all(Option::is_some));
    assert_eq!(outcome.ends.server.fec.source_symbols_sent, 0);
}
