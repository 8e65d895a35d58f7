//! The report.

use sutura_research::stacks::{Block, Discipline, Preset};

use super::{FILES, FileLoss, FileTrace, OwnRecord, ServedRuns, mean_completion};
use crate::comparison::Values;
use crate::report::{Axis, Cell, Chart, Column, Report, Series, Table, chart_of, report_of};

pub(super) fn report(
    lossless: &[FileTrace],
    stacks: &[ServedRuns],
    others: &[ServedRuns],
    recorded: &[OwnRecord<'_>],
) -> Report {
    report_of(
        "Multiplexing and head-of-line blocking of ten stacks",
        &text(stacks),
        [looks(lossless), blocking(stacks), approaches(others)],
        [FileLoss::Random, FileLoss::Bursts]
            .into_iter()
            .flat_map(|channel| [chart(stacks, channel), traces(stacks, channel, recorded)])
            .collect::<Vec<_>>(),
    )
}

fn text(stacks: &[ServedRuns]) -> Vec<String> {
    let median = |channel: FileLoss, belongs: &dyn Fn(Discipline) -> bool| {
        let of_kind = |preset: &Preset| belongs(preset.discipline);
        let names: Vec<&str> =
            Preset::ALL.iter().filter(|p| of_kind(p)).map(|preset| preset.name).collect();
        let measured = stacks
            .iter()
            .filter(|s| s.setup.channel == channel && names.contains(&s.setup.name.as_str()));
        Values::of(measured.flat_map(|s| s.ratios().to_vec())).at(0.5)
    };
    let turns = |d| d == Discipline::RoundRobin(Block::Packets(1));
    let blocks = |d| matches!(d, Discipline::RoundRobin(Block::Packets(n)) if n > 1);
    let windows = |d| d == Discipline::RoundRobin(Block::Window);
    let sequential = |d| matches!(d, Discipline::Fifo | Discipline::Lifo);
    let sentence = |(channel, name): (FileLoss, &str)| {
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
        [(FileLoss::Random, "random loss"), (FileLoss::Bursts, "bursts of loss")].map(sentence).join(" "),
    ]
}

/// How a download looks without loss.
fn looks(lossless: &[FileTrace]) -> Table {
    let first_complete = |trace: &FileTrace| {
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

/// The look of a download, from the lengths of its runs alone.
fn look(trace: &FileTrace) -> String {
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

fn blocking(stacks: &[ServedRuns]) -> Table {
    let names: [Column<&ServedRuns>; 2] = [
        ("loss", &|s| s.setup.channel.name().into()),
        ("stack", &|s| s.setup.name.as_str().into()),
    ];
    Table::of(
        "Head-of-line blocking of the stacks (bytes are medians of the largest)",
        stacks,
        &[&names[..], &figures()].concat(),
    )
}

fn approaches(others: &[ServedRuns]) -> Table {
    let name: [Column<&ServedRuns>; 1] = [("order", &|s| s.setup.name.as_str().into())];
    let more: [Column<&ServedRuns>; 2] = [
        ("mixed packets", &|s| s.mean_cell(|sample| sample.mixed)),
        ("mean completion", &|s| s.mean_millis_cell(|sample| sample.completion)),
    ];
    Table::of(
        "Retransmission approaches with bursts of loss, with one stream or several in a packet",
        others,
        &[&name[..], &figures(), &more].concat(),
    )
}

/// The columns for every configuration.
fn figures<'a>() -> [Column<'a, &'a ServedRuns>; 9] {
    [
        ("downloads", &|s| s.runs.len().into()),
        ("ratio p50", &|s| s.ratios().cell(0.5)),
        ("p10", &|s| s.ratios().cell(0.1)),
        ("p90", &|s| s.ratios().cell(0.9)),
        ("QUIC bytes", &|s| Cell::Count(s.median(|sample| sample.max_quic) as u64)),
        ("TCP bytes", &|s| Cell::Count(s.median(|sample| sample.max_tcp) as u64)),
        ("waited QUIC", &|s| s.mean_share_cell(|sample| sample.waited_quic)),
        ("waited TCP", &|s| s.mean_share_cell(|sample| sample.waited_tcp)),
        ("in a row", &|s| s.mean_cell(|sample| sample.retransmitted_run)),
    ]
}

/// The ratios on a channel as cumulative distributions.
fn chart(stacks: &[ServedRuns], channel: FileLoss) -> Chart {
    let of_channel = stacks.iter().filter(|s| s.setup.channel == channel);
    let series = of_channel.map(|s| Series::line(s.setup.name.clone(), s.ratios().curve()));
    chart_of(
        format!("blocking {}", channel.name()),
        format!("Head-of-line blocking, {} loss", channel.name()),
        [
            Axis::linear("largest release of QUIC by that of TCP"),
            Axis::linear("share of downloads"),
        ],
        series,
    )
}

/// The ratio of each download on a channel (Fig. 3): a point, above the number of its stack, and behind these the
/// recorded connections.
fn traces(stacks: &[ServedRuns], channel: FileLoss, recorded: &[OwnRecord<'_>]) -> Chart {
    let of_channel = stacks.iter().filter(|s| s.setup.channel == channel);
    let simulated = of_channel.map(|s| (s.setup.name.as_str(), s.ratios().to_vec()));
    let own = recorded.iter().map(|own| (own.name, Vec::from_iter(own.figures.ratio)));
    let series = simulated.chain(own).zip(1..).map(|((name, ratios), number)| {
        let points = ratios.into_iter().map(|ratio| (f64::from(number), ratio)).collect();
        Series::points(format!("{number}: {name}"), points)
    });
    chart_of(
        format!("traces {}", channel.name()),
        format!("Head-of-line blocking, {} loss: a point is a download", channel.name()),
        [
            Axis::linear("number of the stack"),
            Axis::linear("largest release of QUIC by that of TCP"),
        ],
        series,
    )
}
