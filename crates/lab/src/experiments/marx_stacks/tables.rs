//! The report.

use sutura_research::stacks::{Block, Discipline, Preset};

use super::{Channel, FILES, Setup, Summary, Trace, mean_completion};
use crate::{Cell, Report, Series, Table, metrics};

/// A configuration with what came of it.
type Measured<'a> = (&'a Setup, &'a Summary);

pub(super) fn report(lossless: &[Trace], stacks: &[Measured], others: &[Measured]) -> Report {
    Report {
        name: "marx-stacks".to_owned(),
        title: "Multiplexing and head-of-line blocking of ten stacks".to_owned(),
        text: text(stacks),
        tables: vec![looks(lossless), blocking(stacks), approaches(others)],
        series: stacks.iter().map(series).collect(),
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
        let mut ratios: Vec<f64> = measured.flat_map(|(_, s)| s.ratios.iter().copied()).collect();
        ratios.sort_by(f64::total_cmp);
        metrics::quantile(&ratios, 0.5)
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

fn columns(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// How a download looks without loss.
fn looks(lossless: &[Trace]) -> Table {
    let row = |(preset, trace): (&Preset, &Trace)| -> Vec<Cell> {
        let longest = trace.runs().iter().map(|(_, length)| *length).max().unwrap_or(0);
        let fastest = trace.completion.iter().enumerate().min_by_key(|(_, time)| **time);
        vec![
            preset.name.into(),
            Cell::Text(order(preset.discipline)),
            Cell::Text(approach(preset)),
            Cell::Text(look(trace)),
            Cell::Count(trace.run_lengths()[1] as u64),
            Cell::Count(longest as u64),
            Cell::Count(fastest.map_or(0, |(index, _)| index as u64 + 1)),
            Cell::Millis(mean_completion(trace)),
            trace.completion.iter().max().copied().unwrap_or_default().into(),
        ]
    };
    Table {
        caption: "Multiplexing without loss (runs in frames; files counted from 1)".to_owned(),
        columns: columns(&[
            "stack",
            "order",
            "RA",
            "looks like",
            "median run",
            "longest",
            "first complete",
            "mean completion",
            "all complete",
        ]),
        rows: Preset::ALL.iter().zip(lossless).map(row).collect(),
    }
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
    let runs = trace.runs();
    let [short, _, long] = trace.run_lengths();
    if runs.len() <= FILES.count {
        let first = runs.first().map_or(0, |(stream, _)| *stream);
        let last = runs.last().map_or(0, |(stream, _)| *stream);
        let which = if first < last { "first" } else { "last" };
        format!("one after the other, {which} one first")
    } else if short == long {
        format!("turns of {short}")
    } else {
        format!("turns of {short} to {long}")
    }
}

fn blocking(stacks: &[Measured]) -> Table {
    let row = |(setup, summary): &Measured| -> Vec<Cell> {
        let mut row = vec![setup.channel.name().into(), setup.name.as_str().into()];
        row.extend(figures(summary));
        row
    };
    let mut names = vec!["loss", "stack"];
    names.extend(FIGURES);
    Table {
        caption: "Head-of-line blocking of the stacks (bytes are medians of the largest)"
            .to_owned(),
        columns: columns(&names),
        rows: stacks.iter().map(row).collect(),
    }
}

fn approaches(others: &[Measured]) -> Table {
    let row = |(setup, summary): &Measured| -> Vec<Cell> {
        let mut row = vec![setup.name.as_str().into()];
        row.extend(figures(summary));
        row.extend([Cell::Number(summary.mixed), Cell::Millis(summary.completion)]);
        row
    };
    let mut names = vec!["order"];
    names.extend(FIGURES);
    names.extend(["mixed packets", "mean completion"]);
    Table {
        caption: "Retransmission approaches with bursts of loss, with one stream or several in a \
                  packet"
            .to_owned(),
        columns: columns(&names),
        rows: others.iter().map(row).collect(),
    }
}

const FIGURES: [&str; 9] = [
    "downloads",
    "ratio p50",
    "p10",
    "p90",
    "QUIC bytes",
    "TCP bytes",
    "waited QUIC",
    "waited TCP",
    "in a row",
];

fn figures(summary: &Summary) -> [Cell; 9] {
    let ratio = |q| Cell::Number(metrics::quantile(&summary.ratios, q));
    [
        Cell::Count(summary.lossy as u64),
        ratio(0.5),
        ratio(0.1),
        ratio(0.9),
        Cell::Count(summary.max_quic as u64),
        Cell::Count(summary.max_tcp as u64),
        Cell::Share(summary.waited_quic),
        Cell::Share(summary.waited_tcp),
        Cell::Number(summary.retransmitted_run),
    ]
}

/// The ratios of a configuration as a cumulative distribution.
fn series((setup, summary): &Measured) -> Series {
    let count = summary.ratios.len() as f64;
    Series {
        label: setup.name.clone(),
        x_label: format!("blocking, QUIC by TCP, {} loss", setup.channel.name()),
        y_label: "share of downloads".to_owned(),
        x: summary.ratios.clone(),
        y: (1..=summary.ratios.len()).map(|n| n as f64 / count).collect(),
    }
}
