//! The claims of FlEC (Michel et al. 2022) about messages, on a part of the experiment.

use std::time::Duration;

use sutura_lab::experiments::flec_messages::{self, Messages, Variant, bytes_by_quic};
use sutura_lab::{Options, message_trace};

#[test]
fn messages_are_in_time_up_to_200_ms_and_short_paths_pay_nothing() {
    let trace = message_trace::tixeo().unwrap();
    let delays = [60, 120, 200].map(Duration::from_millis);
    let summaries = flec_messages::measure(&delays, &trace[..900], 1, &Options::default()).unwrap();
    for summary in &summaries {
        let p99 = summary.most(|run| run.percentile(0.99));
        let bytes = bytes_by_quic(&summaries, summary).value;
        let short = summary.setup.one_way < Duration::from_millis(70);
        let repairs = summary.runs.iter().map(|run: &Messages| run.repairs).sum::<u64>();
        match summary.setup.variant {
            Variant::Quic | Variant::RoundRobin => {
                assert!(short || p99 > 250.0, "{:?}: {p99}", summary.setup);
            }
            // The pattern alone asks for repair symbols, so that every message has one, on short paths, too.
            Variant::NoApi | Variant::LiteralNoApi => {
                assert!(p99 <= 250.0, "{:?}: {p99}", summary.setup);
                assert!(repairs > 800, "{:?}: {repairs}", summary.setup);
                assert!(bytes > 1.4, "{:?}: {}", summary.setup, bytes);
            }
            // Repair symbols mend lost data, also on short paths, where the pattern asks for hardly any.
            Variant::Literal => {
                assert!(p99 <= 250.0, "{:?}: {p99}", summary.setup);
                assert!(bytes < 1.6, "{:?}: {}", summary.setup, bytes);
                assert_eq!(repairs < 150, short, "{:?}: {repairs}", summary.setup);
            }
            // The policy knows nothing of the path when a connection begins. On short paths it protects the
            // few messages that had to wait before they were sent.
            Variant::Auto => {
                assert!(p99 <= 250.0, "{:?}: {p99}", summary.setup);
                assert!(bytes < 1.32, "{:?}: {}", summary.setup, bytes);
                assert_eq!(repairs < 15, short, "{:?}: {repairs}", summary.setup);
            }
            Variant::Messages => {
                assert!(p99 <= 250.0, "{:?}: {p99}", summary.setup);
                assert!(bytes < 1.3, "{:?}: {}", summary.setup, bytes);
                assert_eq!(repairs == 0, short, "{:?}: {repairs}", summary.setup);
            }
            Variant::Ideal => {
                let same = summaries.iter().filter(|s| s.setup.one_way == summary.setup.one_way);
                let least = same.map(|s| s.most(|run| run.percentile(0.99))).reduce(f64::min);
                assert_eq!((repairs, Some(p99)), (0, least), "{:?}", summary.setup);
            }
        }
    }
}
