//! TLS for stacks on rustls.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, KeyLogFile, RootCertStore, ServerConfig};

use crate::{Environment, Error, TestCase};

/// The cipher suites that the test case permits. Initial packets are always protected with [`INITIAL`].
fn provider(case: TestCase) -> Arc<CryptoProvider> {
    let mut provider = ring::default_provider();
    if case == TestCase::ChaCha20 {
        provider.cipher_suites = vec![ring::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256];
    }
    Arc::new(provider)
}

/// The cipher suite of Initial packets (RFC 9001 section 5.2).
pub const INITIAL: rustls::SupportedCipherSuite = ring::cipher_suite::TLS13_AES_128_GCM_SHA256;

/// A client that trusts `ca.pem`.
///
/// # Errors
/// The file cannot be read.
pub fn client_tls(environment: &Environment) -> Result<ClientConfig, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(environment.certificates.join("ca.pem"))? {
        roots.add(certificate?)?;
    }
    let mut tls = ClientConfig::builder_with_provider(provider(environment.case))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![environment.protocol().to_vec()];
    tls.key_log = Arc::new(KeyLogFile::new());
    Ok(tls)
}

/// A server with `cert.pem` and `priv.key`.
///
/// # Errors
/// The files cannot be read.
pub fn server_tls(environment: &Environment) -> Result<ServerConfig, Error> {
    let directory = &environment.certificates;
    let chain = CertificateDer::pem_file_iter(directory.join("cert.pem"))?;
    let key = PrivateKeyDer::from_pem_file(directory.join("priv.key"))?;
    let mut tls = ServerConfig::builder_with_provider(provider(environment.case))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain.collect::<Result<_, _>>()?, key)?;
    tls.alpn_protocols = vec![environment.protocol().to_vec()];
    tls.key_log = Arc::new(KeyLogFile::new());
    Ok(tls)
}
