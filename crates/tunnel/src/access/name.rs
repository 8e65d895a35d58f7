//! Names of hosts.

use std::fmt;
use std::str::FromStr;

/// Longest name, in bytes (RFC 1035 section 2.3.4).
pub const MAX_NAME: usize = 253;
/// Longest part of a name between dots, in bytes.
const MAX_LABEL: usize = 63;

/// The name of a host in lower case: letters, digits, hyphens and underscores between dots.
///
/// Names whose last part is a number are none: resolvers of many systems take `127.1`, `0x7f000001` and
/// `2130706433` for addresses.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(String);

/// Why a text is no name of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidName {
    /// A name, or a part of it between dots, has no or too many bytes.
    #[error("a name has 1 to {MAX_NAME} bytes, and 1 to {MAX_LABEL} between dots")]
    Length,
    /// A character that no name has. Names of other scripts are written in Punycode (`xn--`).
    #[error("names have letters and digits of ASCII, hyphens and underscores only")]
    Character,
    /// The last part is a number, in a form that some systems take for a part of an IPv4 address.
    #[error("a name does not end in a number")]
    Number,
}

impl Name {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the name is `domain` with at least one part before it.
    #[must_use]
    pub fn is_below(&self, domain: &Self) -> bool {
        self.0.strip_suffix(&domain.0).is_some_and(|before| before.ends_with('.'))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Name {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        if text.is_empty() || text.len() > MAX_NAME {
            return Err(InvalidName::Length);
        }
        if !text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)) {
            return Err(InvalidName::Character);
        }
        if text.split('.').any(|label| label.is_empty() || label.len() > MAX_LABEL) {
            return Err(InvalidName::Length);
        }
        let text = text.to_ascii_lowercase();
        let last = text.rsplit('.').next().unwrap_or_default();
        let hex = last.strip_prefix("0x");
        if last.bytes().all(|b| b.is_ascii_digit())
            || hex.is_some_and(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))
        {
            return Err(InvalidName::Number);
        }
        Ok(Self(text))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Names of hosts.
    pub fn any_name() -> impl Strategy<Value = Name> {
        r"([a-z0-9_-]{1,9}\.){0,3}[a-z]{1,9}".prop_map(|name| name.parse().unwrap())
    }

    #[test]
    fn names_are_in_lower_case() {
        for name in ["a", "db.example.org", "_dns.resolver-1.arpa", "xn--bcher-kva.example", "1.de"]
        {
            assert_eq!(name.to_ascii_uppercase().parse::<Name>().unwrap().as_str(), name);
        }
        assert!("a.".repeat(126).parse::<Name>().is_err());
        assert!(("a.".repeat(126) + "a").parse::<Name>().is_ok());
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for (text, error) in [
            ("", InvalidName::Length),
            ("a..b", InvalidName::Length),
            (".a", InvalidName::Length),
            ("a.", InvalidName::Length),
            (&"a".repeat(64), InvalidName::Length),
            (&("a.".repeat(126) + "aa"), InvalidName::Length),
            ("bücher.example", InvalidName::Character),
            ("a b", InvalidName::Character),
            ("a/b", InvalidName::Character),
            ("a%00", InvalidName::Character),
            ("fe80::1", InvalidName::Character),
            ("127.1", InvalidName::Number),
            ("1.2.3.4.5", InvalidName::Number),
            ("2130706433", InvalidName::Number),
            ("0X7f.0x", InvalidName::Number),
            ("0x7F000001", InvalidName::Number),
        ] {
            assert_eq!(text.parse::<Name>(), Err(error), "{text}");
        }
    }

    #[test]
    fn what_is_below_a_domain_has_a_dot_before_it() {
        let name = |text: &str| text.parse::<Name>().unwrap();
        assert!(name("a.example.org").is_below(&name("Example.org")));
        assert!(name("a.b.example.org").is_below(&name("example.org")));
        assert!(!name("example.org").is_below(&name("example.org")));
        assert!(!name("badexample.org").is_below(&name("example.org")));
    }
}
