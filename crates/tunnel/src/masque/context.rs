//! What HTTP datagrams carry behind the number of a context: payloads of UDP (RFC 9298 section 5) or packets of IP (RFC
//! 9484 section 6).

use bytes::{Buf, Bytes};

/// The context of both.
const CONTEXT: u8 = 0;
/// Bytes that a datagram has beside what it carries.
pub const CONTEXT_BYTES: usize = 1;
/// The largest payload of UDP, in bytes (RFC 9298 section 5).
pub const MAX_UDP_PAYLOAD: usize = 65_527;

/// The payload that an HTTP datagram carries; `None` if it is of another context, which is unknown, or larger than
/// any of UDP, and is dropped.
#[must_use]
pub fn read_datagram(mut datagram: Bytes) -> Option<Bytes> {
    let first = *datagram.first()?;
    // The number may be written in 1, 2, 4 or 8 bytes (RFC 9000 section 16).
    let length = 1_usize << (first >> 6);
    let context = datagram.get(..length)?;
    if first & 0x3f != CONTEXT || context.iter().skip(1).any(|&byte| byte != 0) {
        return None;
    }
    datagram.advance(length);
    (datagram.len() <= MAX_UDP_PAYLOAD).then_some(datagram)
}

/// Begins an HTTP datagram, to which what it carries is to be appended.
pub fn write_datagram(out: &mut Vec<u8>) {
    out.clear();
    out.push(CONTEXT);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_of_other_contexts_are_dropped() {
        let read = |bytes: &[u8]| read_datagram(Bytes::copy_from_slice(bytes));
        assert_eq!(read(b"\0abc").as_deref(), Some(&b"abc"[..]));
        assert_eq!(read(b"\0").as_deref(), Some(&b""[..]));
        assert_eq!(read(b"\x40\0a").as_deref(), Some(&b"a"[..]));
        assert_eq!(read(b"\xc0\0\0\0\0\0\0\0a").as_deref(), Some(&b"a"[..]));
        for dropped in [&b""[..], b"\x02a", b"\x40", b"\x40\x02a", b"\xc0\0\0\0\0\0\0\x01a"] {
            assert_eq!(read(dropped), None, "{dropped:?}");
        }
        let mut large = vec![0; MAX_UDP_PAYLOAD + 1];
        assert!(read(&large).is_some());
        large.push(0);
        assert_eq!(read(&large), None);
    }
}
