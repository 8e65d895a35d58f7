//! FlEC (Michel 2022): one loop for all applications, in which two functions decide at each free slot
//! between new data and redundancy.
//!
//! Algorithm 1 asks the pattern first (`FECPattern()`): whether a repair symbol goes although no loss
//! is known. Then it compares what the peer misses (`md`, [`View::missing`]) with the repair symbols in
//! flight (`ad`, [`View::added`]): one more goes if `1 - loss - md / ad` is below the threshold
//! (`ds()`). Otherwise new data does. So what was lost is sent again as a repair symbol, which mends
//! whichever symbol of its span is missing when it arrives.
//!
//! | policy | `ds()` | `FECPattern()` (Table II) |
//! |---|---|---|
//! | [`SrArq`](super::SrArq) | `-loss` | never |
//! | [`AcRlnc`](super::AcRlnc) | `c * loss` | once per round trip |
//! | [`Bulk`](super::Bulk) | `-loss` | when all data is sent |
//! | [`Buffer`](super::Buffer) | `c * loss` | Algorithm 2 |
//! | [`Messages`](super::Messages) | `-loss` | Algorithm 4 |
//!
//! The pair is a [`FlecRules`], which any crate can implement. The five above use nothing but the public
//! interface of this crate, and `tests/flec_from_outside.rs` compiles their files outside of it.
//!
//! Where the paper and its implementation differ, the paper is followed in this: `ad` counts only what
//! is in flight, the pattern is asked first after every kind of feedback, recovered packets count as
//! lost, and every repair symbol stays within the congestion window. The implementation is followed in
//! that a repair symbol which has arrived counts against `md` even before it could recover anything:
//! two losses take two repair symbols, and the first to arrive need not be sent again.
//!
//! Neither is followed in the span of what is sent for a known loss. The implementation covers only
//! the lost symbol, the paper the whole window. Here the span ends with the newest known loss: it
//! mends any of the known ones, and does not wait for losses that are not known yet.
//!
//! A queue that drops many packets at once drops many of the repair symbols that replace them, too. So
//! with a controller that fills the queue, these policies send more than plain retransmission does.

use super::{Arrival, Decision, Redundancy, RepairPlan, Turn, View};
use std::fmt::Debug;
use std::ops::Range;
use std::time::Instant;

/// At most so many repair symbols are in flight for each that is missing, whatever the threshold.
/// One of `1 - loss` or more would otherwise ask for ever more of them: `c * loss` does so where
/// half of all packets are lost and `c` is 1.
const MOST_PER_MISSING: f64 = 4.0;

/// What rounding may make of two sides that are equal.
const ROUNDING: f64 = 1e-9;

/// What distinguishes one application from another (Michel 2022, section IV): the pair `ds()` and
/// `FECPattern()`. [`Flec`] makes a policy of it.
///
/// The methods that decide change nothing, and may be called any number of times for a free slot.
/// [`conformance::flec`](fn@crate::conformance::flec) tests an implementation.
///
/// ```
/// use std::time::Instant;
/// use sutura_proto::policy::{Flec, FlecRules, Redundancy, RedundancyFactory, View};
/// use sutura_proto::conformance;
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
/// conformance::flec(EveryN::<10>::default);
/// conformance::redundancy(&EveryTen);
/// ```
pub trait FlecRules: Debug + Send {
    /// `ds()`, the sensitivity to delay, where this share of packets is lost, from 0 to 1. The larger,
    /// the more repair symbols are in flight for each symbol that the peer misses; `-loss` asks for
    /// one. Four are sent at most.
    fn ds(&self, loss: f64) -> f64;

    /// `FECPattern()`: whether a repair symbol goes although no loss is known.
    fn fec_pattern(&self, now: Instant, view: &View) -> bool;

    /// Whether data that is sent now becomes a source symbol, see [`Redundancy::protects`].
    fn protects(&self, view: &View) -> bool {
        let _ = view;
        true
    }

    /// Whether what was lost is sent again as a repair symbol, where `ds()` says so, rather than as it
    /// was.
    fn mends(&self) -> bool {
        true
    }

    /// What a repair symbol in place of what was lost covers, of which the newest is `newest`. It
    /// takes the place of data that would be sent again, and losses that are not known yet lie beyond
    /// that: over those, it would recover nothing before they are mended as well.
    fn mended_span(&self, newest: u64, view: &View) -> Range<u64> {
        view.first..newest.saturating_add(1)
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

    /// Whether too little is in flight to mend what the peer misses.
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

#[cfg(test)]
mod tests {
    use super::super::{AcRlnc, Buffer, Bulk, RedundancyFactory, SrArq};
    use super::*;
    use crate::policy::{LossFloor, PathView};
    use std::time::Duration;

    const RTT: Duration = Duration::from_millis(100);

    /// A window of `unacked` symbols, of which `missing` are lost, with `added` repair symbols in
    /// flight.
    fn view(unacked: u32, missing: u32, added: u32, loss: f64) -> View {
        let floor = LossFloor { burst: 2.0, ..LossFloor::default() };
        let path = PathView { rtt: RTT, loss, outcomes: 10_000, floor, ..PathView::default() };
        let next = u64::from(unacked);
        View {
            next,
            unacked,
            missing,
            newest_missing: (missing > 0).then_some(next / 2),
            added,
            has_source: true,
            idle: false,
            path,
            ..View::default()
        }
    }

    fn repairs(policy: &dyn Redundancy, now: Instant, view: &View) -> bool {
        let decision = policy.decide(now, view);
        assert_eq!(decision, policy.decide(now, view), "a look changes nothing");
        decision != Decision::Source
    }

    /// Algorithm 1 as it is written, without what bounds it.
    fn is_below(view: &View, ds: f64) -> bool {
        let ratio = f64::from(view.missing) / f64::from(view.added);
        view.missing > 0 && 1.0 - view.path.loss - ratio < ds - ROUNDING
    }

    #[test]
    fn the_thresholds_are_those_of_table_ii() {
        let now = Instant::now();
        let ac_rlnc = AcRlnc::new(2.0).unwrap();
        let buffer = Buffer::new(3.0).unwrap();
        type Row<'a> = (&'a dyn RedundancyFactory, fn(f64) -> f64);
        let rows: [Row<'_>; 4] =
            [(&SrArq, |l| -l), (&ac_rlnc, |l| 2.0 * l), (&Bulk, |l| -l), (&buffer, |l| 3.0 * l)];
        for (factory, ds) in rows {
            for loss in [0.0, 0.01, 0.05, 0.15] {
                for (missing, added) in (0..12).flat_map(|m| (0..12).map(move |a| (m, a))) {
                    let view = view(100, missing, added, loss);
                    let mut policy = factory.build();
                    // Everything is covered, so that no pattern asks for more.
                    policy.on_source_sent(now, 99, &view);
                    for _ in 0..20 {
                        policy.on_repair_sent(now, &view);
                    }
                    let expected = is_below(&view, ds(loss));
                    let name = factory.name();
                    assert_eq!(repairs(&*policy, now, &view), expected, "{name}: {view:?}");
                }
            }
        }
    }

    #[test]
    fn however_much_is_lost_repair_symbols_come_to_an_end() {
        let policy = AcRlnc::new(100.0).unwrap().build();
        let now = Instant::now();
        assert!(repairs(&*policy, now, &view(10, 3, 11, 0.5)));
        assert!(!repairs(&*policy, now, &view(10, 3, 12, 0.5)));
    }

    #[test]
    fn selective_repeat_adds_nothing() {
        let (now, mut policy) = (Instant::now(), SrArq.build());
        policy.on_source_sent(now, 0, &view(10, 0, 0, 0.1));
        policy.on_flushed(now, true, &view(10, 0, 0, 0.1));
        let idle = View { has_source: false, idle: true, ..view(10, 0, 0, 0.1) };
        assert!(!repairs(&*policy, now + 10 * RTT, &idle));
    }

    #[test]
    fn causal_coding_repairs_once_per_round_trip() {
        let (now, mut policy) = (Instant::now(), AcRlnc::new(1.0).unwrap().build());
        let view = view(50, 0, 0, 0.05);
        policy.on_source_sent(now, 0, &view);
        for round in 1..4 {
            assert!(!repairs(&*policy, now + RTT * round - RTT / 2, &view));
            // Of 50 symbols 2.5 are expected to be lost.
            for _ in 0..3 {
                assert!(repairs(&*policy, now + RTT * round, &view));
                policy.on_repair_sent(now + RTT * round, &view);
            }
            assert!(!repairs(&*policy, now + RTT * round, &view));
            assert_eq!(policy.timeout(), Some(now + RTT * (round + 1)));
        }
    }

    /// How many repair symbols a policy sends for `view` before it stops.
    fn sent(policy: &mut dyn Redundancy, now: Instant, mut view: View) -> u32 {
        let before = view.added;
        while repairs(policy, now, &view) {
            view.added += 1;
            policy.on_repair_sent(now, &view);
        }
        view.added - before
    }

    #[test]
    fn a_bulk_transfer_protects_what_it_sent_last() {
        let (now, mut policy) = (Instant::now(), Bulk.build());
        let end = View { has_source: false, idle: true, ..view(60, 0, 0, 0.05) };
        policy.on_source_sent(now, 59, &end);
        assert!(!repairs(&*policy, now + RTT, &end), "more may come");
        policy.on_flushed(now, false, &end);
        assert_eq!(policy.timeout(), Some(now + RTT / 8));
        assert!(!repairs(&*policy, now, &end));
        let now = now + RTT / 8;
        // Three are expected to be lost, in bursts of two.
        let count = sent(&mut *policy, now, end);
        assert!((6..=12).contains(&count), "{count}");
        // Losses that are known come on top, and what is sent for them may be lost as well.
        let known = View { missing: 3, newest_missing: Some(7), added: count, ..end };
        assert!(sent(&mut *policy, now, known) >= 3);
        let last = View { unacked: 1, missing: 1, newest_missing: Some(59), ..end };
        assert_eq!(sent(&mut *policy, now, last), 2);
    }

    #[test]
    fn the_end_of_a_transfer_is_protected_by_what_is_known() {
        let count = |loss, outcomes, floor| {
            let (now, mut policy) = (Instant::now(), Bulk.build());
            let view = view(20, 0, 0, loss);
            let path = PathView { outcomes, floor, ..view.path };
            let end = View { has_source: false, idle: true, path, ..view };
            policy.on_flushed(now, true, &end);
            sent(&mut *policy, now, end)
        };
        let unknown = LossFloor::default();
        let remembered = LossFloor { rate: 0.08, low: 0.06, high: 0.1, ..unknown };
        assert!((1..=3).contains(&count(0.0, 0, unknown)), "by experience");
        assert!(count(0.0, 0, remembered) > count(0.0, 0, unknown));
        assert_eq!(count(0.0, 2_000, unknown), 0, "the path loses nothing");
    }

    #[test]
    fn only_the_last_flight_of_a_bulk_transfer_becomes_symbols() {
        let policy = Bulk.build();
        let view = view(60, 0, 0, 0.05);
        let left = |left| View { left, path: PathView { window: 50_000, ..view.path }, ..view };
        assert!(policy.protects(&left(100_000)) && !policy.protects(&left(100_001)));
        assert!(SrArq.build().protects(&left(u64::MAX)));
    }

    #[test]
    fn what_was_lost_is_mended_apart_from_what_may_be_lost() {
        let (now, policy) = (Instant::now(), SrArq.build());
        let Decision::Repair(plan) = policy.decide(now, &view(100, 2, 0, 0.05)) else { panic!() };
        assert_eq!((plan.span, plan.turn), (0..51, Turn::First));
    }

    /// A sender with more to send, of which `unacked` symbols are in flight, to a receiver that
    /// buffers `trips` of them.
    fn limited(unacked: u32, trips: f64, added: u32) -> View {
        let view = view(unacked, 0, added, 0.05);
        let in_flight = u64::from(unacked) * 1000;
        let buffer = (in_flight as f64 * trips) as u64;
        View { left: 1 << 30, buffer, path: PathView { in_flight, ..view.path }, ..view }
    }

    #[test]
    fn a_small_buffer_is_protected_every_so_many_symbols() {
        let (now, mut policy) = (Instant::now(), Buffer::new(1.0).unwrap().build());
        // Bursts of two, so one after about every 40.
        let at = |next: u64, added| View { next, ..limited(100, 1.5, added) };
        policy.on_source_sent(now, 0, &at(1, 0));
        assert!(!repairs(&*policy, now, &at(35, 0)) && repairs(&*policy, now, &at(45, 0)));
        policy.on_repair_sent(now, &at(45, 1));
        assert!(repairs(&*policy, now, &at(45, 1)), "two for a burst of two");
        policy.on_repair_sent(now, &at(45, 2));
        assert!(repairs(&*policy, now, &at(45, 2)), "and one more");
        policy.on_repair_sent(now, &at(45, 3));
        assert!(!repairs(&*policy, now, &at(45, 3)) && !repairs(&*policy, now, &at(75, 3)));
        assert!(repairs(&*policy, now, &at(45 + 45, 3)));
        assert!(!repairs(&*policy, now, &at(45 + 45, 10)), "twice the expected losses in flight");
    }

    #[test]
    fn a_buffer_that_outlasts_a_retransmission_is_not_protected() {
        let (now, policy) = (Instant::now(), Buffer::new(1.0).unwrap().build());
        assert!(repairs(&*policy, now, &limited(100, 2.2, 0)));
        assert!(!repairs(&*policy, now, &limited(100, 2.3, 0)));
        assert!(policy.protects(&limited(100, 2.2, 0)) && !policy.protects(&limited(100, 2.3, 0)));
    }

    #[test]
    fn a_blocked_sender_protects_all_it_sent() {
        let (now, mut policy) = (Instant::now(), Buffer::new(1.0).unwrap().build());
        let blocked = View { has_source: false, idle: true, ..limited(40, 1.0, 0) };
        let count = sent(&mut *policy, now, blocked);
        assert!((4..=10).contains(&count), "{count}");
        let flushed = View { left: 0, ..blocked };
        assert!(!repairs(&*policy, now, &flushed), "it is not blocked, it has nothing to send");
        let path = PathView { loss: 0.0, ..blocked.path };
        assert!(!repairs(&*policy, now, &View { path, ..blocked }), "nothing is lost");
    }
}
