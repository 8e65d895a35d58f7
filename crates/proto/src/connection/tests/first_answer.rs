//! Retry and Version Negotiation, on the client and on the server.

use super::*;
use crate::connection::first_answer::MAX_TOKEN;
use crate::crypto::retry::integrity_tag;
use crate::wire::packet::{
    DecodedPacket, HeaderRules, VERSION_1, encode_retry, encode_version_negotiation, parse,
    parse_invariants,
};
use crate::wire::version::Version;

const RULES: HeaderRules = HeaderRules { local_cid_len: 8, greased: false };
const TOKEN: &[u8] = b"a token";

/// A pair whose first datagram from the client was lost.
fn waiting() -> Pair {
    let mut pair = Pair::new();
    pair.cut();
    pair.flush(Side::Client);
    pair.mend();
    pair
}

pub(super) fn retry(pair: &mut Pair, scid: ConnectionId, token: &[u8]) -> Vec<u8> {
    let handshake = &pair.client.conn().handshake;
    let mut packet = Vec::new();
    encode_retry(Version::V1, handshake.local_cid, scid, token, &mut packet);
    let tag = integrity_tag(Version::V1, &handshake.original_dcid, &packet).unwrap();
    packet.extend_from_slice(&tag);
    packet
}

/// The client receives a [`retry`].
fn receive_retry(pair: &mut Pair, scid: ConnectionId, token: &[u8]) {
    let packet = retry(pair, scid, token);
    pair.receive(Side::Client, packet);
}

/// The destination and token of the Initial that the client sends next, if any.
fn next_initial(pair: &mut Pair) -> Option<(ConnectionId, Vec<u8>)> {
    let (now, mut out) = (pair.now, Vec::new());
    pair.client.conn().poll_transmit(now, 1, &mut out)?;
    let Ok(DecodedPacket::Protected(packet)) = parse(&out, 0, RULES) else { panic!("no packet") };
    Some((packet.dcid, out[packet.token].to_vec()))
}

#[test]
fn a_retry_is_followed_once() {
    let mut pair = waiting();
    let in_flight = pair.client.stats().bytes_in_flight;
    receive_retry(&mut pair, cid(7), TOKEN);
    assert_eq!(pair.client.stats().bytes_in_flight, 0);
    assert_eq!(next_initial(&mut pair), Some((cid(7), TOKEN.to_vec())));
    assert!(pair.client.stats().bytes_in_flight >= in_flight);
    // Packet numbers are not reused (RFC 9000 section 17.2.5.3).
    assert_eq!(pair.client.conn().spaces[SpaceId::Initial].peek_pn(), 2);
    receive_retry(&mut pair, cid(8), b"another token");
    assert_eq!(next_initial(&mut pair), None);
}

#[test]
fn a_server_that_sent_a_retry_must_say_so() {
    let mut pair = waiting();
    receive_retry(&mut pair, cid(7), TOKEN);
    // To the server this Initial is the first one, so it does not authenticate the Retry.
    pair.run_for(SECOND);
    assert_eq!(pair.error(Side::Client), Some(TransportErrorCode::TRANSPORT_PARAMETER_ERROR));
}

#[test]
fn what_is_no_retry_for_this_client_is_ignored() {
    let mut forged = waiting();
    let mut packet = retry(&mut forged, cid(7), TOKEN);
    *packet.last_mut().unwrap() ^= 1;
    let original = forged.client.conn().handshake.original_dcid;
    let loop_back = retry(&mut forged, original, TOKEN);
    let long = retry(&mut forged, cid(7), &[0; 1000]);
    for packet in [packet, loop_back, long] {
        forged.receive(Side::Client, packet);
        assert_eq!(next_initial(&mut forged), None);
    }
    // The probe goes where the first Initial went, and the handshake completes.
    forged.run_for(3 * SECOND);
    assert!(forged.client.events.contains(&Event::Connected));
}

#[test]
fn a_late_retry_is_ignored() {
    let mut pair = Pair::connected();
    receive_retry(&mut pair, cid(7), TOKEN);
    pair.carry(Side::Client, 5000);
}

fn negotiation(pair: &mut Pair, scid: Option<ConnectionId>, versions: &[u32]) -> Vec<u8> {
    let handshake = &pair.client.conn().handshake;
    let scid = scid.unwrap_or(handshake.original_dcid);
    let mut packet = Vec::new();
    let dcid = handshake.local_cid;
    encode_version_negotiation(dcid.as_slice(), scid.as_slice(), versions, &mut packet);
    packet
}

#[test]
fn a_client_gives_up_on_a_server_of_other_versions() {
    let mut pair = waiting();
    let packet = negotiation(&mut pair, None, &[0x1a2a_3a4a, 2]);
    pair.receive(Side::Client, packet);
    let expected = Event::ConnectionLost(ConnectionError::VersionMismatch);
    assert_eq!(pair.client.events, [expected]);
    assert!(pair.client.conn().is_drained());
    assert!(pair.client.endpoint.is_empty());
}

#[test]
fn version_negotiation_that_makes_no_sense_is_ignored() {
    let mut pair = waiting();
    for packet in
        [negotiation(&mut pair, None, &[2, VERSION_1]), negotiation(&mut pair, Some(cid(9)), &[2])]
    {
        pair.receive(Side::Client, packet);
        assert!(!pair.client.conn().is_closed());
    }
    pair.run_for(3 * SECOND);
    assert!(pair.client.events.contains(&Event::Connected));
    let packet = negotiation(&mut pair, None, &[2]);
    pair.receive(Side::Client, packet);
    assert!(!pair.client.conn().is_closed());
}

#[test]
fn a_server_tells_its_version_to_large_datagrams_of_others() {
    let mut pair = Pair::new();
    let mut datagram = vec![0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 30];
    datagram.extend([5; 30]);
    datagram.push(200);
    datagram.extend([6; 200]);
    datagram.resize(1200, 0);
    let from = ([127, 0, 0, 1], 9).into();
    let DatagramEvent::Respond(answer) = pair.server.endpoint.handle(pair.now, from, &datagram)
    else {
        panic!("no answer")
    };
    let head = parse_invariants(&answer, 8).unwrap();
    assert_eq!((head.version, head.dcid, head.scid), (Some(0), &[6; 200][..], &[5; 30][..]));
    let versions = answer[1 + 4 + 1 + 200 + 1 + 30..].as_chunks::<4>().0;
    assert!(versions.contains(&VERSION_1.to_be_bytes()));
    assert!(versions.iter().any(|v| u32::from_be_bytes(*v) & 0x0f0f_0f0f == 0x0a0a_0a0a));
    for ignored in [&datagram[..1199], &answer] {
        let event = pair.server.endpoint.handle(pair.now, from, ignored);
        assert!(matches!(event, DatagramEvent::Drop));
    }
    // A client endpoint never answers.
    assert!(matches!(pair.client.endpoint.handle(pair.now, from, &datagram), DatagramEvent::Drop));
}

/// The longest token that is taken leaves room for the handshake and for a close; a longer one is no Retry.
#[test]
fn a_long_token_leaves_room_for_the_handshake_and_for_a_close() {
    let mut pair = waiting();
    let packet = retry(&mut pair, cid(7), &[5; MAX_TOKEN + 1]);
    pair.receive(Side::Client, packet);
    assert_eq!(next_initial(&mut pair), None);
    let mut pair = waiting();
    let packet = retry(&mut pair, cid(7), &[5; MAX_TOKEN]);
    pair.receive(Side::Client, packet);
    let (_, token) = next_initial(&mut pair).unwrap();
    assert_eq!(token.len(), MAX_TOKEN);
    pair.close(Side::Client, 7, b"a reason");
    let (_, token) = next_initial(&mut pair).expect("nothing says that the connection is closed");
    assert_eq!(token.len(), MAX_TOKEN);
}
