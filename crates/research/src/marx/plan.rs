//! Schemes as data.

use super::{Kind, Resource};
use crate::tree::{DEFAULT_WEIGHT, Order};

/// A scheme as data.
#[derive(Debug)]
pub(super) struct Plan {
    /// The first group is the page: all others are below it.
    pub(super) groups: &'static [Group],
    /// The group that a resource belongs to. A stream without a resource counts as a resource of kind "other"
    /// of which nothing is known.
    pub(super) place: fn(&Resource) -> Place,
    /// The order in sequences.
    pub(super) rank: Rank,
    /// A group whose weight depends on another.
    pub(super) yields: Option<Yield>,
}

impl Plan {
    /// A plan whose sequences go by arrival, and in which no group yields.
    pub(super) const fn new(groups: &'static [Group], place: fn(&Resource) -> Place) -> Self {
        Self { groups, place, rank: Rank::Arrival, yields: None }
    }
}

/// A node that groups streams or other groups.
#[derive(Debug)]
pub(super) struct Group {
    /// The index of its parent, which comes before it. Ignored for the page.
    pub(super) parent: usize,
    /// Its share among its siblings, 1 to 256.
    pub(super) weight: u16,
    /// The order of service of its members.
    pub(super) order: Order,
}

impl Group {
    /// The first group of a plan.
    pub(super) const fn page(order: Order) -> Self {
        Self { parent: 0, weight: DEFAULT_WEIGHT, order }
    }

    /// A group in a sequence or in turns, where weights mean nothing.
    pub(super) const fn below(parent: usize, order: Order) -> Self {
        Self { parent, weight: DEFAULT_WEIGHT, order }
    }

    /// A group among groups that share.
    pub(super) const fn weighing(weight: u16, parent: usize, order: Order) -> Self {
        Self { parent, weight, order }
    }
}

/// The place of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Index of the group.
    pub(super) group: usize,
    /// Its share there, 1 to 256.
    pub(super) weight: u16,
}

impl Place {
    /// In a group where weights mean nothing or are all the same.
    pub(super) const fn within(group: usize) -> Self {
        Self { group, weight: DEFAULT_WEIGHT }
    }

    pub(super) const fn weighing(weight: u16, group: usize) -> Self {
        Self { group, weight }
    }
}

/// The order of streams in a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rank {
    /// The stream that entered the group first.
    Arrival,
    /// The smallest stream key.
    Key,
}

/// While `to` has streams, active or not, `group` weighs `weight`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Yield {
    pub(super) group: usize,
    pub(super) to: usize,
    pub(super) weight: u16,
}

/// Whether a scheme that looks for `xml` and `json` before `image` treats the resource as data.
pub(super) fn is_data(resource: &Resource) -> bool {
    matches!(resource.kind, Kind::Xhr | Kind::Svg)
}

/// The `SCHEME` of a file with a `PLAN`, and its `ENTRY` in the table: a name and a summary.
macro_rules! scheme {
    ($name:literal, $summary:literal) => {
        #[doc = concat!("The scheme: ", $summary, ".")]
        pub const SCHEME: sutura_schedule::Scheme =
            sutura_schedule::Scheme::new($name, || Box::new(super::Planned::new(&PLAN)));

        pub(super) const ENTRY: sutura_schedule::registry::Entry<
            dyn sutura_schedule::SchedulerFactory,
        > = sutura_schedule::registry::Entry::new($name, $summary, |_| {
            Ok(std::sync::Arc::new(SCHEME))
        });
    };
}
pub(super) use scheme;
