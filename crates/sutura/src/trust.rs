//! Whom a client trusts.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, SignatureScheme};

/// The identity that a server shows, and the time.
#[derive(Debug, Clone, Copy)]
pub struct ShownIdentity<'a> {
    /// Its certificate.
    pub certificate: &'a CertificateDer<'a>,
    /// Certificates that lead to it.
    pub intermediates: &'a [CertificateDer<'a>],
    /// The name that the client asked for.
    pub name: &'a ServerName<'a>,
    /// A response of the status protocol (RFC 6960), or nothing.
    pub ocsp: &'a [u8],
    /// The time.
    pub now: UnixTime,
}

/// Decides whether a client trusts the certificate that a server shows. That the server has the key
/// of the certificate is checked in any case.
pub trait ServerTrust: fmt::Debug + Send + Sync {
    /// Whether a server that shows this is trusted.
    ///
    /// # Errors
    /// It is not, with the reason.
    fn check(&self, shown: &ShownIdentity<'_>) -> Result<(), rustls::Error>;
}

/// The SHA-256 fingerprint of a certificate in DER.
#[must_use]
pub fn certificate_fingerprint(der: &[u8]) -> [u8; 32] {
    let mut fingerprint = [0; 32];
    let digest = primitives::digest::digest(&primitives::digest::SHA256, der);
    fingerprint.copy_from_slice(digest.as_ref());
    fingerprint
}

/// Trusts the certificate with this fingerprint, whatever its name and dates.
#[derive(Debug)]
pub(crate) struct Fingerprint(pub [u8; 32]);

impl ServerTrust for Fingerprint {
    fn check(&self, shown: &ShownIdentity<'_>) -> Result<(), rustls::Error> {
        if certificate_fingerprint(shown.certificate) == self.0 {
            return Ok(());
        }
        Err(CertificateError::ApplicationVerificationFailure.into())
    }
}

/// Trusts any certificate, and so leaves a client open to attackers on the path. For tests.
#[derive(Debug, Clone, Copy)]
pub struct Everybody;

impl ServerTrust for Everybody {
    fn check(&self, _shown: &ShownIdentity<'_>) -> Result<(), rustls::Error> {
        Ok(())
    }
}

/// A verifier that asks `trust` about certificates, for TLS configurations of one's own: those of
/// [`ClientConfig::with_tls`](crate::ClientConfig::with_tls), or of TLS over other transports.
#[must_use]
pub fn certificate_verifier(trust: Arc<dyn ServerTrust>) -> Arc<dyn ServerCertVerifier> {
    let provider = Arc::new(sutura_proto::crypto::rustls::provider());
    Arc::new(Verifier { trust, provider })
}

/// Asks a [`ServerTrust`] about certificates, and checks signatures itself.
#[derive(Debug)]
struct Verifier {
    trust: Arc<dyn ServerTrust>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.trust.check(&ShownIdentity { certificate, intermediates, name, ocsp, now })?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
