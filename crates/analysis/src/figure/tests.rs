use super::*;
use crate::build::{Build, frame, last};
use crate::limits::{MAX_DRAWN_BARS, MAX_DRAWN_FRAMES, MAX_DRAWN_LANES};
use crate::{Direction, Trace, head_of_line_blocking, stream_table};

/// Checks that opening and closing tags balance and that the document is well-formed XML.
fn check(svg: &str) {
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"), "{svg}");
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
        blocking(&blocked, trace.duration, title).to_svg().unwrap(),
    ]
}

#[test]
fn a_row_of_packets_with_marks_below() {
    // Runs: 0 0 | 4 | 0. The last fills the gap that the second left: marked black, then green.
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
    for class in ["#aa4499", "#000", "#117733"] {
        assert_eq!(boxes(&graph, class), 2, "{class}");
    }
    assert_eq!(boxes(&graph, "#cc6677"), 1);
    assert!(bars.contains("waits for 10 ms") && bars.contains("blocked for 10 ms"));
    assert!(lines.contains("ratio 0.600"), "{lines}");
}

/// How many boxes of a colour have no tooltip.
fn boxes(svg: &str, fill: &str) -> usize {
    let (_, path) = svg.split_once(&format!("<path fill=\"{fill}\" d=\"")).unwrap();
    path.split('"').next().unwrap().matches('M').count()
}

#[test]
fn long_graphs_go_on_in_the_next_line() {
    // 1205 frames of two streams that alternate, except for the last ten.
    let build = (0..1205).fold(Build::default(), |build, n| {
        let stream = if n < 1195 { n % 2 * 4 } else { 0 };
        build.received(n, n, &[frame(stream, n, 1)])
    });
    let [graph, ..] = figures(&build.trace(), "long");
    check(&graph);
    assert_eq!(graph.matches("all streams").count(), 2);
    assert!(!graph.contains("<title>"), "a frame is too narrow to be pointed at");
    // Each frame is in the common row and in the row of its stream; the line break splits the run of ten.
    assert_eq!(boxes(&graph, &stream_colour(0)), 2 * (598 + 1));
    assert_eq!(boxes(&graph, &stream_colour(1)), 2 * 597);
}

#[test]
fn streams_beyond_the_palette_are_paler() {
    let colours: std::collections::BTreeSet<_> = (0..12).map(stream_colour).collect();
    assert_eq!((colours.len(), colours.contains("#000000")), (12, false));
    assert_eq!(stream_colour(12), stream_colour(0));
}

fn chart(series: usize, label: &str) -> Chart {
    let line = |n: usize| Series::line(format!("{label} {n}"), vec![(0.0, 0.0), (1.0, n as f64)]);
    let panels = vec![Panel::of((0..series).map(line))];
    Chart { title: "A < B".to_owned(), x: Axis::linear("time in ms"), panels, ..Chart::default() }
}

#[test]
fn a_curve_stands_in_the_chart_and_in_the_legend() {
    let svg = chart(2, "curve").to_svg().unwrap();
    check(&svg);
    for text in ["A &lt; B", "curve 0", "curve 1", "time in ms"] {
        assert!(svg.contains(text), "{text}");
    }
    let lines = |colour: &str| svg.matches(&format!("stroke=\"{colour}\"")).count();
    assert_eq!((lines("#0072B2"), lines("#D55E00"), lines("#009E73")), (2, 2, 0));
}

#[test]
fn curves_over_the_same_points_all_show() {
    let mut chart = chart(3, "curve");
    let series = &mut chart.panels[0].series;
    series[0].points = series[2].points.clone();
    let svg = chart.to_svg().unwrap();
    assert_eq!(svg.matches("stroke=\"#0072B2\" stroke-width=\"5\"").count(), 2);
    assert_eq!(svg.matches("stroke=\"#009E73\" stroke-width=\"2\"").count(), 2);
}

#[test]
fn no_two_curves_look_the_same_and_no_legend_is_cut() {
    let label = "2 % loss, warm, newreno, everything protected: all urgent resources";
    let svg = chart(20, label).to_svg().unwrap();
    check(&svg);
    let number = |tag: &str, name: &str| -> f64 {
        let (_, value) = tag.split_once(&format!(" {name}=\"")).unwrap();
        value.split('"').next().unwrap().parse().unwrap()
    };
    let (width, height) = (number(&svg, "width"), number(&svg, "height"));
    for text in svg.split("<text").skip(1) {
        let (x, y) = (number(text, "x"), number(text, "y"));
        let words = text.split_once('>').unwrap().1.split_once('<').unwrap().0.trim();
        // A letter of 13 pixels is 7 wide on average.
        let end = if words.starts_with(label) { x + 7.0 * words.len() as f64 } else { x };
        assert!(end <= width && y <= height, "{words} ends at {end} of {width}, {y} of {height}");
    }
    // Colours repeat, but with other dashes: the first curve is one line, the eighth is many.
    let lines = svg.matches("stroke=\"#0072B2\"").count();
    assert!(lines > 6, "{lines}");
}

#[test]
fn points_without_a_place_on_a_log_axis_are_left_out() {
    let points = |n: u32| (0..n).map(|i| (f64::from(i), 2.0)).collect();
    let panel = |title: &str| Panel {
        title: title.to_owned(),
        series: vec![Series::points("without", points(5)), Series::points("with", points(1))],
    };
    let chart = Chart {
        x: Axis::log("bytes"),
        y: Axis::log("speed-up"),
        baseline: Some(1.0),
        panels: (0..6).map(|n| panel(&format!("panel {n}"))).collect(),
        ..Chart::default()
    };
    let svg = chart.to_svg().unwrap();
    check(&svg);
    // One of the five points is at zero; two circles are in the legend.
    assert_eq!(svg.matches("<circle").count(), 6 * 4 + 2);
    assert!((0..6).all(|n| svg.contains(&format!("panel {n}"))));
}

#[test]
fn nothing_can_be_drawn() {
    check(&Chart::default().to_svg().unwrap());
    let nowhere = Series::line("none", vec![(f64::NAN, 1.0), (1.0, f64::INFINITY)]);
    let chart = Chart { panels: vec![Panel::of([nowhere])], ..Chart::default() };
    check(&chart.to_svg().unwrap());
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
