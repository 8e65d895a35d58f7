//! Bits and numbers with adaptive probabilities.

use super::range::Coder;

/// The probability that a bit is 1, which follows the bits that it has seen: first quickly, then slowly.
#[derive(Debug, Clone, Copy)]
pub struct Adaptive {
    /// As a share of 65536.
    one: u16,
    seen: u8,
}

impl Adaptive {
    /// Nothing is known.
    pub const EVEN: Self = Self { one: 1 << 15, seen: 0 };
    /// 1 is rare.
    pub const RARE: Self = Self { one: 1 << 12, seen: 2 };
    /// A bit counts for no less than this part of the probability.
    const SLOWEST: u8 = 60;

    pub fn one(self) -> u16 {
        self.one
    }

    /// Follows a bit.
    pub fn follow(&mut self, bit: bool) {
        // 2 / (2 n + 3) of the way: the first bit is believed by two thirds.
        let way = 2 * i64::from(self.seen) + 3;
        let target = if bit { 65_535 - 16 } else { 16 };
        let step = (target - i64::from(self.one)) * 2 / way;
        self.one = (i64::from(self.one) + step) as u16;
        self.seen = (self.seen + 1).min(Self::SLOWEST);
    }

    pub fn code(&mut self, coder: &mut impl Coder, bit: bool) -> bool {
        let bit = coder.bit(bit, self.one);
        self.follow(bit);
        bit
    }
}

/// Bits in a number's length.
const LENGTH_BITS: u32 = 5;
/// The longest number in bits.
const MAX_BITS: u32 = 24;

/// Numbers below 2^24, smaller ones in fewer bits: how many bits it has is coded by a tree of adaptive
/// probabilities, and those below the highest as they are.
#[derive(Debug, Clone)]
pub struct Number {
    lengths: [Adaptive; 1 << LENGTH_BITS],
}

impl Default for Number {
    fn default() -> Self {
        let mut lengths = [Adaptive::EVEN; 1 << LENGTH_BITS];
        // Most have less than 16 bits.
        lengths[1] = Adaptive::RARE;
        Self { lengths }
    }
}

impl Number {
    /// Codes a number that is less than 2^24.
    pub fn code(&mut self, coder: &mut impl Coder, value: u32) -> u32 {
        let length = u32::BITS - value.leading_zeros();
        let mut node = 1;
        for place in (0..LENGTH_BITS).rev() {
            let bit = self.lengths[node].code(coder, length >> place & 1 == 1);
            node = 2 * node + usize::from(bit);
        }
        let length = (node as u32 - (1 << LENGTH_BITS)).min(MAX_BITS);
        let Some(below) = length.checked_sub(1) else { return 0 };
        1 << below | raw(coder, value, below)
    }

    /// Codes a number of either sign that is less than 2^22 from 0.
    pub fn signed(&mut self, coder: &mut impl Coder, value: i32) -> i32 {
        let zigzag = self.code(coder, ((value << 1) ^ (value >> 31)) as u32);
        (zigzag >> 1) as i32 ^ -((zigzag & 1) as i32)
    }
}

/// The lowest bits of a number, each as likely as not.
pub fn raw(coder: &mut impl Coder, value: u32, bits: u32) -> u32 {
    (0..bits)
        .rev()
        .fold(0, |all, place| all << 1 | u32::from(coder.bit(value >> place & 1 == 1, 1 << 15)))
}

#[cfg(test)]
mod tests {
    use super::super::range::{RangeDecoder, RangeEncoder};
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_are_read_as_they_were_written(
            values in proptest::collection::vec((0..1_u32 << 24, 0..24_u32), 0..100),
            signed in proptest::collection::vec(-70_000..70_000, 0..100),
        ) {
            let values: Vec<u32> = values.iter().map(|(value, shift)| value >> shift).collect();
            let (mut coder, mut number, mut other) =
                (RangeEncoder::new(), Number::default(), Number::default());
            values.iter().for_each(|&value| assert_eq!(number.code(&mut coder, value), value));
            signed.iter().for_each(|&value| assert_eq!(other.signed(&mut coder, value), value));
            let bytes = coder.finish();
            let (mut coder, mut number, mut other) =
                (RangeDecoder::new(&bytes), Number::default(), Number::default());
            for &value in &values {
                prop_assert_eq!(number.code(&mut coder, 7), value);
            }
            for &value in &signed {
                prop_assert_eq!(other.signed(&mut coder, 7), value);
            }
        }

        #[test]
        fn what_comes_again_takes_few_bytes(value in 0..8_u32) {
            let (mut coder, mut number) = (RangeEncoder::new(), Number::default());
            (0..100).for_each(|_| {
                number.code(&mut coder, value);
            });
            // Its bits below the highest are not learnt.
            let bytes = coder.finish().len();
            prop_assert!(bytes < 12 + 100 * 2 / 8, "{bytes}");
        }

        #[test]
        fn numbers_from_any_bytes_are_within_their_bounds(bytes: Vec<u8>) {
            let (mut coder, mut number) = (RangeDecoder::new(&bytes), Number::default());
            for _ in 0..100 {
                prop_assert!(number.code(&mut coder, 0) < 1 << 24);
                prop_assert!(number.signed(&mut coder, 0).abs() <= 1 << 23);
            }
        }
    }
}
