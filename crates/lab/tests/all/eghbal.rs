//! The mechanism of Eghbal and Lu 2022: protecting the urgent resources of a page, on few seeds.

use std::time::Duration;

use sutura_lab::Options;
use sutura_lab::experiments::eghbal_2022::{self, History, Protected, Visit, Visits};
use sutura_proto::Algorithm;

const SEEDS: u64 = 21;
const RTT: Duration = Duration::from_millis(50);
const URGENT_BYTES: u64 = 5 * 35_000;
const OTHERS_BYTES: u64 = 5 * 70_000;

fn warm(protected: Protected) -> Visit {
    Visit::new(History::Warm, Algorithm::BBR, protected)
}

fn measure(setups: &[Visit]) -> Vec<Visits> {
    let summaries = eghbal_2022::measure(setups, SEEDS, &Options::default()).unwrap();
    assert!(summaries.iter().all(|s| s.runs.len() as u64 == SEEDS));
    summaries
}

#[test]
fn urgent_resources_are_complete_earlier_for_few_bytes() {
    let summaries = measure(&[Protected::Nothing, Protected::Urgent].map(warm));
    let [without, with] = &summaries[..] else { panic!("{summaries:?}") };
    let median = |s: &Visits| s.times(|load| load.urgent).quantile(0.5);
    let saved = median(without).saturating_sub(median(with));
    // Most of a round trip, which a retransmission takes; nothing is faster than one.
    assert!(saved >= RTT / 2, "{with:?} {without:?}");
    assert!(with.runs.iter().all(|load| load.began >= RTT && load.began <= load.first));
    assert!(with.runs.iter().all(|load| load.first <= load.urgent));
    let wire = |s: &Visits| s.mean(|load| load.wire as f64);
    assert!(wire(with) <= 1.15 * wire(without), "{} {}", wire(with), wire(without));
    // Data that repair symbols mend is not sent again.
    let resent = |s: &Visits| s.mean(|load| load.resent as f64);
    assert!(resent(with) < resent(without), "{} {}", resent(with), resent(without));
}

#[test]
fn only_what_is_to_be_protected_is() {
    let arms = [Protected::Nothing, Protected::Urgent, Protected::All];
    let summaries = measure(&arms.map(warm));
    let [nothing, urgent, all] = &summaries[..] else { panic!("{summaries:?}") };
    for load in &nothing.runs {
        assert_eq!((load.urgent_sent.protected, load.others_sent.protected), (0, 0));
        assert!(load.urgent_sent.bare >= URGENT_BYTES && load.others_sent.bare >= OTHERS_BYTES);
        assert_eq!((load.repair_symbols, load.recovered), (0, 0));
    }
    for load in &urgent.runs {
        assert_eq!((load.urgent_sent.bare, load.others_sent.protected), (0, 0));
        assert!(load.urgent_sent.protected >= URGENT_BYTES);
        assert!(load.others_sent.bare >= OTHERS_BYTES);
        // Three behind each of five resources.
        assert_eq!(load.repair_symbols, 15);
    }
    for load in &all.runs {
        assert_eq!((load.urgent_sent.bare, load.others_sent.bare), (0, 0));
        assert!(load.others_sent.protected >= OTHERS_BYTES);
        assert!(load.repair_symbols >= 30);
    }
    let recovered = |s: &Visits| s.mean(|load| load.recovered as f64);
    assert!(recovered(all) > recovered(urgent) && recovered(urgent) > 0.0);
}

#[test]
fn the_same_seed_gives_the_same_page() {
    let setup = Visit::new(History::Fresh, Algorithm::CUBIC, Protected::Urgent);
    let load = |seed| eghbal_2022::load(setup, seed).unwrap();
    assert_eq!(load(7), load(7));
    assert_ne!(load(7), load(8));
}

#[test]
fn the_report_holds_the_targets_against_each_connection() {
    let options = Options { seeds: Some(3), ..Options::default() };
    let report = sutura_lab::run("eghbal-2022", &options).unwrap();
    let [targets, pages, varied] = &report.tables[..] else { panic!("{report:?}") };
    assert_eq!((targets.rows.len(), pages.rows.len(), varied.rows.len()), (20, 15, 4));
    let verdict = |cell: &str| cell == "met" || cell == "missed";
    assert!(targets.rows.iter().all(|row| verdict(&row[6].to_string())));
    assert!(pages.rows.iter().all(|row| row[4].to_string() == "3"));
    // A chart for each connection; no two of its six curves have the same colour.
    assert_eq!(report.charts.len(), 5);
    assert!(report.charts.iter().all(|chart| chart.panels[0].series.len() == 6));
}
