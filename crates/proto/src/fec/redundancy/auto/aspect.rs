//! What the policy takes into account, each of which can be left out to find out what it is worth.

use sutura_schedule::registry::UnknownPolicy;

/// Something that the policy takes into account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aspect {
    /// That the path has no room for redundancy.
    Room,
    /// That the congestion window has no room for redundancy.
    Window,
    /// That packets wait for others now and then.
    Waiting,
    /// That packets arrive late because the path reorders them.
    Lateness,
    /// That the losses of the path change and come back.
    Changes,
    /// That the losses may be larger or smaller than they seem.
    Bounds,
    /// That experiments leave out redundancy to find out whether it does harm.
    Experiments,
    /// That acknowledgements are overdue.
    Silence,
    /// That a path of which little is known may lose packets.
    Insurance,
    /// That lost datagrams can be mended after the loss.
    Mending,
    /// That data which is sent again may be lost again.
    Again,
    /// That the loss of the last packets of a piece is noticed late.
    Ends,
    /// That the number of packets may end bursts rather than the time.
    Number,
    /// That the budget does not suffice for the target.
    Shortage,
}

impl Aspect {
    pub(super) const ALL: [Self; 14] = [
        Self::Room,
        Self::Window,
        Self::Waiting,
        Self::Lateness,
        Self::Changes,
        Self::Bounds,
        Self::Experiments,
        Self::Silence,
        Self::Insurance,
        Self::Mending,
        Self::Again,
        Self::Ends,
        Self::Number,
        Self::Shortage,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Room => "room",
            Self::Window => "window",
            Self::Waiting => "waiting",
            Self::Lateness => "lateness",
            Self::Changes => "changes",
            Self::Bounds => "bounds",
            Self::Experiments => "experiments",
            Self::Silence => "silence",
            Self::Insurance => "insurance",
            Self::Mending => "mending",
            Self::Again => "again",
            Self::Ends => "ends",
            Self::Number => "number",
            Self::Shortage => "shortage",
        }
    }

    /// The aspect of this name; `none` names none.
    pub(super) fn named(name: &str) -> Result<Option<Self>, UnknownPolicy> {
        if name == "none" {
            return Ok(None);
        }
        let named = Self::ALL.into_iter().find(|part| part.name() == name);
        named.map(Some).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            UnknownPolicy::new(format!("without: `{name}` is none of {names}"))
        })
    }
}
