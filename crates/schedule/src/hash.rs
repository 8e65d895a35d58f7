//! A hasher for stream keys.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::StreamKey;

/// A map keyed by stream, for schedulers.
///
/// The hash is not keyed. A peer cannot choose the IDs of its streams freely, because opening one
/// opens all below it (RFC 9000, section 3.2), so it cannot cause collisions. Nothing depends on
/// the order of iteration.
pub type KeyMap<V> = HashMap<StreamKey, V, BuildHasherDefault<KeyHasher>>;

/// Hashes the keys of a [`KeyMap`]: Fibonacci hashing, folded so that the low bits, which select the bucket, depend on the whole
/// key.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, key: u64) {
        // 2^64 divided by the golden ratio.
        let product = (self.0 ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ (product >> 32);
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn neighbouring_stream_ids_spread_over_the_buckets() {
        let buckets: HashSet<u64> = (0..1024u64)
            .map(|n| {
                let mut hasher = KeyHasher::default();
                hasher.write_u64(4 * n);
                hasher.finish() % 2048
            })
            .collect();
        // 1024 keys placed at random would occupy 806 of the 2048 buckets.
        assert!(buckets.len() > 700, "{} buckets", buckets.len());
    }
}
