//! The server's certificate: the user's own, or one generated on first use.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use base64::prelude::{BASE64_STANDARD, Engine};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, PublicKeyData};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use time::OffsetDateTime;
use zeroize::Zeroizing;

use crate::failure::{Exit, Failure};
use crate::file::write_private;
use crate::secrets::Secrets;

/// The names in a generated certificate.
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
/// The validity of a generated certificate: browsers reject certificates that are valid for longer.
const VALIDITY: Duration = Duration::from_secs(397 * 86_400);
/// The age at which it is replaced.
const RENEWAL: Duration = Duration::from_secs(366 * 86_400);
/// How far the clocks of clients may be behind.
const SKEW: Duration = Duration::from_secs(86_400);

/// The options that say with which certificate to serve.
#[derive(Debug, Clone, clap::Args)]
pub struct IdentityArgs {
    /// Certificate chain in PEM form
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// Private key of the certificate in PEM form
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Directory for files that are made on first use, such as the self-signed certificate [default: the
    /// user's state directory]
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
}

impl IdentityArgs {
    /// The certificate and its origin.
    ///
    /// # Errors
    /// There is none, and none can be made.
    pub fn identity(&self) -> Result<(Identity, PathBuf), Failure> {
        if let (Some(cert), Some(key)) = (&self.cert, &self.key) {
            return Ok((Identity::load(cert, key)?, cert.clone()));
        }
        Identity::keep_in(&self.state_dir()?)
    }

    /// The file of the private key, unless it is that of the certificate.
    pub fn key_file(&self) -> Option<&Path> {
        self.key.as_deref()
    }

    /// The secrets by which a server that was restarted tells clients that it has forgotten them, and
    /// resumes their sessions. `None` if they cannot be kept: clients then find out when nothing comes any
    /// more.
    pub fn secrets(&self) -> Option<Secrets> {
        Secrets::keep_in(&self.state_dir().ok()?).ok()
    }

    /// The directory for files that are made on first use.
    ///
    /// # Errors
    /// The environment does not name it.
    pub fn state_dir(&self) -> Result<PathBuf, Failure> {
        self.state_dir.clone().map_or_else(default_state_dir, Ok)
    }
}

/// A certificate chain and its key.
#[derive(Debug)]
pub struct Identity {
    pub chain: Vec<CertificateDer<'static>>,
    pub key: PrivateKeyDer<'static>,
}

impl Identity {
    /// The SHA-256 fingerprint of the server's own certificate, in hexadecimal digits.
    pub fn fingerprint(&self) -> String {
        self.chain.first().map_or_else(String::new, |certificate| {
            hex::encode(sutura::certificate_fingerprint(certificate.as_ref()))
        })
    }

    /// The SHA-256 hash of the server's public key in Base64, by which Chromium can be told to trust it;
    /// `None` if the key is of a kind that is not known here.
    pub fn public_key_hash(&self) -> Option<String> {
        let key = KeyPair::try_from(&self.key).ok()?;
        let hash = sutura::certificate_fingerprint(&key.subject_public_key_info());
        Some(BASE64_STANDARD.encode(hash))
    }

    /// What a client shows, if the user names both files.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn given(chain: Option<&Path>, key: Option<&Path>) -> Result<Option<Self>, Failure> {
        chain.zip(key).map(|(chain, key)| Self::load(chain, key)).transpose()
    }

    /// Reads a certificate chain and a key in PEM format.
    ///
    /// # Errors
    /// A file cannot be read, or does not contain any.
    pub fn load(chain: &Path, key: &Path) -> Result<Self, Failure> {
        let unusable = |path: &Path, what: &str, problem: &dyn std::fmt::Display| {
            Failure::local(format!("no {what} in {}: {problem}", path.display()))
        };
        let certificates = CertificateDer::pem_file_iter(chain)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|e| unusable(chain, "certificate", &e))?;
        if certificates.is_empty() {
            return Err(unusable(chain, "certificate", &"it holds no CERTIFICATE section"));
        }
        let key =
            PrivateKeyDer::from_pem_file(key).map_err(|e| unusable(key, "private key", &e))?;
        Ok(Self { chain: certificates, key })
    }

    /// Reads the self-signed certificate kept in `directory`; generates one if there is none, or if
    /// it is getting old.
    ///
    /// # Errors
    /// It cannot be read or written.
    pub fn keep_in(directory: &Path) -> Result<(Self, PathBuf), Failure> {
        let path = directory.join("self-signed.pem");
        if !is_fresh(&path) {
            let (certificate, key) = generate()?;
            let key = Zeroizing::new(key.serialize_pem());
            let pem = Zeroizing::new(certificate.pem() + &key);
            write_private(directory, &path, &pem)?;
        }
        Ok((Self::load(&path, &path)?, path))
    }
}

/// Parses a SHA-256 fingerprint of hexadecimal digits, with or without colons.
///
/// # Errors
/// The text is not a fingerprint; the error names the expected form.
pub fn parse_fingerprint(text: &str) -> Result<[u8; 32], &'static str> {
    let mut fingerprint = [0; 32];
    hex::decode_to_slice(text.replace(':', ""), &mut fingerprint)
        .map_err(|_| "expected a SHA-256 fingerprint: 64 hexadecimal digits")?;
    Ok(fingerprint)
}

/// The directory where programs keep this user's persistent state.
///
/// # Errors
/// The environment does not define it.
fn default_state_dir() -> Result<PathBuf, Failure> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let base = if cfg!(windows) {
        variable("LOCALAPPDATA")
    } else {
        variable("XDG_STATE_HOME").or_else(|| Some(variable("HOME")?.join(".local/state")))
    };
    base.map(|base| base.join("sutura")).ok_or_else(|| {
        Failure::local("no home directory to keep the certificate in; say --state-dir")
    })
}

fn generate() -> Result<(rcgen::Certificate, KeyPair), Failure> {
    let failure =
        |e: rcgen::Error| Failure::new(Exit::Other, format!("cannot make a certificate: {e}"));
    let mut params = CertificateParams::new(NAMES.map(String::from)).map_err(failure)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "Sutura self-signed");
    let now = SystemTime::now();
    params.not_before = OffsetDateTime::from(now - SKEW);
    params.not_after = OffsetDateTime::from(now + VALIDITY);
    let key = KeyPair::generate().map_err(failure)?;
    let certificate = params.self_signed(&key).map_err(failure)?;
    Ok((certificate, key))
}

fn is_fresh(path: &Path) -> bool {
    let modified = fs::metadata(path).and_then(|m| m.modified());
    modified.is_ok_and(|made| made.elapsed().map_or(true, |age| age < RENEWAL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_made_once_and_kept_from_others() {
        let scratch = tempfile::tempdir().unwrap();
        let state = scratch.path().join("deep/state");
        let (first, path) = Identity::keep_in(&state).unwrap();
        let (second, _) = Identity::keep_in(&state).unwrap();
        assert_eq!(first.chain, second.chain);
        assert_eq!(first.fingerprint().len(), 64);
        let (other, _) = Identity::keep_in(&scratch.path().join("other")).unwrap();
        assert_ne!(first.fingerprint(), other.fingerprint());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(fs::read_dir(&state).unwrap().count(), 1);
        assert!(Identity::load(&path, &path).is_ok());
    }

    /// The hash is the output of `openssl pkey -pubout -outform DER | openssl dgst -sha256 -binary | base64`.
    #[test]
    fn the_hash_of_the_public_key_is_that_which_chromium_takes() {
        let pem = "-----BEGIN PRIVATE KEY-----\n\
            MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgWs/iHdMh8Eit4vrS\n\
            gUpNkhZ51c1XICIqjiJvaU23gJehRANCAAT/uHLJuSxSe+DIPLibgQKq6OLYkE46\n\
            bBpVlwhBNvmwu6Bwap2875nBZfpCZOl8dZ//RILfnbkbidH+wUMtZL1N\n\
            -----END PRIVATE KEY-----\n";
        let key = PrivateKeyDer::from_pem_slice(pem.as_bytes()).unwrap();
        let identity = Identity { chain: Vec::new(), key };
        let expected = "L1Ya1aRZPZIjWQQQdqcLH7/gnJ/mduENCzSF2Hmrw+8=";
        assert_eq!(identity.public_key_hash().as_deref(), Some(expected));
    }

    #[test]
    fn files_without_certificate_or_key_are_failures_that_name_them() {
        let scratch = tempfile::tempdir().unwrap();
        let empty = scratch.path().join("empty.pem");
        fs::write(&empty, "nothing").unwrap();
        let missing = scratch.path().join("missing.pem");
        for path in [&empty, &missing] {
            let failure = Identity::load(path, path).unwrap_err();
            assert_eq!(failure.exit, Exit::Local);
            assert!(failure.message.contains(&path.display().to_string()), "{}", failure.message);
        }
    }

    #[test]
    fn fingerprints_are_read_with_and_without_colons() {
        let fingerprint: [u8; 32] = std::array::from_fn(|i| (i * 7) as u8);
        let text = hex::encode(fingerprint);
        assert_eq!(parse_fingerprint(&text), Ok(fingerprint));
        let pairs = fingerprint.map(|b| format!("{b:02X}"));
        assert_eq!(parse_fingerprint(&pairs.join(":")), Ok(fingerprint));
        for text in ["", "abc", &text[1..], &format!("{text}0"), &text.replace('0', "x")] {
            assert!(parse_fingerprint(text).is_err());
        }
    }
}
