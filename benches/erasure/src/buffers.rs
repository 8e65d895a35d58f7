//! Symbols in memory: 1500 bytes each, in cache-aligned slots of 1536 bytes.

use crate::Error;

/// Bytes of a symbol; throughput is counted in these bytes.
pub const SYMBOL: usize = 1500;

/// Bytes of a slot: a multiple of a cache line, but not a power of two, because then all symbols would start
/// in the same few cache sets. All kernels, including kernels of other libraries, work on whole slots, so
/// that none of them handles a remainder.
pub const SLOT: usize = 1536;

/// The memory of a symbol.
#[repr(C, align(64))]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Slot(pub [u8; SLOT]);

impl Slot {
    pub const ZERO: Self = Self([0; SLOT]);
}

/// Consecutive symbols.
#[derive(Clone, PartialEq, Eq)]
pub struct Symbols(Vec<Slot>);

impl Symbols {
    /// `count` symbols of zeros.
    pub fn zeroed(count: usize) -> Self {
        Self(vec![Slot::ZERO; count])
    }

    /// Symbols of pseudo-random bytes; the rest of each slot is zero.
    pub fn random(count: usize, seed: u64) -> Self {
        let mut symbols = Self::zeroed(count);
        let mut rng = sutura_random::Rng::new(seed);
        for slot in &mut symbols.0 {
            rng.fill(&mut slot.0[..SYMBOL]);
        }
        symbols
    }

    /// Copies of slots.
    pub fn copied<'a>(slots: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let slot = |bytes: &[u8]| {
            let mut slot = Slot::ZERO;
            slot.0[..bytes.len()].copy_from_slice(bytes);
            slot
        };
        Self(slots.into_iter().map(slot).collect())
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The slot of a symbol.
    pub fn slot(&self, index: usize) -> &[u8] {
        &self.0[index].0
    }

    /// The slot of a symbol.
    pub fn slot_mut(&mut self, index: usize) -> &mut Slot {
        &mut self.0[index]
    }

    /// The bytes of a symbol.
    pub fn symbol(&self, index: usize) -> &[u8] {
        &self.0[index].0[..SYMBOL]
    }

    /// The slots of the first symbols.
    pub fn slots(&self, count: usize) -> Vec<&[u8]> {
        self.0[..count].iter().map(|slot| &slot.0[..]).collect()
    }

    /// All slots.
    pub fn slots_mut(&mut self) -> Vec<&mut [u8]> {
        self.0.iter_mut().map(|slot| &mut slot.0[..]).collect()
    }

    /// Checks the recovered slots of the lost symbols, in the order of the lost symbols.
    pub fn check<'b>(
        &self,
        lost: &[usize],
        recovered: impl IntoIterator<Item = &'b [u8]>,
    ) -> Result<(), Error> {
        let mut recovered = recovered.into_iter();
        let right = lost.iter().all(|&index| {
            recovered.next().and_then(|slot| slot.get(..SYMBOL)) == Some(self.symbol(index))
        });
        if right { Ok(()) } else { Err("what is recovered is not what was lost".into()) }
    }

    /// The memory of all symbols.
    pub fn memory(&self) -> &[Slot] {
        &self.0
    }

    /// The slots of all symbols.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(|slot| &slot.0[..])
    }

    /// The slots, which then live as long as the program.
    pub fn leak(self) -> Vec<&'static mut [u8]> {
        self.0.leak().iter_mut().map(|slot| &mut slot.0[..]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_aligned_and_padded_with_zeros() {
        let symbols = Symbols::random(3, 7);
        for slot in symbols.slots(3) {
            assert_eq!(slot.as_ptr() as usize % 64, 0);
            assert_eq!(slot.len(), SLOT);
            assert!(slot[SYMBOL..].iter().all(|&byte| byte == 0));
            assert!(slot[..SYMBOL].iter().any(|&byte| byte != 0));
        }
        assert_ne!(symbols.symbol(0), symbols.symbol(1));
    }

    #[test]
    fn a_wrong_symbol_is_noticed() {
        let symbols = Symbols::random(3, 1);
        let right = [symbols.slot(0), symbols.symbol(2)];
        assert!(symbols.check(&[0, 2], right).is_ok());
        assert!(symbols.check(&[2, 0], right).is_err());
        assert!(symbols.check(&[0, 2], right.into_iter().take(1)).is_err());
    }
}
