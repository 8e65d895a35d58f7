//! A recorded sequence of losses.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::ParseError;

/// A recorded sequence of losses, never empty. Parses and prints as one digit per packet, 1 for a
/// lost one; white space in between is ignored.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Trace {
    lost: Arc<[bool]>,
}

impl Trace {
    /// A trace in which packet `n` is lost if `lost[n]`; `None` if it is empty.
    #[must_use]
    pub fn new(lost: impl Into<Arc<[bool]>>) -> Option<Self> {
        let lost = lost.into();
        (!lost.is_empty()).then_some(Self { lost })
    }

    /// For each packet, whether it was lost.
    #[must_use]
    pub fn as_slice(&self) -> &[bool] {
        &self.lost
    }

    /// The fraction of lost packets.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let lost = self.lost.iter().filter(|&&lost| lost).count();
        lost as f64 / self.lost.len() as f64
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lost.iter().try_for_each(|&lost| f.write_str(if lost { "1" } else { "0" }))
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Trace({} packets, {:.3} % lost)", self.lost.len(), 100.0 * self.mean())
    }
}

impl FromStr for Trace {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut lost = Vec::with_capacity(text.len());
        for (at, digit) in text.char_indices() {
            match digit {
                '0' => lost.push(false),
                '1' => lost.push(true),
                _ if digit.is_whitespace() => {}
                _ => {
                    let problem = format!("expected 0 or 1 at offset {at}");
                    return Err(ParseError::new("trace", &digit.to_string(), problem));
                }
            }
        }
        Self::new(lost).ok_or_else(|| ParseError::new("trace", text, "is empty"))
    }
}
