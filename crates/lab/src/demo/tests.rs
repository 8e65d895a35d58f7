//! Short runs: properties that must hold on any machine, since the clock is virtual.

use super::*;

const MOBILE: Link = LINKS[0];
const SATELLITE: Link = LINKS[1];
const WIFI: Link = LINKS[2];

fn options(seed: u64, threads: usize) -> Options {
    Options { seed, seeds: Some(1), threads, ..Options::default() }
}

/// One application on one link, on one connection.
fn alone(app: App, link: Link, seconds: u32) -> OnLink {
    let mut demo = measure(&[(app, link)], seconds, &options(1, 2)).unwrap();
    demo.parts.remove(0).links.remove(0)
}

fn row(on_link: &OnLink, redundancy: Redundancy) -> &Row {
    on_link.rows.iter().find(|row| row.redundancy == redundancy).unwrap()
}

#[test]
fn a_seed_repeats_to_the_digit_whatever_the_threads() {
    let run = |seed, threads| {
        let pairs = [(App::Stream, WIFI), (App::Messages, WIFI)];
        measure(&pairs, 2, &options(seed, threads)).unwrap()
    };
    let first = run(7, 1);
    assert_eq!(first, run(7, 3));
    assert_eq!(first.to_text(), run(7, 2).to_text());
    assert_ne!(first.parts, run(8, 1).parts);
}

#[test]
fn the_stream_is_late_less_often_with_auto() {
    for (link, share) in [(MOBILE, 1.0), (SATELLITE, 0.5)] {
        let on_link = alone(App::Stream, link, 15);
        let late = |redundancy| row(&on_link, redundancy).late.unwrap();
        let plain = late(Redundancy::None);
        for redundancy in [Redundancy::Auto, Redundancy::Target] {
            assert!(late(redundancy) < share * plain, "{on_link:?}");
            let row = row(&on_link, redundancy);
            assert!(row.useful > 0 && row.useful <= row.repairs && row.extra > 0.0, "{row:?}");
            assert!(row.late_in_model.unwrap() < plain, "{row:?}");
        }
        assert!(on_link.finding.starts_with("auto helps: "), "{}", on_link.finding);
    }
}

#[test]
fn without_redundancy_the_stream_is_as_late_as_the_model_says() {
    let on_link = alone(App::Stream, WIFI, 15);
    let plain = row(&on_link, Redundancy::None);
    let (late, model) = (plain.late.unwrap(), plain.late_in_model.unwrap());
    assert!(late > 0.02 && (late - model).abs() < 0.2 * model, "{late} {model}");
}

#[test]
fn where_a_retransmission_is_in_time_only_messages_that_had_to_wait_are_protected() {
    let on_link = alone(App::Messages, WIFI, 20);
    let told = row(&on_link, Redundancy::Target);
    assert_eq!(told.policy.as_deref(), Some("auto:within=100ms"));
    assert!(told.repairs < 20 && told.extra < 0.01, "{told:?}");
    assert!(told.reason.is_some());
    // Half a per cent more bytes, which may count as some or as hardly any.
    let verdict = on_link.summary.verdict;
    assert!(matches!(verdict, Verdict::NoDifference | Verdict::Costs), "{}", on_link.finding);
    assert_eq!(row(&on_link, Redundancy::Lossless).late, Some(0.0));
}

#[test]
fn downloads_over_a_satellite_wait_less_for_the_small_buffer() {
    let on_link = alone(App::Download, SATELLITE, 1);
    let p50 = |redundancy| row(&on_link, redundancy).times_ms["p50"].unwrap();
    assert!(p50(Redundancy::Auto) < p50(Redundancy::None), "{on_link:?}");
    assert_eq!(on_link.late_after_ms, None);
}

#[test]
fn nothing_is_below_a_bound() {
    for seed in 1..=2 {
        let pairs = [App::Stream, App::Download].into_iter();
        let pairs: Vec<_> =
            pairs.flat_map(|app| LINKS.into_iter().map(move |link| (app, link))).collect();
        let demo = measure(&pairs, 10, &options(seed, 2)).unwrap();
        for on in demo.parts.iter().flat_map(|part| &part.links) {
            assert!(on.late_bound.is_some() || on.time_bound_ms.is_some());
            for row in &on.rows {
                let late = row.late.unwrap_or(1.0);
                assert!(late >= on.late_bound.unwrap_or(0.0), "seed {seed}: {on:?}");
                let least = row.times_ms.values().map(|ms| ms.unwrap_or(f64::MAX));
                let least = least.fold(f64::MAX, f64::min);
                assert!(least >= on.time_bound_ms.unwrap_or(0.0), "seed {seed}: {on:?}");
            }
        }
    }
}

#[test]
fn the_game_loses_what_either_way_loses_and_with_repair_nothing() {
    let on_link = alone(App::Game, GAME_LINKS[0], 45);
    let [plain, fixed] = [Redundancy::None, Redundancy::Fixed].map(|r| row(&on_link, r));
    // 1 - 0.95 * 0.95 of them.
    assert!((plain.lost - 0.0975).abs() < 0.015, "{plain:?}");
    assert_eq!((plain.late, plain.repairs), (Some(plain.lost), 0), "nobody sends it again");
    assert_eq!(fixed.lost, 0.0, "{fixed:?}");
    assert!(fixed.late.unwrap() < 0.01 && fixed.useful > 0, "{fixed:?}");
    assert_eq!(on_link.summary.verdict, Verdict::Helps);
}
