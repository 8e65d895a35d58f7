//! Weighted hierarchical max-min fair sharing with strict priorities inside each class (Holzinger
//! et al. 2025, section III).
//!
//! Streams are the leaves of a tree of classes ([`Priority::parents`](crate::Priority::parents)).
//! Each class divides what it gets among its *backlogged* members: the streams and classes below
//! it that have something to send.
//!
//! * Of these it serves only the most urgent. Non-incremental ones go first, one after the other in
//!   order of their keys; the key of a class is that of the stream that it was made for. Incremental
//!   ones share.
//! * Members that share get service in proportion to their weights. What one does not use is
//!   divided among its siblings, and only what no sibling can use goes to the class above.
//!
//! So the streams that may send at any moment are the set that the paper's breadth-first search
//! finds, and without classes and weights the order is that of [`Eps`](crate::Eps), but with shares
//! counted in bytes.
//!
//! # Two schemes, and why [`Hmm`] is the default one
//!
//! Both keep the same tree and serve the same set. They differ in how closely the members that share
//! follow their max-min shares. Let L be the largest packet.
//!
//! | | [`Hmm`] | [`Hls`](crate::Hls) |
//! |---|---|---|
//! | how | virtual time in each class | rounds, as in the paper |
//! | ahead of the share, at each level | less than L, and L for each sibling that is new | at most Q* |
//! | behind it | less than L for each sibling, and L if it is new | at most Q* |
//! | two siblings i and j, service by weight | L/wi + L/wj apart | 2 Q*/W + L/wi + L/wj apart, W all weights |
//! | a newcomer waits | for one packet of each sibling, by weight | for the end of the round: Q* bytes |
//! | [`next`](crate::Scheduler::next) | O(1) | O(1) |
//! | [`charge`](crate::Scheduler::charge) | O(depth log n) | O(depth + log n), amortised |
//! | each stream holds the link for | one packet | its share of the round |
//!
//! n is the most members that one class has had at once. A newcomer that is more urgent waits in
//! neither: it is next.
//!
//! Q* = Lmax (1 + sum(w)/w_min) grows with the number of streams and with the ratio of weights at
//! each level: ten streams of which one has a tenth of the weight of the others make rounds of more
//! than a hundred packets. [`Hmm`] has neither rounds nor that quantity, and is as fast without
//! classes and slower by some nanoseconds for each class above a stream; it is therefore what the
//! name `hmm` means. [`Hls`](crate::Hls) is the paper's scheme, to compare with, and for those who want each
//! stream to send in longer runs.
//!
//! # What is common to both
//!
//! * A member that becomes backlogged gets nothing for the time when it was not. A more urgent one
//!   is served at the next decision of its class.
//! * Everything charged counts, at each level up to the root, whether there was a grant or not: a
//!   repair symbol is paid by the stream that it protects and by the classes of that stream. A
//!   stream or class that used more than its share owes the rest, at most [`MAX_DEBT`] bytes, and
//!   waits while its siblings catch up; alone it never waits.
//! * A class that is reprioritised keeps what it owes, in bytes.

mod fair;
#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
pub(crate) mod tree;

pub(crate) use fair::ENTRY;
pub use fair::Hmm;

/// The largest packet, in bytes, that quanta are computed for (section III-B3).
pub(crate) const LMAX: u32 = 1350;

/// The most bytes that a stream or class owes its siblings.
pub(crate) const MAX_DEBT: u32 = 1 << 18;

/// The trait's calls that only concern the tree.
macro_rules! tree_calls {
    () => {
        fn insert(&mut self, stream: StreamKey, priority: Priority) {
            self.tree.insert(stream, priority);
        }

        fn remove(&mut self, stream: StreamKey) {
            self.tree.remove(stream);
        }

        fn reprioritize(&mut self, stream: StreamKey, priority: Priority) {
            self.tree.reprioritize(stream, priority);
        }

        fn activate(&mut self, stream: StreamKey) {
            self.tree.activate(stream);
        }

        fn deactivate(&mut self, stream: StreamKey) {
            self.tree.deactivate(stream);
        }

        fn next(&self, room: usize) -> Option<Grant> {
            self.tree.next(room)
        }

        fn goes_by_classes(&self) -> bool {
            true
        }

        fn is_empty(&self) -> bool {
            self.tree.is_empty()
        }
    };
}
pub(crate) use tree_calls;
