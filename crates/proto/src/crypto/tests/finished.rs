//! What a server's session is once the handshake is over.

use super::super::rustls::backend;
use ::rustls::pki_types::PrivateKeyDer;
use ::rustls::server::WebPkiClientVerifier;
use ::rustls::version::TLS13;
use ::rustls::{ClientConfig, RootCertStore, ServerConfig};

use super::super::rustls::{RustlsClientConfig, RustlsServerConfig};
use super::conversion::{agree, connect, going_over};
use super::*;

/// A certificate for the name of the server, its key, and the roots of an end that trusts it.
fn identity() -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>, Arc<RootCertStore>) {
    let name = vec![SERVER_NAME.to_owned()];
    let signed = rcgen::generate_simple_self_signed(name).expect("certificate");
    let mut roots = RootCertStore::empty();
    roots.add(signed.cert.der().clone()).expect("root");
    let key = PrivateKeyDer::Pkcs8(signed.signing_key.serialize_der().into());
    (vec![signed.cert.der().clone()], key, Arc::new(roots))
}

/// A client that shows a certificate to a server that asks for one.
fn mutual(wrap: impl FnOnce(RustlsServerConfig) -> RustlsServerConfig) -> Pair {
    let provider = Arc::new(backend::default_provider());
    let (ours, our_key, our_roots) = identity();
    let (theirs, their_key, their_roots) = identity();
    let verifier = WebPkiClientVerifier::builder_with_provider(our_roots, provider.clone());
    let mut server = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&TLS13])
        .expect("TLS 1.3")
        .with_client_cert_verifier(verifier.build().expect("a verifier"))
        .with_single_cert(theirs, their_key)
        .expect("identity");
    let mut client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .expect("TLS 1.3")
        .with_root_certificates(their_roots)
        .with_client_auth_cert(ours, our_key)
        .expect("identity");
    for protocols in [&mut client.alpn_protocols, &mut server.alpn_protocols] {
        *protocols = vec![b"second".to_vec()];
    }
    Pair {
        client: Arc::new(RustlsClientConfig::new(client).expect("client")),
        server: Arc::new(wrap(RustlsServerConfig::new(server).expect("server"))),
    }
}

fn finish(server: &mut End) {
    server.session = server.session.finish().expect("a smaller session");
}

#[test]
fn it_still_knows_the_client() {
    let (_, mut server) = mutual(|config| config).connect();
    let known = |server: &End| {
        let session = &server.session;
        let chain = session.peer_certificates().map(<[_]>::to_vec);
        (session.alpn().map(<[_]>::to_vec), session.server_name().map(str::to_owned), chain)
    };
    let before = known(&server);
    assert_eq!(before.0.as_deref(), Some(&b"second"[..]));
    assert_eq!(before.1.as_deref(), Some(SERVER_NAME));
    assert_eq!(before.2.as_ref().map(Vec::len), Some(1));
    finish(&mut server);
    assert_eq!(known(&server), before);
    assert!(!server.session.is_handshaking());
}

#[test]
fn it_goes_on_with_the_keys() {
    let pair = rustls::pair();
    for version in Version::ALL {
        let (mut client, mut server) = pair.connect_in(version);
        finish(&mut server);
        agree(&mut client, &mut server);
        let other = match version {
            Version::V1 => Version::V2,
            Version::V2 => Version::V1,
        };
        let converted = pair.server(going_over(version, Some(other)));
        let (mut client, mut server) = connect(&pair, version, Some(other), converted);
        finish(&mut server);
        agree(&mut client, &mut server);
    }
}

#[test]
fn it_has_nothing_to_say_and_accepts_nothing() {
    let (_, mut server) = rustls::pair().connect();
    finish(&mut server);
    assert!(server.flush().is_empty());
    server.session.read_handshake(SpaceId::Data, &[]).expect("no data");
    for message in [&[24, 0, 0, 1, 0][..], &[24]] {
        let error = server.session.read_handshake(SpaceId::Data, message).expect_err("forbidden");
        assert_eq!(error.code.0, 0x100 + 10, "unexpected_message");
    }
    let error = server.session.read_handshake(SpaceId::Handshake, &[24]).expect_err("forbidden");
    assert_eq!(error.code, TransportErrorCode::PROTOCOL_VIOLATION);
}

#[test]
fn it_exports_keying_material_only_if_asked_to() {
    let mut out = [[0; 32]; 2];
    let [ours, theirs] = &mut out;
    let (client, mut server) = mutual(RustlsServerConfig::with_exporter).connect();
    assert!(server.session.finish().is_none());
    client.session.export_keying_material(ours, b"label", None).expect("complete");
    server.session.export_keying_material(theirs, b"label", None).expect("complete");
    assert_eq!(ours, theirs);
    let (_, mut server) = mutual(|config| config).connect();
    server.session.export_keying_material(theirs, b"label", None).expect("not finished yet");
    finish(&mut server);
    let gone = server.session.export_keying_material(theirs, b"label", None);
    assert_eq!(gone, Err(ExportError::NotKept));
}

#[test]
fn it_is_not_finished_before_the_handshake_is_over() {
    let (mut client, mut server) = rustls::pair().start();
    assert!(server.session.finish().is_none());
    hand_over(&mut client, &mut server);
    server.flush();
    assert!(server.one_rtt.is_some() && server.session.finish().is_none());
}
