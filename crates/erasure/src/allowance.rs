//! How much arithmetic on equations a decoder does for the symbols that it is sent.
//!
//! A symbol of a few bytes may make a decoder rework all of its equations, each as long as the longest
//! symbol. A hostile sender could cause this work with every small packet. So received bytes pay for work,
//! and an equation that is not paid for is dropped, like the oldest equation when there are too many. The
//! decoder then recovers less, but nothing wrong. Equations and symbols of like sizes pay for themselves many
//! times over.

use crate::limits::DecoderLimits;

/// Bytes that arithmetic on equations may read for each byte that arrives.
const WORK_PER_BYTE: u64 = 320;
/// Bytes of known symbols that may be subtracted from equations for each byte that arrives. A window of
/// 6 MiB can be read once for every five full packets.
const KNOWN_PER_BYTE: u64 = 1024;
/// Bytes that come with each symbol: the headers of its packet.
const HEADERS: usize = 64;
/// The most that is saved up for work on equations: the worst case of forty symbols in a row.
const MOST: u64 = 4 << 20;

/// The work that has been paid for, in bytes read by arithmetic.
#[derive(Debug)]
pub(crate) struct Allowance {
    left: u64,
    /// The most that is saved up. A new decoder may do it in advance.
    most: u64,
    per_byte: u64,
}

impl Allowance {
    /// For work on equations.
    pub(crate) const fn for_equations() -> Self {
        Self { left: MOST, most: MOST, per_byte: WORK_PER_BYTE }
    }

    /// For the subtraction of known symbols from equations: the savings suffice for all equations of a
    /// decoder at once, each over its whole window.
    pub(crate) fn for_known(limits: &DecoderLimits) -> Self {
        let most = limits.repairs as u64 * limits.bytes as u64;
        Self { left: most, most, per_byte: KNOWN_PER_BYTE }
    }

    /// A symbol of `len` bytes arrived.
    pub(crate) fn earn(&mut self, len: usize) {
        let earned = self.per_byte.saturating_mul((HEADERS + len) as u64);
        self.left = self.left.saturating_add(earned).min(self.most);
    }

    /// Pays for reading `work` bytes, if there is enough; returns whether there was.
    pub(crate) fn spend(&mut self, work: usize) -> bool {
        let rest = self.left.checked_sub(work as u64);
        self.left = rest.unwrap_or(self.left);
        rest.is_some()
    }

    /// Whether nothing is left.
    pub(crate) fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// Pays afterwards for reading `work` bytes. Work of the last symbol beyond the allowance is free.
    pub(crate) fn charge(&mut self, work: u64) {
        self.left = self.left.saturating_sub(work);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_up_has_a_bound_and_is_spent_once() {
        let mut allowance = Allowance::for_equations();
        allowance.earn(usize::MAX / 2);
        assert!(allowance.spend(MOST as usize) && !allowance.spend(1));
        allowance.earn(0);
        let earned = HEADERS * WORK_PER_BYTE as usize;
        assert!(!allowance.spend(earned + 1) && allowance.spend(earned) && !allowance.spend(1));
    }

    #[test]
    fn known_symbols_are_paid_for_afterwards() {
        let limits = DecoderLimits { symbols: 8, bytes: 1000, symbol_size: 100, repairs: 4 };
        let mut allowance = Allowance::for_known(&limits);
        allowance.charge(3999);
        assert!(!allowance.is_spent());
        allowance.charge(1000);
        assert!(allowance.is_spent());
        allowance.earn(0);
        assert!(!allowance.is_spent());
        allowance.earn(usize::MAX / 2);
        allowance.charge(4000);
        assert!(allowance.is_spent());
    }
}
