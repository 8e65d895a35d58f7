use std::collections::BTreeSet;
use std::time::Duration;

use sutura_link::Opportunities;

use super::*;
use crate::experiments::auto_zoo::apps::ZooApp;
use crate::link_trace::LinkTrace;

fn zoo(count: u64) -> Vec<ZooCase> {
    (0..count).map(|number| ZooCase::draw(1, number, &[]).unwrap()).collect()
}

#[test]
fn equal_seeds_draw_equal_cases_and_lines_tell_them_apart() {
    let cases = zoo(200);
    assert_eq!(cases, zoo(200));
    let lines: BTreeSet<String> = cases.iter().map(ToString::to_string).collect();
    assert_eq!(lines.len(), cases.len());
    assert_ne!(ZooCase::draw(2, 0, &[]).unwrap(), cases[0]);
    // The links of a line are links as everywhere else.
    for case in &cases {
        let line = case.to_string();
        let mut parts = line.split(" | ").skip(1);
        assert_eq!(parts.next().map(str::parse), Some(Ok(case.down.clone())), "{line}");
        let back = parts.next().and_then(|part| part.strip_prefix("back "));
        assert_eq!(back.map(str::parse), Some(Ok(case.up.clone())), "{line}");
    }
}

#[test]
fn every_kind_is_drawn() {
    let options = Options { seeds: Some(1), ..Options::default() };
    let cases = zoo(300);
    let arms: Vec<ArmRuns> = cases
        .iter()
        .map(|case| Runs {
            setup: ZooArm { case: Arc::new(case.clone()), policy: None },
            runs: vec![Outcome::default()],
        })
        .collect();
    let rows: Vec<Lineup<'_>> = arms.chunks(1).map(Lineup::of).collect();
    for (name, holds) in report::groups() {
        let count = rows.iter().filter(|row| holds(row)).count();
        assert!(count >= 5, "{name}: {count}");
    }
    let [slowest, fastest] =
        [f64::min, f64::max].map(|f| cases.iter().map(|case| case.size.rate).reduce(f).unwrap());
    assert!(slowest < 2e6 && fastest > 150e6, "{slowest} {fastest}");
    let only = Options { only: Some(7), ..options };
    assert_eq!(super::cases(&only).unwrap(), cases[7..8]);
}

#[test]
fn paths_follow_traces_in_turn() {
    // 12 Mbit/s, and 3 Mbit/s of which every fifth second has nothing.
    let steady: Vec<u32> = (1..=1000).collect();
    let fading: Vec<u32> = (1..=5000).filter(|at| at % 4 == 0 && at / 1000 != 2).collect();
    let trace = |file: &str, times| LinkTrace {
        file: file.into(),
        opportunities: Opportunities::new(times).unwrap(),
    };
    let traces = vec![trace("steady", steady), trace("fading", fading)];
    let options = Options { seeds: Some(1), paths: Some(4), traces, ..Options::default() };
    let drawn = cases(&options).unwrap();
    let rates: Vec<f64> = drawn.iter().map(|case| (case.size.rate / 1e6).round()).collect();
    assert_eq!(rates, [12.0, 2.0, 12.0, 2.0]);
    for (case, of) in drawn.iter().zip(options.traces.iter().cycle()) {
        let turns = case.down.trace.as_ref().map(|trace| trace.as_slice().len());
        assert_eq!((turns, case.down.rate), (Some(of.opportunities.as_slice().len()), None));
        let line = case.to_string();
        assert!(
            line.contains(&format!(", by {of} from turn ")) && !line.contains("trace="),
            "{line}"
        );
        if let ZooApp::Feed(feed) = case.app
            && feed.within.is_none()
        {
            // A message may have to wait until the link sends again.
            let waits = case.limit(&feed) >= Duration::from_secs(1);
            assert_eq!(waits, of.file.ends_with("fading"), "{line}");
        }
    }
    // Another case begins elsewhere.
    assert_ne!(drawn[1].down.trace, drawn[3].down.trace);
    let text = run(&Options { policies: vec!["auto".to_owned()], ..options }).unwrap();
    let text = text.to_markdown();
    assert!(
        text.contains("the rates of 2 traces") && text.contains("--trace steady --trace fading"),
        "{text}"
    );
}

/// The arms of a case with these outcomes: of none, and of policies of these names.
fn arms(case: &ZooCase, none: [Outcome; 2], policies: &[(&str, [Outcome; 2])]) -> Vec<ArmRuns> {
    let case = Arc::new(case.clone());
    let arm = |policy: Option<&str>, runs: [Outcome; 2]| Runs {
        setup: ZooArm { case: case.clone(), policy: policy.map(str::to_owned) },
        runs: runs.to_vec(),
    };
    let with = policies.iter().map(|(name, runs)| arm(Some(*name), *runs));
    std::iter::once(arm(None, none)).chain(with).collect()
}

/// A run with this score, that of the ideal, and these bytes.
fn outcome(score: f64, ideal: f64, wire: f64) -> Outcome {
    Outcome { score, ideal: Some(ideal), wire, ..Outcome::default() }
}

#[test]
fn a_ratio_without_late_messages_is_one_and_the_ideal_counts_only_where_it_gains() {
    let feed = |case: &&ZooCase| case.is_plain() && matches!(case.app, ZooApp::Feed(_));
    let case = zoo(80).iter().find(feed).cloned().unwrap();
    let none = [outcome(0.1, 0.1, 1.0), outcome(0.12, 0.12, 1.0)];
    let ideal = [outcome(0.0, 0.0, 1.1); 2];
    let twice = [outcome(0.001, 0.0, 1.1); 2];
    let idle = [outcome(0.1, 0.1, 1.0), outcome(0.12, 0.12, 1.0)];
    let policies = [("auto", ideal), ("tail", twice), ("block", idle)];
    let arms = arms(&case, none, &policies);
    let row = Lineup::of(&arms);
    let ratio = |arm| row.ratio(arm, Reference::Ideal);
    assert!((ratio(1) - 1.0).abs() < 1e-9 && (ratio(2) - 2.0).abs() < 1e-9, "{}", ratio(2));
    assert_eq!([1, 2, 3].map(|arm| row.has_ideal(arm)), [true, true, false]);
    // No other policy sends as few bytes as none and gains anything.
    assert_eq!([1, 3].map(|arm| row.best_fixed_within(arm)), [2, 0]);
    assert!(row.is_worse(0, 1) && !row.is_worse(1, 0) && !row.is_worse(3, 0));
}

#[test]
fn the_best_fixed_policy_is_known_afterwards_and_the_foreseen_one_from_other_seeds() {
    let feed = |case: &&ZooCase| matches!(case.app, ZooApp::Feed(_));
    let case = zoo(80).iter().find(feed).cloned().unwrap();
    let scores = |first, second| [outcome(first, 0.0, 1.0), outcome(second, 0.0, 1.0)];
    let policies =
        [("auto", scores(0.1, 0.1)), ("tail", scores(0.0, 0.3)), ("block", scores(0.3, 0.1))];
    let arms = arms(&case, scores(0.4, 0.4), &policies);
    let row = Lineup::of(&arms);
    assert_eq!(row.best_fixed_within(1), 2);
    // The second seed chooses `block`, which is poor with the first, and the first chooses `tail`.
    assert_eq!(row.foreseen(1), compare::BySeed(vec![0.3, 0.3]));
    let fixed = [Reference::Fixed, Reference::Foreseen];
    assert_eq!(fixed.map(|reference| row.is_level(1, reference)), [true, true]);
    assert_eq!(fixed.map(|reference| row.is_level(3, reference)), [false, true]);
}

#[test]
fn a_neighbour_is_slowed_only_if_that_is_certain_and_the_report_has_its_command() {
    let case = zoo(80).into_iter().find(|case| case.beside.is_some()).unwrap();
    let times = |p95| {
        let neighbour = Some(neighbour::NeighbourTimes { mean: 1.0, p95 });
        Outcome { neighbour, ..outcome(0.0, 0.0, 1.0) }
    };
    let none = [times(1.0), times(2.0)];
    let policies = [("auto", [times(1.1), times(2.2)]), ("tail", [times(1.5), times(2.0)])];
    let names = policies.map(|(name, _)| name.to_owned());
    let arms = arms(&case, none, &policies);
    let row = Lineup::of(&arms);
    assert_eq!([0, 1, 2].map(|arm| row.is_slowed(arm)), [false, true, false]);
    let options = Options { seed: 9, seeds: Some(2), ..Options::default() };
    let alone = report::Alone::of(&options);
    let text = report::of_all(&[row], &[], &names, &alone).to_markdown();
    assert!(text.contains("neighbours are slowed on 1 of 1"), "{text}");
    let command = format!("`sutura lab auto-zoo --seed 9 --seeds 2 --only {}`", case.number);
    assert!(text.contains(&command), "{text}");
    assert!(text.contains("\n| tail | 1 | 0 | 0 | 0 of 1 |"), "{text}");
}

/// Cases that take little time.
fn quick(cases: Vec<ZooCase>, plain: bool) -> Vec<ZooCase> {
    let quick = |case: &ZooCase| match case.app {
        ZooApp::Feed(feed) => feed.size < 3000,
        ZooApp::Files { bytes, count, .. } => bytes * u64::from(count) < 500_000,
    };
    cases.into_iter().filter(|case| case.is_plain() == plain && quick(case)).take(6).collect()
}

#[test]
fn the_ideal_is_never_worse_than_a_policy() {
    let options = Options { seeds: Some(1), ..Options::default() };
    let names = ["auto", "incremental:burst=1"].map(str::to_owned);
    let arms = measure(&options, &quick(zoo(80), true), &names, 0..options.seeds(SEEDS)).unwrap();
    let mut better = 0;
    for arm in &arms {
        for run in &arm.runs {
            let ideal = run.ideal.unwrap();
            assert!((0.0..=run.score).contains(&ideal), "{}: {run:?}", arm.setup.case);
            better += usize::from(ideal < run.score);
            assert!(run.wire > 1.0 && run.neighbour.is_none(), "{}: {run:?}", arm.setup.case);
        }
    }
    assert!(better > 0, "{better} of {}", arms.len());
}

#[test]
fn a_case_is_the_same_alone_and_among_others() {
    let options = Options { seeds: Some(2), ..Options::default() };
    let names = ["tail:burst=1".to_owned()];
    let cases = quick(zoo(80), false);
    let together = measure(&options, &cases, &names, 0..options.seeds(SEEDS)).unwrap();
    let alone = measure(&options, &cases[2..3], &names, 0..options.seeds(SEEDS)).unwrap();
    let runs = |arms: &[ArmRuns]| -> Vec<Vec<Outcome>> {
        arms.iter().map(|arm| arm.runs.clone()).collect()
    };
    assert_eq!(runs(&alone), runs(&together[4..6]));
    assert!(together.iter().any(|arm| arm.runs[0].neighbour.is_some_and(|times| times.p95 > 0.0)));
}

#[test]
fn the_report_has_a_row_for_each_policy_and_a_line_for_each_harmed_case() {
    let options = Options { seeds: Some(2), ..Options::default() };
    let names = ["auto", "incremental:burst=3"].map(str::to_owned);
    let cases = [quick(zoo(80), true), quick(zoo(80), false)].concat();
    let mut arms = measure(&options, &cases, &names, 0..options.seeds(SEEDS)).unwrap();
    // As if chance had harmed the first case.
    arms[1].runs.iter_mut().for_each(|run| run.score += 1.0);
    let rows: Vec<Lineup<'_>> = arms.chunks(3).map(Lineup::of).collect();
    let options = Options { policies: names.to_vec(), reduce: 12, ..options };
    let alone = report::Alone::of(&options);
    let further = further(&options, &rows, &names, 2).unwrap();
    assert!(further.iter().all(|arm| arm.runs.len() == 2), "25 of 12");
    let further = lineups(&further, &names[..1]);
    assert!(rows[0].is_harmed(1) && !further[0].is_harmed(1));
    assert_eq!(
        further.len(),
        rows.iter().filter(|row| row.is_harmed(1) || row.is_slowed(1)).count()
    );
    for again in &further {
        let first = rows.iter().find(|row| row.case.number == again.case.number).unwrap();
        assert_ne!(first.score(0), again.score(0), "other seeds");
    }
    let report = report::of_all(&rows, &further, &names, &alone);
    let text = report.to_markdown();
    for name in ["none", "auto", "incremental:burst=3"] {
        assert!(text.contains(&format!("\n| {name} | ")), "{name}: {text}");
    }
    let harmed = rows.iter().filter(|row| row.is_harmed(1));
    for row in harmed {
        let line = row.case.to_string().replace('|', "\\|");
        assert!(text.contains(&format!("`{line}`")), "{text}");
    }
    for row in rows.iter().filter(|row| row.is_harmed(1) || row.is_slowed(1)) {
        let command = format!(
            "`sutura lab auto-zoo --seed 1 --seeds 2 --only {} --policy auto --policy incremental:burst=3`",
            row.case.number
        );
        assert!(text.contains(&command), "{command}: {text}");
    }
    let data = report.data.unwrap();
    assert_eq!(data.rows.len(), 3 * cases.len());
    assert!(data.rows.iter().all(|row| row.len() == data.columns.len()));
    let one = report::of_one(&rows[..1], &alone).to_markdown();
    assert!(one.contains(&rows[0].case.to_string()), "{one}");
}
