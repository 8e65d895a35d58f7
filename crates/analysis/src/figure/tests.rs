use super::*;
use crate::build::{Build, frame, last};
use crate::limits::{MAX_DRAWN_BARS, MAX_DRAWN_FRAMES, MAX_DRAWN_LANES};
use crate::{Direction, Trace, head_of_line_blocking, stream_table};

/// The opening tags and texts balance, and there is nothing that is not XML.
fn check(svg: &str) {
    assert!(svg.starts_with("<svg xmlns") && svg.ends_with("</svg>\n"), "{svg}");
    let mut open: Vec<&str> = Vec::new();
    let mut rest = svg;
    while let Some((_, tag)) = rest.split_once('<') {
        let (tag, after) = tag.split_once('>').unwrap();
        rest = after;
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        let name = tag.split([' ', '/']).find(|part| !part.is_empty()).unwrap();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
}

fn figures(trace: &Trace, title: &str) -> [String; 3] {
    let streams = stream_table(trace, Direction::Received);
    let graph = crate::multiplexing(trace, Direction::Received);
    let blocked = head_of_line_blocking(trace, &[]);
    [
        multiplexing(&graph, &streams, title),
        waterfall(&streams, title),
        blocking(&blocked, trace.duration, title),
    ]
}

#[test]
fn a_row_of_packets_with_marks_below() {
    // Runs: 0 0 | 4 | 0. The last fills the gap that the second left: black, then green.
    let trace = Build::default()
        .sent(0, 0, &[last(0, 0, 1)])
        .received(10, 0, &[frame(0, 0, 100)])
        .received(11, 2, &[frame(0, 200, 100)])
        .received(12, 3, &[frame(4, 0, 100)])
        .received(20, 4, &[frame(0, 100, 50)])
        .recovered(21, &[frame(0, 150, 50)])
        .trace();
    let [graph, bars, lines] = figures(&trace, "a <title> & \u{1b}more");
    for figure in [&graph, &bars, &lines] {
        check(figure);
        assert!(figure.contains("a &lt;title&gt; &amp; \u{fffd}more"));
    }
    assert_eq!(graph.matches("<title>stream 0, 2 frames").count(), 2);
    assert_eq!(graph.matches("<title>stream 4, 1 frames").count(), 1);
    // Once in the row of marks, once in the legend.
    for class in ["#8e44ad", "black", "#1e9e4a"] {
        assert_eq!(graph.matches(&format!("fill=\"{class}\"")).count(), 2, "{class}");
    }
    assert_eq!(graph.matches("fill=\"#d62728\"").count(), 1);
    assert!(bars.contains("waits for 10 ms") && bars.contains("blocked for 10 ms"));
    assert!(lines.contains("ratio 0.600"), "{lines}");
}

#[test]
fn nothing_can_be_drawn() {
    figures(&Trace::default(), "").iter().for_each(|figure| check(figure));
}

#[test]
fn floods_are_cut_and_say_so() {
    let mut build = Build::default();
    for n in 0..MAX_DRAWN_FRAMES as u64 + 10 {
        let stream = (n % (MAX_DRAWN_BARS as u64 + 5)) * 4;
        // Odd rounds leave gaps, so that the history is long as well.
        build = build.received(n, n, &[frame(stream, (n / 505) * 20, 10)]);
    }
    let [graph, bars, lines] = figures(&build.trace(), "flood");
    check(&graph);
    check(&bars);
    check(&lines);
    assert!(graph.contains("the first of them shown"));
    let more = MAX_DRAWN_BARS + 5 - MAX_DRAWN_LANES;
    assert!(graph.contains(&format!("and {more} more streams")));
    assert!(bars.contains("505 streams, the first of them shown"));
    assert!(graph.matches("<title>").count() <= MAX_DRAWN_FRAMES);
    assert!(bars.matches("<title>").count() <= 2 * MAX_DRAWN_BARS);
}

#[test]
fn scales_have_round_steps() {
    for (length, expected) in [(100.0, 10.0), (101.0, 20.0), (4.0, 0.5), (70_000.0, 10_000.0)] {
        assert!((step(length, 10.0) - expected).abs() < 1e-6, "{length}");
    }
}
