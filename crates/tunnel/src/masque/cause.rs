//! Why a proxy refuses (RFC 9209 section 2.3).

use std::fmt;
use std::io;

use sfv::{
    BareItem, KeyRef, List, ListEntry, ListSerializer, Parser, StringRef, TokenRef, key_ref,
};

/// The name by which the proxy calls itself in the field.
const NAME: &str = "sutura";
const ERROR: &KeyRef = key_ref("error");
const DETAILS: &KeyRef = key_ref("details");

macro_rules! causes {
    ($($(#[$doc:meta])* $cause:ident = $status:literal, $token:literal;)*) => {
        /// A cause, by its type of error in the `proxy-status` field.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Cause {
            $($(#[$doc])* $cause,)*
        }

        impl Cause {
            /// All causes.
            pub const ALL: &'static [Self] = &[$(Self::$cause),*];

            /// The type of error (RFC 9209 section 2.3).
            #[must_use]
            pub const fn token(self) -> &'static str {
                match self { $(Self::$cause => $token),* }
            }

            /// The status of the response.
            #[must_use]
            pub const fn status(self) -> u16 {
                match self { $(Self::$cause => $status),* }
            }
        }
    };
}

causes! {
    /// The name of the target was not resolved in time.
    DnsTimeout = 504, "dns_timeout";
    /// The name of the target does not exist, or has no address.
    DnsError = 502, "dns_error";
    /// The proxy's rules do not permit the target.
    Prohibited = 403, "destination_ip_prohibited";
    /// There is no way to the target.
    Unroutable = 502, "destination_ip_unroutable";
    /// The target refused the connection.
    Refused = 502, "connection_refused";
    /// The connection broke.
    Terminated = 502, "connection_terminated";
    /// The target did not answer in time.
    Timeout = 504, "connection_timeout";
    /// A limit of this client is reached.
    Limit = 429, "connection_limit_reached";
    /// The client shows no right to use the proxy.
    Denied = 407, "http_request_denied";
    /// The request is not understood.
    Request = 400, "http_request_error";
    /// The flow that is to be resumed is not known.
    UnknownFlow = 404, "destination_not_found";
    /// Something went wrong in the proxy.
    Internal = 500, "proxy_internal_error";
}

impl Cause {
    /// The cause of an error of connecting.
    #[must_use]
    pub fn of(error: &io::Error) -> Self {
        use io::ErrorKind as Kind;
        match error.kind() {
            Kind::ConnectionRefused => Self::Refused,
            Kind::TimedOut => Self::Timeout,
            Kind::ConnectionReset | Kind::ConnectionAborted => Self::Terminated,
            Kind::HostUnreachable | Kind::NetworkUnreachable | Kind::AddrNotAvailable => {
                Self::Unroutable
            }
            _ => Self::Internal,
        }
    }

    /// The value of the `proxy-status` field, with a text for people.
    #[must_use]
    pub fn to_field(self, details: &str) -> String {
        // What a string of structured fields cannot have is left out.
        let plain: String = details.chars().filter(|c| matches!(c, ' '..='~')).collect();
        let mut list = ListSerializer::new();
        let Ok(name) = TokenRef::from_str(NAME) else { return NAME.to_owned() };
        let item = list.bare_item(name);
        if let (Ok(token), Ok(details)) =
            (TokenRef::from_str(self.token()), StringRef::from_str(&plain))
        {
            let _ = item.parameter(ERROR, token).parameter(DETAILS, details);
        }
        list.finish().unwrap_or_else(|| NAME.to_owned())
    }

    /// Reads the last member of a `proxy-status` field, which is that of the proxy next to the target: the cause,
    /// if it is known, and the text.
    #[must_use]
    pub fn from_field(value: &[u8]) -> Option<(Option<Self>, String)> {
        let list: List = Parser::new(value).parse().ok()?;
        let ListEntry::Item(last) = list.last()? else { return None };
        let token = match last.params.get(ERROR)? {
            BareItem::Token(token) => token.as_str(),
            _ => return None,
        };
        let cause = Self::ALL.iter().copied().find(|cause| cause.token() == token);
        let details = match last.params.get(DETAILS) {
            Some(BareItem::String(text)) => text.as_str().to_owned(),
            _ => token.to_owned(),
        };
        Some((cause, details))
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.token())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_there_and_back() {
        for &cause in Cause::ALL {
            let field = cause.to_field("no \"way\"\n to \u{e9}");
            let read = Cause::from_field(field.as_bytes());
            assert_eq!(read, Some((Some(cause), "no \"way\" to ".to_owned())), "{field}");
        }
        let text = Cause::Refused.to_field("a");
        assert_eq!(text, "sutura;error=connection_refused;details=\"a\"");
    }

    #[test]
    fn the_last_proxy_counts_and_others_causes_are_shown() {
        let field = b"a;error=dns_error, \"b\";error=tls_protocol_error";
        assert_eq!(Cause::from_field(field), Some((None, "tls_protocol_error".into())));
        for field in ["", "a", "a;error", "a;error=\"x\"", "(a)", "\u{e9}"] {
            assert_eq!(Cause::from_field(field.as_bytes()), None, "{field}");
        }
    }
}
