//! From a priority field or PRIORITY_UPDATE frame to the stream that carries the response.

use std::time::Duration;

use crate::common::Ending::{Fin, Open, Reset};
use crate::common::Stream::{Bi, Uni};
use crate::common::{Bench, GET, World, default_protection, get, script, update_frame};
use sutura_h3::{
    Class, Code, Config, DefaultProtection, DefaultProtections, Event, Extension, Fields,
    FrameAction, FrameContent, FrameEvent, Priority, SendError, Urgency, Weight,
};
use sutura_proto::{Dir, Priority as StreamPriority, Protection, Side, StreamId};

fn request(urgency: u8, incremental: bool) -> StreamPriority {
    StreamPriority::new(urgency, incremental).unwrap()
}

fn shared(urgency: u8, incremental: bool, thousandths: u32, parents: &[Class]) -> StreamPriority {
    let weight = Weight::new(thousandths).unwrap();
    let parents = (!parents.is_empty()).then(|| parents.into());
    request(urgency, incremental).with_weight(weight).with_parents(parents)
}

fn class(name: &str, urgency: u8) -> Class {
    let urgency = Urgency::new(urgency).unwrap();
    Class::default().with_name(Some(name.into())).with_urgency(urgency)
}

/// The priority that the server last set on `stream`.
fn last(world: &World, stream: StreamId) -> Option<StreamPriority> {
    let of =
        |entry: &&(Side, StreamId, StreamPriority)| (entry.0, entry.1) == (Side::Server, stream);
    world.pair.priorities.iter().rfind(of).map(|entry| entry.2.clone())
}

fn protected(world: &World, stream: StreamId) -> Vec<Option<Protection>> {
    let of = |entry: &&(Side, StreamId, Option<Protection>)| entry.1 == stream;
    world.pair.protections.iter().filter(of).map(|entry| entry.2.clone()).collect()
}

fn streaming() -> Priority {
    let delay = Duration::from_millis(80);
    Priority::default().with_urgency(1).with_incremental(true).with_burst(Some(3)).with_delay(delay)
}

fn start(priority: &Priority) -> (World, StreamId) {
    let mut world = World::default();
    let mut end = world.pair.end(Side::Client);
    let stream = world.client.send_request(&mut end, &get(), Some(priority), true).unwrap();
    world.settle();
    (world, stream)
}

#[test]
fn the_request_decides() {
    let (mut world, stream) = start(&streaming());
    let fields = world.requested();
    assert_eq!(fields.get("priority"), Some(&b"u=1, i, exp_b=3, exp_d=80"[..]));
    assert_eq!(world.server.priority(stream), Some(streaming()));
    assert_eq!(last(&world, stream), Some(request(1, true)));
    assert_eq!(protected(&world, stream), [], "not before the response");
    world.respond(stream, &Fields::response(200), false);
    assert_eq!(last(&world, stream), Some(request(1, true)));
    let protection = Protection::incremental(3, Duration::from_millis(80));
    assert_eq!(protected(&world, stream), [Some(protection)]);
}

#[test]
fn no_wish_is_the_default_protection() {
    let (mut world, stream) = World::asked(true);
    world.respond(stream, &Fields::response(200), true);
    assert_eq!(last(&world, stream), Some(request(3, false)));
    assert_eq!(protected(&world, stream), []);
}

#[test]
fn an_own_priority_field_is_kept() {
    let mut world = World::default();
    let fields = get().with("priority", "u=6");
    let mut end = world.pair.end(Side::Client);
    let stream = world.client.send_request(&mut end, &fields, Some(&streaming()), true).unwrap();
    world.settle();
    let events = world.server_events();
    assert_eq!(events[0], Event::Headers { stream, fields });
}

/// RFC 9218 section 8.
#[test]
fn the_responses_field_overrides_what_it_names() {
    let (mut world, stream) = start(&streaming());
    let head = Fields::response(200).with("priority", "u=5, exp_b=0, exp_d=broken");
    world.respond(stream, &head, false);
    assert_eq!(last(&world, stream), Some(request(5, true)));
    assert_eq!(protected(&world, stream), [None]);
    let (mut world, stream) = start(&Priority::default());
    world.respond(stream, &Fields::response(200).with("priority", "i, exp_b=2"), false);
    assert_eq!(last(&world, stream), Some(request(3, true)));
    let protection = Protection::incremental(2, Duration::ZERO);
    assert_eq!(protected(&world, stream), [Some(protection)]);
}

#[test]
fn updates_apply_before_and_during_the_response() {
    let (mut world, stream) = start(&streaming());
    world.server_events();
    let update = |world: &mut World, priority: &Priority| {
        world.update(stream, priority);
        let told = Event::PriorityUpdate { stream, priority: priority.clone() };
        assert_eq!(world.server_events(), [told]);
    };
    let later = Priority::default().with_urgency(7).with_burst(Some(1));
    update(&mut world, &later);
    assert_eq!(last(&world, stream), Some(request(7, false)));
    assert_eq!(protected(&world, stream), []);
    world.respond(stream, &Fields::response(200), false);
    assert_eq!(last(&world, stream), Some(request(7, false)));
    update(&mut world, &streaming());
    assert_eq!(last(&world, stream), Some(request(1, true)));
    update(&mut world, &Priority::default());
    assert_eq!(last(&world, stream), Some(request(3, false)));
    let [plain, incremental] = [
        Protection::tail(1, Duration::ZERO),
        Protection::incremental(3, Duration::from_millis(80)),
    ];
    assert_eq!(
        protected(&world, stream),
        [Some(plain), Some(incremental), Some(default_protection())]
    );
    // The response has the default protection, as without a wish, so the transport is not told again.
    update(&mut world, &Priority::default().with_urgency(2));
    assert_eq!(protected(&world, stream).len(), 3);
}

/// A client turns off the server's default protection, in the request or later, and on again (Holzinger et
/// al. 2025, section IV-B).
#[test]
fn a_client_turns_protection_off_and_on() {
    let off = Priority::default().with_burst(Some(0));
    let (mut world, stream) = start(&off);
    let fields = world.requested();
    assert_eq!(fields.get("priority"), Some(&b"exp_b=0"[..]));
    world.respond(stream, &Fields::response(200), false);
    world.update(stream, &Priority::default());
    world.update(stream, &off);
    assert_eq!(protected(&world, stream), [None, Some(default_protection()), None]);
}

/// A server whose configuration protects urgent responses, the non-incremental ones most.
fn protecting_server() -> Config {
    let mut protections = DefaultProtections::default();
    let urgent = DefaultProtection::Parameters { burst: 4, delay: Duration::from_millis(5) };
    protections.add(0..=1, Some(false), &DefaultProtection::Policy(blocks()));
    protections.add(0..=2, None, &urgent);
    protections.add(7..=7, None, &DefaultProtection::NONE);
    Config::default().with_protections(protections)
}

fn blocks() -> Protection {
    Protection::new(sutura_proto::registry::redundancy().find("block:source=4").unwrap())
}

/// The wishes of both ends come before the server's configuration, which goes by the present priority.
#[test]
fn what_nobody_says_the_servers_configuration_decides() {
    let mut world = World::new(Config::default(), protecting_server());
    let asked = get().with("priority", "u=2, exp_d=80");
    let stream = world.ask(&asked, true);
    assert_eq!(protected(&world, stream), [], "not before the response");
    let default = world.server.default_protection(stream);
    assert_eq!(default.map(ToString::to_string).as_deref(), Some("exp_b=4, exp_d=5"));
    world.respond(stream, &Fields::response(200), false);
    let tail = |burst, ms| Some(Protection::tail(burst, Duration::from_millis(ms)));
    let mut expected = vec![tail(4, 80)];
    for (update, protection) in [
        ("u=2, i", Some(Protection::incremental(4, Duration::from_millis(5)))),
        ("u=1", Some(blocks())),
        ("u=1, exp_b=0", None),
        ("u=1, exp_b=2", tail(2, 0)),
        ("u=3", Some(default_protection())),
        ("u=7", None),
    ] {
        world.update(stream, &update.parse().unwrap());
        expected.push(protection);
        assert_eq!(protected(&world, stream), expected, "{update}");
    }
    assert_eq!(world.server.default_protection(stream), Some(&DefaultProtection::NONE));
    // Also of responses that the transport has.
    world.hand_over(stream);
    assert_eq!((world.server.exchanges(), world.server.default_protection(stream)), (0, None));
    world.update(stream, &"u=2".parse().unwrap());
    world.update(stream, &"u=2, exp_b=0".parse().unwrap());
    expected.extend([tail(4, 5), None]);
    assert_eq!(protected(&world, stream), expected);
}

/// If the response has a `priority` field, the configured protection does not apply.
#[test]
fn the_responses_own_field_comes_before_the_configuration() {
    let mut world = World::new(Config::default(), protecting_server());
    for (own, expected) in [("exp_b=0", None), ("u=1", Some(blocks()))] {
        let stream = world.ask(&get().with("priority", "u=2"), true);
        world.respond(stream, &Fields::response(200).with("priority", own), false);
        assert_eq!(protected(&world, stream), [expected], "{own}");
    }
}

/// The transport may still be sending a response that was handed over completely.
#[test]
fn updates_reach_responses_that_were_handed_over() {
    let (mut world, stream) = start(&Priority::default());
    world.respond(stream, &Fields::response(200), false);
    world.server_events();
    world.hand_over(stream);
    world.update(stream, &streaming());
    assert_eq!(last(&world, stream), Some(request(1, true)));
    assert_eq!(protected(&world, stream).len(), 1);
    assert_eq!(world.server_events(), []);
}

/// A PRIORITY_UPDATE that overtakes its request beats the request's header.
#[test]
fn updates_that_come_first_win() {
    // GET with `priority: i`.
    let mut get = [GET, b"\x27\x01priority\x01i"].concat();
    get[1] = (get.len() - 2) as u8;
    for (value, urgency, incremental) in [("u=0", 0, false), ("", 3, false), ("u=,", 3, true)] {
        let mut bench = server_with(&update_frame(0, value));
        bench.play(&[script(Bi, &get, Open)], 3);
        assert_eq!(bench.outcome, Ok(()));
        let priority = bench.connection.priority(REQUEST).unwrap();
        assert_eq!((priority.urgency, priority.incremental), (urgency, incremental), "{value}");
        let told = bench.events.iter().any(|event| matches!(event, Event::PriorityUpdate { .. }));
        assert!(!told, "the request's own event says it all");
    }
}

#[test]
fn ended_exchanges_take_no_updates() {
    let (mut world, stream) = start(&streaming());
    world.respond(stream, &Fields::response(204), true);
    world.settle();
    let mut end = world.pair.end(Side::Client);
    let sent = world.client.send_priority_update(&mut end, stream, &streaming());
    assert!(sent.is_err());
}

#[test]
fn observers_hear_of_priorities_but_of_no_secrets() {
    let mut world = World::default();
    let stream = world.ask(&get().with("cookie", "secret").with("priority", "u=1"), true);
    world.update(stream, &streaming());
    world.respond(stream, &Fields::response(103).with("link", "secret"), false);
    world.respond(stream, &Fields::response(200).with("set-cookie", "secret"), false);
    let mut end = world.pair.end(Side::Server);
    world.server.send_trailers(&mut end, stream, &Fields::new().with("etag", "secret")).unwrap();
    world.settle();
    let headers = |fields| (stream, FrameContent::Headers(fields));
    let value = "u=1, i, exp_b=3, exp_d=80".into();
    let update = (CONTROL, FrameContent::PriorityUpdate { element: stream, value });
    let of_client = [headers(get().with("priority", "u=1")), update];
    let of_server = [Fields::response(103), Fields::response(200), Fields::new()].map(headers);
    let told = |side, action| -> Vec<_> {
        let of = |(who, event): &&(_, FrameEvent)| (*who, event.action) == (side, action);
        let told = world.pair.observed.iter().filter(of);
        told.map(|(_, event)| (event.stream, event.content.clone())).collect()
    };
    for action in [FrameAction::Created, FrameAction::Parsed] {
        let [client, server] = match action {
            FrameAction::Created => [Side::Client, Side::Server],
            FrameAction::Parsed => [Side::Server, Side::Client],
        };
        assert_eq!(told(client, action), of_client);
        assert_eq!(told(server, action), of_server);
    }
}

const CONTROL: StreamId = StreamId::new(Side::Client, Dir::Uni, 0);
const REQUEST: StreamId = StreamId::new(Side::Client, Dir::Bi, 0);

fn server_with(frames: &[u8]) -> Bench {
    let mut bench = Bench::new(Side::Server);
    let control = [&[0x00, 0x04, 0x00], frames].concat();
    bench.play(&[script(Uni, &control, Open)], 7);
    bench
}

fn now(bench: &Bench) -> Option<StreamPriority> {
    bench.pair.priorities.last().map(|entry| entry.2.clone())
}

/// Each update is complete: omitted parameters return to their defaults (RFC 9218 section 7).
#[test]
fn the_latest_update_replaces_all_of_the_one_before() {
    let value = "u=1, i, exp_w=2, exp_p=(a b), exp_b=3, exp_d=5";
    let mut bench = server_with(&update_frame(0, value));
    bench.play(&[script(Bi, GET, Open)], 100);
    let mut end = bench.pair.end(Side::Server);
    bench.connection.send_response(&mut end, REQUEST, &Fields::response(200), false).unwrap();
    let classes = [class("a", 3), class("b", 3)];
    let protection = Protection::incremental(3, Duration::from_millis(5));
    assert_eq!(now(&bench), Some(shared(1, true, 2000, &classes)));
    assert_eq!(bench.pair.protections.last().unwrap().2, Some(protection));
    for (value, expected) in [
        ("exp_p=(\"b\";u=1)", shared(3, false, 1000, &[class("b", 1)])),
        ("u=2", request(2, false)),
        ("u=1, nonsense", request(1, false)),
        // An unparseable update changes nothing.
        ("u=,", request(1, false)),
        ("u=7, u=8, i=maybe, exp_w=0.25", shared(3, false, 250, &[])),
        ("", request(3, false)),
    ] {
        bench.pair.inject(Side::Client, CONTROL, &update_frame(0, value));
        bench.work();
        assert_eq!(bench.outcome, Ok(()));
        assert_eq!(now(&bench), Some(expected), "{value}");
        assert_eq!(bench.pair.protections.last().unwrap().2, Some(default_protection()));
    }
}

/// The last identifier that the client may use is accepted; the next identifier is rejected, and so is an
/// identifier that does not name a request (RFC 9218 section 7.2).
#[test]
fn updates_name_requests_that_are_permitted() {
    assert_eq!(server_with(&update_frame(4 * 99, "u=1")).outcome, Ok(()));
    for id in [4 * 100, 1, 2, 3, 4 * 99 + 1, 4 * 99 + 2, 4 * 99 + 3] {
        let error = server_with(&update_frame(id, "u=1")).outcome.unwrap_err();
        assert_eq!(error.code, Code::ID_ERROR, "{id}");
    }
}

/// This server promises no pushes, so no update may name one, however many pushes the client permits.
#[test]
fn updates_of_pushes_name_none() {
    for push in [0, 5, 6] {
        let max_push_id = [0x0d, 0x01, 0x05];
        let update = [0x80, 0x0f, 0x07, 0x01, 0x04, push, b'u', b'=', b'1'];
        let error = server_with(&[&max_push_id[..], &update].concat()).outcome.unwrap_err();
        assert_eq!(error.code, Code::ID_ERROR, "{push}");
    }
}

#[test]
fn updates_of_requests_that_are_over_are_harmless() {
    let mut bench = server_with(&[]);
    bench.play(&[script(Bi, GET, Reset)], 100);
    assert_eq!(bench.connection.exchanges(), 0);
    bench.events.clear();
    bench.pair.inject(Side::Client, CONTROL, &update_frame(0, "u=1, exp_p=(a)"));
    bench.work();
    assert_eq!((bench.outcome, bench.events.len()), (Ok(()), 0));
    assert_eq!(bench.connection.priority(REQUEST), None);
}

#[test]
fn a_priority_in_trailers_means_nothing() {
    let mut world = World::default();
    let stream = world.request(&get().with("priority", "u=2"), false);
    let mut end = world.pair.end(Side::Client);
    let trailers = Fields::new().with("priority", "u=6");
    world.client.send_trailers(&mut end, stream, &trailers).unwrap();
    world.settle();
    assert_eq!(world.server.priority(stream).unwrap().urgency, 2);
    world.respond(stream, &Fields::response(200), false);
    let mut end = world.pair.end(Side::Server);
    world.server.send_trailers(&mut end, stream, &trailers).unwrap();
    assert_eq!(last(&world, stream), Some(request(2, false)));
}

#[test]
fn weight_and_classes_reach_the_stream_and_change() {
    let classes = [class("in view", 3), class("images", 1)];
    let weight = Weight::new(400).unwrap();
    let priority = streaming().with_weight(weight).with_parents(classes.clone().into());
    let (mut world, stream) = start(&priority);
    let fields = world.requested();
    let value = br#"u=1, i, exp_w=0.4, exp_b=3, exp_d=80, exp_p=("in view" "images";u=1)"#;
    assert_eq!(fields.get("priority"), Some(&value[..]));
    let own = (Side::Client, stream, shared(1, true, 400, &classes));
    assert!(world.pair.priorities.contains(&own));
    // The response moves itself to another class and leaves its other parameters unchanged.
    let head = Fields::response(200).with("priority", "exp_p=(\"late\")");
    world.respond(stream, &head, false);
    assert_eq!(last(&world, stream), Some(shared(1, true, 400, &[class("late", 3)])));
    let heavy = Priority::default().with_weight(Weight::MAX);
    world.update(stream, &heavy);
    assert_eq!(last(&world, stream), Some(shared(3, false, 1_000_000, &[class("late", 3)])));
}

/// If requests disagree about a class, the latest counts (Holzinger et al. 2025, section IV-B),
/// whichever response begins first: an unchanged priority is not set again.
#[test]
fn the_latest_request_has_the_word_on_a_class() {
    let mut world = World::default();
    let ask =
        |world: &mut World, value: &'static str| world.ask(&get().with("priority", value), true);
    let first = ask(&mut world, "exp_p=(a;u=1)");
    let second = ask(&mut world, "exp_p=(a;u=2)");
    let third = ask(&mut world, "u=4");
    for stream in [third, second, first] {
        world.respond(stream, &Fields::response(103), false);
        world.respond(stream, &Fields::response(200).with("priority", "exp_b=0"), false);
    }
    let said = |world: &World| -> Vec<_> {
        let server = world.pair.priorities.iter().filter(|entry| entry.0 == Side::Server);
        server.filter(|entry| entry.2 != StreamPriority::CONTROL).cloned().collect()
    };
    let of =
        |stream, urgency| (Side::Server, stream, shared(3, false, 1000, &[class("a", urgency)]));
    let mut expected = vec![of(first, 1), of(second, 2), (Side::Server, third, request(4, false))];
    assert_eq!(said(&world), expected);
    // An update counts as later even if it repeats what its request said.
    let priority = Priority::default().with_parents([class("a", 1)].into());
    world.update(first, &priority);
    expected.push(of(first, 1));
    assert_eq!(said(&world), expected);
}

/// The response's own `priority` field still counts after all of the response was handed over.
#[test]
fn updates_of_responses_that_were_handed_over_respect_what_these_said() {
    let mut bench = server_with(&[]);
    bench.play(&[script(Bi, GET, Fin)], 100);
    let head = Fields::response(200).with("priority", "u=6, exp_b=0");
    let mut end = bench.pair.end(Side::Server);
    bench.connection.send_response(&mut end, REQUEST, &head, true).unwrap();
    bench.work();
    assert_eq!(bench.connection.exchanges(), 0);
    bench.pair.inject(Side::Client, CONTROL, &update_frame(0, "u=0, exp_b=9, exp_w=5"));
    bench.work();
    assert_eq!(now(&bench), Some(shared(6, false, 5000, &[])));
    assert_eq!(bench.pair.protections.last().unwrap().2, None);
}

#[test]
fn what_the_server_tells_its_scheduler_counts_beside_all_priorities() {
    let extended =
        |priority: StreamPriority, value: u32| priority.with_extension(format!("kind {value}"));
    let extension = |value: u32| Some(Extension::new(format!("kind {value}")));
    let (mut world, stream) = start(&streaming());
    world.server_events();
    let tell = |world: &mut World, value| {
        let mut end = world.pair.end(Side::Server);
        world.server.set_extension(&mut end, stream, value)
    };
    assert_eq!(tell(&mut world, extension(1)), Ok(()));
    assert_eq!(last(&world, stream), Some(extended(request(1, true), 1)));
    let told = world.pair.priorities.len();
    assert_eq!(tell(&mut world, extension(1)), Ok(()));
    assert_eq!(world.pair.priorities.len(), told, "the same again changes nothing");
    // The priorities of the response and of the client do not change the extension.
    world.respond(stream, &Fields::response(200).with("priority", "u=2"), false);
    assert_eq!(last(&world, stream), Some(extended(request(2, true), 1)));
    assert_eq!(tell(&mut world, extension(2)), Ok(()));
    world.update(stream, &Priority::default());
    assert_eq!(last(&world, stream), Some(extended(request(2, false), 2)));
    let mut end = world.pair.end(Side::Client);
    assert!(world.client.set_extension(&mut end, stream, extension(3)).is_err());
    // Also once the response was handed over.
    world.hand_over(stream);
    world.update(stream, &streaming());
    assert_eq!(last(&world, stream), Some(extended(request(2, true), 2)));
    assert_eq!(tell(&mut world, extension(3)), Ok(()));
    assert_eq!(last(&world, stream), Some(extended(request(2, true), 3)));
}

#[test]
fn a_response_of_which_nothing_was_said_is_forgotten_once_it_is_handed_over() {
    let (mut world, stream) = start(&Priority::default());
    world.respond(stream, &Fields::response(204), true);
    assert_eq!(world.server.exchanges(), 0);
    let told = world.pair.priorities.len();
    let mut end = world.pair.end(Side::Server);
    let late = world.server.set_extension(&mut end, stream, Some(Extension::new(1)));
    assert_eq!((late, world.pair.priorities.len()), (Err(SendError::UnknownStream), told));
}
