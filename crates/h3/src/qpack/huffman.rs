//! The Huffman code of RFC 7541 appendix B, which QPACK uses too.
//!
//! The code is canonical: codes of one length are consecutive numbers in the order of their
//! symbols, and longer codes follow shorter ones. The code is therefore defined by its lengths
//! alone, and the tables below are computed from them at compile time.

/// The number of symbols: every byte and EOS.
const SYMBOLS: usize = 257;

/// The symbol that no string contains; its first bits pad the last byte.
const EOS: u16 = 256;

/// Bits of the longest code.
const MAX_LENGTH: usize = 30;

/// Bits covered by the first table lookup.
const FAST_BITS: usize = 9;

/// The length of each symbol's code, in bits.
#[rustfmt::skip]
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

/// For each length: the first code, its index in [`SORTED`], and the end of the codes of that
/// length when left-aligned in 32 bits.
struct Canonical {
    first: [u32; MAX_LENGTH + 1],
    place: [u16; MAX_LENGTH + 1],
    end: [u64; MAX_LENGTH + 1],
}

const CANONICAL: Canonical = {
    let mut counts = [0u16; MAX_LENGTH + 1];
    let mut symbol = 0;
    while symbol < SYMBOLS {
        counts[LENGTHS[symbol] as usize] += 1;
        symbol += 1;
    }
    let mut first = [0; MAX_LENGTH + 1];
    let mut place = [0; MAX_LENGTH + 1];
    let mut end = [0; MAX_LENGTH + 1];
    let mut length = 1;
    while length <= MAX_LENGTH {
        first[length] = (first[length - 1] + counts[length - 1] as u32) << 1;
        place[length] = place[length - 1] + counts[length - 1];
        end[length] = ((first[length] + counts[length] as u32) as u64) << (32 - length);
        length += 1;
    }
    Canonical { first, place, end }
};

/// Symbols in the order of their codes.
const SORTED: [u16; SYMBOLS] = {
    let mut sorted = [0; SYMBOLS];
    let mut next = CANONICAL.place;
    let mut symbol = 0;
    while symbol < SYMBOLS {
        let length = LENGTHS[symbol] as usize;
        sorted[next[length] as usize] = symbol as u16;
        next[length] += 1;
        symbol += 1;
    }
    sorted
};

/// Each symbol's code, right-aligned.
static CODES: [u32; SYMBOLS] = {
    let mut codes = [0; SYMBOLS];
    let mut rank = 0;
    while rank < SYMBOLS {
        let symbol = SORTED[rank] as usize;
        let length = LENGTHS[symbol] as usize;
        codes[symbol] = CANONICAL.first[length] + (rank as u32 - CANONICAL.place[length] as u32);
        rank += 1;
    }
    codes
};

/// Symbol and length for the next [`FAST_BITS`] bits; length 0 if the code is longer.
static FAST: [(u8, u8); 1 << FAST_BITS] = {
    let mut fast = [(0, 0); 1 << FAST_BITS];
    let mut symbol = 0;
    while symbol < SYMBOLS - 1 {
        let length = LENGTHS[symbol] as usize;
        if length <= FAST_BITS {
            let start = (CODES[symbol] as usize) << (FAST_BITS - length);
            let mut i = 0;
            while i < 1 << (FAST_BITS - length) {
                fast[start + i] = (symbol as u8, length as u8);
                i += 1;
            }
        }
        symbol += 1;
    }
    fast
};

/// Why a string could not be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HuffmanError {
    /// The string contains EOS, or does not end in at most seven bits of EOS (RFC 7541 section 5.2).
    Invalid,
    /// The string is longer than the limit.
    TooLong,
}

/// The encoded size of `string` in bytes.
pub(crate) fn encoded_size(string: &[u8]) -> usize {
    let bits: usize = string.iter().map(|&byte| usize::from(LENGTHS[usize::from(byte)])).sum();
    bits.div_ceil(8)
}

/// Appends the code of `string`.
pub(crate) fn encode(string: &[u8], out: &mut Vec<u8>) {
    // The last `count` of these bits are not in `out` yet: fewer than 32 before a code is added.
    let mut bits = 0u64;
    let mut count = 0u32;
    for &byte in string {
        let symbol = usize::from(byte);
        bits = bits << LENGTHS[symbol] | u64::from(CODES[symbol]);
        count += u32::from(LENGTHS[symbol]);
        if count >= 32 {
            count -= 32;
            out.extend_from_slice(&((bits >> count) as u32).to_be_bytes());
        }
    }
    let padded = (bits << (32 - count)) as u32 | (u32::MAX >> count);
    out.extend_from_slice(&padded.to_be_bytes()[..count.div_ceil(8) as usize]);
}

/// Appends the decoding of `input`, unless it has more than `limit` bytes.
pub(crate) fn decode(input: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), HuffmanError> {
    let mut left = limit;
    let mut input = input.iter();
    let mut bits = 0u64;
    let mut count = 0u32;
    loop {
        while count <= 56
            && let Some(&byte) = input.next()
        {
            bits = bits << 8 | u64::from(byte);
            count += 8;
        }
        if count == 0 {
            return Ok(());
        }
        // The next 32 bits, with ones after the end: padding then looks like a truncated EOS.
        let next = if count >= 32 {
            (bits >> (count - 32)) as u32
        } else {
            ((bits << (32 - count)) as u32) | (u32::MAX >> count)
        };
        let (symbol, length) = lookup(next);
        if u32::from(length) > count {
            let padding = count < 8 && next == u32::MAX;
            return if padding { Ok(()) } else { Err(HuffmanError::Invalid) };
        }
        let symbol = u8::try_from(symbol).map_err(|_| HuffmanError::Invalid)?;
        left = left.checked_sub(1).ok_or(HuffmanError::TooLong)?;
        out.push(symbol);
        count -= u32::from(length);
    }
}

/// The symbol whose code starts `next`, and the code's length. The code is complete, so one exists.
fn lookup(next: u32) -> (u16, u8) {
    let (symbol, length) = FAST[(next >> (32 - FAST_BITS)) as usize];
    if length > 0 {
        return (u16::from(symbol), length);
    }
    for length in FAST_BITS + 1..=MAX_LENGTH {
        if u64::from(next) < CANONICAL.end[length] {
            let offset = (next >> (32 - length)) - CANONICAL.first[length];
            let place = usize::from(CANONICAL.place[length]) + offset as usize;
            return (SORTED.get(place).copied().unwrap_or(EOS), length as u8);
        }
    }
    (EOS, MAX_LENGTH as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded(string: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(string, &mut out);
        assert_eq!(out.len(), encoded_size(string));
        out
    }

    fn decoded(input: &[u8]) -> Result<Vec<u8>, HuffmanError> {
        let mut out = Vec::new();
        decode(input, 1 << 20, &mut out).map(|()| out)
    }

    /// Codes that RFC 7541 appendix B prints, from each region of the table.
    #[test]
    fn codes_are_those_of_the_rfc() {
        for (symbol, code, length) in [
            (0, 0x1ff8, 13),
            (1, 0x7f_ffd8, 23),
            (10, 0x3fff_fffc, 30),
            (usize::from(b'0'), 0x0, 5),
            (usize::from(b'X'), 0xfc, 8),
            (usize::from(b'\\'), 0x7_fff0, 19),
            (usize::from(b'z'), 0x7b, 7),
            (128, 0xf_ffe6, 20),
            (199, 0x1ff_ffec, 25),
            (255, 0x3ff_ffee, 26),
            (256, 0x3fff_ffff, 30),
        ] {
            assert_eq!((CODES[symbol], LENGTHS[symbol]), (code, length), "symbol {symbol}");
        }
    }

    /// RFC 7541 appendix C.4 and C.6.
    #[test]
    fn rfc7541_strings() {
        for (string, code) in [
            (&b"www.example.com"[..], &b"\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff"[..]),
            (b"no-cache", b"\xa8\xeb\x10\x64\x9c\xbf"),
            (b"custom-key", b"\x25\xa8\x49\xe9\x5b\xa9\x7d\x7f"),
            (b"custom-value", b"\x25\xa8\x49\xe9\x5b\xb8\xe8\xb4\xbf"),
            (b"302", b"\x64\x02"),
            (b"private", b"\xae\xc3\x77\x1a\x4b"),
            (
                b"Mon, 21 Oct 2013 20:13:21 GMT",
                b"\xd0\x7a\xbe\x94\x10\x54\xd4\x44\xa8\x20\x05\x95\x04\x0b\x81\x66\xe0\x82\xa6\x2d\x1b\xff",
            ),
            (
                b"https://www.example.com",
                b"\x9d\x29\xad\x17\x18\x63\xc7\x8f\x0b\x97\xc8\xe9\xae\x82\xae\x43\xd3",
            ),
            (b"307", b"\x64\x0e\xff"),
            (b"gzip", b"\x9b\xd9\xab"),
        ] {
            assert_eq!(encoded(string), code);
            assert_eq!(decoded(code).unwrap(), string);
        }
    }

    #[test]
    fn every_byte_survives_alone_and_together() {
        let all: Vec<u8> = (0..=255).collect();
        for byte in &all {
            let byte = std::slice::from_ref(byte);
            assert_eq!(decoded(&encoded(byte)).unwrap(), byte);
        }
        assert_eq!(decoded(&encoded(&all)).unwrap(), all);
    }

    #[test]
    fn eos_and_wrong_padding_are_invalid() {
        // '0' is five zero bits; three bits of padding follow.
        assert_eq!(decoded(&[0b0000_0111]).unwrap(), b"0");
        for input in [
            &[0b0000_0110][..],        // padding that is not all ones
            &[0b0000_0000],            // likewise
            &[0b0000_0111, 0xff],      // more than seven bits of padding
            &[0xff],                   // eight bits of padding and nothing else
            &[0xff, 0xff, 0xff, 0xff], // EOS and two bits of padding
            &[0xff, 0xff, 0xff, 0xfc], // EOS and then zeros
            &[0xff, 0xff, 0xff],       // cut within a long code
        ] {
            assert_eq!(decoded(input), Err(HuffmanError::Invalid), "{input:x?}");
        }
    }

    #[test]
    fn the_limit_is_exact() {
        let code = encoded(&[b'0'; 100]);
        assert_eq!(decode(&code, 99, &mut Vec::new()), Err(HuffmanError::TooLong));
        assert_eq!(decode(&code, 100, &mut Vec::new()), Ok(()));
    }

    proptest! {
        #[test]
        fn round_trip(string: Vec<u8>) {
            prop_assert_eq!(decoded(&encoded(&string)).unwrap(), string);
        }

        /// The code is injective: what decodes encodes to the same bits.
        #[test]
        fn what_decodes_was_the_encoding(input: Vec<u8>) {
            if let Ok(string) = decoded(&input) {
                prop_assert_eq!(encoded(&string), input);
            }
        }
    }
}
