//! How two ends agree on a version of QUIC (RFC 9368).

use crate::error::{TransportError, TransportErrorCode};
use crate::wire::transport_parameters::VersionInformation;
use crate::wire::version::Version;

/// The versions among `ours`, best first, to which a server prefers to go over from the version of the
/// client's first packets. None of them is older: a client that begins with a newer version does so on
/// purpose, and may not be able to go back.
pub fn better(original: Version, ours: &[Version]) -> impl Iterator<Item = Version> + '_ {
    let preferred = ours.iter().copied().take_while(move |ours| *ours != original);
    preferred.filter(move |ours| *ours > original && original.is_compatible_with(*ours))
}

/// The version of `ours`, best first, that a server chooses for a client that began with `original` and
/// offers the versions in `client` (RFC 9368 section 2.3).
pub fn negotiate(
    original: Version,
    ours: &[Version],
    client: Option<&VersionInformation>,
) -> Version {
    // `check_chosen` refuses a client that claims to have begun with another version.
    let honest = client.filter(|client| client.chosen == original.number());
    let offered = |version: &Version| {
        honest.is_some_and(|client| client.available.contains(&version.number()))
    };
    better(original, ours).find(offered).unwrap_or(original)
}

/// Which of `ours`, best first, a client chooses if the server supports `theirs`.
pub fn choose(ours: &[Version], theirs: impl IntoIterator<Item = u32>) -> Option<Version> {
    let theirs: Vec<u32> = theirs.into_iter().collect();
    ours.iter().copied().find(|version| theirs.contains(&version.number()))
}

fn negotiation_error(reason: &'static str) -> TransportError {
    TransportError::new(TransportErrorCode::VERSION_NEGOTIATION_ERROR, reason)
}

/// Checks that the peer says it chose `version` (RFC 9368 section 4). Peers of before that RFC say
/// nothing, and never leave the `original` version.
///
/// # Errors
/// VERSION_NEGOTIATION_ERROR.
pub fn check_chosen(
    version: Version,
    original: Version,
    peer: Option<&VersionInformation>,
) -> Result<(), TransportError> {
    if peer.map_or(original.number(), |peer| peer.chosen) == version.number() {
        return Ok(());
    }
    Err(negotiation_error("the peer chose another version"))
}

/// Checks that a client that followed a Version Negotiation packet to `version` would have done the same if
/// the packet had named the versions that the server says it supports, and the version that it chose.
/// Otherwise somebody on the path made it use another version than the best (RFC 9368 section 4).
///
/// # Errors
/// VERSION_NEGOTIATION_ERROR.
pub fn check_downgrade(
    version: Version,
    ours: &[Version],
    server: Option<&VersionInformation>,
) -> Result<(), TransportError> {
    let chosen = match (server, version) {
        (Some(server), _) if server.available.is_empty() => None,
        (Some(server), _) => {
            let chosen = std::iter::once(server.chosen);
            choose(ours, server.available.iter().copied().chain(chosen))
        }
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
        // The version that the server chose counts as supported, unless the server supports nothing.
        assert!(check(Some(&information(V2, &[V1])), V2));
        assert!(!check(Some(&information(V2, &[V1])), V1));
        assert!(!check(Some(&information(V1, &[])), V1));
    }

    #[test]
    fn the_peer_must_confirm_the_version() {
        let check = |version, original, peer: Option<VersionInformation>| {
            check_chosen(version, original, peer.as_ref()).is_ok()
        };
        for version in Version::ALL {
            assert!(check(version, version, None));
            for original in Version::ALL {
                assert!(check(version, original, Some(information(version, &[]))));
                let other = if version == V1 { V2 } else { V1 };
                assert!(!check(version, original, Some(information(other, &[V1, V2]))));
            }
        }
        assert!(!check(V2, V1, None) && !check(V1, V2, None));
    }

    #[test]
    fn a_server_takes_the_best_that_the_client_offers_and_never_an_older_one() {
        let offer = information(V1, &[V1, V2]);
        assert_eq!(negotiate(V1, &[V2, V1], Some(&offer)), V2);
        assert_eq!(negotiate(V1, &[V1, V2], Some(&offer)), V1);
        assert_eq!(negotiate(V2, &[V1, V2], Some(&information(V2, &[V2, V1]))), V2);
        assert_eq!(negotiate(V1, &[V2, V1], Some(&information(V1, &[V1]))), V1);
        assert_eq!(negotiate(V1, &[V1], Some(&offer)), V1);
        assert_eq!(negotiate(V1, &[V2, V1], Some(&information(V1, &[]))), V1);
        assert_eq!(negotiate(V1, &[V2, V1], None), V1);
        assert_eq!(negotiate(V1, &[V2, V1], Some(&information(V2, &[V1, V2]))), V1);
    }
}
