//! The static table (RFC 9204 appendix A).

use std::sync::LazyLock;

/// The number of entries.
const SIZE: usize = 99;

/// Names and values by index.
#[rustfmt::skip]
static TABLE: [(&str, &str); SIZE] = [
    (":authority", ""),
    (":path", "/"),
    ("age", "0"),
    ("content-disposition", ""),
    ("content-length", "0"),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("referer", ""),
    ("set-cookie", ""),
    (":method", "CONNECT"),
    (":method", "DELETE"),
    (":method", "GET"),
    (":method", "HEAD"),
    (":method", "OPTIONS"),
    (":method", "POST"),
    (":method", "PUT"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "103"),
    (":status", "200"),
    (":status", "304"),
    (":status", "404"),
    (":status", "503"),
    ("accept", "*/*"),
    ("accept", "application/dns-message"),
    ("accept-encoding", "gzip, deflate, br"),
    ("accept-ranges", "bytes"),
    ("access-control-allow-headers", "cache-control"),
    ("access-control-allow-headers", "content-type"),
    ("access-control-allow-origin", "*"),
    ("cache-control", "max-age=0"),
    ("cache-control", "max-age=2592000"),
    ("cache-control", "max-age=604800"),
    ("cache-control", "no-cache"),
    ("cache-control", "no-store"),
    ("cache-control", "public, max-age=31536000"),
    ("content-encoding", "br"),
    ("content-encoding", "gzip"),
    ("content-type", "application/dns-message"),
    ("content-type", "application/javascript"),
    ("content-type", "application/json"),
    ("content-type", "application/x-www-form-urlencoded"),
    ("content-type", "image/gif"),
    ("content-type", "image/jpeg"),
    ("content-type", "image/png"),
    ("content-type", "text/css"),
    ("content-type", "text/html; charset=utf-8"),
    ("content-type", "text/plain"),
    ("content-type", "text/plain;charset=utf-8"),
    ("range", "bytes=0-"),
    ("strict-transport-security", "max-age=31536000"),
    ("strict-transport-security", "max-age=31536000; includesubdomains"),
    ("strict-transport-security", "max-age=31536000; includesubdomains; preload"),
    ("vary", "accept-encoding"),
    ("vary", "origin"),
    ("x-content-type-options", "nosniff"),
    ("x-xss-protection", "1; mode=block"),
    (":status", "100"),
    (":status", "204"),
    (":status", "206"),
    (":status", "302"),
    (":status", "400"),
    (":status", "403"),
    (":status", "421"),
    (":status", "425"),
    (":status", "500"),
    ("accept-language", ""),
    ("access-control-allow-credentials", "FALSE"),
    ("access-control-allow-credentials", "TRUE"),
    ("access-control-allow-headers", "*"),
    ("access-control-allow-methods", "get"),
    ("access-control-allow-methods", "get, post, options"),
    ("access-control-allow-methods", "options"),
    ("access-control-expose-headers", "content-length"),
    ("access-control-request-headers", "content-type"),
    ("access-control-request-method", "get"),
    ("access-control-request-method", "post"),
    ("alt-svc", "clear"),
    ("authorization", ""),
    ("content-security-policy", "script-src 'none'; object-src 'none'; base-uri 'none'"),
    ("early-data", "1"),
    ("expect-ct", ""),
    ("forwarded", ""),
    ("if-range", ""),
    ("origin", ""),
    ("purpose", "prefetch"),
    ("server", ""),
    ("timing-allow-origin", "*"),
    ("upgrade-insecure-requests", "1"),
    ("user-agent", ""),
    ("x-forwarded-for", ""),
    ("x-frame-options", "deny"),
    ("x-frame-options", "sameorigin"),
];

/// Indices sorted by name, then ascending, for searching by name.
static BY_NAME: LazyLock<[u8; SIZE]> = LazyLock::new(|| {
    let mut order = std::array::from_fn(|index| index as u8);
    order.sort_by_key(|&index| TABLE[usize::from(index)].0);
    order
});

/// The entry at `index`.
pub(crate) fn get(index: u64) -> Option<(&'static str, &'static str)> {
    TABLE.get(usize::try_from(index).ok()?).copied()
}

/// The result of searching for a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Match {
    /// An entry with its name and value.
    Line(u64),
    /// An entry with its name only.
    Name(u64),
    /// No entry with its name.
    None,
}

/// Searches for a field.
pub(crate) fn find(name: &[u8], value: &[u8]) -> Match {
    let entry = |&index: &u8| TABLE[usize::from(index)];
    let start = BY_NAME.partition_point(|index| entry(index).0.as_bytes() < name);
    let mut found = Match::None;
    for index in BY_NAME.iter().skip(start) {
        let (entry_name, entry_value) = entry(index);
        if entry_name.as_bytes() != name {
            break;
        }
        if entry_value.as_bytes() == value {
            return Match::Line(u64::from(*index));
        }
        if found == Match::None {
            found = Match::Name(u64::from(*index));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_found_at_its_index() {
        for (index, (name, value)) in TABLE.iter().enumerate() {
            assert_eq!(find(name.as_bytes(), value.as_bytes()), Match::Line(index as u64));
            assert_eq!(get(index as u64), Some((*name, *value)));
        }
        assert_eq!(get(99), None);
        assert_eq!(get(u64::MAX), None);
    }

    #[test]
    fn names_are_found_at_their_first_index() {
        assert_eq!(find(b":status", b"418"), Match::Name(24));
        assert_eq!(find(b"x-frame-options", b""), Match::Name(97));
        assert_eq!(find(b":authority", b"example.com"), Match::Name(0));
        assert_eq!(find(b"zzz", b""), Match::None);
        assert_eq!(find(b"", b""), Match::None);
    }
}
