//! Endpoints with throw-away certificates.

use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::net::SocketAddr;
use sutura::{ClientConfig, Endpoint, ServerConfig, TransportConfig};

/// A self-signed certificate for `localhost`.
pub fn certificate() -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
    let signed = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(signed.signing_key.serialize_der());
    (signed.cert.into(), key.into())
}

pub fn localhost() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

/// A server and a client that trusts it.
#[allow(dead_code, reason = "not every test binary uses it")]
pub fn pair(protocol: &[u8], transport: &TransportConfig) -> (Endpoint, Endpoint, SocketAddr) {
    let (certificate, key) = certificate();
    let server = ServerConfig::with_single_cert(vec![certificate.clone()], key, &[protocol]);
    let server = server.unwrap().transport(transport.clone());
    let server = Endpoint::server(server, localhost()).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).unwrap();
    let config = ClientConfig::with_root_certificates(roots, &[protocol]).unwrap();
    let mut client = Endpoint::client(localhost()).unwrap();
    client.set_default_client_config(config.transport(transport.clone()));
    let address = server.local_addr().unwrap();
    (server, client, address)
}

/// Bytes that differ from place to place.
#[allow(dead_code, reason = "not every test binary uses it")]
pub fn pattern(len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
}
