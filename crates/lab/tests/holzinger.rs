//! The claims of Holzinger et al. 2025, section V-B, on a tenth of the repetitions.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::time::Duration;

use sutura_lab::experiments::holzinger_stream::{self, Setup, Summary};
use sutura_lab::experiments::{Channel, holzinger_bulk};
use sutura_lab::{EXPERIMENTS, Error, Options};

#[test]
fn half_of_the_small_transfers_that_waited_need_not() {
    let setup = |channel, burst| holzinger_bulk::Setup { channel, bytes: 32_000, burst };
    for channel in [Channel::Fractions, Channel::Time] {
        let setups = [setup(channel, 0), setup(channel, 3)];
        let summaries = holzinger_bulk::measure(&setups, 100, &Options::default()).unwrap();
        let [without, with] = &summaries[..] else { panic!("{summaries:?}") };
        assert_eq!((without.times.total(), with.times.total()), (100, 100));
        assert!(without.waited > 0.1, "{channel:?}: {}", without.waited);
        assert!(
            with.waited <= without.waited / 2.0,
            "{channel:?}: {} with, {} without",
            with.waited,
            without.waited
        );
    }
}

/// The share of bytes that are late because of loss: what BBR delays by itself, when it measures the
/// round-trip time every five seconds, is late without loss, too.
fn late_by_loss(channel: Channel, burst: u32) -> (f64, Summary) {
    let setups =
        [channel, Channel::Lossless].map(|channel| Setup { channel, burst, delay: Duration::ZERO });
    let summaries = holzinger_stream::measure(&setups, 4000, &Options::default()).unwrap();
    let [lossy, lossless] = &summaries[..] else { panic!("{summaries:?}") };
    assert_eq!(lossy.delays.total(), 4000 * 5000);
    assert!(lossless.late < 0.06, "{}", lossless.late);
    (lossy.late - lossless.late, lossy.clone())
}

#[test]
fn a_tenth_of_the_bytes_that_loss_made_late_are() {
    for (channel, times) in [(Channel::Fractions, 10.0), (Channel::Time, 4.0)] {
        let ((without, _), (with, summary)) = (late_by_loss(channel, 0), late_by_loss(channel, 3));
        assert!(without > 0.1, "{channel:?}: {without}");
        assert!(with <= without / times, "{channel:?}: {with} with, {without} without");
        assert!(summary.resent < 0.001 && summary.recovered > 0.05, "{channel:?}");
    }
}

#[test]
fn every_experiment_reports() {
    let options = Options { reduce: 1000, ..Options::default() };
    for experiment in EXPERIMENTS {
        let report = sutura_lab::run(experiment.name, &options).unwrap();
        assert_eq!(report.name, experiment.name);
        let columns = report.tables[0].columns.len();
        assert!(report.tables[0].rows.iter().all(|row| row.len() == columns));
        assert!(report.to_markdown().lines().count() > 8);
        assert!(report.to_json().unwrap().contains("\"series\""));
    }
    let error = sutura_lab::run("nothing", &options).unwrap_err();
    assert!(matches!(error, Error::Unknown { .. }));
    assert!(error.to_string().contains("holzinger-bulk"), "{error}");
}
