//! A priority queue whose members know their place in it.

use std::hint::select_unpredictable;

use crate::StreamKey;

/// Index of a member in the slab of its owner.
pub(crate) type Slot = usize;

/// Where a member waits, and how old it is. The owner keeps it with the member.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Index among the leaves of the queue; [`NOWHERE`] if the member waits in none.
    at: u32,
    /// What decides between members of equal rank and key: the smaller goes first.
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
}

/// One member with all that its order depends on, so that comparing two looks nowhere else.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// The smaller goes first.
    rank: u128,
    /// Decides between equal ranks.
    pub(crate) key: StreamKey,
    /// Decides between equal keys: when it was born, in the upper half. In the lower the slot.
    born_and_slot: u64,
}

impl Entry {
    /// Nobody: behind all members.
    const VACANT: Self = Self { rank: u128::MAX, key: StreamKey::MAX, born_and_slot: u64::MAX };

    const fn is_vacant(&self) -> bool {
        self.born_and_slot == u64::MAX
    }

    pub(crate) const fn slot(&self) -> Slot {
        self.born_and_slot as u32 as Slot
    }

    /// Whether it goes before another member.
    #[inline]
    fn is_before(&self, other: &Self) -> bool {
        // One subtraction of two long numbers.
        let (_, before) = self.born_and_slot.overflowing_sub(other.born_and_slot);
        let (_, before) = self.key.borrowing_sub(other.key, before);
        let (_, before) = (self.rank as u64).borrowing_sub(other.rank as u64, before);
        ((self.rank >> 64) as u64).borrowing_sub((other.rank >> 64) as u64, before).1
    }

    /// Who of two goes first. Without a branch: that is as good as random, and a branch on it would
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

/// Two who meet, in one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Pair([Entry; 2]);

/// A priority queue by rank, key and age: a tournament. Members are the leaves of a complete binary
/// tree, in which each inner node repeats the earlier of the two below it; so the first of all is
/// at the top.
///
/// A member is put in, moved or taken out in log2(n) comparisons, n the most members that there
/// were at once. That is more than a heap needs at best and half of what one needs when the first
/// moves behind most others, as it does here at nearly every decision. Nor do members move about,
/// and whom a member meets on its way up depends on its place alone: the processor fetches all of
/// them at once.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    /// Node 1.
    top: Entry,
    /// Nodes 2n and 2n + 1, which are below node n, for each n from 1 on; the first pair is not
    /// used. The nodes of the second half are the leaves. Empty, or a power of two from 2 on.
    pairs: Vec<Pair>,
    /// Leaves without a member.
    vacant: Vec<u32>,
}

impl Default for Queue {
    fn default() -> Self {
        Self { top: Entry::VACANT, pairs: Vec::new(), vacant: Vec::new() }
    }
}

impl Queue {
    pub(crate) fn is_empty(&self) -> bool {
        self.top.is_vacant()
    }

    /// The member that goes first.
    #[inline]
    pub(crate) fn first(&self) -> Option<&Entry> {
        if self.is_empty() { None } else { Some(&self.top) }
    }

    /// Whether the member of this slot goes first.
    #[inline]
    pub(crate) fn is_first(&self, slot: Slot) -> bool {
        self.first().is_some_and(|first| first.slot() == slot)
    }

    /// Puts in a member, which is in no queue. No rank is `u128::MAX`.
    pub(crate) fn push(&mut self, place: &mut Place, slot: Slot, rank: u128, key: StreamKey) {
        if self.vacant.is_empty() {
            self.grow();
        }
        // There is one now.
        place.at = self.vacant.pop().unwrap_or_default();
        // There cannot be 2^32 members: each is a stream or a class of a stream.
        let born_and_slot = u64::from(place.born) << 32 | slot as u64;
        self.enter(self.leaf(*place), Entry { rank, key, born_and_slot });
    }

    /// Takes out a member, if it is in this queue.
    pub(crate) fn remove(&mut self, place: &mut Place) {
        if place.is_queued() {
            self.vacant.push(place.at);
            self.replay(self.leaf(*place), Entry::VACANT);
            place.at = NOWHERE;
        }
    }

    /// Changes the rank of a member of this queue.
    #[inline]
    pub(crate) fn update(&mut self, place: Place, rank: u128) {
        let leaf = self.leaf(place);
        if let Some(Pair(pair)) = self.pairs.get(leaf / 2) {
            self.replay(leaf, Entry { rank, ..pair[leaf % 2] });
        }
    }

    /// Calls `visit` for each member whose rank `wanted` takes. It must take every rank below one
    /// that it takes. Costs O(members taken) and at most log2(n) for each; the order is that of
    /// the leaves.
    pub(crate) fn each_below(&self, wanted: impl Fn(u128) -> bool, visit: &mut impl FnMut(Slot)) {
        self.each_from(1, &|rank| rank != Entry::VACANT.rank && wanted(rank), visit);
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

    /// The node of a member.
    fn leaf(&self, place: Place) -> usize {
        self.pairs.len() + place.at as usize
    }

    /// Makes place for twice as many members. What it costs is spread over those who were put in
    /// since the last time.
    #[cold]
    fn grow(&mut self) {
        let old = self.pairs.len();
        let leaves = (2 * old).max(2);
        let mut pairs = vec![Pair([Entry::VACANT; 2]); leaves];
        pairs[leaves / 2..][..old / 2].copy_from_slice(&self.pairs[old / 2..]);
        for node in (2..leaves).rev() {
            let Pair([left, right]) = pairs[node];
            pairs[node / 2].0[node % 2] = left.earlier(right);
        }
        self.pairs = pairs;
        self.vacant.reserve_exact(leaves);
        self.vacant.extend((old as u32..leaves as u32).rev());
    }

    /// Sets a vacant leaf, and who is first above it. It changes nothing above the first who goes
    /// before the newcomer, and most newcomers go late.
    fn enter(&mut self, mut node: usize, newcomer: Entry) {
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

    /// Sets a leaf, and who is first above it.
    #[inline]
    fn replay(&mut self, mut node: usize, mut first: Entry) {
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

    /// A generator whose numbers look random enough to move members about.
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
            assert_eq!(queue.first().map(Entry::slot), first.map(|first| first.3));
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
