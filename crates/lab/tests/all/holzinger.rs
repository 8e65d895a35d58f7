//! The claims of Holzinger et al. 2025, section V-B, on a tenth of the repetitions.

use sutura_lab::Options;
use sutura_lab::experiments::holzinger_bulk::{self, Objects};
use sutura_lab::experiments::holzinger_stream::{self, Delays, Steady};
use sutura_lab::experiments::{Channel, Way};

/// Transfers of each setup: three standard errors of a share of 0.1 are 0.04.
const REPETITIONS: u64 = 500;

#[test]
fn half_of_the_small_transfers_that_waited_need_not() {
    for channel in [Channel::Fractions, Channel::Time] {
        let setups = [0, 3].map(|burst| Objects::bare(channel, 32_000).protected(burst, 0));
        let summaries =
            holzinger_bulk::measure(Way::STREAMS, &setups, REPETITIONS, &Options::default())
                .unwrap();
        let [without, with] = &summaries[..] else { panic!("{summaries:?}") };
        assert_eq!((without.times.total(), with.times.total()), (REPETITIONS, REPETITIONS));
        assert!(without.waited() > 0.1, "{channel:?}: {}", without.waited());
        assert!(
            with.waited() <= without.waited() / 2.0,
            "{channel:?}: {} with, {} without",
            with.waited(),
            without.waited()
        );
    }
}

/// The share of bytes later than the path and 10 ms, with `burst` repair symbols behind each message.
fn late(channel: Channel, burst: u32) -> Delays {
    let setup = [Steady::incremental(channel, burst, 0)];
    let mut summaries =
        holzinger_stream::measure(Way::STREAMS, &setup, 4000, &Options::default()).unwrap();
    let summary = summaries.remove(0);
    assert_eq!(summary.delays.total(), 4000 * 5000);
    summary
}

#[test]
fn nothing_is_late_without_loss() {
    for burst in [0, 3] {
        assert!(late(Channel::Lossless, burst).late() < 0.001);
    }
}

#[test]
fn at_most_a_tenth_of_the_bytes_is_late_that_would_be_without_repair() {
    let readings = [(Channel::Fractions, 0.1, 10.0), (Channel::Percentages, 0.001, 10.0)];
    for (channel, at_least, times) in readings.into_iter().chain([(Channel::Time, 0.1, 2.0)]) {
        let (without, with) = (late(channel, 0), late(channel, 3));
        assert!(without.late() > at_least, "{channel:?}: {}", without.late());
        assert!(
            with.late() <= without.late() / times,
            "{channel:?}: {} {}",
            with.late(),
            without.late()
        );
        assert!(with.resent() < 0.001, "{channel:?}");
    }
}

/// Responses of HTTP/3 that ask for protection, with the paper's congestion control and reaction to loss.
#[test]
fn responses_as_in_the_paper_gain_what_plain_streams_do() {
    let options = Options::default();
    let setups = [0, 3].map(|burst| Objects::bare(Channel::Fractions, 32_000).protected(burst, 0));
    let transfers = holzinger_bulk::measure(Way::PAPER, &setups, REPETITIONS, &options).unwrap();
    let [without, with] = [0, 1].map(|n| transfers[n].waited());
    assert!(without > 0.1 && with <= without / 2.0, "{with} with, {without} without");
    let setups = [0, 3].map(|burst| Steady::incremental(Channel::Fractions, burst, 0));
    let streams = holzinger_stream::measure(Way::PAPER, &setups, 4000, &options).unwrap();
    let [without, with] = [0, 1].map(|n| streams[n].late());
    assert!(without > 0.1 && with <= without / 5.0, "{with} with, {without} without");
}

#[test]
fn each_size_has_a_chart_of_its_own() {
    let options = Options { reduce: 1000, ..Options::default() };
    let report = sutura_lab::run("holzinger-bulk", &options).unwrap();
    let names: Vec<&str> = report.charts.iter().map(|chart| chart.name.as_str()).collect();
    assert_eq!(names, ["32000-bytes", "1000000-bytes"]);
    for (chart, least) in report.charts.iter().zip([100.0, 800.0]) {
        let all = chart.panels.iter().flat_map(|panel| &panel.series).flat_map(|s| &s.points);
        assert!(all.clone().count() > 0 && all.into_iter().all(|(at, _)| *at > least));
    }
    assert!(report.charts[0].panels[0].series.iter().all(|s| s.points.iter().all(|p| p.0 < 800.0)));
}
