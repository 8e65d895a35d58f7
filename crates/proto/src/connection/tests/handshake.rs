//! Handshakes over bad networks and with bad peers.

use super::first_answer::retry;
use super::*;
use crate::connection::receive::{MAX_UNDECRYPTABLE, MAX_UNDECRYPTABLE_BYTES};
use crate::crypto::{ExportError, SAMPLE_LEN, SAMPLE_OFFSET};
use crate::wire_format::Close;

/// Checks that both ends connect and can exchange data.
fn completes(pair: &mut Pair) {
    pair.run_until(|pair| pair.client.conn().handshake.confirmed);
    pair.carry(Side::Client, 20_000);
    pair.complete();
}

#[test]
fn loss_of_each_datagram_in_turn() {
    for lost in 0..12 {
        let mut pair = Pair::new();
        pair.lose_any(move |n| n - 1 == lost);
        completes(&mut pair);
    }
}

#[test]
fn loss_of_each_pair_of_datagrams() {
    for first in 0..7 {
        for second in first + 1..8 {
            let mut pair = Pair::new();
            pair.lose_any(move |n| [first, second].contains(&(n - 1)));
            completes(&mut pair);
        }
    }
}

#[test]
fn each_of_two_probes_repeats_the_client_hello() {
    let mut pair = Pair::new();
    // The first flight is lost, and then the first of the two probes.
    let mut lost = 2;
    pair.filter = Box::new(move |from, _| {
        let arrives = from == Side::Server || lost == 0;
        lost -= usize::from(!arrives);
        arrives
    });
    // The probes are sent after a second, and the answer takes a tenth of a second. A PING would be
    // acknowledged then, and the ClientHello would follow.
    pair.run_for(1150 * MS);
    assert!(pair.client.events.contains(&Event::Connected));
    assert_eq!(pair.client.stats().probe_timeouts, 1);
}

#[test]
fn reordering_duplication_and_damage() {
    for seed in 0..30 {
        let mut pair = Pair::new();
        pair.disturb(seed);
        completes(&mut pair);
    }
}

#[test]
fn handshake_packets_before_the_initial_are_kept_for_their_keys() {
    let mut pair = Pair::new();
    // The server's first datagram, which carries its Initial, arrives after its second.
    pair.copies = Box::new(|from, n| {
        vec![if from == Side::Server && n == 0 { 20 * MS } else { Duration::ZERO }]
    });
    let until = pair.now + 130 * MS;
    while pair.step(until) {}
    assert!(pair.sent(Side::Server) > 1);
    assert!(pair.client.events.contains(&Event::Connected), "nothing had to be sent again");
    assert_eq!(pair.client.stats().probe_timeouts, 0);
}

#[test]
fn packets_without_keys_are_kept_within_bounds() {
    let mut pair = Pair::new();
    pair.flush(Side::Client);
    let dcid = pair.client.conn().handshake.local_cid;
    for len in (0..60).map(|i| 100 + i * 100) {
        // A well-formed Handshake packet with garbage content.
        let mut datagram = vec![0xe0, 0, 0, 0, 1, 8];
        datagram.extend_from_slice(dcid.as_slice());
        datagram.extend_from_slice(&[0, 0x40 | (len >> 8) as u8, len as u8]);
        datagram.resize(datagram.len() + len, 7);
        pair.receive(Side::Client, datagram);
    }
    let early = &pair.client.conn().early;
    assert_eq!(early.len(), MAX_UNDECRYPTABLE);
    assert!(early.bytes <= MAX_UNDECRYPTABLE_BYTES);
    completes(&mut pair);
    assert_eq!(pair.client.conn().early.len(), 0);
}

/// Whether the first packet of a datagram is an Initial.
fn is_initial(datagram: &[u8]) -> bool {
    datagram[0] & 0xf0 == 0xc0
}

#[test]
fn datagrams_with_initials_are_padded() {
    let mut pair = Pair::new();
    pair.filter = Box::new(|from, bytes| {
        if is_initial(bytes) {
            assert!(bytes.len() >= 1200, "{from:?}: {}", bytes.len());
        }
        true
    });
    completes(&mut pair);
}

#[test]
fn a_server_ignores_initials_in_small_datagrams() {
    let mut pair = Pair::new();
    pair.inject_packet(Side::Client, SpaceId::Initial, &[1; 100], Forgery::default());
    assert!(pair.server.connection.is_none());
    // An existing connection ignores them too.
    pair.step(pair.now + 51 * MS);
    let mut close = Vec::new();
    let code = TransportErrorCode::NO_ERROR;
    Frame::Close(Close::Transport { code, frame: None, reason: b"" }).encode(&mut close);
    pair.inject_packet(Side::Client, SpaceId::Initial, &close, Forgery::default());
    assert!(!pair.server.conn().is_closed());
    close.resize(1200, 0);
    pair.inject_packet(Side::Client, SpaceId::Initial, &close, Forgery::default());
    assert!(pair.server.conn().is_closed());
}

#[test]
fn garbage_opens_no_connection() {
    let mut pair = Pair::new();
    let address = ([127, 0, 0, 1], 9).into();
    let mut datagram = pair.forge(Side::Client, SpaceId::Initial, &[1; 1200], Forgery::default());
    let good = datagram.clone();
    for at in [6, 30, 100, datagram.len() - 1] {
        datagram.clone_from(&good);
        datagram[at] ^= 1;
        let event = pair.server.endpoint.handle(pair.now, address, &datagram);
        assert!(matches!(event, DatagramEvent::Drop), "{at}");
    }
    assert!(pair.server.endpoint.is_empty());
    let event = pair.server.endpoint.handle(pair.now, address, &good);
    assert!(matches!(event, DatagramEvent::NewConnection(..)));
}

#[test]
fn handshake_done_has_its_time_and_its_sender() {
    let mut pair = Pair::new();
    let code = TransportErrorCode::PROTOCOL_VIOLATION;
    let early = pair.client.conn().inject_frame(&Frame::HandshakeDone);
    assert_eq!(early.unwrap_err().code, code);
    let mut pair = Pair::connected();
    pair.inject(Side::Client, &[Frame::HandshakeDone]);
    assert_eq!(pair.error(Side::Server), Some(code));
    let mut pair = Pair::connected();
    pair.inject(Side::Server, &[Frame::HandshakeDone, Frame::HandshakeDone]);
    assert_eq!(pair.loss(Side::Client), None);
    pair.inject(Side::Client, &[Frame::NewToken(b"token")]);
    assert_eq!(pair.error(Side::Server), Some(code));
}

#[test]
fn alerts_of_tls_become_error_codes() {
    let crypto = NullServerConfig::new(vec![b"other".to_vec()]);
    let mut pair = Pair::with_cryptos(honest(), Arc::new(crypto));
    pair.run_for(SECOND);
    let no_application_protocol = TransportErrorCode::crypto(120);
    assert_eq!(pair.error(Side::Server), Some(no_application_protocol));
    assert_eq!(pair.refusal(Side::Client).unwrap().code, no_application_protocol);
}

#[test]
fn reserved_parameters_are_sent_and_tolerated() {
    let mut pair = Pair::connected();
    for side in [Side::Client, Side::Server] {
        let peer = pair.end(side.peer()).conn().peer.clone();
        let own = &pair.end(side).conn().handshake.local;
        assert_eq!(own.get(side), peer);
        let mut others = Vec::new();
        peer.encode(side, &mut others);
        assert!(own.encoded().len() > others.len(), "{side:?}");
    }
}

#[test]
fn one_rtt_packets_wait_for_the_end_of_the_handshake() {
    let mut pair = Pair::new();
    // The client's second flight, which completes the handshake, is lost, but later packets are not.
    pair.lose(Side::Client, |n| n == 2);
    let until = pair.now + 101 * MS;
    while pair.step(until) {}
    assert!(pair.client.conn().handshake.complete && !pair.server.conn().handshake.complete);
    let id = pair.open(Side::Client, None);
    pair.client.conn().send_stream(id).write(b"early").unwrap();
    pair.run_for(60 * MS);
    assert!(pair.server.conn().accept(Dir::Uni).is_none());
    assert!(pair.server.conn().early.len() > 0);
    pair.client.conn().send_stream(id).finish().unwrap();
    assert_eq!(pair.accept_and_read(Side::Server, Dir::Uni), b"early");
}

#[test]
fn both_ends_export_the_same_keying_material_once_the_handshake_is_complete() {
    let export = |pair: &mut Pair, side, label: &[u8], context| {
        let mut output = [0; 40];
        let end = pair.end(side).conn();
        end.export_keying_material(&mut output, label, context).map(|()| output)
    };
    let mut pair = Pair::new();
    assert_eq!(export(&mut pair, Side::Client, b"label", None), Err(ExportError::Unavailable));
    pair.run_until(|pair| pair.client.conn().handshake.complete);
    // The server has all keys by now, but does not know yet that the client has them, too.
    assert_eq!(export(&mut pair, Side::Server, b"label", None), Err(ExportError::Unavailable));
    pair.handshake();
    let ours = export(&mut pair, Side::Client, b"label", Some(b"context")).unwrap();
    assert_eq!(export(&mut pair, Side::Server, b"label", Some(b"context")), Ok(ours));
    assert_ne!(export(&mut pair, Side::Server, b"another label", Some(b"context")), Ok(ours));
    assert_ne!(export(&mut pair, Side::Server, b"label", None), Ok(ours));
}

/// A ClientHello with a post-quantum key share is larger than a packet.
#[test]
fn a_client_hello_may_span_several_packets() {
    let mut protocols: Vec<_> = (0..14u8).map(|n| vec![n; 250]).collect();
    protocols.push(b"test".to_vec());
    let client = Arc::new(NullClientConfig::new(protocols));
    for lost in 0..8 {
        let mut pair = Pair::with_cryptos(client.clone(), Arc::new(null_server()));
        pair.flush(Side::Client);
        assert!(pair.sent(Side::Client) > 2);
        pair.lose_any(move |n| n == lost);
        completes(&mut pair);
    }
    // The server puts the parts together, whichever arrives first.
    let mut pair = Pair::with_cryptos(client, Arc::new(null_server()));
    pair.copies = Box::new(|_, n| vec![(20 - 5 * n.min(4) as u32) * MS]);
    completes(&mut pair);
}

#[test]
fn the_first_destination_is_unpredictable() {
    let mut pair = Pair::new();
    let (now, remote) = (pair.now, pair.server.address);
    let mut bits = [0; 64];
    for _ in 0..200 {
        let config = client_config();
        let next = pair.client.endpoint.connect(now, config, remote, "localhost").unwrap().1;
        let dcid = next.handshake.original_dcid;
        assert!(dcid.len() >= 8, "RFC 9000 section 7.2");
        let (bytes, _) = dcid.as_slice().split_first_chunk::<8>().unwrap();
        let number = u64::from_be_bytes(*bytes);
        (0..64).for_each(|bit| bits[bit] += number >> bit & 1);
    }
    // Each bit is set in about half of them.
    assert!(bits.iter().all(|set| (60..140).contains(set)), "{bits:?}");
}

/// A client needs no Initial keys once it has sent a Handshake packet, a server once it has processed
/// one, and neither needs Handshake keys once the handshake is confirmed.
#[test]
fn keys_are_discarded_as_soon_as_they_may_be_and_that_is_no_loss() {
    let mut pair = Pair::new();
    let mut seen = 0;
    while pair.step(pair.now + SECOND) {
        for side in [Side::Client, Side::Server] {
            let Some(connection) = &pair.end(side).connection else { continue };
            let [initial, handshake] =
                [SpaceId::Initial, SpaceId::Handshake].map(|id| &connection.spaces[id]);
            let confirmed = connection.handshake.confirmed;
            let beyond = confirmed
                || match side {
                    Side::Client => handshake.peek_pn() > 0,
                    Side::Server => handshake.acks.largest().is_some(),
                };
            assert_eq!(initial.keys.is_none(), beyond, "{side:?}");
            assert_eq!(handshake.keys.is_none() && beyond, connection.handshake.confirmed);
            if beyond {
                let space = SpaceId::Initial;
                assert!(!connection.path.recovery.has_ack_eliciting_in_flight(space));
                assert_eq!(connection.path.recovery.sent(space).count(), 0);
            }
            seen += u32::from(beyond && !connection.handshake.confirmed);
        }
    }
    assert!(seen > 0, "there is a time between the two");
    for side in [Side::Client, Side::Server] {
        let stats = pair.end(side).stats();
        assert_eq!((stats.packets_lost, stats.bytes_in_flight), (0, 0), "{side:?}");
    }
}

/// Once an Initial of the server was processed, a Retry can only be a forgery.
#[test]
fn a_retry_after_an_initial_is_ignored() {
    let mut pair = Pair::new();
    pair.run_until(|pair| pair.client.conn().handshake.peer_scid.is_some());
    let before = pair.client.conn().path.remote_cids.active();
    let packet = retry(&mut pair, cid(7), b"a token");
    pair.receive(Side::Client, packet);
    assert_eq!(pair.client.conn().path.remote_cids.active(), before);
    completes(&mut pair);
}

/// The sample for header protection begins four bytes behind the start of the packet number.
#[test]
fn the_shortest_packet_has_room_for_a_sample() {
    let mut pair = Pair::connected();
    let ping = |pair: &mut Pair, side| {
        let before = pair.sent(side);
        pair.end(side).space().ping = true;
        pair.flush(side);
        pair.datagrams[side as usize][before]
    };
    // Afterwards there is nothing left to be acknowledged that would make a packet longer.
    ping(&mut pair, Side::Client);
    for side in [Side::Server, Side::Client] {
        pair.run_for(SECOND);
        let header = 1 + pair.end(side).conn().path.remote_cids.active().len();
        let received = pair.end(side.peer()).stats().received.packets;
        assert_eq!(ping(&mut pair, side), header + SAMPLE_OFFSET + SAMPLE_LEN);
        pair.run_for(pair.latency);
        assert_eq!(pair.end(side.peer()).stats().received.packets, received + 1);
    }
}
