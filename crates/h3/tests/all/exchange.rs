//! Complete exchanges between a client and a server of this crate.

use std::collections::BTreeMap;

use crate::common::{Bench, Ending, Stream, World, get, script};
use bytes::Bytes;
use proptest::prelude::*;
use sutura_h3::{BodyPiece, Code, Config, Event, Field, Fields, ReceiveError, SendError, Settings};
use sutura_proto::{Dir, Priority, Side, StreamId};
use sutura_random::Rng;

/// A message that one end sends.
#[derive(Debug, Clone)]
struct Message {
    body: Vec<u8>,
    trailers: bool,
    way: Way,
    declared: bool,
}

/// How a body is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// From a slice.
    Slice,
    /// By reference, each chunk at once.
    Chunk,
    /// By reference, as much of each chunk as there is room for.
    Part,
    /// The same in one frame that was announced.
    Announced,
}

impl Message {
    fn head(&self, mut head: Fields) -> Fields {
        if self.declared {
            head.push(Field::new("content-length", self.body.len().to_string()));
        }
        head
    }

    fn trailers(&self) -> Fields {
        Fields::new().with("x-sum", self.body.len().to_string())
    }
}

/// How many bytes an end has sent of its message and received of the peer's.
#[derive(Debug, Default)]
struct Half {
    sent: usize,
    announced: bool,
    head_sent: bool,
    done: bool,
    head: Option<Fields>,
    body: Vec<u8>,
    trailers: Option<Fields>,
    finished: bool,
}

/// Continues sending `message` where possible.
fn send(world: &mut World, side: Side, stream: StreamId, message: &Message, half: &mut Half) {
    let connection = if side.is_client() { &mut world.client } else { &mut world.server };
    let mut end = world.pair.end(side);
    while !half.done {
        let rest = &message.body[half.sent..];
        if message.way == Way::Announced && !std::mem::replace(&mut half.announced, true) {
            match connection.announce_body(&mut end, stream, rest.len() as u64) {
                Ok(()) => {}
                Err(SendError::Blocked) => {
                    half.announced = false;
                    return;
                }
                Err(error) => panic!("{error}"),
            }
        }
        let chunk = Bytes::copy_from_slice(&rest[..rest.len().min(5000)]);
        let outcome = if !rest.is_empty() {
            let n = chunk.len();
            let sent = match message.way {
                Way::Slice => connection.send_body(&mut end, stream, rest),
                Way::Chunk => connection.send_body_chunk(&mut end, stream, chunk).map(|()| n),
                Way::Part | Way::Announced => connection.send_body_part(&mut end, stream, chunk),
            };
            sent.map(|n| {
                assert!(n > 0);
                half.sent += n;
            })
        } else if message.trailers {
            let sent = connection.send_trailers(&mut end, stream, &message.trailers());
            sent.map(|()| half.done = true)
        } else {
            connection.finish(&mut end, stream).map(|()| half.done = true)
        };
        match outcome {
            Ok(()) => {}
            Err(SendError::Blocked) => return,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Handles events and reads bodies.
fn receive(world: &mut World, side: Side, halves: &mut BTreeMap<StreamId, Half>) {
    let connection = if side.is_client() { &mut world.client } else { &mut world.server };
    while let Some(event) = connection.poll_event() {
        match event {
            Event::Headers { stream, fields } => {
                let half = halves.entry(stream).or_default();
                assert!(half.head.replace(fields).is_none());
            }
            Event::Data { stream } => {
                let half = halves.get_mut(&stream).unwrap();
                let mut buffer = [0; 700];
                loop {
                    let end = &mut world.pair.end(side);
                    // This transport delivers in order.
                    let read = if stream.index() % 2 == 0 {
                        connection.read_body(end, stream, &mut buffer)
                    } else {
                        let piece = connection.read_body_piece(end, stream, &mut buffer);
                        piece.map(|BodyPiece { offset, bytes }| {
                            assert!(bytes == 0 || offset == half.body.len() as u64);
                            bytes
                        })
                    };
                    match read {
                        Ok(0) | Err(ReceiveError::Blocked | ReceiveError::UnknownStream) => break,
                        Ok(n) => half.body.extend_from_slice(&buffer[..n]),
                        Err(error) => panic!("{error}"),
                    }
                }
            }
            Event::Trailers { stream, fields } => {
                let half = halves.get_mut(&stream).unwrap();
                assert!(half.trailers.replace(fields).is_none());
            }
            Event::Finished { stream } => {
                let half = halves.get_mut(&stream).unwrap();
                assert!(!std::mem::replace(&mut half.finished, true));
            }
            Event::Settings(settings) => {
                assert_eq!(settings.max_field_section_size, Some(65_536));
            }
            Event::Writable { .. } => {}
            event => panic!("{event:?}"),
        }
    }
}

fn check(half: &Half, head: &Fields, message: &Message) {
    assert!(half.finished);
    assert_eq!(half.head.as_ref(), Some(head));
    assert!(half.body == message.body, "{} of {}", half.body.len(), message.body.len());
    assert_eq!(half.trailers, message.trailers.then(|| message.trailers()));
}

/// Runs all exchanges concurrently to their end.
fn run(world: &mut World, exchanges: &[(Message, Message)]) {
    let mut streams = Vec::new();
    let (mut clients, mut servers) = (BTreeMap::new(), BTreeMap::new());
    for (request, _) in exchanges {
        let stream = world.request(&request.head(get()), false);
        clients.insert(stream, Half { head_sent: true, ..Half::default() });
        streams.push(stream);
    }
    let done = |half: &Half| half.finished && half.done;
    for turn in 0.. {
        assert!(turn < 200_000, "stuck");
        world.turn();
        receive(world, Side::Client, &mut clients);
        receive(world, Side::Server, &mut servers);
        for (stream, (request, response)) in streams.iter().zip(exchanges) {
            send(world, Side::Client, *stream, request, clients.get_mut(stream).unwrap());
            let Some(half) = servers.get_mut(stream).filter(|half| half.head.is_some()) else {
                continue;
            };
            if !std::mem::replace(&mut half.head_sent, true) {
                world.respond(*stream, &response.head(Fields::response(200)), false);
            }
            send(world, Side::Server, *stream, response, half);
        }
        if servers.len() == streams.len() && clients.values().chain(servers.values()).all(done) {
            break;
        }
    }
    for _ in 0..50 {
        world.turn();
    }
    for (stream, (request, response)) in streams.iter().zip(exchanges) {
        check(&servers[stream], &request.head(get()), request);
        check(&clients[stream], &response.head(Fields::response(200)), response);
    }
    assert_eq!((world.client.exchanges(), world.server.exchanges()), (0, 0));
    assert_eq!(world.pair.closed, [None, None]);
}

fn message() -> impl Strategy<Value = Message> {
    let size = prop_oneof![Just(0usize), 1usize..100, 1000usize..60_000];
    let way =
        prop_oneof![Just(Way::Slice), Just(Way::Chunk), Just(Way::Part), Just(Way::Announced)];
    (size, way, any::<[bool; 2]>()).prop_map(|(size, way, [trailers, declared])| {
        let body = (0..size).map(|i| (i * 31 % 251) as u8).collect();
        Message { body, trailers, way, declared }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn exchanges_survive_any_chunking(
        exchanges in prop::collection::vec((message(), message()), 1..6),
        window in prop_oneof![1usize..40, 1000usize..70_000],
        seed in 0u64..1000,
    ) {
        let mut world = World::default();
        world.pair.window = window;
        world.pair.rng = (seed > 0).then_some(Rng::new(seed));
        run(&mut world, &exchanges);
    }
}

#[test]
fn many_concurrent_requests() {
    let mut world = World::default();
    world.pair.window = 500;
    let message =
        |size| Message { body: vec![7; size], trailers: true, way: Way::Slice, declared: true };
    let exchanges: Vec<_> = (0..100).map(|i| (message(i * 10), message(3000 - i))).collect();
    run(&mut world, &exchanges);
}

/// An announced body is one frame, and nothing comes before all of it.
#[test]
fn an_announced_body_is_one_frame_and_complete() {
    let (mut bench, stream) = Bench::asking(false);
    bench.pair.take(stream, Side::Client);
    let (mut end, client) = (bench.pair.end(Side::Client), &mut bench.connection);
    client.announce_body(&mut end, stream, 300).unwrap();
    let too_much = client.send_body_chunk(&mut end, stream, Bytes::from(vec![1; 301]));
    assert!(matches!(too_much, Err(SendError::InvalidState(_))), "{too_much:?}");
    assert_eq!(client.send_body(&mut end, stream, &[2; 100]), Ok(100));
    client.send_body_chunk(&mut end, stream, Bytes::from(vec![3; 100])).unwrap();
    for early in [
        client.finish(&mut end, stream),
        client.send_trailers(&mut end, stream, &Fields::new()),
        client.announce_body(&mut end, stream, 1),
    ] {
        assert_eq!(early, Err(SendError::InvalidState("announced body is missing")));
    }
    // Bytes that were not announced are in a frame of their own.
    assert_eq!(client.send_body_part(&mut end, stream, Bytes::from(vec![4; 150])), Ok(100));
    assert_eq!(client.send_body_part(&mut end, stream, Bytes::from(vec![5; 50])), Ok(50));
    client.announce_body(&mut end, stream, 0).unwrap();
    client.finish(&mut end, stream).unwrap();
    let frame = [&[0, 0x41, 0x2c][..], &[2; 100], &[3; 100], &[4; 100], &[0, 50], &[5; 50]];
    assert_eq!(bench.pair.take(stream, Side::Client), frame.concat());
    assert!(bench.pair.is_finished(stream, Side::Client));
}

#[test]
fn settings_arrive_and_grease_is_ignored() {
    for seed in 0..64 {
        let config = Config::without_dynamic_table().with_grease(Some(seed));
        let mut world = World::new(config.clone(), config);
        // The reserved stream is written once and may be truncated, which does not matter here.
        world.pair.rng = (seed % 2 == 1).then_some(Rng::new(seed));
        world.settle();
        let expected = Settings { max_field_section_size: Some(65_536), ..Settings::default() };
        for connection in [&mut world.client, &mut world.server] {
            assert_eq!(connection.poll_event(), Some(Event::Settings(expected)));
            assert_eq!(connection.poll_event(), None);
            assert_eq!(connection.peer_settings(), Some(&expected));
        }
        // Each side told the other that it does not read the reserved stream.
        for side in [Side::Client, Side::Server] {
            if world.pair.rng.is_some() {
                continue;
            }
            let reserved = StreamId::new(side.peer(), Dir::Uni, 3);
            assert_eq!(
                world.pair.stops.iter().filter(|stop| stop.0 == side).collect::<Vec<_>>(),
                [&(side, reserved, Code::STREAM_CREATION_ERROR)]
            );
            for index in 0..3 {
                let id = StreamId::new(side, Dir::Uni, index);
                let class = (side, id, Priority::CONTROL);
                assert!(world.pair.priorities.contains(&class));
            }
        }
    }
}

#[test]
fn grease_is_there() {
    let mut bench = Bench::new(Side::Client);
    let plain = bench.pair.take(StreamId::new(Side::Client, Dir::Uni, 0), Side::Client);
    assert_eq!(plain, [0, 4, 10, 6, 0x80, 1, 0, 0, 1, 0x50, 0, 7, 16]);
    let mut world = World::default();
    world.client.process(&mut world.pair.end(Side::Client)).unwrap();
    let greased = world.pair.take(StreamId::new(Side::Client, Dir::Uni, 0), Side::Client);
    assert!(greased.len() > plain.len() + 4);
    assert!(world.pair.is_finished(StreamId::new(Side::Client, Dir::Uni, 3), Side::Client));
}

#[test]
fn our_streams_wait_for_the_peers_permission() {
    let mut world = World::default();
    for limits in &mut world.pair.limits {
        limits[Dir::Uni.index()] = 0;
    }
    world.settle();
    assert_eq!(world.client.poll_event(), None);
    world.pair.limits[Side::Server as usize][Dir::Uni.index()] = 2;
    world.settle();
    assert!(matches!(world.client.poll_event(), Some(Event::Settings(_))));
    assert_eq!(world.server.poll_event(), None);
}

/// Whether sending failed with `InvalidState`.
fn is_invalid<T>(sent: &Result<T, SendError>) -> bool {
    matches!(sent, Err(SendError::InvalidState(_)))
}

#[test]
fn interim_responses_come_before_the_final_one() {
    let (mut world, stream) = World::asked(true);
    let hints = Fields::response(103).with("link", "</a.css>; rel=preload");
    assert!(is_invalid(&world.try_respond(stream, &hints, true)));
    world.respond(stream, &hints, false);
    world.respond(stream, &Fields::response(100), false);
    world.respond(stream, &Fields::response(204), true);
    assert!(world.try_respond(stream, &Fields::response(200), false).is_err());
    world.settle();
    assert_eq!(
        world.client_events(),
        [
            Event::Interim { stream, fields: hints },
            Event::Interim { stream, fields: Fields::response(100) },
            Event::Headers { stream, fields: Fields::response(204) },
            Event::Finished { stream },
        ]
    );
}

#[test]
fn a_blocked_body_becomes_writable() {
    let mut world = World::default();
    world.pair.window = 100;
    let stream = world.ask(&get(), true);
    world.server_events();
    world.respond(stream, &Fields::response(200), false);
    let (blocked, body) = (Err(SendError::Blocked), [1; 1000]);
    let mut end = world.pair.end(Side::Server);
    assert_eq!(world.server.send_body(&mut end, stream, &body), Ok(1000));
    assert_eq!(world.server.send_body(&mut end, stream, &body), blocked);
    assert_eq!(world.server.send_trailers(&mut end, stream, &Fields::new()), blocked.map(drop));
    world.turn();
    assert_eq!(world.server_events(), []);
    let mut buffer = [0; 5000];
    let mut got = 0;
    for _ in 0..20 {
        world.turn();
        let mut end = world.pair.end(Side::Client);
        got += world.client.read_body(&mut end, stream, &mut buffer).unwrap_or(0);
    }
    assert_eq!(got, 1000);
    assert_eq!(world.server_events(), [Event::Writable { stream }]);
    world.server.finish(&mut world.pair.end(Side::Server), stream).unwrap();
    world.settle();
    assert_eq!(world.client_events().last(), Some(&Event::Finished { stream }));
    let mut end = world.pair.end(Side::Server);
    assert_eq!(world.server.finish(&mut end, stream), Err(SendError::UnknownStream));
}

/// The payload of a DATA frame goes straight to the caller: only bytes at the beginning of the stream, which come
/// with the header section, are taken from the transport earlier.
#[test]
fn bodies_stay_in_the_transport_until_read() {
    const EARLY: usize = 1024;
    let (mut world, stream) = World::asked(true);
    world.respond(stream, &Fields::response(200), false);
    let mut end = world.pair.end(Side::Server);
    assert_eq!(world.server.send_body(&mut end, stream, &[5; 10_000]), Ok(10_000));
    world.settle();
    let waiting = world.pair.waiting(stream, Side::Server);
    assert!((10_000 - EARLY..10_000).contains(&waiting), "{waiting}");
    let events = world.client_events();
    assert_eq!(events.last(), Some(&Event::Data { stream }));
    world.settle();
    assert_eq!(world.client_events(), [], "told once");
    let mut end = world.pair.end(Side::Client);
    assert_eq!(world.client.read_body(&mut end, stream, &mut [0; 100]), Ok(100));
    assert_eq!(world.client.read_body(&mut end, stream, &mut []), Ok(0));
    assert_eq!(world.pair.waiting(stream, Side::Server), waiting);
    let mut end = world.pair.end(Side::Client);
    assert_eq!(world.client.read_body(&mut end, stream, &mut [0; 2000]), Ok(2000));
    assert_eq!(world.pair.waiting(stream, Side::Server), 7_900);
    world.settle();
    assert_eq!(world.client_events(), [Event::Data { stream }], "told again");
}

#[test]
fn cancelled_by_the_client() {
    let (mut world, stream) = World::asked(false);
    world.server_events();
    let code = Code::REQUEST_CANCELLED;
    let mut end = world.pair.end(Side::Client);
    world.client.cancel(&mut end, stream, code).unwrap();
    assert_eq!(world.client.cancel(&mut end, stream, code), Err(SendError::UnknownStream));
    world.settle();
    let told = [Event::Stopped { stream, code }, Event::Reset { stream, code }];
    assert_eq!(world.server_events(), told);
    assert_eq!((world.client.exchanges(), world.server.exchanges()), (0, 0));
    let sent = world.try_respond(stream, &Fields::response(200), true);
    assert_eq!(sent, Err(SendError::UnknownStream));
    assert!(world.pair.resets.contains(&(Side::Server, stream, code)));
}

#[test]
fn cancelled_while_the_response_is_sent() {
    let mut world = World::default();
    world.pair.window = 50;
    let stream = world.ask(&get(), true);
    world.respond(stream, &Fields::response(200), false);
    let mut end = world.pair.end(Side::Server);
    world.server.send_body(&mut end, stream, &[0; 1000]).unwrap();
    world.settle();
    world.server_events();
    let code = Code::REQUEST_CANCELLED;
    world.client.cancel(&mut world.pair.end(Side::Client), stream, code).unwrap();
    // The server finds out by writing, without having been told.
    let sent = world.server.send_body(&mut world.pair.end(Side::Server), stream, &[0; 10]);
    assert_eq!(sent, Err(SendError::Stopped(code)));
    world.settle();
    assert_eq!(world.server_events(), [Event::Stopped { stream, code }]);
    assert_eq!(world.server.exchanges(), 0);
}

#[test]
fn rejected_by_the_server() {
    let (mut world, stream) = World::asked(false);
    let code = Code::REQUEST_REJECTED;
    world.server.cancel(&mut world.pair.end(Side::Server), stream, code).unwrap();
    world.settle();
    let told = [Event::Stopped { stream, code }, Event::Reset { stream, code }];
    assert_eq!(world.client_events(), told);
    assert_eq!(world.client.exchanges(), 0);
}

/// RFC 9114 section 4.1: a server that has answered does not need the rest of the request.
#[test]
fn early_response_stops_the_request() {
    let mut world = World::default();
    world.pair.window = 100;
    let stream = world.ask(&get(), false);
    let mut end = world.pair.end(Side::Client);
    world.client.send_body(&mut end, stream, &[0; 1000]).unwrap();
    world.respond(stream, &Fields::response(413), true);
    world.server.stop(&mut world.pair.end(Side::Server), stream, Code::NO_ERROR).unwrap();
    assert_eq!(world.server.exchanges(), 0);
    world.settle();
    assert_eq!(
        world.client_events(),
        [
            Event::Stopped { stream, code: Code::NO_ERROR },
            Event::Headers { stream, fields: Fields::response(413) },
            Event::Finished { stream },
        ]
    );
    assert_eq!(world.client.exchanges(), 0);
    assert_eq!(world.pair.closed, [None, None]);
}

#[test]
fn what_may_not_be_sent() {
    let mut world = World::default().settled();
    let mut client = world.pair.end(Side::Client);
    let connection = &mut world.client;
    let sent = connection.send_request(&mut client, &Fields::new(), None, true);
    assert!(matches!(sent, Err(SendError::Malformed(_))));
    let large = get().with("x", vec![b'x'; 66_000]);
    let sent = connection.send_request(&mut client, &large, None, true);
    assert_eq!(sent, Err(SendError::FieldSectionTooLarge(65_536)));
    let stream = connection.send_request(&mut client, &get(), None, false).unwrap();
    assert_eq!(connection.send_body(&mut client, stream, &[]), Ok(0));
    let large = Fields::new().with("x", vec![b'x'; 66_000]);
    let sent = connection.send_trailers(&mut client, stream, &large);
    assert_eq!(sent, Err(SendError::FieldSectionTooLarge(65_536)));
    let sent = connection.send_trailers(&mut client, stream, &Fields::response(200));
    assert!(matches!(sent, Err(SendError::Malformed(_))));
    connection.finish(&mut client, stream).unwrap();
    assert!(is_invalid(&connection.finish(&mut client, stream)));
    assert!(is_invalid(&connection.send_body(&mut client, stream, b"x")));
    let response = Fields::response(200);
    assert!(is_invalid(&connection.send_response(&mut client, stream, &response, true)));

    let mut server = world.pair.end(Side::Server);
    assert!(is_invalid(&world.server.send_request(&mut server, &get(), None, true)));
    let sent = world.try_respond(stream, &response, true);
    assert_eq!(sent, Err(SendError::UnknownStream), "not accepted yet");
    world.settle();
    let mut server = world.pair.end(Side::Server);
    assert!(is_invalid(&world.server.send_body(&mut server, stream, b"x")), "before the head");
    assert!(is_invalid(&world.server.finish(&mut server, stream)));
    let sent = world.try_respond(stream, &Fields::response(101), true);
    assert!(matches!(sent, Err(SendError::Malformed(_))));
}

#[test]
fn streams_are_limited_by_the_transport() {
    let mut world = World::default();
    world.pair.limits[Side::Client as usize][Dir::Bi.index()] = 1;
    world.request(&get(), true);
    let mut end = world.pair.end(Side::Client);
    let sent = world.client.send_request(&mut end, &get(), None, true);
    assert_eq!(sent, Err(SendError::StreamsBlocked));
    assert_eq!(world.client.exchanges(), 1);
}

#[test]
fn goaway_draws_a_line() {
    let (mut world, first) = World::asked(true);
    world.server_events();
    world.server.announce_goaway(&mut world.pair.end(Side::Server)).unwrap();
    // The request was sent before the announcement arrived: it is still served.
    let second = world.ask(&get(), true);
    assert_eq!(world.client_events(), [Event::GoAway { id: (1 << 62) - 4 }]);
    let mut end = world.pair.end(Side::Client);
    let sent = world.client.send_request(&mut end, &get(), None, true);
    assert_eq!(sent, Err(SendError::GoingAway));
    world.server.goaway(&mut world.pair.end(Side::Server)).unwrap();
    world.settle();
    assert_eq!(world.client_events(), [Event::GoAway { id: 8 }]);
    for stream in [first, second] {
        world.respond(stream, &Fields::response(200), true);
    }
    world.settle();
    let finished = |stream| Event::Finished { stream };
    let events = world.client_events();
    assert!(events.contains(&finished(first)) && events.contains(&finished(second)));
    assert_eq!(world.server.exchanges(), 0);
}

#[test]
fn goaway_rejects_what_had_not_arrived() {
    let (mut world, first) = World::asked(false);
    world.server_events();
    let second = world.request(&get(), false);
    let third = world.request(&get(), true);
    world.server.goaway(&mut world.pair.end(Side::Server)).unwrap();
    world.server.process(&mut world.pair.end(Side::Server)).unwrap();
    assert_eq!(world.server.exchanges(), 1);
    for stream in [second, third] {
        assert!(world.pair.resets.contains(&(Side::Server, stream, Code::REQUEST_REJECTED)));
    }
    world.settle();
    let code = Code::REQUEST_REJECTED;
    let events = world.client_events();
    assert_eq!(events[0], Event::GoAway { id: 4 });
    for stream in [second, third] {
        let failed = |event: &&Event| matches!(event, Event::Failed { stream: id, code: c, .. } if (*id, *c) == (stream, code));
        assert_eq!(events.iter().filter(failed).count(), 1);
    }
    assert_eq!(world.client.exchanges(), 1);
    assert!(world.client.finish(&mut world.pair.end(Side::Client), first).is_ok());
    assert_eq!(world.server_events(), []);
}

#[test]
fn goaway_before_the_control_stream_is_open() {
    let mut world = World::default();
    world.server.goaway(&mut world.pair.end(Side::Server)).unwrap();
    world.settle();
    assert_eq!(world.client_events(), [Event::GoAway { id: 0 }]);
    world.client.goaway(&mut world.pair.end(Side::Client)).unwrap();
    world.client.goaway(&mut world.pair.end(Side::Client)).unwrap();
    world.settle();
    assert_eq!(world.server_events(), [Event::GoAway { id: 0 }]);
    assert_eq!(world.pair.closed, [None, None]);
}

/// A server's whole response, one byte and one call at a time.
#[test]
fn trickled_response() {
    let (mut bench, stream) = Bench::asking(true);
    assert_eq!(stream, StreamId::new(Side::Client, Dir::Bi, 0));
    let bytes = [
        &[0x01, 0x03, 0x00, 0x00, 0xd8][..],                     // 103
        &[0x40, 0x01, 0x80, 0x00, 0x00, 0x03, 0x00, 0x00, 0xd9], // 200, long varints
        &[0x00, 0x02, 1, 2, 0x00, 0x00, 0x00, 0x01, 3],          // 2, 0 and 1 bytes of body
        &[0x01, 0x03, 0x00, 0x00, 0xc2],                         // trailers
    ]
    .concat();
    bench.play(&[script(Stream::Response, &bytes, Ending::Fin)], 1);
    bench.events.retain(|event| !matches!(event, Event::Data { .. }));
    let order = |event: &Event| match event {
        Event::Interim { .. } => 0,
        Event::Headers { .. } => 1,
        Event::Trailers { .. } => 2,
        Event::Finished { .. } => 3,
        event => panic!("{event:?}"),
    };
    assert!(bench.events.iter().map(order).eq(0..4));
    assert_eq!(bench.connection.exchanges(), 0);
}

/// A stream that the peer reset is not read, and the reset is reported once.
#[test]
fn a_reset_response_is_told_once() {
    let (mut world, stream) = World::asked(false);
    world.respond(stream, &Fields::response(200), false);
    world.settle();
    world.client_events();
    world.server.reset(&mut world.pair.end(Side::Server), stream, Code::INTERNAL_ERROR).unwrap();
    assert_eq!(world.server.exchanges(), 1, "the request may still be read");
    world.settle();
    assert_eq!(world.client_events(), [Event::Reset { stream, code: Code::INTERNAL_ERROR }]);
    let mut end = world.pair.end(Side::Client);
    let read = world.client.read_body(&mut end, stream, &mut [0]);
    assert_eq!(read, Err(ReceiveError::UnknownStream));
    assert_eq!(world.server.exchanges(), 0);
}

#[test]
fn a_connection_is_kept_alive_while_a_response_is_awaited() {
    let mut world = World::default();
    world.turn();
    assert_eq!(world.pair.kept_alive, [false; 2]);
    let mut end = world.pair.end(Side::Client);
    let stream = world.client.send_request(&mut end, &get(), None, true).unwrap();
    world.turn();
    assert_eq!(world.pair.kept_alive, [true, false], "only the client waits");
    let mut end = world.pair.end(Side::Server);
    let head = Fields::new().with(":status", "204");
    world.server.send_response(&mut end, stream, &head, true).unwrap();
    world.turn();
    world.turn();
    assert_eq!(world.pair.kept_alive, [false; 2]);
}
