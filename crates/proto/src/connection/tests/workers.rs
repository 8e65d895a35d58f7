//! Several endpoints at one address.

use super::crowd::Crowd;
use super::*;
use crate::ConnectError;
use crate::connection::{EndpointEvent, Offence};
use std::net::Ipv4Addr;

fn workers(config: &EndpointConfig, count: usize) -> Vec<Endpoint> {
    Endpoint::workers(config, Some(&server_config()), [6; 32], count).unwrap()
}

/// A pair whose server is the first of these, with an open connection, and the others.
fn connected(config: &EndpointConfig, count: usize) -> (Pair, Vec<Endpoint>) {
    let mut others = workers(config, count);
    let mut pair = Pair::new();
    pair.server.endpoint = others.remove(0);
    (pair.ready(), others)
}

/// The next datagram of the client.
fn next(pair: &mut Pair) -> Vec<u8> {
    let (now, mut out) = (pair.now, Vec::new());
    pair.client.conn().poll_transmit(now, 1, &mut out).unwrap();
    out
}

fn address(n: usize) -> SocketAddr {
    (Ipv4Addr::from_bits(n as u32), 7).into()
}

/// Lets each of many clients begin at one of the workers, and returns how many handshakes are under way.
fn begin(all: &mut [Endpoint], clients: usize, from: impl Fn(usize) -> SocketAddr) -> usize {
    let mut crowd = Crowd::new(EndpointConfig::default());
    for n in 0..clients {
        let initial = crowd.initial();
        let at = n % all.len();
        drop(all[at].handle(crowd.now, from(n), &initial));
        while all[at].poll_given_up().is_some() {}
    }
    all.iter().map(Endpoint::half_open).sum()
}

#[test]
fn a_worker_knows_whose_the_packets_of_a_client_are_that_has_moved() {
    let (mut pair, mut others) = connected(&EndpointConfig::default(), 3);
    for n in 0..10 {
        pair.send(Side::Client, Dir::Uni, b"from another address");
        let datagram = next(&mut pair);
        for other in &mut others {
            let event = other.handle(pair.now, address(n), &datagram);
            assert!(matches!(event, DatagramEvent::Elsewhere(0)), "{event:?}");
        }
        let event = pair.server.endpoint.handle(pair.now, address(n), &datagram);
        assert!(matches!(event, DatagramEvent::Connection(_)), "{event:?}");
    }
}

#[test]
fn a_worker_knows_whose_the_handshake_packets_are() {
    let (mut pair, mut others) = connected(&EndpointConfig::default(), 2);
    let dcid = pair.server.conn().handshake.local_cid;
    // The first bytes of Handshake, Initial and 0-RTT packets.
    for (first, is_known) in [(0xe0, true), (0xc0, false), (0xd0, false)] {
        let mut datagram = vec![first, 0, 0, 0, 1, 8];
        datagram.extend_from_slice(dcid.as_slice());
        datagram.extend_from_slice(&[0, 0x40, 40]);
        datagram.resize(datagram.len() + 40, 7);
        let event = others[0].handle(pair.now, address(1), &datagram);
        assert_eq!(matches!(event, DatagramEvent::Elsewhere(0)), is_known, "{event:?}");
        let event = pair.server.endpoint.handle(pair.now, address(1), &datagram);
        assert!(matches!(event, DatagramEvent::Connection(_)), "{event:?}");
    }
}

#[test]
fn exactly_one_worker_answers_for_an_unknown_identifier() {
    let mut all = workers(&EndpointConfig::default(), 3);
    let (mut rng, now) = (Rng::new(1), Instant::now());
    let mut answers = [0; 3];
    for _ in 0..300 {
        let mut datagram = vec![0x40; 60];
        datagram[1..9].copy_from_slice(&rng.next_u64().to_be_bytes());
        let mut owners = Vec::new();
        for (number, worker) in all.iter_mut().enumerate() {
            match worker.handle(now, address(1), &datagram) {
                DatagramEvent::Respond(_) => {
                    answers[number] += 1;
                    owners.push(number);
                }
                DatagramEvent::Elsewhere(other) => owners.push(other),
                event => panic!("{event:?}"),
            }
        }
        assert!(owners.windows(2).all(|pair| pair[0] == pair[1]), "{owners:?}");
    }
    assert!(answers.iter().all(|count| *count > 50), "{answers:?}");
}

#[test]
fn a_forgotten_connection_is_reset_by_the_worker_that_had_it() {
    let (mut pair, _) = connected(&EndpointConfig::default(), 2);
    pair.server.endpoint = workers(&EndpointConfig::default(), 2).remove(0);
    pair.server.connection = None;
    pair.send(Side::Client, Dir::Uni, b"are you there?");
    pair.run_for(3 * pair.latency);
    assert_eq!(pair.loss(Side::Client), Some(ConnectionError::Reset));
}

#[test]
fn a_token_of_one_worker_is_good_at_another_and_used_once_for_all() {
    let (mut pair, mut others) = connected(&EndpointConfig::default(), 4);
    pair.run_for(SECOND);
    pair.client.connection = None;
    pair.reconnect();
    let initial = next(&mut pair);
    let from = pair.client.address;
    let mut known = |n: usize| match others[n].handle(pair.now, from, &initial) {
        DatagramEvent::NewConnection(client) => client.remote_address_validated(),
        event => panic!("{event:?}"),
    };
    assert_eq!([known(0), known(1), known(2)], [true, false, false]);
}

#[test]
fn the_answer_to_a_retry_is_good_at_another_worker() {
    let mut all = workers(&EndpointConfig { retry_above: Some(0), ..EndpointConfig::default() }, 2);
    let (mut pair, from) = (Pair::new(), address(1));
    pair.reconnect();
    let initial = next(&mut pair);
    let DatagramEvent::Respond(mut retry) = all[0].handle(pair.now, from, &initial) else {
        panic!("a Retry")
    };
    let (now, server) = (pair.now, pair.server.address);
    pair.client.conn().handle_datagram(now, server, None, &mut retry);
    let initial = next(&mut pair);
    let event = all[1].handle(pair.now, from, &initial);
    assert!(matches!(event, DatagramEvent::NewConnection(client) if !client.may_retry()));
}

#[test]
fn the_bound_of_handshakes_holds_for_all_workers_together() {
    for count in [1, 2, 3, 7] {
        let config =
            EndpointConfig { max_handshakes: 20, retry_above: None, ..EndpointConfig::default() };
        assert_eq!(begin(&mut workers(&config, count), 200, address), 20, "{count}");
        // So does the bound for one address.
        let mut all =
            workers(&EndpointConfig { retry_above: None, ..EndpointConfig::default() }, count);
        assert_eq!(begin(&mut all, 600, |n| SocketAddr::from(([192, 0, 2, 1], n as u16))), 256);
        // Beyond this number, clients have to answer a Retry.
        let config = EndpointConfig { retry_above: Some(30), ..EndpointConfig::default() };
        assert_eq!(begin(&mut workers(&config, count), 200, address), 30, "{count}");
    }
}

#[test]
fn the_bound_of_connections_holds_for_all_workers_together() {
    let config = EndpointConfig { max_connections: 10, ..EndpointConfig::default() };
    let mut all = workers(&config, 3);
    assert_eq!(begin(&mut all, 100, address), 10);
    assert_eq!(all.iter().map(Endpoint::len).sum::<usize>(), 10);
}

#[test]
fn an_offender_is_refused_by_all_workers() {
    let mut all = workers(&EndpointConfig::default(), 2);
    let mut crowd = Crowd::new(EndpointConfig::default());
    let (now, from) = (crowd.now, address(1));
    let DatagramEvent::NewConnection(client) = all[0].handle(now, from, &crowd.initial()) else {
        panic!("nobody is blamed yet")
    };
    let handle = client.handle();
    assert!(all[0].accept(now, client).is_some());
    for _ in 0..100 {
        let blamed = EndpointEvent::Blamed(from.ip(), now, Offence::Connection);
        all[0].handle_event(handle, blamed);
    }
    for worker in &mut all {
        let event = worker.handle(now, from, &crowd.initial());
        assert!(matches!(event, DatagramEvent::Respond(_)), "a refusal: {event:?}");
        let event = worker.handle(now, address(2), &crowd.initial());
        assert!(matches!(event, DatagramEvent::NewConnection(_)), "{event:?}");
    }
}

#[test]
fn workers_only_accept() {
    let mut all = workers(&EndpointConfig::default(), 2);
    let opened = all[0].connect(Instant::now(), client_config(), address(1), "localhost");
    assert_eq!(opened.map(drop), Err(ConnectError::SharedAddress));
    let mut one = workers(&EndpointConfig::default(), 1);
    assert!(one[0].connect(Instant::now(), client_config(), address(1), "localhost").is_ok());
}

#[test]
fn each_worker_has_at_least_a_part_of_each_bound() {
    let config = EndpointConfig { max_handshakes: 3, ..EndpointConfig::default() };
    for (count, possible) in [(0, false), (1, true), (3, true), (4, false)] {
        let made = Endpoint::workers(&config, None, [1; 32], count);
        assert_eq!(
            (made.is_ok(), config.check_workers(count).is_ok()),
            (possible, possible),
            "{count}"
        );
    }
    let config = EndpointConfig::default();
    assert!(Endpoint::workers(&config, None, [1; 32], crate::MAX_WORKERS).is_ok());
    assert!(Endpoint::workers(&config, None, [1; 32], crate::MAX_WORKERS + 1).is_err());
}
