//! Real TLS: certificates, alerts, cipher suites.

use ::rustls::crypto::CipherSuiteCommon;
use ::rustls::crypto::CryptoProvider;
use ::rustls::pki_types::PrivateKeyDer;
use ::rustls::version::TLS13;
use ::rustls::{CipherSuite, SupportedCipherSuite, Tls13CipherSuite};
use ::rustls::{ClientConfig, RootCertStore, ServerConfig};

use super::super::rustls::{ConfigError, RustlsClientConfig, RustlsServerConfig, backend};
use super::*;

fn provider(first: CipherSuite) -> Arc<CryptoProvider> {
    let mut provider = backend::default_provider();
    provider.cipher_suites.sort_by_key(|suite| suite.suite() != first);
    Arc::new(provider)
}

/// A client that trusts a server with a new certificate for `name`; both prefer `suite`.
pub(crate) fn tls(name: &str, suite: CipherSuite) -> (ClientConfig, ServerConfig) {
    let identity = rcgen::generate_simple_self_signed([name.to_owned()]).expect("certificate");
    let key = PrivateKeyDer::Pkcs8(identity.signing_key.serialize_der().into());
    let mut roots = RootCertStore::empty();
    roots.add(identity.cert.der().clone()).expect("root");
    let mut server = ServerConfig::builder_with_provider(provider(suite))
        .with_protocol_versions(&[&TLS13])
        .expect("TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(vec![identity.cert.der().clone()], key)
        .expect("identity");
    server.alpn_protocols = vec![b"third".to_vec(), b"second".to_vec()];
    let mut client = trusting(provider(suite), roots);
    client.alpn_protocols = vec![b"first".to_vec(), b"second".to_vec()];
    (client, server)
}

fn trusting(provider: Arc<CryptoProvider>, roots: RootCertStore) -> ClientConfig {
    ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .expect("TLS 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth()
}

/// A client without trusted certificates.
fn untrusting(provider: CryptoProvider) -> ClientConfig {
    let mut client = trusting(Arc::new(provider), RootCertStore::empty());
    client.alpn_protocols = vec![b"second".to_vec()];
    client
}

fn wrap((client, server): (ClientConfig, ServerConfig)) -> Pair {
    Pair {
        client: Arc::new(RustlsClientConfig::new(client).expect("client")),
        server: Arc::new(RustlsServerConfig::new(server).expect("server")),
    }
}

pub(super) fn pair() -> Pair {
    wrap(configs())
}

/// A client and a server that it trusts.
pub(super) fn configs() -> (ClientConfig, ServerConfig) {
    tls(SERVER_NAME, CipherSuite::TLS13_AES_128_GCM_SHA256)
}

fn failure(pair: &Pair) -> (Side, u64) {
    let (mut client, mut server) = pair.start();
    let (side, error) = shake(&mut client, &mut server, usize::MAX).expect_err("no handshake");
    (side, error.code.0)
}

#[test]
fn the_client_sees_the_servers_certificate() {
    let (client, server) = pair().connect();
    assert_eq!(client.session.peer_certificates().map(<[_]>::len), Some(1));
    assert!(server.session.peer_certificates().is_none());
}

#[test]
fn tickets_come_at_the_1rtt_level_and_are_taken() {
    let (client, server) = pair().connect();
    assert!(server.sent.iter().any(|(level, _)| *level == SpaceId::Data), "{:?}", server.sent);
    assert!(!client.session.is_handshaking());
}

#[test]
fn a_certificate_for_another_name_is_an_alert() {
    let pair = wrap(tls("other.example", CipherSuite::TLS13_AES_128_GCM_SHA256));
    assert_eq!(failure(&pair), (Side::Client, 0x100 + 42), "bad_certificate");
}

#[test]
fn an_unknown_issuer_is_an_alert() {
    let (_, server) = configs();
    let pair = wrap((untrusting(backend::default_provider()), server));
    assert_eq!(failure(&pair), (Side::Client, 0x100 + 48), "unknown_ca");
}

#[test]
fn no_common_protocol_is_an_alert() {
    let (mut client, server) = configs();
    client.alpn_protocols = vec![b"fourth".to_vec()];
    assert_eq!(failure(&wrap((client, server))), (Side::Server, 0x178));
}

#[test]
fn a_client_without_protocols_is_turned_away() {
    use ::rustls::quic::{ClientConnection, Version};
    let (mut client, server) = configs();
    client.alpn_protocols.clear();
    let name = SERVER_NAME.try_into().expect("name");
    let mut client =
        ClientConnection::new(Arc::new(client), Version::V1, name, Vec::new()).expect("client");
    let mut hello = Vec::new();
    assert!(client.write_hs(&mut hello).is_none());
    let server = RustlsServerConfig::new(server).expect("server");
    let mut session =
        server.start_session(SessionVersions::fixed(VERSION_1), Vec::new()).expect("session");
    let error = session.read_handshake(SpaceId::Initial, &hello).expect_err("no protocol");
    assert_eq!(error.code.0, 0x178);
}

#[test]
fn a_configuration_without_protocols_is_refused() {
    let (mut client, mut server) = configs();
    client.alpn_protocols.clear();
    server.alpn_protocols.clear();
    let expected = Some(ConfigError::NoApplicationProtocol);
    assert_eq!(RustlsClientConfig::new(client).err(), expected);
    assert_eq!(RustlsServerConfig::new(server).err(), expected);
}

#[test]
fn a_provider_needs_a_suite_for_quic_but_not_that_of_initial_packets() {
    let mut provider = backend::default_provider();
    provider.cipher_suites.retain(|suite| suite.suite() != CipherSuite::TLS13_AES_128_GCM_SHA256);
    assert!(RustlsClientConfig::new(untrusting(provider.clone())).is_ok());
    provider.cipher_suites = provider.cipher_suites.iter().map(without_quic).collect();
    let client = untrusting(provider);
    assert_eq!(RustlsClientConfig::new(client).err(), Some(ConfigError::NoCipherSuite));
}

/// The same suite, for TLS over TCP only.
fn without_quic(suite: &SupportedCipherSuite) -> SupportedCipherSuite {
    let whole = suite.tls13().expect("TLS 1.3");
    let CipherSuiteCommon { suite, hash_provider, confidentiality_limit, .. } = whole.common;
    SupportedCipherSuite::Tls13(Box::leak(Box::new(Tls13CipherSuite {
        common: CipherSuiteCommon { suite, hash_provider, confidentiality_limit },
        hkdf_provider: whole.hkdf_provider,
        aead_alg: whole.aead_alg,
        quic: None,
    })))
}

#[test]
fn malformed_messages_are_decode_errors() {
    for (message, what) in
        [(&[1, 0, 0, 2, 3, 3][..], "cut short"), (&[1, 0xff, 0xff, 0xff], "oversized")]
    {
        let (_, mut server) = pair().start();
        let error = server.session.read_handshake(SpaceId::Initial, message).expect_err(what);
        assert_eq!(error.code.0, 0x100 + 50, "{what}");
    }
}

#[test]
fn a_tls_key_update_is_an_alert() {
    let (mut client, mut server) = pair().connect();
    for end in [&mut client, &mut server] {
        let error = end.session.read_handshake(SpaceId::Data, &[24, 0, 0, 1, 0]);
        assert_eq!(error.expect_err("forbidden").code.0, 0x100 + 10, "unexpected_message");
    }
}

#[test]
fn early_data_is_not_offered_unless_asked_for() {
    let (mut client, mut server) = configs();
    client.enable_early_data = true;
    server.max_early_data_size = u32::MAX;
    let pair = wrap((client, server));
    let hello = |pair: &Pair| {
        let (mut client, _) = pair.start();
        client.flush().remove(0).1
    };
    let first = hello(&pair);
    pair.connect();
    let resumed = hello(&pair);
    assert!(resumed.len() > first.len(), "the second ClientHello carries a ticket");
    // The early_data extension (type 42) would be empty, so four bytes would announce it.
    assert!(!resumed.windows(4).any(|bytes| bytes == [0, 42, 0, 0]));
}

#[test]
fn parameters_of_an_earlier_session_are_not_the_servers() {
    let pair = pair();
    pair.connect();
    let (mut client, mut server) = pair.start();
    let hello = client.flush().remove(0).1;
    assert!(client.session.transport_parameters().is_none());
    server.session.read_handshake(SpaceId::Initial, &hello).expect("ClientHello");
    assert!(server.session.transport_parameters().is_some());
}

#[test]
fn every_cipher_suite_works_and_has_its_limits() {
    for (suite, confidentiality, integrity) in [
        (CipherSuite::TLS13_AES_128_GCM_SHA256, 1 << 23, 1 << 52),
        (CipherSuite::TLS13_AES_256_GCM_SHA384, 1 << 23, 1 << 52),
        (CipherSuite::TLS13_CHACHA20_POLY1305_SHA256, u64::MAX, 1 << 36),
    ] {
        let (client, server) = wrap(tls(SERVER_NAME, suite)).connect();
        let (client, server) = (client.one_rtt.expect("keys"), server.one_rtt.expect("keys"));
        assert!(opens(&*client.local.packet, &*server.remote.packet));
        let sample = b"sixteen bytes of";
        assert_eq!(client.local.header.mask(sample), server.remote.header.mask(sample));
        let key = &*client.local.packet;
        assert_eq!(key.confidentiality_limit(), confidentiality, "{suite:?}");
        assert_eq!(key.integrity_limit(), integrity, "{suite:?}");
        assert_eq!(key.tag_len(), TAG_LEN);
    }
}

/// The suite of the ChaCha20 test vectors in the RFC, for `vectors`.
pub(super) fn suite(wanted: CipherSuite) -> ::rustls::quic::Suite {
    backend::ALL_CIPHER_SUITES
        .iter()
        .filter(|suite| suite.suite() == wanted)
        .find_map(|suite: &SupportedCipherSuite| suite.tls13()?.quic_suite())
        .expect("the library has it")
}
