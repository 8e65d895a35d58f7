//! A coding session without actual coding: it knows the fate of each symbol, and calls its policy
//! like a connection does.

use super::history::{SessionStep, message};
use crate::fec::redundancy::{
    Arrival, Decision, MAX_BURST, Message, PathView, Redundancy, RedundancyFactory, RepairPlan,
    SHORT_KEYS, View,
};
use crate::fec::{Horizon, Uncovered};
use crate::wire::code_id::CodeSet;
use std::collections::VecDeque;
use std::ops::Range;
use std::time::{Duration, Instant};
use sutura_random::Rng;

/// Number of repair symbols per source symbol, in addition to a burst, that a policy may want while
/// nothing else happens.
const REPAIRS_PER_SYMBOL: u64 = 4;
/// Bytes of stream data in a source symbol.
const SYMBOL_BYTES: u64 = 1000;
/// How many times a policy must decline before the kit assumes that it wants nothing more.
const QUIET_ROUNDS: u32 = 6;

/// The state of a source symbol in the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SymbolFate {
    InFlight,
    /// Lost, and not sent again yet.
    Missing,
    /// Arrived, or given up.
    Done,
}

/// The answers of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PolicyAnswers {
    decision: Decision,
    protects: bool,
    timeout: Option<Instant>,
}

#[derive(Debug)]
pub(super) struct ModelSession {
    name: String,
    policy: Box<dyn Redundancy>,
    now: Instant,
    /// Maximum number of symbols in the window.
    window: usize,
    /// First symbol of the window.
    first: u64,
    /// The first symbol that the policy has kept.
    kept: u64,
    /// Repair symbols cover no symbols below this any more.
    covers_from: u64,
    symbols: VecDeque<SymbolFate>,
    /// Repair symbols in flight.
    repairs: VecDeque<Range<u64>>,
    /// Number of symbols that the application has written and that were not sent.
    backlog: u64,
    ended: bool,
    credit: u64,
    idle: bool,
    message: Option<Message>,
    resends: bool,
    next_message: Option<Instant>,
    /// The deadlines of the symbols in the window.
    deadlines: VecDeque<Option<Instant>>,
    /// The first symbol that may still be in time.
    timely: u64,
    uncovered: Uncovered,
    path: PathView,
    /// Selects the symbols of each step.
    order: Rng,
}

impl ModelSession {
    /// A session whose first symbol is `first`.
    pub(super) fn new(
        factory: &dyn RedundancyFactory,
        now: Instant,
        window: usize,
        first: u64,
        seed: u64,
    ) -> Self {
        let mut uncovered = Uncovered::default();
        uncovered.cover(first);
        let session = Self {
            name: factory.name().to_owned(),
            policy: factory.build(),
            now,
            window,
            first,
            kept: first,
            covers_from: 0,
            symbols: VecDeque::new(),
            repairs: VecDeque::new(),
            backlog: 0,
            ended: false,
            credit: u64::MAX,
            idle: true,
            message: None,
            resends: !seed.is_multiple_of(4),
            next_message: None,
            deadlines: VecDeque::new(),
            timely: first,
            uncovered,
            path: PathView::default(),
            order: Rng::new(seed),
        };
        session.ask();
        session
    }

    pub(super) fn play(&mut self, step: SessionStep) -> PolicyAnswers {
        match step {
            SessionStep::Wait(time) => {
                self.pass_until(self.now.checked_add(time).unwrap_or(self.now));
            }
            SessionStep::Write { symbols, ended } => {
                self.backlog += symbols;
                self.ended = ended;
            }
            SessionStep::Slots { count, taken } => (0..count).for_each(|_| self.fill_slot(taken)),
            SessionStep::Acknowledge { most } => self.acknowledge(most),
            SessionStep::Recover { most } => self.recover(most),
            SessionStep::Lose { most } => self.lose(most),
            SessionStep::Resend { most } => {
                for id in self.draw(most, |fate| fate == SymbolFate::Missing) {
                    self.set(id, SymbolFate::InFlight);
                }
            }
            SessionStep::Settle { most } => {
                let count = most.min(self.repairs.len() as u64) as usize;
                self.repairs.drain(..count);
            }
            SessionStep::GiveUp => {
                (self.first..self.next()).for_each(|id| self.set(id, SymbolFate::Done));
                self.slide();
            }
            SessionStep::Surround { credit, idle } => (self.credit, self.idle) = (credit, idle),
            SessionStep::Announce { size, tolerance, next } => {
                self.message = Some(message(self.now, size, tolerance));
                self.next_message = next.and_then(|next| self.now.checked_add(next));
            }
            SessionStep::Move(path) => self.path = path.view(),
            SessionStep::Rest => self.rest(),
        }
        self.ask()
    }

    fn next(&self) -> u64 {
        self.first + self.symbols.len() as u64
    }

    fn newest_missing(&self) -> Option<u64> {
        let newest = self.symbols.iter().rposition(|fate| *fate == SymbolFate::Missing)?;
        Some(self.first + newest as u64)
    }

    fn view(&self) -> View {
        let timely = self.timely();
        let count = |wanted: &dyn Fn(SymbolFate) -> bool| {
            (timely..self.next()).filter(|id| wanted(self.fate(*id))).count() as u32
        };
        let added = self.repairs.iter().filter(|span| span.end > self.first).count() as u32;
        let has_source = self.backlog > 0 && self.credit > 0;
        View {
            first: self.first,
            timely,
            kept: self.kept,
            next: self.next(),
            capacity: u32::try_from(self.window).unwrap_or(u32::MAX),
            unacked: count(&|fate| fate != SymbolFate::Done),
            missing: count(&|fate| fate == SymbolFate::Missing),
            newest_missing: self.newest_missing().filter(|newest| *newest >= timely),
            added,
            unprotected: self.uncovered.count(),
            deadline: self.uncovered.earliest(),
            left: self.backlog.saturating_mul(SYMBOL_BYTES),
            buffer: self.credit.saturating_add(self.symbols.len() as u64 * SYMBOL_BYTES),
            has_source,
            idle: self.idle && !has_source,
            credit: self.credit,
            message: self.message,
            resends: self.resends,
            next_message: self.next_message,
            codes: CodeSet::all(),
            path: self.path,
        }
    }

    /// The first symbol that has not arrived and may still be in time.
    fn timely(&self) -> u64 {
        let timely = self.timely.max(self.first);
        let open = (timely..self.next()).find(|id| self.fate(*id) != SymbolFate::Done);
        open.unwrap_or(self.next())
    }

    /// The state of the path.
    pub(super) fn path(&self) -> &PathView {
        &self.path
    }

    /// Asks all queries and checks the answers.
    fn ask(&self) -> PolicyAnswers {
        let (name, view) = (&self.name, self.view());
        let decision = self.policy.decide(self.now, &view);
        let protects = self.policy.protects(&view);
        let all = self.policy.protects_all();
        assert!(protects || !all, "{name}: it protects all data, and not this");
        let timeout = self.policy.timeout();
        let twice = "a question changed the answer to it";
        assert_eq!(decision, self.policy.decide(self.now, &view), "{name}: {twice}, `decide`");
        assert_eq!(protects, self.policy.protects(&view), "{name}: {twice}, `protects`");
        assert_eq!(timeout, self.policy.timeout(), "{name}: {twice}, `timeout`");
        if let Decision::Repair(plan) = &decision {
            let rests = self.policy.rests(self.now, view.missing > 0);
            assert!(!rests, "{name}: it wants a repair symbol and rests");
            self.check_plan(plan, &view);
        }
        PolicyAnswers { decision, protects, timeout }
    }

    fn check_plan(&self, plan: &RepairPlan, view: &View) {
        let (name, span, window) = (&self.name, &plan.span, view.span());
        assert!(
            view.unacked > 0,
            "{name}: everything has arrived or comes too late, and it wants a repair symbol over {span:?}"
        );
        assert!(
            span.end <= window.end,
            "{name}: a repair symbol over {span:?} names symbols that were never sent: the window \
             is {window:?}"
        );
        assert!(
            span.start.max(window.start) < span.end,
            "{name}: a repair symbol over {span:?} covers nothing of the window {window:?}"
        );
        assert!(
            span.start.max(view.kept) >= self.covers_from,
            "{name}: a repair symbol over {span:?} covers symbols below {}, which it said it would not",
            self.covers_from
        );
        let (key, largest) = (plan.key.unwrap_or(0), self.policy.largest_key());
        assert!(
            key < SHORT_KEYS || key <= largest,
            "{name}: the key {key} is larger than the largest, {largest}"
        );
    }

    /// Asks additional queries: for other times, and for views that may soon apply.
    pub(super) fn pester(&self, random: &mut Rng) {
        for _ in 0..4 {
            let later = Duration::from_micros(random.below(200_000));
            let now = self.now.checked_add(later).unwrap_or(self.now);
            let view = self.view();
            let _ = self.policy.decide(now, &View { has_source: !view.has_source, ..view });
            let _ = self.policy.decide(now, &view);
            let _ = self.policy.timeout();
        }
        self.ask();
    }

    /// Fills a slot as the policy decides, unless other data of the connection goes first.
    fn fill_slot(&mut self, taken: u64) {
        let decision = self.ask().decision;
        if self.order.below(100) < taken {
            return;
        }
        match decision {
            Decision::Repair(plan) => self.send_repair(&plan),
            Decision::Source if self.view().has_source => self.send_source(),
            Decision::Source => {}
        }
    }

    fn send_source(&mut self) {
        let protects = self.ask().protects;
        self.backlog -= 1;
        if !protects {
            return;
        }
        if self.next() - self.kept >= self.window as u64 {
            self.kept = self.first;
        }
        if self.symbols.len() == self.window {
            // The oldest symbol leaves the window, whatever its state.
            self.set(self.first, SymbolFate::Done);
            self.slide();
            self.kept = self.first;
        }
        let id = self.next();
        self.symbols.push_back(SymbolFate::InFlight);
        let deadline = self.message.and_then(|message| message.deadline);
        self.deadlines.push_back(deadline);
        self.uncovered.add(deadline);
        let view = self.view();
        self.policy.on_source_sent(self.now, id, &view);
        // One of several streams may have no more to send.
        if self.backlog == 0 || self.order.below(8) == 0 {
            let ended = self.ended && self.backlog == 0;
            self.policy.on_flushed(self.now, ended, &view);
        }
    }

    fn send_repair(&mut self, plan: &RepairPlan) {
        self.repairs.push_back(plan.span.start.max(self.kept)..plan.span.end);
        for id in self.uncovered.start().max(self.first)..plan.span.end {
            if self.fate(id) != SymbolFate::Done {
                self.uncovered.remove(id, self.deadline(id));
            }
        }
        self.uncovered.cover(plan.span.end);
        let view = self.view();
        self.policy.on_repair_sent(self.now, &view);
        self.release_kept();
        let covers_from = self.policy.covers_from(self.kept).min(self.next());
        self.covers_from = self.covers_from.max(covers_from);
        let PolicyAnswers { decision, timeout, .. } = self.ask();
        let passed = timeout.is_some_and(|at| at <= self.now);
        assert!(
            decision != Decision::Source || !passed,
            "{}: it wants to be asked again at a time that has passed, though the repair symbols \
             that it wanted were sent: a caller that waits for that time would spin",
            self.name
        );
    }

    /// Up to `most` symbols of a kind, in random order.
    fn draw(&mut self, most: u64, kind: impl Fn(SymbolFate) -> bool) -> Vec<u64> {
        let all = (self.first..).zip(&self.symbols).filter(|(_, fate)| kind(**fate));
        let mut ids: Vec<u64> = all.map(|(id, _)| id).collect();
        let count = most.min(ids.len() as u64);
        let mut pick = || ids.swap_remove(self.order.below(ids.len() as u64) as usize);
        (0..count).map(|_| pick()).collect()
    }

    fn fate(&self, id: u64) -> SymbolFate {
        let index = id.checked_sub(self.first).map(|index| index as usize);
        index.and_then(|index| self.symbols.get(index)).copied().unwrap_or(SymbolFate::Done)
    }

    fn deadline(&self, id: u64) -> Option<Instant> {
        let index = id.checked_sub(self.first)?;
        self.deadlines.get(index as usize).copied().flatten()
    }

    /// Lets time pass. Data that cannot arrive in time any more needs no protection.
    fn pass_until(&mut self, now: Instant) {
        self.now = now;
        let horizon = Horizon::new(now, self.path.min_rtt, self.path.one_way());
        horizon.into_iter().for_each(|horizon| self.uncovered.expire(horizon.expected));
        let least = horizon.map(|horizon| horizon.least);
        let is_over = |at: Option<Instant>| at.zip(least).is_some_and(|(at, least)| at < least);
        self.timely = self.timely();
        while !self.resends && self.timely < self.next() && is_over(self.deadline(self.timely)) {
            self.timely += 1;
        }
    }

    fn set(&mut self, id: u64, fate: SymbolFate) {
        if fate == SymbolFate::Done && self.fate(id) != SymbolFate::Done {
            self.uncovered.remove(id, self.deadline(id));
        }
        let index = id.checked_sub(self.first).map(|index| index as usize);
        if let Some(symbol) = index.and_then(|index| self.symbols.get_mut(index)) {
            *symbol = fate;
        }
    }

    /// Removes symbols that are done from the old end of the window.
    fn slide(&mut self) {
        while self.symbols.front() == Some(&SymbolFate::Done) {
            self.symbols.pop_front();
            self.deadlines.pop_front();
            self.first += 1;
        }
        self.release_kept();
    }

    fn release_kept(&mut self) {
        self.kept = self.policy.keeps(self.first).clamp(self.kept, self.first);
    }

    fn acknowledge(&mut self, most: u64) {
        for id in self.draw(most, |fate| fate != SymbolFate::Done) {
            let how =
                if self.fate(id) == SymbolFate::Missing { Arrival::Late } else { Arrival::Acked };
            self.set(id, SymbolFate::Done);
            self.slide();
            let view = self.view();
            self.policy.on_arrived(self.now, id, how, &view);
            self.ask();
        }
    }

    /// The peer reports all of them at once.
    fn recover(&mut self, most: u64) {
        let mut ids = self.draw(most, |fate| fate != SymbolFate::Done);
        ids.sort_unstable();
        ids.iter().for_each(|id| self.set(*id, SymbolFate::Done));
        self.slide();
        let view = self.view();
        for id in ids {
            self.policy.on_arrived(self.now, id, Arrival::Recovered, &view);
        }
    }

    /// Lost symbols wait to be sent again, or are given up, which a policy is not told.
    fn lose(&mut self, most: u64) {
        for id in self.draw(most, |fate| fate == SymbolFate::InFlight) {
            let view = self.view();
            self.policy.on_lost(self.now, id, &view);
            if !self.resends && self.order.below(2) == 0 {
                self.policy.on_unmended(self.now, id, &view);
            }
            let given_up = self.order.below(8) == 0;
            self.set(id, if given_up { SymbolFate::Done } else { SymbolFate::Missing });
            self.slide();
        }
    }

    /// Only time passes, from one timeout to the next, and the repair symbols that the policy wants
    /// are sent.
    fn rest(&mut self) {
        let unacked = u64::from(self.view().unacked);
        let most = u64::from(MAX_BURST) + REPAIRS_PER_SYMBOL * unacked;
        let step = self.path.pto.clamp(Duration::from_millis(1), Duration::from_secs(3_600));
        let (mut sent, mut quiet) = (0, 0);
        while quiet < QUIET_ROUNDS {
            let PolicyAnswers { decision, timeout, .. } = self.ask();
            if let Decision::Repair(plan) = decision {
                quiet = 0;
                sent += 1;
                assert!(
                    sent <= most,
                    "{}: while nothing else happened it wanted more than {most} repair symbols \
                     for {unacked} source symbols",
                    self.name
                );
                self.send_repair(&plan);
            } else {
                quiet += 1;
                let later = self.now.checked_add(step).unwrap_or(self.now);
                self.pass_until(timeout.filter(|at| *at > self.now).unwrap_or(later));
            }
        }
    }
}
