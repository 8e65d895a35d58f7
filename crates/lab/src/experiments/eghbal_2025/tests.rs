//! The paper's statements about its figures, on a tenth of its updates.

use super::*;
use sutura_analysis::statistics::millis;

const UPDATES: usize = 30;

/// The paths by their figures: streaming updates.
fn path(figure: &str) -> ScreenPath {
    PATHS.into_iter().find(|path| path.figures.contains(&figure)).unwrap()
}

fn summary(figure: &str, scheme: &str) -> ScreenTimes {
    summary_of(UPDATES, figure, scheme)
}

fn summary_of(updates: usize, figure: &str, scheme: &str) -> ScreenTimes {
    figures_of(updates, figure, scheme).measured
}

fn figures_of(updates: usize, figure: &str, scheme: &str) -> ScreenFigures {
    let path = path(figure);
    let workload = match path.figures[0] == figure {
        true => Mode::Streaming,
        false => Mode::Interactive,
    };
    let scheme = SCHEMES.into_iter().find(|of| of.name == scheme).unwrap();
    let setup = Screen { workload, path, scheme };
    let runs = vec![Deliveries::new(&setup.run(updates, seed(1, 0)).unwrap())];
    ScreenFigures { setup, measured: ScreenTimes::of(&Runs { setup, runs }) }
}

fn p99(distribution: &Distribution) -> f64 {
    millis(distribution.quantile(0.99))
}

/// Figs. 9 and 11: 0.4 ms with redundancy where total order has 230 and 264.
#[test]
fn with_redundancy_no_message_is_blocked() {
    for (figure, scheme) in [("Fig. 9", "RS 1.05"), ("Fig. 11", "RS 1.10")] {
        let [total, repaired] = ["total", scheme].map(|scheme| summary(figure, scheme));
        assert!(p99(&total.blocked) > 100.0, "{figure}: {}", p99(&total.blocked));
        assert!(p99(&repaired.blocked) <= 0.4, "{figure}: {}", p99(&repaired.blocked));
        assert!(repaired.recovered.value > 0.0 && repaired.drawn.len() < total.drawn.len());
    }
}

/// `auto` finds out by itself that the path loses packets, and does not mind the queue that congestion control makes.
#[test]
fn auto_protects_updates_that_fill_the_window() {
    let partial = summary("Fig. 9", "partial");
    let auto = summary_of(8 * UPDATES, "Fig. 9", "auto");
    let blocked = [&partial, &auto].map(|of| millis(of.blocked.quantile(0.99)));
    assert!(blocked[0] > 50.0 && blocked[1] <= 0.4, "{blocked:?}");
}

/// Fig. 18: 162 ms with redundancy where total order has 325.
#[test]
fn updates_that_are_asked_for_come_without_a_round_trip_more() {
    let [total, repaired] = ["total", "RS 1.05"].map(|scheme| summary("Fig. 18", scheme));
    // The slowest tenth is left out: the three updates during which the connection starts.
    let slow = |summary: ScreenTimes| millis(summary.responses.quantile(0.89));
    let [total, repaired] = [total, repaired].map(slow);
    assert!(total > 200.0 && repaired <= 162.0, "{total} {repaired}");
}

/// Fig. 17: without loss, gaps are less than 10 ms longer with redundancy.
#[test]
fn without_loss_redundancy_costs_no_long_gaps() {
    let [total, repaired] = ["total", "RS 1.05"].map(|scheme| summary("Fig. 17", scheme));
    let gap = |s: &ScreenTimes| millis(s.gaps.quantile(0.9995));
    assert!(gap(&repaired) < gap(&total) + 10.0, "{} {}", gap(&repaired), gap(&total));
    assert!(p99(&repaired.blocked) <= 0.4);
}

/// Fig. 16 and section 6.1: CUBIC that answers every loss takes several times as long as BBR, and redundancy
/// helps it, too.
#[test]
fn cubic_as_in_the_paper_is_slow_and_gains_too() {
    let [total, repaired] =
        ["total", "RS 1.05"].map(|scheme| summary("Fig. 16 without floor", scheme));
    let bbr = summary("Fig. 9", "total");
    assert!(
        total.complete.value > 2.0 * bbr.complete.value,
        "{} {}",
        total.complete.value,
        bbr.complete.value
    );
    assert!(p99(&repaired.blocked) < p99(&total.blocked) / 2.0);
}

/// Section 6.2: of the time until an update is there, redundancy takes more off with BBR than with CUBIC,
/// which the losses slow down all the same.
#[test]
fn redundancy_gains_more_with_bbr_than_with_cubic() {
    let gain = |figure| {
        let slow = |scheme| millis(summary(figure, scheme).responses.quantile(0.89));
        slow("total") - slow("RS 1.05")
    };
    let [bbr, cubic] = ["Fig. 18 without floor", "Fig. 25 without floor"].map(gain);
    println!("{bbr} {cubic}");
    assert!(bbr > 30.0 && bbr > 2.0 * cubic, "{bbr} {cubic}");
}

/// Fig. 16: the losses slow this CUBIC down. Its queue stays empty, and without losses the link is its limit
/// as it is BBR's.
#[test]
fn cubic_as_in_the_paper_is_bound_by_losses_alone() {
    let path = path("Fig. 16 without floor");
    let setup = Screen { workload: Mode::Streaming, path, scheme: SCHEMES[0] };
    let ends = setup.run(UPDATES, seed(1, 0)).unwrap().ends;
    let queued = ends.server.rtt.saturating_sub(ends.server.min_rtt);
    assert!(ends.down.overflow == 0 && queued < Duration::from_millis(1), "{queued:?}");
    let ideal = summary("Fig. 16 without floor", "ideal");
    let bbr = summary("Fig. 9", "total");
    assert!(
        ideal.complete.value < 1.5 * bbr.complete.value,
        "{} {}",
        ideal.complete.value,
        bbr.complete.value
    );
}

/// Section 4.2: a loss is known a round trip after the data was sent, and the repair of the data is there a
/// few milliseconds later: a sender that sends lost data again at once has done so when the client's
/// STOP_SENDING comes.
#[test]
fn stopping_comes_too_late_to_save_what_is_sent_again_at_once() {
    let of = |scheme| summary("Fig. 18", scheme);
    let [waits, at_once, stopped] = ["RS 1.05", "RS 1.05 at once", "RS 1.05 stopped"].map(of);
    assert!(
        stopped.recovered.value > 0.0 && at_once.again.value > 0.001,
        "{}",
        at_once.again.value
    );
    assert!(
        stopped.again.value > 0.9 * at_once.again.value,
        "{} {}",
        stopped.again.value,
        at_once.again.value
    );
    assert!(
        waits.again.value < 0.1 * at_once.again.value,
        "{} {}",
        waits.again.value,
        at_once.again.value
    );
}

/// Section 4.2: retransmission at once and STOP_SENDING change neither the delivered messages nor their
/// times.
#[test]
fn the_papers_retransmission_and_its_stops_deliver_as_much_as_early() {
    let [ours, papers] = ["RS 1.05", "RS 1.05 stopped"].map(|scheme| summary("Fig. 9", scheme));
    assert_eq!(ours.blocked.total(), papers.blocked.total());
    assert!(p99(&papers.blocked) <= 0.4, "{}", p99(&papers.blocked));
    let ratio = papers.wire.value / ours.wire.value;
    assert!((0.95..1.05).contains(&ratio), "{ratio}");
}

/// Figs. 9a to 26a: whole distributions, each with its picture of gaps.
#[test]
fn each_figure_has_two_charts() {
    let summaries = ["total", "RS 1.05"].map(|scheme| figures_of(UPDATES, "Fig. 9", scheme));
    let report = report::report(&summaries);
    let names: Vec<&str> = report.charts.iter().map(|chart| chart.name.as_str()).collect();
    assert_eq!(names, ["fig-9", "fig. 9 gaps"]);
    let shares = &report.charts[0].panels[0].series[0].points;
    assert_eq!((shares[0].1, shares.len()), (0.0, 200));
    assert_eq!(report.tables[2].rows.len(), 0, "partial is missing");
}

/// Section 4.1: a stream for each message costs half a per cent of bytes and nothing of the rate against a
/// stream for each update, as long as the receiver permits enough streams; a hundred allow 11 Mbit/s at 100
/// ms.
#[test]
fn a_stream_for_each_message_costs_little_if_enough_are_permitted() {
    let cut = |streams, permitted| {
        let cut = streams::Grain { mbit: 100, grain: (streams, ""), permitted };
        let outcome = cut.run(UPDATES, seed(1, 0)).unwrap();
        let last = outcome.delivered.iter().map(|message| message.delivered).max().unwrap();
        (last - outcome.asked_at[0], outcome.ends.down.sent_bytes as f64)
    };
    let (of_updates, bytes) = cut(1, 4096);
    let (of_messages, more_bytes) = cut(MESSAGES, 4096);
    assert!(more_bytes < 1.007 * bytes, "{more_bytes} {bytes}");
    assert!(of_messages < of_updates * 11 / 10, "{of_messages:?} {of_updates:?}");
    let (few, _) = cut(MESSAGES, 100);
    let link = (UPDATES * MESSAGES * BYTES * 8) as f64 / few.as_secs_f64() / 1e6;
    assert!((9.0..11.5).contains(&link), "{link} Mbit/s");
    assert!(cut(1, 100).0 < of_updates * 11 / 10);
}
