//! The keys of a TLS session that goes over to another version of QUIC within the handshake (RFC
//! 9368 section 2.3).
//!
//! rustls derives keys for the version that the session was started with. It tells a key log the secrets,
//! from which this module derives the keys of the other version. Secrets are dropped as soon as they are
//! used, or once it is known that the version stays.

use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::{CipherSuite, KeyLog};
use zeroize::Zeroizing;

use super::traffic_secret::{SuiteAlgorithms, TrafficSecret};
use super::{Keys, PacketKeys};
use crate::ids::Side;
use crate::wire::version::Version;

/// The labels of the secrets that are kept: of the client and of the server, first of the Handshake level,
/// then of the first 1-RTT key phase.
const LABELS: [&str; 4] = [
    "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
    "SERVER_HANDSHAKE_TRAFFIC_SECRET",
    "CLIENT_TRAFFIC_SECRET_0",
    "SERVER_TRAFFIC_SECRET_0",
];

/// The two encryption levels, by where their secrets are in [`LABELS`].
#[derive(Debug, Clone, Copy)]
enum Level {
    Handshake = 0,
    OneRtt = 2,
}

/// Keeps the secrets of one session, and passes everything on to the key log that is configured.
pub struct SecretLog {
    configured: Arc<dyn KeyLog>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// Whether no more secrets are wanted.
    closed: bool,
    /// Wiped from memory when they are dropped.
    secrets: [Option<Zeroizing<Vec<u8>>>; LABELS.len()],
}

impl SecretLog {
    /// Keeps secrets in addition to passing them to `configured`.
    pub fn new(configured: Arc<dyn KeyLog>) -> Self {
        Self { configured, kept: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets all secrets, and keeps none any more.
    fn close(&self) {
        *self.kept() = Kept { closed: true, ..Kept::default() };
    }

    /// The secrets of a level, of the client and of the server.
    fn take(&self, level: Level) -> Option<[Zeroizing<Vec<u8>>; 2]> {
        let mut kept = self.kept();
        let pair = kept.secrets.get_mut(level as usize..)?.first_chunk_mut::<2>()?;
        let [Some(client), Some(server)] = mem::take(pair) else { return None };
        Some([client, server])
    }

    /// How many secrets are kept.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.kept().secrets.iter().flatten().count()
    }
}

impl fmt::Debug for SecretLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretLog").finish_non_exhaustive()
    }
}

impl KeyLog for SecretLog {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        if self.configured.will_log(label) {
            self.configured.log(label, client_random, secret);
        }
        let mut kept = self.kept();
        let wanted = LABELS.iter().position(|known| *known == label).filter(|_| !kept.closed);
        if let Some(slot) = wanted.and_then(|index| kept.secrets.get_mut(index)) {
            *slot = Some(Zeroizing::new(secret.to_vec()));
        }
    }

    fn will_log(&self, label: &str) -> bool {
        (LABELS.contains(&label) && !self.kept().closed) || self.configured.will_log(label)
    }
}

/// Derives the keys of the version that a session goes over to, if it does.
pub struct Conversion {
    log: Arc<SecretLog>,
    side: Side,
    /// The version of the keys; `None` as long as the session keeps its own.
    version: Option<Version>,
    /// The secrets of the next key phase, of the client and of the server.
    next: Option<[TrafficSecret; 2]>,
}

impl Conversion {
    /// A session at `side` whose secrets are in `log`, and which goes over to `version`, or to the version
    /// that [`set_version`](Self::set_version) names.
    pub const fn new(log: Arc<SecretLog>, side: Side, version: Option<Version>) -> Self {
        Self { log, side, version, next: None }
    }

    /// Goes over to `version`.
    pub const fn set_version(&mut self, version: Version) {
        self.version = Some(version);
    }

    /// Whether the session goes over to another version. If it has not done so when it has
    /// Handshake keys, it never does.
    pub const fn is_wanted(&self) -> bool {
        self.version.is_some()
    }

    /// The keys of the Handshake level. `None` if there are no secrets, or none of this suite can be
    /// used.
    pub fn handshake_keys(&self, suite: CipherSuite) -> Option<Keys> {
        let secrets = self.take(Level::Handshake, suite)?;
        self.keys(&secrets)
    }

    /// The keys of the first 1-RTT key phase. `None` as for [`handshake_keys`](Self::handshake_keys).
    pub fn one_rtt_keys(&mut self, suite: CipherSuite) -> Option<Keys> {
        let secrets = self.take(Level::OneRtt, suite)?;
        self.log.close();
        let keys = self.keys(&secrets)?;
        self.next = following(&secrets);
        Some(keys)
    }

    /// The packet keys of the next key phase. `None` before
    /// [`one_rtt_keys`](Self::one_rtt_keys).
    pub fn next_packet_keys(&self) -> Option<PacketKeys> {
        let [local, remote] = self.local_first(self.next.as_ref()?);
        Some(PacketKeys { local: local.packet_key()?, remote: remote.packet_key()? })
    }

    /// Enters the next key phase.
    pub fn enter_next_phase(&mut self) {
        self.next = self.next.take().and_then(|secrets| following(&secrets));
    }

    fn take(&self, level: Level, suite: CipherSuite) -> Option<[TrafficSecret; 2]> {
        let (protection, version) = (SuiteAlgorithms::of(suite)?, self.version?);
        let secrets = self.log.take(level)?;
        Some(secrets.map(|secret| TrafficSecret::new(protection, version, &secret)))
    }

    fn local_first<'a>(&self, [client, server]: &'a [TrafficSecret; 2]) -> [&'a TrafficSecret; 2] {
        if self.side.is_client() { [client, server] } else { [server, client] }
    }

    fn keys(&self, secrets: &[TrafficSecret; 2]) -> Option<Keys> {
        let [local, remote] = self.local_first(secrets);
        Some(Keys { local: local.keys()?, remote: remote.keys()? })
    }
}

impl Drop for Conversion {
    fn drop(&mut self) {
        // The TLS session holds the log for longer.
        self.log.close();
    }
}

fn following([client, server]: &[TrafficSecret; 2]) -> Option<[TrafficSecret; 2]> {
    Some([client.next()?, server.next()?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::NoKeyLog;

    /// A key log that counts.
    #[derive(Debug, Default)]
    struct Counter(Mutex<usize>);

    impl KeyLog for Counter {
        fn log(&self, _: &str, _: &[u8], _: &[u8]) {
            *self.0.lock().unwrap() += 1;
        }

        fn will_log(&self, label: &str) -> bool {
            label != LABELS[0]
        }
    }

    #[test]
    fn four_secrets_are_kept_until_they_are_taken_or_not_wanted() {
        let log = SecretLog::new(Arc::new(NoKeyLog));
        assert!(!log.will_log("EXPORTER_SECRET"));
        for _ in 0..1000 {
            for label in LABELS {
                assert!(log.will_log(label));
                log.log(label, &[0; 32], label.as_bytes());
            }
            log.log("EXPORTER_SECRET", &[0; 32], &[0; 32]);
        }
        assert_eq!(log.len(), 4);
        let secrets = log.take(Level::Handshake).unwrap();
        assert_eq!(
            secrets.each_ref().map(|secret| &secret[..]),
            [LABELS[0].as_bytes(), LABELS[1].as_bytes()]
        );
        assert!(log.take(Level::Handshake).is_none());
        assert_eq!(log.len(), 2);
        let log = Arc::new(log);
        drop(Conversion::new(log.clone(), Side::Client, None));
        assert_eq!(log.len(), 0);
        assert!(!log.will_log(LABELS[0]));
        log.log(LABELS[0], &[0; 32], &[0; 32]);
        assert_eq!(log.len(), 0);
    }

    #[test]
    fn the_configured_log_gets_what_it_wants() {
        let counter = Arc::new(Counter::default());
        let log = SecretLog::new(counter.clone());
        assert!(log.will_log("EXPORTER_SECRET"));
        for label in ["EXPORTER_SECRET", LABELS[0], LABELS[3]] {
            log.log(label, &[], &[]);
        }
        log.close();
        assert!(log.will_log(LABELS[3]) && !log.will_log(LABELS[0]));
        log.log(LABELS[3], &[], &[]);
        assert_eq!(*counter.0.lock().unwrap(), 3);
    }
}
