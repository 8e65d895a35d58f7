//! Sessions that can be resumed with 0-RTT.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::wire::version::Version;

/// Sessions that an end remembers; the oldest are forgotten first.
const MAX_SESSIONS: usize = 256;

/// A session that both ends remember.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Remembered {
    /// The number by which the client refers to it.
    pub ticket: u64,
    /// The version of QUIC that it is good for (RFC 9369 section 5).
    pub version: Version,
    pub server_name: Option<String>,
    pub protocol: Vec<u8>,
    /// The server's encoded transport parameters.
    pub parameters: Vec<u8>,
}

/// The sessions that an end remembers.
#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<VecDeque<Remembered>>);

impl Sessions {
    /// Adds a session.
    pub fn put(&self, session: Remembered) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() == MAX_SESSIONS {
            all.pop_front();
        }
        all.push_back(session);
    }

    /// Takes the newest session that is wanted. It cannot be taken again.
    pub fn take(&self, is_wanted: impl Fn(&Remembered) -> bool) -> Option<Remembered> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let index = all.iter().rposition(is_wanted)?;
        all.remove(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_bounded_and_taken_once() {
        let sessions = Sessions::default();
        for ticket in 0..2 * MAX_SESSIONS as u64 {
            let (server_name, protocol, parameters) = (None, Vec::new(), Vec::new());
            let version = Version::V1;
            sessions.put(Remembered { ticket, version, server_name, protocol, parameters });
        }
        assert_eq!(sessions.0.lock().unwrap().len(), MAX_SESSIONS);
        assert!(sessions.take(|session| session.ticket == 0).is_none(), "forgotten");
        assert_eq!(sessions.take(|_| true).unwrap().ticket, 2 * MAX_SESSIONS as u64 - 1);
        assert!(sessions.take(|session| session.ticket == 2 * MAX_SESSIONS as u64 - 1).is_none());
    }
}
