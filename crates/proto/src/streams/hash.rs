//! A map from stream identifiers: several are looked up for each packet.

use crate::ids::StreamId;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

/// A map from stream identifiers. No order of iteration may be relied on.
pub(super) type StreamMap<V> = HashMap<StreamId, V, StreamHash>;

/// Multiplies with a secret and folds the product: much cheaper than the standard library's hash,
/// and still a peer, which chooses the identifiers and cannot see where they go, cannot make them
/// collide.
#[derive(Debug, Clone)]
pub(super) struct StreamHash {
    offset: u64,
    factor: u64,
}

impl Default for StreamHash {
    fn default() -> Self {
        let random = RandomState::new();
        Self { offset: random.hash_one(0), factor: random.hash_one(1) | 1 }
    }
}

impl BuildHasher for StreamHash {
    type Hasher = StreamHasher;

    fn build_hasher(&self) -> StreamHasher {
        StreamHasher { state: self.offset, factor: self.factor }
    }
}

/// See [`StreamHash`].
#[derive(Debug, Clone, Copy)]
pub(super) struct StreamHasher {
    state: u64,
    factor: u64,
}

impl Hasher for StreamHasher {
    fn finish(&self) -> u64 {
        self.state
    }

    fn write_u64(&mut self, id: u64) {
        let product = u128::from(self.state ^ id) * u128::from(self.factor);
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
    use super::*;
    use crate::ids::{Dir, Side};
    use std::collections::HashSet;

    #[test]
    fn neighbours_spread_and_each_map_has_a_secret() {
        let ids = (0..1024).map(|n| StreamId::new(Side::Client, Dir::Bi, n));
        // Many secrets, so that the average is far from the bound.
        let maps: Vec<_> = (0..64).map(|_| StreamHash::default()).collect();
        let filled: usize = maps
            .iter()
            .map(|map| ids.clone().map(|id| map.hash_one(id) % 2048).collect::<HashSet<_>>().len())
            .sum();
        // Balls thrown at random into 2048 bins would fill 806 of them.
        assert!(filled / maps.len() > 700, "{} buckets", filled / maps.len());
        let hashes: HashSet<_> = maps.iter().map(|map| map.hash_one(StreamId(4))).collect();
        assert_eq!(hashes.len(), maps.len());
    }
}
