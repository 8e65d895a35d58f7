//! Symbols in memory: 1500 bytes each, at the start of a slot of 1536 that starts a cache line.

/// Bytes of a symbol, which are those that count.
pub const SYMBOL: usize = 1500;

/// Bytes of a slot: a multiple of a cache line, and no power of two, which would make the starts
/// of all symbols compete for the same few lines of the caches. Kernels work on whole slots, those
/// of others too, so that nobody has a remainder to deal with.
pub const SLOT: usize = 1536;

/// The memory of a symbol.
#[repr(C, align(64))]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Slot(pub [u8; SLOT]);

impl Slot {
    pub const ZERO: Self = Self([0; SLOT]);
}

/// Symbols that stand one behind the other.
#[derive(Clone, PartialEq, Eq)]
pub struct Symbols(Vec<Slot>);

impl Symbols {
    /// So many symbols of zeros.
    pub fn zeroed(count: usize) -> Self {
        Self(vec![Slot::ZERO; count])
    }

    /// Symbols of pseudo-random bytes; what is left of the slots is zero.
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

    /// The slot of a symbol, to be changed.
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

    /// All slots, to be changed.
    pub fn slots_mut(&mut self) -> Vec<&mut [u8]> {
        self.0.iter_mut().map(|slot| &mut slot.0[..]).collect()
    }

    /// The memory of all symbols.
    pub fn memory(&self) -> &[Slot] {
        &self.0
    }

    /// The slots of all symbols.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(|slot| &slot.0[..])
    }

    /// Slots that live as long as the program does.
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
}
