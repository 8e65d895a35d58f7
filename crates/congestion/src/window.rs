//! Bounds of every congestion window (RFC 9002 section 7.2).

/// The largest congestion window in bytes: 80 Gbit/s over a round trip of 100 ms.
pub const MAX_WINDOW: u64 = 1 << 30;
/// Packets in the smallest window.
pub const MINIMUM_PACKETS: u64 = 2;
/// Packets in the initial window, if they are of the usual size or smaller.
const INITIAL_PACKETS: u64 = 10;
/// How many bytes the initial window may have whatever the datagram size.
const INITIAL_BYTES: u64 = 14_720;
/// Smaller datagram sizes are treated as this (RFC 9000 section 14 requires 1200), only to keep
/// window arithmetic meaningful.
const SMALLEST_MTU: u64 = 64;

/// The datagram size and the windows that follow from it.
#[derive(Debug, Clone, Copy)]
pub struct WindowLimits {
    mtu: u64,
    max: u64,
}

impl WindowLimits {
    /// Limits for datagrams of `mtu` bytes and windows of at most `max` bytes. `max` itself is
    /// clamped between the smallest window and [`MAX_WINDOW`].
    #[must_use]
    pub fn new(mtu: u16, max: u64) -> Self {
        Self { mtu: u64::from(mtu).max(SMALLEST_MTU), max: max.min(MAX_WINDOW) }
    }

    /// The maximum datagram size in bytes.
    #[must_use]
    pub fn mtu(&self) -> u64 {
        self.mtu
    }

    /// The smallest window: two datagrams.
    #[must_use]
    pub fn min(&self) -> u64 {
        self.mtu.saturating_mul(MINIMUM_PACKETS)
    }

    /// The largest window.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.max.max(self.min())
    }

    /// The initial window.
    #[must_use]
    pub fn initial(&self) -> u64 {
        let by_packets = self.mtu.saturating_mul(INITIAL_PACKETS);
        self.clamp(by_packets.min(self.min().max(INITIAL_BYTES)))
    }

    /// Clamps `window` to the bounds.
    #[must_use]
    pub fn clamp(&self, window: u64) -> u64 {
        window.clamp(self.min(), self.max())
    }

    /// Changes the datagram size and returns the new value of `window`: an initial window is
    /// computed anew (RFC 9002 section 7.2), any other is only clamped.
    #[must_use]
    pub fn change_mtu(&mut self, mtu: u16, window: u64) -> u64 {
        let untouched = window == self.initial();
        self.mtu = u64::from(mtu).max(SMALLEST_MTU);
        if untouched { self.initial() } else { self.clamp(window) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initial_window_follows_the_rfc() {
        let initial = |mtu| WindowLimits::new(mtu, MAX_WINDOW).initial();
        assert_eq!(initial(1_200), 12_000);
        assert_eq!(initial(1_472), 14_720);
        assert_eq!(initial(1_500), 14_720);
        assert_eq!(initial(9_000), 18_000);
    }

    #[test]
    fn bounds_hold_for_odd_sizes() {
        for mtu in [0, 1, 63, 1_200, u16::MAX] {
            for max in [0, 1, 100_000, u64::MAX] {
                let limits = WindowLimits::new(mtu, max);
                assert!(limits.min() <= limits.initial() && limits.initial() <= limits.max());
                assert!(limits.min() > 0 && limits.max() <= MAX_WINDOW);
            }
        }
    }

    #[test]
    fn only_an_untouched_window_is_recomputed() {
        let mut limits = WindowLimits::new(1_200, MAX_WINDOW);
        assert_eq!(limits.change_mtu(1_400, 12_000), 14_000);
        assert_eq!(limits.change_mtu(1_450, 50_000), 50_000);
        assert_eq!(limits.change_mtu(9_000, 3_000), 18_000);
    }
}
