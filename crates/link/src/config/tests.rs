use proptest::prelude::*;

use super::*;
use crate::Trace;

fn parse(text: &str) -> LinkConfig {
    text.parse().unwrap()
}

#[test]
fn every_preset_is_valid_and_found_by_name() {
    for (name, settings) in PRESETS {
        let preset = LinkConfig::preset(name);
        assert!(preset.is_some(), "{name}");
        assert_eq!(Some(parse(name)), preset);
        assert_eq!(Some(parse(settings)), preset);
    }
    assert_eq!(LinkConfig::preset("papers"), None);
}

#[test]
fn the_presets_are_the_paths_they_claim_to_be() {
    let paper = parse("paper");
    assert_eq!(paper.rate.map(Rate::bits_per_second), Some(10_000_000));
    assert_eq!(paper.delay, Duration::from_millis(50));
    assert!((paper.loss.mean() - 0.0235).abs() < 0.0001, "{}", paper.loss.mean());
    assert!((parse("paper-time").loss.mean() - 0.0235).abs() < 0.0001);
    assert!((parse("paper-percent").loss.mean() - 0.000_235).abs() < 0.000_001);
    assert!(parse("paper-background").background.is_some());
    assert_eq!(parse("perfect"), LinkConfig::default());
    assert_eq!(parse(""), LinkConfig::default());
}

#[test]
fn settings_change_a_preset_and_the_last_one_counts() {
    let config = parse("paper delay=20ms rate=5mbit  outage=1s..2s\tdelay=30ms outage=3s..4s");
    let outages = vec!["1s..2s".parse().unwrap(), "3s..4s".parse().unwrap()];
    let expected = LinkConfig {
        rate: Rate::from_bits_per_second(5_000_000),
        delay: Duration::from_millis(30),
        outages,
        ..parse("paper")
    };
    assert_eq!(config, expected);
    assert_eq!(parse("paper rate=none loss=none").rate, None);
    assert_eq!(parse("outage=1s..2s outage=none"), LinkConfig::default());
    assert_eq!(parse("step=1s,rate=1bit step=none"), LinkConfig::default());
    assert_eq!(
        expected.to_string(),
        "rate=5mbit queue=187500b delay=30ms loss=ge:0.005,0.25,0.95,0.005 \
         outage=1s..2s outage=3s..4s"
    );
    assert_eq!(LinkConfig::default().to_string(), "perfect");
}

#[test]
fn what_is_no_configuration_is_an_error_that_says_why() {
    for (text, message) in [
        (
            "papier",
            "link `papier`: expected a setting such as delay=50ms, or one of perfect, paper, \
             paper-percent, paper-time, paper-background",
        ),
        ("delay=50ms paper", "link `paper`: expected a setting such as delay=50ms"),
        (
            "speed=3",
            "link setting `speed`: expected one of rate, trace, overhead, mtu, queue, mark, delay, \
             jitter, reorder, duplicate, corrupt, loss, background, outage, step",
        ),
        ("overhead=-1", "overhead `-1`: expected a number of bytes"),
        ("jitter=5", "jitter `5`: duration `5`: expected a number and a unit (s, ms, us, ns)"),
        ("jitter=5ms,x", "jitter `5ms,x`: expected `reorder` instead of `x`"),
        ("reorder=1%", "reorder `1%`: expected a probability and a duration such as 0.01,10ms"),
        ("reorder=2,5ms", "reorder `2,5ms`: probability `2`: is above 1"),
        ("duplicate=5", "probability `5`: is above 1"),
        ("background=10mbit,0", "background `10mbit,0`: expected a packet size in bytes"),
        ("background=0bit", "background `0bit`: rate `0bit`: is zero"),
    ] {
        assert_eq!(text.parse::<LinkConfig>().unwrap_err().to_string(), message);
    }
}

fn any_probability() -> impl Strategy<Value = Probability> {
    prop_oneof![Just(0.0), Just(1.0), 0.0..=1.0f64].prop_map(|p| Probability::new(p).unwrap())
}

fn any_duration() -> impl Strategy<Value = Duration> {
    prop_oneof![
        any::<u64>().prop_map(Duration::from_nanos),
        (0..100_000u64).prop_map(Duration::from_micros),
    ]
}

fn any_rate() -> impl Strategy<Value = Rate> {
    (1..=u64::MAX).prop_map(|bits| Rate::from_bits_per_second(bits).unwrap())
}

fn any_loss() -> impl Strategy<Value = Loss> {
    let p = any_probability;
    let sojourn = || (1_000..=u64::MAX).prop_map(Duration::from_nanos);
    prop_oneof![
        Just(Loss::None),
        p().prop_map(Loss::Bernoulli),
        (p(), p(), p(), p()).prop_map(|(p, r, loss_bad, loss_good)| {
            Loss::GilbertElliott { p, r, loss_bad, loss_good }
        }),
        (sojourn(), sojourn(), p(), p()).prop_map(|(mean_good, mean_bad, loss_bad, loss_good)| {
            Loss::GilbertElliottTime { mean_good, mean_bad, loss_bad, loss_good }
        }),
        prop::collection::vec(any::<bool>(), 1..40)
            .prop_map(|lost| Loss::Trace(Trace::new(lost).unwrap())),
    ]
}

fn any_queue() -> impl Strategy<Value = Queue> {
    prop_oneof![
        any::<u64>().prop_map(Queue::Packets),
        any::<u64>().prop_map(Queue::Bytes),
        any::<u64>().prop_map(Queue::Policer),
        any::<u64>().prop_map(Queue::Codel),
        any::<u64>().prop_map(Queue::Red),
    ]
}

fn any_step() -> impl Strategy<Value = Step> {
    let size = prop::option::of(any::<u64>());
    let loss = prop::option::of(any_probability());
    let change = (prop::option::of(any_rate()), prop::option::of(any_duration()), size, loss);
    let nothing = (None, None, None, None);
    let change = change.prop_filter("a step changes something", move |change| *change != nothing);
    (any_duration(), change).prop_map(|(at, (rate, delay, mtu, loss))| Step {
        at,
        rate,
        delay,
        mtu,
        loss,
    })
}

fn any_outage() -> impl Strategy<Value = Outage> {
    (any::<u32>(), 1..u32::MAX).prop_map(|(from, length)| {
        let from = Duration::from_micros(u64::from(from));
        Outage { from, to: from + Duration::from_nanos(u64::from(length)) }
    })
}

/// A rate, or a trace in its place.
fn any_capacity() -> impl Strategy<Value = (Option<Rate>, Option<Opportunities>)> {
    let times = prop::collection::vec(any::<u32>(), 1..40).prop_map(|mut times| {
        times.sort_unstable();
        Opportunities::new(times)
    });
    prop_oneof![
        prop::option::of(any_rate()).prop_map(|rate| (rate, None)),
        times.prop_map(|trace| (None, trace)),
    ]
}

prop_compose! {
    fn any_config()(
        ((rate, trace), overhead, queue) in (any_capacity(), any::<u32>(), any_queue()),
        (delay, max, reorders) in (any_duration(), any_duration(), any::<bool>()),
        reorder in prop::option::of((any_probability(), any_duration())),
        (duplicate, corrupt, loss) in (any_probability(), any_probability(), any_loss()),
        background in prop::option::of((any_rate(), 1..=u32::MAX)),
        outages in prop::collection::vec(any_outage(), 0..4),
        steps in prop::collection::vec(any_step(), 0..4),
        (mtu, mark) in (prop::option::of(any::<u64>()), prop::option::of(any::<u64>())),
    ) -> LinkConfig {
        let background = background.map(|(rate, packet_size)| Background { rate, packet_size });
        let reorder = reorder.map(|(probability, delay)| Reorder { probability, delay });
        let jitter = Jitter { max, reorders };
        LinkConfig {
            rate, trace, overhead, queue, delay, jitter, reorder, duplicate, corrupt, loss, background,
            outages, steps, mtu, mark,
        }
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(config in any_config()) {
        let text = config.to_string();
        prop_assert_eq!(text.parse::<LinkConfig>(), Ok(config), "{}", text);
    }

    #[test]
    fn no_text_panics(text in "[a-z:=.,0-9% ]{0,40}", key in "rate|trace|queue|delay|loss|outage|jitter|step",
                      value in "(ge:|gt:|trace:|bern:)?[0-9.,%msbitkg]{0,30}") {
        let _ = text.parse::<LinkConfig>();
        let _ = format!("{key}={value}").parse::<LinkConfig>();
    }
}
