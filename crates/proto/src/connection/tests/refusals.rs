//! Handshakes that come to nothing: they count until nothing is left of them. `Crowd` checks that all the
//! time.

use super::crowd::{Crowd, LATENCY, client_of};
use super::*;
use crate::ClientConfig;

const CLIENT: &str = "198.51.100.1:1000";
const NO_APPLICATION_PROTOCOL: TransportErrorCode = TransportErrorCode::crypto(120);

/// How a handshake ends.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    /// The server's TLS refuses the client.
    Alert,
    /// The server's application closes.
    Server,
    /// The client closes.
    Client,
    /// The client is never heard of again.
    Silence,
}

/// A handshake that reaches the server's first answer, and then ends as `end` says.
fn ended(end: End, retry: bool) -> Crowd {
    let retry_above = retry.then_some(0);
    let mut crowd = Crowd::new(EndpointConfig { retry_above, ..EndpointConfig::default() });
    let protocol: &[u8] = if end == End::Alert { b"other" } else { b"test" };
    let client = crowd.client_with(CLIENT, client_of(protocol));
    crowd.run_for(if retry { 3 * LATENCY } else { LATENCY });
    crowd.run_for(5 * MS);
    let now = crowd.now;
    match end {
        End::Alert => {}
        End::Server => crowd.connections.values_mut().for_each(|c| c.close(now, 7, b"")),
        End::Client => {
            crowd.clients[client].end.conn().close(now, 7, b"");
            crowd.run_for(LATENCY + 5 * MS);
        }
        End::Silence => crowd.clients[client].end.connection = None,
    }
    crowd.run_for(5 * MS);
    crowd
}

#[test]
fn nothing_is_kept_of_a_failed_handshake_with_a_client_that_has_shown_nothing() {
    for end in [End::Alert, End::Server, End::Client] {
        let mut crowd = ended(end, false);
        assert_eq!((crowd.server.half_open(), crowd.server.len()), (0, 0), "{end:?}");
        crowd.run_for(2 * LATENCY);
        // The client was told once.
        let refusal = crowd.clients[0].refusal();
        match end {
            End::Alert => assert_eq!(refusal, Some(NO_APPLICATION_PROTOCOL)),
            End::Server => assert_eq!(refusal, Some(TransportErrorCode::APPLICATION_ERROR)),
            End::Client | End::Silence => assert_eq!(refusal, None),
        }
    }
}

#[test]
fn a_failed_handshake_with_a_validated_client_counts_until_it_is_drained() {
    for end in [End::Alert, End::Server, End::Client] {
        let mut crowd = ended(end, true);
        assert_eq!((crowd.server.half_open(), crowd.server.len()), (1, 1), "{end:?}");
        crowd.run_for(5 * SECOND);
        assert_eq!((crowd.server.half_open(), crowd.server.len()), (0, 0), "{end:?}");
    }
}

#[test]
fn a_silent_client_counts_until_its_time_is_up() {
    for retry in [false, true] {
        let mut crowd = ended(End::Silence, retry);
        crowd.run_for(10 * SECOND);
        assert_eq!((crowd.server.half_open(), crowd.server.len()), (1, 1));
        crowd.run_for(35 * SECOND);
        assert_eq!((crowd.server.half_open(), crowd.server.len()), (0, 0));
    }
}

#[test]
fn a_first_packet_that_breaks_the_protocol_leaves_nothing_behind() {
    let mut pair = Pair::new();
    pair.run_until(|pair| pair.server.connection.is_some());
    // A frame of another kind of packet (RFC 9000 section 12.4).
    let done = [&[0x1e][..], &[0; 1200]].concat();
    pair.inject_packet(Side::Client, SpaceId::Initial, &done, Forgery::default());
    pair.flush(Side::Server);
    assert_eq!(pair.error(Side::Server), Some(TransportErrorCode::PROTOCOL_VIOLATION));
    assert_eq!((pair.server.endpoint.half_open(), pair.server.endpoint.len()), (0, 0));
}

/// Refuses `rate` clients a second for five seconds, and lets ten honest clients a second come.
fn flood(rate: u32, answer: bool) -> Crowd {
    let mut crowd = Crowd::new(EndpointConfig::default());
    let mut refused = 0;
    for tick in 0..500 {
        while refused < rate * tick / 100 {
            refused += 1;
            let from = SocketAddr::new((0x0a00_0000 + refused % 2000).to_be_bytes().into(), 1000);
            if answer && refused <= 1500 {
                crowd.client_with(&from.to_string(), client_of(b"other"));
            } else {
                let initial = crowd.initial_with(client_of(b"other"));
                crowd.put(from, crowd.address, initial);
            }
        }
        if tick % 10 == 0 {
            crowd.client_with(&format!("198.51.100.{}:1000", tick / 10), client_of(b"test"));
        }
        crowd.run_for(10 * MS);
    }
    crowd.run_for(SECOND);
    let honest = crowd.clients.iter().filter(|c| c.end.address.ip().to_string().starts_with("198"));
    let failed = honest.filter(|client| !client.is_connected() || client.end.loss().is_some());
    assert_eq!(failed.count(), 0, "clients that could not connect");
    crowd
}

#[test]
fn a_flood_of_refused_clients_holds_nothing_and_is_sent_retry() {
    let crowd = flood(3_000, false);
    assert!(crowd.peak <= 50, "{}", crowd.peak);
    assert!(crowd.refused < 2_500, "let in to be refused: {}", crowd.refused);
}

#[test]
fn refused_clients_that_answer_a_retry_stay_within_the_bounds_and_keep_nobody_out() {
    let crowd = flood(300, true);
    assert!(crowd.peak <= 1_000, "{}", crowd.peak);
}

#[test]
fn a_client_of_an_unknown_protocol_is_refused_without_state() {
    let (mut client, server) = tls("localhost", CipherSuite::TLS13_AES_128_GCM_SHA256);
    client.alpn_protocols = vec![b"unknown".to_vec()];
    let crypto = Arc::new(RustlsServerConfig::new(server).unwrap());
    let config = ServerConfig { crypto, transport: Arc::default() };
    let mut server = Endpoint::new(Arc::default(), Some(Arc::new(config)), [1; 32]);
    let crypto = Arc::new(RustlsClientConfig::new(client).unwrap());
    let config = ClientConfig { crypto, transport: Arc::default() };
    let (now, remote) = (Instant::now(), "192.0.2.1:443".parse().unwrap());
    let from = CLIENT.parse().unwrap();
    let (mut refused, mut retried) = (0, 0);
    for n in 0..2_000u32 {
        let mut seed = [2; 32];
        seed[..4].copy_from_slice(&n.to_be_bytes());
        let mut client = Endpoint::new(Arc::default(), None, seed);
        let (_, mut client) = client.connect(now, config.clone(), remote, "localhost").unwrap();
        let mut bytes = Vec::new();
        client.poll_transmit(now, 1, &mut bytes).unwrap();
        let event = server.handle(now, from, &bytes);
        let DatagramEvent::Respond(mut answer) = event else { panic!("{n}: {event:?}") };
        assert!(answer.len() < bytes.len());
        assert_eq!((server.len(), server.half_open()), (0, 0));
        client.handle_datagram(now, remote, None, &mut answer);
        let why = std::iter::from_fn(|| client.poll_event()).next();
        match why {
            Some(Event::ConnectionLost(ConnectionError::ClosedByPeer(error))) => {
                assert_eq!(error.code, NO_APPLICATION_PROTOCOL);
                refused += 1;
            }
            None => retried += 1,
            other => panic!("{n}: {other:?}"),
        }
    }
    assert_eq!((refused, retried), (500, 1_500));
}
