//! The certificate of a server, which is read again when its file changes: connections that are open go on,
//! and new ones get the new certificate.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use rustls::SupportedProtocolVersion;
use rustls::crypto::ring::default_provider;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use sutura::ServerConfig;

use super::tcp::PROTOCOLS;
use crate::cert::{Identity, IdentityArgs};
use crate::failure::Failure;
use crate::keylog;
use crate::output;

/// How often the files are looked at.
const INTERVAL: Duration = Duration::from_secs(30);

/// A certificate with its key, and where it comes from.
#[derive(Debug)]
pub struct Certificates {
    args: IdentityArgs,
    current: RwLock<Current>,
}

#[derive(Debug, Clone)]
struct Current {
    key: Arc<CertifiedKey>,
    facts: Facts,
    stamp: Stamp,
}

/// What is told of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The file that it is from.
    pub origin: PathBuf,
    pub fingerprint: String,
    /// See [`Identity::public_key_hash`].
    pub public_key: Option<String>,
}

/// By which a change of files is noticed: when they were changed, and their lengths.
type Stamp = Vec<Option<(SystemTime, u64)>>;

impl Certificates {
    /// The certificate that the options name.
    ///
    /// # Errors
    /// There is none, or its key is that of another.
    pub fn new(args: &IdentityArgs) -> Result<Arc<Self>, Failure> {
        let current = RwLock::new(load(args)?);
        Ok(Arc::new(Self { args: args.clone(), current }))
    }

    /// What there is to tell of the certificate.
    pub fn facts(&self) -> Facts {
        self.current().facts
    }

    fn current(&self) -> Current {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the files again. Returns the new facts, unless the certificate is the old one.
    ///
    /// # Errors
    /// As for [`new`](Self::new); then the old certificate is used further.
    pub fn reload(&self) -> Result<Option<Facts>, Failure> {
        let new = load(&self.args)?;
        let facts = new.facts.clone();
        let is_new = facts != self.facts();
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(is_new.then_some(facts))
    }

    /// Reads the files again whenever they change. A file that is only half there, or whose key has not
    /// followed yet, is read at the next change.
    pub async fn watch(self: Arc<Self>) {
        let mut seen = self.current().stamp;
        loop {
            tokio::time::sleep(INTERVAL).await;
            let now = stamp(&self.args, &self.facts().origin);
            if now != seen {
                self.reload_and_tell();
                seen = now;
            }
        }
    }

    /// Reads the files again, and tells what came of it.
    pub fn reload_and_tell(&self) {
        match self.reload() {
            Ok(Some(facts)) => {
                let (origin, fingerprint) = (facts.origin.display(), facts.fingerprint);
                output::note(&format!(
                    "certificate {origin} read again: fingerprint {fingerprint}"
                ));
            }
            Ok(None) => {}
            Err(failure) => {
                output::complain(&format!("the old certificate is kept: {}", failure.message));
            }
        }
    }

    /// The TLS configurations for QUIC and for TCP.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn configs(self: &Arc<Self>) -> Result<(ServerConfig, rustls::ServerConfig), Failure> {
        let unusable =
            |e: &dyn std::fmt::Display| Failure::local(format!("TLS cannot be used: {e}"));
        let config = |versions: &[&'static SupportedProtocolVersion], protocols: &[&[u8]]| {
            let config = rustls::ServerConfig::builder_with_provider(default_provider().into())
                .with_protocol_versions(versions)
                .map_err(|e| unusable(&e))?;
            let mut config = config.with_no_client_auth().with_cert_resolver(self.clone());
            config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
            Ok::<_, Failure>(config)
        };
        let quic = config(&[&rustls::version::TLS13], &[sutura::http::ALPN])?;
        let quic = ServerConfig::with_tls(quic).map_err(|e| unusable(&e))?;
        let mut tls = config(rustls::DEFAULT_VERSIONS, &PROTOCOLS)?;
        if let Some(log) = keylog::key_log()? {
            tls.key_log = log;
        }
        Ok((keylog::server(quic)?, tls))
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current().key)
    }
}

fn load(args: &IdentityArgs) -> Result<Current, Failure> {
    let (identity, origin) = args.identity()?;
    // Taken before: what changes meanwhile is noticed the next time.
    let stamp = stamp(args, &origin);
    let facts = Facts {
        fingerprint: identity.fingerprint(),
        public_key: identity.public_key_hash(),
        origin,
    };
    let Identity { chain, key } = identity;
    let key = CertifiedKey::from_der(chain, key, &default_provider())
        .map_err(|e| Failure::local(format!("certificate and key cannot be used: {e}")))?;
    Ok(Current { key: key.into(), facts, stamp })
}

fn stamp(args: &IdentityArgs, origin: &Path) -> Stamp {
    let of = |path: &Path| {
        let metadata = fs::metadata(path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    };
    [Some(origin), args.key_file()].into_iter().flatten().map(of).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    #[derive(Parser)]
    struct Args {
        #[command(flatten)]
        identity: IdentityArgs,
    }

    fn write_new(directory: &Path) -> (PathBuf, PathBuf) {
        let key = KeyPair::generate().unwrap();
        let certificate =
            CertificateParams::new(["a".to_owned()]).unwrap().self_signed(&key).unwrap();
        let (cert, key_file) = (directory.join("cert.pem"), directory.join("key.pem"));
        fs::write(&cert, certificate.pem()).unwrap();
        fs::write(&key_file, key.serialize_pem()).unwrap();
        (cert, key_file)
    }

    fn certificates(directory: &Path) -> Arc<Certificates> {
        let (cert, key) = write_new(directory);
        let [cert, key] = [cert, key].map(|path| path.to_str().unwrap().to_owned());
        let args = Args::parse_from(["x", "--cert", &cert, "--key", &key]);
        Certificates::new(&args.identity).unwrap()
    }

    #[test]
    fn a_certificate_is_read_again_and_the_old_one_is_kept_if_that_fails() {
        let scratch = tempfile::tempdir().unwrap();
        let all = certificates(scratch.path());
        let first = all.facts();
        assert_eq!(all.reload(), Ok(None));
        write_new(scratch.path());
        let second = all.reload().unwrap().unwrap();
        assert_ne!(first.fingerprint, second.fingerprint);
        assert_eq!(all.facts(), second);
        // The key of another certificate.
        let other = tempfile::tempdir().unwrap();
        let (_, key) = write_new(other.path());
        fs::copy(key, scratch.path().join("key.pem")).unwrap();
        let failure = all.reload().unwrap_err();
        assert!(failure.message.contains("certificate and key"), "{}", failure.message);
        assert_eq!(all.facts(), second);
    }

    #[tokio::test(start_paused = true)]
    async fn a_changed_file_is_noticed() {
        let scratch = tempfile::tempdir().unwrap();
        let all = certificates(scratch.path());
        let first = all.facts();
        let watching = tokio::spawn(all.clone().watch());
        tokio::time::sleep(3 * INTERVAL).await;
        assert_eq!(all.facts(), first);
        let (cert, _) = write_new(scratch.path());
        // As long before that no clock is too coarse.
        let earlier = fs::File::options().write(true).open(cert).unwrap();
        earlier.set_modified(SystemTime::now() - Duration::from_secs(3600)).unwrap();
        tokio::time::sleep(2 * INTERVAL).await;
        assert_ne!(all.facts(), first);
        watching.abort();
    }
}
