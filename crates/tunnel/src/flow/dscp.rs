//! Marks of packets.

use std::fmt;
use std::str::FromStr;

/// A differentiated services code point (RFC 2474): what a packet is marked with, 0 to 63. As text it is a name
/// of [IANA's registry](https://www.iana.org/assignments/dscp-registry), such as `ef` or `af41`, or a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Dscp(u8);

/// A text is neither a name of a code point nor a number from 0 to 63.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a mark is a number from 0 to 63, or a name: ef, va, le, cs0 to cs7, af11 to af43")]
pub struct InvalidDscp;

impl Dscp {
    /// Telephony (RFC 3246).
    pub const EF: Self = Self(46);
    /// Admitted telephony (RFC 5865).
    pub const VOICE_ADMIT: Self = Self(44);
    /// Lower effort (RFC 8622).
    pub const LE: Self = Self(1);

    /// The code point with this number.
    #[must_use]
    pub const fn new(value: u8) -> Option<Self> {
        if value < 64 { Some(Self(value)) } else { None }
    }

    /// The code point in a byte of type of service or traffic class, whose last two bits are ECN's.
    #[must_use]
    pub const fn from_traffic_class(byte: u8) -> Self {
        Self(byte >> 2)
    }

    /// Its number, 0 to 63.
    #[must_use]
    pub const fn value(self) -> u8 {
        self.0
    }

    /// The class selector (RFC 2474 section 4.2.2): its first three bits.
    pub(super) const fn selector(self) -> u8 {
        self.0 >> 3
    }

    /// Class and drop precedence of assured forwarding (RFC 2597), 1 to 4 and 1 to 3.
    pub(super) const fn assured(self) -> Option<(u8, u8)> {
        let (class, drop) = (self.0 >> 3, self.0 >> 1 & 3);
        let is_one = self.0 & 1 == 0 && class >= 1 && class <= 4 && drop >= 1;
        if is_one { Some((class, drop)) } else { None }
    }
}

impl fmt::Display for Dscp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::EF => f.write_str("ef"),
            Self::VOICE_ADMIT => f.write_str("va"),
            Self::LE => f.write_str("le"),
            Self(value) if value & 7 == 0 => write!(f, "cs{}", self.selector()),
            Self(value) => match self.assured() {
                Some((class, drop)) => write!(f, "af{class}{drop}"),
                None => value.fmt(f),
            },
        }
    }
}

impl FromStr for Dscp {
    type Err = InvalidDscp;

    fn from_str(text: &str) -> Result<Self, InvalidDscp> {
        let named = (0..64).map(Self).find(|dscp| dscp.to_string() == text);
        let numbered = || text.parse().ok().and_then(Self::new);
        named.or_else(numbered).ok_or(InvalidDscp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_points_have_names() {
        for (text, value) in [
            ("ef", 46),
            ("va", 44),
            ("le", 1),
            ("cs0", 0),
            ("cs7", 56),
            ("af11", 10),
            ("af23", 22),
            ("af41", 34),
            ("af43", 38),
            ("2", 2),
            ("63", 63),
        ] {
            let dscp = Dscp::new(value).unwrap();
            assert_eq!(text.parse(), Ok(dscp));
            assert_eq!(dscp.to_string(), text);
            assert_eq!(value.to_string().parse(), Ok(dscp));
            assert_eq!(Dscp::from_traffic_class(value << 2 | 3), dscp);
        }
        for text in ["64", "-1", "EF", "af44", "af10", "af51", "cs8", ""] {
            assert_eq!(text.parse::<Dscp>(), Err(InvalidDscp), "{text}");
        }
    }
}
