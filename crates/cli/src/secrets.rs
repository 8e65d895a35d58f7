//! The secrets from which servers derive the keys of stateless resets and of session tickets. They are
//! kept beside the certificate, so that a restarted server can be told from another, and are replaced every
//! month.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustls::crypto::ring::default_provider;
use sutura::{ResetKey, TicketKey};
use zeroize::Zeroizing;

use crate::failure::{Exit, Failure};
use crate::file::write_private;
use crate::output;

/// After how long a new secret is made.
const LIFETIME: Duration = Duration::from_secs(30 * 86_400);
/// How often a server looks whether there is a new one.
const INTERVAL: Duration = Duration::from_secs(3600);
/// Secrets that are kept, the newest and previous ones: connections of a server that has run for some months
/// may still be reset once it was restarted.
const MAX_SECRETS: usize = 4;

type Secret = Zeroizing<[u8; 32]>;

/// The secrets of one server, or of several that share a directory.
#[derive(Debug)]
pub struct Secrets {
    path: PathBuf,
    /// The newest first; at least one.
    newest: Secret,
    older: Vec<Secret>,
}

impl Secrets {
    /// The secrets kept in `directory`. Makes one if there is none of use, or if the newest is too old.
    ///
    /// # Errors
    /// A new one cannot be made or written.
    pub fn keep_in(directory: &Path) -> Result<Self, Failure> {
        let path = directory.join("reset-secret");
        let mut kept = read(&path);
        if !kept.is_empty() && is_fresh(&path) {
            let newest = kept.remove(0);
            return Ok(Self { path, newest, older: kept });
        }
        kept.truncate(MAX_SECRETS - 1);
        let made = Self { path, newest: Secret::new(random()?), older: kept };
        write_private(directory, &made.path, &made.text())?;
        Ok(made)
    }

    /// The secrets in hexadecimal digits, one on each line.
    fn text(&self) -> Zeroizing<String> {
        let all = std::iter::once(&self.newest).chain(&self.older);
        let mut text = Zeroizing::new(String::with_capacity(65 * MAX_SECRETS));
        for secret in all {
            text.push_str(&Zeroizing::new(hex::encode(**secret)));
            text.push('\n');
        }
        text
    }

    /// The key of stateless resets of the server with this `context`, such as its address.
    pub fn reset_key(&self, context: &[u8]) -> ResetKey {
        let key = |secret: &Secret| ResetKey::new(&**secret, context);
        self.older.iter().fold(key(&self.newest), |all, older| all.with_previous(&key(older)))
    }

    /// The key of session tickets.
    pub fn ticket_key(&self) -> TicketKey {
        let key = TicketKey::new(&*self.newest);
        self.older.iter().fold(key, |key, older| key.with_previous(&**older))
    }

    /// Makes tickets with the newest secret as long as the server runs. Stateless resets keep using the first
    /// secret, because the tokens that clients hold are derived from it.
    pub async fn renew(mut self, tickets: TicketKey) {
        loop {
            tokio::time::sleep(INTERVAL).await;
            if let Err(failure) = self.look(&tickets) {
                output::complain(&format!("session tickets keep their key: {}", failure.message));
            }
        }
    }

    /// Goes over to a new secret if another server has made one, or if the newest is old enough to be
    /// replaced.
    fn look(&mut self, tickets: &TicketKey) -> Result<(), Failure> {
        let Some(directory) = self.path.parent() else { return Ok(()) };
        let now = Self::keep_in(directory)?;
        if now.newest != self.newest {
            tickets.replace(&*now.newest);
            *self = now;
        }
        Ok(())
    }
}

/// The secrets in a file, the newest first; none if one of them is damaged.
fn read(path: &Path) -> Vec<Secret> {
    let text = Zeroizing::new(fs::read_to_string(path).unwrap_or_default());
    let secrets = text.lines().take(MAX_SECRETS).map(|line| {
        let mut secret = Secret::default();
        hex::decode_to_slice(line.trim(), &mut *secret).map(|()| secret)
    });
    secrets.collect::<Result<_, _>>().unwrap_or_default()
}

/// Whether the file was written a short time ago, or cannot say when.
fn is_fresh(path: &Path) -> bool {
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
    modified.map_or(true, |made| made.elapsed().map_or(true, |age| age < LIFETIME))
}

/// Bytes that nobody can guess.
///
/// # Errors
/// The system has none.
pub fn random<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    default_provider()
        .secure_random
        .fill(&mut bytes)
        .map_err(|_| Failure::new(Exit::Other, "the system has no random numbers"))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::time::SystemTime;

    /// Makes the file look as if it had been written a month ago.
    fn age(directory: &Path) {
        let file = File::options().append(true).open(directory.join("reset-secret")).unwrap();
        file.set_modified(SystemTime::now() - LIFETIME).unwrap();
    }

    #[test]
    fn a_secret_is_made_once_and_kept_from_others() {
        let scratch = tempfile::tempdir().unwrap();
        let first = Secrets::keep_in(scratch.path()).unwrap();
        let again = Secrets::keep_in(scratch.path()).unwrap();
        assert_eq!(first.newest, again.newest);
        assert!(first.older.is_empty() && again.older.is_empty());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&first.path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        fs::write(&first.path, "cut sho").unwrap();
        let other = Secrets::keep_in(scratch.path()).unwrap();
        assert!(other.newest != first.newest && *other.newest != [0; 32]);
    }

    #[test]
    fn a_secret_is_replaced_after_a_month_and_remembered() {
        let scratch = tempfile::tempdir().unwrap();
        let mut made = Vec::new();
        for _ in 0..2 * MAX_SECRETS {
            let secrets = Secrets::keep_in(scratch.path()).unwrap();
            made.insert(0, secrets.newest.clone());
            made.truncate(MAX_SECRETS);
            assert_eq!(secrets.older, made[1..]);
            let read = Secrets::keep_in(scratch.path()).unwrap();
            assert_eq!((read.newest, read.older), (secrets.newest, secrets.older));
            age(scratch.path());
        }
    }

    #[test]
    fn a_server_that_runs_makes_tickets_with_the_new_secret() {
        use rustls::server::ProducesTickets;
        let scratch = tempfile::tempdir().unwrap();
        let mut secrets = Secrets::keep_in(scratch.path()).unwrap();
        let (tickets, first) = (secrets.ticket_key(), secrets.newest.clone());
        let old = tickets.encrypt(b"session").unwrap();
        secrets.look(&tickets).unwrap();
        assert_eq!(secrets.newest, first);
        age(scratch.path());
        secrets.look(&tickets).unwrap();
        assert_ne!(secrets.newest, first);
        let new = tickets.encrypt(b"session").unwrap();
        assert!(TicketKey::new(&*first).decrypt(&new).is_none());
        assert!(tickets.decrypt(&old).is_some() && tickets.decrypt(&new).is_some());
        // Another process of the same directory.
        let restarted = Secrets::keep_in(scratch.path()).unwrap().ticket_key();
        assert!(restarted.decrypt(&old).is_some() && restarted.decrypt(&new).is_some());
    }
}
