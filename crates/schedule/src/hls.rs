//! Sharing by rounds: hierarchical link sharing (Holzinger et al. 2025, section III-B), over the same
//! tree of classes as [`hmm`](crate::hmm).

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::hmm::tree::{Inner, Kind, ROOT, ROOT_INNER, Sharing, SharingRank, Tree, TreeNode};
use crate::hmm::{LMAX, MAX_DEBT, tree_calls, tree_counts};
use crate::queue::Slot;
use crate::registry::Entry;
use crate::{Grant, Priority, Scheduler, SchedulerFactory, Scheme, StreamKey, Urgency};

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
/// A *round* visits the streams that the paper's search finds when it begins: in each class the most
/// urgent backlogged members, up to the first that is not incremental. A member that comes later waits for
/// the next round, be it more urgent or not, and a member that ends early has a share of this round all the
/// same. A round begins with its first byte.
///
/// The root hands out the quantum `Q* = Lmax (1 + sum(w)/w_min)` in each round, with the weights of these
/// streams relative to the root, so that the lightest stream gets a full packet. When a member is visited
/// first, its class gives it a share by weight of the class's own share, in whole bytes. A stream sends while
/// this balance is positive; the balance pays for its frames, and grants are no larger. A stream that has no
/// more to send gives the rest back to its class, and a class without backlogged members gives its rest to
/// the class above. That class hands the rest out with its next share, which at most doubles the share.
///
/// Decisions that the paper leaves open:
///
/// - Streams of [`Urgency::CONTROL`] are not in the tree of requests: they go first, whatever the round.
/// - Bytes that are charged without a grant, such as repair symbols, may leave a stream in debt, up to 256
///   KiB. The debt is paid from the next shares, and forgiven by Lmax for each round without the stream.
/// - A stream that changes its priority during a round stays in it. It gives back the rest of its share.
/// - A stream that is alone fills its packets, since the next round would be its own as well. Other rounds
///   begin with at most Lmax: shares are only computed once these bytes were sent, and every share has room
///   for them.
/// - Q* has a limit, 2^60 bytes, that no connection sends.
#[derive(Debug, Default)]
pub struct Hls {
    tree: Tree<Rounds>,
}

/// The largest quantum in bytes. Weights can differ by a factor of a million at every level, and their
/// products would overflow.
const MAX_QUANTUM: i64 = 1 << 60;
/// The number of rounds after which even the lightest member has paid back the largest possible
/// debt.
const FORGIVEN: u64 = (MAX_DEBT / LMAX + 1) as u64;

tree_counts!(Hls);

impl Scheduler for Hls {
    tree_calls!();

    fn next(&self, room: usize) -> Option<Grant> {
        let Grant { stream, bytes } = self.tree.next(room)?;
        let slot = self.tree.turn?;
        let balance = self.tree.balance(slot);
        let bytes = if bytes <= balance || self.tree.is_free(slot) { bytes } else { balance };
        Some(Grant { stream, bytes })
    }

    fn charge(&mut self, stream: StreamKey, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let Some(slot) = self.tree.slot_to_charge(stream) else { return };
        let is_turn = self.tree.is_turn_of(slot);
        if self.tree.nodes[slot].rank.urgency == Urgency::CONTROL {
            return;
        }
        if is_turn && !self.tree.whole.begun {
            self.tree.begin_round(slot);
        }
        let round = self.tree.whole.round;
        let member = &mut self.tree.nodes[slot].member;
        member.pay(bytes.min(MAX_DEBT as usize) as i64, round);
        if is_turn && member.balance <= 0 {
            self.tree.end_turn(slot);
        }
    }

    fn goes_by_frames(&self) -> bool {
        true
    }
}

/// The sharing policy of [`Hls`].
#[derive(Debug, Default)]
struct Rounds;

/// The budget that a class hands out in a round.
#[derive(Debug, Default)]
struct ClassShare {
    /// The weights of the backlogged incremental members of each urgency, in thousandths, and how many
    /// they are.
    weights: [u64; Urgency::CLASSES],
    members: [u32; Urgency::CLASSES],
    /// The budget that the class divides among its members, in bytes, and its unused part: not handed out, or
    /// given back.
    base: i64,
    left: i64,
    /// The weights of the members of the round, and of the members that have their share.
    sum: u64,
    dealt: u64,
    /// The shares handed out so far.
    given: i64,
}

impl ClassShare {
    /// Begins a round among members with these weights.
    fn begin(&mut self, sum: u64) {
        (self.base, self.sum, self.dealt, self.given) = (0, sum, 0, 0);
    }

    /// Takes the class's own share, in addition to the rest of the last round.
    fn take(&mut self, share: i64) {
        self.base = share + self.left.min(share);
        self.left = self.base;
        // A class that takes no part in this round has the weights of an earlier one.
        self.given = if self.dealt == 0 { 0 } else { self.part(self.dealt) };
    }

    /// The part of the base that is due to members with these `weights` in total.
    fn part(&self, weights: u64) -> i64 {
        if weights >= self.sum {
            return self.base;
        }
        let (base, sum) = (self.base.unsigned_abs(), self.sum);
        // Dividing long numbers takes a hundred instructions.
        let part = match base.checked_mul(weights) {
            Some(product) => product / sum,
            None => (u128::from(base) * u128::from(weights) / u128::from(sum)) as u64,
        };
        part as i64
    }

    /// The share of the next member, which has this weight. Shares are rounded so that they add up to the
    /// base. A member that has come from another class since the round began gets no more than is left.
    fn deal(&mut self, weight: u64) -> i64 {
        if self.sum == 0 {
            return 0;
        }
        self.dealt = self.dealt.saturating_add(weight).min(self.sum);
        let given = self.part(self.dealt);
        let share = (given - self.given).min(self.left);
        self.given = given;
        self.left -= share;
        share
    }
}

/// How a member takes part in the round of [`RoundMember::seen`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    /// Not at all.
    #[default]
    Absent,
    /// The member has not been visited.
    Waiting,
    /// The member has got its share.
    Visited,
}

#[derive(Debug, Default)]
struct RoundMember {
    /// The bytes that a stream may send in its turn. If negative, its debt.
    balance: i64,
    /// The last round in which it was scheduled or charged.
    seen: u64,
    part: Part,
}

impl RoundMember {
    /// Forgives the debts of a member that was not there in all rounds.
    #[inline]
    fn see(&mut self, round: u64) {
        if self.seen == round {
            return;
        }
        if self.balance < 0 {
            let missed = (round - self.seen - 1).min(FORGIVEN);
            self.balance = (self.balance + missed as i64 * i64::from(LMAX)).min(0);
        }
        (self.seen, self.part) = (round, Part::Absent);
    }

    /// Pays for at most [`MAX_DEBT`] bytes.
    fn pay(&mut self, bytes: i64, round: u64) {
        self.see(round);
        self.balance = (self.balance - bytes).max(-i64::from(MAX_DEBT));
    }

    fn is_visited(&self, round: u64) -> bool {
        self.seen == round && self.part == Part::Visited
    }
}

#[derive(Debug, Default)]
struct Whole {
    /// The number of the round, and whether it has begun and goes on.
    round: u64,
    begun: bool,
    /// The streams of the round in the order of their turns, and whose turn it is.
    streams: Vec<Slot>,
    at: usize,
    /// The nodes that the search has yet to visit, each with the reciprocal of its share of the
    /// root.
    pending: Vec<(Slot, f64)>,
}

impl Tree<Rounds> {
    /// Begins a round with the turn of `first`, the stream that goes first if priorities alone decide.
    #[inline(always)]
    fn begin_round(&mut self, first: Slot) {
        let TreeNode { parent, rank, .. } = self.nodes[first];
        let members = &self.inners[ROOT_INNER as usize].state.members;
        if parent == ROOT as u32 && !(rank.incremental && members[rank.urgency.class()] > 1) {
            self.begin_alone(first);
        } else {
            self.begin_shared(first);
        }
    }

    /// Begins a round of a single stream directly below the root, which gets all of the quantum. Most rounds
    /// are of this kind if no stream has classes. They are so short, a packet or two, that even the call
    /// would cost a good part of their time.
    #[inline(always)]
    fn begin_alone(&mut self, slot: Slot) {
        let Whole { round, begun, streams, at, .. } = &mut self.whole;
        *round += 1;
        (*begun, *at) = (true, 0);
        streams.clear();
        streams.push(slot);
        let member = &mut self.nodes[slot].member;
        member.see(*round);
        member.part = Part::Visited;
        member.balance += 2 * i64::from(LMAX);
    }

    /// Begins a round among the streams that would be served now if each class were on its own: the
    /// paper's search.
    #[inline(never)]
    fn begin_shared(&mut self, first: Slot) {
        let Self { nodes, inners, whole, .. } = self;
        let Whole { round, begun, streams, at, pending } = whole;
        *round += 1;
        (*begun, *at) = (true, 0);
        streams.clear();
        let mut largest = 1f64;
        pending.push((ROOT, 1.0));
        while let Some((slot, reciprocal)) = pending.pop() {
            let TreeNode { ref mut member, kind, .. } = nodes[slot];
            member.see(*round);
            member.part = Part::Waiting;
            match kind {
                Kind::Stream => {
                    streams.push(slot);
                    largest = largest.max(reciprocal);
                }
                Kind::Class(inner) => {
                    let inner = &mut inners[inner as usize];
                    search(nodes, inner, reciprocal, pending);
                }
            }
        }
        let quantum = (f64::from(LMAX) * (1.0 + largest)).min(MAX_QUANTUM as f64) as i64;
        let root = &mut inners[ROOT_INNER as usize].state;
        root.left = 0;
        root.take(quantum);
        self.endow(first);
    }

    /// Gives a member of the round its share, unless it has it: first to the classes above it.
    #[inline]
    fn endow(&mut self, slot: Slot) {
        if !self.nodes[slot].member.is_visited(self.whole.round) {
            self.visit(slot);
        }
    }

    #[inline(never)]
    fn visit(&mut self, slot: Slot) {
        let round = self.whole.round;
        let TreeNode { parent, above, rank, kind, .. } = self.nodes[slot];
        // The root has its share from the beginning.
        if parent != ROOT as u32 {
            self.endow(parent as usize);
        }
        let share = self.inners[above as usize].state.deal(rank.weight.thousandths().into());
        let member = &mut self.nodes[slot].member;
        member.see(round);
        member.part = Part::Visited;
        match kind {
            Kind::Stream => member.balance += share,
            Kind::Class(inner) => self.inners[inner as usize].state.take(share),
        }
    }

    /// Passes the turn on.
    #[inline]
    fn end_turn(&mut self, slot: Slot) {
        self.whole.at += 1;
        let TreeNode { parent, ref member, .. } = self.nodes[slot];
        let goes_on = parent == ROOT as u32 && member.balance > -i64::from(LMAX);
        // The next round may begin with the same stream, as it does while that is alone.
        if goes_on && self.is_over() && self.inners[ROOT_INNER as usize].queue.is_first(slot) {
            return;
        }
        self.find_turn();
    }

    /// Ends the round if it is obvious that nobody is left in it. Returns whether none goes on.
    #[inline]
    fn is_over(&mut self) -> bool {
        let Whole { begun, ref streams, at, .. } = self.whole;
        let over = !begun
            || match streams.get(at..).unwrap_or_default() {
                [] => true,
                [last] => !self.nodes[*last].place.is_queued(),
                _ => false,
            };
        self.whole.begun = !over;
        over
    }

    /// The stream whose turn it is. `first` is the stream that goes first by priority alone.
    ///
    /// This terminates: in each round, the members get more than all of them may owe, or at least
    /// [`LMAX`] each to pay their debts, and debts are bounded.
    #[inline(never)]
    fn next_turn(&mut self, first: Slot) -> Option<Slot> {
        loop {
            if self.whole.begun
                && let Some(slot) = self.current()
            {
                return Some(slot);
            }
            if self.nodes[first].member.balance > -i64::from(LMAX) {
                return Some(first);
            }
            // Whether it has a turn depends on its share.
            self.begin_round(first);
        }
    }

    /// The stream of the round whose turn it is; `None` if the round is over.
    fn current(&mut self) -> Option<Slot> {
        while let Some(&slot) = self.whole.streams.get(self.whole.at) {
            let TreeNode { ref member, place, .. } = self.nodes[slot];
            // The stream's place may belong to another stream by now, which waits for the next round.
            let takes_part = member.seen == self.whole.round && member.part != Part::Absent;
            if takes_part && place.is_queued() {
                self.endow(slot);
                if self.nodes[slot].member.balance > 0 {
                    return Some(slot);
                }
            }
            self.whole.at += 1;
        }
        self.whole.begun = false;
        None
    }

    /// The stream that goes first if priorities alone decide.
    fn first_stream(&self) -> Option<Slot> {
        let mut inner = ROOT_INNER;
        loop {
            let slot = self.inners[inner as usize].queue.first()?.slot();
            match self.nodes[slot].kind {
                Kind::Stream => return Some(slot),
                Kind::Class(below) => inner = below,
            }
        }
    }

    /// Whether the stream whose turn it is may send more than its balance: it carries the protocol, or it is
    /// the last stream of the round and would be the only stream of the next.
    #[inline]
    fn is_free(&self, slot: Slot) -> bool {
        let TreeNode { parent, rank, .. } = self.nodes[slot];
        let Whole { begun, ref streams, at, .. } = self.whole;
        if rank.urgency == Urgency::CONTROL {
            return true;
        }
        let is_last = !begun || at + 1 >= streams.len();
        is_last && self.is_alone(slot) && (parent == ROOT as u32 || self.is_alone_above(parent))
    }

    /// Whether the search finds this member, and no sibling.
    #[inline]
    fn is_alone(&self, slot: Slot) -> bool {
        let TreeNode { above, rank, .. } = self.nodes[slot];
        let Inner { queue, state, .. } = &self.inners[above as usize];
        !(rank.incremental && state.members[rank.urgency.class()] > 1) && queue.is_first(slot)
    }

    /// Whether a class and all classes above it [are alone](Self::is_alone).
    #[inline(never)]
    fn is_alone_above(&self, class: u32) -> bool {
        let mut slot = class as usize;
        while slot != ROOT {
            if !self.is_alone(slot) {
                return false;
            }
            slot = self.nodes[slot].parent();
        }
        true
    }

    /// How many bytes the stream whose turn it is may send, unless it [is free](Self::is_free). Before the
    /// round has begun this is its least share. Positive, since otherwise it would not be its turn;
    /// meaningless for a stream that carries the protocol.
    #[inline]
    fn balance(&self, slot: Slot) -> usize {
        let share = if self.whole.begun { 0 } else { i64::from(LMAX) };
        (self.nodes[slot].member.balance + share) as usize
    }
}

/// Finds the members of a class that are in the round, and puts them in front of `pending` in the
/// order of their turns.
fn search(
    nodes: &[TreeNode<Rounds>],
    inner: &mut Inner<Rounds>,
    reciprocal: f64,
    pending: &mut Vec<(Slot, f64)>,
) {
    let Some(first) = inner.queue.first() else { return };
    let rank = nodes[first.slot()].rank;
    if !rank.incremental {
        inner.state.begin(rank.weight.thousandths().into());
        return pending.push((first.slot(), reciprocal));
    }
    let sum = inner.state.weights[rank.urgency.class()];
    inner.state.begin(sum);
    let before = pending.len();
    inner.queue.each_below(|queued| rank.reaches(queued), &mut |slot| {
        let weight = f64::from(nodes[slot].rank.weight.thousandths());
        pending.push((slot, reciprocal * sum as f64 / weight));
    });
    // The last is visited first.
    pending[before..].sort_unstable_by_key(|(slot, _)| {
        let TreeNode { key, place, .. } = &nodes[*slot];
        std::cmp::Reverse((*key, place.born()))
    });
}

impl Sharing for Rounds {
    type Member = RoundMember;
    type Class = ClassShare;
    type Whole = Whole;

    fn attach(_: &mut ClassShare, _: &SharingRank, _: &mut RoundMember) {}

    fn detach(_: &mut ClassShare, _: &SharingRank, _: &mut RoundMember) {}

    /// Members are in the order of their keys.
    fn join(class: &mut ClassShare, rank: &SharingRank, _: &mut RoundMember) -> u128 {
        if rank.incremental {
            class.weights[rank.urgency.class()] += u64::from(rank.weight.thousandths());
            class.members[rank.urgency.class()] += 1;
        }
        0
    }

    fn leave(class: &mut ClassShare, rank: &SharingRank, member: &mut RoundMember) {
        let rest = member.balance.max(0);
        member.balance -= rest;
        class.left = class.left.saturating_add(rest);
        if rank.incremental {
            class.weights[rank.urgency.class()] -= u64::from(rank.weight.thousandths());
            class.members[rank.urgency.class()] -= 1;
        }
    }

    fn emptied(above: &mut ClassShare, class: &mut ClassShare) {
        above.left = above.left.saturating_add(std::mem::take(&mut class.left));
    }

    fn turn(tree: &mut Tree<Self>) -> Option<Slot> {
        let Some(first) = tree.first_stream() else {
            tree.whole.begun = false;
            return None;
        };
        let TreeNode { rank, member: RoundMember { balance, .. }, .. } = tree.nodes[first];
        // The usual case, without the registers that the other case needs.
        if rank.urgency == Urgency::CONTROL || (tree.is_over() && balance > -i64::from(LMAX)) {
            return Some(first);
        }
        tree.next_turn(first)
    }
}
