//! WebTransport sessions and their streams (draft-ietf-webtrans-http3).

use crate::common::Ending::{Fin, Open};
use crate::common::Stream::{Bi, Uni};
use crate::common::{Bench, GET, World, get, script};
use sutura_h3::{
    Code, Config, Event, Fields, MAX_BUFFERED_SESSION_STREAMS, Read, SendError, SessionClose,
    Transport, WebTransportDraft,
};
use sutura_proto::{Dir, Side, StreamId};
use sutura_random::Rng;

fn config() -> Config {
    Config::for_webtransport().with_grease(None)
}

fn connect() -> Fields {
    Fields::request("CONNECT", "https", "example.com", "/room")
        .with(":protocol", WebTransportDraft::Draft15.protocol())
}

fn world() -> World {
    World::new(config(), config()).settled()
}

/// Two ends with a session that is established.
fn in_session() -> (World, StreamId) {
    let mut world = world();
    let session = begin(&mut world);
    (world, session)
}

fn begin(world: &mut World) -> StreamId {
    let session = world.ask(&connect(), false);
    let head = Event::Headers { stream: session, fields: connect() };
    assert_eq!(world.server_events(), [head]);
    world.respond(session, &Fields::response(200), false);
    world.settle();
    assert!(matches!(world.client_events()[..], [Event::Headers { .. }]));
    session
}

/// Opens a stream and writes some bytes on it.
fn open(world: &mut World, side: Side, session: StreamId, dir: Dir) -> StreamId {
    let World { pair, client, server } = world;
    let connection = if side.is_client() { client } else { server };
    let mut end = pair.end(side);
    let opened = connection.open_session_stream(&mut end, session, dir).unwrap();
    let mut rest = [&opened.unsent[..], b"hello"].concat();
    while !rest.is_empty() {
        let written = end.write(opened.id, &rest).unwrap_or(0);
        rest.drain(..written);
    }
    opened.id
}

fn accept(world: &mut World, side: Side, session: StreamId, dir: Dir) -> Option<StreamId> {
    let connection = if side.is_client() { &mut world.client } else { &mut world.server };
    connection.accept_session_stream(session, dir)
}

#[test]
fn streams_of_both_kinds_go_both_ways_without_their_header() {
    for seed in 0..50 {
        let (mut world, session) = in_session();
        world.pair.rng = (seed > 0).then(|| Rng::new(seed));
        for (side, dir) in [
            (Side::Client, Dir::Bi),
            (Side::Client, Dir::Uni),
            (Side::Server, Dir::Bi),
            (Side::Server, Dir::Uni),
        ] {
            let stream = open(&mut world, side, session, dir);
            world.settle();
            let peer = side.peer();
            let events =
                if peer.is_client() { world.client_events() } else { world.server_events() };
            assert_eq!(events, [Event::SessionStream { session, dir }]);
            assert_eq!(accept(&mut world, peer, session, dir), Some(stream));
            assert_eq!(accept(&mut world, peer, session, dir), None);
            world.pair.rng = None;
            let mut buffer = [0; 10];
            let read = world.pair.end(peer).read(stream, &mut buffer);
            assert_eq!(read, Ok(Read { bytes: 5, finished: false }));
            assert_eq!(&buffer[..5], b"hello");
        }
        assert_eq!(world.server.exchanges(), 1, "streams of sessions are no requests");
    }
}

#[test]
fn a_session_needs_what_both_ends_have_announced() {
    let without = Config::default().with_enable_connect_protocol(true);
    let mut world = World::new(config(), without.with_enable_datagrams(true)).settled();
    let mut end = world.pair.end(Side::Client);
    let outcome = world.client.send_request(&mut end, &connect(), None, false);
    assert!(matches!(outcome, Err(SendError::InvalidState(_))));
    assert_eq!(world.client.webtransport_draft(), None);

    let mut world = self::world();
    assert_eq!(world.client.webtransport_draft(), Some(WebTransportDraft::Draft15));
    assert_eq!(world.server.webtransport_draft(), Some(WebTransportDraft::Draft15));
    let old = Fields::request("CONNECT", "https", "a", "/").with(":protocol", "webtransport");
    let outcome = world.client.send_request(&mut world.pair.end(Side::Client), &old, None, false);
    assert!(matches!(outcome, Err(SendError::InvalidState(_))), "both speak a newer draft");
}

/// How one end closes a session: what the other hears, and what becomes of the streams.
fn closes(side: Side, close: &SessionClose) {
    let (mut world, session) = in_session();
    let streams: Vec<StreamId> = [Side::Client, Side::Server]
        .iter()
        .flat_map(|side| [Dir::Bi, Dir::Uni].map(|dir| (*side, dir)))
        .map(|(side, dir)| open(&mut world, side, session, dir))
        .collect();
    world.settle();
    world.server_events();
    world.client_events();
    let World { pair, client, server } = &mut world;
    let closer = if side.is_client() { client } else { server };
    closer.close_session(&mut pair.end(side), session, close).unwrap();
    let again = closer.close_session(&mut pair.end(side), session, close);
    assert_eq!(again, Err(SendError::UnknownStream));
    let late = closer.open_session_stream(&mut pair.end(side), session, Dir::Bi);
    assert_eq!(late, Err(SendError::UnknownStream));
    world.settle();
    let closed = Event::SessionClosed { session, close: Some(close.clone()) };
    let (own, heard) = match side {
        Side::Client => (world.client_events(), world.server_events()),
        Side::Server => (world.server_events(), world.client_events()),
    };
    assert!(heard.contains(&closed), "{heard:?}");
    assert!(!own.iter().any(|event| matches!(event, Event::SessionClosed { .. })));
    assert_eq!((world.client.exchanges(), world.server.exchanges()), (0, 0));
    // Both ends abandon all streams in all directions.
    for stream in streams {
        for side in [Side::Client, Side::Server] {
            let sends = stream.dir() == Dir::Bi || stream.initiator() == side;
            let receives = stream.dir() == Dir::Bi || stream.initiator() != side;
            let gone = (side, stream, Code::WT_SESSION_GONE);
            assert_eq!(world.pair.resets.contains(&gone), sends);
            assert_eq!(world.pair.stops.contains(&gone), receives);
        }
    }
    // The next one may begin.
    begin(&mut world);
}

#[test]
fn either_end_closes_a_session_and_all_its_streams() {
    for side in [Side::Client, Side::Server] {
        closes(side, &SessionClose { code: 0xffff_ffff, reason: "bye".to_owned() });
        closes(side, &SessionClose::default());
    }
}

#[test]
fn the_end_of_the_exchange_is_the_end_of_the_session() {
    for side in [Side::Client, Side::Server] {
        let (mut world, session) = in_session();
        let stream = open(&mut world, side.peer(), session, Dir::Uni);
        world.settle();
        let World { pair, client, server } = &mut world;
        let breaker = if side.is_client() { client } else { server };
        breaker.cancel(&mut pair.end(side), session, Code::REQUEST_CANCELLED).unwrap();
        world.settle();
        let ended = Event::SessionClosed { session, close: None };
        assert!(world.client_events().contains(&ended));
        assert!(world.server_events().contains(&ended));
        assert!(world.pair.stops.contains(&(side, stream, Code::WT_SESSION_GONE)));
    }
}

#[test]
fn a_refused_session_takes_its_streams_with_it() {
    let mut world = world();
    let session = world.request(&connect(), false);
    let stream = open(&mut world, Side::Client, session, Dir::Uni);
    world.settle();
    world.server_events();
    world.respond(session, &Fields::response(404), true);
    world.settle();
    let ended = Event::SessionClosed { session, close: None };
    assert!(world.server_events().contains(&ended));
    assert!(world.client_events().contains(&ended));
    assert!(world.pair.stops.contains(&(Side::Server, stream, Code::WT_SESSION_GONE)));
}

#[test]
fn a_session_is_drained_once() {
    let (mut world, session) = in_session();
    for _ in 0..2 {
        world.server.drain_session(&mut world.pair.end(Side::Server), session).unwrap();
    }
    world.settle();
    // The connection reads the body of the exchange itself.
    let mut events = world.client_events();
    events.retain(|event| *event != Event::Data { stream: session });
    assert_eq!(events, [Event::SessionDraining { session }]);
    open(&mut world, Side::Client, session, Dir::Bi);
    world.settle();
    assert_eq!(world.server_events(), [Event::SessionStream { session, dir: Dir::Bi }]);
}

/// The bytes of a request for a session, which any connection understands.
fn request_bytes() -> Vec<u8> {
    let server = config().with_qpack_max_table_capacity(0);
    let mut world = World::new(config(), server).settled();
    let session = world.request(&connect(), false);
    world.pair.take(session, Side::Client)
}

#[test]
fn streams_that_come_first_wait_for_their_session_within_a_bound() {
    let mut bench = Bench::with(Side::Server, &config());
    let flood = MAX_BUFFERED_SESSION_STREAMS + 20;
    bench.pair.limits = [[1000; 2]; 2];
    bench.play(&[script(Bi, &[], Open)], 10);
    for at in 0..flood {
        let (stream, kind) = if at % 2 == 0 { (Uni, 0x54) } else { (Bi, 0x41) };
        bench.play(&[script(stream, &[0x40, kind, 0, b'x'], Open)], 10);
    }
    bench.outcome.unwrap();
    let rejected: Vec<_> = bench.pair.stops.clone();
    assert_eq!(rejected.len(), 20);
    assert!(rejected.iter().all(|(_, _, code)| *code == Code::WT_BUFFERED_STREAM_REJECTED));
    assert_eq!(bench.pair.resets.len(), 10, "of the bidirectional ones");
    assert_eq!(bench.events, []);

    let session = StreamId(0);
    bench.pair.inject(Side::Client, session, &request_bytes());
    bench.work();
    assert!(matches!(bench.events[..], [.., Event::Headers { .. }]));
    // The session is not accepted yet: there is no room for more.
    bench.play(&[script(Uni, &[0x40, 0x54, 0], Open)], 10);
    assert_eq!(bench.pair.stops.len(), 21);
    let mut end = bench.pair.end(Side::Server);
    bench.connection.send_response(&mut end, session, &Fields::response(200), false).unwrap();
    bench.play(&[script(Uni, &[0x40, 0x54, 0], Open)], 10);
    let mut taken = 0;
    for dir in [Dir::Bi, Dir::Uni] {
        taken +=
            std::iter::from_fn(|| bench.connection.accept_session_stream(session, dir)).count();
    }
    assert_eq!((taken, bench.pair.stops.len()), (MAX_BUFFERED_SESSION_STREAMS + 1, 21));
}

#[test]
fn streams_of_no_session_are_rejected() {
    let mut bench = Bench::with(Side::Server, &config());
    bench.play(&[script(Bi, GET, Fin), script(Uni, &[0x40, 0x54, 0], Open)], 10);
    // The request is not answered yet.
    let stream = StreamId(2);
    assert_eq!(bench.pair.stops, [(Side::Server, stream, Code::WT_BUFFERED_STREAM_REJECTED)]);
    let mut end = bench.pair.end(Side::Server);
    bench.connection.send_response(&mut end, StreamId(0), &Fields::response(200), true).unwrap();
    bench.play(&[script(Uni, &[0x40, 0x54, 0], Open)], 1);
    assert_eq!(bench.pair.stops[1], (Side::Server, StreamId(6), Code::WT_SESSION_GONE));
    bench.outcome.unwrap();
}

#[test]
fn a_second_session_is_rejected_unseen() {
    let mut bench = Bench::with(Side::Server, &config());
    let request = request_bytes();
    bench.play(&[script(Bi, &request, Open), script(Bi, &request, Open)], 1000);
    let heads = bench.events.iter().filter(|event| matches!(event, Event::Headers { .. }));
    assert_eq!(heads.count(), 1);
    assert_eq!(bench.pair.resets, [(Side::Server, StreamId(4), Code::REQUEST_REJECTED)]);
    bench.outcome.unwrap();
}

/// The code with which a connection that speaks WebTransport is closed.
fn code(side: Side, scripts: &[crate::common::Script], step: usize) -> Option<Code> {
    let mut bench = Bench::with(side, &config());
    bench.play(scripts, step);
    bench.outcome.err().map(|error| error.code)
}

#[test]
fn what_the_draft_forbids_ends_the_connection() {
    for step in [1, 100] {
        // No identifiers of requests; one of a request that is not permitted yet.
        for session in [&[1][..], &[2], &[3], &[0x7f, 0xf0]] {
            let uni = [&[0x40, 0x54], session].concat();
            assert_eq!(code(Side::Server, &[script(Uni, &uni, Open)], step), Some(Code::ID_ERROR));
        }
        let other = script(Bi, &[0x21, 0], Open);
        let expected = Some(Code::STREAM_CREATION_ERROR);
        assert_eq!(code(Side::Client, &[other], step), expected);
        let late = [GET, &[0x40, 0x41, 0]].concat();
        let expected = Some(Code::FRAME_ERROR);
        assert_eq!(code(Side::Server, &[script(Bi, &late, Open)], step), expected);
        let settings = [0, 4, 5, 0xac, 0x7c, 0xf0, 0, 2];
        let expected = Some(Code::SETTINGS_ERROR);
        assert_eq!(code(Side::Client, &[script(Uni, &settings, Open)], step), expected);
    }
}

#[test]
fn streams_that_end_within_their_header_are_no_matter() {
    for side in [Side::Client, Side::Server] {
        for stream in [Uni, Bi] {
            let kind = if stream == Uni { 0x54 } else { 0x41 };
            for ending in [Fin, crate::common::Ending::Reset] {
                // A server reports a request that is cut short as a broken frame.
                if (side, stream, ending) == (Side::Server, Bi, Fin) {
                    continue;
                }
                let cut = script(stream, &[0x40, kind, 0x40], ending);
                assert_eq!(code(side, &[cut], 1), None, "{side:?} {stream:?} {ending:?}");
            }
        }
    }
}

#[test]
fn malformed_capsules_end_the_session_alone() {
    let long = [&[0x68, 0x43, 0x44, 0x10][..], &[0; 0x410]].concat();
    let after = [0x68, 0x43, 4, 0, 0, 0, 1, 0x68];
    for (capsules, expected) in [
        (&[0x68, 0x43, 2, 0, 0][..], Code::MESSAGE_ERROR),
        (&[0x68, 0x43, 5, 0, 0, 0, 1, 0xff], Code::MESSAGE_ERROR),
        (&long, Code::MESSAGE_ERROR),
        (&after, Code::MESSAGE_ERROR),
        (&[0x68, 0x43, 0x80, 1, 0, 1], Code::DATAGRAM_ERROR),
    ] {
        let (mut world, session) = in_session();
        let mut end = world.pair.end(Side::Client);
        world.client.send_body(&mut end, session, capsules).unwrap();
        world.settle();
        let ended = Event::SessionClosed { session, close: None };
        assert!(world.server_events().contains(&ended), "{capsules:?}");
        assert!(world.pair.resets.contains(&(Side::Server, session, expected)), "{capsules:?}");
        assert_eq!(world.server.exchanges(), 0);
    }
}

#[test]
fn sessions_go_on_while_the_server_goes_away() {
    let (mut world, session) = in_session();
    world.server.goaway(&mut world.pair.end(Side::Server)).unwrap();
    let stream = open(&mut world, Side::Client, session, Dir::Bi);
    world.settle();
    assert_eq!(accept(&mut world, Side::Server, session, Dir::Bi), Some(stream));
    // A request is rejected nevertheless.
    let late = world.pair.end(Side::Client).open(Dir::Bi).unwrap();
    world.pair.inject(Side::Client, late, GET);
    world.settle();
    assert!(world.pair.resets.contains(&(Side::Server, late, Code::REQUEST_REJECTED)));
}

#[test]
fn ends_without_webtransport_take_no_streams_of_sessions() {
    let mut world = World::default().settled();
    let stream = world.pair.end(Side::Client).open(Dir::Uni).unwrap();
    world.pair.inject(Side::Client, stream, &[0x40, 0x54, 0]);
    world.settle();
    assert!(world.pair.stops.contains(&(Side::Server, stream, Code::STREAM_CREATION_ERROR)));
    world.ask(&get(), true);
    assert_eq!(world.requested(), get());
}
