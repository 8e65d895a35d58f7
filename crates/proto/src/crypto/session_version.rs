//! Sessions are good for one version of QUIC (RFC 9369 section 5): a client must not offer a ticket in
//! another version than the one in which it got the ticket, and a server does not recognise tickets of other
//! versions.

use std::sync::Arc;

use rustls::server::{ProducesTickets, StoresServerSessions};

use crate::wire::version::Version;

/// A value for each version.
#[derive(Debug, Clone)]
pub struct ByVersion<T> {
    v1: T,
    v2: T,
}

impl<T> ByVersion<T> {
    /// The values that `make` returns for each version.
    pub fn new(mut make: impl FnMut(Version) -> T) -> Self {
        Self { v1: make(Version::V1), v2: make(Version::V2) }
    }

    /// The value of a version.
    pub const fn get(&self, version: Version) -> &T {
        match version {
            Version::V1 => &self.v1,
            Version::V2 => &self.v2,
        }
    }

    /// The value of a version, to be changed.
    pub const fn get_mut(&mut self, version: Version) -> &mut T {
        match version {
            Version::V1 => &mut self.v1,
            Version::V2 => &mut self.v2,
        }
    }
}

/// The part of a server's tickets or stored sessions that belongs to one version.
#[derive(Debug)]
pub struct OfVersion<T: ?Sized> {
    version: Version,
    all: Arc<T>,
}

impl<T: ?Sized> OfVersion<T> {
    /// The tickets or sessions in `all` that belong to `version`.
    pub const fn new(version: Version, all: Arc<T>) -> Self {
        Self { version, all }
    }

    /// `bytes` with the version's number in front.
    fn marked(&self, bytes: &[u8]) -> Vec<u8> {
        [&self.version.number().to_be_bytes(), bytes].concat()
    }
}

/// The version's number is sealed with the session.
impl ProducesTickets for OfVersion<dyn ProducesTickets> {
    fn enabled(&self) -> bool {
        self.all.enabled()
    }

    fn lifetime(&self) -> u32 {
        self.all.lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.all.encrypt(&self.marked(plain))
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        let opened = self.all.decrypt(cipher)?;
        let (number, plain) = opened.split_first_chunk()?;
        (u32::from_be_bytes(*number) == self.version.number()).then(|| plain.to_vec())
    }
}

/// The version's number is part of the key.
impl StoresServerSessions for OfVersion<dyn StoresServerSessions> {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.all.put(self.marked(&key), value)
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.all.get(&self.marked(key))
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.all.take(&self.marked(key))
    }

    fn can_cache(&self) -> bool {
        self.all.can_cache()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::server::ServerSessionMemoryCache;

    /// "Encrypts" by reversing.
    #[derive(Debug)]
    struct Reversing;

    impl ProducesTickets for Reversing {
        fn enabled(&self) -> bool {
            true
        }

        fn lifetime(&self) -> u32 {
            7
        }

        fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
            Some(plain.iter().rev().copied().collect())
        }

        fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
            self.encrypt(cipher)
        }
    }

    #[test]
    fn a_ticket_is_opened_in_its_version_alone() {
        let all: Arc<dyn ProducesTickets> = Arc::new(Reversing);
        let each = ByVersion::new(|version| OfVersion::new(version, all.clone()));
        for made in Version::ALL {
            let ticket = each.get(made).encrypt(b"session").unwrap();
            for read in Version::ALL {
                let opened = each.get(read).decrypt(&ticket);
                assert_eq!(opened.is_some(), made == read, "{made:?} {read:?}");
                assert!(opened.is_none_or(|session| session == b"session"));
            }
        }
        for short in [&b""[..], b"abc"] {
            assert_eq!(each.get(Version::V1).decrypt(short), None);
        }
    }

    #[test]
    fn a_stored_session_is_found_in_its_version_alone() {
        let all: Arc<dyn StoresServerSessions> = ServerSessionMemoryCache::new(16);
        let each = ByVersion::new(|version| OfVersion::new(version, all.clone()));
        let (v1, v2) = (each.get(Version::V1), each.get(Version::V2));
        assert!(v1.can_cache() && v1.put(b"key".to_vec(), b"session".to_vec()));
        assert_eq!((v2.get(b"key"), v2.take(b"key")), (None, None));
        assert_eq!(v1.get(b"key").as_deref(), Some(&b"session"[..]));
        assert_eq!(v1.take(b"key").as_deref(), Some(&b"session"[..]));
        assert_eq!(v1.take(b"key"), None);
    }
}
