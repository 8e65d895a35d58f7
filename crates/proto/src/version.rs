//! The versions of QUIC (RFC 9000 and RFC 9369), and how two ends agree on one (RFC 9368).

use crate::error::{TransportError, TransportErrorCode};
use crate::wire::transport_parameters::VersionInformation;

/// A version of QUIC.
///
/// They differ in nothing but numbers and labels: version 2 exists to keep what is on the way from
/// relying on those of version 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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

/// Which of `ours`, best first, a client chooses if the server supports `theirs`.
pub fn choose(ours: &[Version], theirs: impl IntoIterator<Item = u32>) -> Option<Version> {
    let theirs: Vec<u32> = theirs.into_iter().collect();
    ours.iter().copied().find(|version| theirs.contains(&version.number()))
}

fn negotiation_error(reason: &'static str) -> TransportError {
    TransportError::new(TransportErrorCode::VERSION_NEGOTIATION_ERROR, reason)
}

/// Checks that the peer uses the same `version` for this connection (RFC 9368 section 4).
///
/// # Errors
/// VERSION_NEGOTIATION_ERROR.
pub fn check_chosen(
    version: Version,
    peer: Option<&VersionInformation>,
) -> Result<(), TransportError> {
    if peer.is_none_or(|peer| peer.chosen == version.number()) {
        return Ok(());
    }
    Err(negotiation_error("the peer chose another version"))
}

/// Checks that a client that followed a Version Negotiation packet to `version` would have done the same
/// if that had named what the server says it supports. Otherwise somebody on the path made it use
/// another version than the best (RFC 9368 section 4).
///
/// # Errors
/// VERSION_NEGOTIATION_ERROR.
pub fn check_downgrade(
    version: Version,
    ours: &[Version],
    server: Option<&VersionInformation>,
) -> Result<(), TransportError> {
    let chosen = match (server, version) {
        (Some(server), _) => choose(ours, server.available.iter().copied()),
        // Servers of before RFC 9368 know version 1 only (section 8).
        (None, Version::V1) => Some(Version::V1),
        (None, Version::V2) => None,
    };
    if chosen == Some(version) {
        return Ok(());
    }
    Err(negotiation_error("the server supports a better version"))
}

#[cfg(test)]
mod tests {
    use super::Version::{V1, V2};
    use super::*;

    fn information(chosen: Version, available: &[Version]) -> VersionInformation {
        let available = available.iter().map(|version| version.number()).collect();
        VersionInformation { chosen: chosen.number(), available }
    }

    #[test]
    fn numbers_are_those_of_the_rfcs() {
        for version in Version::ALL {
            assert_eq!(Version::from_number(version.number()), Some(version));
        }
        assert_eq!(Version::from_number(2), None);
    }

    #[test]
    fn a_client_takes_the_best_that_the_server_has() {
        assert_eq!(choose(&[V2, V1], [0x0a0a_0a0a, 1, V2.number()]), Some(V2));
        assert_eq!(choose(&[V2, V1], [1]), Some(V1));
        assert_eq!(choose(&[V2], [1]), None);
    }

    #[test]
    fn downgrades_are_noticed() {
        let check = |server: Option<&VersionInformation>, version| {
            check_downgrade(version, &[V2, V1], server).is_ok()
        };
        assert!(check(Some(&information(V1, &[V1])), V1));
        assert!(!check(Some(&information(V1, &[V1, V2])), V1));
        assert!(check(Some(&information(V2, &[V1, V2])), V2));
        assert!(check(None, V1) && !check(None, V2));
        assert!(check_chosen(V1, None).is_ok());
        assert!(check_chosen(V1, Some(&information(V1, &[V2]))).is_ok());
        assert!(check_chosen(V1, Some(&information(V2, &[V1]))).is_err());
    }
}
