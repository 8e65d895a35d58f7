//! The address at which a server prefers its clients to send to it.

use super::*;
use crate::PreferredAddresses;

fn preferred() -> SocketAddr {
    ([192, 0, 2, 1], 44).into()
}

/// A pair whose server prefers another address, at which it may receive or not.
fn pair(client: TransportConfig, receives: bool) -> Pair {
    let SocketAddr::V4(v4) = preferred() else { panic!("IPv4") };
    let server = EndpointConfig {
        preferred_address: Some(PreferredAddresses { ipv4: Some(v4), ipv6: None }),
        ..EndpointConfig::default()
    };
    let crypto = Arc::new(null_server());
    let endpoints = [EndpointConfig::default(), server];
    let mut pair = Pair::build([client, TransportConfig::default()], honest(), crypto, endpoints);
    pair.server.alias = receives.then(preferred);
    pair
}

fn exchange(pair: &mut Pair) {
    pair.carry(Side::Client, 200_000);
    pair.carry(Side::Server, 200_000);
    pair.lives();
}

fn offered(pair: &mut Pair) -> ConnectionId {
    pair.client.conn().peer_parameters().preferred_address.as_deref().unwrap().connection_id
}

#[test]
fn a_client_goes_over_once_the_server_has_answered_there() {
    for lost in [None, Some(Side::Client), Some(Side::Server)] {
        let mut pair = pair(TransportConfig::default(), true);
        let home = pair.server.address;
        // The first datagram to or from there is lost.
        let mut left = 1;
        pair.filter = Box::new(move |from, datagram| {
            let is_path = datagram[0] & 0x80 == 0 && datagram.len() == 1200;
            let drop = lost == Some(from) && is_path && left > 0;
            left -= usize::from(drop);
            !drop
        });
        pair.handshake();
        exchange(&mut pair);
        pair.run_for(3 * SECOND);
        let cid = offered(&mut pair);
        let client = pair.client.conn();
        assert_eq!(client.remote_address(), preferred());
        assert_eq!(client.path.remote_cids.active(), cid);
        // Datagrams from the original address are still welcome.
        assert!(client.may_come_from(home));
        exchange(&mut pair);
        assert_eq!(pair.client.conn().remote_address(), preferred());
        assert_eq!(pair.server.conn().remote_address(), pair.client.address);
    }
}

#[test]
fn nothing_but_challenges_goes_there_before() {
    let mut pair = pair(TransportConfig::default(), false);
    let home = pair.server.address;
    pair.handshake();
    exchange(&mut pair);
    pair.run_for(10 * SECOND);
    exchange(&mut pair);
    assert_eq!(pair.client.conn().remote_address(), home);
    let there: Vec<_> = pair.destinations.iter().filter(|(to, _)| *to == preferred()).collect();
    assert!((1..6).contains(&there.len()) && there.iter().all(|(_, size)| *size == 1200));
    assert!(!pair.client.conn().may_come_from(preferred()), "it was given up");
}

#[test]
fn no_identifier_is_used_with_both_addresses() {
    let mut pair = pair(TransportConfig::default(), true);
    let home = pair.server.address;
    pair.handshake();
    exchange(&mut pair);
    assert_eq!(pair.client.conn().remote_address(), preferred());
    // A server that sees its client move also challenges the client's old address.
    for (from, answers) in [(home, 0), (preferred(), 1)] {
        let datagram = pair.packet(Side::Server, &[Frame::PathChallenge([7; 8])]);
        pair.destinations.clear();
        pair.receive_from(Side::Client, from, datagram);
        pair.flush(Side::Client);
        let to_there = pair.destinations.iter().filter(|(to, size)| (*to, *size) == (from, 1200));
        assert_eq!(to_there.count(), answers);
    }
}

#[test]
fn a_client_may_decline() {
    let config = TransportConfig { preferred_address: false, ..TransportConfig::default() };
    let mut pair = pair(config, true);
    let home = pair.server.address;
    pair.handshake();
    exchange(&mut pair);
    assert_eq!(pair.client.conn().remote_address(), home);
    assert!(pair.destinations.iter().all(|(to, _)| *to != preferred()));
    // The identifier that came with the address serves as any other.
    let cid = offered(&mut pair);
    assert_eq!(pair.client.conn().path.remote_cids.next(), Some(cid));
}

#[test]
fn an_identifier_that_contradicts_the_handshake_is_a_violation() {
    let mut pair = Pair::connected();
    let offer = crate::wire_format::PreferredAddress {
        ipv4: None,
        ipv6: None,
        connection_id: pair.client.conn().path.remote_cids.active(),
        reset_token: [7; 16],
    };
    let error = pair.client.conn().learn_preferred_address(&offer).unwrap_err();
    assert_eq!(error.code, TransportErrorCode::TRANSPORT_PARAMETER_ERROR);
}
