//! Checks whether a pair of functions keeps the contract of [`FlecRules`].

use super::{Flec, FlecRules};
use std::fmt;
use sutura_proto::policy::{Redundancy, RedundancyFactory};

/// How many shares of lost packets are tried, from 0 to 1.
const SHARES: u32 = 200;

/// Tests the rules that `build` returns, and the policy that [`Flec`] makes of them.
///
/// ```
/// use std::time::Instant;
/// use sutura_proto::policy::View;
/// use sutura_research::flec::{self, FlecRules};
///
/// #[derive(Debug)]
/// struct SelectiveRepeat;
///
/// impl FlecRules for SelectiveRepeat {
///     fn ds(&self, loss: f64) -> f64 {
///         -loss
///     }
///
///     fn fec_pattern(&self, _now: Instant, _view: &View) -> bool {
///         false
///     }
/// }
///
/// flec::conformance(|| SelectiveRepeat);
/// ```
///
/// # Panics
/// The pair breaks a rule, which the message names:
///
/// * `ds` is a number for every share of lost packets, and the same when asked again.
/// * All of [`conformance::redundancy`](fn@sutura_proto::conformance::redundancy): queries change nothing,
///   redundancy ends, and so on.
pub fn conformance<R: FlecRules + 'static>(build: impl Fn() -> R + Send + Sync) {
    let rules = build();
    let name = format!("{rules:?}");
    for step in 0..=SHARES {
        let loss = f64::from(step) / f64::from(SHARES);
        let ds = rules.ds(loss);
        assert!(!ds.is_nan(), "{name}: ds({loss}) is not a number");
        // Compares bits, since the difference of an infinite value from itself is not zero.
        let again = rules.ds(loss);
        assert!(
            ds.to_bits() == again.to_bits(),
            "{name}: ds({loss}) is {ds}, and then {again}: questions changed something"
        );
    }
    sutura_proto::conformance::redundancy(&Pair { name, build });
}

/// Builds policies of a pair.
struct Pair<F> {
    name: String,
    build: F,
}

impl<F> fmt::Debug for Pair<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl<R: FlecRules + 'static, F: Fn() -> R + Send + Sync> RedundancyFactory for Pair<F> {
    fn name(&self) -> &str {
        &self.name
    }

    fn parameters(&self) -> String {
        String::new()
    }

    fn build(&self) -> Box<dyn Redundancy> {
        Box::new(Flec::new((self.build)()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::ops::Range;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::time::Instant;
    use sutura_proto::policy::View;

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Fault {
        None,
        NoNumber,
        Moody,
        Endless,
        Beyond,
        Counting,
    }

    /// Rules with a fault: otherwise a repair symbol after every fourth source symbol.
    #[derive(Debug)]
    struct Faulty {
        fault: Fault,
        unprotected: u32,
        asked: Cell<u32>,
    }

    impl Faulty {
        fn ask(&self) -> u32 {
            self.asked.set(self.asked.get() + 1);
            self.asked.get()
        }
    }

    impl FlecRules for Faulty {
        fn ds(&self, loss: f64) -> f64 {
            match self.fault {
                Fault::NoNumber => (0.5 - loss).sqrt(),
                Fault::Moody => f64::from(self.ask()),
                _ => -loss,
            }
        }

        fn fec_pattern(&self, _now: Instant, _view: &View) -> bool {
            match self.fault {
                Fault::Endless => true,
                Fault::Counting => self.ask().is_multiple_of(3),
                _ => self.unprotected >= 4,
            }
        }

        fn mended_span(&self, newest: u64, view: &View) -> Range<u64> {
            let beyond = u64::from(self.fault == Fault::Beyond);
            view.first..if beyond > 0 { view.next + 1 } else { newest + 1 }
        }

        fn on_source_sent(&mut self, _now: Instant, _view: &View) {
            self.unprotected += 1;
        }

        fn on_repair_sent(&mut self, _now: Instant, _view: &View) {
            self.unprotected = 0;
        }
    }

    /// The message with which the kit panics.
    fn verdict(kit: impl Fn()) -> String {
        match catch_unwind(AssertUnwindSafe(kit)) {
            Ok(()) => "accepted".to_owned(),
            Err(panic) => panic.downcast_ref::<String>().cloned().unwrap_or_default(),
        }
    }

    #[test]
    fn each_fault_is_named() {
        for (fault, expected) in [
            (Fault::None, "accepted"),
            (Fault::NoNumber, "is not a number"),
            (Fault::Moody, "questions changed something"),
            (Fault::Endless, "repair symbols"),
            (Fault::Beyond, "never sent"),
            (Fault::Counting, "a question changed"),
        ] {
            let build = move || Faulty { fault, unprotected: 0, asked: Cell::new(0) };
            let said = verdict(|| conformance(build));
            assert!(said.contains(expected), "{fault:?}: {said}");
        }
    }
}
