//! How many more repair symbols are sent than symbols are missing: the constant of FlEC's thresholds.

use sutura_proto::registry::{Parameters, UnknownPolicy};

/// The largest factor.
const MAX: f64 = 100.0;

/// The factor `c` of a threshold `ds() = c * loss` (Michel 2022, Table II).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LossFactor(f64);

impl LossFactor {
    /// The factor `c`; `None` if it is not from 0 to 100.
    #[must_use]
    pub fn new(c: f64) -> Option<Self> {
        (0.0..=MAX).contains(&c).then_some(Self(c))
    }

    /// The parameter `c` of a policy; 1 if it is not given.
    ///
    /// # Errors
    /// It is not a number from 0 to 100.
    pub fn take(parameters: &mut Parameters<'_>) -> Result<Self, UnknownPolicy> {
        let c = parameters.number("c", 1.0)?;
        Self::new(c)
            .ok_or_else(|| UnknownPolicy::new(format!("c: {c} is not a number from 0 to {MAX}")))
    }

    /// The factor.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

impl Default for LossFactor {
    fn default() -> Self {
        Self(1.0)
    }
}
