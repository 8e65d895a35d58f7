//! Session tickets that need no storage, so that clients can resume their sessions with a server that
//! was started again.
//!
//! A ticket is `period | salt | AEAD(session)`. Each is sealed with a key of its own, derived from the
//! server's secret, the period in which it was made, and the salt.

use primitives::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use primitives::hkdf::{HKDF_SHA256, Prk};
use primitives::hmac;
use primitives::rand::{SecureRandom, SystemRandom};
use rustls::server::ProducesTickets;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, SystemTime};

/// How long a key makes tickets. It opens them for as long again, so that each ticket can be used for this
/// long.
const PERIOD: Duration = Duration::from_secs(12 * 3600);

const PERIOD_LEN: usize = 8;
const SALT_LEN: usize = 16;

/// A secret from which a server derives the keys of session tickets, a new one every 12 hours. Servers
/// with the same secret resume each other's sessions, as does a server that is started again.
///
/// An attacker who learns the secret can pass for the server to clients that hold a ticket of the last 24
/// hours, but cannot read the connections: each has fresh keys (RFC 8446 section 2.2). These tickets can be
/// used more than once, so they are never good for 0-RTT.
///
/// The secret should be replaced from time to time, which [`replace`](Self::replace) does for all clones.
#[derive(Clone)]
pub struct TicketKey(Arc<RwLock<Secrets>>);

struct Secrets {
    current: hmac::Key,
    /// The previous secrets, with the last period in which each made tickets.
    previous: Vec<(hmac::Key, u64)>,
}

impl TicketKey {
    /// Derives the key from `secret`, at least 32 unpredictable bytes, which may serve other purposes,
    /// too.
    #[must_use]
    pub fn new(secret: &[u8]) -> Self {
        Self(Arc::new(RwLock::new(Secrets { current: of_tickets(secret), previous: Vec::new() })))
    }

    /// Also opens the tickets that were made with the secret `previous` until now, for as long as they
    /// were meant to be used.
    #[must_use]
    pub fn with_previous(self, previous: &[u8]) -> Self {
        self.write().previous.extend(period().map(|now| (of_tickets(previous), now)));
        self
    }

    /// Makes tickets with `secret` from now on, and opens earlier tickets for as long as they were meant to
    /// be used.
    pub fn replace(&self, secret: &[u8]) {
        if let Some(now) = period() {
            self.write().replace(now, secret);
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Secrets> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Secrets> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn of_tickets(secret: &[u8]) -> hmac::Key {
    let secret = hmac::Key::new(hmac::HMAC_SHA256, secret);
    let derived = hmac::sign(&secret, b"session tickets");
    hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref())
}

/// The key of one ticket.
fn derive(secret: &hmac::Key, period: u64, salt: &[u8; SALT_LEN]) -> Option<LessSafeKey> {
    let of_period = hmac::sign(secret, &period.to_be_bytes());
    let prk = Prk::new_less_safe(HKDF_SHA256, of_period.as_ref());
    let info = [&salt[..]];
    let key = prk.expand(&info, &AES_256_GCM).ok()?;
    Some(LessSafeKey::new(UnboundKey::from(key)))
}

/// Whether a ticket of `period` can be used `now`: in the same period and the next.
fn is_good(period: u64, now: u64) -> bool {
    period == now || period.checked_add(1) == Some(now)
}

impl Secrets {
    fn replace(&mut self, now: u64, secret: &[u8]) {
        let old = std::mem::replace(&mut self.current, of_tickets(secret));
        self.previous.retain(|(_, last)| is_good(*last, now));
        self.previous.push((old, now));
    }

    fn seal(&self, period: u64, salt: [u8; SALT_LEN], session: &[u8]) -> Option<Vec<u8>> {
        let mut sealed = session.to_vec();
        let key = derive(&self.current, period, &salt)?;
        key.seal_in_place_append_tag(nonce(), Aad::empty(), &mut sealed).ok()?;
        Some([&period.to_be_bytes()[..], &salt, &sealed].concat())
    }

    /// Opens a ticket of this period or the previous one.
    fn open(&self, now: u64, ticket: &[u8]) -> Option<Vec<u8>> {
        let (period, rest) = ticket.split_first_chunk::<PERIOD_LEN>()?;
        let (salt, sealed) = rest.split_first_chunk::<SALT_LEN>()?;
        let period = u64::from_be_bytes(*period);
        if !is_good(period, now) {
            return None;
        }
        let previous = self.previous.iter().rev().filter(|(_, last)| period <= *last);
        let secrets = std::iter::once(&self.current).chain(previous.map(|(secret, _)| secret));
        let opened = |secret: &hmac::Key| {
            let mut sealed = sealed.to_vec();
            let key = derive(secret, period, salt)?;
            let session = key.open_in_place(nonce(), Aad::empty(), &mut sealed).ok()?;
            Some(session.to_vec())
        };
        secrets.into_iter().find_map(opened)
    }
}

impl std::fmt::Debug for TicketKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TicketKey(..)")
    }
}

/// Each key seals one ticket.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; NONCE_LEN])
}

/// The number of the present period.
fn period() -> Option<u64> {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
    since_epoch.as_secs().checked_div(PERIOD.as_secs())
}

impl ProducesTickets for TicketKey {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        u32::try_from(PERIOD.as_secs()).unwrap_or(u32::MAX)
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let mut salt = [0; SALT_LEN];
        SystemRandom::new().fill(&mut salt).ok()?;
        self.read().seal(period()?, salt, plain)
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.read().open(period()?, cipher)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: &[u8] = b"what the server wants to know again";

    #[test]
    fn tickets_serve_their_time_with_servers_of_the_same_secret() {
        let ticket = secrets(7).seal(100, [1; SALT_LEN], SESSION).unwrap();
        let restarted = secrets(7);
        for (now, good) in [(99, false), (100, true), (101, true), (102, false), (0, false)] {
            assert_eq!(restarted.open(now, &ticket).is_some(), good, "{now}");
        }
        assert_eq!(restarted.open(101, &ticket).unwrap(), SESSION);
        assert_eq!(secrets(8).open(100, &ticket), None);
        let restarted = TicketKey::new(&[7; 32]);
        assert_eq!(restarted.decrypt(&restarted.encrypt(SESSION).unwrap()).unwrap(), SESSION);
        assert_ne!(restarted.encrypt(SESSION), restarted.encrypt(SESSION));
    }

    fn secrets(n: u8) -> Secrets {
        Secrets { current: of_tickets(&[n; 32]), previous: Vec::new() }
    }

    #[test]
    fn tickets_of_a_secret_that_was_replaced_serve_their_time() {
        let mut key = secrets(7);
        let ticket = key.seal(100, [1; SALT_LEN], SESSION).unwrap();
        key.replace(100, &[8; 32]);
        let newer = key.seal(100, [2; SALT_LEN], SESSION).unwrap();
        assert_eq!(secrets(7).open(100, &newer), None);
        for (now, good) in [(100, true), (101, true), (102, false)] {
            assert_eq!(key.open(now, &ticket).is_some(), good, "{now}");
            assert_eq!(key.open(now, &newer).is_some(), good, "{now}");
        }
        // An attacker who has the old secret makes no tickets any more.
        let forged = secrets(7).seal(101, [1; SALT_LEN], SESSION).unwrap();
        assert_eq!(key.open(101, &forged), None);
        for n in 101..200 {
            key.replace(u64::from(n), &[n; 32]);
            assert!(key.previous.len() <= 2, "{n}");
        }
    }

    #[test]
    fn all_clones_of_a_key_are_replaced_together() {
        let key = TicketKey::new(&[7; 32]);
        let old = key.encrypt(SESSION).unwrap();
        key.clone().replace(&[8; 32]);
        let new = key.encrypt(SESSION).unwrap();
        let opens = |key: &TicketKey, ticket: &[u8]| key.decrypt(ticket).is_some();
        assert!(opens(&key, &old) && opens(&key, &new));
        assert!(!opens(&TicketKey::new(&[7; 32]), &new));
        let restarted = TicketKey::new(&[8; 32]);
        assert!(opens(&restarted, &new) && !opens(&restarted, &old));
        assert!(opens(&restarted.with_previous(&[7; 32]), &old));
    }

    #[test]
    fn what_is_forged_is_not_opened() {
        let key = secrets(7);
        let ticket = key.seal(100, [1; SALT_LEN], SESSION).unwrap();
        for at in 0..ticket.len() {
            let mut forged = ticket.clone();
            forged[at] ^= 1;
            assert_eq!(key.open(100, &forged), None, "byte {at}");
            assert_eq!(key.open(101, &forged), None, "byte {at}");
            assert_eq!(key.open(100, &ticket[..at]), None, "cut to {at}");
        }
        let last = key.seal(u64::MAX, [1; SALT_LEN], SESSION).unwrap();
        assert_eq!(key.open(0, &last), None);
    }
}
