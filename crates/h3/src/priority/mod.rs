//! Priorities (RFC 9218), with parameters for hierarchical sharing and erasure coding.
//!
//! `exp_w` is a weight, `exp_p` the list of classes that a response belongs to, `exp_b` the burst
//! loss tolerance (repair symbols on each occasion) and `exp_d` the repair delay tolerance in
//! milliseconds. As RFC 9218 section 4 requires, a parameter that is unknown, of the wrong type or
//! out of range is ignored and does not affect the others.

mod defaults;
mod parse;
#[cfg(test)]
mod tests;
mod write;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use sfv::{KeyRef, key_ref};
use sutura_proto::Protection;
use sutura_schedule::{Class, Extension, MAX_DEPTH, Weight};

use crate::fields::Fields;

pub use defaults::{DefaultProtection, DefaultProtections};

/// Largest `exp_b`, in repair symbols. Larger values count as absent.
pub const MAX_BURST: u32 = 255;

/// Largest `exp_d`. Larger values count as absent.
pub const MAX_DELAY: Duration = Duration::from_secs(60);

/// Longest priority field value that is parsed, in bytes. A longer one counts as unparseable.
pub const MAX_PRIORITY_SIZE: usize = 4096;

/// Longest name of a class in `exp_p`, in bytes. A class with a longer name is ignored.
pub const MAX_CLASS_NAME: usize = 64;

const DEFAULT_URGENCY: u8 = 3;
const MAX_URGENCY: u8 = 7;

const URGENCY: &KeyRef = key_ref("u");
const INCREMENTAL: &KeyRef = key_ref("i");
const WEIGHT: &KeyRef = key_ref("exp_w");
const PARENTS: &KeyRef = key_ref("exp_p");
const BURST: &KeyRef = key_ref("exp_b");
const DELAY: &KeyRef = key_ref("exp_d");

/// The priority of a response, with a value for every parameter but `exp_b`, whose absence means that the
/// server decides.
///
/// ```
/// use sutura_h3::{Class, Priority, Weight};
///
/// let images = Class::default().with_name(Some("images".into()));
/// let hero = Priority::default()
///     .with_incremental(true)
///     .with_burst(Some(3))
///     .with_weight(Weight::new(2500).ok_or("no weight")?)
///     .within(images);
/// assert_eq!(hero.to_string(), r#"i, exp_w=2.5, exp_b=3, exp_p=("images")"#);
/// assert_eq!(hero.to_string().parse(), Ok(hero));
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Priority {
    /// 0 (first) to 7; 3 by default (RFC 9218 section 4.1).
    pub urgency: u8,
    /// Whether parts of the response are useful before all of it has arrived (RFC 9218 section
    /// 4.2).
    pub incremental: bool,
    /// Its share relative to siblings of the same urgency, for schedulers with weights.
    pub weight: Weight,
    /// The classes above the response, direct parent first, for schedulers with classes: at most
    /// [`MAX_DEPTH`], with names of at most [`MAX_CLASS_NAME`] bytes of printable ASCII. Empty if
    /// the response is directly below the root.
    ///
    /// Responses that name the same class under the same parents share it. If they disagree about
    /// its properties, the latest counts.
    pub parents: Arc<[Class]>,
    /// Burst loss tolerance: repair symbols on each occasion, at most [`MAX_BURST`]; 0 asks for
    /// no erasure coding, and `None` leaves it to the server ([`DefaultProtections`]).
    pub burst: Option<u32>,
    /// Repair delay tolerance, in whole milliseconds, at most [`MAX_DELAY`].
    pub delay: Duration,
}

impl Default for Priority {
    fn default() -> Self {
        Self {
            urgency: DEFAULT_URGENCY,
            incremental: false,
            weight: Weight::default(),
            parents: Arc::default(),
            burst: None,
            delay: Duration::ZERO,
        }
    }
}

impl Priority {
    sutura_schedule::setters! {
        with_urgency: urgency = u8,
        with_incremental: incremental = bool,
        with_weight: weight = Weight,
        with_parents: parents = Arc<[Class]>,
        with_burst: burst = Option<u32>,
        with_delay: delay = Duration,
    }

    /// Adds a class above the present ones: the first is the direct parent, each further class the parent of
    /// the previous one.
    #[must_use]
    pub fn within(self, class: Class) -> Self {
        let parents = self.parents.iter().cloned().chain([class]).collect();
        Self { parents, ..self }
    }

    /// The value of a `priority` field or PRIORITY_UPDATE frame for this priority. Parameters with
    /// their default value are omitted, unless the value would then be empty; so are classes whose
    /// name cannot be encoded.
    #[must_use]
    pub fn to_field_value(&self) -> String {
        let default = Self::default();
        let parameters = PriorityParameters {
            urgency: Some(self.urgency).filter(|&urgency| urgency != default.urgency),
            incremental: Some(self.incremental).filter(|&incremental| incremental),
            weight: Some(self.weight).filter(|&weight| weight != default.weight),
            parents: Some(self.parents.clone()).filter(|parents| !parents.is_empty()),
            burst: self.burst,
            delay: Some(self.delay).filter(|delay| !delay.is_zero()),
        };
        write::field_value(&parameters).unwrap_or_else(|| format!("u={DEFAULT_URGENCY}"))
    }

    /// The priority of the stream that carries the response, with what a scheduler of the application's own
    /// reads.
    pub(crate) fn of_stream(&self, extension: Option<Extension>) -> sutura_schedule::Priority {
        let urgency = self.urgency.min(MAX_URGENCY);
        let mut priority = sutura_schedule::Priority::new(urgency, self.incremental)
            .unwrap_or_default()
            .with_weight(self.weight)
            .with_parents(Some(self.parents.clone()).filter(|parents| !parents.is_empty()));
        priority.extension = extension;
        priority
    }

    /// The erasure coding that it asks for. Incremental responses are repaired incrementally.
    pub(crate) fn protection(&self) -> Option<Protection> {
        let protection = if self.incremental { Protection::incremental } else { Protection::tail };
        self.burst.filter(|burst| *burst > 0).map(|burst| protection(burst, self.delay))
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.to_field_value())
    }
}

impl FromStr for Priority {
    type Err = PriorityError;

    /// Parses text written by a person: unknown or out-of-range parameters are errors. For peers'
    /// values use [`PriorityParameters::parse`], which skips them.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(text.parse::<PriorityParameters>()?.resolve())
    }
}

/// The priority parameters that one side set: `None` where it has no opinion.
///
/// [`Display`](fmt::Display) gives the equivalent field value, which is empty if all parameters are
/// `None`. [`FromStr`] is for configuration: unlike [`parse`](Self::parse), it rejects parameters that
/// `parse` skips.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct PriorityParameters {
    /// `u`, 0 to 7.
    pub urgency: Option<u8>,
    /// `i`.
    pub incremental: Option<bool>,
    /// `exp_w`.
    pub weight: Option<Weight>,
    /// `exp_p`: classes, the direct parent first; an empty list is an opinion too.
    pub parents: Option<Arc<[Class]>>,
    /// `exp_b`, 0 to [`MAX_BURST`].
    pub burst: Option<u32>,
    /// `exp_d`, up to [`MAX_DELAY`].
    pub delay: Option<Duration>,
}

impl PriorityParameters {
    /// Parses a priority field value. `None` if it is not a dictionary of RFC 9651; unknown and
    /// unusable members are skipped.
    #[must_use]
    pub fn parse(value: &[u8]) -> Option<Self> {
        parse::parse(value, &mut |_, _| {})
    }

    /// The combined `priority` field lines of a header section; all `None` if there are none or
    /// they cannot be parsed.
    #[must_use]
    pub fn from_fields(fields: &Fields) -> Self {
        let mut lines = fields.get_all("priority");
        let Some(first) = lines.next() else {
            return Self::default();
        };
        let Some(second) = lines.next() else {
            return Self::parse(first).unwrap_or_default();
        };
        let mut combined = first.to_vec();
        for line in std::iter::once(second).chain(lines) {
            combined.extend_from_slice(b", ");
            combined.extend_from_slice(line);
        }
        Self::parse(&combined).unwrap_or_default()
    }

    /// Whether no parameter is set.
    pub(crate) fn is_empty(&self) -> bool {
        let Self { urgency, incremental, weight, parents, burst, delay } = self;
        urgency.is_none()
            && incremental.is_none()
            && weight.is_none()
            && parents.is_none()
            && burst.is_none()
            && delay.is_none()
    }

    /// The client's parameters, overridden by the parameters that the server's own `priority` field sets (RFC
    /// 9218 section 8). The list of classes is a single parameter: the server's list replaces all of the
    /// client's.
    #[must_use]
    pub fn overridden_by(&self, server: &Self) -> Self {
        Self {
            urgency: server.urgency.or(self.urgency),
            incremental: server.incremental.or(self.incremental),
            weight: server.weight.or(self.weight),
            parents: server.parents.as_ref().or(self.parents.as_ref()).cloned(),
            burst: server.burst.or(self.burst),
            delay: server.delay.or(self.delay),
        }
    }

    /// The priority, with defaults for absent parameters. The default of `exp_b` is the server's
    /// ([`Priority::burst`]).
    #[must_use]
    pub fn resolve(self) -> Priority {
        let default = Priority::default();
        Priority {
            urgency: self.urgency.unwrap_or(default.urgency),
            incremental: self.incremental.unwrap_or(default.incremental),
            weight: self.weight.unwrap_or(default.weight),
            parents: self.parents.unwrap_or(default.parents),
            burst: self.burst,
            delay: self.delay.unwrap_or(default.delay),
        }
    }
}

impl From<&Priority> for PriorityParameters {
    /// Sets every parameter that the priority has.
    fn from(priority: &Priority) -> Self {
        Self {
            urgency: Some(priority.urgency),
            incremental: Some(priority.incremental),
            weight: Some(priority.weight),
            parents: Some(priority.parents.clone()),
            burst: priority.burst,
            delay: Some(priority.delay),
        }
    }
}

impl fmt::Display for PriorityParameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&write::field_value(self).unwrap_or_default())
    }
}

/// Why a text is not a priority.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PriorityError {
    /// It is not a dictionary of RFC 9651, or is longer than [`MAX_PRIORITY_SIZE`].
    #[error("not a list of parameters such as u=1, i, exp_b=3")]
    Malformed,
    /// A parameter would be skipped.
    #[error("{name}: {problem}")]
    Parameter {
        /// Which one.
        name: String,
        /// Why.
        problem: &'static str,
    },
}

impl FromStr for PriorityParameters {
    type Err = PriorityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut error = None;
        let parameters = parse::parse(text.as_bytes(), &mut |name, problem| {
            error
                .get_or_insert_with(|| PriorityError::Parameter { name: name.to_owned(), problem });
        });
        match error {
            Some(error) => Err(error),
            None => parameters.ok_or(PriorityError::Malformed),
        }
    }
}

/// The classes of a list that can be encoded, up to the permitted depth.
fn sayable(classes: &[Class]) -> impl Iterator<Item = &Class> {
    let can_be_said = |class: &&Class| {
        class.name.as_ref().is_none_or(|name| {
            name.len() <= MAX_CLASS_NAME && name.bytes().all(|b| (0x20..0x7f).contains(&b))
        })
    };
    classes.iter().filter(can_be_said).take(MAX_DEPTH)
}
