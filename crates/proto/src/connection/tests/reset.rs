//! Stateless resets (RFC 9000 section 10.3).

use super::*;
use crate::reset::{MAX_RESETS_PER_SECOND, MIN_RESET};
use crate::wire::frame::RESET_TOKEN_SIZE;
use crate::{QuicLb, ResetKey};

/// A server's endpoint that knows no connection.
fn server(key: &ResetKey, seed: u8) -> Endpoint {
    let config = EndpointConfig { reset_key: Some(key.clone()), ..EndpointConfig::default() };
    Endpoint::new(Arc::new(config), Some(server_config()), [seed; 32])
}

/// A pair whose server has this key.
fn connected(key: &ResetKey) -> Pair {
    let mut pair = Pair::new();
    pair.server.endpoint = server(key, 7);
    pair.handshake();
    pair
}

fn key(n: u8) -> ResetKey {
    ResetKey::new(&[n; 32], b"the server")
}

/// The server loses all that it knew.
fn restart(pair: &mut Pair, key: &ResetKey) {
    pair.server.endpoint = server(key, 8);
    pair.server.connection = None;
}

#[test]
fn a_server_that_was_restarted_is_noticed_at_once() {
    let mut pair = connected(&key(1));
    let window = pair.client.stats().congestion_window;
    assert!(window > 0);
    restart(&mut pair, &key(1));
    pair.send(Side::Client, Dir::Uni, b"are you there?");
    pair.run_for(3 * pair.latency);
    assert_eq!(pair.loss(Side::Client), Some(ConnectionError::Reset));
    let sent = pair.sent(Side::Client);
    pair.run_for(60 * SECOND);
    assert_eq!(pair.sent(Side::Client), sent, "nothing is sent after a reset");
    assert!(pair.client.conn().is_drained() && pair.client.endpoint.is_empty());
}

#[test]
fn a_server_with_another_key_is_not_believed() {
    let mut pair = connected(&key(1));
    restart(&mut pair, &key(2));
    pair.send(Side::Client, Dir::Uni, b"are you there?");
    pair.run_for(25 * SECOND);
    assert_eq!(pair.loss(Side::Client), None);
}

/// Processes behind one load balancer have one key; a packet for one process reaches another.
#[test]
fn no_endpoint_resets_the_connections_that_another_owns() {
    for (owner, is_reset) in [("server-id=0102", true), ("server-id=0103", false)] {
        let process = |owner: &str| {
            let text = format!("{owner} nonce=8 key=8f95f09245765f80256934e50c66207f");
            let generator = QuicLb::new(text.parse().unwrap()).unwrap();
            EndpointConfig {
                reset_key: Some(key(1)),
                connection_ids: Arc::new(generator),
                ..EndpointConfig::default()
            }
        };
        let mut pair =
            Pair::with_endpoints([EndpointConfig::default(), process("server-id=0102")]).ready();
        pair.server.endpoint = Endpoint::new(Arc::new(process(owner)), None, [8; 32]);
        pair.server.connection = None;
        pair.send(Side::Client, Dir::Uni, &pattern(100));
        let before = pair.sent(Side::Server);
        pair.run_for(SECOND);
        assert!(pair.sent(Side::Server) > before, "it answers");
        assert_eq!(pair.loss(Side::Client), is_reset.then_some(ConnectionError::Reset), "{owner}");
    }
}

#[test]
fn the_reset_of_any_identifier_in_use_counts_and_no_other() {
    for leave in [false, true] {
        let mut pair = connected(&key(1));
        let before = pair.client.conn().path.remote_cids.active();
        if leave {
            pair.client.conn().path.remote_cids.advance().unwrap();
            pair.run_for(SECOND);
        }
        let mut reset = vec![0x55; MIN_RESET];
        let at = reset.len() - RESET_TOKEN_SIZE;
        reset[at..].copy_from_slice(&key(1).token(&before).0);
        pair.receive(Side::Client, reset);
        let expected = (!leave).then_some(ConnectionError::Reset);
        assert_eq!(pair.loss(Side::Client), expected);
    }
}

#[test]
fn a_client_that_was_forgotten_resets_its_server_too() {
    let mut pair = connected(&key(1));
    // The server has gone over to an identifier with a token: clients give none in the handshake.
    pair.server.conn().path.remote_cids.advance().unwrap();
    pair.client.connection = None;
    let rest = pair.client.endpoint.len();
    assert_eq!(rest, 1);
    let token = pair.server.conn().path.remote_cids.active_token().unwrap();
    let reset = [&[0x41; 20][..], &token.0].concat();
    pair.flush(Side::Server);
    pair.receive(Side::Server, reset);
    assert_eq!(pair.loss(Side::Server), Some(ConnectionError::Reset));
}

/// A packet with a short header to an identifier that nobody has.
fn stray(pair: &mut Pair, size: usize) -> Vec<u8> {
    let dcid = ConnectionId::new(&[0xee; 8]);
    let forgery = Forgery { dcid, ..Forgery::default() };
    let mut packet = pair.forge(Side::Client, SpaceId::Data, &pattern(1300), forgery);
    packet.truncate(size);
    packet
}

#[test]
fn answers_are_shorter_than_questions_so_that_no_loop_lasts() {
    let mut pair = connected(&key(1));
    let mut other = server(&key(2), 9);
    let mut datagram = stray(&mut pair, 1200);
    let from = pair.client.address;
    let mut rounds = 0;
    loop {
        let now = pair.now;
        let end = if rounds % 2 == 0 { &mut pair.server.endpoint } else { &mut other };
        match end.handle(now, from, &datagram) {
            DatagramEvent::Respond(answer) => {
                assert!(answer.len() < datagram.len());
                datagram = answer;
                rounds += 1;
            }
            DatagramEvent::Drop => break,
            other => panic!("{other:?}"),
        }
    }
    assert!((2..60).contains(&rounds), "{rounds}");
    assert!(datagram.len() <= MIN_RESET);
}

#[test]
fn a_flood_of_strays_is_answered_up_to_a_limit() {
    let mut pair = connected(&key(1));
    let (datagram, from, now) = (stray(&mut pair, 1200), pair.client.address, pair.now);
    let mut bytes = 0;
    for _ in 0..20 * MAX_RESETS_PER_SECOND {
        if let DatagramEvent::Respond(answer) = pair.server.endpoint.handle(now, from, &datagram) {
            bytes += answer.len();
        }
    }
    assert!(bytes > 0 && bytes <= 100 * MAX_RESETS_PER_SECOND as usize, "{bytes}");
    pair.carry(Side::Client, 10_000);
}

#[test]
fn an_identifier_that_is_announced_brings_its_token() {
    let mut pair = connected(&key(1));
    pair.client.conn().inject_frame(&new_id(4, 4)).unwrap();
    pair.flush(Side::Client);
    pair.receive(Side::Client, [&[0x41; 20][..], &[4; 16]].concat());
    assert_eq!(pair.loss(Side::Client), Some(ConnectionError::Reset));
}
