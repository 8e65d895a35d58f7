//! Packet numbers, which are sent without their upper bytes (RFC 9000 section 17.1 and appendix A).

/// Size of the longest packet number on the wire.
pub const MAX_NUMBER_SIZE: usize = 4;

/// The lower 1 to 4 bytes of a packet number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TruncatedNumber {
    value: u32,
    size: u8,
}

impl TruncatedNumber {
    /// Truncates `number` to the fewest bytes from which a peer can restore it that has received no packet
    /// above `largest_acked` (RFC 9000 appendix A.2): the bytes must cover more than twice the distance.
    ///
    /// At most four bytes are used, so no sender may let more than 2^31 - 1 packets be outstanding.
    #[must_use]
    pub const fn new(number: u64, largest_acked: Option<u64>) -> Self {
        let distance = match largest_acked {
            Some(acked) => number.saturating_sub(acked),
            None => number.saturating_add(1),
        };
        let size = match distance {
            0..0x80 => 1,
            0x80..0x8000 => 2,
            0x8000..0x80_0000 => 3,
            _ => 4,
        };
        Self::with_size(number, size)
    }

    /// Truncates `number` to `size` bytes, clamped to 1 to 4.
    #[must_use]
    pub const fn with_size(number: u64, size: usize) -> Self {
        let size = match size {
            0 | 1 => 1,
            2..MAX_NUMBER_SIZE => size,
            _ => MAX_NUMBER_SIZE,
        };
        Self { value: (number & ((1 << (8 * size)) - 1)) as u32, size: size as u8 }
    }

    /// Reads a packet number of 1 to 4 bytes; `None` for any other length.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if !(1..=MAX_NUMBER_SIZE).contains(&bytes.len()) {
            return None;
        }
        let value = bytes.iter().fold(0, |value, &byte| value << 8 | u32::from(byte));
        Some(Self { value, size: bytes.len() as u8 })
    }

    /// The packet number with these lower bytes that is nearest to `expected`, which is one more
    /// than the largest number processed so far (RFC 9000 appendix A.3). In the range 0 to 2^62 -
    /// 1.
    #[must_use]
    pub const fn expand(self, expected: u64) -> u64 {
        let window = 1 << (8 * self.size);
        let candidate = (expected & !(window - 1)) | self.value as u64;
        if candidate + window / 2 <= expected && candidate + window < 1 << 62 {
            candidate + window
        } else if candidate > expected + window / 2 && candidate >= window {
            candidate - window
        } else {
            candidate
        }
    }

    /// Size on the wire, 1 to 4 bytes.
    #[must_use]
    pub const fn size(self) -> usize {
        self.size as usize
    }

    /// The bytes on the wire.
    #[must_use]
    #[cfg(test)]
    pub const fn value(self) -> u32 {
        self.value
    }

    /// Appends the bytes.
    pub fn encode(self, out: &mut Vec<u8>) {
        let bytes = self.value.to_be_bytes();
        out.extend_from_slice(&bytes[MAX_NUMBER_SIZE - self.size()..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rfc9000_appendix_a2_sample() {
        assert_eq!(TruncatedNumber::new(0xac5c02, Some(0xabe8b3)).size(), 2);
        assert_eq!(TruncatedNumber::new(0xac5c02, Some(0xabe8b3)).value(), 0x5c02);
        assert_eq!(TruncatedNumber::new(0xace8fe, Some(0xabe8b3)).size(), 3);
    }

    #[test]
    fn rfc9000_appendix_a3_sample() {
        let number = TruncatedNumber::from_bytes(&[0x9b, 0x32]).unwrap();
        assert_eq!(number.expand(0xa82f_30ea + 1), 0xa82f_9b32);
    }

    #[test]
    fn one_to_four_bytes_only() {
        assert_eq!(TruncatedNumber::from_bytes(&[]), None);
        assert_eq!(TruncatedNumber::from_bytes(&[0; 5]), None);
        assert_eq!(TruncatedNumber::with_size(0x1_2345_6789, 9).value(), 0x2345_6789);
        assert_eq!(TruncatedNumber::with_size(0x1_2345_6789, 0).size(), 1);
    }

    #[test]
    fn a_tie_goes_to_the_larger_number() {
        assert_eq!(TruncatedNumber::with_size(0x00, 1).expand(0x180), 0x200);
        assert_eq!(TruncatedNumber::with_size(0x01, 1).expand(0x180), 0x101);
    }

    #[test]
    fn expansion_stays_within_the_number_space() {
        let last = (1 << 62) - 1;
        assert_eq!(TruncatedNumber::with_size(0, 1).expand(last), last & !0xff);
        assert_eq!(TruncatedNumber::with_size(0xff, 1).expand(0), 0xff);
    }

    proptest! {
        /// Holds for any packets that the peer has processed between our largest acknowledged packet and this
        /// one.
        #[test]
        fn truncation_is_undone(
            acked in 0u64..1 << 61, ahead in 1u64..1 << 31, known in any::<proptest::sample::Index>(),
        ) {
            let number = acked + ahead;
            let expected = acked + 1 + known.index(ahead as usize) as u64;
            let truncated = TruncatedNumber::new(number, Some(acked));
            prop_assert_eq!(truncated.expand(expected), number);
            let mut out = Vec::new();
            truncated.encode(&mut out);
            prop_assert_eq!(out.len(), truncated.size());
            prop_assert_eq!(TruncatedNumber::from_bytes(&out), Some(truncated));
        }

        #[test]
        fn truncation_is_undone_before_any_acknowledgement(number in 0u64..(1 << 31) - 1) {
            prop_assert_eq!(TruncatedNumber::new(number, None).expand(0), number);
        }

        #[test]
        fn expansion_is_the_nearest(value in any::<u32>(), size in 1usize..5, expected in 0u64..1 << 62) {
            let truncated = TruncatedNumber::with_size(value.into(), size);
            let number = truncated.expand(expected);
            prop_assert!(number < 1 << 62);
            prop_assert_eq!(TruncatedNumber::with_size(number, size), truncated);
            let window = 1u64 << (8 * size);
            if (window..(1 << 62) - window).contains(&expected) {
                prop_assert!(number.abs_diff(expected) <= window / 2);
            }
        }
    }
}
