//! The claims of Eghbal and Lu 2022 about the order in which messages arrive, on few seeds.

use std::time::Duration;

use sutura_lab::Options;
use sutura_lab::experiments::eghbal_order::{
    self, Arrivals, MESSAGES, POLICIES, Pacing, Sending, URGENT_MESSAGES, order,
};

const MATRIX: &str = POLICIES[0];
/// One matrix over all urgent resources.
const SHARED: &str = POLICIES[1];
const RTT: Duration = Duration::from_millis(50);

fn setup(sender: Pacing, policy: Option<&'static str>) -> Sending {
    Sending { loss: 2, sender, policy }
}

fn measure(sender: Pacing) -> [Vec<Arrivals>; 3] {
    let setups = [None, Some(MATRIX), Some(SHARED)].map(|policy| setup(sender, policy));
    let mut summaries =
        eghbal_order::measure(&setups, 20, &Options::default()).unwrap().into_iter();
    [(); 3].map(|()| summaries.next().unwrap().runs)
}

#[test]
fn protected_messages_do_not_wait_for_retransmissions() {
    for sender in Pacing::ALL {
        let [bare, matrix, shared] = measure(sender);
        let late = |runs: &[Arrivals]| runs.iter().filter(|r| r.urgent_complete() > RTT).count();
        // Some of 125 packets are nearly always lost.
        assert!(late(&bare) >= 15, "{sender:?}: {}", late(&bare));
        assert!(late(&matrix) <= 5, "{sender:?}: {}", late(&matrix));
        assert!(late(&shared) <= 5, "{sender:?}: {}", late(&shared));
        let held = |runs: &[Arrivals]| runs.iter().map(|r| order(r.urgent()).held).sum::<f64>();
        assert!(held(&matrix) < held(&bare) / 2.0, "{sender:?}");
    }
}

#[test]
fn an_urgent_resource_is_a_square_of_packets() {
    for run in &measure(Pacing::Fixed)[1] {
        assert_eq!(run.completed.len(), MESSAGES);
        assert_eq!(run.urgent().len(), URGENT_MESSAGES);
        // Ten sums for each of five squares.
        assert_eq!(run.repairs, 50);
        assert!(run.sources >= 125, "{}", run.sources);
    }
}

#[test]
fn a_matrix_may_span_all_urgent_resources() {
    for run in &measure(Pacing::Fixed)[2] {
        // A sum for each of five resources, and for each of the 25 packets that they have.
        assert_eq!((run.repairs, run.sources), (30, 125));
    }
}

#[test]
fn the_fixed_rate_is_that_of_the_paper() {
    // The urgent data and its sums take 28 ms, whatever is lost.
    for run in &measure(Pacing::Fixed)[1] {
        let first = run.urgent().iter().min().unwrap();
        assert!(*first < Duration::from_millis(2), "{first:?}");
        assert!(run.urgent_complete() > Duration::from_millis(20), "{:?}", run.urgent_complete());
    }
}

#[test]
fn the_report_has_every_configuration() {
    let options = Options { seeds: Some(2), ..Options::default() };
    let report = sutura_lab::run("eghbal-order", &options).unwrap();
    let setups = eghbal_order::setups().len();
    assert_eq!(report.tables.len(), 3);
    assert!(report.tables.iter().all(|table| table.rows.len() == setups));
    // A chart for each sender and loss, a panel for each protection, and every message in it.
    assert_eq!(report.charts.len() * (1 + POLICIES.len()), setups);
    for panel in report.charts.iter().flat_map(|chart| &chart.panels) {
        let messages: usize = panel.series.iter().map(|series| series.points.len()).sum();
        assert_eq!(messages, MESSAGES);
    }
}
