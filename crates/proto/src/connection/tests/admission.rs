//! Which clients get a connection: address validation (RFC 9000 section 8.1), limits and refusals.

use super::crowd::{Crowd, LATENCY};
use super::*;
use crate::connection::opening::{MAX_NEW_TOKENS, UNVALIDATED_TIMEOUT};
use crate::{EndpointEvent, Incoming};
use std::sync::atomic::{AtomicBool, Ordering};

const CLIENT: &str = "198.51.100.1:1000";

/// A crowd whose server always sends a Retry, and the first client.
fn retried() -> (Crowd, usize) {
    let mut crowd = Crowd::new(retry_always());
    let client = crowd.client(CLIENT);
    (crowd, client)
}

fn retry_always() -> EndpointConfig {
    EndpointConfig { retry_above: Some(0), ..EndpointConfig::default() }
}

/// Time enough for a handshake with a Retry.
const HANDSHAKE: Duration = Duration::from_millis(500);

#[test]
fn a_retry_makes_a_client_prove_its_address_before_there_is_any_state() {
    let (mut crowd, client) = retried();
    crowd.run_for(2 * LATENCY);
    assert_eq!((crowd.server.len(), crowd.received.len()), (0, 1));
    crowd.run_for(HANDSHAKE);
    // The client has checked the identifiers in the server's transport parameters.
    assert!(crowd.clients[client].is_connected());
    let connection = crowd.connections.values().next().unwrap();
    assert!(connection.remote_address_validated());
    let peer = crowd.clients[client].end.conn().peer_parameters();
    assert!(peer.retry_source_connection_id.is_some());
    assert_ne!(peer.retry_source_connection_id, peer.original_destination_connection_id);
}

#[test]
fn a_client_of_a_server_that_refuses_its_token_learns_so_at_once() {
    let (mut crowd, client) = retried();
    // The Retry arrives; then the client's answer comes from another port.
    crowd.run_for(2 * LATENCY);
    crowd.clients[client].end.address = "198.51.100.1:1001".parse().unwrap();
    crowd.run_for(2 * LATENCY + 10 * MS);
    assert_eq!(crowd.clients[client].refusal(), Some(TransportErrorCode::INVALID_TOKEN));
    assert_eq!(crowd.server.len(), 0);
}

#[test]
fn the_answer_to_a_retry_is_accepted_once() {
    let (mut crowd, client) = retried();
    crowd.run_for(HANDSHAKE);
    assert!(crowd.clients[client].is_connected());
    let (from, answer) = crowd.received[1].clone();
    crowd.close(client);
    assert_eq!(crowd.server.len(), 0);
    crowd.put(from, crowd.address, answer);
    crowd.run_for(HANDSHAKE);
    assert_eq!((crowd.server.len(), crowd.received.len() > 2), (0, true));
}

#[test]
fn a_token_for_later_saves_the_retry_once() {
    let (mut crowd, client) = retried();
    crowd.run_for(HANDSHAKE);
    for _ in 0..3 {
        crowd.close(client);
        crowd.received.clear();
        crowd.reconnect(client);
        crowd.run_for(LATENCY + 10 * MS);
        assert_eq!(crowd.server.half_open(), 1, "no Retry");
        assert!(crowd.connections.values().all(|c| c.remote_address_validated()));
        crowd.run_for(HANDSHAKE);
        assert!(crowd.clients[client].is_connected());
    }
    // The same Initial again, after the connection has ended, is treated like any other Initial.
    let (from, initial) = crowd.received[0].clone();
    crowd.close(client);
    crowd.put(from, crowd.address, initial);
    crowd.run_for(HANDSHAKE);
    assert_eq!(crowd.server.len(), 0);
}

#[test]
fn a_token_that_the_server_does_not_know_is_none() {
    for config in [EndpointConfig::default(), retry_always()] {
        let mut crowd = Crowd::new(config.clone());
        let client = crowd.client(CLIENT);
        let retried = usize::from(config.retry_above == Some(0));
        // The server remembers no token that only looks like its own.
        let token = [&b"sNew"[..], &[7; 80]].concat();
        crowd.clients[client].end.conn().set_token(token);
        crowd.run_for(HANDSHAKE);
        assert!(crowd.clients[client].is_connected());
        assert_eq!(crowd.server.used_tokens(), retried);
    }
}

#[test]
fn a_server_may_not_flood_a_client_with_tokens() {
    let mut pair = Pair::connected();
    while pair.client.conn().poll_endpoint_event().is_some() {}
    let frames: Vec<[u8; 2]> = (0..100u16).map(u16::to_be_bytes).collect();
    let client = pair.client.conn();
    let large = Frame::NewToken(&[0; 1000]);
    client.inject_frame(&large).unwrap();
    for token in &frames {
        client.inject_frame(&Frame::NewToken(token)).unwrap();
    }
    let events = std::iter::from_fn(|| client.poll_endpoint_event());
    let tokens = events.filter(|event| matches!(event, EndpointEvent::NewToken(_))).count();
    // The server has given the client one already.
    assert_eq!(tokens, usize::from(MAX_NEW_TOKENS) - 1);
}

#[test]
fn only_servers_give_tokens() {
    let mut pair = Pair::connected();
    pair.inject(Side::Client, &[Frame::NewToken(b"token")]);
    assert_eq!(pair.error(Side::Server), Some(TransportErrorCode::PROTOCOL_VIOLATION));
}

/// Lets `rate` Initials a second come from addresses that do not answer, and ten clients a second
/// that do, for ten seconds. All clients must connect.
fn flood(config: EndpointConfig, rate: u32, from: impl Fn(u32) -> SocketAddr) -> Crowd {
    let mut crowd = Crowd::new(config);
    let mut spoofed = 0;
    for tick in 0..1000 {
        while spoofed < rate * tick / 100 {
            spoofed += 1;
            crowd.spoof(from(spoofed));
        }
        if tick % 10 == 0 {
            crowd.client(&format!("198.51.100.{}:1000", tick / 10));
        }
        crowd.run_for(10 * MS);
    }
    crowd.run_for(4 * SECOND);
    let failed =
        crowd.clients.iter().filter(|client| !client.is_connected() || client.end.loss().is_some());
    assert_eq!(failed.count(), 0, "clients that could not connect");
    crowd
}

fn anywhere(n: u32) -> SocketAddr {
    SocketAddr::new((0x0a00_0000 + n).to_be_bytes().into(), 1000)
}

#[test]
fn clients_get_through_a_flood_of_forged_initials() {
    let crowd = flood(EndpointConfig::default(), 2_000, anywhere);
    assert!(crowd.peak <= 600, "{}", crowd.peak);
}

#[test]
fn clients_get_through_a_flood_even_if_few_handshakes_are_allowed() {
    let config = EndpointConfig { max_handshakes: 10, ..EndpointConfig::default() };
    let crowd = flood(config, 200, anywhere);
    assert!(crowd.peak <= 10, "{}", crowd.peak);
}

#[test]
fn clients_get_through_a_flood_without_retry_because_the_oldest_forgeries_make_room() {
    let config =
        EndpointConfig { max_handshakes: 100, retry_above: None, ..EndpointConfig::default() };
    let crowd = flood(config, 500, anywhere);
    assert!(crowd.peak <= 100, "{}", crowd.peak);
}

#[test]
fn one_address_shuts_nobody_else_out() {
    let one = |_| "203.0.113.1:1000".parse().unwrap();
    let crowd = flood(EndpointConfig::default(), 7_400, one);
    assert!(crowd.peak <= 300, "{}", crowd.peak);
    // Not even if there is no Retry.
    let config = EndpointConfig { retry_above: None, ..EndpointConfig::default() };
    let prefix = |n| format!("[2001:db8::{:x}]:1000", n % 60_000).parse().unwrap();
    let crowd = flood(config, 2_000, prefix);
    assert!(crowd.peak <= 300, "{}", crowd.peak);
}

#[test]
fn clients_get_through_a_flood_that_pretends_to_come_from_their_own_address() {
    let crowd = flood(EndpointConfig::default(), 2_000, |n| {
        format!("198.51.100.{}:{}", n % 100, 2000 + n % 60_000).parse().unwrap()
    });
    assert!(crowd.peak <= 600, "{}", crowd.peak);
}

#[test]
fn a_handshake_whose_client_never_answers_is_given_up_soon() {
    let mut crowd = Crowd::new(EndpointConfig::default());
    crowd.spoof(anywhere(1));
    crowd.run_for(LATENCY + 10 * MS);
    assert_eq!(crowd.server.half_open(), 1);
    crowd.run_for(UNVALIDATED_TIMEOUT + 10 * MS);
    assert_eq!((crowd.server.half_open(), crowd.server.len()), (0, 0));
}

/// A server with a client that has not been decided about.
fn undecided(crowd: &mut Crowd, from: SocketAddr) -> Incoming {
    let initial = crowd.initial();
    let DatagramEvent::NewConnection(client) = crowd.server.handle(crowd.now, from, &initial)
    else {
        panic!("not let in");
    };
    client
}

#[test]
fn nothing_is_left_of_a_client_that_is_not_accepted() {
    let mut crowd = Crowd::new(EndpointConfig::default());
    for decision in 0..3 {
        let client = undecided(&mut crowd, anywhere(decision));
        assert_eq!((crowd.server.half_open(), crowd.server.len()), (1, 1));
        assert!(crowd.server.is_pending(&client));
        match decision {
            0 => crowd.server.ignore(client),
            1 => assert!(crowd.server.refuse(client).is_some()),
            _ => assert!(crowd.server.retry(crowd.now, client).unwrap().is_some()),
        }
        assert_eq!((crowd.server.half_open(), crowd.server.len()), (0, 0));
    }
}

#[test]
fn a_client_that_made_room_before_it_was_decided_about_cannot_be_accepted() {
    let config =
        EndpointConfig { max_handshakes: 1, retry_above: None, ..EndpointConfig::default() };
    let mut crowd = Crowd::new(config);
    let first = undecided(&mut crowd, anywhere(1));
    let second = undecided(&mut crowd, anywhere(2));
    assert_eq!(crowd.server.poll_given_up(), Some(first.handle()));
    assert_eq!(crowd.server.poll_given_up(), None);
    // The second client has the handle of the first now, and no statement about the first one touches it.
    assert_eq!(first.handle(), second.handle());
    let now = crowd.now;
    assert!(!crowd.server.is_pending(&first) && crowd.server.accept(now, first).is_none());
    assert!(crowd.server.is_pending(&second));
    assert!(crowd.server.accept(now, second).is_some());
    assert_eq!((crowd.server.half_open(), crowd.server.len()), (1, 1));
}

#[test]
fn a_handshake_outlives_the_loss_of_three_probes() {
    let mut pair = Pair::new();
    let is_gone = Arc::new(AtomicBool::new(true));
    let (path, mut is_first) = (is_gone.clone(), true);
    pair.filter = Box::new(move |_, _| {
        std::mem::replace(&mut is_first, false) || !path.load(Ordering::Relaxed)
    });
    pair.run_for(14 * SECOND);
    is_gone.store(false, Ordering::Relaxed);
    pair.run_for(3 * SECOND);
    assert!(pair.client.events.contains(&Event::Connected));
    assert!(!pair.server.conn().is_closed());
    assert_eq!(pair.server.endpoint.len(), 1);
}

#[test]
fn a_server_that_accepts_no_more_says_so_at_once() {
    let mut crowd = Crowd::new(EndpointConfig::default());
    let before = crowd.client(CLIENT);
    crowd.run_for(HANDSHAKE);
    crowd.server.set_server_config(None);
    let after = crowd.client("198.51.100.2:1000");
    crowd.run_for(2 * LATENCY + 20 * MS);
    assert_eq!(crowd.clients[after].refusal(), Some(TransportErrorCode::CONNECTION_REFUSED));
    assert!(crowd.clients[before].end.loss().is_none());
    assert_eq!(crowd.server.len(), 1);
    // The server may accept again.
    crowd.server.set_server_config(Some(server_config()));
    let again = crowd.client("198.51.100.3:1000");
    crowd.run_for(HANDSHAKE);
    assert!(crowd.clients[again].is_connected());
}

#[test]
fn a_client_beyond_the_last_connection_is_refused() {
    let mut crowd = Crowd::new(EndpointConfig { max_connections: 1, ..Default::default() });
    let first = crowd.client(CLIENT);
    crowd.run_for(HANDSHAKE);
    let second = crowd.client("198.51.100.2:1000");
    crowd.run_for(HANDSHAKE);
    assert!(crowd.clients[first].is_connected() && crowd.clients[first].end.loss().is_none());
    assert_eq!(crowd.clients[second].refusal(), Some(TransportErrorCode::CONNECTION_REFUSED));
}
