//! FlEC (Michel 2022): one loop for all applications, in which two functions decide at each free slot
//! between new data and redundancy.
//!
//! Algorithm 1 asks the pattern first (`FECPattern()`): whether a repair symbol goes although no loss
//! is known. Then it compares what the peer misses (`md`, [`View::missing`]) with the repair symbols in
//! flight (`ad`, [`View::added`]): one more goes if `1 - loss - md / ad` is below the threshold
//! (`ds()`). Otherwise new data does. So what was lost is sent again as a repair symbol, which mends
//! whichever symbol of the window is missing when it arrives, also one whose loss is not known yet.
//!
//! | policy | `ds()` | `FECPattern()` (Table II) |
//! |---|---|---|
//! | [`SrArq`](super::SrArq) | `-loss` | never |
//! | [`AcRlnc`](super::AcRlnc) | `c * loss` | once per round trip |
//! | [`Bulk`](super::Bulk) | `-loss` | when all data is sent |
//! | [`Buffer`](super::Buffer) | `c * loss` | Algorithm 2 |
//! | [`Messages`](super::Messages) | `-loss` | Algorithm 4 |
//!
//! Where the paper and its implementation differ, the paper is followed: `ad` counts only what is in
//! flight, the pattern is asked first after every kind of feedback, recovered packets count as lost,
//! and every repair symbol stays within the congestion window.
//!
//! A queue that drops many packets at once drops many of the repair symbols that replace them, too. So
//! with a controller that fills the queue, these policies send more than plain retransmission does.

use super::{Arrival, Decision, Redundancy, RepairPlan, Turn, View};
use std::fmt::Debug;
use std::time::Instant;
use sutura_schedule::registry::{Parameters, UnknownPolicy};

/// At most so many repair symbols are in flight for each that is missing, whatever the threshold:
/// one that grows with the loss would otherwise ask for ever more of them.
const MOST_PER_MISSING: f64 = 4.0;

/// The largest factor of a threshold.
const MAX_FACTOR: f64 = 100.0;

/// What rounding may make of two sides that are equal.
const ROUNDING: f64 = 1e-9;

/// What distinguishes one application from another.
pub(super) trait Rules: Debug + Send {
    /// `ds()`, for this share of lost packets.
    fn threshold(&self, loss: f64) -> f64;

    /// `FECPattern()`: whether a repair symbol goes although no loss is known. A look: it changes
    /// nothing.
    fn pattern(&self, now: Instant, view: &View) -> bool;

    /// Whether what was lost is sent again as a repair symbol, where `ds()` says so, rather than as it
    /// was.
    fn mends(&self) -> bool {
        true
    }

    /// A source symbol was sent for the first time.
    fn on_source_sent(&mut self, _now: Instant, _view: &View) {}

    /// All data that the application has written was sent; `ended` if there will be no more.
    fn on_flushed(&mut self, _now: Instant, _ended: bool, _view: &View) {}

    /// A repair symbol was sent. It covers the whole window, for whatever reason it was sent.
    fn on_repair_sent(&mut self, _now: Instant, _view: &View) {}

    /// The peer has one more symbol.
    fn on_arrived(&mut self, _now: Instant, _view: &View) {}

    /// When the pattern may change without any other event.
    fn timeout(&self) -> Option<Instant> {
        None
    }
}

/// The loop with the rules of an application.
#[derive(Debug)]
pub(super) struct Flec<R>(pub(super) R);

impl<R: Rules> Flec<R> {
    /// Whether too little is in flight to mend what the peer misses.
    fn is_short(&self, view: &View) -> bool {
        let loss = view.path.loss;
        let share = (1.0 - loss - self.0.threshold(loss)).max(1.0 / MOST_PER_MISSING);
        f64::from(view.missing) > share * f64::from(view.added) + ROUNDING
    }
}

impl<R: Rules> Redundancy for Flec<R> {
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

    fn decide(&self, now: Instant, view: &View) -> Decision {
        if view.unacked == 0 {
            return Decision::Source;
        }
        let repair = RepairPlan::over(view.span());
        if self.0.pattern(now, view) {
            return Decision::Repair(repair);
        }
        if self.0.mends() && self.is_short(view) {
            // In place of data that would be sent again, which precedes new data.
            return Decision::Repair(RepairPlan { turn: Turn::First, ..repair });
        }
        Decision::Source
    }

    fn timeout(&self) -> Option<Instant> {
        self.0.timeout()
    }
}

/// How many packets in a row are lost on average: the inverse of Gilbert's `r`.
pub(super) fn burst(view: &View) -> f64 {
    view.path.floor.burst
}

/// How many packets lie between two bursts of losses on average: the inverse of Gilbert's `p`.
pub(super) fn gap(view: &View) -> f64 {
    let loss = view.path.loss;
    if loss > 0.0 { burst(view) * (1.0 - loss) / loss } else { f64::INFINITY }
}

/// A factor of the threshold; `None` if `c` is not from 0 to 100.
pub(super) fn factor(c: f64) -> Option<f64> {
    (0.0..=MAX_FACTOR).contains(&c).then_some(c)
}

/// The parameter `c` of a policy whose threshold is that many times the loss rate.
pub(super) fn factor_of(parameters: &mut Parameters<'_>) -> Result<f64, UnknownPolicy> {
    let c = parameters.number("c", 1.0)?;
    factor(c)
        .ok_or_else(|| UnknownPolicy::new(format!("c: {c} is not a number from 0 to {MAX_FACTOR}")))
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
        let path = PathView { rtt: RTT, loss, floor, ..PathView::default() };
        let next = u64::from(unacked);
        View {
            next,
            unacked,
            missing,
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

    #[test]
    fn a_bulk_transfer_protects_what_it_sent_last() {
        let (now, mut policy) = (Instant::now(), Bulk.build());
        let end = |added| View { has_source: false, idle: true, ..view(60, 0, added, 0.05) };
        policy.on_source_sent(now, 59, &view(60, 0, 0, 0.05));
        assert!(!repairs(&*policy, now + RTT, &end(0)), "more may come");
        policy.on_flushed(now, false, &end(0));
        assert_eq!(policy.timeout(), Some(now + RTT / 8));
        assert!(!repairs(&*policy, now, &end(0)));
        // Three are expected to be lost.
        assert!(
            repairs(&*policy, now + RTT / 8, &end(2)) && !repairs(&*policy, now + RTT, &end(3))
        );
        // Without losses so far one burst.
        let clean = View { path: PathView { loss: 0.0, ..end(0).path }, ..end(0) };
        assert!(repairs(&*policy, now + RTT, &View { added: 1, ..clean }));
        assert!(!repairs(&*policy, now + RTT, &View { added: 2, ..clean }));
    }

    #[test]
    fn a_small_buffer_is_protected_every_so_many_symbols() {
        let (now, mut policy) = (Instant::now(), Buffer::new(1.0).unwrap().build());
        // Bursts of two, so one after every 38.
        let at = |next: u64, added| View { next, ..view(100, 0, added, 0.05) };
        policy.on_source_sent(now, 0, &at(1, 0));
        assert!(!repairs(&*policy, now, &at(37, 0)) && repairs(&*policy, now, &at(38, 0)));
        policy.on_repair_sent(now, &at(38, 1));
        assert!(repairs(&*policy, now, &at(38, 1)), "two for a burst of two");
        policy.on_repair_sent(now, &at(38, 2));
        assert!(!repairs(&*policy, now, &at(38, 2)) && !repairs(&*policy, now, &at(75, 2)));
        assert!(repairs(&*policy, now, &at(38 + 38, 2)));
        assert!(!repairs(&*policy, now, &at(38 + 38, 10)), "twice the expected losses in flight");
    }

    #[test]
    fn a_blocked_sender_protects_all_it_sent() {
        let (now, mut policy) = (Instant::now(), Buffer::new(1.0).unwrap().build());
        let blocked = |added| View { has_source: false, idle: true, ..view(40, 0, added, 0.05) };
        policy.on_source_sent(now, 0, &blocked(0));
        for added in 0..4 {
            assert!(repairs(&*policy, now, &blocked(added)), "{added}");
            policy.on_repair_sent(now, &blocked(added + 1));
        }
        assert!(!repairs(&*policy, now, &blocked(4)), "twice the two that are expected to be lost");
        policy.on_flushed(now, true, &blocked(2));
        assert!(!repairs(&*policy, now, &blocked(2)), "it is not blocked, it has nothing to send");
    }
}
