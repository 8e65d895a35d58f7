//! Connection identifiers (RFC 9000 section 5.1).

use std::fmt;
use std::hash::{Hash, Hasher};

/// The maximum length of a connection identifier in QUIC v1, in bytes.
pub const MAX_CID_SIZE: usize = 20;

/// A connection identifier: 0 to 20 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct ConnectionId {
    len: u8,
    bytes: [u8; MAX_CID_SIZE],
}

impl ConnectionId {
    /// Copies `bytes`; `None` if there are more than [`MAX_CID_SIZE`].
    #[inline]
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut id = Self { len: u8::try_from(bytes.len()).ok()?, ..Self::default() };
        id.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(id)
    }

    /// The identifier's bytes.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Its length in bytes.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether it has no bytes.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Hash for ConnectionId {
    /// Looked up for every datagram, so only the bytes in use are hashed.
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(self.as_slice());
    }
}

impl fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_id_is_bounded() {
        assert!(ConnectionId::new(&[0; 21]).is_none());
        assert_eq!(ConnectionId::new(&[1, 2]).unwrap().to_string(), "0102");
    }
}
