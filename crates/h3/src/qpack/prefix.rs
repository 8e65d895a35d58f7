//! The prefix of an encoded field section (RFC 9204 section 4.5.1).

use super::integer::{self, IntegerError};
use crate::fields::FIELD_OVERHEAD;

/// Most bytes of a prefix whose integers are in their shortest form.
pub(crate) const MAX_PREFIX_SIZE: u64 = 20;

/// The prefix of a field section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Prefix {
    /// How many entries must have been inserted before the section can be decoded.
    pub(super) required: u64,
    /// The absolute index to which the section's indices are relative.
    pub(super) base: u64,
}

/// Why a prefix was not decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PrefixError {
    Integer(IntegerError),
    /// No encoder can mean this Required Insert Count.
    RequiredInsertCount,
    NegativeBase,
}

impl From<IntegerError> for PrefixError {
    fn from(error: IntegerError) -> Self {
        Self::Integer(error)
    }
}

/// The most entries of a table of `capacity` bytes.
pub(super) const fn max_entries(capacity: u64) -> u64 {
    capacity / FIELD_OVERHEAD
}

impl Prefix {
    /// Appends the prefix for a decoder that announced `max_capacity` bytes.
    pub(super) fn encode(&self, max_capacity: u64, out: &mut Vec<u8>) {
        let Self { required, base } = *self;
        let full_range = 2 * max_entries(max_capacity);
        let count = if required == 0 || full_range == 0 { 0 } else { required % full_range + 1 };
        integer::encode(out, 0, 8, count);
        match base.checked_sub(required) {
            Some(delta) => integer::encode(out, 0, 7, delta),
            None => integer::encode(out, 0x80, 7, required - base - 1),
        }
    }

    /// Takes a prefix off the front of `input`. The decoder announced `max_capacity` bytes and has
    /// seen `inserted` entries.
    pub(super) fn decode(
        input: &mut &[u8],
        max_capacity: u64,
        inserted: u64,
    ) -> Result<Self, PrefixError> {
        let count = integer::decode(input, 8)?;
        let required = required_insert_count(count, max_entries(max_capacity), inserted)
            .ok_or(PrefixError::RequiredInsertCount)?;
        let before = input.first().is_some_and(|&first| first & 0x80 != 0);
        let delta = integer::decode(input, 7)?;
        let base = if before {
            required.checked_sub(delta).and_then(|base| base.checked_sub(1))
        } else {
            required.checked_add(delta)
        };
        Ok(Self { required, base: base.ok_or(PrefixError::NegativeBase)? })
    }
}

/// The Required Insert Count that `encoded` stands for (section 4.5.1.1).
fn required_insert_count(encoded: u64, max_entries: u64, inserted: u64) -> Option<u64> {
    if encoded == 0 {
        return Some(0);
    }
    let full_range = 2 * max_entries;
    if encoded > full_range {
        return None;
    }
    let max_value = inserted + max_entries;
    let max_wrapped = max_value / full_range * full_range;
    let required = max_wrapped + encoded - 1;
    let required = if required > max_value { required.checked_sub(full_range)? } else { required };
    (required > 0).then_some(required)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const INTEGER: PrefixError = PrefixError::Integer(IntegerError::Incomplete);

    #[test]
    fn impossible_prefixes() {
        let decode = |mut bytes: &[u8], capacity| Prefix::decode(&mut bytes, capacity, 4);
        assert_eq!(decode(&[], 100), Err(INTEGER));
        assert_eq!(decode(&[0], 100), Err(INTEGER));
        assert_eq!(decode(&[1, 0], 31), Err(PrefixError::RequiredInsertCount));
        assert_eq!(decode(&[7, 0], 100), Err(PrefixError::RequiredInsertCount));
        assert_eq!(decode(&[1, 0], 100), Ok(Prefix { required: 6, base: 6 }));
        assert_eq!(decode(&[3, 0], 100), Ok(Prefix { required: 2, base: 2 }));
        assert_eq!(decode(&[3, 0x81], 100), Ok(Prefix { required: 2, base: 0 }));
        assert_eq!(decode(&[3, 0x82], 100), Err(PrefixError::NegativeBase));
        assert_eq!(decode(&[0, 0x80], 100), Err(PrefixError::NegativeBase));
        // Nothing was inserted yet, and zero is not encoded like this.
        let none = Prefix::decode(&mut &[1, 0][..], 100, 0);
        assert_eq!(none, Err(PrefixError::RequiredInsertCount));
    }

    proptest! {
        #[test]
        fn a_decoder_that_is_behind_or_ahead_understands(
            capacity in 32u64..10_000, required in 0u64..1 << 40, ahead in 0u64..400,
            behind: bool, base in 0u64..1 << 40,
        ) {
            let prefix = Prefix { required, base };
            let mut out = Vec::new();
            prefix.encode(capacity, &mut out);
            prop_assert!(out.len() as u64 <= MAX_PREFIX_SIZE);
            // The entry in question has not been evicted, or is at most a table away.
            let ahead = ahead % max_entries(capacity);
            let inserted =
                if behind { required.saturating_sub(ahead) } else { required + ahead };
            prop_assert_eq!(Prefix::decode(&mut &out[..], capacity, inserted), Ok(prefix));
        }
    }
}
