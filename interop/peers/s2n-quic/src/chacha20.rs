//! TLS with TLS_CHACHA20_POLY1305_SHA256 as the only cipher suite.
//!
//! s2n-tls has no security policy with only this cipher suite, so rustls is used here, through s2n-quic's
//! provider.

use crate::Error;
use crate::config::{ALPN, certificate};
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::TLS13;
use rustls::{ClientConfig, KeyLogFile, RootCertStore, ServerConfig};
use s2n_quic::provider::tls::rustls::{Client, Server};
use std::sync::Arc;

fn provider() -> Arc<CryptoProvider> {
    let cipher_suites = vec![TLS13_CHACHA20_POLY1305_SHA256];
    Arc::new(CryptoProvider { cipher_suites, ..aws_lc_rs::default_provider() })
}

pub fn client() -> Result<Client, Error> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificate("ca.pem")?)?)?;
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![ALPN.into()];
    config.key_log = Arc::new(KeyLogFile::new());
    Ok(config.into())
}

pub fn server() -> Result<Server, Error> {
    let chain = CertificateDer::pem_file_iter(certificate("cert.pem")?)?;
    let key = PrivateKeyDer::from_pem_file(certificate("priv.key")?)?;
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain.collect::<Result<_, _>>()?, key)?;
    config.alpn_protocols = vec![ALPN.into()];
    config.key_log = Arc::new(KeyLogFile::new());
    Ok(config.into())
}
