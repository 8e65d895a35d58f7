//! The protection of responses for which neither end asks for one.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use sutura_proto::Protection;

use super::{MAX_URGENCY, Priority, PriorityParameters};

/// A protection for each urgency, separately for non-incremental and incremental responses.
type Table = [[Option<DefaultProtection>; 2]; MAX_URGENCY as usize + 1];

/// A server's protection of responses whose priority has no `exp_b`, neither by the request nor by the
/// response. Responses without a protection here are protected as the transport is configured.
///
/// ```
/// use std::time::Duration;
/// use sutura_h3::{DefaultProtection, DefaultProtections, Priority};
///
/// let mut all = DefaultProtections::default();
/// let strong = DefaultProtection::Parameters { burst: 3, delay: Duration::ZERO };
/// all.add(0..=2, Some(false), &strong);
/// all.add(0..=7, None, &DefaultProtection::NONE);
/// assert_eq!(all.get(&"u=2".parse()?), Some(&strong));
/// assert_eq!(all.get(&"u=2, i".parse()?), Some(&DefaultProtection::NONE));
/// # Ok::<(), sutura_h3::PriorityError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DefaultProtections {
    /// Absent as long as there are none, since connections have a copy.
    table: Option<Arc<Table>>,
}

impl DefaultProtections {
    /// Adds the protection of responses of these urgencies (0 to 7) which are incremental, are not, or
    /// either (`None`). Responses that have a protection already keep it.
    pub fn add(
        &mut self,
        urgencies: RangeInclusive<u8>,
        incremental: Option<bool>,
        protection: &DefaultProtection,
    ) {
        let table = Arc::make_mut(self.table.get_or_insert_default());
        for urgency in urgencies {
            let Some(row) = table.get_mut(usize::from(urgency)) else { break };
            for (which, entry) in [false, true].into_iter().zip(row) {
                if incremental.is_none_or(|only| only == which) {
                    entry.get_or_insert_with(|| protection.clone());
                }
            }
        }
    }

    /// Whether there is none for any response.
    pub(crate) fn is_empty(&self) -> bool {
        self.table.is_none()
    }

    /// The protection of a response of this priority, if there is one for it. Its `exp_b` is not looked
    /// at.
    #[must_use]
    pub fn get(&self, priority: &Priority) -> Option<&DefaultProtection> {
        let row = self.table.as_ref()?.get(usize::from(priority.urgency))?;
        row[usize::from(priority.incremental)].as_ref()
    }

    /// The erasure coding of a response with these parameters; `Some(None)` for no erasure coding, and `None`
    /// to leave the choice to the transport's configuration.
    pub(crate) fn protection(&self, parameters: &PriorityParameters) -> Option<Option<Protection>> {
        let asked = parameters.clone().resolve();
        if asked.burst.is_some() {
            return Some(asked.protection());
        }
        Some(match self.get(&asked)? {
            DefaultProtection::Parameters { burst, delay } => {
                let delay = parameters.delay.unwrap_or(*delay);
                Priority { burst: Some(*burst), delay, ..asked }.protection()
            }
            DefaultProtection::Policy(protection) => Some(protection.clone()),
        })
    }
}

/// The protection of a response for which neither end asks for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DefaultProtection {
    /// As if the response had these values of `exp_b` and, if it has none of its own, `exp_d`.
    Parameters {
        /// Repair symbols on each occasion, at most [`MAX_BURST`](super::MAX_BURST); 0 for none.
        burst: u32,
        /// For how long they may be delayed, at most [`MAX_DELAY`](super::MAX_DELAY).
        delay: Duration,
    },
    /// By this policy, no matter what delay the priority names.
    Policy(Protection),
}

impl DefaultProtection {
    /// No protection, even if the transport is configured to protect.
    pub const NONE: Self = Self::Parameters { burst: 0, delay: Duration::ZERO };
}

impl fmt::Display for DefaultProtection {
    /// Writes `exp_b=3, exp_d=25`, or the policy's name and parameters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parameters { burst, delay } => {
                let delay = Some(*delay).filter(|delay| !delay.is_zero());
                let (burst, default) = (Some(*burst), PriorityParameters::default());
                PriorityParameters { burst, delay, ..default }.fmt(f)
            }
            Self::Policy(protection) => protection.fmt(f),
        }
    }
}
