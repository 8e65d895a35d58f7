//! The null handshake: documented sizes, errors like those of TLS, bounded memory.

use super::super::null::{NullClientConfig, NullServerConfig};
use super::*;

fn protocols(names: &[&str]) -> Vec<Vec<u8>> {
    names.iter().map(|name| name.as_bytes().to_vec()).collect()
}

pub(super) fn pair() -> Pair {
    Pair {
        client: Arc::new(NullClientConfig::new(protocols(&["first", "second"]))),
        server: Arc::new(NullServerConfig::new(protocols(&["third", "second"]))),
    }
}

/// The alert with which a server answers its first bytes.
fn alert_about(first: &[u8]) -> u64 {
    let (_, mut server) = pair().start();
    alert(&server.session.read_handshake(SpaceId::Initial, first).expect_err("no ClientHello"))
}

fn alert(error: &TransportError) -> u64 {
    error.code.0.checked_sub(0x100).expect("a TLS alert")
}

#[test]
fn messages_have_realistic_sizes() {
    let (client, server) = pair().connect();
    assert_eq!(client.sent, [(SpaceId::Initial, 280), (SpaceId::Handshake, 36)]);
    let [(SpaceId::Initial, 90), (SpaceId::Handshake, flight)] = server.sent[..] else {
        panic!("{:?}", server.sent);
    };
    assert!((900..1100).contains(&flight), "{flight}");

    let long = Pair {
        server: Arc::new(
            NullServerConfig::new(protocols(&["second"])).with_certificate_size(u16::MAX),
        ),
        ..pair()
    };
    let (client, server) = long.connect();
    assert!(!client.session.is_handshaking());
    assert!(server.sent[1].1 > 0xffff);
}

#[test]
fn the_same_handshake_gives_the_same_keys() {
    let seal = || {
        let (client, _) = pair().connect();
        sealed(&*client.one_rtt.expect("keys").local.packet, 3)
    };
    assert_eq!(seal(), seal());
}

#[test]
fn no_common_protocol_is_an_alert() {
    for offered in [&["fourth"][..], &[]] {
        let pair = Pair { client: Arc::new(NullClientConfig::new(protocols(offered))), ..pair() };
        let (mut client, mut server) = pair.start();
        let (side, error) = shake(&mut client, &mut server, 50).expect_err("no protocol");
        assert_eq!((side, error.code.0), (Side::Server, 0x178));
    }
}

#[test]
fn a_protocol_that_was_not_offered_is_an_alert() {
    // Two clients that differ only in the protocols that they offer; the first gets the answer to the second.
    let offer = |names: &[&str]| Pair {
        client: Arc::new(NullClientConfig::new(protocols(names))),
        ..pair()
    };
    let (mut asker, mut server) = offer(&["second"]).start();
    let (mut client, _) = offer(&["first"]).start();
    client.flush();
    hand_over(&mut asker, &mut server);
    let error = server
        .flush()
        .iter()
        .find_map(|(level, bytes)| client.session.read_handshake(*level, bytes).err())
        .expect("not offered");
    assert_eq!(alert(&error), 47);
}

#[test]
fn a_changed_flight_does_not_match_its_finished() {
    let (mut client, mut server) = pair().start();
    hand_over(&mut client, &mut server);
    let mut flights = server.flush();
    let certificate = flights[1].1.len() / 2;
    flights[1].1[certificate] ^= 1;
    client.session.read_handshake(SpaceId::Initial, &flights[0].1).expect("ServerHello");
    let error = client.session.read_handshake(SpaceId::Handshake, &flights[1].1);
    assert_eq!(alert(&error.expect_err("changed")), 51);
}

#[test]
fn messages_out_of_place_are_alerts() {
    for (kind, code) in [(2, 10), (20, 10), (99, 10)] {
        assert_eq!(alert_about(&[kind, 0, 0, 0]), code);
    }
    assert_eq!(alert_about(&[1, 0, 0, 2, 0, 9]), 50, "cut short");
}

#[test]
fn data_beyond_the_end_of_a_level_is_a_violation() {
    let (mut client, mut server) = pair().start();
    let mut hello = client.flush().remove(0).1;
    hello.push(11);
    let error = server.session.read_handshake(SpaceId::Initial, &hello).expect_err("too much");
    assert_eq!(error.code, TransportErrorCode::PROTOCOL_VIOLATION);
}

#[test]
fn an_oversized_message_is_refused_by_its_header() {
    assert_eq!(alert_about(&[1, 1, 0, 0]), 50, "longer than the bound");
    // A message just within the limit is accepted as incomplete.
    let (_, mut server) = pair().start();
    server.session.read_handshake(SpaceId::Initial, &[1, 0, 0xff, 0xff]).expect("within bounds");
}

#[test]
fn what_does_not_fit_a_message_is_refused_at_the_start() {
    let versions = || SessionVersions::fixed(VERSION_1);
    let client = NullClientConfig::new(protocols(&["first"]));
    assert!(client.start_session(versions(), SERVER_NAME, vec![0; 5000]).is_err());
    assert!(client.start_session(versions(), &"n".repeat(5000), Vec::new()).is_err());
    for names in [vec![Vec::new()], vec![vec![0; 256]], vec![vec![0; 255]; 17]] {
        let client = NullClientConfig::new(names.clone());
        assert!(client.start_session(versions(), "n", Vec::new()).is_err());
        assert!(NullServerConfig::new(names).start_session(versions(), Vec::new()).is_err());
    }
}

#[test]
fn masks_vary_with_the_sample() {
    let (client, _) = initial_keys(&pair(), b"original");
    let mask = |sample: u8| client.local.header.mask(&[sample; SAMPLE_LEN]).expect("a mask");
    let masks: std::collections::HashSet<_> = (0..=255).map(mask).collect();
    assert_eq!(masks.len(), 256);
}
