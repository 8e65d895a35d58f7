//! How much of flows was taken, as capsules on one exchange of a connection.

use bytes::Bytes;
use sutura::http::Capsule;

/// The type of the capsule: pairs of two variable-length integers, the number of the stream that carries a flow and
/// how much of it was taken.
pub const PROGRESS: u64 = 0x5375_7475_7261;
/// Most pairs in a capsule that is written.
pub const MAX_PROGRESS: usize = 1024;

/// How much of a flow the program behind an end has taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The number of the stream that carries the flow.
    pub stream: u64,
    /// Bytes from the beginning of the flow that are not to be sent again, and one more once its end is.
    pub taken: u64,
}

/// The capsule for at most [`MAX_PROGRESS`] pairs; further ones are left out.
#[must_use]
pub fn write_progress(all: &[Progress]) -> Capsule {
    let mut value = Vec::with_capacity(all.len().min(MAX_PROGRESS) * 8);
    for Progress { stream, taken } in all.iter().take(MAX_PROGRESS) {
        put_varint(&mut value, *stream);
        put_varint(&mut value, *taken);
    }
    Capsule { kind: PROGRESS, value: value.into() }
}

/// The pairs of a capsule; `None` if it is malformed.
#[must_use]
pub fn read_progress(value: &Bytes) -> Option<Vec<Progress>> {
    let (mut rest, mut all) = (&value[..], Vec::new());
    while !rest.is_empty() {
        let (stream, taken) = (take_varint(&mut rest)?, take_varint(&mut rest)?);
        all.push(Progress { stream, taken });
    }
    Some(all)
}

/// Appends a number of at most 62 bits (RFC 9000 section 16).
fn put_varint(out: &mut Vec<u8>, value: u64) {
    match value {
        0..0x40 => out.push(value as u8),
        0x40..0x4000 => out.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes()),
        0x4000..0x4000_0000 => out.extend_from_slice(&(value as u32 | 0x8000_0000).to_be_bytes()),
        _ => out.extend_from_slice(&(value | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

fn take_varint(rest: &mut &[u8]) -> Option<u64> {
    let first = *rest.first()?;
    let (bytes, after) = rest.split_at_checked(1 << (first >> 6))?;
    *rest = after;
    let value = bytes
        .iter()
        .skip(1)
        .fold(u64::from(first & 0x3f), |all, &byte| (all << 8) | u64::from(byte));
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_there_and_back() {
        let numbers = [0, 0x3f, 0x40, 0x3fff, 0x4000, 0x3fff_ffff, 0x4000_0000, (1 << 62) - 1];
        let all: Vec<Progress> =
            numbers.iter().map(|&n| Progress { stream: n, taken: n / 2 }).collect();
        let capsule = write_progress(&all);
        assert_eq!(read_progress(&capsule.value), Some(all));
        for cut in [1, 2, 5] {
            assert_eq!(read_progress(&capsule.value.slice(..cut)).is_some(), cut == 2, "{cut}");
        }
    }

    #[test]
    fn a_capsule_of_most_pairs_can_be_received() {
        let most = vec![Progress { stream: 1 << 61, taken: 1 << 61 }; 2 * MAX_PROGRESS];
        let capsule = write_progress(&most);
        assert!(capsule.value.len() <= sutura::http::MAX_CAPSULE_SIZE);
        assert_eq!(read_progress(&capsule.value).map(|all| all.len()), Some(MAX_PROGRESS));
        // It is no type that is reserved for greasing (RFC 9297 section 5.4).
        assert_ne!(PROGRESS % 0x29, 0x17);
    }
}
