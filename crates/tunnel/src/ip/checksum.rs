//! The checksum of the Internet (RFC 1071).

/// The sum of the 16-bit words of `data`, a last odd byte padded with zero, added to `sum`.
pub(crate) fn add(sum: u32, data: &[u8]) -> u32 {
    let (words, rest) = data.as_chunks::<2>();
    let last = rest.first().map(|byte| [*byte, 0]);
    let words = words.iter().copied().chain(last).map(|word| u32::from(u16::from_be_bytes(word)));
    // A packet has at most 65,535 bytes: the carries of its words fit in 32 bits.
    words.fold(sum, |sum, word| fold(sum + word))
}

/// Carries added in.
fn fold(sum: u32) -> u32 {
    (sum & 0xffff) + (sum >> 16)
}

/// The checksum of what was summed up.
pub(crate) fn finish(sum: u32) -> u16 {
    !(fold(fold(sum)) as u16)
}

/// The checksum `old` after a word of what it covers has changed (RFC 1624, equation 3).
pub(super) fn update(old: [u8; 2], before: [u8; 2], after: [u8; 2]) -> [u8; 2] {
    let sum = u32::from(!u16::from_be_bytes(old)) + u32::from(!u16::from_be_bytes(before));
    finish(sum + u32::from(u16::from_be_bytes(after))).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_example_of_the_rfc_is_summed_up() {
        let data = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(finish(add(0, &data)), !0xddf2);
        assert_eq!(finish(add(0, &[1, 2, 3])), finish(add(0, &[1, 2, 3, 0])));
    }

    proptest! {
        #[test]
        fn an_update_is_as_good_as_a_new_sum(
            mut data in prop::collection::vec(any::<u8>(), 2..64), at: usize, after: [u8; 2],
        ) {
            let at = at % (data.len() / 2) * 2;
            let old = finish(add(0, &data)).to_be_bytes();
            let before = [data[at], data[at + 1]];
            data[at..at + 2].copy_from_slice(&after);
            // Zero has two forms, which a receiver takes for the same.
            let valid = |sum: [u8; 2]| finish(add(u32::from(u16::from_be_bytes(sum)), &data));
            prop_assert!([0, 0xffff].contains(&valid(update(old, before, after))));
        }
    }
}
