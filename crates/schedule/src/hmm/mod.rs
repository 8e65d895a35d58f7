//! Weighted hierarchical max-min fair sharing with strict priorities inside each class (Holzinger
//! et al. 2025, section III).
//!
//! Streams are the leaves of a tree of classes ([`Priority::parents`](crate::Priority::parents)).
//! Each class divides its service among its *backlogged* members: the streams and classes directly below it
//! that have data to send.
//!
//! * It serves only the most urgent members. Non-incremental members go first, one after the other in order
//!   of their keys; the key of a class is the key of the stream for which it was created. Incremental members
//!   share.
//! * Members that share get service in proportion to their weights. Service that one of them does not use
//!   is divided among its siblings, and only service that no sibling can use goes to the class above.
//!
//! The streams that may send at any moment are thus the set that the paper's breadth-first search
//! finds. Without classes and weights, the order is that of [`Eps`](crate::Eps), except that shares
//! are counted in bytes.
//!
//! # The two schemes, and why [`Hmm`] is the default
//!
//! Both schemes use the same tree and the same search. They differ in how closely
//! members that share follow their max-min fair shares. L is the size of the largest packet.
//!
//! | | [`Hmm`] | [`Hls`](crate::Hls) |
//! |---|---|---|
//! | method | virtual time in each class | rounds, as in the paper |
//! | ahead of the share, per level | less than L, plus L per new sibling | at most Q* for each stream that ends |
//! | behind the share, per level | less than L per sibling, plus L if new | at most Q* for each stream that ends |
//! | service by weight of siblings i and j differs by | L/wi + L/wj | 2 Q*/W + L/wi + L/wj |
//! | a newcomer waits for | a packet of each sibling, by weight | the end of the round: at most 2 Q* bytes |
//! | a more urgent newcomer waits for | nothing: it is served next | as any newcomer: the end of the round |
//! | [`next`](crate::Scheduler::next) | O(1) | O(1) |
//! | [`charge`](crate::Scheduler::charge) | O(depth log n) | O(depth + log n), amortised over a round |
//! | each stream holds the link for | one packet | its share of the round |
//!
//! W is the sum of all weights, and n is the largest number of members that a class has had at
//! once.
//!
//! Q* = Lmax (1 + sum(w)/w_min) grows with the number of streams, and with the ratio of weights at
//! each level: ten streams, one of which has a tenth of the others' weight, lead to rounds of more
//! than a hundred packets. [`Hmm`] has neither rounds nor such a quantum. It is as fast without
//! classes, and a few nanoseconds slower per class above a stream. This is why the name `hmm`
//! stands for it. [`Hls`](crate::Hls) is the paper's scheme, for comparison and for applications that want
//! each stream to send in longer runs.
//!
//! # What both schemes have in common
//!
//! * A member that becomes backlogged gets no compensation for the time when it was not.
//! * Every charge counts, whether there was a grant or not: a repair symbol is paid for by the stream
//!   that it protects, with [`Hmm`] by the classes above that stream as well. A stream or class that
//!   used more than its share owes the excess, up to [`MAX_DEBT`] bytes, and waits while its siblings
//!   catch up. Without backlogged siblings it never waits.
//! * A class that is reprioritised keeps its debt, in bytes.

mod fair;
#[cfg(test)]
pub(crate) mod model;
#[cfg(test)]
mod tests;
pub(crate) mod tree;

pub(crate) use fair::ENTRY;
pub use fair::Hmm;

/// The largest packet, in bytes, for which quanta are computed (section III-B3).
pub(crate) const LMAX: u32 = 1350;

/// The maximum debt of a stream or class to its siblings, in bytes.
pub(crate) const MAX_DEBT: u32 = 1 << 18;

/// The methods of [`Scheduler`](crate::Scheduler) that only concern the tree.
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

        fn rest(&mut self) {
            self.tree.rest();
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

/// The constructor of a scheduler with a `tree`, and the counts of its tree.
macro_rules! tree_counts {
    ($scheduler:ty) => {
        impl $scheduler {
            /// A scheduler without streams.
            #[must_use]
            pub fn new() -> Self {
                Self::default()
            }

            /// The number of inserted streams, active or not.
            #[must_use]
            pub fn streams(&self) -> usize {
                self.tree.streams()
            }

            /// The number of classes. A class exists while there is a stream below it.
            #[must_use]
            pub fn classes(&self) -> usize {
                self.tree.classes()
            }

            /// How many members the queues of all classes have room for.
            #[cfg(test)]
            pub(crate) fn room_of_queues(&self) -> usize {
                self.tree.inners.iter().map(|inner| inner.queue.room()).sum()
            }

            /// The number of slots for nodes and for classes, in use or not.
            #[cfg(test)]
            pub(crate) fn slots(&self) -> (usize, usize) {
                (self.tree.nodes.len(), self.tree.inners.len())
            }
        }
    };
}
pub(crate) use tree_counts;
