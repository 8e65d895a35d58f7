//! The kit accepts orders that keep the contract, and reports those that do not.

use super::*;
use crate::conformance::testing::{name_of_factory, verdict};
use crate::streams::resend_order::{ByLoss, First, FirstBy, InTurn, Precedence, ResendOrder};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use sutura_schedule::{Priority, Scheduler};

#[test]
fn any_scheduler_may_order_what_is_lost() {
    for scheduler in SCHEDULERS {
        resend_order(&FirstBy(scheduler.make("").unwrap()));
    }
}

/// The fault of an otherwise correct order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    Nameless,
    Renamed,
    Nostalgic,
    Forgetful,
    Lazy,
    LazyInTurn,
    Fickle,
    Sleepless,
    Wavering,
    Gullible,
    Attentive,
    Sociable,
    Capricious,
}

#[derive(Debug)]
struct FaultyFactory {
    fault: Fault,
    built: AtomicU64,
    /// Number of frames reported to all orders together.
    heard: Arc<AtomicU64>,
}

/// Two orders that keep the contract. The first one answers; with some faults, sometimes the second does.
#[derive(Debug)]
struct Faulty {
    fault: Fault,
    usual: Box<dyn ResendOrder>,
    other: Box<dyn ResendOrder>,
    /// Number of orders that the factory built before.
    number: u64,
    heard: Arc<AtomicU64>,
    /// Number of queries.
    asked: Cell<u64>,
    /// Number of calls of `charge`.
    charged: u64,
    /// Number of frames queued so far.
    queued: u64,
}

impl ResendOrderFactory for FaultyFactory {
    fn name(&self) -> &str {
        let (nameless, renamed) = (self.fault == Fault::Nameless, self.fault == Fault::Renamed);
        name_of_factory(nameless, renamed, &self.built)
    }

    fn build(&self, scheduler: &dyn Fn() -> Box<dyn Scheduler>) -> Box<dyn ResendOrder> {
        let in_turn = self.fault == Fault::LazyInTurn;
        let usual: &dyn ResendOrderFactory = if in_turn { &InTurn } else { &ByLoss };
        Box::new(Faulty {
            fault: self.fault,
            usual: usual.build(scheduler),
            other: First.build(scheduler),
            number: self.built.fetch_add(1, Ordering::Relaxed),
            heard: Arc::clone(&self.heard),
            asked: Cell::new(0),
            charged: 0,
            queued: 0,
        })
    }
}

impl Faulty {
    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    fn both(&mut self, tell: impl Fn(&mut dyn ResendOrder)) {
        tell(&mut *self.usual);
        tell(&mut *self.other);
    }
}

impl ResendOrder for Faulty {
    fn precedence(&self) -> Precedence {
        if self.is(Fault::Wavering) && self.queued > 0 {
            return Precedence::InTurn;
        }
        self.usual.precedence()
    }

    fn insert(&mut self, stream: StreamKey, priority: &Priority) {
        self.both(|order| order.insert(stream, priority));
    }

    fn remove(&mut self, stream: StreamKey) {
        if !self.is(Fault::Nostalgic) {
            self.both(|order| order.remove(stream));
        }
    }

    fn reprioritize(&mut self, stream: StreamKey, priority: &Priority) {
        self.both(|order| order.reprioritize(stream, priority));
    }

    fn queued(&mut self, stream: StreamKey) {
        self.queued += 1;
        self.heard.fetch_add(1, Ordering::Relaxed);
        if self.is(Fault::Gullible) {
            self.both(|order| order.insert(stream, &Priority::default()));
        }
        self.both(|order| order.queued(stream));
    }

    fn dequeued(&mut self, stream: StreamKey, left: usize) {
        if !self.is(Fault::Forgetful) {
            self.both(|order| order.dequeued(stream, left));
        }
    }

    fn charge(&mut self, stream: StreamKey, bytes: usize) {
        self.charged += 1;
        self.both(|order| order.charge(stream, bytes));
    }

    fn next(&self) -> Option<StreamKey> {
        let asked = self.asked.replace(self.asked.get() + 1);
        if self.is(Fault::Lazy) || self.is(Fault::LazyInTurn) {
            return None;
        }
        let asks_other = (self.is(Fault::Fickle) && asked % 2 == 1)
            // Gives the same answer to two queries in a row.
            || (self.is(Fault::Sleepless) && asked / 200 % 2 == 1)
            // Also counts unknown streams.
            || (self.is(Fault::Attentive) && self.charged % 2 == 1)
            || (self.is(Fault::Sociable) && self.heard.load(Ordering::Relaxed) % 2 == 1)
            || (self.is(Fault::Capricious) && self.number % 3 == 1);
        if asks_other { self.other.next() } else { self.usual.next() }
    }
}

#[test]
fn each_fault_is_named() {
    for (fault, named) in [
        (Fault::None, "accepted"),
        (Fault::Nameless, "an order has a name"),
        (Fault::Renamed, "the name of the factory changed"),
        (Fault::Nostalgic, "of which nothing waits"),
        (Fault::Forgetful, "of which nothing waits"),
        (Fault::Lazy, "names no stream though something waits"),
        (Fault::LazyInTurn, "names no stream though something waits"),
        (Fault::Fickle, "changed the answer to it, `next`"),
        (Fault::Sleepless, "questions changed something"),
        (Fault::Wavering, "the precedence of an order changed"),
        (Fault::Gullible, "of which nothing waits"),
        (Fault::Attentive, "names an unknown stream changed something"),
        (Fault::Sociable, "two orders that heard the same differ"),
        (Fault::Capricious, "two orders that heard the same differ"),
    ] {
        let factory =
            FaultyFactory { fault, built: AtomicU64::new(0), heard: Arc::new(AtomicU64::new(0)) };
        let said = verdict(|| resend_order(&factory));
        assert!(said.contains(named), "{fault:?}: {said}");
    }
}
