//! Checks that a scheduler fulfils the contract of [`Scheduler`], for the tests of custom schemes.
//! A test is a single line:
//!
//! ```
//! # use sutura_schedule::{Eps, Scheme};
//! # const MY_SCHEME: Scheme = Scheme::new("my scheme", || Box::new(Eps::new()));
//! sutura_schedule::conformance::scheduler(&MY_SCHEME);
//! ```
//!
//! [`registry()`] checks a table of policies of any seam.
//!
//! All calls are random, but the same in every run. The checks do not cover properties that the interface
//! does not show: memory, running time, and whether the scheme keeps its promises about the order.

mod call;
mod guarded;
mod known;
mod random;
mod rule;
#[cfg(test)]
mod tests;

pub use call::{Call, apply};
pub use known::Known;

use std::fmt;
use std::ops::Range;

use crate::registry::Registry;
use crate::{Extension, Grant, Scheduler, SchedulerFactory, StreamKey};
use guarded::Guarded;
use random::Random;
use rule::Rule;

/// The number of call sequences for each rule.
const SEEDS: u64 = 24;
/// The number of calls in a sequence.
const CALLS: usize = 250;
/// The largest number of streams at once.
const CROWD: u64 = 5000;

/// Checks that the schedulers of `factory` obey every observable rule of [`Scheduler`], with some
/// 50,000 calls.
///
/// # Panics
///
/// Panics if a rule is broken. The message contains the name of the factory, the rule, and the call
/// that revealed it.
pub fn scheduler(factory: &dyn SchedulerFactory) {
    extended_scheduler(factory, &|_, _| None);
}

/// Checks a scheduler that reads an [`Extension`] of priorities. `extend` makes an extension of a random
/// number; it may only name streams of the given range.
///
/// # Panics
///
/// As [`scheduler`] does.
pub fn extended_scheduler(factory: &dyn SchedulerFactory, extend: Extend<'_>) {
    for rule in Rule::ALL {
        for seed in 0..SEEDS {
            twins(factory, rule, Random::new(seed, extend), seed);
        }
    }
    crowd(factory, Random::new(SEEDS, extend));
}

/// Makes an extension of a random number and of the streams that it may name.
pub type Extend<'a> = &'a dyn Fn(u64, Range<StreamKey>) -> Option<Extension>;

/// Checks a table of policies of any seam: each is found by its name unless it needs parameters, has a line
/// of its own, and takes exactly the parameters that are listed. `name` returns the name of a policy.
///
/// # Panics
///
/// If a check fails, with the name of the entry.
pub fn registry<F: ?Sized>(registry: &Registry<F>, name: impl Fn(&F) -> String) {
    let entries = registry.entries();
    assert!(!entries.is_empty(), "{}: there is no policy", registry.seam);
    for (index, entry) in entries.iter().enumerate() {
        let at = format!("{} `{}`", registry.seam, entry.name);
        let found = |text: &str| registry.find(text).map(|made| name(&made));
        let alone = (!entry.needs_parameters).then_some(entry.name);
        assert_eq!(found(entry.name).ok().as_deref(), alone, "{at}");
        let defaults = format!("{}:{}", entry.name, entry.parameters);
        assert_eq!(found(&defaults).as_deref(), Ok(entry.name), "{at}: {defaults}");
        let nonsense = found(&format!("{}:no such parameter=1", entry.name));
        assert!(nonsense.is_err(), "{at}: takes a parameter that is not listed");
        let summary = entry.summary;
        assert!((1..=80).contains(&summary.chars().count()), "{at}: {summary:?} is no short line");
        assert!(!summary.contains('\n') && !summary.ends_with('.'), "{at}: {summary:?}");
        let mut others = entries[..index].iter();
        assert!(others.all(|other| other.summary != summary), "{at}: {summary:?} is said twice");
    }
}

/// A point in the test.
#[derive(Clone, Copy, Debug)]
struct At<'a> {
    name: &'a str,
    seed: u64,
    /// The last call; `None` at the end of the sequence.
    call: Option<&'a Call>,
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.call {
            Some(call) => write!(f, "sequence {}, at {call:?}", self.seed),
            None => write!(f, "at the end of sequence {}", self.seed),
        }
    }
}

impl At<'_> {
    /// Panics unless `holds`.
    #[track_caller]
    fn require(&self, holds: bool, rule: &str) {
        assert!(holds, "the scheduler `{}` breaks a rule: {rule} ({self})", self.name);
    }
}

/// Makes the same calls to two schedulers. One of them also gets calls that must not change anything.
fn twins(factory: &dyn SchedulerFactory, rule: Rule, mut random: Random<'_>, seed: u64) {
    let name = factory.name();
    let mut known = Known::default();
    // The plain scheduler is only asked for grants that are used.
    let (mut plain, mut disturbed) = (Guarded::build(factory), Guarded::build(factory));
    let promised = goes_by(&plain);
    for _ in 0..CALLS {
        let call = random.call();
        let at = At { name, seed, call: Some(&call) };
        let expected = apply(&mut plain, &call);
        let grants = rule.apply(&mut disturbed, &call, &known);
        at.require(grants == expected, rule.text());
        known.note(&call);
        rule.disturb(&mut disturbed, &known, &mut random);
        if rule == Rule::Questions {
            check(&disturbed, &known, random.room(), at);
            at.require(goes_by(&disturbed) == promised, "what it goes by never changes");
        }
    }
    let at = At { name, seed, call: None };
    let order = drain(&mut plain, &mut known.clone(), at);
    at.require(drain(&mut disturbed, &mut known, at) == order, rule.text());
}

/// Whether classes take precedence, and whether headers count.
fn goes_by(scheduler: &dyn Scheduler) -> [bool; 2] {
    [scheduler.goes_by_classes(), scheduler.goes_by_frames()]
}

/// Checks the invariants of a scheduler.
fn check(scheduler: &dyn Scheduler, known: &Known, room: usize, at: At<'_>) {
    let granted = scheduler.next(room);
    at.require(scheduler.next(room) == granted, "`next` asked twice says the same");
    at.require(scheduler.next(0).is_none(), "without room there is no grant");
    let is_empty = known.active().next().is_none();
    at.require(scheduler.is_empty() == is_empty, "`is_empty` if no stream is active");
    match granted {
        Some(grant) => check_grant(grant, room, known, at),
        None => at.require(is_empty || room == 0, IS_WORK_CONSERVING),
    }
}

const IS_WORK_CONSERVING: &str = "there is a grant if there is room and a stream is active";

fn check_grant(Grant { stream, bytes }: Grant, room: usize, known: &Known, at: At<'_>) {
    at.require(known.contains(stream), "only streams that are inserted are granted room");
    at.require(known.is_active(stream), "only active streams are granted room");
    at.require((1..=room).contains(&bytes), "a grant is from 1 byte to the room that there is");
    let is_late = !known.is_control(stream) && known.has_active_control();
    at.require(!is_late, "streams of `Urgency::CONTROL` go before all others");
}

/// Serves every active stream once. Returns them in order.
fn drain(scheduler: &mut dyn Scheduler, known: &mut Known, at: At<'_>) -> Vec<StreamKey> {
    let mut order = Vec::new();
    while let Some(grant) = scheduler.next(1200) {
        // Without this check, a faulty scheduler might never stop.
        check_grant(grant, 1200, known, at);
        scheduler.charge(grant.stream, grant.bytes);
        let last = Call::Deactivate(grant.stream);
        apply(scheduler, &last);
        known.note(&last);
        order.push(grant.stream);
    }
    at.require(known.active().next().is_none(), IS_WORK_CONSERVING);
    at.require(scheduler.is_empty(), "`is_empty` if no stream is active");
    order
}

/// Inserts many streams at once, replaces each of them by another, and finally removes all.
fn crowd(factory: &dyn SchedulerFactory, mut random: Random<'_>) {
    let at = At { name: factory.name(), seed: SEEDS, call: None };
    let mut known = Known::default();
    let mut scheduler = Guarded::build(factory);
    let make = |scheduler: &mut dyn Scheduler, known: &mut Known, call: Call| {
        apply(scheduler, &call);
        known.note(&call);
    };
    for stream in 0..2 * CROWD {
        let priority = random.priority(stream.saturating_sub(50)..stream + 1);
        make(&mut scheduler, &mut known, Call::Insert(stream, priority));
        make(&mut scheduler, &mut known, Call::Activate(stream));
        if let Some(old) = stream.checked_sub(CROWD) {
            make(&mut scheduler, &mut known, Call::Remove(old));
            let granted = scheduler.next(1200);
            at.require(granted.is_some(), IS_WORK_CONSERVING);
            if let Some(grant) = granted {
                check_grant(grant, 1200, &known, at);
                make(&mut scheduler, &mut known, random.charge(grant));
            }
        }
    }
    drain(&mut scheduler, &mut known, at);
    for stream in CROWD..2 * CROWD {
        make(&mut scheduler, &mut known, Call::Activate(stream));
        make(&mut scheduler, &mut known, Call::Remove(stream));
    }
    check(&scheduler, &known, 1200, at);
}
