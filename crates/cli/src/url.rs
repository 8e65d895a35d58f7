//! URLs of the https scheme (RFC 9110 section 4.2.2, RFC 3986).

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};

/// The port of the https scheme.
const DEFAULT_PORT: u16 = 443;
/// Why a URL of another scheme is not fetched.
const NOT_HTTPS: &str = "only https URLs can be fetched over HTTP/3";
/// Longest accepted URL, in bytes.
const MAX_LENGTH: usize = 8192;
/// Longest host name (RFC 1035 section 2.3.4), in bytes.
const MAX_HOST_LENGTH: usize = 253;

/// Characters that must be percent-encoded in a path or query. The percent sign is not among them.
const NOT_IN_PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// Characters that must be percent-encoded in a segment of a path that stands for a file name.
const NOT_IN_NAME: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The host and port of a server.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Authority {
    /// A name or an IP address, without brackets, in lower case.
    pub host: String,
    pub port: u16,
}

impl fmt::Display for Authority {
    /// As in an `:authority` field: the default port is omitted.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]", self.host)?;
        } else {
            f.write_str(&self.host)?;
        }
        if self.port != DEFAULT_PORT {
            write!(f, ":{}", self.port)?;
        }
        Ok(())
    }
}

impl Authority {
    /// Reads a host and, behind a colon, a port; IPv6 addresses are in brackets.
    ///
    /// # Errors
    /// The text is something else; the error says why.
    pub fn parse(text: &str, default_port: u16) -> Result<Self, &'static str> {
        if text.contains('@') {
            return Err("a URL with a user name is not supported");
        }
        let (host, port) = if let Some(rest) = text.strip_prefix('[') {
            let (host, port) = rest.split_once(']').ok_or("a bracket is not closed")?;
            let address: Ipv6Addr = host.parse().map_err(|_| "not an IPv6 address in brackets")?;
            (address.to_string(), port)
        } else {
            let at = text.find(':').unwrap_or(text.len());
            let (host, port) = text.split_at(at);
            (parse_host(host)?, port)
        };
        let port = match port.strip_prefix(':') {
            None if port.is_empty() => default_port,
            Some("") => default_port,
            Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => digits
                .parse()
                .ok()
                .filter(|&p| p > 0)
                .ok_or("the port is not between 1 and 65535")?,
            _ => return Err("the port is not a number"),
        };
        Ok(Self { host, port })
    }
}

/// An https URL without its fragment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Url {
    pub authority: Authority,
    /// Path and query, starting with a slash.
    pub path: String,
}

impl Url {
    /// The last segment of the path; `None` if it is empty.
    pub fn file_name(&self) -> Option<&str> {
        let path = self.path.split('?').next().unwrap_or("");
        let name = path.rsplit('/').next().unwrap_or("");
        (!matches!(name, "" | "." | "..")).then_some(name)
    }

    /// The URL of a file of this name, if this one is that of a directory: its path ends in a slash.
    pub fn for_file(&self, name: &str) -> Self {
        if !self.path.ends_with('/') || self.path.contains('?') {
            return self.clone();
        }
        let path = format!("{}{}", self.path, utf8_percent_encode(name, NOT_IN_NAME));
        Self { authority: self.authority.clone(), path }
    }

    /// The URL to which a reference leads from here (RFC 3986 section 5).
    ///
    /// # Errors
    /// It is no URL, or none that HTTP/3 can fetch.
    pub fn join(&self, reference: &str) -> Result<Self, String> {
        let base = ::url::Url::parse(&self.to_string()).map_err(|e| e.to_string())?;
        let joined = base.join(reference).map_err(|e| e.to_string())?;
        // A text with another scheme and without slashes would be taken for a host and a port.
        if joined.scheme() != "https" {
            return Err(NOT_HTTPS.into());
        }
        joined.as_str().parse::<Self>().map_err(str::to_owned)
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "https://{}{}", self.authority, self.path)
    }
}

impl FromStr for Url {
    type Err = &'static str;

    /// Reads a URL, or one without its scheme.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() > MAX_LENGTH {
            return Err("the URL is too long");
        }
        // A text that begins with a host needs no scheme, as only one is possible.
        let scheme_alone =
            ["http:", "https:"].iter().any(|scheme| text.to_ascii_lowercase().starts_with(scheme));
        let is_scheme = |scheme: &str| scheme.bytes().all(|b| b.is_ascii_alphanumeric());
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) if is_scheme(scheme) => (scheme, rest),
            _ if text.is_empty() || text.starts_with(['/', '.', '-', ':']) || scheme_alone => {
                return Err("expected a URL such as https://example.org/index.html");
            }
            _ => ("https", text),
        };
        if !scheme.eq_ignore_ascii_case("https") {
            return Err(NOT_HTTPS);
        }
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let authority = Authority::parse(authority, DEFAULT_PORT)?;
        Ok(Self { authority, path: parse_path(path)? })
    }
}

fn parse_host(host: &str) -> Result<String, &'static str> {
    if host.is_empty() {
        return Err("the host is missing");
    }
    if !host.is_ascii() {
        return Err("an international host name must be written in its xn-- form");
    }
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    if host.len() > MAX_HOST_LENGTH || !host.bytes().all(allowed) {
        return Err("not a host name");
    }
    // A host whose last label is a number must be an IPv4 address.
    let last = host.trim_end_matches('.').rsplit('.').next().unwrap_or("");
    let numeric = last.bytes().all(|b| b.is_ascii_digit());
    if numeric && host.parse::<Ipv4Addr>().is_err() {
        return Err("not an IPv4 address");
    }
    Ok(host.to_ascii_lowercase())
}

/// The target of a request: invalid characters are percent-encoded.
fn parse_path(text: &str) -> Result<String, &'static str> {
    let text = text.split('#').next().unwrap_or("");
    if text.contains(|c: char| c.is_ascii_control()) {
        return Err("a control character in the URL");
    }
    let slash = if text.starts_with('/') { "" } else { "/" };
    Ok(format!("{slash}{}", utf8_percent_encode(text, NOT_IN_PATH)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    #[test]
    fn urls_are_taken_apart() {
        for (text, host, port, path) in [
            ("https://example.org", "example.org", 443, "/"),
            ("HTTPS://Example.ORG:443/", "example.org", 443, "/"),
            ("https://localhost:4433/a/b?c=d&e#f", "localhost", 4433, "/a/b?c=d&e"),
            ("https://[::1]:5000/x", "::1", 5000, "/x"),
            ("https://[0:0::1]", "::1", 443, "/"),
            ("https://127.0.0.1?q", "127.0.0.1", 443, "/?q"),
            ("https://a:/ä b", "a", 443, "/%C3%A4%20b"),
            ("localhost:4999", "localhost", 4999, "/"),
            ("example.org/x?y=http://z", "example.org", 443, "/x?y=http://z"),
            ("[::1]:5000/x", "::1", 5000, "/x"),
        ] {
            let url = url(text);
            assert_eq!((url.authority.host.as_str(), url.authority.port), (host, port), "{text}");
            assert_eq!(url.path, path);
        }
    }

    #[test]
    fn what_is_no_https_url_is_an_error_that_says_why() {
        for (text, problem) in [
            ("://x", "only https URLs can be fetched over HTTP/3"),
            ("", "expected a URL such as https://example.org/index.html"),
            ("https:/example.org", "expected a URL such as https://example.org/index.html"),
            ("HTTP:example.org", "expected a URL such as https://example.org/index.html"),
            ("/index.html", "expected a URL such as https://example.org/index.html"),
            ("./index.html", "expected a URL such as https://example.org/index.html"),
            ("localhost:x", "the port is not a number"),
            ("http://example.org", "only https URLs can be fetched over HTTP/3"),
            ("https://", "the host is missing"),
            ("https:///path", "the host is missing"),
            ("https://:80/", "the host is missing"),
            ("https://u:p@example.org", "a URL with a user name is not supported"),
            ("https://[::1", "a bracket is not closed"),
            ("https://[::g]", "not an IPv6 address in brackets"),
            ("https://[::1]x", "the port is not a number"),
            ("https://a:b", "the port is not a number"),
            ("https://a:-1", "the port is not a number"),
            ("https://a:+1", "the port is not a number"),
            ("https://a:0", "the port is not between 1 and 65535"),
            ("https://a:65536", "the port is not between 1 and 65535"),
            ("https://256.1.1.1", "not an IPv4 address"),
            ("https://1.2.3", "not an IPv4 address"),
            ("https://exa mple.org", "not a host name"),
            ("https://münchen.de", "an international host name must be written in its xn-- form"),
            ("https://a/\u{1b}", "a control character in the URL"),
        ] {
            assert_eq!(text.parse::<Url>(), Err(problem), "{text}");
        }
    }

    #[test]
    fn a_file_name_never_leaves_its_directory() {
        assert_eq!(url("https://a/b/c.html?x=/y").file_name(), Some("c.html"));
        assert_eq!(url("https://a/b%2Fc").file_name(), Some("b%2Fc"));
        assert_eq!(url(r"https://a/..\c").file_name(), Some("..%5Cc"));
        for text in ["https://a", "https://a/b/", "https://a/..", "https://a/.?x"] {
            assert_eq!(url(text).file_name(), None, "{text}");
        }
    }

    #[test]
    fn references_are_resolved() {
        let base = url("https://example.org:8443/a/b/c?d#e");
        for (reference, target) in [
            ("/x", "https://example.org:8443/x"),
            ("x", "https://example.org:8443/a/b/x"),
            ("../x?y=z#f", "https://example.org:8443/a/x?y=z"),
            ("../../../../x", "https://example.org:8443/x"),
            ("?q", "https://example.org:8443/a/b/c?q"),
            ("", "https://example.org:8443/a/b/c?d"),
            ("//other.org/x", "https://other.org/x"),
            ("HTTPS://Other.org:443", "https://other.org/"),
            ("https://[::1]:5/x", "https://[::1]:5/x"),
            ("/x y", "https://example.org:8443/x%20y"),
        ] {
            assert_eq!(
                base.join(reference).map(|url| url.to_string()),
                Ok(target.into()),
                "{reference}"
            );
        }
        for (reference, problem) in [
            ("http://example.org/", "only https URLs can be fetched over HTTP/3"),
            ("mailto:a@b", "only https URLs can be fetched over HTTP/3"),
            ("example:1", "only https URLs can be fetched over HTTP/3"),
            ("ftp://example.org/", "only https URLs can be fetched over HTTP/3"),
            ("https://u:p@example.org/", "a URL with a user name is not supported"),
            ("https://", "empty host"),
        ] {
            assert_eq!(base.join(reference), Err(problem.into()), "{reference}");
        }
    }

    #[test]
    fn a_directory_takes_the_name_of_a_file() {
        let path = |text: &str| url(text).for_file("ä b.txt").path;
        assert_eq!(path("https://a/b/"), "/b/%C3%A4%20b.txt");
        assert_eq!(path("https://a"), "/%C3%A4%20b.txt");
        assert_eq!(path("https://a/b"), "/b");
        assert_eq!(path("https://a/b?c/"), "/b?c/");
    }

    proptest! {
        #[test]
        fn no_text_panics_and_what_is_read_is_written_alike(
            text in "(https://)?[a-z0-9.:/?#@%\\[\\] \u{0}-\u{20}\u{e4}-]{0,40}",
        ) {
            if let Ok(url) = text.parse::<Url>() {
                prop_assert!(url.path.starts_with('/') && url.path.is_ascii());
                prop_assert_eq!(url.to_string().parse::<Url>(), Ok(url));
            }
        }
    }
}
