//! How much arithmetic on equations a decoder does for what it is sent.
//!
//! A symbol of a few bytes may make a decoder rework all of its equations, each as long as the longest
//! symbol. A sender could have that done for every small packet. So work is paid for by what arrives,
//! and an equation that nobody has paid for is dropped, as the oldest one is when there are too many.
//! Nothing wrong is ever recovered, only less. Equations and symbols of like sizes pay for themselves
//! many times over.

/// Bytes that arithmetic may read for each byte that arrives.
const WORK_PER_BYTE: u64 = 320;
/// Bytes that come with each symbol: the headers of its packet.
const HEADERS: usize = 64;
/// The most that is saved up: the worst case of forty symbols in a row.
const MOST: u64 = 4 << 20;

/// The work that has been paid for, in bytes read by arithmetic.
#[derive(Debug)]
pub(crate) struct Allowance(u64);

impl Allowance {
    /// What a new decoder may do in advance.
    pub(crate) const fn new() -> Self {
        Self(MOST)
    }

    /// A symbol of `len` bytes arrived.
    pub(crate) fn earn(&mut self, len: usize) {
        let earned = WORK_PER_BYTE.saturating_mul((HEADERS + len) as u64);
        self.0 = self.0.saturating_add(earned).min(MOST);
    }

    /// Pays for reading `work` bytes, if there is enough; returns whether there was.
    pub(crate) fn spend(&mut self, work: usize) -> bool {
        let rest = self.0.checked_sub(work as u64);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_up_has_a_bound_and_is_spent_once() {
        let mut allowance = Allowance::new();
        allowance.earn(usize::MAX / 2);
        assert!(allowance.spend(MOST as usize) && !allowance.spend(1));
        allowance.earn(0);
        let earned = HEADERS * WORK_PER_BYTE as usize;
        assert!(!allowance.spend(earned + 1) && allowance.spend(earned) && !allowance.spend(1));
    }
}
