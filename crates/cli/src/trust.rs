//! Which servers a client trusts, and advice about a server that it does not trust.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::client::verify_server_name;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, OtherError, RootCertStore};
use sutura::{
    ClientConfig, Everybody, ServerTrust, ShownIdentity, certificate_fingerprint,
    certificate_verifier,
};

use crate::cert::{Identity, parse_fingerprint};
use crate::failure::{Exit, Failure};
use crate::keylog;

/// The options that say which servers to trust.
#[derive(Debug, Clone, clap::Args)]
pub struct TrustArgs {
    /// Trust only the certificate with this SHA-256 fingerprint
    #[arg(long, value_name = "SHA256", value_parser = parse_fingerprint)]
    #[arg(conflicts_with_all = ["ca", "insecure"])]
    fingerprint: Option<[u8; 32]>,
    /// Trust only certificates that are in this PEM file, or lead to one in it
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    ca: Option<PathBuf>,
    /// Trust any certificate
    #[arg(short = 'k', long)]
    insecure: bool,
}

impl TrustArgs {
    /// The certificates to trust.
    pub fn trust(&self) -> Trust {
        match (&self.fingerprint, &self.ca) {
            (Some(fingerprint), _) => Trust::Fingerprint(*fingerprint),
            (None, Some(path)) => Trust::File(path.clone()),
            (None, None) if self.insecure => Trust::Everybody,
            (None, None) => Trust::System,
        }
    }
}

/// The certificates to trust.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// Certificates that the system trusts.
    System,
    /// Certificates in this file, or that lead to one in it.
    File(PathBuf),
    /// Only the certificate with this fingerprint.
    Fingerprint([u8; 32]),
    /// Any certificate.
    Everybody,
}

impl Trust {
    /// The client configuration for these certificates and an application protocol (RFC 7301).
    ///
    /// # Errors
    /// There are no trusted certificates, or SSLKEYLOGFILE cannot be written.
    pub fn client_config(&self, protocol: &[u8]) -> Result<ClientConfig, Failure> {
        self.client_config_of("--", protocol)
    }

    /// The same for certificates that were named by options that begin with `prefix`.
    ///
    /// # Errors
    /// As above.
    pub fn client_config_of(
        &self,
        prefix: &'static str,
        protocol: &[u8],
    ) -> Result<ClientConfig, Failure> {
        let config = ClientConfig::with_trust(self.judge(prefix)?, &[protocol]);
        keylog::client(config.map_err(|e| failed(&e))?)
    }

    /// The same for a client that shows a certificate of its own to servers that want one.
    ///
    /// # Errors
    /// As above, or the certificate cannot be used.
    pub fn client_config_with(
        &self,
        protocol: &[u8],
        identity: Option<Identity>,
    ) -> Result<ClientConfig, Failure> {
        let Some(Identity { chain, key }) = identity else { return self.client_config(protocol) };
        let config = ClientConfig::with_identity(self.judge("--")?, chain, key, &[protocol]);
        keylog::client(config.map_err(|e| {
            Failure::local(format!("the client's certificate and key cannot be used: {e}"))
        })?)
    }

    /// The configuration of TLS over other transports than QUIC for these certificates, which were named by
    /// options that begin with `prefix`.
    ///
    /// # Errors
    /// There are no trusted certificates, or SSLKEYLOGFILE cannot be written.
    pub fn tls_config(&self, prefix: &'static str) -> Result<rustls::ClientConfig, Failure> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(rustls::DEFAULT_VERSIONS)
            .map_err(|e| failed(&e))?
            .dangerous()
            .with_custom_certificate_verifier(certificate_verifier(self.judge(prefix)?))
            .with_no_client_auth();
        if let Some(log) = keylog::key_log()? {
            config.key_log = log;
        }
        Ok(config)
    }

    /// The judge of certificates. Its advice names options that begin with `prefix`.
    fn judge(&self, prefix: &'static str) -> Result<Arc<dyn ServerTrust>, Failure> {
        let certificates = match self {
            Self::System => system_certificates(prefix)?,
            Self::File(path) => file_certificates(path)?,
            Self::Fingerprint(_) => Vec::new(),
            Self::Everybody => return Ok(Arc::new(Everybody)),
        };
        Ok(Arc::new(Judge::new(self.clone(), certificates, prefix)?))
    }
}

fn failed(error: &dyn fmt::Display) -> Failure {
    Failure::new(Exit::Other, error.to_string())
}

fn system_certificates(prefix: &str) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        let why = found.errors.first().map(|e| format!(": {e}")).unwrap_or_default();
        return Err(Failure::local(format!(
            "the system trusts no certificates{why}; say {prefix}ca, {prefix}fingerprint or {prefix}insecure"
        )));
    }
    Ok(found.certs)
}

/// The certificates in a PEM file.
///
/// # Errors
/// It cannot be read, or holds none.
pub fn file_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let unusable = |problem: &dyn fmt::Display| {
        Failure::local(format!("no certificate in {}: {problem}", path.display()))
    };
    let certificates = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|e| unusable(&e))?;
    if certificates.is_empty() {
        return Err(unusable(&"it holds no CERTIFICATE section"));
    }
    Ok(certificates)
}

/// Judges certificates as rustls does, trusts named certificates also if they are their own authority, and
/// describes the certificates that it does not trust.
#[derive(Debug)]
struct Judge {
    trust: Trust,
    /// The certificates that the user named.
    named: Vec<CertificateDer<'static>>,
    /// `None` if only a fingerprint counts.
    authorities: Option<Arc<WebPkiServerVerifier>>,
    /// How the options begin that it gives advice about.
    prefix: &'static str,
}

impl Judge {
    fn new(
        trust: Trust,
        certificates: Vec<CertificateDer<'static>>,
        prefix: &'static str,
    ) -> Result<Self, Failure> {
        if matches!(trust, Trust::Fingerprint(_)) {
            return Ok(Self { trust, named: certificates, authorities: None, prefix });
        }
        let mut roots = RootCertStore::empty();
        let named = if let Trust::File(path) = &trust {
            for certificate in &certificates {
                roots.add(certificate.clone()).map_err(|e| {
                    Failure::local(format!("no certificate in {}: {e}", path.display()))
                })?;
            }
            certificates
        } else {
            roots.add_parsable_certificates(certificates);
            Vec::new()
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let authorities = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|e| failed(&e))?;
        Ok(Self { trust, named, authorities: Some(authorities), prefix })
    }

    /// Whether the user named this certificate itself. A self-signed certificate is a server's and an
    /// authority's at once, and has no other fault: rustls finds `error` last.
    fn is_named(&self, certificate: &CertificateDer<'_>, error: &rustls::Error) -> bool {
        is_authority(error) && self.named.iter().any(|named| named == certificate)
    }

    /// The message about a certificate that is not trusted.
    fn explain(&self, certificate: &CertificateDer<'_>, error: &rustls::Error) -> rustls::Error {
        let fingerprint = hex::encode(certificate_fingerprint(certificate));
        let prefix = self.prefix;
        let why = match (&self.trust, error) {
            (Trust::Fingerprint(expected), _) => {
                let expected = hex::encode(expected);
                format!(
                    "its fingerprint is {fingerprint}, and not {expected} as {prefix}fingerprint says"
                )
            }
            (trust, error) => {
                let why = reason(trust, error);
                format!(
                    "{why}. Its fingerprint is {fingerprint}: if the server says the same, trust it \
                     by {prefix}fingerprint {fingerprint}; trust an authority by {prefix}ca FILE, or anybody \
                     by {prefix}insecure"
                )
            }
        };
        let untrusted: Arc<dyn Error + Send + Sync> = Arc::new(Untrusted(why));
        CertificateError::Other(OtherError(untrusted)).into()
    }
}

/// Whether an authority's certificate was shown as a server's.
fn is_authority(error: &rustls::Error) -> bool {
    let rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(error))) = error
    else {
        return false;
    };
    error.downcast_ref() == Some(&webpki::Error::CaUsedAsEndEntity)
}

/// The fault of a certificate.
fn reason(trust: &Trust, error: &rustls::Error) -> String {
    let from = match trust {
        Trust::File(path) => format!("in {}", path.display()),
        Trust::System | Trust::Fingerprint(_) | Trust::Everybody => {
            "that this system trusts".into()
        }
    };
    match error {
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            format!("it comes from no authority {from}")
        }
        rustls::Error::InvalidCertificate(CertificateError::NotValidForNameContext {
            presented,
            ..
        }) if presented.is_empty() => {
            "it names no host (subjectAltName), as openssl makes it without -addext \
             subjectAltName=DNS:NAME"
                .into()
        }
        rustls::Error::InvalidCertificate(error) if !is_authority(&error.clone().into()) => {
            error.to_string()
        }
        rustls::Error::InvalidCertificate(_) => {
            format!(
                "it is that of an authority, as `openssl req -x509` makes it, and not itself {from}"
            )
        }
        error => error.to_string(),
    }
}

/// Why a certificate is not trusted.
#[derive(Debug)]
struct Untrusted(String);

impl fmt::Display for Untrusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Untrusted {}

impl ServerTrust for Judge {
    fn check(&self, shown: &ShownIdentity<'_>) -> Result<(), rustls::Error> {
        let ShownIdentity { certificate, intermediates, name, ocsp, now } = *shown;
        let judged = match (&self.trust, &self.authorities) {
            (_, Some(authorities)) => authorities
                .verify_server_cert(certificate, intermediates, name, ocsp, now)
                .map(drop),
            (Trust::Fingerprint(expected), None)
                if certificate_fingerprint(certificate) == *expected =>
            {
                Ok(())
            }
            (_, None) => Err(CertificateError::ApplicationVerificationFailure.into()),
        };
        let judged = match judged {
            Err(error) if self.is_named(certificate, &error) => {
                ParsedCertificate::try_from(certificate)
                    .and_then(|parsed| verify_server_name(&parsed, name))
            }
            judged => judged,
        };
        judged.map_err(|error| self.explain(certificate, &error))
    }
}

/// Why TLS over another transport did not begin, in the words of the judge if that is because of the certificate.
pub fn why_no_tls(error: &io::Error) -> String {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref());
    match tls {
        Some(rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(why)))) => {
            format!("its certificate is not trusted: {why}")
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, date_time_ymd};
    use rustls::pki_types::{ServerName, UnixTime};

    use super::*;

    /// A certificate as `openssl req -x509` makes it, for these names and until that year.
    fn own_authority(names: &[&str], until: i32) -> CertificateDer<'static> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone()
    }

    /// The message about a certificate in 2025, if it is not trusted.
    fn judge(
        trust: Trust,
        known: &[&CertificateDer<'static>],
        shown: &CertificateDer<'static>,
    ) -> Option<String> {
        let known = known.iter().map(|&certificate| certificate.clone()).collect();
        let judge = Judge::new(trust, known, "--").unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(1_750_000_000));
        let shown =
            ShownIdentity { certificate: shown, intermediates: &[], name: &name, ocsp: &[], now };
        judge.check(&shown).err().map(|error| error.to_string())
    }

    #[test]
    fn a_certificate_that_is_its_own_authority_is_trusted_if_it_is_named() {
        let file = || Trust::File("ca.pem".into());
        let (own, other) =
            (own_authority(&["localhost"], 2099), own_authority(&["localhost"], 2099));
        assert_eq!(judge(file(), &[&own], &own), None);
        assert_eq!(judge(file(), &[&other, &own], &own), None);
        let text = judge(file(), &[&other], &own).unwrap();
        assert!(
            text.contains("as `openssl req -x509` makes it, and not itself in ca.pem"),
            "{text}"
        );
        // Dates and names are checked as ever.
        let expired = own_authority(&["localhost"], 2021);
        let text = judge(file(), &[&expired], &expired).unwrap();
        assert!(text.contains("expired"), "{text}");
        let elsewhere = own_authority(&["example.org"], 2099);
        let text = judge(file(), &[&elsewhere], &elsewhere).unwrap();
        assert!(text.contains("example.org"), "{text}");
        let nowhere = own_authority(&[], 2099);
        let text = judge(file(), &[&nowhere], &nowhere).unwrap();
        assert!(text.contains("-addext subjectAltName=DNS:NAME"), "{text}");
    }

    #[test]
    fn it_is_said_what_can_be_done_about_a_certificate_that_is_not_trusted() {
        let (own, other) =
            (own_authority(&["localhost"], 2099), own_authority(&["localhost"], 2099));
        let fingerprint = certificate_fingerprint(&own);
        let shown = hex::encode(fingerprint);
        assert_eq!(judge(Trust::Fingerprint(fingerprint), &[], &own), None);
        let text = judge(Trust::Fingerprint([0; 32]), &[], &own).unwrap();
        let zeros = "00".repeat(32);
        assert!(text.contains(&format!("is {shown}, and not {zeros} as")), "{text}");
        let text = judge(Trust::System, &[&other], &own).unwrap();
        for said in [&format!("--fingerprint {shown};"), "--ca FILE", "--insecure"] {
            assert!(text.contains(said), "{text}");
        }
    }
}
