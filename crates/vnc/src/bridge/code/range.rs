//! A binary range coder: bits in as many bytes as their probabilities make necessary.
//!
//! The carry-less coder of the PAQ archivers: a range of 32 bits is split in proportion to the probability of
//! a bit, and a byte is written as soon as both ends of the range begin with it. Integers alone, so that both
//! ends of the bridge count the same on any machine.

/// A bit that has come to the coder, with the probability that it is 1 as a share of 65536, not 0.
///
/// The encoder writes the bit that it is given and returns it; the decoder ignores it and returns the bit that
/// it reads. So one function describes both directions, and they cannot differ.
pub trait Coder {
    fn bit(&mut self, bit: bool, one: u16) -> bool;
}

/// Bytes that a decoder reads before it needs them, and the most that an encoder leaves out at the end.
const AHEAD: usize = 4;

/// Where a range is split. Both parts have a value at least, since bytes that both ends share are shifted out.
fn middle(low: u32, high: u32, one: u16) -> u32 {
    let range = u64::from(high - low);
    low + ((range * u64::from(one)) >> 16) as u32
}

/// Whether the first byte of a range is known.
fn is_settled(low: u32, high: u32) -> bool {
    (low ^ high) >> 24 == 0
}

#[derive(Debug)]
pub struct RangeEncoder {
    low: u32,
    high: u32,
    out: Vec<u8>,
}

impl RangeEncoder {
    pub fn new() -> Self {
        Self { low: 0, high: u32::MAX, out: Vec::new() }
    }

    /// Bytes written so far; up to four more may follow.
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// The bytes. The decoder takes zeros to follow them, so that the last few need not be written.
    pub fn finish(mut self) -> Vec<u8> {
        // The shortest value within the range, read as if zeros followed.
        let shortest = (0..=4).map(|bytes| {
            let rest = u32::MAX.checked_shr(8 * bytes).unwrap_or(0);
            (bytes as usize, self.low.saturating_add(rest) & !rest)
        });
        let fits = |&(_, value): &(usize, u32)| self.low <= value && value <= self.high;
        let (bytes, value) = shortest.into_iter().find(fits).unwrap_or((4, self.low));
        self.out.extend(&value.to_be_bytes()[..bytes]);
        self.out
    }
}

impl Coder for RangeEncoder {
    fn bit(&mut self, bit: bool, one: u16) -> bool {
        let middle = middle(self.low, self.high, one);
        if bit {
            self.high = middle;
        } else {
            self.low = middle + 1;
        }
        while is_settled(self.low, self.high) {
            self.out.push((self.high >> 24) as u8);
            self.low <<= 8;
            self.high = self.high << 8 | 0xff;
        }
        bit
    }
}

#[derive(Debug)]
pub struct RangeDecoder<'a> {
    low: u32,
    high: u32,
    value: u32,
    input: &'a [u8],
    /// Bytes read beyond the end.
    beyond: usize,
}

impl<'a> RangeDecoder<'a> {
    pub fn new(input: &'a [u8]) -> Self {
        let mut decoder = Self { low: 0, high: u32::MAX, value: 0, input, beyond: 0 };
        (0..AHEAD).for_each(|_| decoder.shift());
        decoder
    }

    /// Whether more was read than an encoder leaves out, so that something is missing.
    pub fn is_short(&self) -> bool {
        self.beyond > AHEAD
    }

    fn shift(&mut self) {
        let byte = self.input.split_off_first().copied();
        self.beyond += usize::from(byte.is_none());
        self.value = self.value << 8 | u32::from(byte.unwrap_or_default());
    }
}

impl Coder for RangeDecoder<'_> {
    fn bit(&mut self, _: bool, one: u16) -> bool {
        let middle = middle(self.low, self.high, one);
        let bit = self.value <= middle;
        if bit {
            self.high = middle;
        } else {
            self.low = middle + 1;
        }
        while is_settled(self.low, self.high) {
            self.low <<= 8;
            self.high = self.high << 8 | 0xff;
            self.shift();
        }
        bit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encode(bits: &[(bool, u16)]) -> Vec<u8> {
        let mut encoder = RangeEncoder::new();
        bits.iter().for_each(|&(bit, one)| assert_eq!(encoder.bit(bit, one), bit));
        let before = encoder.len();
        let bytes = encoder.finish();
        assert!((before..=before + AHEAD).contains(&bytes.len()));
        bytes
    }

    proptest! {
        #[test]
        fn bits_are_read_as_they_were_written(
            bits in proptest::collection::vec((any::<bool>(), 1..=u16::MAX), 0..2000),
        ) {
            let bytes = encode(&bits);
            let mut decoder = RangeDecoder::new(&bytes);
            for &(bit, one) in &bits {
                prop_assert_eq!(decoder.bit(!bit, one), bit);
            }
            prop_assert!(!decoder.is_short());
            // As many bytes as the probabilities make necessary.
            let cost: f64 = bits.iter().map(|&(bit, one)| {
                let one = f64::from(one) / 65536.0;
                -(if bit { one } else { 1.0 - one }).log2()
            }).sum();
            prop_assert!((bytes.len() as f64) < cost / 8.0 * 1.01 + 5.0, "{} {cost}", bytes.len());
        }
    }

    #[test]
    fn few_bits_are_read_as_they_were_written() {
        for bits in 1..1_u32 << 12 {
            let count = bits.ilog2().min(11);
            for one in [1, 1 << 8, 1 << 15, 60_000, u16::MAX] {
                let bits: Vec<_> = (0..count).map(|place| (bits >> place & 1 == 1, one)).collect();
                let bytes = encode(&bits);
                let mut decoder = RangeDecoder::new(&bytes);
                assert!(bits.iter().all(|&(bit, one)| decoder.bit(false, one) == bit), "{bits:?}");
                assert!(!decoder.is_short());
            }
        }
    }

    #[test]
    fn what_is_missing_is_noticed() {
        let bits: Vec<_> = (0..800).map(|number| (number % 3 == 0, 1 << 15)).collect();
        let bytes = encode(&bits);
        assert!((100..=101).contains(&bytes.len()));
        let mut decoder = RangeDecoder::new(&bytes[..50]);
        (0..800).for_each(|_| {
            decoder.bit(false, 1 << 15);
        });
        assert!(decoder.is_short());
    }
}
