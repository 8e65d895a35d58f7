//! The information about streams that a scheduler needs.

use crate::marx::{self, GoesBy};

/// The information that a scheduler needs beside the urgencies and weights of RFC 9218 and its extensions.
#[derive(Clone, Debug)]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// The resource that a stream carries: a [`marx::Resource`].
    Resource(GoesBy),
    /// The stream or placeholder that a stream depends on: a [`Dependency`](crate::h2::Dependency).
    Dependencies,
    /// When a stream has to be delivered: `Priority::deadline`.
    Deadlines,
}

impl Needs {
    /// The needs of the scheduler with this name; `Nothing` if there is none.
    #[must_use]
    pub fn of(name: &str) -> Self {
        if let Some(goes_by) = marx::goes_by(name) {
            return if goes_by.kind { Self::Resource(goes_by) } else { Self::Nothing };
        }
        match name {
            "h2" | "h3-draft" => Self::Dependencies,
            "deadline" => Self::Deadlines,
            _ => Self::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{schedulers, testing};
    use sutura_schedule::{Priority, Scheduler};

    /// The streams that a scheduler serves if they have these priorities.
    fn order(scheduler: &mut dyn Scheduler, priorities: [Priority; 3]) -> Vec<u64> {
        for (stream, priority) in (0..).step_by(4).zip(priorities) {
            testing::active(scheduler, stream, priority);
        }
        testing::serve(scheduler, 12)
    }

    #[test]
    fn a_scheduler_needs_what_changes_its_order() {
        use crate::h2::Dependency;
        use crate::marx::Resource;
        let plain = Priority::default;
        let mimes = ["image/png", "text/html", "text/javascript"];
        let resources = mimes.map(|mime| plain().with_extension(Resource::from_mime(mime)));
        let dependencies = [Some(4), None, Some(0)]
            .map(|parent| plain().with_extension(Dependency { parent, ..Dependency::DEFAULT }));
        let deadlines = [3, 1, 2].map(|at| plain().with_deadline(Some(at)));
        for entry in schedulers().entries() {
            let differs = |priorities: &[Priority; 3]| {
                let build = || entry.make("").unwrap().build();
                let without = order(&mut *build(), [plain(), plain(), plain()]);
                order(&mut *build(), priorities.clone()) != without
            };
            let needs = Needs::of(entry.name);
            let found = [&resources, &dependencies, &deadlines].map(differs);
            let expected = match needs {
                Needs::Nothing => [false, false, false],
                Needs::Resource(_) => [true, false, false],
                Needs::Dependencies => [false, true, false],
                Needs::Deadlines => [false, false, true],
            };
            assert_eq!(found, expected, "{}", entry.name);
        }
    }
}
