//! Compares [`Hls`] with a simple model that keeps everything in lists and searches them.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::conformance::apply;
use crate::hmm::model::{Id, Model, ModelMember, ROOT, any_call};

/// The budget that a class hands out.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    base: i64,
    left: i64,
    sum: i128,
    dealt: i128,
}

/// Rounds among the streams of a tree.
#[derive(Debug, Default)]
struct ModelRounds {
    tree: Model,
    round: u64,
    begun: bool,
    /// The streams of the round whose turn is to come or continues.
    streams: Vec<Id>,
    /// The members that take part, and the members that have their share.
    part: BTreeSet<Id>,
    visited: BTreeSet<Id>,
    accounts: BTreeMap<Id, Account>,
    balances: BTreeMap<Id, i64>,
    /// The last round of each stream.
    seen: BTreeMap<Id, u64>,
}

impl ModelRounds {
    fn weight(&self, id: Id) -> i128 {
        self.tree.members[&id].weight.thousandths().into()
    }

    fn account(&mut self, class: Id) -> &mut Account {
        self.accounts.entry(class).or_default()
    }

    fn balance(&self, stream: Id) -> i64 {
        self.balances.get(&stream).copied().unwrap_or_default()
    }

    fn is_backlogged(&self, id: Id) -> bool {
        self.tree.all_backlogged().contains(&id)
    }

    /// Makes a change of the tree. A member that leaves gives back its balance.
    fn change(&mut self, change: impl FnOnce(&mut Model)) {
        let before = self.tree.all_backlogged();
        let members: BTreeMap<Id, ModelMember> = self.tree.members.clone();
        change(&mut self.tree);
        let after = self.tree.all_backlogged();
        let moved = |id: &Id| {
            self.tree.members.get(id).is_none_or(|now| now.place() != members[id].place())
        };
        let left: Vec<Id> =
            before.iter().copied().filter(|id| !after.contains(id) || moved(id)).collect();
        for id in left.iter().filter(|id| matches!(id, Id::Stream(_))) {
            let rest = self.balance(*id).max(0);
            *self.balances.entry(*id).or_default() -= rest;
            self.account(members[id].parent).left += rest;
        }
        // From the bottom to the top: each class moves as often as there are classes above it.
        for _ in 0..crate::MAX_DEPTH {
            for id in before.iter().filter(|id| matches!(id, Id::Class(_))) {
                if !after.contains(id) {
                    let rest = std::mem::take(&mut self.account(*id).left);
                    self.account(members[id].parent).left += rest;
                }
            }
        }
        let is_there = |id: &Id| *id == ROOT || self.tree.members.contains_key(id);
        self.accounts.retain(|id, _| is_there(id));
        self.balances.retain(|id, _| is_there(id));
        self.seen.retain(|id, _| is_there(id));
        self.part.retain(is_there);
        self.visited.retain(is_there);
        self.settle();
    }

    /// The streams of a round below a class, in order, each with the reciprocal of its share.
    fn search(&mut self, class: Id, reciprocal: f64, found: &mut Vec<(Id, f64)>) {
        self.part.insert(class);
        let members = self.tree.found(class);
        let sum = members.iter().map(|id| self.weight(*id)).sum();
        let left = self.account(class).left;
        self.accounts.insert(class, Account { left, sum, ..Account::default() });
        for id in members {
            let mut reciprocal = reciprocal;
            if self.tree.members[&id].incremental {
                reciprocal = reciprocal * sum as f64 / self.weight(id) as f64;
            }
            match id {
                Id::Class(_) => self.search(id, reciprocal, found),
                Id::Stream(_) => found.push((id, reciprocal)),
            }
        }
    }

    fn see(&mut self, stream: Id) {
        let seen = self.seen.insert(stream, self.round).unwrap_or_default();
        let balance = self.balances.entry(stream).or_default();
        for _ in (seen + 1..self.round).take(300) {
            *balance = if *balance < 0 { (*balance + 1350).min(0) } else { *balance };
        }
    }

    fn begin(&mut self) {
        self.round += 1;
        self.begun = true;
        self.part.clear();
        self.visited = BTreeSet::from([ROOT]);
        let mut found = Vec::new();
        self.search(ROOT, 1.0, &mut found);
        let largest = found.iter().map(|(_, reciprocal)| *reciprocal).fold(1.0, f64::max);
        self.streams = found.into_iter().map(|(id, _)| id).collect();
        for stream in self.streams.clone() {
            self.see(stream);
            self.part.insert(stream);
        }
        let quantum = (1350.0 * (1.0 + largest)).min((1i64 << 60) as f64) as i64;
        let root = self.account(ROOT);
        (root.base, root.left) = (quantum, quantum);
    }

    fn endow(&mut self, id: Id) {
        if !self.visited.insert(id) {
            return;
        }
        let parent = self.tree.members[&id].parent;
        self.endow(parent);
        let weight = self.weight(id);
        let account = self.account(parent);
        let mut share = 0;
        if account.sum > 0 {
            let part = |dealt| i128::from(account.base) * dealt / account.sum;
            let dealt = (account.dealt + weight).min(account.sum);
            share = ((part(dealt) - part(account.dealt)) as i64).min(account.left);
            account.dealt = dealt;
            account.left -= share;
        }
        match id {
            Id::Stream(_) => *self.balances.entry(id).or_default() += share,
            Id::Class(_) => {
                let account = self.account(id);
                account.base = share + account.left.min(share);
                account.left = account.base;
            }
        }
    }

    /// Ends turns, and rounds, until somebody may send.
    fn settle(&mut self) {
        let Some(first) = self.first() else {
            self.begun = false;
            return;
        };
        if self.tree.members[&first].urgency == Urgency::CONTROL {
            return;
        }
        loop {
            while let Some(&id) = self.streams.first().filter(|_| self.begun) {
                if self.part.contains(&id) && self.is_backlogged(id) {
                    self.endow(id);
                    if self.balance(id) > 0 {
                        return;
                    }
                }
                self.streams.remove(0);
            }
            self.begun = false;
            if self.balance(first) > -1350 {
                return;
            }
            self.begin();
        }
    }

    /// The first stream by priorities alone.
    fn first(&self) -> Option<Id> {
        let mut at = ROOT;
        loop {
            at = *self.tree.found(at).first()?;
            if matches!(at, Id::Stream(_)) {
                return Some(at);
            }
        }
    }

    fn turn(&self) -> Option<Id> {
        let first = self.first()?;
        let control = self.tree.members[&first].urgency == Urgency::CONTROL;
        let current = self.streams.first().filter(|_| self.begun && !control);
        Some(current.copied().unwrap_or(first))
    }

    /// Whether a stream ends the round and has the next for itself.
    fn is_alone(&self, stream: Id) -> bool {
        let mut classes = vec![ROOT];
        let mut next = Vec::new();
        while let Some(class) = classes.pop() {
            for id in self.tree.found(class) {
                if matches!(id, Id::Class(_)) { classes.push(id) } else { next.push(id) }
            }
        }
        next == [stream] && !(self.begun && self.streams.len() > 1)
    }
}

impl Scheduler for ModelRounds {
    fn insert(&mut self, stream: StreamKey, priority: Priority) {
        self.change(|tree| tree.insert(stream, priority));
    }

    fn remove(&mut self, stream: StreamKey) {
        self.change(|tree| tree.remove(stream));
    }

    fn reprioritize(&mut self, stream: StreamKey, priority: Priority) {
        self.change(|tree| tree.reprioritize(stream, priority));
    }

    fn activate(&mut self, stream: StreamKey) {
        self.change(|tree| tree.activate(stream));
    }

    fn deactivate(&mut self, stream: StreamKey) {
        self.change(|tree| tree.deactivate(stream));
    }

    fn next(&self, room: usize) -> Option<Grant> {
        let turn = self.turn().filter(|_| room > 0)?;
        let Id::Stream(stream) = turn else { return None };
        let free = self.is_alone(turn) || self.tree.members[&turn].urgency == Urgency::CONTROL;
        let share = if self.begun { 0 } else { 1350 };
        let balance = (self.balance(turn) + share) as usize;
        Some(Grant { stream, bytes: if free { room } else { room.min(balance) } })
    }

    fn charge(&mut self, stream: StreamKey, bytes: usize) {
        let id = Id::Stream(stream);
        let Some(member) = self.tree.members.get(&id) else { return };
        if bytes == 0 || member.urgency == Urgency::CONTROL {
            return;
        }
        if self.turn() == Some(id) && !self.begun {
            self.begin();
            self.endow(id);
        }
        self.see(id);
        let balance = self.balances.entry(id).or_default();
        *balance = (*balance - bytes.min(1 << 18) as i64).max(-(1 << 18));
        self.settle();
    }

    fn is_empty(&self) -> bool {
        self.tree.is_empty()
    }
}

proptest! {
    #[test]
    fn hls_decides_like_the_model(calls in prop::collection::vec(any_call(), 0..200)) {
        let mut hls = Hls::new();
        let mut model = ModelRounds::default();
        for call in &calls {
            prop_assert_eq!(apply(&mut hls, call), apply(&mut model, call), "{:?}", call);
            prop_assert_eq!(hls.next(1200), model.next(1200), "after {:?}", call);
            prop_assert_eq!(hls.is_empty(), model.is_empty());
            prop_assert_eq!(hls.streams(), model.tree.priorities.len());
            prop_assert_eq!(hls.streams() + hls.classes(), model.tree.members.len());
        }
    }
}
