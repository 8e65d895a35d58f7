//! The pair of functions that tells applications apart, and the loop that asks it.

use std::fmt::Debug;
use std::ops::Range;
use std::time::Instant;
use sutura_proto::policy::{Arrival, Decision, Redundancy, RepairPlan, Turn, View};

/// At most this many repair symbols are in flight for each missing symbol, whatever the threshold. A
/// threshold of `1 - loss` or more would otherwise ask for ever more repair symbols: `c * loss` does so where
/// half of all packets are lost and `c` is 1.
const MOST_PER_MISSING: f64 = 4.0;

/// The largest difference that rounding may make between two sides that are equal.
pub(super) const ROUNDING: f64 = 1e-9;

/// The rules by which applications differ (Michel 2022, section IV): the pair `ds()` and `FECPattern()`.
/// [`Flec`] makes a policy of it.
///
/// The methods that decide change nothing, and may be called any number of times for a free slot.
/// The test kit `flec::conformance`, with the feature `conformance`, tests an implementation.
///
/// ```
/// use std::time::Instant;
/// use sutura_proto::policy::{Redundancy, RedundancyFactory, View};
/// use sutura_research::flec::{self, Flec, FlecRules};
///
/// /// Mends losses, and sends a repair symbol after every `N` source symbols.
/// #[derive(Debug, Default)]
/// struct EveryN<const N: u32>(u32);
///
/// impl<const N: u32> FlecRules for EveryN<N> {
///     fn ds(&self, loss: f64) -> f64 {
///         -loss
///     }
///
///     fn fec_pattern(&self, _now: Instant, _view: &View) -> bool {
///         self.0 >= N
///     }
///
///     fn on_source_sent(&mut self, _now: Instant, _view: &View) {
///         self.0 += 1;
///     }
///
///     fn on_repair_sent(&mut self, _now: Instant, _view: &View) {
///         self.0 = 0;
///     }
/// }
///
/// #[derive(Debug)]
/// struct EveryTen;
///
/// impl RedundancyFactory for EveryTen {
///     fn name(&self) -> &str {
///         "every-ten"
///     }
///
///     fn parameters(&self) -> String {
///         String::new()
///     }
///
///     fn build(&self) -> Box<dyn Redundancy> {
///         Box::new(Flec::new(EveryN::<10>::default()))
///     }
/// }
///
/// flec::conformance(EveryN::<10>::default);
/// sutura_proto::conformance::redundancy(&EveryTen);
/// ```
pub trait FlecRules: Debug + Send {
    /// `ds()`, the sensitivity to delay, where this share of packets is lost, from 0 to 1. The larger,
    /// the more repair symbols are in flight for each symbol that the peer misses; `-loss` asks for
    /// one. Four are sent at most.
    fn ds(&self, loss: f64) -> f64;

    /// `FECPattern()`: whether a repair symbol goes although no loss is known.
    fn fec_pattern(&self, now: Instant, view: &View) -> bool;

    /// Whether the pattern asks for no repair symbol at `now`, whatever the view is, see [`Redundancy::rests`].
    fn rests(&self, now: Instant) -> bool {
        let _ = now;
        false
    }

    /// Whether data that is sent now becomes a source symbol, see [`Redundancy::protects`].
    fn protects(&self, view: &View) -> bool {
        let _ = view;
        true
    }

    /// Whether lost data is sent again as a repair symbol, where `ds()` says so, rather than as it was.
    fn mends(&self) -> bool {
        true
    }

    /// The span of a repair symbol in place of lost symbols, of which the newest is `newest`. The repair
    /// symbol takes the place of a retransmission, and losses that are not known yet lie beyond `newest`:
    /// over a longer span, it would recover nothing before these are mended as well.
    fn mended_span(&self, newest: u64, view: &View) -> Range<u64> {
        view.span().start..newest.saturating_add(1)
    }

    /// A source symbol was sent for the first time.
    fn on_source_sent(&mut self, now: Instant, view: &View) {
        let _ = (now, view);
    }

    /// All data that the application has written was sent; `ended` if there will be no more.
    fn on_flushed(&mut self, now: Instant, ended: bool, view: &View) {
        let _ = (now, ended, view);
    }

    /// A repair symbol was sent, for whatever reason.
    fn on_repair_sent(&mut self, now: Instant, view: &View) {
        let _ = (now, view);
    }

    /// The peer has one more symbol.
    fn on_arrived(&mut self, now: Instant, view: &View) {
        let _ = (now, view);
    }

    /// When the pattern may change without any other event, see [`Redundancy::timeout`].
    fn timeout(&self) -> Option<Instant> {
        None
    }
}

/// The loop of Michel 2022, Algorithm 1, with the rules of an application.
#[derive(Debug)]
pub struct Flec<R>(R);

impl<R: FlecRules> Flec<R> {
    /// A policy that decides by `rules`.
    #[must_use]
    pub fn new(rules: R) -> Self {
        Self(rules)
    }

    /// Whether too few repair symbols are in flight to mend the peer's missing symbols.
    fn is_short(&self, view: &View) -> bool {
        let loss = view.path.loss;
        let share = (1.0 - loss - self.0.ds(loss)).max(1.0 / MOST_PER_MISSING);
        f64::from(view.missing) > share * f64::from(view.added) + ROUNDING
    }
}

impl<R: FlecRules> Redundancy for Flec<R> {
    fn on_source_sent(&mut self, now: Instant, _id: u64, view: &View) {
        self.0.on_source_sent(now, view);
    }

    fn on_flushed(&mut self, now: Instant, ended: bool, view: &View) {
        self.0.on_flushed(now, ended, view);
    }

    fn on_repair_sent(&mut self, now: Instant, view: &View) {
        self.0.on_repair_sent(now, view);
    }

    fn on_arrived(&mut self, now: Instant, _id: u64, _how: Arrival, view: &View) {
        self.0.on_arrived(now, view);
    }

    fn mends(&self) -> bool {
        self.0.mends()
    }

    fn protects(&self, view: &View) -> bool {
        self.0.protects(view)
    }

    fn rests(&self, now: Instant, missing: bool) -> bool {
        !missing && self.0.rests(now)
    }

    fn decide(&self, now: Instant, view: &View) -> Decision {
        if view.unacked == 0 {
            return Decision::Source;
        }
        let short = self.0.mends() && self.is_short(view);
        if self.0.fec_pattern(now, view) {
            let turn = if short { Turn::First } else { Turn::Protected };
            return Decision::Repair(RepairPlan { turn, ..RepairPlan::over(view.span()) });
        }
        match view.newest_missing.filter(|_| short) {
            // In place of data that would be sent again, which precedes new data.
            Some(newest) => {
                let repair = RepairPlan::over(self.0.mended_span(newest, view));
                Decision::Repair(RepairPlan { turn: Turn::First, ..repair })
            }
            None => Decision::Source,
        }
    }

    fn timeout(&self) -> Option<Instant> {
        self.0.timeout()
    }
}
