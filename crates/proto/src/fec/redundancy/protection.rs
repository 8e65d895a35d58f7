//! How a stream is protected: a policy and its parameters.

use super::{Incremental, RedundancyFactory, Tail};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of repair symbols that the built-in policies send at a time, which is the largest number
/// that the parameter `exp_b` can express.
pub const MAX_BURST: u32 = 255;

/// Maximum delay of a repair symbol in the built-in policies. A retransmission takes less time on any path on
/// Earth.
pub const MAX_DELAY: Duration = Duration::from_secs(60);

/// How a stream is protected: a redundancy policy with its parameters, which the core does not interpret. Two
/// protections are equal if their policies have the same name and parameters.
#[derive(Clone)]
pub struct Protection {
    factory: Arc<dyn RedundancyFactory>,
    /// Name and parameters, for cheap comparison.
    text: Arc<str>,
}

impl Protection {
    /// Protection by the policies that `factory` makes.
    #[must_use]
    pub fn new(factory: Arc<dyn RedundancyFactory>) -> Self {
        let parameters = factory.parameters();
        let separator = if parameters.is_empty() { "" } else { ": " };
        let text = format!("{}{separator}{parameters}", factory.name()).into();
        Self { factory, text }
    }

    /// [`Tail`]: `burst` repair symbols, `delay` after the application has no more data for now.
    #[must_use]
    pub fn tail(burst: u32, delay: Duration) -> Self {
        Self::new(Arc::new(Tail::new(burst, delay)))
    }

    /// [`Incremental`]: `burst` repair symbols, `delay` after each piece of data.
    #[must_use]
    pub fn incremental(burst: u32, delay: Duration) -> Self {
        Self::new(Arc::new(Incremental::new(burst, delay)))
    }

    /// The factory of the policy.
    #[must_use]
    pub fn factory(&self) -> &dyn RedundancyFactory {
        &*self.factory
    }
}

impl PartialEq for Protection {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Protection {}

impl fmt::Debug for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Protection({})", self.text)
    }
}

impl fmt::Display for Protection {
    /// Writes the policy's name and its parameters: `tail: burst=3, delay=25ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

/// The text of the parameters that the built-in policies have in common.
pub(super) fn parameters(burst: u32, delay: Duration) -> String {
    format!("burst={burst}, delay={delay:?}")
}
