//! The random numbers of a connection.

use rand::rngs::StdRng;
use rand::{Rng, RngCore, SeedableRng};

/// How many words are drawn at a time: those of a handshake, and some more.
const WORDS: usize = 6;

/// A generator of random numbers for a connection. It draws a few words at a time from one that goes away
/// again, because one that stays takes three times the memory, and most connections need few numbers.
#[derive(Debug)]
pub struct Randomness {
    /// The seed of the next generator.
    seed: [u8; 32],
    words: [u64; WORDS],
    /// How many of `words` are used.
    used: u8,
    /// How many of `coins` are used.
    tossed: u8,
    coins: u64,
}

impl Randomness {
    /// Goes on where `generator` is.
    pub fn new(mut generator: StdRng) -> Self {
        let (seed, words) = (generator.random(), generator.random());
        Self { seed, words, used: 0, tossed: 64, coins: 0 }
    }

    /// A random bit, which is cheap enough to be drawn for each packet.
    #[inline]
    pub fn coin(&mut self) -> bool {
        if self.tossed == 64 {
            (self.coins, self.tossed) = (self.next_u64(), 0);
        }
        let coin = self.coins >> self.tossed & 1 == 1;
        self.tossed += 1;
        coin
    }
}

impl RngCore for Randomness {
    fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }

    fn next_u64(&mut self) -> u64 {
        if usize::from(self.used) == WORDS {
            let mut generator = StdRng::from_seed(self.seed);
            (self.seed, self.words, self.used) = (generator.random(), generator.random(), 0);
        }
        // A word is not kept after it was used: it may have become an identifier or the seed of a secret.
        let word = std::mem::take(&mut self.words[usize::from(self.used)]);
        self.used += 1;
        word
    }

    fn fill_bytes(&mut self, out: &mut [u8]) {
        for chunk in out.chunks_mut(8) {
            chunk.copy_from_slice(&self.next_u64().to_le_bytes()[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn randomness(seed: u8) -> Randomness {
        Randomness::new(StdRng::from_seed([seed; 32]))
    }

    #[test]
    fn numbers_differ_within_and_between_seeds() {
        let mut numbers = Vec::new();
        for mut randomness in [randomness(1), randomness(2)] {
            numbers.extend((0..100).map(|_| randomness.next_u64()));
            let mut bytes = [0; 20];
            randomness.fill_bytes(&mut bytes);
            let quarters = bytes.as_chunks().0.iter();
            numbers.extend(quarters.map(|bytes| u64::from(u32::from_le_bytes(*bytes))));
        }
        let all = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), all);
        assert_eq!(randomness(1).next_u64(), randomness(1).next_u64());
    }

    #[test]
    fn coins_fall_on_both_sides_and_leave_the_numbers_alone() {
        let mut randomness = randomness(3);
        let heads = (0..10_000).filter(|_| randomness.coin()).count();
        assert!((4_800..5_200).contains(&heads), "{heads}");
        let tossed = randomness.tossed;
        for _ in 0..2 * WORDS {
            randomness.next_u64();
        }
        assert_eq!(randomness.tossed, tossed);
    }
}
