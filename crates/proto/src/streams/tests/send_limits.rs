//! Limits on buffered data, per stream and for the connection.

use super::*;
use crate::streams::send_pool::STREAM_RESERVE;
use std::collections::HashMap;

const STREAMS: u64 = 100;
const POOL: usize = 1 << 20;

/// Limits so high that only the send buffers block writers.
fn limits() -> StreamLimits {
    StreamLimits {
        bidi_streams: STREAMS,
        uni_streams: STREAMS,
        stream_window: 1 << 40,
        connection_window: 1 << 40,
        send_buffer: 256 * 1024,
        connection_send_buffer: POOL,
        ..StreamLimits::default()
    }
}

/// Writes until the buffer is full; returns how many bytes it accepted.
fn fill(streams: &mut Sender, id: StreamId) -> usize {
    let mut total = 0;
    loop {
        match streams.write(id, &[0; 10_000]) {
            Ok(len) => total += len,
            Err(error) => {
                assert_eq!(error, WriteError::Blocked);
                return total;
            }
        }
    }
}

/// Opens a stream and writes until its buffer is full; returns how many bytes it accepted.
fn open_full(streams: &mut Sender) -> (StreamId, usize) {
    let id = streams.open(Dir::Uni).unwrap();
    (id, fill(streams, id))
}

#[test]
fn a_flood_of_writers_gets_the_limit_and_each_its_reserve() {
    let mut streams = endpoint(Side::Client, &limits());
    let taken: Vec<_> = (0..STREAMS).map(|_| open_full(&mut streams).1).collect();
    assert_eq!(taken[..4], [256 * 1024; 4]);
    assert!(taken[4..].iter().all(|len| *len == STREAM_RESERVE));
    let total: usize = taken.iter().sum();
    assert_eq!(streams.stats().send_buffered, total);
    assert_eq!(streams.out.pool.used(), total);
    assert!(total <= POOL + STREAMS as usize * STREAM_RESERVE);
    assert_eq!(streams.out.pool.waiting(), STREAMS as usize - 4, "those that have room themselves");
}

#[test]
fn a_late_urgent_stream_overtakes_all_that_is_buffered() {
    let limits = StreamLimits { uni_streams: 100, ..StreamLimits::default() };
    let mut streams = endpoint(Side::Client, &limits);
    streams.received_max_data(1 << 40);
    (0..20).for_each(|_| _ = open_full(&mut streams));
    let bulk = streams.stats().send_buffered;
    assert!(bulk >= limits.connection_send_buffer);
    for _ in 0..10 {
        send_frame(&mut streams).unwrap();
    }
    let urgent = streams.open(Dir::Uni).unwrap();
    streams.set_priority(urgent, Priority::new(0, false).unwrap()).unwrap();
    assert_eq!(streams.write(urgent, &[0; 5_000]), Ok(5_000), "the limit is used up by others");
    streams.finish(urgent).unwrap();
    let next: Vec<_> = (0..6).map(|_| send_frame(&mut streams).unwrap()).collect();
    assert!(next[..5].iter().all(|token| token.id == urgent));
    assert!(next[4].fin && next[5].id != urgent);
}

#[test]
fn writers_are_woken_in_the_order_in_which_they_found_no_room() {
    let mut streams = endpoint(Side::Client, &limits());
    let ids = [0; 8].map(|_| open_full(&mut streams).0);
    events(&mut streams);
    // Abandoning one stream does not free a quarter of the limit, since the reserves took part of the limit.
    streams.reset(ids[0], 0).unwrap();
    assert!(events(&mut streams).is_empty());
    for id in &ids[1..3] {
        streams.reset(*id, 0).unwrap();
    }
    let woken: Vec<_> = ids[4..].iter().map(|id| StreamEvent::Writable { id: *id }).collect();
    assert_eq!(events(&mut streams), woken);
    assert_eq!(streams.out.pool.waiting(), 0);
    assert!(fill(&mut streams, ids[7]) > 100_000);
}

#[test]
fn streams_that_end_do_not_wait_on() {
    let limits = StreamLimits { connection_send_buffer: 0, uni_streams: 10_000, ..limits() };
    let mut streams = endpoint(Side::Client, &limits);
    for _ in 0..1_000 {
        let (id, taken) = open_full(&mut streams);
        assert_eq!(taken, STREAM_RESERVE);
        assert_eq!(streams.out.pool.waiting(), 1);
        streams.reset(id, 0).unwrap();
        streams.acked(&Token::Control(ControlToken::ResetStream(id)));
    }
    assert_eq!((streams.out.pool.waiting(), streams.out.pool.used()), (0, 0));
}

/// Writers that write only when notified: each of them is notified until it has written all its bytes.
fn obedient(seed: u64, pool: usize) {
    const SIZE: usize = 400_000;
    let mut random = Rng::new(seed);
    let mut streams =
        endpoint(Side::Client, &StreamLimits { connection_send_buffer: pool, ..limits() });
    let mut left = HashMap::new();
    let mut told = Vec::new();
    for _ in 0..12 {
        let id = streams.open(Dir::Uni).unwrap();
        let priority = Priority::new(random.below(8) as u8, random.below(2) == 0).unwrap();
        streams.set_priority(id, priority).unwrap();
        left.insert(id, SIZE);
        told.push(id);
    }
    let mut flight = Vec::new();
    let mut finished = 0;
    while finished < 12 {
        for id in told.drain(..) {
            let rest = left.get_mut(&id).unwrap();
            while *rest > 0
                && let Ok(len) = streams.write(id, &vec![0; (*rest).min(9_000)])
            {
                *rest -= len;
            }
            if *rest == 0 {
                streams.finish(id).unwrap();
            }
        }
        assert!(streams.stats().send_buffered <= pool + 12 * STREAM_RESERVE);
        flight.extend((0..random.below(40)).map_while(|_| send_frame(&mut streams)));
        assert!(!flight.is_empty() || streams.has_data(), "everybody sleeps: {left:?}");
        for _ in 0..random.below(40).min(flight.len() as u64) {
            let token = flight.swap_remove(random.below(flight.len() as u64) as usize);
            let fate = if random.below(5) == 0 { Sender::lost } else { Sender::acked };
            fate(&mut streams, &Token::Stream(token));
        }
        for event in events(&mut streams) {
            match event {
                StreamEvent::Writable { id } => told.push(id),
                StreamEvent::Finished { .. } => finished += 1,
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!((streams.out.pool.used(), streams.out.pool.waiting()), (0, 0));
}

#[test]
fn no_writer_is_forgotten() {
    for seed in 0..6 {
        obedient(seed, [0, 100_000, 500_000, POOL][seed as usize % 4]);
    }
}

/// Sets how much all send buffers may hold.
fn lend(streams: &mut Sender, send: usize) {
    streams.set_allowance(Allowance { send, receive: u64::MAX, streams: STREAMS });
}

#[test]
fn all_streams_stay_within_an_allowance_and_each_has_a_part_of_it() {
    const ALLOWANCE: usize = 80_000;
    let mut streams = endpoint(Side::Client, &limits());
    lend(&mut streams, ALLOWANCE);
    let ids: Vec<_> = (0..20).map(|_| streams.open(Dir::Uni).unwrap()).collect();
    let taken: Vec<_> = ids.iter().map(|id| fill(&mut streams, *id)).collect();
    assert_eq!(taken[0], ALLOWANCE / 2, "the first takes all that is shared");
    assert!(taken[1..].iter().all(|len| *len == ALLOWANCE / 2 / 20), "{taken:?}");
    assert!(streams.out.pool.used() <= ALLOWANCE);
}

#[test]
fn writers_that_an_allowance_blocked_go_on_when_there_is_more() {
    let mut streams = endpoint(Side::Client, &limits());
    lend(&mut streams, 0);
    let ids: Vec<_> = (0..8).map(|_| streams.open(Dir::Uni).unwrap()).collect();
    assert!(ids.iter().all(|id| streams.write(*id, b"x") == Err(WriteError::Blocked)));
    lend(&mut streams, 0);
    assert!(events(&mut streams).is_empty());
    lend(&mut streams, 1_000);
    let woken: Vec<_> = ids.iter().map(|id| StreamEvent::Writable { id: *id }).collect();
    assert_eq!(events(&mut streams), woken);
    assert!(ids.iter().all(|id| streams.write(*id, b"x") == Ok(1)));
}

#[test]
fn a_chunk_counts_until_all_of_it_arrived() {
    let mut streams = endpoint(Side::Client, &limits());
    let peer = PeerLimits { max_data: 1 << 40, ..streams.peer };
    streams.set_peer_limits(peer);
    let id = streams.open(Dir::Uni).unwrap();
    assert_eq!(streams.write_chunk(id, vec![0; 10_000].into()), Ok(10_000));
    let mut sent = send_frames(&mut streams);
    let last = sent.pop().unwrap();
    sent.iter().for_each(|token| streams.acked(&Token::Stream(*token)));
    let held = (streams.stats().send_buffered, streams.send_storage());
    assert_eq!(held, (last.len as usize, 10_000));
    assert_eq!(streams.taken(), u64::from(10_000 - last.len));
    streams.acked(&Token::Stream(last));
    assert_eq!((streams.send_storage(), streams.taken()), (0, 10_000));
}

#[test]
fn credit_for_streams_and_data_is_lent() {
    let mut streams = endpoint(Side::Server, &limits());
    let lent = Allowance { send: 0, receive: 1_000, streams: 3 };
    streams.set_allowance(lent);
    streams.window.consume(1 << 40);
    assert!(streams.window.is_due());
    let now = Instant::now();
    assert_eq!(streams.window.propose(now, RTT, 0).limit, (1 << 40) + 1_000);
    let remote = &mut streams.table.remote[Dir::Uni.index()];
    (remote.next, remote.finished) = (STREAMS, STREAMS);
    assert!(remote.is_due());
    assert_eq!(remote.allowance(), STREAMS + 3);
    remote.max = STREAMS + 3;
    streams.control.max_streams = [false; 2];
    streams.set_allowance(Allowance { streams: STREAMS, ..lent });
    assert!(streams.control.max_streams[Dir::Uni.index()], "more can be announced");
}

#[test]
fn the_state_of_a_stream_takes_no_more_than_is_counted() {
    use crate::streams::table::{Stream, StreamHalf};
    let size = size_of::<Stream<[StreamHalf; 2]>>();
    // The rest is for the entries in the tables and for the state of policies.
    assert!(size * 3 / 2 <= STREAM_COST, "{size}");
}
