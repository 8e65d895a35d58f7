//! The field GF(256): polynomials over GF(2) modulo x^8 + x^4 + x^3 + x^2 + 1.
//!
//! Addition and subtraction are exclusive or. This module handles single coefficients;
//! [`kernel`](crate::kernel) has the arithmetic on whole symbols.

/// The field's reduction polynomial, bit *i* being the coefficient of x^i. 2 generates the
/// multiplicative group.
pub const POLYNOMIAL: u16 = 0x11D;

/// Nonzero elements of the field.
const ORDER: usize = 255;

struct Tables {
    /// `exp[i]` is 2 to the power of `i`, for two periods, so that a sum of two logarithms is an
    /// index.
    exp: [u8; 2 * ORDER],
    /// The logarithm of each element; the entry of 0 has no meaning.
    log: [u8; ORDER + 1],
}

static TABLES: Tables = build();

const fn build() -> Tables {
    let mut exp = [0; 2 * ORDER];
    let mut log = [0; ORDER + 1];
    let mut power = 1;
    let mut i = 0;
    while i < ORDER {
        exp[i] = power;
        exp[i + ORDER] = power;
        log[power as usize] = i as u8;
        power = double(power);
        i += 1;
    }
    Tables { exp, log }
}

/// 2 times `a`.
#[must_use]
pub const fn double(a: u8) -> u8 {
    (a << 1) ^ if a & 0x80 == 0 { 0 } else { POLYNOMIAL as u8 }
}

/// The product of two elements.
#[must_use]
pub fn mul(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    let log = usize::from(TABLES.log[usize::from(a)]) + usize::from(TABLES.log[usize::from(b)]);
    TABLES.exp[log]
}

/// The inverse of `a`; 0 for 0, which has none.
#[must_use]
pub fn inv(a: u8) -> u8 {
    if a == 0 {
        return 0;
    }
    TABLES.exp[ORDER - usize::from(TABLES.log[usize::from(a)])]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition: a product of polynomials, reduced modulo [`POLYNOMIAL`].
    fn long_multiplication(a: u8, b: u8) -> u8 {
        let mut product = (0..8)
            .filter(|bit| b >> bit & 1 == 1)
            .fold(0u16, |sum, bit| sum ^ (u16::from(a) << bit));
        for bit in (8..16).rev() {
            if product >> bit & 1 == 1 {
                product ^= POLYNOMIAL << (bit - 8);
            }
        }
        u8::try_from(product).unwrap()
    }

    #[test]
    fn products_are_those_of_the_definition() {
        for a in 0..=255 {
            for b in 0..=255 {
                assert_eq!(mul(a, b), long_multiplication(a, b), "{a} * {b}");
            }
        }
    }

    #[test]
    fn a_nonzero_element_times_its_inverse_is_one() {
        for a in 1..=255 {
            assert_eq!(mul(a, inv(a)), 1, "{a}");
        }
        assert_eq!(inv(0), 0);
    }

    #[test]
    fn doubling_is_multiplying_by_two() {
        for a in 0..=255 {
            assert_eq!(double(a), long_multiplication(a, 2), "{a}");
        }
    }
}
