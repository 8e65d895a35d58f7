//! Floods: a peer can make this end store and do only so much.

use crate::common::Ending::{Fin, Open};
use crate::common::Stream::{Bi, Response, Uni};
use crate::common::{Bench, GET, OK, World, get, script, update_frame};
use sutura_h3::{
    CancelLimit, Code, Config, Event, Fields, MAX_CONTROL_BACKLOG, MAX_PRIORITY_UPDATES,
    MAX_UNTYPED_STREAMS, Priority, SendError, Transport,
};
use sutura_proto::{Dir, Side, StreamId};

fn varint4(value: usize) -> [u8; 4] {
    (0x8000_0000 | value as u32).to_be_bytes()
}

/// A HEADERS frame with this block.
fn headers(block: &[u8]) -> Vec<u8> {
    [&[0x01], &varint4(block.len())[..], block].concat()
}

/// Field sections that are small on the wire and large in memory, as head and as trailers.
#[test]
fn header_bombs_fail_their_exchange_only() {
    // Each byte stands for entry 58 of the static table: 69 bytes plus a field's overhead.
    let indexed = [vec![0, 0], vec![0xc0 | 58; 60_000]].concat();
    // `:path` whose value has 59 000 bytes of Huffman code, five bits each for '0'.
    let coded = [&[0, 0, 0x51, 0xff, 0xf9, 0xcb, 0x03][..], &[0; 59_000]].concat();
    let many = [vec![0, 0], [0x21, b'a', 0].repeat(129)].concat();
    for (what, block) in [("indexed", indexed), ("coded", coded), ("many", many)] {
        for (side, stream, head) in [(Side::Server, Bi, GET), (Side::Client, Response, OK)] {
            for before in [&[][..], head] {
                let mut bench = Bench::new(side);
                if side.is_client() {
                    let mut end = bench.pair.end(side);
                    bench.connection.send_request(&mut end, &get(), None, true).unwrap();
                }
                let bytes = [before, &headers(&block)].concat();
                bench.play(&[script(stream, &bytes, Fin)], 4096);
                assert_eq!(bench.outcome, Ok(()), "{what}");
                let code = Code::EXCESSIVE_LOAD;
                let last = bench.events.last();
                // A request that the application never sees is answered.
                let ended = match (side, before) {
                    (Side::Server, []) => matches!(last, Some(Event::Refused { status: 431, .. })),
                    _ => matches!(last, Some(Event::Failed { code: c, .. }) if *c == code),
                };
                assert!(ended, "{what}: {:?}", bench.events);
                assert_eq!(bench.connection.exchanges(), 0);
            }
        }
    }
}

/// A section that is announced too large is refused before any of it is stored.
#[test]
fn encoded_sections_are_bounded() {
    let config = Config::default().with_max_field_section_size(1000);
    let mut world = World::new(Config::default(), config);
    world.pair.end(Side::Client).open(Dir::Bi).unwrap();
    let stream = StreamId::new(Side::Client, Dir::Bi, 0);
    world.pair.inject(Side::Client, stream, &[0x01, 0x43, 0xfd]);
    world.settle();
    let refused = world.server_events();
    assert!(matches!(refused[..], [Event::Refused { status: 431, .. }]));
    assert_eq!(world.server.exchanges(), 0);
}

#[test]
fn unknown_frames_of_any_size_are_skipped_without_being_held() {
    // 2^30 - 1 bytes are announced; 16 MiB of them arrive and are skipped.
    let header = [&[0x21][..], &varint4((1 << 30) - 1)].concat();
    for (stream, before) in [(Bi, vec![]), (Bi, GET.to_vec()), (Uni, vec![0x00, 0x04, 0x00])] {
        let mut bench = Bench::new(Side::Server);
        bench.play(&[script(stream, &[&before[..], &header].concat(), Open)], 5);
        let dir = if stream == Bi { Dir::Bi } else { Dir::Uni };
        let id = StreamId::new(Side::Client, dir, 0);
        for _ in 0..256 {
            bench.pair.inject(Side::Client, id, &[0xaa; 65_536]);
            bench.work();
            assert_eq!(bench.pair.waiting(id, Side::Client), 0);
        }
        assert_eq!(bench.outcome, Ok(()));
        assert!(bench.events.len() <= 2);
    }
}

#[test]
fn many_small_frames_leave_nothing_behind() {
    let mut bench = Bench::new(Side::Server);
    let frames = [0x00, 0x00, 0x21, 0x00, 0x21, 0x01, 0xff].repeat(20_000);
    let bytes = [GET, &frames].concat();
    bench.play(&[script(Bi, &bytes, Fin)], 1 << 14);
    assert_eq!(bench.outcome, Ok(()));
    assert_eq!(bench.events.len(), 2, "{:?}", bench.events);
    assert!(matches!(bench.events[1], Event::Finished { .. }));
}

#[test]
fn a_flood_of_priority_updates_is_one_event() {
    let mut bench = Bench::new(Side::Server);
    bench.play(&[script(Uni, &[0x00, 0x04, 0x00], Open), script(Bi, GET, Open)], 100);
    bench.events.clear();
    let control = StreamId::new(Side::Client, Dir::Uni, 0);
    let request = StreamId::new(Side::Client, Dir::Bi, 0);
    let bytes: Vec<u8> =
        (0..30_000).flat_map(|i| update_frame(0, &format!("u={}", i % 8))).collect();
    bench.pair.inject(Side::Client, control, &bytes);
    bench.work();
    let priority = Priority::default().with_urgency(7);
    assert_eq!(bench.events, [Event::PriorityUpdate { stream: request, priority }]);
}

#[test]
fn priorities_of_requests_to_come_are_kept_for_a_few() {
    let mut bench = Bench::new(Side::Server);
    let mut bytes = vec![0x00, 0x04, 0x00];
    for _ in 0..100 {
        bytes.extend((0..100).flat_map(|index| update_frame(index * 4, "u=1")));
    }
    bench.play(&[script(Uni, &bytes, Open)], 10_000);
    assert_eq!(bench.events.len(), 1, "SETTINGS");
    for index in 0..100 {
        bench.play(&[script(Bi, GET, Open)], 100);
        let stream = StreamId::new(Side::Client, Dir::Bi, index);
        let urgency = bench.connection.priority(stream).unwrap().urgency;
        assert_eq!(urgency, if index < MAX_PRIORITY_UPDATES as u64 { 1 } else { 3 });
    }
}

#[test]
fn streams_without_a_type_wait_their_turn() {
    let mut bench = Bench::new(Side::Server);
    for _ in 0..MAX_UNTYPED_STREAMS {
        bench.play(&[script(Uni, &[], Open)], 1);
    }
    // Beyond the bound even a control stream waits until the type of another stream arrives.
    bench.play(&[script(Uni, &[0x00, 0x04, 0x00], Open)], 100);
    assert_eq!(bench.events, []);
    let first = StreamId::new(Side::Client, Dir::Uni, 0);
    bench.pair.inject(Side::Client, first, &[0x21]);
    bench.work();
    assert!(matches!(bench.events[..], [Event::Settings(_)]));
    assert_eq!(bench.pair.stops, [(Side::Server, first, Code::STREAM_CREATION_ERROR)]);
}

/// Streams that are opened and reset immediately leave no state behind.
#[test]
fn rapid_resets_leave_nothing_behind() {
    let unlimited = Config::default().with_cancelled_requests(None);
    let mut bench = Bench::with(Side::Server, &unlimited);
    bench.pair.limits[Side::Client as usize][Dir::Bi.index()] = 5000;
    for _ in 0..5000 {
        let mut end = bench.pair.end(Side::Client);
        let id = end.open(Dir::Bi).unwrap();
        end.stop(id, Code::REQUEST_CANCELLED);
        bench.pair.inject(Side::Client, id, GET);
        bench.work();
        bench.pair.end(Side::Client).reset(id, Code::REQUEST_CANCELLED);
        bench.connection.readable(id);
        bench.connection.process(&mut bench.pair.end(Side::Server)).unwrap();
        bench.events.clear();
        assert_eq!(bench.connection.exchanges(), 0);
        crate::common::events(&mut bench.connection);
    }
}

/// Sends a request that is cancelled at once, in one of the two ways.
fn cancel_at_once(bench: &mut Bench, reset: bool) {
    let mut end = bench.pair.end(Side::Client);
    let id = end.open(Dir::Bi).unwrap();
    if reset {
        bench.pair.inject(Side::Client, id, &GET[..3]);
        bench.pair.end(Side::Client).reset(id, Code::REQUEST_CANCELLED);
    } else {
        end.stop(id, Code::REQUEST_CANCELLED);
        bench.pair.inject(Side::Client, id, GET);
    }
    bench.work();
}

#[test]
fn requests_that_are_cancelled_at_once_reach_no_application_and_end_the_connection() {
    let limit = CancelLimit { burst: 150, per_second: 10 };
    for reset in [false, true] {
        let config = Config::default().with_cancelled_requests(Some(limit));
        let mut bench = Bench::with(Side::Server, &config);
        bench.pair.limits[Side::Client as usize][Dir::Bi.index()] = 5000;
        for n in 0..limit.burst {
            cancel_at_once(&mut bench, reset);
            assert_eq!(bench.outcome, Ok(()), "{n}");
        }
        let seen = bench.events.iter().filter(|event| matches!(event, Event::Headers { .. }));
        assert_eq!(seen.count(), 0);
        assert_eq!(bench.connection.exchanges(), 0);
        cancel_at_once(&mut bench, reset);
        assert_eq!(bench.outcome.map_err(|error| error.code), Err(Code::EXCESSIVE_LOAD));
        assert_eq!(bench.pair.closed[Side::Server as usize], Some(Code::EXCESSIVE_LOAD));
    }
}

#[test]
fn leaving_a_page_with_a_hundred_requests_under_way_is_not_punished() {
    let mut bench = Bench::new(Side::Server);
    bench.pair.limits[Side::Client as usize][Dir::Bi.index()] = 200;
    for _page in 0..2 {
        let mut requests = Vec::new();
        for _ in 0..100 {
            let id = bench.pair.end(Side::Client).open(Dir::Bi).unwrap();
            bench.pair.inject(Side::Client, id, GET);
            requests.push(id);
        }
        bench.work();
        for id in requests {
            bench.pair.end(Side::Client).stop(id, Code::REQUEST_CANCELLED);
            bench.pair.end(Side::Client).reset(id, Code::REQUEST_CANCELLED);
        }
        bench.work();
        assert_eq!(bench.outcome, Ok(()));
    }
}

#[test]
fn goaway_flood_is_one_event() {
    let mut bench = Bench::new(Side::Client);
    let mut bytes = vec![0x00, 0x04, 0x00];
    for id in (0..4000u16).rev() {
        bytes.extend_from_slice(&[0x07, 0x02]);
        bytes.extend_from_slice(&(0x4000 | (id * 4)).to_be_bytes());
    }
    bench.play(&[script(Uni, &bytes, Open)], usize::MAX);
    assert!(matches!(bench.events[..], [Event::Settings(_), Event::GoAway { id: 0 }]));
}

#[test]
fn our_control_stream_pushes_back() {
    let (mut world, stream) = World::asked(false);
    world.pair.window = 0;
    let mut sent = 0;
    let blocked = loop {
        let priority = Priority::default().with_urgency((sent % 7) as u8);
        let mut end = world.pair.end(Side::Client);
        match world.client.send_priority_update(&mut end, stream, &priority) {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(blocked, SendError::Blocked);
    assert!(sent * 6 <= MAX_CONTROL_BACKLOG && sent * 16 > MAX_CONTROL_BACKLOG);
    world.pair.window = 1 << 20;
    world.settle();
    world.server_events();
    let urgency = ((sent - 1) % 7) as u8;
    assert_eq!(world.server.priority(stream).unwrap().urgency, urgency);
    world.respond(stream, &Fields::response(200), true);
}
