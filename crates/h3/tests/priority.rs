//! From a priority field or PRIORITY_UPDATE frame to the stream that carries the response.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use common::Ending::Open;
use common::Stream::{Bi, Uni};
use common::{Bench, World, get, script};
use sutura_h3::{Event, Fields, Priority, Protection, StreamPriority};
use sutura_proto::{Dir, Side, StreamId};

fn request(urgency: u8, incremental: bool) -> StreamPriority {
    StreamPriority::Request { urgency, incremental }
}

/// What the server set last on `stream`.
fn last(world: &World, stream: StreamId) -> Option<StreamPriority> {
    let of =
        |entry: &&(Side, StreamId, StreamPriority)| (entry.0, entry.1) == (Side::Server, stream);
    world.pair.priorities.iter().rfind(of).map(|entry| entry.2)
}

fn protected(world: &World, stream: StreamId) -> Vec<Option<Protection>> {
    let of = |entry: &&(Side, StreamId, Option<Protection>)| entry.1 == stream;
    world.pair.protections.iter().filter(of).map(|entry| entry.2).collect()
}

const STREAMING: Priority =
    Priority { urgency: 1, incremental: true, burst: 3, delay: Duration::from_millis(80) };

fn start(priority: &Priority) -> (World, StreamId) {
    let mut world = World::default();
    let mut end = world.pair.end(Side::Client);
    let stream = world.client.send_request(&mut end, &get(), Some(priority), true).unwrap();
    world.settle();
    (world, stream)
}

#[test]
fn the_request_decides() {
    let (mut world, stream) = start(&STREAMING);
    let Some(Event::Headers { fields, .. }) = world.server_events().into_iter().next() else {
        panic!("no request");
    };
    assert_eq!(fields.get("priority"), Some(&b"u=1, i, exp_b=3, exp_d=80"[..]));
    assert_eq!(world.server.priority(stream), Some(STREAMING));
    assert_eq!(last(&world, stream), None, "not before the response");
    world.respond(stream, &Fields::response(200), false);
    assert_eq!(last(&world, stream), Some(request(1, true)));
    let protection = Protection { burst: 3, delay: Duration::from_millis(80), incremental: true };
    assert_eq!(protected(&world, stream), [Some(protection)]);
}

#[test]
fn no_wish_is_the_default_without_protection() {
    let mut world = World::default();
    let stream = world.request(&get(), true);
    world.settle();
    world.respond(stream, &Fields::response(200), true);
    assert_eq!(last(&world, stream), Some(request(3, false)));
    assert_eq!(protected(&world, stream), []);
}

#[test]
fn an_own_priority_field_is_kept() {
    let mut world = World::default();
    let fields = get().with("priority", "u=6");
    let mut end = world.pair.end(Side::Client);
    let stream = world.client.send_request(&mut end, &fields, Some(&STREAMING), true).unwrap();
    world.settle();
    let events = world.server_events();
    assert_eq!(events[0], Event::Headers { stream, fields });
}

/// RFC 9218 section 8.
#[test]
fn the_responses_field_overrides_what_it_names() {
    let (mut world, stream) = start(&STREAMING);
    let head = Fields::response(200).with("priority", "u=5, exp_b=0, exp_d=broken");
    world.respond(stream, &head, false);
    assert_eq!(last(&world, stream), Some(request(5, true)));
    assert_eq!(protected(&world, stream), []);
    let (mut world, stream) = start(&Priority::default());
    world.respond(stream, &Fields::response(200).with("priority", "i, exp_b=2"), false);
    assert_eq!(last(&world, stream), Some(request(3, true)));
    let protection = Protection { burst: 2, delay: Duration::ZERO, incremental: true };
    assert_eq!(protected(&world, stream), [Some(protection)]);
}

#[test]
fn updates_apply_before_and_during_the_response() {
    let (mut world, stream) = start(&STREAMING);
    world.server_events();
    let update = |world: &mut World, priority: &Priority| {
        let mut end = world.pair.end(Side::Client);
        world.client.send_priority_update(&mut end, stream, priority).unwrap();
        world.settle();
        assert_eq!(world.server_events(), [Event::PriorityUpdate { stream, priority: *priority }]);
    };
    let later = Priority { urgency: 7, incremental: false, burst: 1, delay: Duration::ZERO };
    update(&mut world, &later);
    assert_eq!(last(&world, stream), None);
    world.respond(stream, &Fields::response(200), false);
    assert_eq!(last(&world, stream), Some(request(7, false)));
    update(&mut world, &STREAMING);
    assert_eq!(last(&world, stream), Some(request(1, true)));
    update(&mut world, &Priority::default());
    assert_eq!(last(&world, stream), Some(request(3, false)));
    let protection = |burst, delay, incremental| Protection {
        burst,
        delay: Duration::from_millis(delay),
        incremental,
    };
    assert_eq!(
        protected(&world, stream),
        [Some(protection(1, 0, false)), Some(protection(3, 80, true)), None,]
    );
    // Nothing to take back: nothing is said.
    update(&mut world, &Priority { urgency: 2, ..Priority::default() });
    assert_eq!(protected(&world, stream).len(), 3);
}

/// The transport may still have to send a response that was handed over entirely.
#[test]
fn updates_reach_responses_that_were_handed_over() {
    let (mut world, stream) = start(&Priority::default());
    world.respond(stream, &Fields::response(200), false);
    world.server_events();
    let mut end = world.pair.end(Side::Server);
    world.server.send_body(&mut end, stream, &[0; 10_000]).unwrap();
    world.server.finish(&mut end, stream).unwrap();
    assert_eq!(world.server.exchanges(), 0);
    let mut end = world.pair.end(Side::Client);
    world.client.send_priority_update(&mut end, stream, &STREAMING).unwrap();
    world.settle();
    assert_eq!(last(&world, stream), Some(request(1, true)));
    assert_eq!(protected(&world, stream).len(), 1);
    assert_eq!(world.server_events(), []);
}

/// A PRIORITY_UPDATE that overtakes its request beats the request's header.
#[test]
fn updates_that_come_first_win() {
    let update = |value: &str| {
        let mut frame = vec![0x00, 0x04, 0x00, 0x80, 0x0f, 0x07, 0x00, 1 + value.len() as u8, 0];
        frame.extend_from_slice(value.as_bytes());
        frame
    };
    // GET with `priority: i`.
    let get = [
        &[0x01, 0x13, 0x00, 0x00, 0xd1, 0xd7, 0xc1, 0x50, 0x01, b'a'][..],
        &[0x27, 0x01],
        b"priority",
        &[0x01, b'i'],
    ]
    .concat();
    assert_eq!(get.len(), 2 + 0x13 + 1);
    for (value, urgency, incremental) in [("u=0", 0, false), ("", 3, false), ("u=,", 3, true)] {
        let mut bench = Bench::new(Side::Server);
        let mut get = get.clone();
        get[1] = (get.len() - 2) as u8;
        bench.play(&[script(Uni, &update(value), Open), script(Bi, &get, Open)], 3);
        assert_eq!(bench.outcome, Ok(()));
        let priority = bench.connection.priority(StreamId::new(Side::Client, Dir::Bi, 0)).unwrap();
        assert_eq!((priority.urgency, priority.incremental), (urgency, incremental), "{value}");
        let told = bench.events.iter().any(|event| matches!(event, Event::PriorityUpdate { .. }));
        assert!(!told, "the request's own event says it all");
    }
}

#[test]
fn the_clients_own_body_has_the_priority_too() {
    let (world, stream) = start(&STREAMING);
    assert!(world.pair.priorities.contains(&(Side::Client, stream, request(1, true))));
}

#[test]
fn ended_exchanges_take_no_updates() {
    let (mut world, stream) = start(&STREAMING);
    world.respond(stream, &Fields::response(204), true);
    world.settle();
    let mut end = world.pair.end(Side::Client);
    let sent = world.client.send_priority_update(&mut end, stream, &STREAMING);
    assert!(sent.is_err());
}
