//! Security types (RFC 6143, section 7.2).

/// The length of a challenge and of the answer to it (section 7.2.2).
pub(super) const CHALLENGE: usize = 16;

/// No authentication.
pub(super) const NONE: u8 = 1;
/// VNC Authentication.
pub(super) const VNC_AUTHENTICATION: u8 = 2;

/// Anonymous TLS.
pub(super) const TLS: u8 = 18;
/// TLS around another way to log in.
pub(super) const VENCRYPT: u8 = 19;

/// What a client has to log in to a server with, and what it is careful about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Login {
    /// The name and the password of a user, which some servers want
    /// ([`ServerStep::User`](super::ServerStep::User)).
    pub user: bool,
    /// Never to go on without TLS.
    pub only_tls: bool,
    /// To send the password of a user also without TLS, as to a server on the same machine.
    pub user_in_clear: bool,
}

/// How a viewer is to show that it may come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Security {
    /// It need not show anything (section 7.2.1).
    None,
    /// It encrypts the challenge with a password (section 7.2.2).
    Password {
        /// Bytes that nobody can predict.
        challenge: [u8; CHALLENGE],
    },
}

impl Security {
    /// The number of the security type.
    pub(super) const fn number(self) -> u8 {
        match self {
            Self::None => NONE,
            Self::Password { .. } => VNC_AUTHENTICATION,
        }
    }
}

/// A list of security types for people.
pub(super) fn describe(types: &[u32]) -> String {
    describe_with(types, name)
}

/// A list of numbers for people, of which some have a name.
pub(super) fn describe_with(types: &[u32], name: fn(u32) -> Option<&'static str>) -> String {
    let describe = |&number: &u32| match name(number) {
        Some(name) => format!("{number} ({name})"),
        None => number.to_string(),
    };
    types.iter().map(describe).collect::<Vec<_>>().join(", ")
}

/// The name of a security type that is registered (section 8.1.2) or common.
pub(super) const fn name(number: u32) -> Option<&'static str> {
    Some(match number {
        1 => "None",
        2 => "VNC Authentication",
        5 => "RA2",
        6 => "RA2ne",
        16 => "Tight",
        17 => "Ultra",
        18 => "TLS",
        19 => "VeNCrypt",
        20 => "SASL",
        21 => "MD5",
        22 => "xvp",
        30 => "Apple Remote Desktop",
        113 => "MS-Logon II",
        129 => "RA2-256",
        130 => "RA2ne-256",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_named() {
        assert_eq!(describe(&[19, 18, 77]), "19 (VeNCrypt), 18 (TLS), 77");
    }
}
