//! Packets that must be rejected, and packets that must be ignored.

use super::crowd::Crowd;
use super::*;
use crate::wire_format::Close;
use crate::{EndpointEvent, Offence};

/// How a server reacts to a 1-RTT packet with this payload and these bits in its first byte.
fn verdict(payload: &[u8], bits: u8) -> Option<TransportErrorCode> {
    let mut pair = Pair::connected();
    let forgery = Forgery { bits, ..Forgery::default() };
    pair.inject_packet(Side::Client, SpaceId::Data, payload, forgery);
    pair.error(Side::Server)
}

#[test]
fn malformed_payloads() {
    use TransportErrorCode as Code;
    let cases: [(&[u8], u8, Option<Code>); 9] = [
        (&[1, 0, 0, 0], 0, None),
        (&[], 0, Some(Code::PROTOCOL_VIOLATION)),
        // Reserved bits.
        (&[1, 0, 0, 0], 0x08, Some(Code::PROTOCOL_VIOLATION)),
        (&[1, 0, 0, 0], 0x10, Some(Code::PROTOCOL_VIOLATION)),
        // Unknown and reserved types: there is no greasing of frames.
        (&[0x3f, 0, 0, 0], 0, Some(Code::FRAME_ENCODING_ERROR)),
        (&[0x40, 0x3f, 0, 0], 0, Some(Code::PROTOCOL_VIOLATION)),
        // PING encoded in two bytes.
        (&[0x40, 1, 0, 0], 0, Some(Code::PROTOCOL_VIOLATION)),
        // Truncated.
        (&[0x10, 0x40], 0, Some(Code::FRAME_ENCODING_ERROR)),
        // An ACK range below zero.
        (&[2, 0, 0, 0, 1], 0, Some(Code::FRAME_ENCODING_ERROR)),
    ];
    for (payload, bits, expected) in cases {
        assert_eq!(verdict(payload, bits), expected, "{payload:x?} {bits:#x}");
    }
}

#[test]
fn frames_in_packets_that_must_not_have_them() {
    let mut pair = Pair::new();
    pair.step(pair.now + 51 * MS);
    let payload = padded(&[0x08, 0, b'x']);
    pair.inject_packet(Side::Client, SpaceId::Initial, &payload, Forgery::default());
    assert_eq!(pair.error(Side::Server), Some(TransportErrorCode::PROTOCOL_VIOLATION));
}

#[test]
fn an_address_whose_clients_keep_breaking_the_protocol_is_shut_out() {
    let mut pair = Pair::connected();
    let (now, address) = (pair.now, pair.server.conn().remote_address());
    assert!(pair.server.conn().remote_address_validated());
    let datagram = pair.forge(Side::Client, SpaceId::Data, &[0x3f, 0, 0, 0], Forgery::default());
    pair.server.conn().handle_datagram(now, address, None, &mut datagram.clone());
    let events = std::iter::from_fn(|| pair.server.conn().poll_endpoint_event());
    let events: Vec<_> = events.collect();
    let blame = EndpointEvent::Blamed(address.ip(), now, Offence::Connection);
    assert_eq!(events.iter().filter(|event| **event == blame).count(), 1, "{events:?}");
    // After some dozens of such connections, the address is refused.
    let mut crowd = Crowd::new(EndpointConfig::default());
    let (here, there) = (SocketAddr::new(address.ip(), 7), "198.51.100.9:7".parse().unwrap());
    let other = crowd.initial();
    let DatagramEvent::NewConnection(other) = crowd.server.handle(now, there, &other) else {
        panic!("not let in")
    };
    let initial = crowd.initial();
    for n in 0.. {
        let answer = crowd.server.handle(now, here, &initial);
        match answer {
            DatagramEvent::NewConnection(client) => crowd.server.ignore(client),
            DatagramEvent::Respond(refusal) => {
                assert!(n >= 50, "a client with a bug is let in for a while");
                assert!(refusal.len() < 100, "no state, and few bytes");
                break;
            }
            answer => panic!("{answer:?}"),
        }
        assert!(n < 1000);
        let blame = EndpointEvent::Blamed(address.ip(), now, Offence::Connection);
        crowd.server.handle_event(other.handle(), blame);
    }
    let answer = crowd.server.handle(now, there, &initial);
    assert!(matches!(answer, DatagramEvent::NewConnection(_)), "others come in: {answer:?}");
}

fn close_frame() -> Vec<u8> {
    let code = TransportErrorCode::NO_ERROR;
    encoded(&Frame::Close(Close::Transport { code, frame: None, reason: b"" }))
}

#[test]
fn coalesced_packets_for_somebody_else_are_ignored_and_harm_none() {
    let mut pair = Pair::new();
    pair.step(pair.now + 51 * MS);
    let other = Forgery { dcid: Some(cid(7)), ..Forgery::default() };
    let ping = padded(&[1]);
    let mut datagram = pair.forge(Side::Client, SpaceId::Initial, &ping, Forgery::default());
    datagram.extend(pair.forge(Side::Client, SpaceId::Initial, &close_frame(), other));
    let before = pair.server.stats().received.packets;
    pair.receive(Side::Server, datagram);
    assert_eq!(pair.server.stats().received.packets, before + 1);
    assert!(!pair.server.conn().is_closed());
}

#[test]
fn a_damaged_packet_does_not_cost_its_neighbours() {
    let mut pair = Pair::new();
    pair.step(pair.now + 51 * MS);
    let ping = padded(&[1]);
    let mut datagram = pair.forge(Side::Client, SpaceId::Initial, &ping, Forgery::default());
    datagram[700] ^= 1;
    datagram.extend(pair.forge(Side::Client, SpaceId::Initial, &ping, Forgery::default()));
    let before = pair.server.stats();
    pair.receive(Side::Server, datagram);
    let after = pair.server.stats();
    assert_eq!(after.undecryptable, before.undecryptable + 1);
    assert_eq!(after.received.packets, before.received.packets + 1);
}

#[test]
fn packets_from_another_source_identifier_are_discarded() {
    let mut pair = Pair::new();
    let other = Forgery { scid: ConnectionId::new(&[7; 8]), ..Forgery::default() };
    let payload = padded(&close_frame());
    pair.run_until(|pair| pair.server.connection.is_some());
    pair.inject_packet(Side::Client, SpaceId::Initial, &payload, other);
    assert!(!pair.server.conn().is_closed());
    // An unauthenticated packet does not choose the identifier either.
    let mut datagram = pair.forge(Side::Server, SpaceId::Initial, &payload, other);
    *datagram.last_mut().unwrap() ^= 1;
    pair.receive(Side::Client, datagram);
    assert_eq!(pair.client.conn().handshake.peer_scid, None);
    pair.run_for(SECOND);
    assert!(pair.client.conn().handshake.confirmed);
}

#[test]
fn duplicates_are_dropped() {
    let mut pair = Pair::connected();
    let datagram = pair.packet(Side::Client, &[Frame::Ping]);
    let before = pair.server.stats().received.packets;
    for _ in 0..5 {
        pair.receive(Side::Server, datagram.clone());
    }
    assert_eq!(pair.server.stats().received.packets, before + 1);
}

#[test]
fn path_challenges_are_answered_once_in_a_padded_datagram() {
    let mut pair = Pair::connected();
    let before = pair.sent(Side::Server);
    for n in 0..100 {
        pair.inject(Side::Client, &[Frame::PathChallenge([n; 8])]);
    }
    pair.flush(Side::Server);
    let answers = &pair.datagrams[Side::Server as usize][before..];
    let padded = answers.iter().filter(|size| **size == 1200).count();
    assert_eq!((padded, answers.len()), (1, 2), "a response and an acknowledgement");
}

#[test]
fn handshake_data_out_of_order_is_bounded() {
    let mut pair = Pair::connected();
    pair.inject(Side::Client, &[Frame::Crypto { offset: 1 << 20, data: b"x" }]);
    assert_eq!(pair.error(Side::Server), Some(TransportErrorCode::CRYPTO_BUFFER_EXCEEDED));
}

#[test]
fn datagrams_without_a_packet_are_dropped() {
    let mut pair = Pair::connected();
    let (now, from) = (pair.now, pair.client.address);
    let dcid = pair.client.conn().path.remote_cids.active();
    let mut datagrams: Vec<Vec<u8>> = vec![vec![]];
    datagrams.extend((0..=255).map(|byte| vec![byte]));
    // A header that ends anywhere, for a connection that is known.
    let header = [&[0x40], dcid.as_slice(), &[0; 19]].concat();
    datagrams.extend((1..header.len()).map(|len| header[..len].to_vec()));
    let before = pair.server.stats().received.packets;
    for datagram in datagrams {
        let event = pair.server.endpoint.handle(now, from, &datagram);
        assert!(!matches!(event, DatagramEvent::NewConnection(..) | DatagramEvent::Respond(_)));
        pair.receive(Side::Server, datagram.clone());
        pair.receive(Side::Client, datagram);
    }
    assert_eq!(pair.server.stats().received.packets, before);
    assert!(!pair.server.conn().is_closed() && !pair.client.conn().is_closed());
}
