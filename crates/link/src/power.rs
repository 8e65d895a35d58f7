//! Powers, which the standard library computes with other roundings from platform to platform.

/// `base` to the power of `exponent`, computed identically on every platform.
pub(crate) fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut result = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    result
}
