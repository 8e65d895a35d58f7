//! The kit accepts reactions that keep the contract, and reports those that do not.

use super::*;
use crate::conformance::testing::{name_of_factory, verdict};
use crate::loss_reaction::LostData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Correct: unprotected data also waits a little, and data that is too late is dropped.
    None,
    /// Correct: data waits for its deadline.
    NoneToo,
    Nameless,
    Renamed,
    Endless,
    Obstinate,
    Unspeakable,
    Sociable,
    Capricious,
    ShortLived,
    Subtractor,
}

#[derive(Debug)]
struct FaultyFactory {
    fault: Fault,
    built: AtomicU64,
    /// Number of losses reported to all policies together.
    heard: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Faulty {
    fault: Fault,
    /// Number of policies that the factory built before.
    number: u64,
    heard: Arc<AtomicU64>,
    /// The time of the first call.
    created: Option<Instant>,
}

impl LossReactionFactory for FaultyFactory {
    fn name(&self) -> &str {
        let (nameless, renamed) = (self.fault == Fault::Nameless, self.fault == Fault::Renamed);
        name_of_factory(nameless, renamed, &self.built)
    }

    fn build(&self) -> Box<dyn LossReaction> {
        let number = self.built.fetch_add(1, Ordering::Relaxed);
        let heard = Arc::clone(&self.heard);
        Box::new(Faulty { fault: self.fault, number, heard, created: None })
    }
}

impl LossReaction for Faulty {
    fn on_lost(&mut self, now: Instant, lost: &LostData) -> Verdict {
        let lifetime = now - *self.created.get_or_insert(now);
        let heard = self.heard.fetch_add(1, Ordering::Relaxed);
        let hold = |until| if until > now { Verdict::Hold { until } } else { Verdict::Resend };
        match self.fault {
            Fault::None if lost.deadline.is_some_and(|at| at < now) => Verdict::Drop { code: 7 },
            Fault::None | Fault::Nameless | Fault::Renamed => hold(lost.sent + 2 * lost.pto),
            Fault::NoneToo => lost.deadline.map_or(Verdict::Resend, hold),
            Fault::Endless => hold(now + 4 * lost.pto),
            Fault::Obstinate => Verdict::Hold { until: now + lost.rtt / 4 },
            Fault::Unspeakable => Verdict::Drop { code: 1 << 62 },
            Fault::Sociable if heard.is_multiple_of(3) => hold(now + lost.pto),
            Fault::Capricious if self.number.is_multiple_of(3) => Verdict::Drop { code: 0 },
            Fault::ShortLived => {
                assert!(u32::try_from(lifetime.as_micros()).is_ok(), "too old");
                Verdict::Resend
            }
            Fault::Subtractor => {
                let passed =
                    lost.deadline.is_some_and(|at| now.checked_duration_since(at).is_some());
                assert!(!passed, "the deadline has passed");
                Verdict::Resend
            }
            Fault::Sociable | Fault::Capricious => Verdict::Resend,
        }
    }
}

#[test]
fn each_fault_is_named() {
    for (fault, named) in [
        (Fault::None, "accepted"),
        (Fault::NoneToo, "accepted"),
        (Fault::Nameless, "a policy has a name"),
        (Fault::Renamed, "the name of the factory changed"),
        (Fault::Endless, "more than 3 probe timeouts"),
        (Fault::Obstinate, "was held 16 times"),
        (Fault::Unspeakable, "which cannot be encoded"),
        (Fault::Sociable, "two policies that heard the same differ"),
        (Fault::Capricious, "two policies that heard the same differ"),
        (Fault::ShortLived, "too old"),
        (Fault::Subtractor, "the deadline has passed"),
    ] {
        let factory =
            FaultyFactory { fault, built: AtomicU64::new(0), heard: Arc::new(AtomicU64::new(0)) };
        let said = verdict(|| loss_reaction(&factory));
        assert!(said.contains(named), "{fault:?}: {said}");
    }
}
