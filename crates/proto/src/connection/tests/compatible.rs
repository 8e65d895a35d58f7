//! Servers that go over to another version within the handshake.

use super::*;
use crate::Version::{V1, V2};
use crate::connection::negotiation::MAX_CLIENT_HELLO;
use crate::crypto::{
    ClientCrypto, Keys, ServerCrypto, ServerCryptoConfig, Session, SessionVersions, StartError,
};
use crate::wire::packet::{
    DecodedPacket, HeaderRules, LongHeader, LongType, PacketType, ProtectedPacket, TruncatedNumber,
    parse,
};
use crate::wire::transport_parameters::{TransportParameters, VersionInformation};

const RULES: HeaderRules = HeaderRules { local_cid_len: 8, greased: true };

fn supporting(versions: &[Version]) -> EndpointConfig {
    EndpointConfig { versions: versions.to_vec(), ..EndpointConfig::default() }
}

/// The versions that a client offers and its server supports, best first.
type Sides<'a> = [&'a [Version]; 2];

/// A client that begins with version 1 and a server that goes over to version 2.
const UPGRADE: Sides<'static> = [&[V1, V2], &[V2, V1]];

fn with(cryptos: (ClientCrypto, ServerCrypto), endpoints: [EndpointConfig; 2]) -> Pair {
    Pair::build(Default::default(), cryptos.0, cryptos.1, endpoints)
}

fn pair(sides: Sides<'_>) -> Pair {
    Pair::with_endpoints(sides.map(supporting))
}

/// A client that offers these protocols and a server of one protocol, with TLS.
fn tls_configs(protocols: Vec<Vec<u8>>) -> (RustlsClientConfig, RustlsServerConfig) {
    let (mut client, mut server) = tls("localhost", CipherSuite::TLS13_AES_128_GCM_SHA256);
    (client.alpn_protocols, server.alpn_protocols) = (protocols, vec![b"test".to_vec()]);
    (RustlsClientConfig::new(client).unwrap(), RustlsServerConfig::new(server).unwrap())
}

/// Clients and servers without cryptography and with TLS, whose ClientHello has this many bytes more
/// than usual.
fn cryptos(more: usize) -> [(ClientCrypto, ServerCrypto); 2] {
    let names = (0..more.div_ceil(100)).map(|n| pattern(99 + n)[n..].to_vec());
    let protocols: Vec<Vec<u8>> = names.chain([b"test".to_vec()]).collect();
    let (client, server) = tls_configs(protocols.clone());
    [
        (Arc::new(NullClientConfig::new(protocols)), Arc::new(null_server())),
        (Arc::new(client), Arc::new(server)),
    ]
}

/// An [`UPGRADE`] without cryptography, with a ClientHello that has this many bytes more than usual.
fn upgrade(more: usize) -> Pair {
    let [null, _] = cryptos(more);
    with(null, UPGRADE.map(supporting))
}

/// The packets with long headers in a datagram.
fn long_packets(datagram: &[u8]) -> Vec<ProtectedPacket> {
    let (mut packets, mut start) = (Vec::new(), 0);
    while let Ok(packet) = parse(datagram, start, RULES) {
        start = packet.end();
        if let DecodedPacket::Protected(packet) = packet
            && packet.ty.is_long()
        {
            packets.push(packet);
        }
    }
    packets
}

/// A packet with a long header that was sent.
type Sent = (Side, PacketType, Version);
type Log = Arc<Mutex<Vec<Sent>>>;

/// Records all packets with long headers. Packets whose number `arrives` rejects are lost.
fn record(pair: &mut Pair, mut arrives: impl FnMut(Side, usize) -> bool + 'static) -> Log {
    let log = Log::default();
    let (sent, mut n) = (log.clone(), 0);
    pair.filter = Box::new(move |from, datagram| {
        for packet in long_packets(datagram) {
            sent.lock().unwrap().push((from, packet.ty, packet.version.unwrap()));
        }
        n += 1;
        arrives(from, n - 1)
    });
    log
}

/// Checks which versions the packets had of a connection that went over from one version to another.
fn check(log: &Log, from: Version, to: Version) {
    let log = log.lock().unwrap();
    let mut gone_over = [false; 2];
    for &(side, ty, version) in &*log {
        match ty {
            PacketType::ZeroRtt => assert_eq!(version, from),
            PacketType::Handshake => assert_eq!(version, to),
            PacketType::Initial => {
                gone_over[side as usize] |= version == to;
                assert_eq!(version == to, gone_over[side as usize], "{side:?} went back");
            }
            PacketType::OneRtt => unreachable!(),
        }
    }
    assert!(gone_over[Side::Server as usize], "the server's ServerHello");
    let first = log.iter().find(|(side, ..)| side.is_client());
    assert_eq!(first.unwrap().2, from);
}

/// Checks that the handshake completes with this version, and that both ends understand each other
/// with several keys.
fn completes(pair: &mut Pair, version: Version) {
    pair.run_until(|pair| pair.client.conn().handshake.confirmed);
    for updater in [Some(Side::Client), Some(Side::Server), Some(Side::Client), None] {
        for from in [Side::Client, Side::Server, Side::Client] {
            pair.carry(from, 8000);
        }
        pair.run_for(3 * SECOND);
        assert!(updater.is_none_or(|updater| pair.end(updater).conn().update_keys()));
    }
    // The last packets may be damaged several times.
    let until = pair.now + 30 * SECOND;
    let in_flight = |pair: &mut Pair, side| pair.end(side).conn().path.recovery.bytes_in_flight();
    while in_flight(pair, Side::Client) + in_flight(pair, Side::Server) > 0 {
        assert!(pair.step(until), "a packet is neither acknowledged nor lost");
    }
    pair.lives();
    assert_eq!(pair.server.endpoint.len(), 1);
    for side in [Side::Client, Side::Server] {
        let connection = pair.end(side).conn();
        assert_eq!(connection.version(), version, "{side:?}");
        assert_eq!(connection.stats().key_updates, 3);
        assert!(connection.spaces.in_use() == [SpaceId::Data]);
        for version in Version::ALL {
            assert!(connection.initial_opener(Some(version)).is_none(), "{side:?} has old keys");
        }
        let chosen = connection.peer_parameters().version_information.clone().unwrap().chosen;
        let expected = if side.is_client() { version } else { connection.negotiation.original };
        assert_eq!(chosen, expected.number());
    }
}

/// Checks that the handshake completes with version 2, after version 1.
fn goes_over(pair: &mut Pair, log: &Log) {
    completes(pair, V2);
    check(log, V1, V2);
}

#[test]
fn a_server_goes_over_to_its_best_version_that_the_client_offers() {
    for more in [0, 2500] {
        for cryptos in cryptos(more) {
            let mut pair = with(cryptos, UPGRADE.map(supporting));
            let log = record(&mut pair, |_, _| true);
            let start = pair.now;
            pair.run_until(|pair| pair.client.events.contains(&Event::Connected));
            assert_eq!(pair.now - start, 100 * MS, "it takes no longer than without");
            goes_over(&mut pair, &log);
        }
    }
}

#[test]
fn without_a_better_version_in_common_the_version_stays() {
    let sides: [Sides<'_>; 6] = [
        [&[V1, V2], &[V1]],
        [&[V1], &[V2, V1]],
        [&[V1, V2], &[V1, V2]],
        [&[V2], &[V1, V2]],
        [&[V2, V1], &[V2]],
        [&[V2, V1], &[V1, V2]],
    ];
    for sides in sides {
        for cryptos in cryptos(0) {
            let version = sides[0][0];
            let mut pair = with(cryptos, sides.map(supporting));
            let log = record(&mut pair, |_, _| true);
            completes(&mut pair, version);
            check(&log, version, version);
        }
    }
}

#[test]
fn ends_that_do_not_talk_about_versions_stay_with_the_first() {
    for silent in [Side::Client, Side::Server] {
        let mut endpoints = UPGRADE.map(supporting);
        endpoints[silent as usize].extensions = Extensions::NONE;
        let mut pair = Pair::with_endpoints(endpoints).ready();
        assert_eq!((pair.client.conn().version(), pair.server.conn().version()), (V1, V1));
    }
}

#[test]
fn loss_of_each_datagram_in_turn() {
    for more in [0, 2500] {
        for retry_above in [None, Some(0)] {
            for lost in 0..16 {
                let server = EndpointConfig { retry_above, ..supporting(UPGRADE[1]) };
                let [null, _] = cryptos(more);
                let mut pair = with(null, [supporting(UPGRADE[0]), server]);
                let log = record(&mut pair, move |_, n| n != lost);
                goes_over(&mut pair, &log);
            }
        }
    }
}

#[test]
fn loss_of_each_pair_of_datagrams() {
    for more in [0, 2500] {
        for first in 0..7 {
            for second in first + 1..8 {
                let mut pair = upgrade(more);
                let log = record(&mut pair, move |_, n| n != first && n != second);
                goes_over(&mut pair, &log);
            }
        }
    }
}

#[test]
fn reordering_duplication_and_damage() {
    for seed in 0..30 {
        let mut pair = upgrade(if seed % 2 == 0 { 0 } else { 2500 });
        pair.disturb(seed);
        completes(&mut pair, V2);
    }
}

#[test]
fn a_server_acknowledges_part_of_a_client_hello_in_the_version_of_the_client() {
    let mut pair = upgrade(2500);
    let log = record(&mut pair, |_, n| n != 1);
    pair.run_for(70 * MS);
    let before = log.lock().unwrap().clone();
    let servers = before.iter().filter(|(side, ..)| !side.is_client());
    assert_eq!(servers.collect::<Vec<_>>(), [&(Side::Server, PacketType::Initial, V1)]);
    assert_eq!(pair.server.conn().version(), V1);
    pair.run_for(50 * MS);
    assert_eq!(pair.client.conn().version(), V1, "nothing is decided");
    goes_over(&mut pair, &log);
}

#[test]
fn a_retry_is_of_the_version_of_the_client() {
    for cryptos in cryptos(0) {
        let server = EndpointConfig { retry_above: Some(0), ..supporting(UPGRADE[1]) };
        let mut pair = with(cryptos, [supporting(UPGRADE[0]), server]);
        let log = record(&mut pair, |_, _| true);
        goes_over(&mut pair, &log);
        let initials = log.lock().unwrap();
        let early = initials.iter().take_while(|(side, ..)| side.is_client());
        assert_eq!(early.count(), 2, "the token is sent with the original version");
        assert!(pair.client.conn().peer_parameters().retry_source_connection_id.is_some());
    }
}

/// A client with a ticket for version 1, that sends data early to a server that goes over.
fn early_pair(cryptos: (ClientCrypto, ServerCrypto)) -> Pair {
    with(cryptos.clone(), [supporting(&[V1]), supporting(&[V1])]).ready();
    let mut pair = with(cryptos, UPGRADE.map(supporting));
    let now = pair.now;
    assert!(pair.client.conn().start_0rtt(now), "there is a ticket");
    pair
}

#[test]
fn early_data_stays_with_the_version_of_the_client() {
    let (client, server) = tls_configs(vec![b"test".to_vec()]);
    let tls: (ClientCrypto, ServerCrypto) =
        (Arc::new(client.with_early_data()), Arc::new(server.with_early_data()));
    let null = || (honest(), Arc::new(null_server().with_early_data()) as ServerCrypto);
    for (cryptos, losses) in [(None, 12usize), (Some(tls), 1)] {
        for lost in (0..losses).map(|n| n.checked_sub(1)) {
            let mut pair = early_pair(cryptos.clone().unwrap_or_else(null));
            let log = record(&mut pair, move |_, n| Some(n) != lost);
            pair.send(Side::Client, Dir::Uni, &pattern(8000));
            if lost.is_none() {
                pair.run_for(51 * MS);
                assert!(pair.server.conn().is_handshaking());
            }
            pair.takes(Side::Server, 8000);
            goes_over(&mut pair, &log);
            assert!(log.lock().unwrap().iter().any(|(_, ty, _)| *ty == PacketType::ZeroRtt));
            assert_eq!(pair.client.conn().zero_rtt_accepted(), Some(true));
            assert_eq!(pair.server.conn().zero_rtt_accepted(), Some(true));
        }
    }
}

#[test]
fn early_data_stays_with_the_version_of_a_client_that_knows_the_new_one() {
    let mut pair = early_pair((honest(), Arc::new(null_server().with_early_data())));
    let answer: Arc<Mutex<Vec<u8>>> = Arc::default();
    let kept = answer.clone();
    pair.filter = Box::new(move |from, datagram| {
        if from == Side::Server && kept.lock().unwrap().is_empty() {
            *kept.lock().unwrap() = datagram.to_vec();
        }
        from == Side::Client
    });
    pair.send(Side::Client, Dir::Uni, b"first");
    pair.run_for(60 * MS);
    // Of the server's answer only the Initial packet is intact, but not the packets that complete the
    // handshake.
    let mut answer = answer.lock().unwrap().clone();
    let packets = long_packets(&answer);
    let initial = packets.iter().position(|packet| packet.ty == PacketType::Initial);
    assert!(initial == Some(0) && packets.len() > 1, "{packets:?}");
    answer[packets[1].end - 1] ^= 1;
    pair.receive(Side::Client, answer);
    let log = record(&mut pair, |from, _| from == Side::Client);
    assert_eq!(pair.client.conn().version(), V2);
    assert!(pair.client.conn().is_sending_0rtt());
    let before = log.lock().unwrap().len();
    let second = pair.send(Side::Client, Dir::Uni, b"second");
    pair.run_for(60 * MS);
    let sent: Vec<Sent> = log.lock().unwrap().split_off(before);
    assert!(sent.contains(&(Side::Client, PacketType::ZeroRtt, V1)), "{sent:?}");
    assert!(!sent.contains(&(Side::Client, PacketType::ZeroRtt, V2)), "{sent:?}");
    assert!(pair.server.conn().is_handshaking());
    assert_eq!(pair.read_to_end(Side::Server, second, Duration::ZERO), b"second");
}

#[test]
fn no_ticket_and_no_token_goes_from_one_version_to_the_other() {
    let early = || Arc::new(null_server().with_early_data());
    let mut pair = with((honest(), early()), UPGRADE.map(supporting));
    for _ in 0..3 {
        pair.handshake();
        assert_eq!(pair.client.conn().version(), V2);
        pair.reconnect();
        let now = pair.now;
        assert!(!pair.client.conn().start_0rtt(now), "that ticket is for version 2");
        assert!(pair.client.conn().handshake.retry.token.is_empty());
    }
    // Where the version stays, both count.
    let mut pair = with((honest(), early()), [supporting(&[V1]), supporting(&[V2, V1])]).ready();
    pair.reconnect();
    let now = pair.now;
    assert!(pair.client.conn().start_0rtt(now));
    assert!(!pair.client.conn().handshake.retry.token.is_empty());
}

/// An Initial packet of `version` from the server, as anybody can make it who saw the client's first.
fn initial(pair: &mut Pair, version: Version, pn: u64, payload: &[u8]) -> Vec<u8> {
    let handshake = &pair.client.conn().handshake;
    let (dcid, original) = (handshake.local_cid, handshake.original_dcid);
    let keys = null_server().initial_keys(version.number(), &original).unwrap();
    let scid = handshake.peer_scid.unwrap_or(cid(9));
    let header = LongHeader { version, ty: LongType::Initial { token: &[] }, dcid, scid };
    let mut out = Vec::new();
    let layout = header.encode(TruncatedNumber::with_size(pn, 4), &mut out);
    out.extend_from_slice(payload);
    out.resize(out.len() + 16, 0);
    layout.finish(0, &mut out).unwrap();
    keys.local.protect(pn, &mut out, layout.number, 4).unwrap();
    out
}

/// The client receives an [`initial`].
fn receive_initial(pair: &mut Pair, version: Version, pn: u64, payload: &[u8]) {
    let packet = initial(pair, version, pn, payload);
    pair.receive(Side::Client, packet);
}

/// A PING and padding.
const PING: [u8; 50] = [1; 50];

#[test]
fn a_client_goes_where_it_offered_to_go_and_nowhere_else() {
    for (versions, to) in [(&[V1][..], V2), (&[V1, V2], V2), (&[V2], V1), (&[V2, V1], V1)] {
        let (from, followed) = (versions[0], versions.contains(&to));
        let mut pair = pair([versions, &[from]]);
        pair.flush(Side::Client);
        receive_initial(&mut pair, to, 100, &PING);
        let client = pair.client.conn();
        assert_eq!(client.version(), if followed { to } else { from });
        assert_eq!(client.stats().received.packets, u64::from(followed));
        if !followed {
            completes(&mut pair, from);
        }
    }
    // Nor without the extension.
    let mut endpoints = UPGRADE.map(supporting);
    endpoints[0].extensions = Extensions::NONE;
    let mut pair = Pair::with_endpoints(endpoints);
    pair.flush(Side::Client);
    receive_initial(&mut pair, V2, 100, &PING);
    assert_eq!(pair.client.conn().version(), V1);
}

#[test]
fn a_long_header_alone_moves_nobody() {
    let mut pair = pair([&[V1, V2], &[V1]]);
    pair.flush(Side::Client);
    for _ in 0..50 {
        let mut forged = initial(&mut pair, V2, 100, &PING);
        *forged.last_mut().unwrap() ^= 1;
        pair.receive(Side::Client, forged);
        // Nor do packets that cannot be opened yet.
        let scid = cid(9);
        let dcid = pair.client.conn().handshake.local_cid;
        let header = LongHeader { version: V2, ty: LongType::Handshake, dcid, scid };
        let mut forged = Vec::new();
        let layout = header.encode(TruncatedNumber::with_size(5, 4), &mut forged);
        forged.extend_from_slice(&[7; 100]);
        layout.finish(0, &mut forged).unwrap();
        pair.receive(Side::Client, forged);
    }
    assert_eq!(pair.client.conn().version(), V1);
    assert_eq!(pair.client.stats().received.packets, 0);
    assert!(pair.client.conn().early.len() > 0, "they might have been of use");
    completes(&mut pair, V1);
    assert_eq!(pair.client.conn().early.len(), 0);
}

#[test]
fn what_the_server_says_to_tls_settles_the_version() {
    let mut pair = pair([&[V1, V2], &[V1]]);
    pair.mute(Side::Client);
    receive_initial(&mut pair, V1, 100, &PING);
    assert_eq!(pair.client.conn().version(), V1);
    let mut frame = encoded(&Frame::Crypto { offset: 1, data: b"something" });
    frame.resize(50, 0);
    // After a PING of version 1 the server may still go over, but not after a CRYPTO frame.
    for (version, pn, payload) in [(V1, 101, &frame[..]), (V2, 102, &PING)] {
        receive_initial(&mut pair, version, pn, payload);
        assert_eq!(pair.client.conn().version(), V1);
    }
    assert_eq!(pair.client.stats().received.packets, 2);
    assert!(pair.client.conn().initial_opener(Some(V2)).is_none());
}

#[test]
fn packets_of_the_version_that_was_left_are_dropped() {
    let mut pair = pair(UPGRADE);
    pair.run_for(101 * MS);
    assert_eq!(pair.client.conn().version(), V2);
    assert!(pair.server.conn().is_handshaking());
    // The server still understands packets that its client sent before it knew the version, and in no other
    // space.
    let received = pair.server.stats().received.packets;
    let mut late = pair.forge(Side::Client, SpaceId::Handshake, &PING, Forgery::default());
    late[1..5].copy_from_slice(&V1.number().to_be_bytes());
    late[0] = late[0] & 0xcf | 0x20;
    pair.receive(Side::Server, late);
    assert_eq!(pair.server.stats().received.packets, received);
    // The client does not look back.
    let received = pair.client.stats().received.packets;
    let late = initial(&mut pair, V1, 100, &PING);
    pair.receive(Side::Client, late);
    assert_eq!(pair.client.stats().received.packets, received);
    completes(&mut pair, V2);
}

#[test]
fn a_server_understands_initials_of_both_versions_until_the_handshake_goes_on() {
    let mut pair = pair(UPGRADE);
    // The client hears nothing, and goes on with version 1.
    let log = record(&mut pair, |from, n| from == Side::Client || n > 20);
    pair.run_for(1500 * MS);
    let count = |version| {
        let log = log.lock().unwrap();
        log.iter().filter(|(side, _, v)| side.is_client() && *v == version).count()
    };
    assert!(count(V1) > 1 && count(V2) == 0);
    let received = pair.server.stats().received.packets;
    assert_eq!(received, count(V1) as u64);
    assert_eq!((pair.client.conn().version(), pair.server.conn().version()), (V1, V2));
    goes_over(&mut pair, &log);
}

/// A server whose transport parameters contradict its behaviour.
struct Altering {
    honest: NullServerConfig,
    alter: fn(&mut TransportParameters),
}

impl std::fmt::Debug for Altering {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.honest.fmt(f)
    }
}

impl ServerCryptoConfig for Altering {
    fn start_session(
        &self,
        versions: SessionVersions,
        transport_parameters: Vec<u8>,
    ) -> Result<Box<dyn Session>, StartError> {
        let mut parameters =
            TransportParameters::decode(&transport_parameters, Side::Server).unwrap();
        (self.alter)(&mut parameters);
        let mut out = Vec::new();
        parameters.encode(Side::Server, &mut out);
        self.honest.start_session(versions, out)
    }

    fn client_parameters<'a>(&self, handshake: &'a [u8]) -> Option<&'a [u8]> {
        self.honest.client_parameters(handshake)
    }

    fn initial_keys(&self, version: u32, dcid: &ConnectionId) -> Result<Keys, StartError> {
        self.honest.initial_keys(version, dcid)
    }
}

#[test]
fn the_server_must_confirm_the_version_in_its_parameters() {
    let says = |alter: fn(&mut TransportParameters), server: &[Version]| {
        let crypto = Arc::new(Altering { honest: null_server(), alter });
        let endpoints = [supporting(&[V1, V2]), supporting(server)];
        let mut pair = with((honest(), crypto), endpoints);
        pair.run_for(SECOND);
        let connected = pair.client.events.contains(&Event::Connected);
        assert_ne!(connected, pair.error(Side::Client).is_some());
        assert_eq!(connected, pair.loss(Side::Server).is_none());
        pair.error(Side::Client)
    };
    let refused = Some(TransportErrorCode::VERSION_NEGOTIATION_ERROR);
    let another: fn(&mut TransportParameters) = |parameters| {
        let information = parameters.version_information.as_mut().unwrap();
        information.chosen = if information.chosen == 1 { V2 } else { V1 }.number();
    };
    let unknown: fn(&mut TransportParameters) =
        |parameters| parameters.version_information.as_mut().unwrap().chosen = 0x0a0a_0a0a;
    let nothing: fn(&mut TransportParameters) = |parameters| parameters.version_information = None;
    let fewer: fn(&mut TransportParameters) =
        |parameters| parameters.version_information.as_mut().unwrap().available.clear();
    for server in [&[V2, V1][..], &[V1]] {
        assert_eq!(says(|_| {}, server), None);
        assert_eq!(says(another, server), refused);
        assert_eq!(says(unknown, server), refused);
        assert_eq!(says(fewer, server), None, "that counts only after Version Negotiation");
    }
    assert_eq!(says(nothing, &[V2, V1]), refused);
    assert_eq!(says(nothing, &[V1]), None, "a server of before RFC 9368");
}

#[test]
fn the_client_must_say_with_which_version_it_began() {
    use super::hostile::{Lies, pair};
    let value = |chosen: u32, available: &[u32]| {
        let versions = [&[chosen], available].concat();
        versions.iter().flat_map(|version| version.to_be_bytes()).collect::<Vec<u8>>()
    };
    let both = [V1.number(), V2.number()];
    for (value, expected) in [
        (value(V2.number(), &both), Some(TransportErrorCode::VERSION_NEGOTIATION_ERROR)),
        (value(V1.number(), &both[1..]), Some(TransportErrorCode::TRANSPORT_PARAMETER_ERROR)),
        (value(V1.number(), &both), None),
    ] {
        for versions in [[V1, V2], [V2, V1]] {
            let parameter = Some((0x11, Some(value.clone())));
            let mut pair = pair(Lies { parameter, protocol: Some(b"second"), ..Lies::default() });
            let (server, config) = (Arc::new(supporting(&versions)), pair.server_config());
            pair.server.endpoint = Endpoint::new(server, Some(config), [2; 32]);
            pair.run_for(SECOND);
            assert_eq!(pair.error(Side::Server), expected, "{value:?}");
        }
    }
}

#[test]
fn a_client_understands_why_it_is_refused_in_the_other_version() {
    let crypto = Arc::new(NullServerConfig::new(vec![b"other".to_vec()]));
    let mut pair = with((honest(), crypto), UPGRADE.map(supporting));
    pair.run_for(120 * MS);
    assert_eq!((pair.client.conn().version(), pair.server.conn().version()), (V2, V2));
    let error = pair.refusal(Side::Client).unwrap();
    assert_eq!(error.code, TransportErrorCode::crypto(120), "no_application_protocol");
}

#[test]
fn a_forged_packet_of_another_version_leads_to_no_connection() {
    // Somebody on the path makes the client go over, but cannot make the server do so.
    let mut pair = pair([&[V1, V2], &[V1]]);
    receive_initial(&mut pair, V2, 100, &PING);
    assert_eq!(pair.client.conn().version(), V2);
    pair.run_for(5 * SECOND);
    assert!(pair.client.conn().is_handshaking() && pair.server.connection.is_none());
    assert!(!pair.client.events.contains(&Event::Connected));
}

#[test]
fn an_incomplete_client_hello_is_kept_within_bounds() {
    let crypto = |offset: usize, data: &[u8]| {
        let mut payload = encoded(&Frame::Crypto { offset: offset as u64, data });
        payload.resize(1180, 0);
        payload
    };
    for (length, refused) in [([0, 0xff, 0xff], false), ([1, 0, 0], true)] {
        let mut pair = pair(UPGRADE);
        let (mut offset, mut most) = (0, 0);
        let piece = [&[1][..], &length, &[0; 996]].concat();
        while offset + 1000 < MAX_CLIENT_HELLO + 2000 {
            let data = if offset == 0 { &piece[..] } else { &[0; 1000] };
            let payload = crypto(offset, data);
            pair.inject_packet(Side::Client, SpaceId::Initial, &payload, Forgery::default());
            offset += 1000;
            let Some(server) = &mut pair.server.connection else { break };
            most = most.max(server.negotiation.kept());
            if server.is_closed() {
                break;
            }
        }
        assert!(most <= MAX_CLIENT_HELLO, "{most}");
        assert_eq!(pair.server.conn().negotiation.kept(), 0);
        assert!(pair.server.conn().is_closed(), "that was no ClientHello");
        assert_eq!(offset > 1000, !refused);
        assert_eq!(most > MAX_CLIENT_HELLO - 2000, !refused);
    }
}

#[test]
fn nothing_is_kept_of_a_client_hello_that_decides_nothing() {
    let [null, _] = cryptos(2500);
    let mut pair = with(null, [supporting(&[V1, V2]), supporting(&[V1, V2])]);
    record(&mut pair, |_, n| n != 1);
    pair.run_for(70 * MS);
    assert_eq!(pair.server.conn().negotiation.kept(), 0);
    let mut pair = upgrade(2500);
    record(&mut pair, |_, n| n != 1);
    pair.run_for(70 * MS);
    assert!(pair.server.conn().negotiation.kept() > 1000);
    completes(&mut pair, V2);
    assert_eq!(pair.server.conn().negotiation.kept(), 0);
}

#[test]
fn parameters_tell_what_was_chosen() {
    let mut pair = pair(UPGRADE).ready();
    let information = pair.client.conn().peer_parameters().version_information.clone();
    assert_eq!(information, Some(VersionInformation::new(V2, &[V2, V1])));
    let information = pair.server.conn().peer_parameters().version_information.clone();
    assert_eq!(information, Some(VersionInformation::new(V1, &[V1, V2])));
}
