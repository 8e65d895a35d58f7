//! Extended CONNECT (RFC 9220) and limits on bodies.

use crate::common::{World, get};
use sutura_h3::{Code, Config, Event, Fields, SendError, Transport};
use sutura_proto::{Dir, Side, StreamId};

fn chat() -> Fields {
    Fields::request("CONNECT", "https", "example.com", "/chat").with(":protocol", "websocket")
}

#[test]
fn an_extended_connect_is_a_tunnel_in_both_directions() {
    let server = Config::default().with_enable_connect_protocol(true);
    let mut world = World::new(Config::default(), server);
    // Not before the server said so.
    let early = world.client.send_request(&mut world.pair.end(Side::Client), &chat(), None, false);
    assert!(matches!(early, Err(SendError::InvalidState(_))));
    world.settle();
    let stream = world.ask(&chat(), false);
    assert_eq!(world.server_events(), [Event::Headers { stream, fields: chat() }]);
    world.respond(stream, &Fields::response(200), false);
    world.settle();
    let mut buffer = [0; 16];
    world.client_events();
    for (side, text) in [(Side::Client, b"ping"), (Side::Server, b"pong")] {
        let ends = match side {
            Side::Client => [&mut world.client, &mut world.server],
            Side::Server => [&mut world.server, &mut world.client],
        };
        let [from, to] = ends;
        from.send_body(&mut world.pair.end(side), stream, text).unwrap();
        let n = to.read_body(&mut world.pair.end(side.peer()), stream, &mut buffer).unwrap();
        assert_eq!(&buffer[..n], text);
    }
    let trailers = Fields::new().with("a", "b");
    let sent = world.client.send_trailers(&mut world.pair.end(Side::Client), stream, &trailers);
    assert!(matches!(sent, Err(SendError::InvalidState(_))), "a tunnel has no trailers");
}

#[test]
fn a_server_that_did_not_announce_it_gets_none() {
    let mut world = World::default().settled();
    let sent = world.client.send_request(&mut world.pair.end(Side::Client), &chat(), None, false);
    assert!(matches!(sent, Err(SendError::InvalidState(_))));
    // A client that sends it nevertheless has sent a malformed request.
    world.pair.end(Side::Client).open(Dir::Bi).unwrap();
    let stream = StreamId::new(Side::Client, Dir::Bi, 0);
    let mut raw = vec![0x01, 0x15, 0x00, 0x00, 0xcf, 0xd7, 0xc1, 0x50, 0x01, b'a'];
    raw.extend_from_slice(b"\x27\x02:protocol\x01a");
    raw[1] = raw.len() as u8 - 2;
    world.pair.inject(Side::Client, stream, &raw);
    world.settle();
    let events = world.server_events();
    assert!(matches!(events[..], [Event::Failed { code: Code::MESSAGE_ERROR, .. }]), "{events:?}");
}

#[test]
fn a_body_beyond_the_limit_is_refused_or_abandoned() {
    let config = Config::default().with_max_body_size(10);
    let mut world = World::new(config.clone(), config).settled();
    let post = |length: &str| {
        Fields::request("POST", "https", "example.com", "/")
            .with("content-length", length.to_owned())
    };
    let announced = world.ask(&post("11"), false);
    assert!(matches!(world.server_events()[..], [Event::Refused { status: 413, .. }]));
    let events = world.client_events();
    let [Event::Stopped { .. }, Event::Headers { stream, fields }, ..] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!((*stream, fields.status()), (announced, Some(413)));

    let within = world.request(&post("10"), false);
    let mut end = world.pair.end(Side::Client);
    world.client.send_body(&mut end, within, &[0; 10]).unwrap();
    world.client.finish(&mut end, within).unwrap();
    let silent = world.request(&get(), false);
    let mut end = world.pair.end(Side::Client);
    world.client.send_body(&mut end, silent, &[0; 11]).unwrap();
    world.settle();
    let events = world.server_events();
    let failed = |event: &Event| matches!(event, Event::Failed { code: Code::EXCESSIVE_LOAD, .. });
    assert_eq!(events.iter().filter(|event| failed(event)).count(), 1, "{events:?}");
    assert!(world.server.priority(within).is_some());
    assert!(world.server.priority(silent).is_none());
}
