//! Data that can be generated and checked at any offset.

use sutura_random::SplitMix64;

/// An endless sequence of pseudo-random bytes, determined by a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    key: u64,
}

impl Pattern {
    /// The sequence for `key`. Different keys give unrelated sequences.
    #[must_use]
    pub const fn new(key: u64) -> Self {
        Self { key: SplitMix64::nth(key, 0) }
    }

    /// Fills `out` with the bytes starting at `offset`.
    pub fn fill(&self, offset: u64, out: &mut [u8]) {
        self.words(offset, out.len(), |at, bytes| out[at..at + bytes.len()].copy_from_slice(bytes));
    }

    /// The offset of the first byte in `data` that differs from what [`fill`](Self::fill) would
    /// write.
    #[must_use]
    pub fn mismatch(&self, offset: u64, data: &[u8]) -> Option<u64> {
        let mut first = None;
        self.words(offset, data.len(), |at, bytes| {
            let part = &data[at..at + bytes.len()];
            if first.is_none() && part != bytes {
                let wrong = part.iter().zip(bytes).take_while(|(a, b)| a == b).count();
                first = Some(offset + (at + wrong) as u64);
            }
        });
        first
    }

    /// Calls `visit` for `len` bytes starting at `offset`, in pieces of at most eight bytes, each
    /// with its position relative to `offset`.
    fn words(&self, offset: u64, len: usize, mut visit: impl FnMut(usize, &[u8])) {
        let mut index = offset / 8;
        let mut skip = (offset % 8) as usize;
        let mut at = 0;
        while at < len {
            let word = SplitMix64::nth(self.key ^ index, 0).to_le_bytes();
            let end = 8.min(skip + len - at);
            visit(at, &word[skip..end]);
            at += end - skip;
            skip = 0;
            index += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_agree_with_the_whole() {
        let pattern = Pattern::new(3);
        let mut whole = [0; 100];
        pattern.fill(0, &mut whole);
        for start in 0..20 {
            for end in start..100 {
                let mut piece = vec![0; end - start];
                pattern.fill(start as u64, &mut piece);
                assert_eq!(piece, whole[start..end]);
                assert_eq!(pattern.mismatch(start as u64, &piece), None);
            }
        }
    }

    #[test]
    fn every_wrong_byte_is_found_and_so_is_a_shift() {
        let pattern = Pattern::new(4);
        let mut data = [0; 64];
        pattern.fill(13, &mut data);
        for i in 0..data.len() {
            data[i] ^= 1;
            assert_eq!(pattern.mismatch(13, &data), Some(13 + i as u64));
            data[i] ^= 1;
        }
        assert!(pattern.mismatch(12, &data).is_some());
        assert!(Pattern::new(5).mismatch(13, &data).is_some());
    }
}
