//! Figures 4 and 5 of Holzinger et al. (2025, sections V-B3 and V-B4) as the paper made them: responses of
//! HTTP/3, which the requests ask to protect by `exp_b` and `exp_d`, and for the steady stream by `i`. Beside
//! them are plain streams, and variants with our congestion control and reaction to loss in place of the
//! paper's.

use super::paper_path::Channel;
use super::{Way, holzinger_bulk, holzinger_stream};
use crate::report::{Cell, Report, Table, report_of};
use crate::{Error, Options};

/// From ours to the paper's, a step at a time.
const WAYS: [Way; 4] =
    [Way::STREAMS, Way::HTTP, Way { congestion: Way::PAPER.congestion, ..Way::HTTP }, Way::PAPER];
/// Burst loss tolerances, and repair delay tolerances in milliseconds.
const TOLERANCES: [(u32, u64); 5] = [(0, 0), (1, 0), (3, 0), (3, 25), (5, 0)];
/// The reading of the loss model that fits figure 4.
const BULK: Channel = Channel::Fractions;
/// Both readings of the paper's numbers, since figure 5 fits the other one.
const STREAM: [Channel; 2] = [Channel::Fractions, Channel::Percentages];

experiment! {
    "holzinger-http": "Completion times and delays over HTTP/3 with `exp_b` and `exp_d`, as the paper has it" (Seeds),
    one in 20 takes 24 s
}

fn run(options: &Options) -> Result<Report, Error> {
    let count = |usual: u64, batch: u64| {
        options.seeds.map_or(options.reduced(usual), |seeds| seeds.max(1) * batch)
    };
    let bulk = |bytes| {
        let bare = holzinger_bulk::Objects::bare(BULK, bytes);
        TOLERANCES.map(|(burst, ms)| bare.protected(burst, ms))
    };
    let bulk = holzinger_bulk::SIZES.map(bulk).concat();
    let stream = |channel| {
        TOLERANCES.map(|(burst, ms)| holzinger_stream::Steady::incremental(channel, burst, ms))
    };
    let streams = STREAM.map(stream).concat();
    let (mut transfers, mut messages) = (Vec::new(), Vec::new());
    for way in WAYS {
        let of_way = count(holzinger_bulk::TRANSFERS, holzinger_bulk::BATCH);
        let of_way = holzinger_bulk::measure(way, &bulk, of_way, options)?;
        transfers.extend(of_way.into_iter().map(|summary| (way, summary)));
        let of_way = count(holzinger_stream::MESSAGES, holzinger_stream::BATCH);
        let of_way = holzinger_stream::measure(way, &streams, of_way, options)?;
        messages.extend(of_way.into_iter().map(|summary| (way, summary)));
    }
    transfers.sort_by_key(|(_, s)| (s.setup.bytes, s.setup.burst, s.setup.delay));
    messages.sort_by_key(|(_, s)| (s.setup.channel != STREAM[0], s.setup.burst, s.setup.delay));
    Ok(report_of(
        "Repair symbols for responses of HTTP/3",
        &TEXT,
        [transfer_table(&transfers), stream_table(&messages)],
        [],
    ))
}

const TEXT: [&str; 3] = [
    "Holzinger et al. 2025, V-B3 and V-B4, on the path and with the readings of its numbers of \
     `holzinger-bulk` and `holzinger-stream`: 10 Mbit/s, 50 ms one way, loss in both directions.",
    "Over `HTTP/3`, a client asks for each response with `u=3, exp_b=BLT, exp_d=RDT`, and for the \
     steady stream with `i`, too; the server protects it as it is asked to. Over `streams`, the \
     server protects streams of QUIC by policies of the same parameters. `bbr` knows the floor \
     of the path's loss, `bbr:floor=off` does not; `resend-at-once` sends lost data again at \
     once, as the paper does, and `hold-for-repair` while no repair symbols are on their way. \
     The last row of each group is the paper's.",
    "A transfer waited if it took half a round trip or more longer than the median without loss, \
     waited twice if one and a half or more. A byte is late if it takes more than the path and \
     10 ms from when its message was made. Bytes on the wire are UDP payload from the server.",
];

fn transfer_table(summaries: &[(Way, holzinger_bulk::ObjectTimes)]) -> Table {
    let quantile = |s: &holzinger_bulk::ObjectTimes, q| s.times.cell(q);
    Table::of(
        "Transfers",
        summaries,
        &[
            ("bytes", &|(_, s)| s.setup.bytes.into()),
            ("BLT", &|(_, s)| s.setup.burst.into()),
            ("RDT", &|(_, s)| s.setup.delay.into()),
            ("over", &|(way, _)| way.carrier().into()),
            ("congestion", &|(way, _)| way.congestion.into()),
            ("reaction", &|(way, _)| way.reaction.into()),
            ("transfers", &|(_, s)| s.times.total().into()),
            ("waited", &|(_, s)| s.waited_cell()),
            ("waited twice", &|(_, s)| s.waited_twice_cell()),
            ("resent", &|(_, s)| s.share_cell(|t| t.retransmitted_down > 0)),
            ("TTC p50", &|(_, s)| quantile(s, 0.5)),
            ("p90", &|(_, s)| quantile(s, 0.9)),
            ("p95", &|(_, s)| quantile(s, 0.95)),
            ("p99", &|(_, s)| quantile(s, 0.99)),
            ("wire/byte", &|(_, s)| Cell::Number(s.wire_per_byte())),
            ("repairs", &|(_, s)| Cell::Number(s.mean(|t| t.repair_symbols))),
            ("recovered", &|(_, s)| Cell::Number(s.mean(|t| t.recovered))),
        ],
    )
}

fn stream_table(summaries: &[(Way, holzinger_stream::Delays)]) -> Table {
    let quantile = |s: &holzinger_stream::Delays, q| s.delays.cell(q);
    Table::of(
        "Bytes of a steady stream",
        summaries,
        &[
            ("channel", &|(_, s)| s.setup.channel.name().into()),
            ("BLT", &|(_, s)| s.setup.burst.into()),
            ("RDT", &|(_, s)| s.setup.delay.into()),
            ("over", &|(way, _)| way.carrier().into()),
            ("congestion", &|(way, _)| way.congestion.into()),
            ("reaction", &|(way, _)| way.reaction.into()),
            ("late", &|(_, s)| s.late_cell()),
            ("worst", &|(_, s)| Cell::Share(s.worst())),
            ("p50", &|(_, s)| quantile(s, 0.5)),
            ("p99", &|(_, s)| quantile(s, 0.99)),
            ("p99.9", &|(_, s)| quantile(s, 0.999)),
            ("max", &|(_, s)| quantile(s, 1.0)),
            ("wire/byte", &|(_, s)| Cell::Number(s.wire())),
            ("resent/byte", &|(_, s)| Cell::Number(s.resent())),
            ("repairs", &|(_, s)| Cell::Number(s.repairs())),
            ("loss", &|(_, s)| Cell::Share(s.loss())),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_way_is_the_papers_and_each_step_changes_one_thing() {
        assert_eq!((WAYS[0], WAYS[3]), (Way::STREAMS, Way::PAPER));
        for pair in WAYS.windows(2) {
            let [a, b] = pair else { unreachable!() };
            let changes =
                [a.http != b.http, a.congestion != b.congestion, a.reaction != b.reaction];
            assert_eq!(changes.iter().filter(|changed| **changed).count(), 1, "{a:?} {b:?}");
            b.transport().unwrap();
        }
    }

    #[test]
    fn a_response_is_protected_as_its_request_asks() {
        let bare = holzinger_bulk::Objects::bare(Channel::Lossless, 32_000);
        let lossless = |burst| bare.protected(burst, 0);
        let setups = [lossless(0), lossless(3)];
        let summaries =
            holzinger_bulk::measure(Way::PAPER, &setups, 10, &Options::default()).unwrap();
        let repairs: Vec<f64> = summaries.iter().map(|s| s.mean(|t| t.repair_symbols)).collect();
        assert_eq!(repairs, [0.0, 3.0]);
        // Each message of a stream, which is of five packets, is protected as well.
        let of = |burst| holzinger_stream::Steady::incremental(Channel::Lossless, burst, 0);
        let summaries =
            holzinger_stream::measure(Way::PAPER, &[of(0), of(2)], 100, &Options::default())
                .unwrap();
        let repairs: Vec<f64> = summaries.iter().map(|s| s.repairs().round()).collect();
        assert_eq!(repairs, [0.0, 2.0]);
    }
}
