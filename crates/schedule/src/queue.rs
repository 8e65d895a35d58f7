//! A priority queue whose members know their position in it.

use std::hint::select_unpredictable;

use crate::StreamKey;

/// The index of a member in its owner's slab.
pub(crate) type Slot = usize;

/// The position and the age of a member. The owner stores it with the member.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The index of its leaf in the queue; [`NOWHERE`] if the member is in no queue.
    at: u32,
    /// Breaks ties between members of equal rank and key: the smaller goes first.
    born: u32,
}

const NOWHERE: u32 = u32::MAX;

impl Place {
    pub(crate) const fn new(born: u32) -> Self {
        Self { at: NOWHERE, born }
    }

    pub(crate) const fn is_queued(self) -> bool {
        self.at != NOWHERE
    }

    /// Breaks ties between members of equal rank and key: the smaller goes first.
    pub(crate) const fn born(self) -> u32 {
        self.born
    }
}

/// A member with everything that its order depends on, so that a comparison needs no other memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queued {
    /// The smaller rank goes first.
    rank: u128,
    /// Breaks ties between equal ranks.
    pub(crate) key: StreamKey,
    /// Breaks ties between equal keys. The upper half is the age ([`Place::born`]), the lower half
    /// the slot.
    born_and_slot: u64,
}

impl Queued {
    /// An empty place, which sorts behind all members.
    const VACANT: Self = Self { rank: u128::MAX, key: StreamKey::MAX, born_and_slot: u64::MAX };

    const fn is_vacant(&self) -> bool {
        self.born_and_slot == u64::MAX
    }

    pub(crate) const fn slot(&self) -> Slot {
        self.born_and_slot as u32 as Slot
    }

    /// Whether it goes before `other`.
    #[inline]
    fn is_before(&self, other: &Self) -> bool {
        // Compares by subtracting one long number from the other.
        let (_, before) = self.born_and_slot.overflowing_sub(other.born_and_slot);
        let (_, before) = self.key.borrowing_sub(other.key, before);
        let (_, before) = (self.rank as u64).borrowing_sub(other.rank as u64, before);
        ((self.rank >> 64) as u64).borrowing_sub((other.rank >> 64) as u64, before).1
    }

    /// Returns the member that goes first. Branchless: the outcome is practically random, so a branch would
    /// be mispredicted half of the time.
    #[inline]
    fn earlier(self, other: Self) -> Self {
        let before = other.is_before(&self);
        Self {
            rank: select_unpredictable(before, other.rank, self.rank),
            key: select_unpredictable(before, other.key, self.key),
            born_and_slot: select_unpredictable(before, other.born_and_slot, self.born_and_slot),
        }
    }
}

/// Two siblings of the tournament, in one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Pair([Queued; 2]);

/// A priority queue by rank, key and age, implemented as a tournament tree. Members are the leaves
/// of a complete binary tree, and each inner node repeats the earlier of its two children. The
/// first member of all is therefore at the top.
///
/// Putting in, moving or taking out a member costs log2(n) comparisons, where n is the largest
/// number of members there have been at once. A heap needs fewer at best, but twice as many when
/// the first member moves behind most of the others, as it does here at nearly every decision.
/// Moreover, members stay where they are, and the nodes that a member is compared with only depend
/// on its position, so the processor can fetch all of them at once.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    /// Node 1, the root of the tree.
    top: Queued,
    /// The children of node n, 2n and 2n + 1, for each n from 1 on; the first pair is unused. The
    /// nodes of the second half are the leaves. The length is 0 or a power of two from 2 on.
    pairs: Vec<Pair>,
    /// Leaves without a member.
    vacant: Vec<u32>,
}

impl Default for Queue {
    fn default() -> Self {
        Self { top: Queued::VACANT, pairs: Vec::new(), vacant: Vec::new() }
    }
}

impl Queue {
    pub(crate) fn is_empty(&self) -> bool {
        self.top.is_vacant()
    }

    /// Gives back the nodes, if there is no member.
    pub(crate) fn rest(&mut self) {
        if self.is_empty() {
            *self = Self::default();
        }
    }

    /// How many members there is room for.
    #[cfg(test)]
    pub(crate) fn room(&self) -> usize {
        self.pairs.capacity()
    }

    /// The member that goes first.
    #[inline]
    pub(crate) fn first(&self) -> Option<&Queued> {
        if self.is_empty() { None } else { Some(&self.top) }
    }

    /// Whether the member of this slot goes first.
    #[inline]
    pub(crate) fn is_first(&self, slot: Slot) -> bool {
        self.first().is_some_and(|first| first.slot() == slot)
    }

    /// Adds a member that is in no queue. `rank` must not be `u128::MAX`.
    pub(crate) fn push(&mut self, place: &mut Place, slot: Slot, rank: u128, key: StreamKey) {
        if self.vacant.is_empty() {
            self.grow();
        }
        // After growing, there is a vacant leaf.
        place.at = self.vacant.pop().unwrap_or_default();
        // There are never 2^32 members: each is a stream or a class of a stream.
        let born_and_slot = u64::from(place.born) << 32 | slot as u64;
        self.enter(self.leaf(*place), Queued { rank, key, born_and_slot });
    }

    /// Removes a member, if it is in this queue.
    pub(crate) fn remove(&mut self, place: &mut Place) {
        if place.is_queued() {
            self.vacant.push(place.at);
            self.replay(self.leaf(*place), Queued::VACANT);
            place.at = NOWHERE;
        }
    }

    /// Changes the rank of a member of this queue.
    #[inline]
    pub(crate) fn update(&mut self, place: Place, rank: u128) {
        let leaf = self.leaf(place);
        if let Some(Pair(pair)) = self.pairs.get(leaf / 2) {
            self.replay(leaf, Queued { rank, ..pair[leaf % 2] });
        }
    }

    /// Calls `visit` for each member whose rank is `wanted`, in the order of the leaves. If a rank
    /// is wanted, all smaller ones must be wanted too. Visits O(k log n) nodes for k members.
    pub(crate) fn each_below(&self, wanted: impl Fn(u128) -> bool, visit: &mut impl FnMut(Slot)) {
        self.each_from(1, &|rank| rank != Queued::VACANT.rank && wanted(rank), visit);
    }

    fn each_from(
        &self,
        above: usize,
        wanted: &impl Fn(u128) -> bool,
        visit: &mut impl FnMut(Slot),
    ) {
        let Some(Pair(pair)) = self.pairs.get(above) else {
            return;
        };
        for (node, entry) in (2 * above..).zip(pair) {
            if !wanted(entry.rank) {
                continue;
            }
            if node < self.pairs.len() {
                self.each_from(node, wanted, visit);
            } else {
                visit(entry.slot());
            }
        }
    }

    /// The index of a member's leaf.
    fn leaf(&self, place: Place) -> usize {
        self.pairs.len() + place.at as usize
    }

    /// Doubles the capacity. The cost is amortised over the members added since the last time.
    #[cold]
    fn grow(&mut self) {
        let old = self.pairs.len();
        let leaves = (2 * old).max(2);
        let mut pairs = vec![Pair([Queued::VACANT; 2]); leaves];
        pairs[leaves / 2..][..old / 2].copy_from_slice(&self.pairs[old / 2..]);
        for node in (2..leaves).rev() {
            let Pair([left, right]) = pairs[node];
            pairs[node / 2].0[node % 2] = left.earlier(right);
        }
        self.pairs = pairs;
        self.vacant.reserve_exact(leaves);
        self.vacant.extend((old as u32..leaves as u32).rev());
    }

    /// Fills a vacant leaf and updates the nodes above it. Stops at the first node that the
    /// newcomer does not win; most newcomers sort late, so this is soon.
    fn enter(&mut self, mut node: usize, newcomer: Queued) {
        while node > 1 {
            let Some(Pair(pair)) = self.pairs.get_mut(node / 2) else {
                return;
            };
            pair[node % 2] = newcomer;
            if !newcomer.is_before(&pair[1 - node % 2]) {
                return;
            }
            node /= 2;
        }
        self.top = newcomer;
    }

    /// Sets a leaf and updates all nodes above it.
    #[inline]
    fn replay(&mut self, mut node: usize, mut first: Queued) {
        while node > 1 {
            let Some(Pair(pair)) = self.pairs.get_mut(node / 2) else {
                return;
            };
            pair[node % 2] = first;
            first = first.earlier(pair[1 - node % 2]);
            node /= 2;
        }
        self.top = first;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// A number generator that is random enough to shuffle members.
    fn mix(n: u64) -> u64 {
        let n = (n ^ (n >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (n ^ (n >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 17
    }

    #[test]
    fn members_leave_in_order_of_rank_key_and_age() {
        const SLOTS: usize = 40;
        let mut places: Vec<Place> = (0..SLOTS as u32).map(|n| Place::new(100 - n)).collect();
        let mut queue = Queue::default();
        let mut sorted = BTreeSet::new();
        let mut held: Vec<Option<(u128, u64)>> = vec![None; SLOTS];
        for step in 0..20_000u64 {
            let slot = (mix(step) % SLOTS as u64) as usize;
            // Few ranks and keys, so that ties are common.
            let (rank, key) = (u128::from(mix(step + 1) % 7), mix(step + 2) % 3);
            let age = 100 - slot;
            match held[slot] {
                None => {
                    queue.push(&mut places[slot], slot, rank, key);
                    held[slot] = Some((rank, key));
                    sorted.insert((rank, key, age, slot));
                }
                Some((old, key)) if step % 3 == 0 => {
                    queue.remove(&mut places[slot]);
                    held[slot] = None;
                    sorted.remove(&(old, key, age, slot));
                }
                Some((old, key)) => {
                    queue.update(places[slot], rank);
                    held[slot] = Some((rank, key));
                    sorted.remove(&(old, key, age, slot));
                    sorted.insert((rank, key, age, slot));
                }
            }
            assert_eq!(places[slot].is_queued(), held[slot].is_some());
            let first = sorted.first();
            assert_eq!(queue.first().map(Queued::slot), first.map(|first| first.3));
            assert_eq!(queue.is_empty(), first.is_none());
            let mut below = BTreeSet::new();
            queue.each_below(|rank| rank <= 3, &mut |slot| {
                assert!(below.insert(slot), "visited once");
            });
            let expected = sorted.iter().filter(|entry| entry.0 <= 3).map(|entry| entry.3);
            assert_eq!(below, expected.collect());
        }
    }
}
