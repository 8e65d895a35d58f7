//! Data with the first flight.

use super::*;

/// A little more than the time that a datagram takes to the other end.
const HALF_ROUND: Duration = Duration::from_millis(51);

fn crypto() -> NullServerConfig {
    null_server().with_early_data()
}

/// A pair whose client has a ticket and is about to use it.
fn pair() -> Pair {
    resuming([TransportConfig::default(), TransportConfig::default()], &EndpointConfig::default())
}

pub(super) fn resuming(transport: [TransportConfig; 2], endpoint: &EndpointConfig) -> Pair {
    let endpoints = [endpoint.clone(), endpoint.clone()];
    let mut pair = Pair::build(transport, honest(), Arc::new(crypto()), endpoints).ready();
    pair.reconnect();
    let now = pair.now;
    assert!(pair.client.conn().start_0rtt(now), "there is a ticket");
    pair
}

/// A server that never sends a token, but always a Retry.
fn retry() -> EndpointConfig {
    EndpointConfig { retry_above: Some(0), new_tokens: false, ..EndpointConfig::default() }
}

/// A server that has forgotten all sessions, as after a restart.
pub(super) fn forgetful() -> Arc<ServerConfig> {
    Arc::new(ServerConfig { crypto: Arc::new(crypto()), transport: Arc::default() })
}

/// Checks that the handshake completes, and that both ends know whether 0-RTT was accepted.
fn completes_with(pair: &mut Pair, accepts: bool) {
    pair.complete();
    assert_eq!(accepted(pair), [Some(accepts); 2]);
}

fn accepted(pair: &mut Pair) -> [Option<bool>; 2] {
    [Side::Client, Side::Server].map(|side| pair.end(side).conn().zero_rtt_accepted())
}

#[test]
fn data_arrives_after_half_a_round_trip_and_is_answered_after_one() {
    let mut pair = pair();
    let data = pattern(5000);
    let id = pair.send(Side::Client, Dir::Bi, &data);
    pair.run_for(HALF_ROUND);
    let server = pair.server.conn();
    assert!(server.is_handshaking() && server.accept(Dir::Bi) == Some(id));
    assert!(server.recv_stream(id).is_0rtt());
    assert_eq!(pair.read_to_end(Side::Server, id, Duration::ZERO), data);
    let answer = pattern(700);
    pair.server.conn().send_stream(id).write(&answer).unwrap();
    pair.server.conn().send_stream(id).finish().unwrap();
    assert_eq!(pair.read_to_end(Side::Client, id, HALF_ROUND), answer);
    assert!(!pair.client.events.contains(&Event::ZeroRttRejected));
    completes_with(&mut pair, true);
    assert_eq!(pair.client.stats().stream_bytes_retransmitted, 0);
}

#[test]
fn early_data_is_known_as_such_until_the_handshake_is_complete() {
    let mut pair = pair();
    let early = pair.send(Side::Client, Dir::Uni, b"early");
    pair.run_for(HALF_ROUND);
    assert!(pair.server.conn().recv_stream(early).is_0rtt());
    pair.run_for(2 * HALF_ROUND);
    assert!(!pair.server.conn().is_handshaking());
    assert!(!pair.server.conn().recv_stream(early).is_0rtt(), "it was no copy");
    let late = pair.send(Side::Client, Dir::Uni, b"late");
    pair.run_for(HALF_ROUND);
    assert!(!pair.server.conn().recv_stream(late).is_0rtt());
}

#[test]
fn without_a_ticket_or_without_leave_there_is_no_0rtt() {
    let config = TransportConfig::default;
    let refusing = null_server();
    for (crypto, permitted) in [(crypto(), true), (refusing, false)] {
        let mut pair = Pair::with_crypto(config(), config(), crypto);
        let now = pair.now;
        assert!(!pair.client.conn().start_0rtt(now), "the first connection");
        pair.handshake();
        assert!(!pair.client.conn().start_0rtt(now), "too late");
        pair.reconnect();
        pair.handshake();
        assert_eq!(accepted(&mut pair)[0], None, "nobody asked for it");
        pair.reconnect();
        assert_eq!(pair.client.conn().start_0rtt(now), permitted);
    }
}

#[test]
fn what_is_rejected_never_was() {
    let mut pair = pair();
    pair.server.endpoint.set_server_config(Some(forgetful()));
    let id = pair.send(Side::Client, Dir::Uni, b"never to be seen");
    let answer = pair.send(Side::Client, Dir::Bi, b"nor this");
    let datagram = pair.client.conn().datagrams().send(Bytes::from_static(b"nor this")).unwrap();
    let options = Default::default();
    let message = pair.client.conn().send_message(Bytes::from_static(b"this"), options).unwrap();
    pair.run_for(2 * HALF_ROUND);
    assert_eq!(pair.client.events[0], Event::ZeroRttRejected);
    assert!(pair.client.events.contains(&Event::Connected));
    let now = pair.now;
    assert!(!pair.client.conn().start_0rtt(now), "there is no second attempt");
    let client = pair.client.conn();
    assert_eq!(client.poll_message_outcome(), Some((message, MessageOutcome::GivenUp)));
    assert_eq!(client.poll_message_outcome(), Some((datagram, MessageOutcome::GivenUp)));
    assert!(client.send_stream(id).write(b"more").is_err());
    assert!(client.recv_stream(answer).read(&mut [0; 8]).is_err());
    // The application sends the same data again, or other data.
    assert_eq!(pair.send(Side::Client, Dir::Uni, &pattern(20_000)), id);
    pair.takes(Side::Server, 20_000);
    assert!(pair.server.conn().datagrams().recv().is_none());
    assert!(pair.server.conn().accept(Dir::Bi).is_none());
    completes_with(&mut pair, false);
    let of_old = |event: &Event| matches!(event, Event::Stream(StreamEvent::Finished { .. }));
    assert_eq!(pair.client.events.iter().filter(|event| of_old(event)).count(), 1);
}

#[test]
fn a_server_whose_limits_have_changed_forgets_what_it_permitted() {
    for streams in [99, 101] {
        let mut pair = Pair::with_crypto(Default::default(), Default::default(), crypto()).ready();
        let config = TransportConfig { max_concurrent_uni_streams: streams, ..Default::default() };
        pair.replace_server_transport(config);
        pair.reconnect();
        let now = pair.now;
        assert!(pair.client.conn().start_0rtt(now));
        pair.send(Side::Client, Dir::Uni, b"early");
        completes_with(&mut pair, false);
        assert!(pair.server.conn().accept(Dir::Uni).is_none());
    }
}

#[test]
fn accepted_with_lower_limits_is_an_error() {
    let mut pair = pair();
    // As if the server had permitted more before.
    let remembered = pair.client.conn().zero_rtt.remembered.as_mut().unwrap();
    remembered.initial_max_stream_data_uni += 1;
    pair.run_for(SECOND);
    assert_eq!(pair.error(Side::Client), Some(TransportErrorCode::PROTOCOL_VIOLATION));
}

#[test]
fn remembered_limits_are_kept_to() {
    let server = TransportConfig {
        max_concurrent_uni_streams: 2,
        stream_receive_window: 1000,
        ..TransportConfig::default()
    };
    let mut pair = resuming([TransportConfig::default(), server], &EndpointConfig::default());
    let ids = [(); 3].map(|()| pair.client.conn().open(Dir::Uni));
    assert!(ids[1].is_some() && ids[2].is_none());
    let id = ids[0].unwrap();
    assert_eq!(pair.client.conn().send_stream(id).write(&[1; 3000]), Ok(3000));
    pair.run_for(HALF_ROUND);
    assert_eq!(pair.server.conn().accept(Dir::Uni), Some(id));
    assert_eq!(pair.server.conn().stream_stats().received, 1000);
    pair.client.conn().send_stream(id).finish().unwrap();
    assert_eq!(pair.read_to_end(Side::Server, id, 2 * SECOND), [1; 3000]);
    pair.complete();
}

#[test]
fn a_retry_makes_the_client_send_it_again() {
    let mut pair = resuming([Default::default(), Default::default()], &retry());
    pair.send(Side::Client, Dir::Uni, &pattern(8000));
    // Two and a half round trips less than without 0-RTT: half a one after the answer to the Retry.
    pair.run_for(3 * HALF_ROUND);
    assert!(pair.server.conn().is_handshaking());
    pair.takes(Side::Server, 8000);
    pair.complete();
    assert!(pair.client.conn().peer_parameters().retry_source_connection_id.is_some());
    assert_eq!(accepted(&mut pair), [Some(true); 2]);
    let stats = pair.client.stats();
    assert_eq!((stats.packets_lost, stats.probe_timeouts), (0, 0));
}

#[test]
fn loss_of_each_datagram_in_turn() {
    for endpoint in [EndpointConfig::default(), retry()] {
        for lost in 0..16 {
            let mut pair = resuming([Default::default(), Default::default()], &endpoint);
            pair.lose_any(move |n| n - 1 == lost);
            pair.carry(Side::Client, 6000);
            completes_with(&mut pair, true);
        }
    }
}

#[test]
fn loss_of_the_whole_first_flight_or_of_all_0rtt_packets() {
    for keeps_initials in [false, true] {
        let mut pair = pair();
        let start = pair.now;
        let now = Arc::new(Mutex::new(start));
        let clock = now.clone();
        pair.filter = Box::new(move |from, bytes| {
            let first = *clock.lock().unwrap() < start + 10 * MS;
            let is_initial = bytes[0] & 0xf0 == 0xc0;
            from == Side::Server || !first || (keeps_initials && is_initial)
        });
        pair.send(Side::Client, Dir::Uni, &pattern(6000));
        pair.flush(Side::Client);
        *now.lock().unwrap() += 20 * MS;
        pair.takes(Side::Server, 6000);
        completes_with(&mut pair, true);
    }
}

#[test]
fn reordering_duplication_and_damage() {
    for seed in 0..30 {
        let mut pair = pair();
        pair.disturb(seed);
        pair.send(Side::Client, Dir::Uni, &pattern(9000));
        pair.run_until(|pair| pair.client.conn().zero_rtt_accepted().is_some());
        // A damaged ClientHello may cost the ticket, but no more.
        if pair.client.conn().zero_rtt_accepted() == Some(false) {
            pair.send(Side::Client, Dir::Uni, &pattern(9000));
        }
        pair.takes(Side::Server, 9000);
        pair.complete();
    }
}

#[test]
fn a_copy_of_the_first_flight_is_not_accepted() {
    let mut pair = pair();
    let flight = Arc::new(Mutex::new(Vec::new()));
    let record = flight.clone();
    pair.filter = Box::new(move |from, bytes| {
        if from == Side::Client {
            record.lock().unwrap().push(bytes.clone());
        }
        true
    });
    pair.send(Side::Client, Dir::Uni, b"once only");
    pair.flush(Side::Client);
    let flight = std::mem::take(&mut *flight.lock().unwrap());
    assert_eq!(pair.accept_and_read(Side::Server, Dir::Uni), b"once only");
    // While the connection exists, and after it, also at a server with other connections.
    for _ in 0..2 {
        pair.run_for(SECOND);
        for datagram in &flight {
            pair.receive(Side::Server, datagram.clone());
        }
        assert!(pair.server.conn().accept(Dir::Uni).is_none(), "it is not read again");
        pair.forget();
    }
    for datagram in &flight {
        pair.receive(Side::Server, datagram.clone());
    }
    let server = pair.server.conn();
    assert_eq!(server.zero_rtt_accepted(), Some(false));
    assert!(server.accept(Dir::Uni).is_none());
    assert_eq!(server.early.len(), 0);
}

#[test]
fn frames_that_are_not_for_0rtt_are_refused() {
    let forbidden: [&[u8]; 12] = [
        &[0x02, 0, 0, 0, 0],             // ACK
        &[0x06, 0, 1, 0],                // CRYPTO
        &[0x07, 1, 0],                   // NEW_TOKEN
        &[0x19, 0],                      // RETIRE_CONNECTION_ID
        &[0x1b, 0, 0, 0, 0, 0, 0, 0, 0], // PATH_RESPONSE
        &[0x1e],                         // HANDSHAKE_DONE
        &[0x7f, 0x53, 0, 0, 1, 0],       // SOURCE_SYMBOL
        &[0x7f, 0x54, 0, 0, 1, 1, 0],    // REPAIR
        &[0x7f, 0x55, 0, 0, 0],          // SYMBOL_ACK
        &[0x7f, 0x56, 0, 0],             // SYMBOL_WINDOW
        &[0x7f, 0x57, 0, 0, 0, 0, 0, 0], // REPAIR_CODED
        &[0x21],                         // unknown
    ];
    for frame in forbidden {
        let mut pair = pair();
        pair.flush(Side::Client);
        pair.run_for(HALF_ROUND);
        let mut payload = frame.to_vec();
        payload.resize(payload.len().max(4), 0);
        let datagram = pair.forge(Side::Client, SpaceId::Data, &payload, Forgery::default());
        assert_eq!(datagram[0] & 0xf0, 0xd0, "a 0-RTT packet");
        pair.receive(Side::Server, datagram);
        let code = pair.error(Side::Server);
        let expected =
            [TransportErrorCode::PROTOCOL_VIOLATION, TransportErrorCode::FRAME_ENCODING_ERROR];
        assert!(code.is_some_and(|code| expected.contains(&code)), "{frame:x?}: {code:?}");
    }
}

#[test]
fn nothing_is_sent_that_is_not_for_0rtt() {
    for endpoint in [EndpointConfig::default(), retry()] {
        let mut pair = resuming([Default::default(), Default::default()], &endpoint);
        let payloads = pair.watch(Side::Client, |observation, payloads| {
            if let Observation::PacketSent { early: true, payload, .. } = observation {
                payloads.push(payload.to_vec());
            }
        });
        let data = pattern(60_000);
        let id = pair.send(Side::Client, Dir::Bi, &data);
        pair.client.conn().recv_stream(id).stop(3).unwrap();
        let client = pair.client.conn();
        let reset = client.open(Dir::Bi).unwrap();
        client.send_stream(reset).write(b"x").unwrap();
        client.send_stream(reset).reset(4).unwrap();
        let largest = client.datagrams().max_size().unwrap();
        client.datagrams().send(Bytes::from(vec![7; largest])).unwrap();
        pair.complete();
        let payloads = payloads.lock().unwrap();
        assert!(payloads.len() > 5);
        for payload in payloads.iter() {
            for frame in FrameIter::new(payload, Carrier::ZeroRtt) {
                frame.unwrap();
            }
        }
        if accepted(&mut pair) == [Some(true); 2] {
            assert_eq!(pair.accept_and_read(Side::Server, Dir::Bi), data);
        }
        let fec = pair.client.stats().fec;
        assert!(fec.negotiated, "erasure coding begins after 0-RTT");
    }
}

#[test]
fn a_datagram_of_the_largest_size_arrives_early() {
    let mut pair = pair();
    let largest = pair.client.conn().datagrams().max_size().unwrap();
    let data = Bytes::from(pattern(largest));
    pair.client.conn().datagrams().send(data.clone()).unwrap();
    pair.run_for(HALF_ROUND);
    assert!(pair.server.conn().is_handshaking());
    assert_eq!(pair.server.conn().datagrams().recv(), Some(data));
    pair.complete();
    assert!(pair.client.conn().datagrams().max_size().unwrap() > largest);
}

#[test]
fn packets_before_the_client_hello_are_kept_for_their_key() {
    let mut pair = pair();
    // The ClientHello comes later than another packet that opens the connection.
    pair.inject_packet(Side::Client, SpaceId::Initial, &[1; 1200], Forgery::default());
    pair.copies = Box::new(|from, n| {
        vec![if from == Side::Client && n == 0 { 20 * MS } else { Duration::ZERO }]
    });
    pair.send(Side::Client, Dir::Uni, &pattern(3000));
    pair.run_for(HALF_ROUND);
    assert!(pair.server.conn().early.len() > 0);
    assert_eq!(pair.server.conn().zero_rtt_accepted(), None);
    pair.run_for(20 * MS);
    assert_eq!(pair.server.conn().early.len(), 0);
    pair.takes(Side::Server, 3000);
    assert_eq!(pair.client.stats().stream_bytes_retransmitted, 0);
}

#[test]
fn packets_without_a_client_hello_are_kept_within_bounds_and_only_as_long_as_useful() {
    use crate::connection::receive::{MAX_UNDECRYPTABLE, MAX_UNDECRYPTABLE_BYTES};
    let mut pair = pair();
    pair.server.endpoint.set_server_config(Some(forgetful()));
    pair.inject_packet(Side::Client, SpaceId::Initial, &[1; 1200], Forgery::default());
    for len in 0..60 {
        let payload = vec![0; 100 + len * 15];
        pair.inject_packet(Side::Client, SpaceId::Data, &payload, Forgery::default());
    }
    let early = &pair.server.conn().early;
    assert_eq!(early.len(), MAX_UNDECRYPTABLE);
    assert!(early.bytes <= MAX_UNDECRYPTABLE_BYTES);
    pair.run_for(HALF_ROUND);
    assert_eq!(pair.server.conn().zero_rtt_accepted(), Some(false));
    assert_eq!(pair.server.conn().early.len(), 0, "they will never be readable");
    pair.complete();
}

#[test]
fn late_0rtt_packets_are_read_for_a_while() {
    for (wait, is_read) in [(200 * MS, true), (3000 * MS, false)] {
        let mut pair = pair();
        let kept = Arc::new(Mutex::new(Vec::new()));
        let keep = kept.clone();
        pair.filter = Box::new(move |_, bytes| {
            let is_0rtt = bytes[0] & 0xf0 == 0xd0;
            if is_0rtt {
                keep.lock().unwrap().push(bytes.clone());
            }
            !is_0rtt
        });
        pair.send(Side::Client, Dir::Uni, &pattern(5000));
        pair.run_for(wait);
        assert!(!pair.server.conn().is_handshaking());
        let late = kept.lock().unwrap().pop().unwrap();
        let before = pair.server.stats().received.packets;
        pair.receive(Side::Server, late);
        let read = pair.server.stats().received.packets - before;
        assert_eq!(read, u64::from(is_read));
        pair.takes(Side::Server, 5000);
        pair.complete();
    }
}

#[test]
fn only_servers_read_0rtt_packets() {
    let mut pair = pair();
    pair.run_for(HALF_ROUND);
    let mut copy = pair.forge(Side::Client, SpaceId::Data, &[1; 50], Forgery::default());
    let (now, from) = (pair.now, pair.server.address);
    let before = pair.client.stats().received.packets;
    pair.client.conn().handle_datagram(now, from, None, &mut copy);
    assert_eq!(pair.client.stats().received.packets, before);
    assert_eq!(pair.client.conn().early.len(), 0);
}

#[test]
fn a_connection_that_is_closed_during_0rtt_ends() {
    let mut pair = pair();
    pair.send(Side::Client, Dir::Uni, &pattern(3000));
    pair.flush(Side::Client);
    pair.close(Side::Client, 5, b"never mind");
    pair.run_for(20 * SECOND);
    assert!(pair.client.conn().is_drained());
    assert!(pair.server.connection.as_ref().is_none_or(|server| server.is_drained()));
}

#[test]
fn much_data_waits_for_the_window_and_the_handshake() {
    let mut pair = pair();
    pair.send(Side::Client, Dir::Uni, &pattern(400_000));
    pair.run_for(HALF_ROUND);
    assert!(pair.server.conn().stream_stats().received > 8000);
    pair.takes(Side::Server, 400_000);
    pair.complete();
}
