//! The report.

use sutura_analysis::figure::{Axis, Chart, Panel, Series};
use sutura_analysis::report::Report;
use sutura_analysis::statistics::{quantile, sorted};
use sutura_analysis::table::{Cell, Column, Table};
use sutura_research::stacks::{Block, Discipline, Preset};

use super::{Channel, FILES, Setup, Summary, Trace, mean_completion};

/// A configuration with what came of it.
type Measured<'a> = (&'a Setup, &'a Summary);

pub(super) fn report(lossless: &[Trace], stacks: &[Measured], others: &[Measured]) -> Report {
    Report {
        title: "Multiplexing and head-of-line blocking of ten stacks".to_owned(),
        text: text(stacks),
        tables: vec![looks(lossless), blocking(stacks), approaches(others)],
        charts: [Channel::Random, Channel::Bursts]
            .into_iter()
            .flat_map(|channel| [chart(stacks, channel), traces(stacks, channel)])
            .collect(),
        ..Report::default()
    }
}

fn text(stacks: &[Measured]) -> Vec<String> {
    let median = |channel: Channel, belongs: &dyn Fn(Discipline) -> bool| {
        let of_kind = |preset: &Preset| belongs(preset.discipline);
        let names: Vec<&str> =
            Preset::ALL.iter().filter(|p| of_kind(p)).map(|preset| preset.name).collect();
        let measured = stacks
            .iter()
            .filter(|(setup, _)| setup.channel == channel && names.contains(&setup.name.as_str()));
        quantile(&sorted(measured.flat_map(|(_, s)| s.ratios())), 0.5)
    };
    let turns = |d| d == Discipline::RoundRobin(Block::Packets(1));
    let blocks = |d| matches!(d, Discipline::RoundRobin(Block::Packets(n)) if n > 1);
    let windows = |d| d == Discipline::RoundRobin(Block::Window);
    let sequential = |d| matches!(d, Discipline::Fifo | Discipline::Lifo);
    let sentence = |(channel, name): (Channel, &str)| {
        format!(
            "With {name} the median ratio is {:.2} with turns of a packet, {:.2} with turns of \
             4 and 14, {:.2} with turns of a window, and {:.2} with one stream after the other.",
            median(channel, &turns),
            median(channel, &blocks),
            median(channel, &windows),
            median(channel, &sequential)
        )
    };
    vec![
        format!(
            "Marx 2020, sections 2.3 and 3.3: {} files of {} bytes are requested at once on one \
             connection, from servers that multiplex as ten stacks did by default in January 2020. \
             35 Mbit/s to the client, 2 Mbit/s back, 20 ms one way; lost are no packets, one in \
             five hundred each on its own (`random`), or as many in bursts of eight (`bursts`).",
            FILES.count, FILES.bytes
        ),
        "The paper saw turns of one packet from most, of 4 from msquic and of 14 from google; turns \
         of a congestion window from lsquic, which get longer; and one file after the other, the \
         last one first, from ats and picoquic (the first one first since: picoquic-alt). Its large \
         first run of mvfst came of a server that reserves flow-control credit when it fills its \
         buffers; here credit is used when a packet is built, so that mvfst takes turns from the \
         start, and the smaller stream windows of mvfst-alt stop a stream now and then. The paper does not name the retransmission approach (RA) of those with a question mark."
            .to_owned(),
        "Head-of-line blocking is measured by the most bytes that are handed to the application at \
         once, and `ratio` is what QUIC did by what TCP would have done, with all frames in one \
         sequence; downloads without loss are left out. The paper found mostly 0.1 to 0.3, and more \
         for sequential picoquic. `waited` is the share of bytes that were there before they could \
         be handed over. `in a row` is how many frames that were sent again came without others in \
         between."
            .to_owned(),
        [(Channel::Random, "random loss"), (Channel::Bursts, "bursts of loss")].map(sentence).join(" "),
    ]
}

/// How a download looks without loss.
fn looks(lossless: &[Trace]) -> Table {
    let first_complete = |trace: &Trace| {
        let fastest = trace.completion.iter().enumerate().min_by_key(|(_, time)| **time);
        Cell::from(fastest.map_or(0, |(index, _)| index + 1))
    };
    Table::of(
        "Multiplexing without loss (runs in frames; files counted from 1)",
        Preset::ALL.iter().zip(lossless),
        &[
            ("stack", &|(preset, _)| preset.name.into()),
            ("order", &|(preset, _)| order(preset.discipline).into()),
            ("RA", &|(preset, _)| approach(preset).into()),
            ("looks like", &|(_, trace)| look(trace).into()),
            ("median run", &|(_, trace)| trace.run_lengths()[1].into()),
            ("longest", &|(_, trace)| trace.received.longest_run().into()),
            ("first complete", &|(_, trace)| first_complete(trace)),
            ("mean completion", &|(_, trace)| Cell::Millis(mean_completion(trace))),
            ("all complete", &|(_, trace)| trace.completion.iter().max().copied().into()),
        ],
    )
}

fn order(discipline: Discipline) -> String {
    match discipline {
        Discipline::Fifo => "FIFO".to_owned(),
        Discipline::Lifo => "LIFO".to_owned(),
        Discipline::RoundRobin(Block::Packets(packets)) => format!("round robin, {packets}"),
        Discipline::RoundRobin(Block::Bytes(bytes)) => format!("round robin, {bytes} bytes"),
        Discipline::RoundRobin(Block::Window) => "round robin, cwnd".to_owned(),
    }
}

fn approach(preset: &Preset) -> String {
    let doubt = if preset.retransmission_named { "" } else { "?" };
    format!("#{}{doubt}", preset.retransmission)
}

/// What a download looks like, from the lengths of its runs alone.
fn look(trace: &Trace) -> String {
    let [short, _, long] = trace.run_lengths();
    let mut streams = trace.received.runs().map(|(stream, _)| stream);
    if trace.received.switches() < FILES.count {
        let first = streams.next().unwrap_or(0);
        let last = streams.last().unwrap_or(first);
        let which = if first < last { "first" } else { "last" };
        format!("one after the other, {which} one first")
    } else if short == long {
        format!("turns of {short}")
    } else {
        format!("turns of {short} to {long}")
    }
}

fn blocking(stacks: &[Measured]) -> Table {
    let names: [Column<Measured>; 2] = [
        ("loss", &|(setup, _)| setup.channel.name().into()),
        ("stack", &|(setup, _)| setup.name.as_str().into()),
    ];
    Table::of(
        "Head-of-line blocking of the stacks (bytes are medians of the largest)",
        stacks.iter().copied(),
        &[&names[..], &figures()].concat(),
    )
}

fn approaches(others: &[Measured]) -> Table {
    let name: [Column<Measured>; 1] = [("order", &|(setup, _)| setup.name.as_str().into())];
    let more: [Column<Measured>; 2] = [
        ("mixed packets", &|(_, summary)| Cell::Number(summary.mean(|s| s.mixed))),
        ("mean completion", &|(_, summary)| Cell::Millis(summary.mean(|s| s.completion))),
    ];
    Table::of(
        "Retransmission approaches with bursts of loss, with one stream or several in a packet",
        others.iter().copied(),
        &[&name[..], &figures(), &more].concat(),
    )
}

/// What is told of every configuration.
fn figures<'a>() -> [Column<'a, Measured<'a>>; 9] {
    [
        ("downloads", &|(_, summary)| summary.0.len().into()),
        ("ratio p50", &|(_, summary)| Cell::Number(quantile(&summary.ratios(), 0.5))),
        ("p10", &|(_, summary)| Cell::Number(quantile(&summary.ratios(), 0.1))),
        ("p90", &|(_, summary)| Cell::Number(quantile(&summary.ratios(), 0.9))),
        ("QUIC bytes", &|(_, summary)| Cell::Count(summary.median(|s| s.max_quic) as u64)),
        ("TCP bytes", &|(_, summary)| Cell::Count(summary.median(|s| s.max_tcp) as u64)),
        ("waited QUIC", &|(_, summary)| Cell::Share(summary.mean(|s| s.waited_quic))),
        ("waited TCP", &|(_, summary)| Cell::Share(summary.mean(|s| s.waited_tcp))),
        ("in a row", &|(_, summary)| Cell::Number(summary.mean(|s| s.retransmitted_run))),
    ]
}

/// The ratios on a channel as cumulative distributions.
fn chart(stacks: &[Measured], channel: Channel) -> Chart {
    let of_channel = stacks.iter().filter(|(setup, _)| setup.channel == channel);
    let series = of_channel.map(|(setup, summary)| {
        let ratios = summary.ratios();
        let shares = (1..=ratios.len()).map(|n| n as f64 / ratios.len() as f64);
        Series::line(setup.name.clone(), ratios.iter().copied().zip(shares).collect())
    });
    Chart {
        name: format!("blocking {}", channel.name()),
        title: format!("Head-of-line blocking, {} loss", channel.name()),
        x: Axis::linear("largest release of QUIC by that of TCP"),
        y: Axis::linear("share of downloads"),
        baseline: None,
        panels: vec![Panel::of(series)],
    }
}

/// The ratio of each download on a channel (Fig. 3): a point, above the number of its stack.
fn traces(stacks: &[Measured], channel: Channel) -> Chart {
    let of_channel = stacks.iter().filter(|(setup, _)| setup.channel == channel);
    let series = of_channel.zip(1..).map(|((setup, summary), number)| {
        let points = summary.ratios().into_iter().map(|ratio| (f64::from(number), ratio));
        Series::points(format!("{number}: {}", setup.name), points.collect())
    });
    Chart {
        name: format!("traces {}", channel.name()),
        title: format!("Head-of-line blocking, {} loss: a point is a download", channel.name()),
        x: Axis::linear("number of the stack"),
        y: Axis::linear("largest release of QUIC by that of TCP"),
        baseline: None,
        panels: vec![Panel::of(series)],
    }
}
