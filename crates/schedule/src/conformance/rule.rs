//! The rules that certain calls have no effect.

use super::random::Random;
use super::{Call, Known, apply};
use crate::{Grant, Scheduler};

/// A difference in the treatment of two schedulers that must have no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    Nothing,
    Questions,
    Strangers,
    Repetitions,
    OldPriorities,
    ZeroBytes,
    OtherName,
}

impl Rule {
    pub(super) const ALL: [Self; 7] = [
        Self::Nothing,
        Self::Questions,
        Self::Strangers,
        Self::Repetitions,
        Self::OldPriorities,
        Self::ZeroBytes,
        Self::OtherName,
    ];

    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Nothing => "equal calls to two schedulers have equal answers",
            Self::Questions => "a question changes nothing",
            Self::Strangers => "calls that name streams that are not inserted change nothing",
            Self::Repetitions => "repeating a call changes nothing",
            Self::OldPriorities => "a priority equal to the present one changes nothing",
            Self::ZeroBytes => "a charge of zero bytes changes nothing",
            Self::OtherName => "`insert` of a stream that is there is the same as `reprioritize`",
        }
    }

    /// Makes a call of the sequence, or an equivalent one.
    pub(super) fn apply(
        self,
        scheduler: &mut dyn Scheduler,
        call: &Call,
        known: &Known,
    ) -> Vec<Grant> {
        match self {
            Self::OtherName => return apply(scheduler, &by_other_name(call, known)),
            // Each charge accounts for new bytes, so it cannot be repeated.
            Self::Repetitions if !matches!(call, Call::Charge(..) | Call::Serve { .. }) => {
                apply(scheduler, call);
            }
            Self::Nothing
            | Self::Questions
            | Self::Strangers
            | Self::Repetitions
            | Self::OldPriorities
            | Self::ZeroBytes => {}
        }
        apply(scheduler, call)
    }

    /// Makes extra calls between two calls of the sequence.
    pub(super) fn disturb(
        self,
        scheduler: &mut dyn Scheduler,
        known: &Known,
        random: &mut Random<'_>,
    ) {
        match self {
            Self::Nothing | Self::OtherName => {}
            // Repeats the current state of every stream.
            Self::Repetitions => {
                for (stream, _, active) in known.streams() {
                    if active {
                        scheduler.activate(stream);
                    } else {
                        scheduler.deactivate(stream);
                    }
                }
            }
            Self::Questions => {
                let room = random.room();
                scheduler.next(room);
            }
            Self::Strangers => {
                let stream = random.any_key();
                if !known.contains(stream) {
                    scheduler.remove(stream);
                    scheduler.deactivate(stream);
                    scheduler.reprioritize(stream, random.priority(0..stream));
                    scheduler.charge(stream, 1200);
                    scheduler.activate(stream);
                }
            }
            Self::OldPriorities => {
                for (stream, priority, _) in known.streams() {
                    scheduler.reprioritize(stream, priority.clone());
                }
            }
            Self::ZeroBytes => scheduler.charge(random.any_key(), 0),
        }
    }
}

/// The equivalent call for a stream that is inserted.
fn by_other_name(call: &Call, known: &Known) -> Call {
    match call.clone() {
        Call::Insert(stream, priority) if known.contains(stream) => {
            Call::Reprioritize(stream, priority)
        }
        Call::Reprioritize(stream, priority) if known.contains(stream) => {
            Call::Insert(stream, priority)
        }
        same @ (Call::Insert(..)
        | Call::Remove(_)
        | Call::Reprioritize(..)
        | Call::Activate(_)
        | Call::Deactivate(_)
        | Call::Serve { .. }
        | Call::Charge(..)
        | Call::Window(_)
        | Call::Rest) => same,
    }
}
