//! With what the bridge logs in to the RFB server, and which RFB servers it trusts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use des::Des;
use des::cipher::{BlockCipherEncrypt, KeyInit};
use sutura_vnc::rfb::Login;
use zeroize::Zeroizing;

use crate::cert::parse_fingerprint;
use crate::failure::Failure;
use crate::trust::Trust;

/// The options that say how to log in to the RFB server.
#[derive(Debug, clap::Args)]
pub struct LoginArgs {
    /// Log in to the RFB server as this user, with the password of --server-password-file
    #[arg(long, value_name = "NAME", requires = "server_password_file")]
    server_user: Option<String>,
    /// Give the RFB server the password in this file, rather than have the viewer ask for it
    #[arg(long, value_name = "FILE")]
    server_password_file: Option<PathBuf>,
    /// Go on with an RFB server only over TLS, and trust only the certificate with this SHA-256 fingerprint
    #[arg(long, value_name = "SHA256", value_parser = parse_fingerprint)]
    #[arg(conflicts_with_all = ["server_ca", "server_insecure"])]
    server_fingerprint: Option<[u8; 32]>,
    /// Go on with an RFB server only over TLS, and trust only certificates that are in this PEM file, or lead to
    /// one in it
    #[arg(long, value_name = "FILE", conflicts_with = "server_insecure")]
    server_ca: Option<PathBuf>,
    /// Go on with an RFB server only over TLS, and trust any certificate
    #[arg(long)]
    server_insecure: bool,
}

/// With what to log in.
#[derive(Debug)]
pub struct ServerLogin {
    user: Option<String>,
    password: Option<Zeroizing<Vec<u8>>>,
    /// `None` as long as nobody said which servers to trust: then TLS is not insisted on.
    named: Option<Arc<rustls::ClientConfig>>,
}

impl LoginArgs {
    /// Reads the password and the certificates.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn login(&self) -> Result<ServerLogin, Failure> {
        let password = self.server_password_file.as_deref().map(read).transpose()?;
        let trust = match (self.server_fingerprint, &self.server_ca) {
            (Some(fingerprint), _) => Some(Trust::Fingerprint(fingerprint)),
            (None, Some(path)) => Some(Trust::File(path.clone())),
            (None, None) => self.server_insecure.then_some(Trust::Everybody),
        };
        let named = trust.map(|trust| trust.tls_config(PREFIX)).transpose()?.map(Arc::new);
        Ok(ServerLogin { user: self.server_user.clone(), password, named })
    }
}

/// How the options begin that say whom to trust.
const PREFIX: &str = "--server-";

/// The password in a file, which may end its line.
fn read(file: &Path) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let unusable = |why: &dyn std::fmt::Display| {
        Failure::local(format!("no password in {}: {why}", file.display()))
    };
    let bytes = Zeroizing::new(std::fs::read(file).map_err(|e| unusable(&e))?);
    let line = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let password = line.strip_suffix(b"\r").unwrap_or(line);
    if password.is_empty() {
        return Err(unusable(&"its first line is empty"));
    }
    Ok(Zeroizing::new(password.to_vec()))
}

impl ServerLogin {
    /// What the handshake needs to know. A server that is `here`, on this machine, may be sent a user's password
    /// without TLS.
    pub fn policy(&self, here: bool) -> Login {
        let user = self.user.is_some() && self.password.is_some();
        Login { user, only_tls: self.named.is_some(), user_in_clear: here }
    }

    /// The answer to a server's challenge, if there is a password here.
    pub fn answer(&self, challenge: [u8; 16]) -> Option<[u8; 16]> {
        self.password.as_ref().map(|password| respond(password, challenge))
    }

    /// The name and the password of a user.
    pub fn user(&self) -> Option<(&str, &[u8])> {
        Some((self.user.as_deref()?, self.password.as_deref()?))
    }

    /// The configuration of TLS: servers that the system trusts, unless others were named.
    ///
    /// # Errors
    /// The system trusts nobody.
    pub fn tls(&self) -> Result<Arc<rustls::ClientConfig>, Failure> {
        match &self.named {
            Some(config) => Ok(config.clone()),
            None => Trust::System.tls_config(PREFIX).map(Arc::new),
        }
    }
}

/// Encrypts a challenge with a password (RFC 6143, section 7.2.2): DES with the first eight bytes, whose bits are
/// in reverse order (erratum 4951).
fn respond(password: &[u8], mut challenge: [u8; 16]) -> [u8; 16] {
    let mut key = Zeroizing::new([0; 8]);
    key.iter_mut().zip(password).for_each(|(key, byte)| *key = byte.reverse_bits());
    let cipher = Des::new(&(*key).into());
    let (blocks, _) = challenge.as_chunks_mut::<8>();
    blocks.iter_mut().for_each(|block| cipher.encrypt_block(block.into()));
    challenge
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hexes<const N: usize>(text: &str) -> [u8; N] {
        let mut bytes = [0; N];
        hex::decode_to_slice(text, &mut bytes).unwrap();
        bytes
    }

    /// Made by `openssl enc -des-ecb -nopad -K`, with the key's bits in reverse order.
    #[test]
    fn a_challenge_is_encrypted_with_the_first_eight_bytes_of_the_password() {
        let challenge = std::array::from_fn(|n| n as u8);
        let expected = hexes("ee22539f33a5983ec12f9c2edbc995dd");
        assert_eq!(respond(b"secret", challenge), expected);
        let expected = hexes("b866924125c8eebb9debc1db61c538e2");
        assert_eq!(respond(b"password", challenge), expected);
        assert_eq!(respond(b"password that goes on", challenge), expected);
    }

    #[test]
    fn a_password_is_the_first_line_of_its_file() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("password");
        for (text, expected) in [("a b ", "a b "), ("secret\n", "secret"), ("x\r\nmore\n", "x")] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(&read(&path).unwrap()[..], expected.as_bytes());
        }
        std::fs::write(&path, "\nsecret").unwrap();
        assert!(read(&path).unwrap_err().message.contains("first line is empty"));
        assert!(read(&scratch.path().join("none")).is_err());
    }
}
