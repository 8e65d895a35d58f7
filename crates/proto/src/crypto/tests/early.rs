//! Resumed sessions with 0-RTT.

use super::super::null::{NullClientConfig, NullServerConfig};
use super::super::rustls::{MAX_EARLY_SESSIONS, RustlsClientConfig, RustlsServerConfig};
use super::*;
use crate::wire::transport_parameters::TransportParameters;
use ::rustls::client::Resumption;

fn protocols(names: &[&str]) -> Vec<Vec<u8>> {
    names.iter().map(|name| name.as_bytes().to_vec()).collect()
}

/// Pairs that want 0-RTT, whose clients speak these protocols.
pub(super) fn pairs(offered: &[&str]) -> [Pair; 2] {
    let (mut client, server) = rustls::configs();
    client.alpn_protocols = protocols(offered);
    let tls = Pair {
        client: Arc::new(RustlsClientConfig::new(client).expect("client").with_early_data()),
        server: Arc::new(RustlsServerConfig::new(server).expect("server").with_early_data()),
    };
    let null = Pair {
        client: Arc::new(NullClientConfig::new(protocols(offered)).with_early_data()),
        server: Arc::new(NullServerConfig::new(protocols(&["third", "second"])).with_early_data()),
    };
    [tls, null]
}

/// The session of a server with these limits that has read a ClientHello.
fn answer(pair: &Pair, hello: &[u8], parameters: Vec<u8>) -> End {
    let mut server = pair.server_with(SessionVersions::fixed(VERSION_1), parameters);
    server.session.read_handshake(SpaceId::Initial, hello).expect("ClientHello");
    server
}

#[test]
fn a_resumed_session_has_keys_and_limits_from_the_start() {
    for version in Version::ALL {
        pairs(&["second"]).iter().for_each(|pair| resumes_early(pair, version));
    }
}

fn resumes_early(pair: &Pair, version: Version) {
    let (client, server) = pair.connect_in(version);
    for end in [&client, &server] {
        assert!(end.session.early_keys().is_none(), "no session is resumed");
        assert!(!end.session.is_early_data_accepted());
    }
    let (mut client, mut server) = pair.start_in(version);
    assert_eq!(client.session.early_parameters(), Some(SERVER_PARAMETERS));
    assert_eq!(client.session.transport_parameters(), None);
    let sealer = client.session.early_keys().expect("0-RTT");
    assert!(server.session.early_keys().is_none(), "no ClientHello yet");
    shake(&mut client, &mut server, usize::MAX).expect("handshake");
    let opener = server.session.early_keys().expect("0-RTT");
    assert!(opens(&*sealer.packet, &*opener.packet));
    let sample = b"sixteen bytes of";
    assert_eq!(sealer.header.mask(sample), opener.header.mask(sample));
    let (later, theirs) = (client.one_rtt.take().unwrap(), server.one_rtt.take().unwrap());
    assert!(!opens(&*sealer.packet, &*theirs.remote.packet));
    assert!(!opens(&*later.local.packet, &*opener.packet));
    assert!(client.session.is_early_data_accepted() && server.session.is_early_data_accepted());
    assert_eq!(client.session.early_parameters(), None, "the real ones are known");
}

#[test]
fn a_client_offers_a_session_in_its_version_alone() {
    for (got, later) in [(Version::V1, Version::V2), (Version::V2, Version::V1)] {
        let [pair, _] = pairs(&["second"]);
        pair.connect_in(got);
        assert!(pair.start_in(later).0.session.early_keys().is_none(), "{got:?} {later:?}");
        assert!(pair.start_in(got).0.session.early_keys().is_some(), "{got:?}");
    }
    // A client that offers it in another version all the same is not believed.
    let (mut client, server) = rustls::configs();
    client.alpn_protocols = protocols(&["second"]);
    client.resumption = Resumption::in_memory_sessions(8);
    let mixing = RustlsClientConfig::new(client.clone()).expect("client").with_early_data();
    let mixing = mixing.with_resumption_2(client.resumption);
    let server = RustlsServerConfig::new(server).expect("server").with_early_data();
    let pair = Pair { client: Arc::new(mixing), server: Arc::new(server) };
    pair.connect_in(Version::V1);
    let (mut client, mut server) = pair.start_in(Version::V2);
    assert!(client.session.early_keys().is_some(), "it offers 0-RTT");
    shake(&mut client, &mut server, usize::MAX).expect("handshake");
    assert!(!client.session.is_early_data_accepted() && server.session.early_keys().is_none());
}

#[test]
fn a_client_hello_is_accepted_once() {
    for pair in pairs(&["second"]) {
        pair.connect();
        let (mut client, _) = pair.start();
        let hello = client.flush().remove(0).1;
        let first = answer(&pair, &hello, SERVER_PARAMETERS.to_vec());
        assert!(first.session.early_keys().is_some());
        let second = answer(&pair, &hello, SERVER_PARAMETERS.to_vec());
        assert!(second.session.early_keys().is_none(), "it is a copy");
    }
}

#[test]
fn sessions_of_other_limits_are_not_resumed_with_0rtt() {
    let encoded = |data| {
        let mut out = Vec::new();
        let limits = TransportParameters { initial_max_data: data, ..Default::default() };
        limits.encode(Side::Server, &mut out);
        out
    };
    for pair in pairs(&["second"]) {
        for (then, now) in [(1000, 1000), (1000, 999), (1000, 1001)] {
            let version = || SessionVersions::fixed(VERSION_1);
            let mut server = pair.server_with(version(), encoded(then));
            shake(&mut pair.client(version()), &mut server, usize::MAX).expect("handshake");
            let mut client = pair.client(version());
            let hello = client.flush().remove(0).1;
            let server = answer(&pair, &hello, encoded(now));
            assert_eq!(server.session.early_keys().is_some(), then == now, "{then}, {now}");
        }
    }
}

#[test]
fn a_flood_of_sessions_is_remembered_within_bounds() {
    use ::rustls::server::{ServerSessionMemoryCache, StoresServerSessions};
    let sessions = ServerSessionMemoryCache::new(MAX_EARLY_SESSIONS);
    let id = |n: usize| n.to_be_bytes().to_vec();
    let all = 3 * MAX_EARLY_SESSIONS;
    (0..all).for_each(|n| assert!(sessions.put(id(n), vec![0; 100])));
    let kept = (0..all).filter(|n| sessions.take(&id(*n)).is_some());
    let kept: Vec<_> = kept.collect();
    assert!(kept.len() <= MAX_EARLY_SESSIONS, "{}", kept.len());
    assert_eq!(kept.last(), Some(&(all - 1)), "the oldest are forgotten");
    assert!(kept.iter().all(|n| sessions.take(&id(*n)).is_none()), "each is taken once");
}

#[test]
fn a_client_that_does_not_know_the_protocol_sends_nothing_early() {
    let [pair, _] = pairs(&["first", "second"]);
    pair.connect();
    let (client, _) = pair.start();
    assert!(client.session.early_keys().is_none());
}

#[test]
fn a_server_that_does_not_want_0rtt_gets_none() {
    let (mut client, server) = rustls::configs();
    client.alpn_protocols = protocols(&["second"]);
    let tls = Pair {
        client: Arc::new(RustlsClientConfig::new(client).expect("client").with_early_data()),
        server: Arc::new(RustlsServerConfig::new(server).expect("server")),
    };
    let [_, null] = pairs(&["second"]);
    let null = Pair { server: Arc::new(NullServerConfig::new(protocols(&["second"]))), ..null };
    for pair in [tls, null] {
        pair.connect();
        assert!(pair.start().0.session.early_keys().is_none());
    }
}
