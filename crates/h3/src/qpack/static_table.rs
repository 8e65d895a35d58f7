//! The static table (RFC 9204 appendix A).

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

/// The number of slots of [`INDEX`], a power of two.
const SLOTS: usize = 128;

/// The end of a chain, and the content of an empty slot.
const NONE: u8 = u8::MAX;

/// Finds entries by name.
struct Index {
    /// The first entry of each name, in the slot of the name's hash or in one of the next.
    first: [u8; SLOTS],
    /// The next entry with the same name as an entry.
    next: [u8; SIZE],
}

static INDEX: Index = {
    let mut index = Index { first: [NONE; SLOTS], next: [NONE; SIZE] };
    let mut entry = SIZE;
    // From the last entry to the first, so that each is put before those with its name.
    while entry > 0 {
        entry -= 1;
        let name = TABLE[entry].0.as_bytes();
        let mut slot = hash(name);
        while index.first[slot] != NONE {
            let other = index.first[slot];
            if is_equal(TABLE[other as usize].0.as_bytes(), name) {
                index.next[entry] = other;
                break;
            }
            slot = (slot + 1) % SLOTS;
        }
        index.first[slot] = entry as u8;
    }
    index
};

/// The slot of a name. Two of the names of the table share their slot with another.
const fn hash(name: &[u8]) -> usize {
    let [first, .., last] = name else { return 0 };
    let middle = name[name.len() / 2];
    (*first as usize + 3 * name.len() + 7 * middle as usize + 11 * *last as usize) % SLOTS
}

/// Whether two names are equal, while the index is built.
const fn is_equal(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

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
    let Some(first) = first_of(name) else { return Match::None };
    let mut index = first;
    while let Some((_, entry_value)) = TABLE.get(usize::from(index)) {
        if entry_value.as_bytes() == value {
            return Match::Line(u64::from(index));
        }
        index = INDEX.next[usize::from(index)];
    }
    Match::Name(u64::from(first))
}

/// The first entry with a name.
fn first_of(name: &[u8]) -> Option<u8> {
    let mut slot = hash(name);
    loop {
        let first = INDEX.first[slot % SLOTS];
        let (entry_name, _) = TABLE.get(usize::from(first))?;
        if entry_name.as_bytes() == name {
            return Some(first);
        }
        slot += 1;
    }
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
