//! Sessions that go over to another version, and keys of any version from secrets.

use ::rustls::CipherSuite;

use super::super::rustls::{RustlsClientConfig, RustlsServerConfig};
use super::super::traffic_secret::{SuiteAlgorithms, TrafficSecret};
use super::vectors::{array, hex};
use super::*;
use crate::wire::version::Version::{self, V1, V2};

const SUITES: [CipherSuite; 3] = [
    CipherSuite::TLS13_AES_128_GCM_SHA256,
    CipherSuite::TLS13_AES_256_GCM_SHA384,
    CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
];

pub(super) fn going_over(from: Version, to: Option<Version>) -> SessionVersions {
    SessionVersions { original: from.number(), negotiated: to.map(Version::number) }
}

/// A client and a server; the client learns after its ClientHello that it goes over to `to`, if that is
/// given.
pub(super) fn connect(
    pair: &Pair,
    from: Version,
    to: Option<Version>,
    mut server: End,
) -> (End, End) {
    let mut client = pair.client(going_over(from, None));
    hand_over(&mut client, &mut server);
    if let Some(to) = to {
        client.session.set_version(to);
    }
    for (level, bytes) in server.flush() {
        client.session.read_handshake(level, &bytes).expect("the server's flight");
        // Keys come between the messages of two levels.
        hand_over(&mut client, &mut server);
    }
    (client, server)
}

/// Whether one end opens the other's packets and reads their headers.
fn fit(from: &DirectionalKeys, to: &DirectionalKeys) -> bool {
    let sample = b"sixteen bytes of";
    let [ours, theirs] = [from, to].map(|keys| keys.header.mask(sample).expect("a mask"));
    // The highest bits of the first byte are not used.
    (ours[0] & 0x1f, &ours[1..]) == (theirs[0] & 0x1f, &theirs[1..])
        && opens(&*from.packet, &*to.packet)
}

fn both_fit(one: &Keys, other: &Keys) -> bool {
    fit(&one.local, &other.remote) && fit(&other.local, &one.remote)
}

/// Checks that both ends have the same keys on all levels and in several key phases.
pub(super) fn agree(client: &mut End, server: &mut End) {
    assert!(!client.session.is_handshaking() && !server.session.is_handshaking());
    let keys = |end: &mut End| (end.handshake.take().unwrap(), end.one_rtt.take().unwrap());
    let (ours, theirs) = (keys(client), keys(server));
    assert!(both_fit(&ours.0, &theirs.0) && both_fit(&ours.1, &theirs.1));
    assert!(!fit(&ours.0.local, &theirs.1.remote));
    let mut phases = Vec::new();
    for _ in 0..4 {
        phases.push((client.enter_next_phase(), server.enter_next_phase()));
    }
    assert!(!opens(&*ours.1.local.packet, &*phases[0].1.remote));
    for (ours, theirs) in &phases {
        assert!(opens(&*ours.local, &*theirs.remote) && opens(&*theirs.local, &*ours.remote));
    }
    assert!(!opens(&*phases[0].0.local, &*phases[1].1.remote));
}

#[test]
fn both_ends_go_over_to_the_same_keys() {
    for pair in Pair::both() {
        for (from, to) in [(V1, V2), (V2, V1)] {
            let converted = pair.server(going_over(from, Some(to)));
            let (mut client, mut server) = connect(&pair, from, Some(to), converted);
            agree(&mut client, &mut server);
        }
    }
}

/// The other end derives its keys with rustls, without any conversion.
#[test]
fn the_keys_are_those_of_a_session_that_was_started_with_the_version() {
    for suite in SUITES {
        let (tls, server_tls) = rustls::tls(SERVER_NAME, suite);
        let tls = Pair {
            client: Arc::new(RustlsClientConfig::new(tls).expect("client")),
            server: Arc::new(RustlsServerConfig::new(server_tls).expect("server")),
        };
        for pair in [tls, null::pair()] {
            for (from, to) in [(V1, V2), (V2, V1)] {
                let native = staying_server(&pair, to);
                let (mut client, mut server) = connect(&pair, from, Some(to), native);
                agree(&mut client, &mut server);
            }
        }
    }
}

fn staying_server(pair: &Pair, version: Version) -> End {
    pair.server(SessionVersions::fixed(version.number()))
}

#[test]
fn a_session_that_may_change_need_not() {
    for pair in Pair::both() {
        for version in Version::ALL {
            let (mut client, mut server) =
                connect(&pair, version, None, staying_server(&pair, version));
            agree(&mut client, &mut server);
        }
    }
}

#[test]
fn versions_have_different_keys() {
    for pair in Pair::both() {
        for (from, to) in [(V1, V2), (V2, V1)] {
            let (client, server) = connect(&pair, from, Some(to), staying_server(&pair, from));
            let (ours, theirs) = (client.handshake.unwrap(), server.handshake.unwrap());
            assert!(!fit(&ours.local, &theirs.remote) && !fit(&theirs.local, &ours.remote));
            let (ours, theirs) = (client.one_rtt.unwrap(), server.one_rtt.unwrap());
            assert!(!fit(&ours.local, &theirs.remote) && !fit(&theirs.local, &ours.remote));
        }
    }
}

/// Whether a client that begins with version 1 has a ticket.
fn has_ticket(pair: &Pair, first: usize) -> bool {
    pair.client(SessionVersions::fixed(1)).flush()[0].1.len() > first
}

#[test]
fn a_client_that_went_over_keeps_no_ticket_for_the_version_that_it_began_with() {
    let pair = rustls::pair();
    let first = pair.client(SessionVersions::fixed(1)).flush()[0].1.len();
    // This server does not know that its client goes over, and sends tickets.
    for (to, kept) in [(Some(V2), false), (None, true)] {
        let (mut client, mut server) = connect(&pair, V1, to, staying_server(&pair, V1));
        let tickets = server.flush();
        assert!(tickets.iter().any(|(level, _)| *level == SpaceId::Data), "there are tickets");
        for (level, bytes) in tickets {
            bytes.chunks(5).for_each(|piece| {
                client.session.read_handshake(level, piece).expect("a ticket");
            });
        }
        assert_eq!(has_ticket(&pair, first), kept);
        if !kept {
            // A message that is no ticket is still an error.
            let error = client.session.read_handshake(SpaceId::Data, &[24, 0, 0, 1, 0]);
            assert_eq!(error.expect_err("forbidden").code.0, 0x100 + 10, "unexpected_message");
        }
    }
}

#[test]
fn a_server_that_went_over_sends_no_ticket() {
    let pair = rustls::pair();
    let converted = pair.server(going_over(V1, Some(V2)));
    let (_, mut server) = connect(&pair, V1, Some(V2), converted);
    assert!(server.flush().is_empty() && !server.sent.iter().any(|(l, _)| *l == SpaceId::Data));
}

#[test]
fn early_data_is_of_the_version_that_the_client_began_with() {
    for pair in early::pairs(&["second"]) {
        pair.connect();
        let mut client = pair.client(going_over(V1, None));
        let sealer = client.session.early_keys().expect("a ticket");
        let mut server = pair.server(going_over(V1, Some(V2)));
        hand_over(&mut client, &mut server);
        client.session.set_version(V2);
        let opener = server.session.early_keys().expect("accepted");
        assert!(fit(&sealer, &opener));
        assert!(fit(&client.session.early_keys().expect("the same"), &opener));
    }
}

#[test]
fn the_parameters_are_found_in_a_whole_client_hello() {
    for pair in Pair::both() {
        let hello = pair.client(SessionVersions::fixed(1)).flush().remove(0).1;
        assert_eq!(pair.server.client_parameters(&hello), Some(CLIENT_PARAMETERS));
        let more = [&hello[..], b"and more"].concat();
        assert_eq!(pair.server.client_parameters(&more), Some(CLIENT_PARAMETERS));
        assert_eq!(pair.server.client_parameters(&[]), None);
        assert_eq!(pair.server.client_parameters(&[1, 0, 0, 2, 0, 9]), None);
    }
}

fn secret(suite: CipherSuite, version: Version, secret: &str) -> TrafficSecret {
    TrafficSecret::new(SuiteAlgorithms::of(suite).expect("known"), version, &hex(secret))
}

#[test]
fn rfc9369_a1_server_initial_secret() {
    let suite = rustls::suite(CipherSuite::TLS13_AES_128_GCM_SHA256);
    let dcid = ConnectionId::new(&hex("8394c8f03e515708")).expect("eight bytes");
    for (version, server) in [
        (V1, "3c199828fd139efd216c155ad844cc81fb82fa8d7446fa7d78be803acdda951b"),
        (V2, "0263db1782731bf4588e7e4d93b7463907cb8cd8200b5da55a8bd488eafc37c1"),
    ] {
        let ours = secret(CipherSuite::TLS13_AES_128_GCM_SHA256, version, server);
        let theirs = super::super::rustls::initial_keys(&suite, version, &dcid, Side::Client);
        assert!(fit(&ours.keys().expect("keys"), &theirs.remote));
        assert!(!fit(&ours.keys().expect("keys"), &theirs.local));
    }
}

#[test]
fn a5_chacha20_short_header_and_key_update() {
    let write = "9ac312a7f877468ebe69422748ad00a15443f18203a07d6060f688f30f21632b";
    for (version, update, packet, sample, mask) in [
        (
            V1,
            "1223504755036d556342ee9361d253421a826c9ecdf3c7148684b36b714881f9",
            "4cfe4189655e5cd55c41f69080575d7999c25a5bfb",
            "5e5cd55c41f69080575d7999c25a5bfb",
            "aefefe7d03",
        ),
        (
            V2,
            "c69374c49e3d2a9466fa689e49d476db5d0dfbc87d32ceeaa6343fd0ae4c7d88",
            "5558b1c60ae7b6b932bc27d786f4bc2bb20f2162ba",
            "e7b6b932bc27d786f4bc2bb20f2162ba",
            "97580e32bf",
        ),
    ] {
        let suite = CipherSuite::TLS13_CHACHA20_POLY1305_SHA256;
        let (first, second) = (secret(suite, version, write), secret(suite, version, update));
        let keys = first.keys().expect("keys");
        let mut sealed = hex("4200bff401");
        sealed.resize(sealed.len() + TAG_LEN, 0);
        keys.protect(654_360_564, &mut sealed, 1, 3).expect("protection");
        assert_eq!(sealed, hex(packet));
        assert_eq!(keys.header.mask(&array(sample)).map(Vec::from), Ok(hex(mask)));
        let next = first.next().expect("a secret").packet_key().expect("a key");
        assert!(opens(&*next, &*second.packet_key().expect("a key")));
        assert!(!opens(&*next, &*keys.packet));
    }
}

#[test]
fn limits_are_those_of_the_suite() {
    for suite in SUITES {
        let protection = SuiteAlgorithms::of(suite).expect("known");
        let ours = TrafficSecret::new(protection, V1, &[7; 48]).packet_key().expect("a key");
        let dcid = ConnectionId::default();
        let keys =
            super::super::rustls::initial_keys(&rustls::suite(suite), V1, &dcid, Side::Client);
        let theirs = keys.local.packet;
        assert_eq!(ours.confidentiality_limit(), theirs.confidentiality_limit());
        assert_eq!(ours.integrity_limit(), theirs.integrity_limit());
        for len in 0..TAG_LEN {
            let mut short = vec![0; len];
            assert_eq!(ours.seal(0, HEADER, &mut short), Err(ProtectionError::TooShort));
            assert_eq!(ours.open(0, HEADER, &mut short), Err(ProtectionError::TooShort));
        }
        let mut damaged = sealed(&*ours, 1);
        damaged[3] ^= 1;
        assert_eq!(ours.open(1, HEADER, &mut damaged), Err(ProtectionError::Open));
    }
    assert!(SuiteAlgorithms::of(CipherSuite::TLS13_AES_128_CCM_SHA256).is_none());
}
