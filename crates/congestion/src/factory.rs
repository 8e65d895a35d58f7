//! Factories of controllers, as held by a connection's configuration.

use super::{CongestionController, MAX_WINDOW, WindowLimits};
use std::fmt;

/// A controller's knowledge about its path.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct PathParameters {
    /// The maximum datagram size in bytes of UDP payload.
    pub mtu: u16,
    /// The largest window in bytes. [`Self::limits`] still allows two datagrams (RFC 9002 section
    /// 7.2), and never more than `MAX_WINDOW`.
    pub max_window: u64,
    /// Seeds the random decisions of the algorithm: equal seeds and calls give equal results.
    pub seed: u64,
}

impl PathParameters {
    /// A path with datagrams of `mtu` bytes and windows of up to `MAX_WINDOW`.
    #[must_use]
    pub fn new(mtu: u16, seed: u64) -> Self {
        Self { mtu, max_window: MAX_WINDOW, seed }
    }

    /// The resulting bounds of the window.
    #[must_use]
    pub fn limits(&self) -> WindowLimits {
        WindowLimits::new(self.mtu, self.max_window)
    }
}

/// Builds controllers of one algorithm.
///
/// The algorithms of this crate are constants of [`Algorithm`](super::Algorithm), which is such a
/// factory. To add another, implement this trait and [`CongestionController`] and put it into
/// `TransportConfig::congestion`; `conformance::congestion` checks whether it keeps the contract.
pub trait CongestionFactory: fmt::Debug + Send + Sync {
    /// The algorithm's name, which its controllers share.
    fn name(&self) -> &str;

    /// Builds a controller for a new path, with its initial window.
    fn build(&self, path: &PathParameters) -> Box<dyn CongestionController>;
}
