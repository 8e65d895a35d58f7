//! The ProtocolVersion message (RFC 6143, section 7.1.1).

use super::RfbError;
use bytes::{Buf as _, BytesMut};

const LENGTH: usize = 12;

/// The versions that differ in the handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Version {
    /// The server chooses the security type.
    V3_3,
    /// The client chooses it.
    V3_7,
    /// The server always says whether the client may come in, and why not.
    V3_8,
}

impl Version {
    /// The version as it is on the wire.
    pub(super) const fn message(self) -> &'static [u8; LENGTH] {
        match self {
            Self::V3_3 => b"RFB 003.003\n",
            Self::V3_7 => b"RFB 003.007\n",
            Self::V3_8 => b"RFB 003.008\n",
        }
    }

    /// The newest of our versions that the peer knows. `foreign` makes the error for a peer that does not
    /// speak RFB from its first bytes.
    pub(super) fn take(
        input: &mut BytesMut,
        foreign: impl FnOnce(String) -> RfbError,
    ) -> Result<Option<Self>, RfbError> {
        let start = &input[..input.len().min(LENGTH)];
        if !start.iter().enumerate().all(|(at, &byte)| fits(at, byte)) {
            return Err(foreign(start.escape_ascii().to_string()));
        }
        if start.len() < LENGTH {
            return Ok(None);
        }
        let version = Self::of(&start[4..LENGTH - 1])?;
        input.advance(LENGTH);
        Ok(Some(version))
    }

    /// Our version for the peer's version, given as in `003.008`.
    fn of(digits: &[u8]) -> Result<Self, RfbError> {
        match digits {
            b"003.007" => Ok(Self::V3_7),
            // Apple's server calls its own version 3.889.
            b"003.008" | b"003.889" => Ok(Self::V3_8),
            // By RFC 6143, other numbers below 4 mean 3.3, because some programs use them so.
            _ if (&b"003.003"[..]..b"004").contains(&digits) => Ok(Self::V3_3),
            _ if digits > &b"004"[..] => Ok(Self::V3_8),
            _ => Err(RfbError::Version(digits.escape_ascii().to_string())),
        }
    }
}

/// Whether a version can have this byte at this place.
fn fits(at: usize, byte: u8) -> bool {
    match at {
        0..4 => byte == b"RFB "[at],
        7 => byte == b'.',
        11 => byte == b'\n',
        _ => byte.is_ascii_digit(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(text: &str) -> Result<Option<Version>, RfbError> {
        Version::take(&mut text.as_bytes().into(), RfbError::NotServer)
    }

    #[test]
    fn versions_that_nobody_specified_mean_one_that_somebody_did() {
        for (text, version) in [
            ("003.003", Version::V3_3),
            ("003.005", Version::V3_3),
            ("003.016", Version::V3_3),
            ("003.007", Version::V3_7),
            ("003.008", Version::V3_8),
            ("003.889", Version::V3_8),
            ("004.001", Version::V3_8),
            ("005.000", Version::V3_8),
        ] {
            assert_eq!(take(&format!("RFB {text}\n")), Ok(Some(version)), "{text}");
        }
        for text in ["000.000", "003.002", "002.999"] {
            assert_eq!(take(&format!("RFB {text}\n")), Err(RfbError::Version(text.into())));
        }
    }

    #[test]
    fn another_protocol_is_known_by_its_first_bytes() {
        assert_eq!(take("RFB 003.0"), Ok(None));
        let error = take("SSH-2.0-OpenSSH_9.6\r\n").unwrap_err();
        assert_eq!(error.to_string(), "not an RFB server: it begins with \"SSH-2.0-Open\"");
        assert_eq!(take("RFB x"), Err(RfbError::NotServer("RFB x".into())));
        assert_eq!(take("\x1b["), Err(RfbError::NotServer("\\x1b[".into())));
    }
}
