//! Sharing by rounds: hierarchical link sharing (Holzinger et al. 2025, section III-B), over the same
//! tree of classes as [`hmm`](crate::hmm).

use std::sync::Arc;

use crate::hmm::tree::{Kind, Node, ROOT, Rank, Sharing, Tree};
use crate::hmm::{LMAX, MAX_DEBT, tree_calls};
use crate::queue::Slot;
use crate::registry::Entry;
use crate::{Grant, MAX_DEPTH, Priority, Scheduler, SchedulerFactory, Scheme, StreamKey, Urgency};

impl Scheme {
    /// Weighted hierarchical max-min fair sharing by rounds, hierarchical link sharing: [`Hls`].
    pub const HLS: Self = Self::new("hls", || Box::new(Hls::new()));
}

pub(crate) const ENTRY: Entry<dyn SchedulerFactory> =
    Entry::new(Scheme::HLS.name(), "shares by weight and class, in rounds", |_| {
        Ok(Arc::new(Scheme::HLS))
    });

/// Hierarchical link sharing, the weighted round robin of the paper (section III-B), after
/// Luangsomboon and Liebeherr.
///
/// Every stream and class has a *balance* of bytes that it may take from the class above. When the
/// root has used up its balance it gets the quantum `Q* = Lmax (1 + sum(w)/w_min)` over the streams
/// that the search finds now, with their weights relative to the root: enough for a full packet of
/// the lightest. A class hands its balance out in rounds: at the start of one it computes the fair
/// quota of a unit of weight, and each member gets its share when its turn comes, in order of the
/// keys. A member's turn lasts while it is backlogged and its balance is positive; sending a packet
/// may overdraw the balance, and the next rounds pay that back.
///
/// A member that ends its turn early gives up the rest of its balance. The bytes are then still on
/// the balance of its class, for nothing was sent: the *residual*, which the class hands out in
/// another round among those that are still backlogged. A class that nobody below needs service of
/// gives up its balance in the same way. Nothing else is needed for the surplus to find whoever can
/// use it, and for the link never to idle while someone is backlogged.
///
/// Strict priorities are kept by each class for itself and at every decision: if a more urgent
/// member appears, the round of the less urgent ones stops where it is and goes on later. An
/// incremental newcomer among siblings of its urgency waits for the end of their round.
///
/// A round begins with its first packet: whoever becomes backlogged before that takes part in it.
///
/// The rights that two backlogged incremental siblings get are in proportion to their weights,
/// except those of the one round that is under way; so no member is ahead of its max-min fair share
/// by more than its share of one Q* and a packet.
///
/// Q* is bounded by 1024 packets more than there are streams that share, whatever the ratio of their
/// weights: the lightest then get a turn in which they can send only every few rounds.
#[derive(Debug, Default)]
pub struct Hls {
    tree: Tree<Rounds>,
}

/// Packets of the quantum that the weights may add to one for each stream.
const MAX_SPREAD: u32 = 1024;
/// Streams for which the quantum grows.
const MAX_SHARES: u32 = 1 << 22;
/// Rounds in which the lightest member has paid back all it can owe.
const FORGIVEN: u64 = (MAX_DEBT / LMAX + 1) as u64;

impl Hls {
    /// A scheduler without streams.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many streams are inserted, active or not.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.tree.streams()
    }

    /// How many classes there are. One goes with the last stream below it.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.tree.classes()
    }

    /// Slots of nodes and of classes, in use or not.
    #[cfg(test)]
    pub(crate) fn slots(&self) -> (usize, usize) {
        (self.tree.nodes.len(), self.tree.inners.len())
    }
}

impl Scheduler for Hls {
    tree_calls!();

    fn charge(&mut self, stream: StreamKey, bytes: usize) {
        if bytes == 0 {
            // That is no packet, with which turns would begin.
            return;
        }
        let Some(mut slot) = self.tree.slot_to_charge(stream) else {
            return;
        };
        // Whether the stream and all classes above it have their turn.
        let as_foreseen = self.tree.is_turn_of(slot) && self.tree.begin_turns();
        let spent = self::bytes(u32::try_from(bytes).unwrap_or(MAX_DEBT).min(MAX_DEBT));
        // The uppermost that has nothing left.
        let mut over = None;
        loop {
            let Node { parent, ref mut member, .. } = self.tree.nodes[slot];
            member.balance = member.balance.saturating_sub(spent).max(-self::bytes(MAX_DEBT));
            if member.balance <= 0 {
                over = Some(slot);
            }
            if slot == ROOT {
                break;
            }
            slot = parent as usize;
        }
        match over {
            // While all above the stream have something left, their turns go on.
            None => {}
            Some(slot) if slot != ROOT && as_foreseen => self.tree.pass_turn_on(slot),
            Some(_) => self.tree.find_turn(),
        }
    }
}

/// Balances count fractions of a byte, so that the lightest of many members gets some of a round.
const UNIT: i64 = 1 << 20;

const fn bytes(bytes: u32) -> i64 {
    bytes as i64 * UNIT
}

/// The sharing of [`Hls`].
#[derive(Debug, Default)]
struct Rounds;

/// The rounds of a class, one for each urgency.
#[derive(Debug, Default)]
struct Class([Round; Urgency::CLASSES]);

/// A round among the backlogged incremental members of one urgency.
#[derive(Debug, Default)]
struct Round {
    number: u64,
    /// What a thousandth of weight gets, in [`UNIT`]s.
    quota: i64,
    /// The sum of the members' weights, in thousandths.
    weights: i64,
    members: i64,
}

impl Round {
    /// Whether a member has had its turn in this round. If it goes first all have.
    fn is_over_for(&self, member: &Member) -> bool {
        member.round == self.number
    }

    /// Number, quota, and the balance of a member after the begin of its turn, in the next round if
    /// it has had its turn in this one. `rights` is what the class has.
    #[inline]
    fn after_begin(&self, member: &Member, rank: &Rank, rights: i64) -> (u64, i64, i64) {
        let (mut number, mut quota) = (self.number, self.quota);
        if self.is_over_for(member) {
            number += 1;
            // At least a packet for each on average, though the class may have less left: then it
            // waits for its own turn in the middle of the round.
            let rights = rights.max(bytes(LMAX).saturating_mul(self.members));
            quota = (rights / self.weights.max(1)).max(1);
        }
        (number, quota, member.balance.saturating_add(share(quota, rank)))
    }
}

/// What a member gets of a quota.
fn share(quota: i64, rank: &Rank) -> i64 {
    quota.saturating_mul(i64::from(rank.weight.thousandths()))
}

#[derive(Debug, Default)]
struct Member {
    /// What it may send in its turn, in [`UNIT`]s; below zero what it owes.
    balance: i64,
    /// The last round in which it has had its turn.
    round: u64,
    in_turn: bool,
}

#[derive(Debug, Default)]
struct Whole {
    /// Who is still to be looked at in the search, with the reciprocal of its share of the root.
    pending: Vec<(Slot, f64)>,
    /// Whether the root begins its next turn with the next packet.
    root_is_due: bool,
    /// Who else on the way to whose turn it is begins a turn with the next packet, the upper first:
    /// that many of the array, at most one at each level.
    due: [u32; MAX_DEPTH + 1],
    dues: usize,
}

impl Tree<Rounds> {
    /// The quantum of the streams that would be served now, each class alone: the paper's search.
    fn quantum(&mut self) -> i64 {
        let Self { nodes, inners, whole: Whole { pending, .. }, .. } = self;
        let (mut streams, mut largest) = (0u32, 1f64);
        pending.push((ROOT, 1.0));
        while let Some((slot, reciprocal)) = pending.pop() {
            let Kind::Class(inner) = nodes[slot].kind else {
                streams = streams.saturating_add(1);
                largest = largest.max(reciprocal);
                continue;
            };
            let inner = &inners[inner as usize];
            let Some(first) = inner.queue.first() else {
                continue;
            };
            let rank = nodes[first.slot()].rank;
            if !rank.incremental {
                pending.push((first.slot(), reciprocal));
                continue;
            }
            let sum = inner.state.0[rank.urgency.class()].weights as f64;
            inner.queue.each_below(|queued| rank.reaches(queued), &mut |slot| {
                let weight = f64::from(nodes[slot].rank.weight.thousandths());
                pending.push((slot, reciprocal * sum / weight));
            });
        }
        let most = streams.min(MAX_SHARES) + MAX_SPREAD;
        let packets = (1.0 + largest).min(f64::from(most));
        (f64::from(LMAX) * packets * UNIT as f64) as i64
    }

    /// Ends the turns that are over, and finds whose turn goes on or begins then. What begins a new
    /// round or a new turn of the root waits for the next packet: who becomes backlogged before that
    /// takes part in it. `None` if whoever is next might still be in debt then.
    fn foresee(&mut self) -> Option<Slot> {
        self.whole.dues = 0;
        let rights = self.nodes[ROOT].member.balance;
        self.whole.root_is_due = rights <= 0;
        self.foresee_below(ROOT, rights.max(1))
    }

    /// The same below a class that has `rights`, or will have them, and whose turn it is or will be.
    fn foresee_below(&mut self, mut class: Slot, mut rights: i64) -> Option<Slot> {
        loop {
            let inner = self.inner(class);
            let first = self.inners[inner].queue.first()?.slot();
            let Node { rank, ref mut member, kind, .. } = self.nodes[first];
            let round = &self.inners[inner].state.0[rank.urgency.class()];
            if !member.in_turn && rank.incremental && !round.is_over_for(member) {
                member.in_turn = true;
                member.balance = member.balance.saturating_add(share(round.quota, &rank));
            }
            let mut has = member.balance;
            if !member.in_turn {
                if let Some(due) = self.whole.due.get_mut(self.whole.dues) {
                    *due = first as u32;
                    self.whole.dues += 1;
                }
                has = if rank.incremental {
                    round.after_begin(member, &rank, rights).2
                } else {
                    rights
                };
                if has <= 0 {
                    return None;
                }
            }
            if has <= 0 {
                self.end_turn(first);
            } else if matches!(kind, Kind::Class(_)) {
                (class, rights) = (first, has);
            } else {
                return Some(first);
            }
        }
    }

    /// Ends the turn of a member, and finds who is next. It is the turn of all classes above it, and
    /// nothing is due.
    fn pass_turn_on(&mut self, slot: Slot) {
        let class = self.end_turn(slot);
        self.turn = self.turn_from(class);
    }

    /// Finds whose turn it is below a class. It is the turn of this class and those above it, and
    /// nothing is due.
    fn turn_from(&mut self, class: Slot) -> Option<Slot> {
        let rights = self.nodes[class].member.balance;
        self.foresee_below(class, rights).or_else(|| self.take_turns())
    }

    /// Whether a class and those above it go first among their siblings.
    fn goes_first(&self, mut slot: Slot) -> bool {
        while slot != ROOT {
            let Node { parent, above, .. } = self.nodes[slot];
            if !self.inners[above as usize].queue.is_first(slot) {
                return false;
            }
            slot = parent as usize;
        }
        true
    }

    /// Begins the turns that are due. Returns whether whose turn it is has something to spend: who
    /// became backlogged since may have made its share too small to pay its debts with.
    fn begin_turns(&mut self) -> bool {
        if self.whole.root_is_due {
            self.whole.root_is_due = false;
            while self.nodes[ROOT].member.balance <= 0 {
                self.end_turn(ROOT);
            }
        }
        let dues = std::mem::take(&mut self.whole.dues);
        for at in 0..dues {
            let first = self.whole.due[at] as Slot;
            let Node { parent, above, .. } = self.nodes[first];
            let rights = self.nodes[parent as usize].member.balance;
            if self.begin_turn(above as usize, first, rights) <= 0 {
                self.end_turn(first);
                self.take_turns();
                return false;
            }
        }
        true
    }

    /// Ends the turns that are over and begins those that are due. Returns whose turn it is.
    ///
    /// It ends: whoever has a turn either can be served or is in debt, in each turn all of a class
    /// get at least [`LMAX`] each on average to pay debts with, and debts are bounded.
    fn take_turns(&mut self) -> Option<Slot> {
        let mut class = ROOT;
        self.whole.dues = 0;
        loop {
            let balance = self.nodes[class].member.balance;
            if balance <= 0 {
                class = self.end_turn(class);
                continue;
            }
            let inner = self.inner(class);
            let first = self.inners[inner].queue.first()?.slot();
            let Node { ref member, kind, .. } = self.nodes[first];
            let has = if member.in_turn {
                member.balance
            } else {
                self.begin_turn(inner, first, balance)
            };
            if has <= 0 {
                self.end_turn(first);
            } else if matches!(kind, Kind::Class(_)) {
                class = first;
            } else {
                return Some(first);
            }
        }
    }

    /// Gives `first`, which goes first among the members of a class, its share of the round; of the
    /// next round if all have had theirs. Returns what it has.
    #[inline]
    fn begin_turn(&mut self, inner: usize, first: Slot, rights: i64) -> i64 {
        let Node { rank, member, .. } = &mut self.nodes[first];
        member.in_turn = true;
        if rank.incremental {
            let round = &mut self.inners[inner].state.0[rank.urgency.class()];
            (round.number, round.quota, member.balance) = round.after_begin(member, rank, rights);
        } else {
            // Nobody else is served.
            member.balance = rights;
        }
        member.balance
    }

    /// Ends the turn of a member; the root begins its next one at once. Returns the class above.
    fn end_turn(&mut self, slot: Slot) -> Slot {
        if slot == ROOT {
            let quantum = self.quantum();
            let root = &mut self.nodes[ROOT].member;
            root.balance = root.balance.saturating_add(quantum);
            return ROOT;
        }
        let Node { parent, above, rank, ref mut member, .. } = self.nodes[slot];
        member.in_turn = false;
        if rank.incremental {
            let number = self.inners[above as usize].state.0[rank.urgency.class()].number;
            member.round = number;
            self.reorder(slot, u128::from(number));
        }
        parent as usize
    }
}

impl Sharing for Rounds {
    type Member = Member;
    type Class = Class;
    type Whole = Whole;

    fn attach(class: &mut Class, rank: &Rank, member: &mut Member) {
        member.round = class.0[rank.urgency.class()].number;
    }

    fn detach(_: &mut Class, _: &Rank, _: &mut Member) {}

    /// As if it had had its turn: it gets its first share in the next round.
    fn join(class: &mut Class, rank: &Rank, member: &mut Member) -> u128 {
        let round = &mut class.0[rank.urgency.class()];
        // In each round that it missed it would have got a packet's worth at the least.
        let missed = round.number.saturating_sub(member.round).min(FORGIVEN) as u32;
        member.balance = member.balance.saturating_add(bytes(missed * LMAX)).min(0);
        member.round = round.number;
        if rank.incremental {
            round.weights += i64::from(rank.weight.thousandths());
            round.members += 1;
        }
        u128::from(round.number)
    }

    fn leave(class: &mut Class, rank: &Rank, member: &mut Member) {
        let round = &mut class.0[rank.urgency.class()];
        // The residual stays on the balance of the class.
        member.balance = member.balance.min(0);
        member.in_turn = false;
        member.round = round.number;
        if rank.incremental {
            round.weights -= i64::from(rank.weight.thousandths());
            round.members -= 1;
            if round.members == 0 {
                // There is nobody left to whom anything is owed.
                round.number += FORGIVEN;
            }
        }
    }

    fn turn(tree: &mut Tree<Self>) -> Option<Slot> {
        if tree.is_empty() { None } else { tree.foresee().or_else(|| tree.take_turns()) }
    }

    fn turn_below(tree: &mut Tree<Self>, class: Slot) -> Option<Slot> {
        // What is due depends on what the classes above will have.
        if tree.whole.root_is_due || tree.whole.dues > 0 {
            Self::turn(tree)
        } else if tree.goes_first(class) {
            tree.turn_from(class)
        } else {
            tree.turn
        }
    }
}
