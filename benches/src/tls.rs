//! Certificates and TLS settings of both ends.

use crate::Error;
#[cfg(feature = "aws-lc-rs")]
use rustls::crypto::aws_lc_rs;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{CipherSuite, NamedGroup};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The application protocol of all benches.
pub const ALPN: &[u8] = b"perf";

/// One cipher and one group, so that no end negotiates a cheaper one.
fn only_aes_128_gcm(mut provider: CryptoProvider) -> Arc<CryptoProvider> {
    provider.cipher_suites.retain(|s| s.suite() == CipherSuite::TLS13_AES_128_GCM_SHA256);
    provider.kx_groups.retain(|group| group.name() == NamedGroup::X25519);
    Arc::new(provider)
}

/// One cipher and one group of ring.
pub fn aes_128_gcm() -> Arc<CryptoProvider> {
    only_aes_128_gcm(ring::default_provider())
}

/// All ciphers and groups of ring, as rustls orders them.
pub fn defaults() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// One cipher and one group of AWS-LC.
#[cfg(feature = "aws-lc-rs")]
pub fn aes_128_gcm_of_aws_lc() -> Arc<CryptoProvider> {
    only_aes_128_gcm(aws_lc_rs::default_provider())
}

/// All ciphers and groups of AWS-LC, as rustls orders them.
#[cfg(feature = "aws-lc-rs")]
pub fn defaults_of_aws_lc() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

/// A certificate that its clients trust, and its private key, both in DER.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Identity {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Identity {
    /// A new certificate for `localhost`.
    pub fn new() -> Result<Self, Error> {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
        Ok(Self { certificate: made.cert.der().to_vec(), key: made.signing_key.serialize_der() })
    }

    /// The certificate.
    pub fn certificate(&self) -> &[u8] {
        &self.certificate
    }

    /// The private key, in PKCS #8.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The certificate and the private key, each in PEM.
    pub fn to_pem(&self) -> (String, String) {
        let encode = |tag: &str, der: &[u8]| pem::encode(&pem::Pem::new(tag, der));
        (encode("CERTIFICATE", &self.certificate), encode("PRIVATE KEY", &self.key))
    }

    pub fn server_tls(&self, provider: Arc<CryptoProvider>) -> Result<rustls::ServerConfig, Error> {
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(self.key.clone()));
        let mut tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_no_client_auth()
            .with_single_cert(vec![CertificateDer::from(self.certificate.clone())], key)?;
        tls.alpn_protocols = vec![ALPN.to_vec()];
        Ok(tls)
    }

    /// A client that trusts the certificate. It does not resume sessions: how many handshakes would be resumed
    /// depends on when tickets arrive.
    pub fn client_tls(&self, provider: Arc<CryptoProvider>) -> Result<rustls::ClientConfig, Error> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from(self.certificate.clone()))?;
        let mut tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_root_certificates(roots)
            .with_no_client_auth();
        tls.alpn_protocols = vec![ALPN.to_vec()];
        tls.resumption = rustls::client::Resumption::disabled();
        Ok(tls)
    }
}
