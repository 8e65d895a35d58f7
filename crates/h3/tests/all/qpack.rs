//! Dynamic tables between two connections and against a raw peer (RFC 9204).

use crate::common::Ending::{Fin, Open};
use crate::common::Stream::{Bi, Uni};
use crate::common::{Bench, World, script};
use sutura_h3::{Code, Config, Event, Fields, MAX_CONTROL_BACKLOG, Transport};
use sutura_proto::{Dir, Side, StreamId};
use sutura_random::Rng;

/// Critical streams of an end, in the order in which it opens them.
const ENCODER: u64 = 1;
const DECODER: u64 = 2;

fn uni(side: Side, index: u64) -> StreamId {
    StreamId::new(side, Dir::Uni, index)
}

fn request(n: u64) -> Fields {
    Fields::request("GET", "https", "www.example.com", format!("/{n}"))
        .with("user-agent", "a browser with a long name")
        .with("x-session", "the same in each request")
}

fn response(n: u64) -> Fields {
    Fields::response(200).with("server", "a server with a name").with("x-number", n.to_string())
}

/// The size of the frames that `sender` wrote on a request stream, which nobody has read.
fn written(world: &mut World, stream: StreamId, sender: Side) -> usize {
    world.pair.waiting(stream, sender)
}

/// Sends request number `n`, answers it, and returns the sizes of both.
fn exchange(world: &mut World, n: u64) -> (usize, usize) {
    let stream = world.request(&request(n), true);
    let asked = written(world, stream, Side::Client);
    world.settle();
    let events = world.server_events();
    let [Event::Headers { fields, .. }, Event::Finished { .. }] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(fields, &request(n));
    world.respond(stream, &response(n), true);
    let answered = written(world, stream, Side::Server);
    world.settle();
    let events = world.client_events();
    let [Event::Headers { fields, .. }, Event::Finished { .. }] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(fields, &response(n));
    (asked, answered)
}

#[test]
fn what_repeats_is_sent_once() {
    let mut world = World::default().settled();
    let first = exchange(&mut world, 10);
    let second = exchange(&mut world, 11);
    assert!(first.0 > 60 && second.0 < 20, "{first:?} {second:?}");
    assert!(first.1 > 20 && second.1 < 15, "{first:?} {second:?}");
}

#[test]
fn without_a_table_at_either_end_nothing_is_inserted() {
    let without = Config::without_dynamic_table;
    for (client, server) in
        [(without(), Config::default()), (Config::default(), without()), (without(), without())]
    {
        let mut world = World::new(client, server).settled();
        let first = exchange(&mut world, 10);
        assert_eq!(exchange(&mut world, 11), first);
    }
}

/// Ends that let each other's messages wait for the table, over a transport that delivers in pieces.
#[test]
fn messages_wait_for_the_table_and_none_is_lost() {
    for seed in 0..20 {
        let config = Config::default().with_qpack_encoder_blocked_streams(16);
        let mut world = World::new(config.clone(), config).settled();
        world.pair.rng = Some(Rng::new(seed));
        let streams: Vec<StreamId> = (0..40).map(|n| world.request(&request(n), true)).collect();
        world.settle();
        let events = world.server_events();
        let heads = events.iter().filter(|event| matches!(event, Event::Headers { .. }));
        assert_eq!(heads.count(), 40, "{seed}");
        for (n, stream) in streams.iter().enumerate() {
            world.respond(*stream, &response(n as u64), true);
        }
        world.settle();
        let events = world.client_events();
        let heads: Vec<&Fields> = events
            .iter()
            .filter_map(|event| match event {
                Event::Headers { fields, .. } => Some(fields),
                _ => None,
            })
            .collect();
        assert_eq!(heads.len(), 40, "{seed}");
        assert_eq!((world.server.exchanges(), world.client.exchanges()), (0, 0));
    }
}

/// A GET whose `:authority` is the first entry of the table, which is still to come.
fn waiting() -> Vec<u8> {
    vec![0x01, 0x06, 0x02, 0x80, 0xd1, 0xd7, 0xc1, 0x10]
}

/// A server whose client has opened its control and encoder streams.
fn server() -> Bench {
    server_with(&Config::default())
}

fn server_with(config: &Config) -> Bench {
    let mut bench = Bench::with(Side::Server, config);
    bench.play(&[script(Uni, &[0x00, 0x04, 0x00], Open), script(Uni, &[0x02], Open)], 100);
    bench.events.clear();
    // The server's first instructions.
    bench.pair.take(uni(Side::Server, DECODER), Side::Server);
    bench
}

/// Capacity 100, and `:authority: a`.
const INSERT: &[u8] = &[0x3f, 0x45, 0xc0, 0x01, b'a'];

#[test]
fn a_request_waits_for_its_entry() {
    let mut bench = server();
    bench.play(&[script(Bi, &waiting(), Fin)], 100);
    assert_eq!(bench.events, []);
    bench.pair.inject(Side::Client, uni(Side::Client, ENCODER), INSERT);
    bench.work();
    let fields = Fields::new()
        .with(":method", "GET")
        .with(":scheme", "https")
        .with(":path", "/")
        .with(":authority", "a");
    let stream = StreamId::new(Side::Client, Dir::Bi, 0);
    assert_eq!(bench.events, [Event::Headers { stream, fields }, Event::Finished { stream }]);
    let feedback = bench.pair.take(uni(Side::Server, DECODER), Side::Server);
    assert_eq!(feedback, [0x80], "Section Acknowledgment");
    // An entry that no section used is acknowledged by itself.
    bench.pair.inject(Side::Client, uni(Side::Client, ENCODER), &[0x00]);
    bench.work();
    assert_eq!(bench.pair.take(uni(Side::Server, DECODER), Side::Server), [0x01]);
}

#[test]
fn a_request_that_waits_can_be_reset() {
    let mut bench = server();
    bench.play(&[script(Bi, &waiting(), Open)], 100);
    let stream = StreamId::new(Side::Client, Dir::Bi, 0);
    bench.pair.end(Side::Client).reset(stream, Code::REQUEST_CANCELLED);
    bench.work();
    assert!(matches!(bench.events[..], [Event::Reset { .. }]), "{:?}", bench.events);
    let feedback = bench.pair.take(uni(Side::Server, DECODER), Side::Server);
    assert_eq!(feedback, [0x40], "Stream Cancellation");
    bench.pair.inject(Side::Client, uni(Side::Client, ENCODER), INSERT);
    bench.work();
    assert_eq!((bench.outcome, bench.connection.exchanges()), (Ok(()), 0));
    assert_eq!(bench.pair.resets.len(), 2);
}

#[test]
fn too_many_that_wait_are_an_error() {
    let mut bench = server();
    let limit = Config::default().qpack_blocked_streams as usize;
    let scripts = vec![script(Bi, &waiting(), Fin); limit];
    bench.play(&scripts, 100);
    assert_eq!(bench.outcome, Ok(()));
    bench.play(&[script(Bi, &waiting(), Fin)], 100);
    assert_eq!(bench.outcome.unwrap_err().code, Code::QPACK_DECOMPRESSION_FAILED);
}

#[test]
fn nothing_waits_where_nothing_may_wait() {
    let config = Config::default().with_qpack_blocked_streams(0);
    let mut bench = server_with(&config);
    bench.play(&[script(Bi, &waiting(), Fin)], 100);
    assert_eq!(bench.outcome.unwrap_err().code, Code::QPACK_DECOMPRESSION_FAILED);
    // A section that need not wait may refer to the table.
    let mut bench = server_with(&config);
    bench.pair.inject(Side::Client, uni(Side::Client, ENCODER), INSERT);
    bench.work();
    bench.play(&[script(Bi, &waiting(), Fin)], 100);
    assert_eq!(bench.outcome, Ok(()));
    assert!(matches!(bench.events[..], [Event::Headers { .. }, Event::Finished { .. }]));
}

#[test]
fn streams_that_no_longer_wait_do_not_count() {
    let mut bench = server();
    let limit = Config::default().qpack_blocked_streams;
    bench.play(&vec![script(Bi, &waiting(), Open); limit as usize], 100);
    // Some streams are given up; the entry for which the others wait arrives.
    for index in 0..limit / 2 {
        let stream = StreamId::new(Side::Client, Dir::Bi, index);
        bench.pair.end(Side::Client).reset(stream, Code::REQUEST_CANCELLED);
    }
    bench.work();
    bench.pair.inject(Side::Client, uni(Side::Client, ENCODER), INSERT);
    bench.work();
    // The same request, whose `:authority` is the second entry.
    let again = [0x01, 0x06, 0x03, 0x80, 0xd1, 0xd7, 0xc1, 0x10];
    bench.play(&vec![script(Bi, &again, Open); limit as usize], 100);
    assert_eq!(bench.outcome, Ok(()));
    bench.play(&[script(Bi, &again, Open)], 100);
    assert_eq!(bench.outcome.unwrap_err().code, Code::QPACK_DECOMPRESSION_FAILED);
}

#[test]
fn errors_have_their_codes() {
    for (kind, bytes, code) in [
        (0x02, &[0x3f, 0xe2, 0x1f][..], Code::QPACK_ENCODER_STREAM_ERROR),
        (0x02, &[0x00], Code::QPACK_ENCODER_STREAM_ERROR),
        (0x03, &[0x01], Code::QPACK_DECODER_STREAM_ERROR),
        (0x03, &[0x80], Code::QPACK_DECODER_STREAM_ERROR),
    ] {
        let mut bench = Bench::new(Side::Server);
        bench.play(&[script(Uni, &[&[kind], bytes].concat(), Open)], 100);
        assert_eq!(bench.outcome.unwrap_err().code, code);
    }
    let mut bench = server();
    bench.pair.inject(Side::Client, uni(Side::Client, ENCODER), INSERT);
    let evicted = [0x01, 0x03, 0x02, 0x00, 0x81];
    bench.play(&[script(Bi, &evicted, Fin)], 100);
    assert_eq!(bench.outcome.unwrap_err().code, Code::QPACK_DECOMPRESSION_FAILED);
}

/// Streams that are reset at once leave only as many instructions as the client reads.
#[test]
fn a_flood_of_cancellations_that_nobody_reads_is_bounded() {
    // Without the limit of cancelled requests, which would end it earlier.
    let mut bench = server_with(&Config::default().with_cancelled_requests(None));
    bench.pair.limits[Side::Client as usize][Dir::Bi.index()] = 1 << 20;
    bench.pair.window = 100;
    let mut rounds = 0;
    let outcome = loop {
        let mut end = bench.pair.end(Side::Client);
        let id = end.open(Dir::Bi).unwrap();
        end.reset(id, Code::REQUEST_CANCELLED);
        let outcome = bench.connection.process(&mut bench.pair.end(Side::Server));
        crate::common::events(&mut bench.connection);
        rounds += 1;
        if outcome.is_err() || rounds > MAX_CONTROL_BACKLOG {
            break outcome;
        }
    };
    assert_eq!(outcome.unwrap_err().code, Code::EXCESSIVE_LOAD);
    assert!(rounds > 1000);
}
