//! A priority queue whose members know their place in it.

use std::hint::select_unpredictable;

use crate::StreamKey;

/// Index of a member in the slab of its owner.
pub(crate) type Slot = usize;

/// Where a member waits, and how old it is. One for each slot of the owner's slab.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Index in the queue; [`NOWHERE`] if the member waits in none.
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

    /// Whether the member is the next to leave its queue.
    pub(crate) const fn is_first(self) -> bool {
        self.at == 0
    }
}

/// One member with all that its order depends on, so that comparing two looks nowhere else.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// The smaller goes first.
    pub(crate) rank: u128,
    /// Decides between equal ranks.
    pub(crate) key: StreamKey,
    pub(crate) slot: Slot,
}

/// Children of one member of the heap. Four of them make half as many levels as two, and lie in
/// neighbouring cache lines.
const ARITY: usize = 4;

/// A min-heap by rank, key and age. Members are moved and taken out from anywhere in O(log n).
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    entries: Vec<Entry>,
}

impl Queue {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The member that goes first.
    pub(crate) fn first(&self) -> Option<&Entry> {
        self.entries.first()
    }

    pub(crate) fn push(&mut self, places: &mut [Place], entry: Entry) {
        self.entries.push(entry);
        self.sift_up(places, self.entries.len() - 1, entry);
    }

    /// Takes out a member, if it is in this queue.
    pub(crate) fn remove(&mut self, places: &mut [Place], slot: Slot) {
        let at = places[slot].at as usize;
        places[slot].at = NOWHERE;
        if at < self.entries.len() {
            let last = self.entries.len() - 1;
            let moved = self.entries[last];
            self.entries.truncate(last);
            if at < last {
                // The last member came from another branch: it may belong above or below.
                self.sift(places, at, moved);
            }
        }
    }

    /// Changes the rank of a member of this queue.
    pub(crate) fn update(&mut self, places: &mut [Place], slot: Slot, rank: u128) {
        let at = places[slot].at as usize;
        if let Some(&entry) = self.entries.get(at) {
            self.sift(places, at, Entry { rank, ..entry });
        }
    }

    /// Calls `visit` for each member whose rank `wanted` takes. It must take every rank below one
    /// that it takes. Costs O(members taken); the order is that of the heap.
    pub(crate) fn each_below(&self, wanted: impl Fn(u128) -> bool, visit: &mut impl FnMut(Slot)) {
        self.each_from(0, &wanted, visit);
    }

    fn each_from(&self, at: usize, wanted: &impl Fn(u128) -> bool, visit: &mut impl FnMut(Slot)) {
        if let Some(entry) = self.entries.get(at).filter(|entry| wanted(entry.rank)) {
            visit(entry.slot);
            for child in ARITY * at + 1..=ARITY * at + ARITY {
                self.each_from(child, wanted, visit);
            }
        }
    }

    /// Whether `a` goes before `b`. Without a branch but for the rare tie: who goes first is as
    /// good as random, and a branch on it would be mispredicted half of the time.
    #[inline]
    fn before(places: &[Place], a: &Entry, b: &Entry) -> bool {
        let same_rank = a.rank == b.rank;
        if same_rank & (a.key == b.key) {
            return Self::is_older(places, a, b);
        }
        (a.rank < b.rank) | (same_rank & (a.key < b.key))
    }

    #[cold]
    fn is_older(places: &[Place], a: &Entry, b: &Entry) -> bool {
        places[a.slot].born < places[b.slot].born
    }

    /// Puts `entry` at `at` or wherever it belongs above or below.
    fn sift(&mut self, places: &mut [Place], at: usize, entry: Entry) {
        if at > 0 && Self::before(places, &entry, &self.entries[(at - 1) / ARITY]) {
            self.sift_up(places, at, entry);
        } else {
            self.sift_down(places, at, entry);
        }
    }

    fn sift_up(&mut self, places: &mut [Place], mut at: usize, entry: Entry) {
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if !Self::before(places, &entry, &self.entries[parent]) {
                break;
            }
            self.put(places, at, self.entries[parent]);
            at = parent;
        }
        self.put(places, at, entry);
    }

    fn sift_down(&mut self, places: &mut [Place], mut at: usize, entry: Entry) {
        loop {
            let first = ARITY * at + 1;
            let end = self.entries.len().min(first + ARITY);
            let Some(children) = self.entries.get(first..end) else {
                break;
            };
            let Some(least) = (0..children.len()).reduce(|least, child| {
                let smaller = Self::before(places, &children[child], &children[least]);
                select_unpredictable(smaller, child, least)
            }) else {
                break;
            };
            let least = first + least;
            if !Self::before(places, &self.entries[least], &entry) {
                break;
            }
            self.put(places, at, self.entries[least]);
            at = least;
        }
        self.put(places, at, entry);
    }

    fn put(&mut self, places: &mut [Place], at: usize, entry: Entry) {
        self.entries[at] = entry;
        // A queue cannot hold 2^32 members: each is a stream or a class of a stream.
        places[entry.slot].at = at as u32;
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
                    queue.push(&mut places, Entry { rank, key, slot });
                    held[slot] = Some((rank, key));
                    sorted.insert((rank, key, age, slot));
                }
                Some((old, key)) if step % 3 == 0 => {
                    queue.remove(&mut places, slot);
                    held[slot] = None;
                    sorted.remove(&(old, key, age, slot));
                }
                Some((old, key)) => {
                    queue.update(&mut places, slot, rank);
                    held[slot] = Some((rank, key));
                    sorted.remove(&(old, key, age, slot));
                    sorted.insert((rank, key, age, slot));
                }
            }
            assert_eq!(places[slot].is_queued(), held[slot].is_some());
            let first = sorted.first();
            assert_eq!(queue.first().map(|entry| entry.slot), first.map(|first| first.3));
            if let Some(first) = first {
                assert!(places[first.3].is_first());
            }
            let mut below = BTreeSet::new();
            queue.each_below(|rank| rank <= 3, &mut |slot| {
                assert!(below.insert(slot), "visited once");
            });
            let expected = sorted.iter().filter(|entry| entry.0 <= 3).map(|entry| entry.3);
            assert_eq!(below, expected.collect());
        }
    }
}
