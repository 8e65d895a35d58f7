//! A map from stream identifiers: several are looked up for each packet.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

use crate::StreamKey;

/// A map keyed by stream, for schedulers. Do not rely on the order of iteration.
pub type KeyMap<V> = HashMap<StreamKey, V, KeyHash>;

/// The hash of a [`KeyMap`]: multiplies with a secret and folds the product. It is much cheaper than
/// the hash of the standard library. A peer chooses the identifiers of its streams, but it does not
/// know the secret, so it cannot make them collide.
#[derive(Clone, Debug)]
pub struct KeyHash {
    offset: u64,
    factor: u64,
}

impl Default for KeyHash {
    /// A hash with a secret of its own.
    fn default() -> Self {
        let random = RandomState::new();
        Self { offset: random.hash_one(0), factor: random.hash_one(1) | 1 }
    }
}

impl BuildHasher for KeyHash {
    type Hasher = KeyHasher;

    fn build_hasher(&self) -> KeyHasher {
        KeyHasher { state: self.offset, factor: self.factor }
    }
}

/// The hasher of a [`KeyHash`].
#[derive(Clone, Copy, Debug)]
pub struct KeyHasher {
    state: u64,
    factor: u64,
}

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.state
    }

    fn write_u64(&mut self, key: u64) {
        let product = u128::from(self.state ^ key) * u128::from(self.factor);
        self.state = (product as u64) ^ ((product >> 64) as u64);
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
    fn neighbouring_stream_ids_spread_and_each_map_has_a_secret() {
        // Many secrets, so that the average is far from the bound.
        let maps: Vec<_> = (0..64).map(|_| KeyHash::default()).collect();
        let buckets = |map: &KeyHash| -> usize {
            let buckets = (0..1024u64).map(|n| map.hash_one(4 * n) % 2048);
            buckets.collect::<HashSet<_>>().len()
        };
        let filled: usize = maps.iter().map(buckets).sum();
        // 1024 keys placed at random would occupy 806 of the 2048 buckets.
        assert!(filled / maps.len() > 700, "{} buckets", filled / maps.len());
        let hashes: HashSet<_> = maps.iter().map(|map| map.hash_one(4u64)).collect();
        assert_eq!(hashes.len(), maps.len());
    }
}
