//! The kit accepts policies that keep the contract, and reports those that do not.

use super::*;
use crate::conformance::testing::{name_of_factory, verdict};
use crate::fec::redundancy::{
    Arrival, Block, Decision, Incremental, MAX_BURST, Reason, Redundancy, RepairPlan, SHORT_KEYS,
    Tail, View,
};
use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

#[test]
fn all_policies_conform() {
    let day = Duration::from_secs(86_400);
    for burst in [0, 1, 3, MAX_BURST] {
        for delay in [Duration::ZERO, MS, 25 * MS, 400 * MS, day] {
            redundancy(&Tail::new(burst, delay));
            redundancy(&Incremental::new(burst, delay));
        }
    }
    for (source, parity) in [(1, 1), (4, 2), (20, 0), (155, 100)] {
        redundancy(&Block::new(source, parity).unwrap());
    }
}

/// The fault of an otherwise correct policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    Nameless,
    Renamed,
    Reparametrized,
    Fickle,
    Restless,
    Sleepless,
    Hollow,
    Stale,
    Visionary,
    Verbose,
    Anxious,
    Insatiable,
    Clingy,
    Impatient,
    Sociable,
    Capricious,
    ShortLived,
    Divider,
    Sleepwalker,
}

#[derive(Debug)]
struct FaultyFactory {
    fault: Fault,
    /// Number of policies built.
    built: AtomicU64,
    /// Number of repair symbols that all policies together sent.
    sent: Arc<AtomicU64>,
}

impl RedundancyFactory for FaultyFactory {
    fn name(&self) -> &str {
        let (nameless, renamed) = (self.fault == Fault::Nameless, self.fault == Fault::Renamed);
        name_of_factory(nameless, renamed, &self.built)
    }

    fn parameters(&self) -> String {
        let changing = self.fault == Fault::Reparametrized;
        let number = if changing { self.built.load(Ordering::Relaxed) } else { 0 };
        format!("number={number}")
    }

    fn sleeps(&self, path: &PathView, _terms: Terms) -> Option<Reason> {
        let sleeps = self.fault == Fault::Sleepwalker && path.loss < 0.01;
        sleeps.then_some(Reason::Lossless)
    }

    fn stays_awake(&self) -> bool {
        true
    }

    fn build(&self) -> Box<dyn Redundancy> {
        let number = self.built.fetch_add(1, Ordering::Relaxed);
        let other = self.fault == Fault::Capricious && number % 2 == 1;
        Box::new(Faulty {
            fault: self.fault,
            inner: Incremental::new(if other { 1 } else { 2 }, 20 * MS).build(),
            asked: Cell::new(0),
            asked_time: Cell::new(0),
            created: None,
            last_timeout: None,
            sent: Arc::clone(&self.sent),
        })
    }
}

#[derive(Debug)]
struct Faulty {
    fault: Fault,
    inner: Box<dyn Redundancy>,
    /// Number of queries for a decision or a timeout.
    asked: Cell<u64>,
    asked_time: Cell<u32>,
    /// The time of the first call.
    created: Option<Instant>,
    /// The last timeout that it returned.
    last_timeout: Option<Instant>,
    sent: Arc<AtomicU64>,
}

impl Faulty {
    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    /// The span of a repair symbol.
    fn span(&self, window: Range<u64>) -> Range<u64> {
        let Range { start, end } = window;
        if self.is(Fault::Hollow) {
            end..end
        } else if self.is(Fault::Stale) {
            0..start
        } else if self.is(Fault::Visionary) {
            start..end + 1
        } else if self.is(Fault::None) {
            // The part of the span below the window is cut off.
            0..end
        } else {
            window
        }
    }
}

impl Redundancy for Faulty {
    fn on_source_sent(&mut self, now: Instant, id: u64, view: &View) {
        let lifetime = now - *self.created.get_or_insert(now);
        if self.is(Fault::ShortLived) {
            assert!(u32::try_from(lifetime.as_micros()).is_ok(), "too old");
        }
        if self.is(Fault::Divider) {
            assert!(view.path.rtt.as_micros() > 0, "divided by the round-trip time");
        }
        self.inner.on_source_sent(now, id, view);
        self.last_timeout = self.inner.timeout().or(self.last_timeout);
    }

    fn on_flushed(&mut self, now: Instant, ended: bool, view: &View) {
        self.inner.on_flushed(now, ended, view);
    }

    fn on_repair_sent(&mut self, now: Instant, view: &View) {
        self.sent.fetch_add(1, Ordering::Relaxed);
        self.inner.on_repair_sent(now, view);
        if self.is(Fault::Impatient) {
            // The next repair symbol is never far away.
            self.inner.on_source_sent(now, view.next, view);
        }
    }

    fn on_arrived(&mut self, now: Instant, id: u64, how: Arrival, view: &View) {
        self.inner.on_arrived(now, id, how, view);
    }

    fn decide(&self, now: Instant, view: &View) -> Decision {
        let asked = self.asked.replace(self.asked.get() + 1);
        let idle = (self.is(Fault::Fickle) && asked % 2 == 1)
            // Gives the same answer to two queries in a row.
            || (self.is(Fault::Sleepless) && asked / 1_000 % 2 == 1)
            || (self.is(Fault::Sociable) && self.sent.load(Ordering::Relaxed) % 5 == 4);
        let window = view.span();
        if self.is(Fault::Insatiable) && view.unacked > 0 {
            return Decision::Repair(RepairPlan::over(window));
        }
        if self.is(Fault::Anxious) && view.unacked == 0 && view.next > 0 {
            return Decision::Repair(RepairPlan::over(view.next - 1..view.next));
        }
        match self.inner.decide(now, view) {
            Decision::Repair(_) if !idle => Decision::Repair(RepairPlan {
                key: self.is(Fault::Verbose).then_some(SHORT_KEYS),
                ..RepairPlan::over(self.span(window))
            }),
            Decision::Repair(_) | Decision::Source => Decision::Source,
        }
    }

    fn timeout(&self) -> Option<Instant> {
        let asked = self.asked_time.replace(self.asked_time.get() + 1);
        if self.is(Fault::Clingy) {
            self.last_timeout
        } else if self.is(Fault::Restless) {
            self.created.map(|at| at + MS * asked)
        } else {
            self.inner.timeout()
        }
    }
}

#[test]
fn each_fault_is_named() {
    for (fault, named) in [
        (Fault::None, "accepted"),
        (Fault::Nameless, "a policy has a name"),
        (Fault::Renamed, "the name of the factory changed"),
        (Fault::Reparametrized, "the parameters of the factory changed"),
        (Fault::Fickle, "changed the answer to it, `decide`"),
        (Fault::Restless, "changed the answer to it, `timeout`"),
        (Fault::Sleepless, "questions changed something"),
        (Fault::Hollow, "covers nothing of the window"),
        (Fault::Stale, "covers nothing of the window"),
        (Fault::Visionary, "names symbols that were never sent"),
        (Fault::Verbose, "is larger than the largest"),
        (Fault::Anxious, "everything has arrived"),
        (Fault::Insatiable, "while nothing else happened it wanted more than"),
        (Fault::Impatient, "while nothing else happened it wanted more than"),
        (Fault::Clingy, "would spin"),
        (Fault::Sociable, "two policies that heard the same differ"),
        (Fault::Capricious, "two policies that heard the same differ"),
        (Fault::ShortLived, "too old"),
        (Fault::Divider, "divided by the round-trip time"),
        (Fault::Sleepwalker, "it stays awake and sleeps"),
    ] {
        let factory =
            FaultyFactory { fault, built: AtomicU64::new(0), sent: Arc::new(AtomicU64::new(0)) };
        let said = verdict(|| redundancy(&factory));
        assert!(said.contains(named), "{fault:?}: {said}");
    }
}
