//! Sharing by rounds: hierarchical link sharing (Holzinger et al. 2025, section III-B), over the same
//! tree of classes as [`hmm`](crate::hmm).

use std::sync::Arc;

use crate::hmm::tree::{Kind, Node, ROOT, Rank, Sharing, Tree};
use crate::hmm::{LMAX, MAX_DEBT, tree_calls, tree_counts};
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

/// Hierarchical link sharing, the paper's weighted round robin (section III-B), after Luangsomboon
/// and Liebeherr.
///
/// Every stream and class has a *balance*: the bytes that it may take from the class above. When
/// the root has used up its balance, it gets the quantum `Q* = Lmax (1 + sum(w)/w_min)`. The sum is
/// over the streams that the search finds at this point, with their weights relative to the root,
/// so the quantum is enough for a full packet of the lightest stream. A class hands out its balance
/// in rounds: at the start of a round it computes the fair quota per unit of weight, and each
/// member gets its share when its turn comes, in order of keys. A turn lasts while the member is
/// backlogged and its balance is positive. Sending a packet may overdraw the balance; the next
/// rounds pay that back.
///
/// A member that ends its turn early gives up the rest of its balance. As nothing was sent, these
/// bytes are still part of the balance of its class: the *residual*, which the class hands out in
/// another round among the members that are still backlogged. A class without backlogged members
/// gives up its balance in the same way. This alone ensures that surplus capacity reaches the
/// streams that can use it, and that the link never idles while a stream is backlogged.
///
/// Each class enforces strict priorities among its members at every decision. If a more urgent
/// member appears, the round of the less urgent ones pauses and continues later. An incremental
/// newcomer among siblings of its urgency waits for the end of their round.
///
/// A round begins with its first packet, so members that become backlogged before that take part.
///
/// The shares handed out to two backlogged incremental siblings are in proportion to their weights,
/// except in the round in progress. So no member is ahead of its max-min fair share by more than
/// its share of one Q* and a packet.
///
/// In packets, Q* is limited to 1024 more than the number of streams that share, whatever the ratio
/// of their weights. Beyond that, the lightest streams get a turn in which they can send only every
/// few rounds.
#[derive(Debug, Default)]
pub struct Hls {
    tree: Tree<Rounds>,
}

/// The maximum number of packets that the weights add to the quantum, besides one for each stream.
const MAX_SPREAD: u32 = 1024;
/// The number of streams up to which the quantum grows.
const MAX_SHARES: u32 = 1 << 22;
/// The number of rounds after which even the lightest member has paid back the largest possible
/// debt.
const FORGIVEN: u64 = (MAX_DEBT / LMAX + 1) as u64;

tree_counts!(Hls);

impl Scheduler for Hls {
    tree_calls!();

    fn charge(&mut self, stream: StreamKey, bytes: usize) {
        if bytes == 0 {
            // No packet was sent, so no turn begins.
            return;
        }
        let Some(mut slot) = self.tree.slot_to_charge(stream) else {
            return;
        };
        // Whether the stream and all classes above it have their turn.
        let as_foreseen = self.tree.is_turn_of(slot) && self.tree.begin_turns();
        let spent = self::bytes(u32::try_from(bytes).unwrap_or(MAX_DEBT).min(MAX_DEBT));
        // The uppermost node whose balance is used up.
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
            // While the stream and all classes above it have a positive balance, their turns
            // continue.
            None => {}
            Some(slot) if slot != ROOT && as_foreseen => self.tree.pass_turn_on(slot),
            Some(_) => self.tree.find_turn(),
        }
    }
}

/// Balances count fractions of a byte, so that even the lightest of many members gets something in
/// a round.
const UNIT: i64 = 1 << 20;

const fn bytes(bytes: u32) -> i64 {
    bytes as i64 * UNIT
}

/// The sharing policy of [`Hls`].
#[derive(Debug, Default)]
struct Rounds;

/// The rounds of a class, one per urgency.
#[derive(Debug, Default)]
struct Class([Round; Urgency::CLASSES]);

/// A round among the backlogged incremental members of one urgency.
#[derive(Debug, Default)]
struct Round {
    number: u64,
    /// What each thousandth of weight gets, in [`UNIT`]s.
    quota: i64,
    /// The sum of the members' weights, in thousandths.
    weights: i64,
    members: i64,
}

impl Round {
    /// Whether a member has had its turn in this round. If this is true for the first member, all
    /// have had theirs.
    fn is_over_for(&self, member: &Member) -> bool {
        member.round == self.number
    }

    /// The round number, the quota, and the balance of a member after the beginning of its turn.
    /// This is in the next round if the member has had its turn in this one. `rights` is the
    /// balance of the class.
    #[inline]
    fn after_begin(&self, member: &Member, rank: &Rank, rights: i64) -> (u64, i64, i64) {
        let (mut number, mut quota) = (self.number, self.quota);
        if self.is_over_for(member) {
            number += 1;
            // At least one packet per member on average, even if the class has less left. In that
            // case, the class waits for its own next turn in the middle of the round.
            let rights = rights.max(bytes(LMAX).saturating_mul(self.members));
            quota = (rights / self.weights.max(1)).max(1);
        }
        (number, quota, member.balance.saturating_add(share(quota, rank)))
    }
}

/// The share of a member at a given quota.
fn share(quota: i64, rank: &Rank) -> i64 {
    quota.saturating_mul(i64::from(rank.weight.thousandths()))
}

#[derive(Debug, Default)]
struct Member {
    /// The bytes that it may send in its turn, in [`UNIT`]s. If negative, its debt.
    balance: i64,
    /// The last round in which it has had its turn.
    round: u64,
    in_turn: bool,
}

#[derive(Debug, Default)]
struct Whole {
    /// The nodes that the search has yet to visit, each with the reciprocal of its share of the
    /// root.
    pending: Vec<(Slot, f64)>,
    /// Whether the root begins its next turn with the next packet.
    root_is_due: bool,
    /// The other nodes, from the top down to the next stream, that begin a turn with the next
    /// packet. There is at most one per level; only the first `dues` entries are valid.
    due: [u32; MAX_DEPTH + 1],
    dues: usize,
}

impl Tree<Rounds> {
    /// The quantum for the streams that would be served now if each class were on its own: the
    /// paper's search.
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

    /// Ends the turns that are over, and finds the stream whose turn continues or begins next. A
    /// new round, or a new turn of the root, only begins with the next packet, so that members that
    /// become backlogged before it take part. Returns `None` if the next member might still be in
    /// debt by then.
    fn foresee(&mut self) -> Option<Slot> {
        self.whole.dues = 0;
        let rights = self.nodes[ROOT].member.balance;
        self.whole.root_is_due = rights <= 0;
        self.foresee_below(ROOT, rights.max(1))
    }

    /// Like [`foresee`](Self::foresee), but below a class that has its turn, or will have it, with
    /// the balance `rights`.
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

    /// Ends the turn of a member and finds the next one. All classes above it must have their turn,
    /// and no turn may be due.
    fn pass_turn_on(&mut self, slot: Slot) {
        let class = self.end_turn(slot);
        self.turn = self.turn_from(class);
    }

    /// Finds the stream below a class whose turn it is. The class and all classes above it must
    /// have their turn, and no turn may be due.
    fn turn_from(&mut self, class: Slot) -> Option<Slot> {
        let rights = self.nodes[class].member.balance;
        self.foresee_below(class, rights).or_else(|| self.take_turns())
    }

    /// Whether a class and all classes above it go first among their siblings.
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

    /// Begins the turns that are due. Returns `false` if a member that begins its turn is still in
    /// debt: members that became backlogged in the meantime may have made its share too small to
    /// pay it back.
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

    /// Ends the turns that are over and begins those that are due. Returns the stream whose turn it
    /// is.
    ///
    /// This terminates: a member that gets a turn either can be served or is in debt. In each
    /// round, the members of a class get at least [`LMAX`] each on average to pay their debts, and
    /// debts are bounded.
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

    /// Begins the turn of `first`, the first member of a class, by adding its share of the round,
    /// or of the next round if all members have had their turn. Returns its balance.
    #[inline]
    fn begin_turn(&mut self, inner: usize, first: Slot, rights: i64) -> i64 {
        let Node { rank, member, .. } = &mut self.nodes[first];
        member.in_turn = true;
        if rank.incremental {
            let round = &mut self.inners[inner].state.0[rank.urgency.class()];
            (round.number, round.quota, member.balance) = round.after_begin(member, rank, rights);
        } else {
            // No other member is served.
            member.balance = rights;
        }
        member.balance
    }

    /// Ends the turn of a member; the root begins its next turn at once. Returns the class above.
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

    /// Treats the member as if it had had its turn, so it gets its first share in the next round.
    fn join(class: &mut Class, rank: &Rank, member: &mut Member) -> u128 {
        let round = &mut class.0[rank.urgency.class()];
        // In each round that it missed, it would have got at least a packet.
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
        // The residual stays in the balance of the class.
        member.balance = member.balance.min(0);
        member.in_turn = false;
        member.round = round.number;
        if rank.incremental {
            round.weights -= i64::from(rank.weight.thousandths());
            round.members -= 1;
            if round.members == 0 {
                // No member is left to whom anything is owed.
                round.number += FORGIVEN;
            }
        }
    }

    fn turn(tree: &mut Tree<Self>) -> Option<Slot> {
        if tree.is_empty() { None } else { tree.foresee().or_else(|| tree.take_turns()) }
    }

    fn turn_below(tree: &mut Tree<Self>, class: Slot) -> Option<Slot> {
        // The turns that are due depend on the future balances of the classes above.
        if tree.whole.root_is_due || tree.whole.dues > 0 {
            Self::turn(tree)
        } else if tree.goes_first(class) {
            tree.turn_from(class)
        } else {
            tree.turn
        }
    }
}
