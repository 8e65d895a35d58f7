//! Versions of QUIC, and agreeing on one of them.

use super::*;
use crate::Version::{V1, V2};
use crate::wire::packet::encode_version_negotiation;
use std::cell::RefCell;

fn supporting(versions: &[Version]) -> EndpointConfig {
    EndpointConfig { versions: versions.to_vec(), ..EndpointConfig::default() }
}

fn pair(client: &[Version], server: &[Version]) -> Pair {
    Pair::with_endpoints([supporting(client), supporting(server)])
}

fn exchange(pair: &mut Pair, expected: Version) {
    pair.handshake();
    assert_eq!(pair.client.conn().version(), expected);
    assert_eq!(pair.server.conn().version(), expected);
    pair.carry(Side::Client, 100_000);
    pair.carry(Side::Server, 100_000);
}

/// Version Negotiation in the name of the server.
fn negotiation(pair: &mut Pair, versions: &[Version]) -> Vec<u8> {
    let handshake = &pair.client.conn().handshake;
    let (dcid, scid) = (handshake.local_cid, handshake.original_dcid);
    let versions: Vec<u32> = versions.iter().map(|version| version.number()).collect();
    let mut packet = Vec::new();
    encode_version_negotiation(dcid.as_slice(), scid.as_slice(), &versions, &mut packet);
    packet
}

#[test]
fn version_2_has_its_own_numbers() {
    let mut pair = pair(&[V2], &[V1, V2]);
    let types = Rc::new(RefCell::new(Vec::new()));
    let log = types.clone();
    pair.filter = Box::new(move |_, datagram| {
        if datagram[0] & 0x80 != 0 {
            log.borrow_mut().push((datagram[0] >> 4 & 3, datagram[1..5].to_vec()));
        }
        true
    });
    exchange(&mut pair, V2);
    let types = types.borrow();
    assert!(types.iter().all(|(_, version)| version[..] == [0x6b, 0x33, 0x43, 0xcf]));
    // Initial and Handshake (RFC 9369 section 3.2).
    assert!(
        types.iter().any(|(ty, _)| *ty == 1) && types.iter().all(|(ty, _)| [1, 3].contains(ty))
    );
}

#[test]
fn a_client_begins_with_its_best_version_and_goes_over_to_one_of_the_server() {
    for (client, server, expected) in [
        (&[V1][..], &[V1, V2][..], V1),
        (&[V1, V2], &[V1, V2], V1),
        (&[V2, V1], &[V1], V1),
        (&[V1, V2], &[V2], V2),
    ] {
        exchange(&mut pair(client, server), expected);
    }
}

#[test]
fn without_a_common_version_there_is_no_connection() {
    let mut pair = pair(&[V1], &[V2]);
    pair.run_until(|pair| pair.loss(Side::Client).is_some());
    assert_eq!(pair.loss(Side::Client), Some(ConnectionError::VersionMismatch));
    assert!(pair.server.connection.is_none());
}

#[test]
fn a_forged_packet_does_not_make_a_client_use_a_worse_version() {
    // The second server would go back to the better version, but the client cannot rely on that.
    for server in [[V1, V2], [V2, V1]] {
        let mut pair = pair(&[V2, V1], &server);
        let forged = negotiation(&mut pair, &[V1]);
        pair.receive(Side::Client, forged);
        assert_eq!(pair.client.conn().version(), V1);
        pair.run_for(2 * SECOND);
        assert_eq!(pair.error(Side::Client), Some(TransportErrorCode::VERSION_NEGOTIATION_ERROR));
        assert!(!pair.client.events.contains(&Event::Connected));
    }
}

#[test]
fn a_server_that_says_nothing_of_its_versions_is_believed_for_version_1_only() {
    let silent = |versions| EndpointConfig { extensions: Extensions::NONE, ..supporting(versions) };
    let mut old = Pair::with_endpoints([supporting(&[V2, V1]), silent(&[V1])]);
    exchange(&mut old, V1);
    let mut odd = Pair::with_endpoints([supporting(&[V1, V2]), silent(&[V2])]);
    odd.run_for(2 * SECOND);
    assert_eq!(odd.error(Side::Client), Some(TransportErrorCode::VERSION_NEGOTIATION_ERROR));
}

#[test]
fn a_client_goes_over_once_and_only_to_other_versions() {
    let mut pair = pair(&[V1, V2], &[V1, V2]);
    // Ours is among them, so this cannot be an answer.
    let senseless = negotiation(&mut pair, &[V1, V2]);
    pair.receive(Side::Client, senseless);
    assert_eq!(pair.client.conn().version(), V1);
    let first = negotiation(&mut pair, &[V2]);
    let second = negotiation(&mut pair, &[V1]);
    pair.receive(Side::Client, first);
    pair.receive(Side::Client, second);
    assert_eq!(pair.client.conn().version(), V2);
}

#[test]
fn retries_of_version_2_are_followed() {
    let server = EndpointConfig { retry_above: Some(0), ..supporting(&[V2]) };
    exchange(&mut Pair::with_endpoints([supporting(&[V1, V2]), server]), V2);
}
