//! The field and the coefficients, implemented from the specification.

/// A product in GF(256) with the polynomial 0x11D.
pub fn mul(a: u8, b: u8) -> u8 {
    let (mut a, mut product) = (u16::from(a), 0);
    for bit in 0..8 {
        if b >> bit & 1 == 1 {
            product ^= a;
        }
        a <<= 1;
        if a & 0x100 != 0 {
            a ^= 0x11D;
        }
    }
    product as u8
}

/// a to the power of 254, which is its inverse.
pub fn inverse(a: u8) -> u8 {
    (0..254).fold(1, |power, _| mul(power, a))
}

fn split_mix_64(seed: u64, output: u64) -> u64 {
    let z = seed.wrapping_add(output.wrapping_add(1).wrapping_mul(0x9E3779B97F4A7C15));
    let z = (z ^ z >> 30).wrapping_mul(0xBF58476D1CE4E5B9);
    let z = (z ^ z >> 27).wrapping_mul(0x94D049BB133111EB);
    z ^ z >> 31
}

/// The coefficient of a symbol in a repair symbol.
pub fn coefficient(key: u32, id: u64) -> u8 {
    let seed = split_mix_64(0, u64::from(key));
    let byte = (split_mix_64(seed, id / 8) >> (8 * (id % 8))) as u8;
    byte.max(1)
}
