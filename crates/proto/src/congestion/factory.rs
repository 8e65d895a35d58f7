//! What a connection's configuration holds: something that makes controllers.

use super::{CongestionController, MAX_WINDOW, WindowLimits};
use std::fmt;

/// What a controller is told of the path that it is made for.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct PathParameters {
    /// Maximum datagram size, bytes of UDP payload.
    pub mtu: u16,
    /// The window never exceeds this, bytes. It may still be two datagrams (RFC 9002 section 7.2),
    /// and never more than `MAX_WINDOW`, whatever is said here; [`Self::limits`] sees to both.
    pub max_window: u64,
    /// Seeds what the algorithm decides by chance: equal seeds and calls give equal answers.
    pub seed: u64,
}

impl PathParameters {
    /// A path with datagrams of `mtu` bytes, and windows of up to `MAX_WINDOW`.
    #[must_use]
    pub fn new(mtu: u16, seed: u64) -> Self {
        Self { mtu, max_window: MAX_WINDOW, seed }
    }

    /// The bounds of the window that follow from these.
    #[must_use]
    pub fn limits(&self) -> WindowLimits {
        WindowLimits::new(self.mtu, self.max_window)
    }
}

/// Makes controllers of one algorithm.
///
/// The algorithms that come with this crate are constants of [`Algorithm`](super::Algorithm), which is
/// such a factory. For another one, implement this and [`CongestionController`] and put it into
/// `TransportConfig::congestion`; `conformance::congestion` tells whether it keeps the contract.
pub trait CongestionFactory: fmt::Debug + Send + Sync {
    /// The algorithm's name, which is that of its controllers too.
    fn name(&self) -> &str;

    /// A controller for a new path, with its initial window.
    fn build(&self, path: &PathParameters) -> Box<dyn CongestionController>;
}
