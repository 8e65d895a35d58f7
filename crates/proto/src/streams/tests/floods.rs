//! Peers that try to exhaust our memory, and long-running applications.

use super::*;
use crate::streams::assembler::{BYTES_PER_GAP, MAX_GAPS};

#[test]
fn gaps_are_bounded_whatever_the_window() {
    let limits = StreamLimits { stream_window: 1 << 40, connection_window: 1 << 40, ..small() };
    let mut streams = endpoint(Side::Server, &limits);
    let mut accepted = 0;
    while streams.received(uni(0), 2 * accepted + 1, b"x", false).is_ok() {
        accepted += 1;
    }
    // Every block may begin with one free gap, and there are few blocks yet.
    assert!(accepted <= MAX_GAPS + 2 * accepted / BYTES_PER_GAP + 8, "{accepted}");
    assert!(streams.stats().receive_buffered <= 64 * 1024);
}

#[test]
fn sparse_bytes_cost_what_the_window_allows() {
    let mut streams = server();
    for index in 0..8 {
        // The last byte that the connection window lets each stream send.
        streams.received(uni(index), 1_800, b"x", false).unwrap();
    }
    assert!(streams.stats().receive_buffered <= 2 * 15_000);
}

#[test]
fn one_byte_frames_of_an_honest_stream_are_accepted() {
    let mut streams = server();
    let mut random = Rng::new(3);
    let mut order: Vec<u64> = (0..9_000).collect();
    // Packets of one byte each, reordered within a hundred.
    for index in 0..order.len() - 100 {
        order.swap(index, index + random.below(100) as usize);
    }
    for offset in order {
        streams.received(uni(0), offset, &[offset as u8], false).unwrap();
    }
    streams.accept(Dir::Uni).unwrap();
    let mut out = [0; 9_001];
    assert_eq!(streams.read(uni(0), &mut out), Ok(Read::Data(9_000)));
    assert!(out[..9_000].iter().zip(0..).all(|(&b, offset): (_, u64)| b == offset as u8));
}

#[test]
fn a_jump_to_the_highest_stream_takes_no_memory() {
    let limits = StreamLimits { uni_streams: 1 << 60, bidi_streams: 1 << 60, ..small() };
    let mut streams = endpoint(Side::Server, &limits);
    for dir in Dir::ALL {
        let last = client_stream(dir, (1 << 60) - 1);
        streams.received(last, 0, b"", false).unwrap();
        assert_eq!(streams.table.implicit_ranges(dir), 1);
        assert_eq!(streams.accept(dir), Some(client_stream(dir, 0)));
    }
    assert_eq!(streams.stats().streams, 4);
}

#[test]
fn streams_touched_here_and_there_are_bounded_by_the_limit() {
    let mut streams = endpoint(Side::Server, &StreamLimits { uni_streams: 1000, ..small() });
    for index in (0..1000).rev().step_by(2) {
        streams.received_stream_data_blocked(uni(index)).unwrap();
    }
    assert_eq!(streams.stats().streams, 500);
    assert_eq!(streams.table.implicit_ranges(Dir::Uni), 500);
    assert!(streams.received_stream_data_blocked(uni(1000)).is_err());
    assert_eq!(streams.stats().events, 1);
}

#[test]
fn rapid_resets_stop_at_the_limit_until_the_application_knows() {
    let mut streams = server();
    let mut opened = 0;
    while streams.received_reset(uni(opened), 0, 0).is_ok() {
        opened += 1;
        let frames = control(&mut streams);
        assert!(frames.is_empty(), "a reset alone gives nothing back: {frames:?}");
    }
    assert_eq!((opened, streams.stats().streams), (8, 8));
    let id = streams.accept(Dir::Uni).unwrap();
    assert_eq!(streams.read(id, &mut [0; 1]), Err(ReadError::Reset(0)));
    assert_eq!(control(&mut streams), [[encode::MAX_STREAMS_UNI, 9]]);
    streams.received_reset(uni(opened), 0, 0).unwrap();
    assert_eq!(streams.stats().streams, 8);
}

#[test]
fn queues_do_not_grow_with_what_the_peer_repeats() {
    let mut streams = server();
    let id = client_stream(Dir::Bi, 0);
    streams.received(id, 0, b"x", false).unwrap();
    streams.accept(Dir::Bi).unwrap();
    streams.write(id, b"answer").unwrap();
    for round in 0..1000 {
        streams.received(id, 0, b"x", false).unwrap();
        streams.received(id, 1, &b"y"[..(round == 0).into()], false).unwrap();
        streams.received_max_stream_data(id, 10_000 + round).unwrap();
        streams.received_stream_data_blocked(id).unwrap();
        streams.received_streams_blocked(Dir::Bi, 8).unwrap();
        streams.received_stop_sending(id, round).unwrap();
    }
    assert!(streams.stats().events <= 3, "{:?}", events(&mut streams));
    assert_eq!(control(&mut streams).len(), 1, "one RESET_STREAM");
}

#[test]
fn memory_goes_back_when_streams_end() {
    let (mut a, mut b) = (client(), server());
    let now = Instant::now();
    let exchange = |from: &mut Sender, to: &mut Sender| {
        while let Some(packet) = packet(from, now) {
            deliver(to, &packet.bytes).unwrap();
            packet.tokens.iter().for_each(|token| from.acked(token));
        }
    };
    // A control stream stays open the whole time.
    let long = a.open(Dir::Bi).unwrap();
    for round in 0..3000_u64 {
        let id = a.open(Dir::Bi).unwrap();
        a.write(long, b"tick").unwrap();
        a.write(id, &[round as u8; 50]).unwrap();
        match round % 4 {
            0 => a.finish(id).unwrap(),
            1 => drop(a.reset(id, 0).unwrap()),
            2 => a.stop(id, 0).unwrap(),
            _ => {
                a.stop(id, 0).unwrap();
                a.reset(id, 0).unwrap();
            }
        }
        exchange(&mut a, &mut b);
        while let Some(id) = b.accept(Dir::Bi) {
            if id != long {
                if round % 4 < 2 {
                    b.write(id, b"fine").unwrap();
                    b.finish(id).unwrap();
                }
                if round % 4 == 2 {
                    b.stop(id, 0).unwrap();
                }
            }
        }
        let drain = |streams: &mut Sender, id| {
            while let Ok(Some(_)) = streams.read_chunk(id, usize::MAX, true) {}
        };
        for _ in 0..2 {
            exchange(&mut b, &mut a);
            exchange(&mut a, &mut b);
            for id in [long, id] {
                drain(&mut a, id);
                drain(&mut b, id);
            }
        }
        events(&mut a);
        events(&mut b);
        for streams in [&a, &b] {
            let stats = streams.stats();
            assert_eq!(stats.streams, 1, "round {round}");
            assert_eq!((stats.send_buffered, stats.events), (0, 0));
            assert!(stats.receive_buffered <= 32 * 1024);
        }
    }
    assert!(b.table.implicit_ranges(Dir::Bi) == 0 && a.open(Dir::Uni).is_some());
}
