//! Integers with a prefix (RFC 7541 section 5.1, RFC 9204 section 4.1.1).

/// The largest integer that is decoded. RFC 9204 requires 62 bits.
const MAX: u64 = (1 << 62) - 1;

/// Most continuation bytes of an integer. Ten hold 70 bits; more zeros would be abuse.
const MAX_CONTINUATION: u32 = 10;

/// The integer is cut short or exceeds 62 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IntegerError {
    /// The input ends within the integer.
    Incomplete,
    /// The integer has more than 62 bits, or more bytes than any such integer needs.
    Overflow,
}

/// An integer whose continuation bytes are still to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Partial {
    value: u64,
    bytes: u32,
}

/// The result of a decoding step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Done(u64),
    More(Partial),
}

/// Starts an integer with its first byte, whose low `prefix` bits (1 to 8) belong to it.
pub(crate) const fn start(first: u8, prefix: u32) -> Step {
    let mask = (0xff_u16 >> (8 - prefix)) as u8;
    if first & mask < mask {
        Step::Done((first & mask) as u64)
    } else {
        Step::More(Partial { value: mask as u64, bytes: 0 })
    }
}

impl Partial {
    /// Takes the next byte.
    pub(crate) fn push(self, byte: u8) -> Result<Step, IntegerError> {
        if self.bytes == MAX_CONTINUATION {
            return Err(IntegerError::Overflow);
        }
        let part = u64::from(byte & 0x7f);
        let shift = 7 * self.bytes;
        let shifted = part.checked_shl(shift).filter(|shifted| shifted >> shift == part);
        // A shift by 64 or more loses all bits; only zeros are permitted there.
        let shifted = if part == 0 { Some(0) } else { shifted };
        let value = shifted.and_then(|shifted| self.value.checked_add(shifted));
        let value = value.filter(|&value| value <= MAX).ok_or(IntegerError::Overflow)?;
        if byte & 0x80 == 0 {
            return Ok(Step::Done(value));
        }
        Ok(Step::More(Self { value, bytes: self.bytes + 1 }))
    }
}

/// Takes one integer off the front of `input`.
pub(crate) fn decode(input: &mut &[u8], prefix: u32) -> Result<u64, IntegerError> {
    let (&first, mut rest) = input.split_first().ok_or(IntegerError::Incomplete)?;
    let mut step = start(first, prefix);
    loop {
        match step {
            Step::Done(value) => {
                *input = rest;
                return Ok(value);
            }
            Step::More(partial) => {
                let (&byte, tail) = rest.split_first().ok_or(IntegerError::Incomplete)?;
                step = partial.push(byte)?;
                rest = tail;
            }
        }
    }
}

/// Appends `value`; `flags` are the bits of the first byte above the `prefix` low ones.
pub(crate) fn encode(out: &mut Vec<u8>, flags: u8, prefix: u32, value: u64) {
    let mask = u64::from(0xff_u16 >> (8 - prefix));
    if value < mask {
        out.push(flags | value as u8);
        return;
    }
    out.push(flags | mask as u8);
    let mut rest = value - mask;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 7541 appendix C.1.
    #[test]
    fn rfc7541_c1() {
        for (bytes, flags, prefix, value) in [
            (&[0b0000_1010][..], 0, 5, 10),
            (&[0b0001_1111, 0b1001_1010, 0b0000_1010], 0, 5, 1337),
            (&[0b0010_1010], 0, 8, 42),
        ] {
            let mut out = Vec::new();
            encode(&mut out, flags, prefix, value);
            assert_eq!(out, bytes);
            assert_eq!(decode(&mut &out[..], prefix), Ok(value));
        }
    }

    #[test]
    fn overflow_and_endless_zeros_are_errors() {
        let mut largest = Vec::new();
        encode(&mut largest, 0, 8, MAX);
        assert_eq!(decode(&mut &largest[..], 8), Ok(MAX));
        let mut beyond = Vec::new();
        encode(&mut beyond, 0, 8, MAX + 1);
        assert_eq!(decode(&mut &beyond[..], 8), Err(IntegerError::Overflow));
        let ones = [0xff; 40];
        assert_eq!(decode(&mut &ones[..], 3), Err(IntegerError::Overflow));
        let mut zeros = [0x80; 40];
        zeros[0] = 0xff;
        assert_eq!(decode(&mut &zeros[..], 8), Err(IntegerError::Overflow));
        assert_eq!(decode(&mut &zeros[..4], 8), Err(IntegerError::Incomplete));
        assert_eq!(decode(&mut &[][..], 8), Err(IntegerError::Incomplete));
    }

    proptest! {
        #[test]
        fn round_trip(value in 0..=MAX, shift in 0u32..62, prefix in 1u32..=8) {
            let value = value >> shift;
            let mut out = Vec::new();
            encode(&mut out, 0, prefix, value);
            for cut in 0..out.len() {
                prop_assert_eq!(decode(&mut &out[..cut], prefix), Err(IntegerError::Incomplete));
            }
            out.push(7);
            let mut input = &out[..];
            prop_assert_eq!(decode(&mut input, prefix), Ok(value));
            prop_assert_eq!(input, &[7][..]);
        }
    }
}
