//! Short runs: what must hold on any machine, since the clock is virtual.

use super::*;

const MOBILE: Link = LINKS[0];
const SATELLITE: Link = LINKS[1];
const WIFI: Link = LINKS[2];

fn options(seed: u64, threads: usize) -> Options {
    Options { seed, seeds: Some(1), threads, ..Options::default() }
}

/// One application on one link, on one connection.
fn alone(app: App, link: Link, seconds: u32) -> OnLink {
    let mut demo = measure(&[app], &[link], seconds, &options(1, 2)).unwrap();
    demo.parts.remove(0).links.remove(0)
}

fn row(on_link: &OnLink, redundancy: Redundancy) -> &Row {
    on_link.rows.iter().find(|row| row.redundancy == redundancy).unwrap()
}

#[test]
fn a_seed_repeats_to_the_digit_whatever_the_threads() {
    let run = |seed, threads| {
        let apps = [App::Stream, App::Messages];
        measure(&apps, &[WIFI], 2, &options(seed, threads)).unwrap()
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
            assert!(row.late_at_best.unwrap() < plain, "{row:?}");
        }
        assert!(on_link.finding.starts_with("auto helps: "), "{}", on_link.finding);
    }
}

#[test]
fn without_redundancy_the_stream_is_as_late_as_the_model_says() {
    let on_link = alone(App::Stream, WIFI, 15);
    let plain = row(&on_link, Redundancy::None);
    let (late, model) = (plain.late.unwrap(), plain.late_at_best.unwrap());
    assert!(late > 0.02 && (late - model).abs() < 0.2 * model, "{late} {model}");
}

#[test]
fn where_a_retransmission_is_in_time_nothing_is_sent_and_the_reason_is_told() {
    let on_link = alone(App::Messages, WIFI, 20);
    let told = row(&on_link, Redundancy::Target);
    assert_eq!(told.policy.as_deref(), Some("auto:within=100ms"));
    assert_eq!((told.repairs, told.extra), (0, 0.0));
    let expected =
        format!("auto:within=100ms sends no redundancy: {}.", told.reason.as_ref().unwrap());
    assert_eq!(on_link.finding, expected);
    assert_eq!(row(&on_link, Redundancy::Lossless).late, Some(0.0));
}

#[test]
fn downloads_over_a_satellite_wait_less_for_the_small_buffer() {
    let on_link = alone(App::Download, SATELLITE, 1);
    let p50 = |redundancy| row(&on_link, redundancy).times_ms["p50"];
    assert!(p50(Redundancy::Auto) < p50(Redundancy::None), "{on_link:?}");
    assert_eq!(on_link.late_after_ms, None);
}
