//! Lets clients in that show a token or a certificate.

use std::net::IpAddr;
use std::sync::Arc;

use sutura::{Connection, certificate_fingerprint};
use sutura_tunnel::server::{Admission, Gate, Identity};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use super::tokens::Tokens;
use crate::doors::Pass;
use crate::guesses::Guesses;

/// How a token is shown (RFC 6750 section 2.1).
const SCHEME: &str = "bearer ";
/// Characters of a fingerprint by which a certificate is called.
const NAME_LENGTH: usize = 16;

/// Who may use the proxy.
#[derive(Debug, Default)]
pub struct Keys {
    /// None if a certificate is enough.
    pub tokens: Tokens,
    pub guesses: Guesses,
}

/// The gate for one connection.
#[derive(Debug)]
pub struct Turnstile {
    keys: Arc<Keys>,
    pass: Arc<Pass>,
    address: IpAddr,
    /// Who it is by its certificate, which counts if there are no tokens.
    certified: Option<Identity>,
    admitted: Notify,
}

impl Turnstile {
    pub fn new(keys: Arc<Keys>, pass: Arc<Pass>, connection: &Connection) -> Self {
        let certificates = connection.peer_certificates().unwrap_or_default();
        let certified = certificates.first().map(|certificate| {
            let mut name = hex::encode(certificate_fingerprint(certificate));
            name.truncate(NAME_LENGTH);
            Identity(format!("certificate {name}").into())
        });
        let address = connection.remote_address().ip();
        Self { keys, pass, address, certified, admitted: Notify::new() }
    }

    /// Waits until the client was let in once.
    pub async fn admitted(&self) {
        self.admitted.notified().await;
    }

    async fn judge(&self, shown: Option<&[u8]>) -> Option<Identity> {
        if self.keys.tokens.is_empty() {
            return self.certified.clone();
        }
        let text = shown.and_then(|shown| std::str::from_utf8(shown).ok());
        let token = text.and_then(|text| {
            let (scheme, token) = text.split_at_checked(SCHEME.len())?;
            scheme.eq_ignore_ascii_case(SCHEME).then_some(token.trim())
        });
        let token = token?;
        let wait = self.keys.guesses.queue(self.address, Instant::now())?;
        if !wait.is_zero() {
            sleep(wait).await;
        }
        let found = self.keys.tokens.find(token);
        if found.is_none() {
            self.keys.guesses.wrong(self.address, Instant::now());
        }
        found
    }
}

impl Gate for Turnstile {
    fn admit<'a>(&'a self, shown: Option<&'a [u8]>) -> Admission<'a> {
        Box::pin(async move {
            let identity = self.judge(shown).await?;
            self.pass.stay();
            self.admitted.notify_one();
            Some(identity)
        })
    }
}
