//! The versions of QUIC (RFC 9000 and RFC 9369).

/// A version of QUIC.
///
/// The versions differ in nothing but numbers and labels: version 2 exists so that devices on the path do not
/// come to rely on those of version 1. Newer versions are greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Version {
    /// RFC 9000.
    V1,
    /// RFC 9369.
    V2,
}

impl Version {
    /// All versions.
    pub const ALL: [Self; 2] = [Self::V1, Self::V2];

    /// The version with this number; `None` if it is not implemented.
    #[must_use]
    pub const fn from_number(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::V1),
            0x6b33_43cf => Some(Self::V2),
            _ => None,
        }
    }

    /// Its number in long headers.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::V1 => 1,
            Self::V2 => 0x6b33_43cf,
        }
    }
}

impl Version {
    /// Whether the first packets of this version can be understood as first packets of `other`, so that a
    /// server may go over to `other` within the handshake (RFC 9368 section 2.2, RFC 9369 section 4).
    #[must_use]
    pub const fn is_compatible_with(self, other: Self) -> bool {
        match (self, other) {
            (Self::V1 | Self::V2, Self::V1 | Self::V2) => true,
        }
    }
}
