//! The claims of Holzinger et al. 2025, section V-B, on a tenth of the repetitions.

use std::time::Duration;

use sutura_lab::experiments::{Channel, holzinger_bulk, holzinger_stream};
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
        assert!(with.bytes_resent < without.bytes_resent / 2.0, "{channel:?}: {with:?}");
    }
}

#[test]
fn a_tenth_of_the_bytes_that_were_late_are() {
    let delay = Duration::ZERO;
    let setup = |channel, burst| holzinger_stream::Setup { channel, burst, delay };
    for channel in [Channel::Fractions, Channel::Time] {
        let setups = [setup(channel, 0), setup(channel, 3)];
        let summaries = holzinger_stream::measure(&setups, 2000, &Options::default()).unwrap();
        let [without, with] = &summaries[..] else { panic!("{summaries:?}") };
        assert_eq!(without.delays.total(), 2000 * 5000);
        assert!(without.late > 0.1, "{channel:?}: {}", without.late);
        assert!(
            with.late <= without.late / 10.0,
            "{channel:?}: {} with, {} without",
            with.late,
            without.late
        );
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
