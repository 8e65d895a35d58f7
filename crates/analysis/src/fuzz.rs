//! Entry point for fuzzing: arbitrary bytes must neither cause a panic nor exceed the memory
//! limits, and the results must be consistent with each other.

use std::collections::BTreeSet;

use crate::limits::{MAX_EVENTS, MAX_FRAMES, MAX_TRACES};
use crate::{Class, Direction, Reader, Trace};

/// Reads a file in parts whose length the first byte sets, and analyses it.
///
/// # Panics
/// If a guarantee of this crate is broken.
pub fn qlog(data: &[u8]) {
    let Some((first, file)) = data.split_first() else { return };
    let mut reader = Reader::new();
    for part in file.chunks(usize::from(*first) + 1) {
        if reader.push(part).is_err() {
            return;
        }
    }
    let traces = reader.finish();
    assert_eq!(traces, crate::parse(file), "the parts of a file make a difference");
    let Ok(mut traces) = traces else { return };
    assert!(traces.len() <= MAX_TRACES);
    assert!(traces.iter().map(|t| t.events.len()).sum::<usize>() <= MAX_EVENTS);
    if let Some((first, rest)) = traces.split_first_mut()
        && let Some(peer) = rest.first()
    {
        crate::resolve_recovered(first, peer);
    }
    for trace in &traces {
        for direction in [Direction::Sent, Direction::Received] {
            analyse(trace, direction);
        }
        for peer in &traces {
            let blocking = crate::head_of_line_blocking(trace, &crate::sent_frames(peer));
            assert!(blocking.quic.bytes <= blocking.tcp.bytes);
        }
    }
}

fn analyse(trace: &Trace, direction: Direction) {
    let arrivals = crate::arrivals(trace, direction);
    assert!(arrivals.len() <= MAX_FRAMES);
    assert!(arrivals.iter().all(|a| a.new_bytes <= a.frame.length && a.at <= trace.duration));
    let new = |a: &&crate::Arrival| a.new_bytes == 0 && a.class == Class::Future;
    assert_eq!(arrivals.iter().find(new), None);
    let streams = crate::stream_table(trace, direction);
    let blocking = crate::head_of_line_blocking(trace, &[]);
    assert!(blocking.ratio().is_none_or(|ratio| ratio.is_finite()));
    assert!(blocking.quic.peak <= blocking.tcp.peak && blocking.quic.bytes <= blocking.tcp.bytes);
    let overview = crate::overview(trace, direction);
    if direction == Direction::Received {
        assert_eq!(overview.bytes, blocking.received);
    }
    let visible: BTreeSet<u64> = streams.iter().map(|row| row.stream).step_by(2).collect();
    let index = crate::byte_index(trace, direction, Some(&visible));
    let multiplexing = crate::multiplexing(trace, direction);
    let chart = crate::figure::blocking(&blocking, trace.duration, &trace.title).to_svg();
    assert!(chart.is_ok(), "{chart:?}");
    let texts = [
        crate::text::overview(&overview),
        crate::text::multiplexing(&multiplexing),
        crate::text::bundling(&crate::bundling(trace, direction)),
        crate::text::streams(&streams),
        crate::text::waterfall(&streams),
        crate::text::blocking(&blocking),
        crate::text::byte_index(&index),
        crate::figure::multiplexing(&multiplexing, &streams, &trace.title),
        crate::figure::waterfall(&streams, &trace.title),
        chart.unwrap_or_default(),
    ];
    for text in texts {
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'));
    }
}
