//! HTTP datagrams (RFC 9297 section 2).

use crate::common::Ending::Open;
use crate::common::Stream::{Bi, Uni};
use crate::common::{Bench, GET, World, get, script};
use bytes::Bytes;
use sutura_h3::{Code, Config, Connection, Event, Fields, MAX_QUEUED_DATAGRAMS, SendDatagramError};
use sutura_proto::{DatagramOptions, Dir, Side, StreamId};

fn config() -> Config {
    Config::default().with_enable_datagrams(true).with_grease(None)
}

fn world() -> World {
    World::new(config(), config()).settled()
}

#[test]
fn datagrams_of_two_exchanges_go_both_ways() {
    let mut world = world();
    let streams = [world.request(&get(), false), world.request(&get(), false)];
    world.settle();
    world.server_events();
    for stream in streams {
        let payload = stream.0.to_string();
        let mut end = world.pair.end(Side::Client);
        world
            .client
            .send_datagram(&mut end, stream, payload.as_bytes(), &DatagramOptions::default())
            .unwrap();
        let mut end = world.pair.end(Side::Server);
        world.server.send_datagram(&mut end, stream, b"", &DatagramOptions::default()).unwrap();
        world
            .server
            .send_datagram(&mut end, stream, b"second", &DatagramOptions::default())
            .unwrap();
    }
    world.settle();
    let told = streams.map(|stream| Event::Datagram { stream });
    assert_eq!(world.server_events(), told);
    assert_eq!(world.client_events(), told);
    for stream in streams {
        assert_eq!(world.server.recv_datagram(stream).unwrap(), stream.0.to_string());
        assert_eq!(world.server.recv_datagram(stream), None);
        assert_eq!(world.client.recv_datagram(stream).unwrap(), "");
        assert_eq!(world.client.recv_datagram(stream).unwrap(), "second");
    }
}

#[test]
fn what_does_not_fit_or_is_not_agreed_on_is_not_sent() {
    let mut world = world();
    let stream = world.request(&get(), false);
    let mut end = world.pair.end(Side::Client);
    assert_eq!(world.client.max_datagram_size(&mut end, stream), Some(99));
    let mut send = |stream, length: usize| {
        world.client.send_datagram(&mut end, stream, &vec![0; length], &DatagramOptions::default())
    };
    assert_eq!(send(stream, 99), Ok(()));
    assert_eq!(send(stream, 100), Err(SendDatagramError::TooLarge));
    assert_eq!(send(StreamId(4), 1), Err(SendDatagramError::UnknownStream));
    world.client.finish(&mut world.pair.end(Side::Client), stream).unwrap();
    let mut end = world.pair.end(Side::Client);
    let late = world.client.send_datagram(&mut end, stream, b"late", &DatagramOptions::default());
    assert_eq!(late, Err(SendDatagramError::UnknownStream), "after the end of the request");

    for (client, server) in [(Config::default(), config()), (config(), Config::default())] {
        let mut world = World::new(client, server).settled();
        let stream = world.request(&get(), false);
        let mut end = world.pair.end(Side::Client);
        let outcome =
            world.client.send_datagram(&mut end, stream, b"", &DatagramOptions::default());
        assert_eq!(outcome, Err(SendDatagramError::Unsupported));
        assert_eq!(world.client.max_datagram_size(&mut end, stream), None);
    }
}

/// A server whose client sends a datagram.
fn receive(datagram: &[u8]) -> (Bench, Result<(), sutura_h3::Error>) {
    let mut bench = Bench::new(Side::Server);
    bench.connection = Connection::server(config());
    bench.pair.datagrams.as_mut().unwrap()[Side::Server as usize]
        .push_back(Bytes::copy_from_slice(datagram));
    bench.work();
    let outcome = bench.outcome;
    (bench, outcome)
}

#[test]
fn datagrams_that_overtake_their_request_wait_within_bounds() {
    let (mut bench, outcome) = receive(b"\x00early");
    assert_eq!(outcome, Ok(()));
    for _ in 0..10 * MAX_QUEUED_DATAGRAMS {
        let queues = bench.pair.datagrams.as_mut().unwrap();
        queues[Side::Server as usize].push_back(Bytes::from_static(b"\x00early"));
    }
    bench.work();
    bench.play(&[script(Bi, GET, Open)], 100);
    let stream = StreamId::new(Side::Client, Dir::Bi, 0);
    let mut kept = 0;
    while let Some(payload) = bench.connection.recv_datagram(stream) {
        assert_eq!(payload, "early");
        kept += 1;
    }
    assert_eq!(kept, MAX_QUEUED_DATAGRAMS);
    // Datagrams that come after the end are dropped.
    let mut end = bench.pair.end(Side::Server);
    bench.connection.send_response(&mut end, stream, &Fields::response(200), true).unwrap();
    bench.connection.stop(&mut end, stream, Code::NO_ERROR).unwrap();
    let queues = bench.pair.datagrams.as_mut().unwrap();
    queues[Side::Server as usize].push_back(Bytes::from_static(b"\x00late"));
    bench.work();
    assert_eq!((bench.outcome, bench.connection.recv_datagram(stream)), (Ok(()), None));
}

#[test]
fn errors_have_their_codes() {
    for (datagram, code) in [
        (&b""[..], Code::DATAGRAM_ERROR),
        (b"\x40", Code::DATAGRAM_ERROR),
        (b"\xff\xff\xff\xff\xff\xff\xff\xff", Code::DATAGRAM_ERROR),
        // The client may open 100 streams.
        (b"\x40\x64", Code::ID_ERROR),
    ] {
        let (_, outcome) = receive(datagram);
        assert_eq!(outcome.map_err(|error| error.code), Err(code), "{datagram:x?}");
    }
    assert_eq!(receive(b"\x40\x63").1, Ok(()));
    // HTTP datagrams without QUIC datagrams below.
    let mut bench = Bench::new(Side::Server);
    bench.connection = Connection::server(config());
    bench.pair.datagrams = None;
    bench.play(&[script(Uni, &[0x00, 0x04, 0x02, 0x33, 0x01], Open)], 100);
    assert_eq!(bench.outcome.unwrap_err().code, Code::SETTINGS_ERROR);
}
